#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "../base/mem.h"

#define IN_SIZE ((size_t)128 << 10)

struct weir_source {
    const char *name;
    int fd;
    bool own_fd, eof, gzip;
    bool inside; /* gzip: a member has begun and not ended */
    int64_t stored;
    bool (*stop)(void *user);
    void *stop_user;
    z_stream z;
    size_t at, end; /* in[at, end) is not used yet */
    uint8_t in[IN_SIZE];
};

static weir_status fail(const weir_source *s, weir_err *err, weir_status code, int64_t offset, const char *what)
{
    weir_fail(err, code, "%s", what);
    weir_err_where(err, s->name, NULL, offset);
    return code;
}

/* One read. A signal does not end the wait for bytes, unless `stop` says so; neither does a pipe that does not block.
 */
static ssize_t read_some(weir_source *s)
{
    for (;;) {
        ssize_t n = read(s->fd, s->in + s->end, IN_SIZE - s->end);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = {.fd = s->fd, .events = POLLIN};
            if (poll(&p, 1, -1) >= 0)
                continue;
        }
        if (n >= 0 || errno != EINTR || (s->stop && s->stop(s->stop_user)))
            return n;
    }
}

/* Moves what is left to the front and reads behind it, once. */
static weir_status refill(weir_source *s, weir_err *err)
{
    memmove(s->in, s->in + s->at, s->end - s->at);
    s->end -= s->at;
    s->at = 0;
    ssize_t n = read_some(s);
    if (n < 0)
        return fail(s, err, WEIR_E_IO, s->stored, strerror(errno));
    s->eof = n == 0;
    s->end += (size_t)n;
    s->stored += n;
    return WEIR_OK;
}

/* At least n unused bytes, unless the file ends. */
static weir_status need(weir_source *s, size_t n, weir_err *err)
{
    while (s->end - s->at < n && !s->eof)
        WEIR_TRY(refill(s, err));
    return WEIR_OK;
}

static bool at_gzip(const weir_source *s)
{
    return s->end - s->at >= 2 && s->in[s->at] == 0x1f && s->in[s->at + 1] == 0x8b;
}

static void *zlib_alloc(void *unused, unsigned count, unsigned size)
{
    (void)unused;
    return weir_calloc(count, size);
}

static void zlib_free(void *unused, void *p)
{
    (void)unused;
    weir_free(p);
}

static weir_status start(weir_source *s, weir_err *err)
{
    WEIR_TRY(need(s, 2, err));
    if (!at_gzip(s))
        return WEIR_OK;
    s->z = (z_stream){.zalloc = zlib_alloc, .zfree = zlib_free};
    if (inflateInit2(&s->z, 15 + 16) != Z_OK)
        return weir_nomem(err, "reading gzip");
    s->gzip = s->inside = true;
    return WEIR_OK;
}

static weir_status open_fd(weir_source *s, const char *path, weir_err *err)
{
    if (strcmp(path, "-") == 0) {
        s->name = "stdin";
        s->fd = STDIN_FILENO;
        return WEIR_OK;
    }
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (s->fd < 0) {
        weir_fail(err, WEIR_E_IO, "cannot open: %s", strerror(errno));
        weir_err_where(err, path, NULL, -1);
        return WEIR_E_IO;
    }
    s->own_fd = true;
    return WEIR_OK;
}

weir_status weir_source_open(weir_source **out, const char *path, bool (*stop)(void *user), void *user, weir_err *err)
{
    *out = NULL;
    weir_source *s = weir_calloc(1, sizeof *s);
    if (!s)
        return weir_nomem(err, "reading a file");
    s->name = path;
    s->stop = stop;
    s->stop_user = user;
    weir_status status = open_fd(s, path, err);
    if (status == WEIR_OK)
        status = start(s, err);
    if (status != WEIR_OK)
        weir_source_close(s);
    else
        *out = s;
    return status;
}

/* Between members: another one begins, or the file ends (zeros may pad it, as tapes and tar do). */
static weir_status next_member(weir_source *s, weir_err *err)
{
    WEIR_TRY(need(s, 2, err));
    if (at_gzip(s)) {
        s->inside = true;
        return inflateReset(&s->z) == Z_OK ? WEIR_OK : fail(s, err, WEIR_E_FORMAT, -1, "gzip cannot be read on");
    }
    while (s->end > s->at || !s->eof) {
        for (; s->at < s->end; s->at++)
            if (s->in[s->at])
                return fail(s, err, WEIR_E_FORMAT, s->stored - (int64_t)(s->end - s->at),
                            "something follows the gzip data");
        WEIR_TRY(refill(s, err));
    }
    return WEIR_OK;
}

/* One step of inflate into p. */
static weir_status inflate_some(weir_source *s, void *p, size_t n, size_t *got, weir_err *err)
{
    WEIR_TRY(need(s, 1, err));
    unsigned room = n > 1u << 30 ? 1u << 30 : (unsigned)n;
    s->z.next_in = s->in + s->at;
    s->z.avail_in = (unsigned)(s->end - s->at);
    s->z.next_out = p;
    s->z.avail_out = room;
    int r = inflate(&s->z, Z_NO_FLUSH);
    s->at = s->end - s->z.avail_in;
    *got = room - s->z.avail_out;
    int64_t offset = s->stored - (int64_t)(s->end - s->at);
    if (r == Z_STREAM_END) {
        s->inside = false;
        return WEIR_OK;
    }
    if (r == Z_MEM_ERROR)
        return weir_nomem(err, "reading gzip");
    if (r != Z_OK && r != Z_BUF_ERROR)
        return fail(s, err, WEIR_E_FORMAT, offset, "the gzip data are damaged");
    if (!*got && s->eof && s->at == s->end)
        return fail(s, err, WEIR_E_FORMAT, offset, "the gzip data are cut short");
    return WEIR_OK;
}

static weir_status read_gzip(weir_source *s, void *p, size_t n, size_t *got, weir_err *err)
{
    *got = 0;
    while (n && !*got) {
        if (!s->inside)
            WEIR_TRY(next_member(s, err));
        if (!s->inside)
            return WEIR_OK;
        WEIR_TRY(inflate_some(s, p, n, got, err));
    }
    return WEIR_OK;
}

weir_status weir_source_read(weir_source *s, void *p, size_t n, size_t *got, weir_err *err)
{
    if (s->gzip)
        return read_gzip(s, p, n, got, err);
    *got = 0;
    WEIR_TRY(need(s, 1, err));
    *got = s->end - s->at < n ? s->end - s->at : n;
    memcpy(p, s->in + s->at, *got);
    s->at += *got;
    return WEIR_OK;
}

int64_t weir_source_stored(const weir_source *s)
{
    return s->stored - (int64_t)(s->end - s->at);
}

const char *weir_source_name(const weir_source *s)
{
    return s->name;
}

void weir_source_close(weir_source *s)
{
    if (!s)
        return;
    if (s->gzip)
        inflateEnd(&s->z);
    if (s->own_fd)
        close(s->fd);
    weir_free(s);
}
