#include "outdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/mem.h"
#include "filemap.h"

struct weir_outdir {
    const weir_outdir_kind *kind;
    char *dir, *part;
    int fd; /* of part, locked */
};

static weir_status fail_at(weir_err *err, const char *path, const char *what)
{
    weir_fail(err, WEIR_E_IO, "%s: %s", what, strerror(errno));
    weir_err_where(err, path, NULL, -1);
    return WEIR_E_IO;
}

static weir_status refuse(weir_err *err, const char *dir, const char *why)
{
    weir_fail(err, WEIR_E_ARG, "it exists and %s: choose another name", why);
    weir_err_where(err, dir, NULL, -1);
    return WEIR_E_ARG;
}

static weir_status in_use(weir_err *err, const char *part)
{
    weir_fail(err, WEIR_E_IO, "another run is writing it");
    weir_err_where(err, part, NULL, -1);
    return WEIR_E_IO;
}

/* --- may it be replaced? */

static bool is_known(const weir_outdir_kind *kind, const char *name)
{
    for (const char *const *f = kind->file; *f; f++)
        if (strcmp(name, *f) == 0)
            return true;
    return false;
}

static weir_status check_entries(const char *dir, const weir_outdir_kind *kind, bool ours, weir_err *err)
{
    char why[400] = "";
    DIR *d = opendir(dir);
    if (!d)
        return fail_at(err, dir, "cannot read it");
    for (struct dirent *e; (e = readdir(d)) && !*why;) {
        const bool dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        if (!dots && !ours)
            snprintf(why, sizeof why, "nothing in it says that it is %s of weir's", kind->what);
        else if (!dots && !is_known(kind, e->d_name))
            snprintf(why, sizeof why, "holds %.200s, which is no part of %s", e->d_name, kind->what);
    }
    closedir(d);
    return *why ? refuse(err, dir, why) : WEIR_OK;
}

weir_status weir_outdir_may(const char *dir, const weir_outdir_kind *kind, bool ours, weir_err *err)
{
    struct stat st;
    if (!*dir)
        return weir_fail(err, WEIR_E_ARG, "the name of the directory for %s is empty", kind->what);
    if (lstat(dir, &st) != 0)
        return errno == ENOENT ? WEIR_OK : fail_at(err, dir, "cannot look at it");
    if (!S_ISDIR(st.st_mode))
        return refuse(err, dir, "is no directory");
    return check_entries(dir, kind, ours, err);
}

/* --- making one */

static void free_outdir(weir_outdir *d)
{
    if (d->fd >= 0)
        close(d->fd);
    weir_free(d->dir);
    weir_free(d->part);
    weir_free(d);
}

/* Removes what such a directory, or what a run that was killed left of one, may hold. */
static void empty(int fd, const weir_outdir_kind *kind)
{
    for (const char *const *f = kind->file; *f; f++) {
        char part[NAME_MAX + 1];
        snprintf(part, sizeof part, "%s.part", *f); /* as weir_outfile_open has it */
        unlinkat(fd, part, 0);
        unlinkat(fd, *f, 0);
    }
}

/* Removes DIR.part, whose lock is ours. */
static void remove_part(weir_outdir *d)
{
    empty(d->fd, d->kind);
    rmdir(d->part);
}

/* Two runs that write one directory would write one .part: the first one locks it. Opens `path` with its lock, for
 * which it waits if it may; -1: it is not there, cannot be opened, or (errno is EWOULDBLOCK) another run has it. */
static int lock_dir(const char *path, bool wait)
{
    struct stat its, named;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    const bool busy =
        flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) != 0 && errno == EWOULDBLOCK; /* some file systems have no locks */
    if (!busy && fstat(fd, &its) == 0 && lstat(path, &named) == 0 && its.st_dev == named.st_dev &&
        its.st_ino == named.st_ino)
        return fd;
    close(fd);
    errno = busy ? EWOULDBLOCK : ENOENT; /* renamed or removed behind our back */
    return -1;
}

/* Removes such a directory as far as it holds nothing else. */
static bool remove_dir(const char *dir, const weir_outdir_kind *kind, bool wait)
{
    const int fd = lock_dir(dir, wait);
    if (fd < 0)
        return errno == ENOENT;
    empty(fd, kind);
    const bool gone = rmdir(dir) == 0;
    close(fd);
    return gone;
}

/* Makes the empty directory DIR.part, or takes over what a run that was killed left of one. */
static weir_status make_part(weir_outdir *d, weir_err *err)
{
    if (!remove_dir(d->part, d->kind, false) || mkdir(d->part, 0777) != 0)
        return errno == EWOULDBLOCK || errno == EEXIST ? in_use(err, d->part)
                                                       : fail_at(err, d->part, "cannot create it");
    d->fd = lock_dir(d->part, false);
    return d->fd < 0 ? in_use(err, d->part) : WEIR_OK;
}

weir_status weir_outdir_open(weir_outdir **out, const char *dir, const weir_outdir_kind *kind, weir_err *err)
{
    weir_buf part = {0};
    size_t n = strlen(dir);
    *out = NULL;
    while (n > 1 && dir[n - 1] == '/')
        n--;
    weir_outdir *d = weir_calloc(1, sizeof *d);
    if (d)
        *d = (weir_outdir){.kind = kind, .dir = weir_strndup(dir, n), .fd = -1};
    if (d && d->dir && weir_buf_printf(&part, "%s.part", d->dir) == WEIR_OK)
        d->part = weir_strndup(part.p, part.n);
    weir_buf_free(&part);
    weir_status s = d && d->dir && d->part ? WEIR_OK : weir_nomem(err, "a path");
    if (s == WEIR_OK)
        s = make_part(d, err);
    if (s == WEIR_OK)
        *out = d;
    else if (d)
        free_outdir(d);
    return s;
}

weir_status weir_outdir_put(weir_outdir *d, const char *name, void (*write)(void *ctx, FILE *out), void *ctx,
                            weir_err *err)
{
    weir_outfile *f;
    char *path = weir_path_join(d->part, name);
    if (!path)
        return weir_nomem(err, "a path");
    weir_status s = weir_outfile_open(&f, path, true, err);
    weir_free(path);
    if (s != WEIR_OK)
        return s;
    write(ctx, weir_outfile_stream(f));
    return weir_outfile_commit(f, err);
}

const char *weir_outdir_part(const weir_outdir *d)
{
    return d->part;
}

/* Both directories change names at once where the system can do that. */
static weir_status publish(weir_outdir *d, weir_err *err)
{
    if (rename(d->part, d->dir) == 0)
        return WEIR_OK; /* there was none, or an empty one */
    if (renameat2(AT_FDCWD, d->part, AT_FDCWD, d->dir, RENAME_EXCHANGE) == 0) {
        remove_dir(d->part, d->kind, true); /* who made it may hold its lock until it has ended */
        return WEIR_OK;
    }
    if (!remove_dir(d->dir, d->kind, true) || rename(d->part, d->dir) != 0)
        return fail_at(err, d->dir, "cannot rename the finished directory");
    return WEIR_OK;
}

weir_status weir_outdir_commit(weir_outdir *d, weir_err *err)
{
    const weir_status s = publish(d, err);
    if (s != WEIR_OK)
        remove_part(d);
    free_outdir(d);
    return s;
}

void weir_outdir_abort(weir_outdir *d)
{
    if (!d)
        return;
    remove_part(d);
    free_outdir(d);
}
