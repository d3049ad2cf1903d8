#include <weir/base.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/mem.h"
#include "filemap.h"

struct weir_outfile {
    FILE *stream;
    char *path, *part;
    bool replace;
};

static weir_status refuse_existing(const char *path, weir_err *err)
{
    weir_fail(err, WEIR_E_ARG, "the file exists: choose another name or remove it");
    weir_err_where(err, path, NULL, -1);
    return WEIR_E_ARG;
}

static weir_status fail_system(weir_err *err, const char *what, const char *path, int number)
{
    weir_fail(err, WEIR_E_IO, "%s: %s", what, strerror(number));
    weir_err_where(err, path, NULL, -1);
    return WEIR_E_IO;
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* A device or a pipe would be renamed over; a pipe that is opened to be written waits for its reader. */
static bool is_special(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) && !S_ISDIR(st.st_mode);
}

static weir_status refuse_special(const char *path, weir_err *err)
{
    weir_fail(err, WEIR_E_ARG, "it is a pipe or a device, no file: choose another name or remove it");
    return weir_err_where(err, path, NULL, -1);
}

/* Two runs that write one file would write one .part: the first one locks it. It is emptied behind the lock, and only
 * if the name is still its own: the first run may just have renamed it. */
static weir_status take_part(int fd, const char *part, weir_err *err)
{
    struct stat its, named;
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK && errno != EINTR) /* a file system without locks */
        return ftruncate(fd, 0) == 0 ? WEIR_OK : fail_system(err, "cannot write it", part, errno);
    if (locked && fstat(fd, &its) == 0 && lstat(part, &named) == 0 && its.st_dev == named.st_dev &&
        its.st_ino == named.st_ino)
        return ftruncate(fd, 0) == 0 ? WEIR_OK : fail_system(err, "cannot write it", part, errno);
    weir_fail(err, WEIR_E_IO, "another run is writing it");
    return weir_err_where(err, part, NULL, -1);
}

static weir_status open_part(weir_outfile *f, weir_err *err)
{
    if (is_special(f->part))
        return refuse_special(f->part, err);
    /* O_NOFOLLOW: a .part that is a link would let the write land somewhere else. */
    int fd = open(f->part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0)
        return fail_system(err, "cannot create it", f->part, errno);
    weir_status s = take_part(fd, f->part, err);
    if (s != WEIR_OK) {
        close(fd);
        return s;
    }
    f->stream = fdopen(fd, "wb");
    if (f->stream)
        return WEIR_OK;
    int number = errno;
    close(fd);
    unlink(f->part);
    return fail_system(err, "cannot write it", f->part, number);
}

weir_status weir_outfile_open(weir_outfile **out, const char *path, bool replace, weir_err *err)
{
    *out = NULL;
    if (!*path)
        return weir_fail(err, WEIR_E_ARG, "the output file has an empty name");
    if (weir_path_is_dir(path))
        return fail_system(err, "cannot write it", path, EISDIR);
    if (is_special(path))
        return refuse_special(path, err);
    if (!replace && exists(path))
        return refuse_existing(path, err);
    weir_outfile *f = weir_calloc(1, sizeof *f);
    if (!f)
        return weir_nomem(err, "an output file");
    weir_buf part = {0};
    bool named = weir_buf_printf(&part, "%s.part", path) == WEIR_OK;
    *f = (weir_outfile){.part = part.p, .path = weir_strndup(path, strlen(path)), .replace = replace};
    weir_status s = named && f->path ? open_part(f, err) : weir_nomem(err, "an output file");
    if (s != WEIR_OK)
        weir_outfile_abort(f);
    else
        *out = f;
    return s;
}

FILE *weir_outfile_stream(weir_outfile *f)
{
    return f->stream;
}

/* An error of any write shows here at the latest. The file stays open: its lock is held until it has its name. A second
 * descriptor is closed, because some file systems report an error only then. */
static weir_status end_stream(weir_outfile *f, weir_err *err)
{
    errno = 0;
    bool bad = fflush(f->stream) != 0 || ferror(f->stream);
    if (bad && errno == 0) { /* which error a write met is forgotten by now, but the next one meets it too */
        static const char zeros[1 << 16];
        clearerr(f->stream);
        (void)!fwrite(zeros, 1, sizeof zeros, f->stream);
    }
    int number = errno, copy = bad ? -1 : dup(fileno(f->stream));
    if (copy >= 0 && close(copy) != 0) {
        bad = true;
        number = errno;
    }
    return bad ? fail_system(err, "cannot write it", f->part, number ? number : EIO) : WEIR_OK;
}

/* link() fails where the name is taken meanwhile, which rename() would overwrite; some file systems lack it. */
static weir_status publish(weir_outfile *f, weir_err *err)
{
    if (!f->replace) {
        if (link(f->part, f->path) == 0) {
            unlink(f->part);
            return WEIR_OK;
        }
        if (errno == EEXIST || exists(f->path))
            return refuse_existing(f->path, err);
    }
    return rename(f->part, f->path) ? fail_system(err, "cannot rename the finished file", f->path, errno) : WEIR_OK;
}

weir_status weir_outfile_commit(weir_outfile *f, weir_err *err)
{
    weir_status s = end_stream(f, err);
    if (s == WEIR_OK)
        s = publish(f, err);
    if (s != WEIR_OK)
        unlink(f->part);
    fclose(f->stream);
    weir_free(f->part);
    weir_free(f->path);
    weir_free(f);
    return s;
}

void weir_outfile_abort(weir_outfile *f)
{
    if (!f)
        return;
    if (f->stream) {
        unlink(f->part);
        fclose(f->stream);
    }
    weir_free(f->part);
    weir_free(f->path);
    weir_free(f);
}
