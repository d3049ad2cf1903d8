/* cli/stream.h: a large file that is read or written once from front to back, and takes no memory behind it: pages are
 * handed back to the system on the way. */
#ifndef WEIR_CLI_STREAM_H
#define WEIR_CLI_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weir_stream {
    int fd;             /* -1: closed */
    int64_t at;         /* bytes read or written: */
    int64_t sent, gone; /* those before `sent` are on their way to the disk, those before `gone` have left memory */
} weir_stream;

/* False, with errno, when the file cannot be opened. flags as for open(2). Goes on at byte `at`. */
bool weir_stream_open(weir_stream *f, const char *path, int flags, int64_t at);
/* All n bytes, or false with errno (EIO: the file ends before). */
bool weir_stream_read(weir_stream *f, void *p, size_t n);
bool weir_stream_write(weir_stream *f, const void *p, size_t n);
/* Waits until all is on the disk. */
bool weir_stream_sync(weir_stream *f);
void weir_stream_close(weir_stream *f);

#endif
