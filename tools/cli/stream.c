#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { STEP = 8 << 20 }; /* bytes that are handed back at a time */

bool weir_stream_open(weir_stream *f, const char *path, int flags, int64_t at)
{
    *f = (weir_stream){.fd = open(path, flags | O_CLOEXEC, 0666), .at = at, .sent = at, .gone = at};
    if (f->fd >= 0)
        posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return f->fd >= 0;
}

bool weir_stream_read(weir_stream *f, void *p, size_t n)
{
    for (char *to = p; n > 0;) {
        ssize_t got = pread(f->fd, to, n, f->at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got < 0 ? errno : EIO;
            return false;
        }
        to += got;
        f->at += got;
        n -= (size_t)got;
    }
    if (f->at - f->gone >= STEP) {
        posix_fadvise(f->fd, f->gone, f->at - f->gone, POSIX_FADV_DONTNEED);
        f->gone = f->at;
    }
    return true;
}

/* A step is sent to the disk; the one before has arrived by now, or is waited for, and leaves memory. */
static void hand_back(weir_stream *f)
{
    const unsigned arrive = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (f->at - f->sent < STEP)
        return;
    sync_file_range(f->fd, f->sent, f->at - f->sent, SYNC_FILE_RANGE_WRITE);
    if (f->sent > f->gone) {
        sync_file_range(f->fd, f->gone, f->sent - f->gone, arrive);
        posix_fadvise(f->fd, f->gone, f->sent - f->gone, POSIX_FADV_DONTNEED);
    }
    f->gone = f->sent;
    f->sent = f->at;
}

bool weir_stream_write(weir_stream *f, const void *p, size_t n)
{
    for (const char *from = p; n > 0;) {
        ssize_t put = pwrite(f->fd, from, n, f->at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        from += put;
        f->at += put;
        n -= (size_t)put;
    }
    hand_back(f);
    return true;
}

bool weir_stream_sync(weir_stream *f)
{
    if (fdatasync(f->fd) != 0)
        return false;
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    return true;
}

void weir_stream_close(weir_stream *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}
