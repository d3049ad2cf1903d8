/* record/part.c: see part.h. */
#include "part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "h5.h"

weir_status weir_partfile_init(weir_partfile *f, const char *path, const char *format, weir_err *err)
{
    weir_buf part = {0};
    f->format = format;
    f->path = weir_strndup(path, strlen(path));
    if (!f->path || weir_buf_printf(&part, "%s.part", path)) {
        weir_buf_free(&part);
        return weir_nomem(err, "a file's name");
    }
    f->part = part.p;
    return WEIR_OK;
}

void weir_partfile_free(weir_partfile *f)
{
    weir_free(f->path);
    weir_free(f->part);
    *f = (weir_partfile){0};
}

weir_status weir_partfile_check_target(const weir_partfile *f, weir_err *err)
{
    struct stat st;
    bool ours = false;
    if (lstat(f->path, &st))
        return WEIR_OK; /* free; a directory that is missing shows when PATH.part is created */
    if (!stat(f->path, &st) && S_ISREG(st.st_mode))
        WEIR_TRY(weir_h5_is_ours(f->path, f->format, &ours, err));
    if (!ours)
        return weir_fail(
            err, WEIR_E_ARG,
            "exists and is not a file of weir's of this kind (%s): it is not replaced; choose another name", f->format);
    return WEIR_OK;
}

static bool is_mine(const weir_partfile *f)
{
    struct stat st;
    return f->taken && !lstat(f->part, &st) && st.st_dev == f->dev && st.st_ino == f->ino;
}

/* Removes what an interrupted run left. HDF5 would write through a link and truncate a file before it asks for its
 * lock, so both are looked at here. */
static weir_status clear_part(const char *part, weir_err *err)
{
    struct stat st;
    if (lstat(part, &st))
        return WEIR_OK;
    if (!S_ISREG(st.st_mode))
        return weir_fail(err, WEIR_E_ARG, "%s is not a file: remove it", part);
    int fd = open(part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        close(fd);
        return weir_fail(err, WEIR_E_ARG, "%s is being written by another run: wait for it or choose another name",
                         part);
    }
    weir_status r = unlink(part) ? weir_fail(err, WEIR_E_IO, "cannot remove %s: %s", part, strerror(errno)) : WEIR_OK;
    if (fd >= 0)
        close(fd);
    return r;
}

weir_status weir_partfile_take(weir_partfile *f, bool force, const char *advice, weir_err *err)
{
    struct stat st;
    if (force)
        WEIR_TRY(clear_part(f->part, err));
    int fd = open(f->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return weir_fail(err, WEIR_E_ARG, "%s exists%s", f->part, advice);
    if (fd < 0 || fstat(fd, &st)) {
        int number = errno;
        if (fd >= 0)
            close(fd);
        return weir_fail(err, WEIR_E_IO, "cannot create %s: %s", f->part, strerror(number));
    }
    close(fd);
    f->taken = true;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    return WEIR_OK;
}

weir_status weir_partfile_adopt(weir_partfile *f, bool *there, weir_err *err)
{
    struct stat st;
    *there = lstat(f->part, &st) == 0;
    if (!*there)
        return WEIR_OK;
    if (!S_ISREG(st.st_mode))
        return weir_fail(err, WEIR_E_ARG, "%s is not a file: remove it", f->part);
    f->taken = true;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    return WEIR_OK;
}

weir_status weir_partfile_check(const weir_partfile *f, weir_err *err)
{
    if (is_mine(f))
        return WEIR_OK;
    return weir_fail(err, WEIR_E_IO, "%s was removed or replaced while it was written: what was in it is lost",
                     f->part);
}

weir_status weir_partfile_publish(weir_partfile *f, weir_err *err)
{
    WEIR_TRY(weir_partfile_check(f, err));
    weir_status r = weir_partfile_check_target(f, err);
    if (!r && rename(f->part, f->path))
        r = weir_fail(err, WEIR_E_IO, "cannot rename %s: %s", f->part, strerror(errno));
    return r;
}

void weir_partfile_drop(const weir_partfile *f)
{
    if (is_mine(f))
        unlink(f->part);
}
