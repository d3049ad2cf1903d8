/* search/spool.c: see spool.h.
 *
 * Records are written in blocks: [0, stored) lie in the file, the rest in `tail`. A read of records that are still in
 * the tail copies them, so that what has been added can be read at once.
 */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum {
    TAIL = (64 << 10) / (int)sizeof(weir_spool_record), /* records written at once */
    NEAR = 256                                          /* records that a search reads rather than halve further */
};

struct weir_spool {
    int fd;
    char *dir;
    int64_t stored; /* records in the file */
    int n;          /* records in tail */
    weir_spool_record last;
    weir_spool_record tail[TAIL];
};

static weir_status failed(const char *dir, const char *what, int error, weir_err *err)
{
    bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    weir_fail(err, WEIR_E_IO, "cannot %s a temporary file: %s%s", what, strerror(error),
              full ? "; --spool DIR chooses a directory with more room" : "; --spool DIR chooses another directory");
    weir_err_where(err, dir, NULL, -1);
    return WEIR_E_IO;
}

/* --- making */

/* A file without a name; where the file system has no such thing, one that loses its name at once. */
static int open_unnamed(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    char *path = NULL;
    weir_buf b = {0};
    if (weir_buf_printf(&b, "%s/weir-spool-XXXXXX", dir) == WEIR_OK)
        path = b.p;
    fd = path ? mkostemp(path, O_CLOEXEC) : -1;
    int error = path ? errno : ENOMEM;
    if (fd >= 0)
        unlink(path);
    weir_buf_free(&b);
    errno = error;
    return fd;
}

weir_status weir_spool_new(weir_spool **out, const char *dir, weir_err *err)
{
    const char *tmp = getenv("TMPDIR");
    *out = NULL;
    if (!dir || !*dir)
        dir = tmp && *tmp ? tmp : "/tmp";
    weir_spool *s = weir_calloc(1, sizeof *s);
    char *name = weir_strndup(dir, strlen(dir));
    if (!s || !name) {
        weir_free(s);
        weir_free(name);
        return weir_nomem(err, "a temporary file");
    }
    s->dir = name;
    s->fd = open_unnamed(dir);
    if (s->fd < 0) {
        weir_status st = errno == ENOMEM ? weir_nomem(err, "a temporary file") : failed(dir, "make", errno, err);
        weir_spool_free(s);
        return st;
    }
    *out = s;
    return WEIR_OK;
}

void weir_spool_free(weir_spool *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    weir_free(s->dir);
    weir_free(s);
}

/* --- writing */

/* A block that was written in part is written again, at its own place: after an error the spool is as before. */
static weir_status store_tail(weir_spool *s, weir_err *err)
{
    const char *p = (const char *)s->tail;
    size_t left = (size_t)s->n * sizeof *s->tail;
    off_t at = (off_t)(s->stored * (int64_t)sizeof *s->tail);
    while (left > 0) {
        ssize_t put = pwrite(s->fd, p, left, at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return failed(s->dir, "write", put < 0 ? errno : ENOSPC, err);
        p += put;
        left -= (size_t)put;
        at += put;
    }
    s->stored += s->n;
    s->n = 0;
    return WEIR_OK;
}

static bool before(const weir_spool_record *r, uint32_t doc, uint32_t pos)
{
    return r->doc < doc || (r->doc == doc && r->pos < pos);
}

weir_status weir_spool_add(weir_spool *s, uint32_t doc, uint32_t pos, uint32_t payload, weir_err *err)
{
    if (weir_spool_count(s) > 0 && !before(&s->last, doc, pos))
        return weir_fail(err, WEIR_E_ARG, "tokens are not in order: document %u, position %u after %u, %u", doc, pos,
                         s->last.doc, s->last.pos);
    if (s->n == TAIL)
        WEIR_TRY(store_tail(s, err));
    s->last = s->tail[s->n++] = (weir_spool_record){doc, pos, payload};
    return WEIR_OK;
}

int64_t weir_spool_count(const weir_spool *s)
{
    return s->stored + s->n;
}

/* --- reading */

static weir_status read_stored(weir_spool *s, int64_t at, int64_t n, weir_spool_record *out, weir_err *err)
{
    char *p = (char *)out;
    size_t left = (size_t)n * sizeof *out;
    off_t from = (off_t)(at * (int64_t)sizeof *out);
    while (left > 0) {
        ssize_t got = pread(s->fd, p, left, from);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return failed(s->dir, "read", got < 0 ? errno : EIO, err);
        p += got;
        left -= (size_t)got;
        from += got;
    }
    return WEIR_OK;
}

weir_status weir_spool_read(weir_spool *s, int64_t at, int64_t n, weir_spool_record *out, weir_err *err)
{
    int64_t count = weir_spool_count(s);
    if (at < 0 || n < 0 || at > count || n > count - at)
        return weir_fail(err, WEIR_E_ARG, "there are no %lld records at %lld of %lld", (long long)n, (long long)at,
                         (long long)count);
    int64_t in_file = at >= s->stored ? 0 : s->stored - at < n ? s->stored - at : n;
    if (in_file)
        WEIR_TRY(read_stored(s, at, in_file, out, err));
    if (n > in_file)
        memcpy(out + in_file, s->tail + (at + in_file - s->stored), (size_t)(n - in_file) * sizeof *out);
    return WEIR_OK;
}

weir_status weir_spool_find(weir_spool *s, uint32_t doc, uint32_t pos, int64_t *at, weir_err *err)
{
    weir_spool_record r[NEAR];
    int64_t low = 0, high = weir_spool_count(s); /* what is sought lies in [low, high] */
    while (high - low > NEAR) {
        int64_t middle = low + (high - low) / 2;
        WEIR_TRY(weir_spool_read(s, middle, 1, r, err));
        if (before(r, doc, pos))
            low = middle + 1;
        else
            high = middle;
    }
    WEIR_TRY(weir_spool_read(s, low, high - low, r, err));
    int64_t i = 0;
    while (i < high - low && before(&r[i], doc, pos))
        i++;
    *at = low + i;
    return WEIR_OK;
}
