/* record/part.c: whose NAME.part is: taken for one run, published under the final name, removed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump.h"

/* May PATH be replaced in the end? Only if it is free or a file of ours. */
weir_status weir_dump_check_target(const char *path, weir_err *err)
{
    struct stat st;
    bool ours = false;
    if (lstat(path, &st))
        return WEIR_OK; /* free; a directory that is missing shows when PATH.part is created */
    if (!stat(path, &st) && S_ISREG(st.st_mode))
        WEIR_TRY(weir_h5_is_ours(path, &ours, err));
    if (!ours)
        return weir_fail(err, WEIR_E_ARG,
                         "exists and is not a file of weir's: it is not replaced; choose another name");
    return WEIR_OK;
}

/* Is it still the file that this run created? Another run may have been forced over it. */
static bool is_mine(const weir_dump *d)
{
    struct stat st;
    return d->part_taken && !lstat(d->part, &st) && st.st_dev == d->part_dev && st.st_ino == d->part_ino;
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

weir_status weir_dump_take_part(weir_dump *d, bool force, weir_err *err)
{
    struct stat st;
    if (force)
        WEIR_TRY(clear_part(d->part, err));
    int fd = open(d->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return weir_fail(err, WEIR_E_ARG,
                         "%s exists (an unfinished dump): --resume goes on with it, --force begins again", d->part);
    if (fd < 0 || fstat(fd, &st)) {
        int number = errno;
        if (fd >= 0)
            close(fd);
        return weir_fail(err, WEIR_E_IO, "cannot create %s: %s", d->part, strerror(number));
    }
    close(fd);
    d->part_taken = true;
    d->part_dev = st.st_dev;
    d->part_ino = st.st_ino;
    return WEIR_OK;
}

weir_status weir_dump_adopt_part(weir_dump *d, bool *there, weir_err *err)
{
    struct stat st;
    *there = lstat(d->part, &st) == 0;
    if (!*there)
        return WEIR_OK;
    if (!S_ISREG(st.st_mode))
        return weir_fail(err, WEIR_E_ARG, "%s is not a file: remove it", d->part);
    d->part_taken = true;
    d->part_dev = st.st_dev;
    d->part_ino = st.st_ino;
    return WEIR_OK;
}

weir_status weir_dump_check_part(const weir_dump *d, weir_err *err)
{
    if (is_mine(d))
        return WEIR_OK;
    return weir_fail(err, WEIR_E_IO, "%s was removed or replaced while it was written: its rows are lost", d->part);
}

weir_status weir_dump_publish_part(weir_dump *d, weir_err *err)
{
    WEIR_TRY(weir_dump_check_part(d, err));
    d->part_whole = true;
    weir_status r = weir_dump_check_target(d->path, err);
    if (!r && rename(d->part, d->path))
        r = weir_fail(err, WEIR_E_IO, "cannot rename %s: %s", d->part, strerror(errno));
    return r;
}

void weir_dump_drop_part(weir_dump *d)
{
    if (is_mine(d))
        unlink(d->part);
}
