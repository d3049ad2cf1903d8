/* weir/base.h: status codes, errors, logging, slices, atomic output files.
 *
 *     weir_err err = {0};
 *     weir_model *m;
 *     if (weir_model_open(&m, "gpt2", NULL, &err)) {
 *         char line[1024];
 *         fprintf(stderr, "%s\n", weir_err_line(&err, line, sizeof line));
 *     }
 *
 * Rules of every call in these headers. Out-parameters come first, the object second, `weir_err *` last (it may be
 * NULL). A pointer that is returned is borrowed; what is stored through a pointer to a pointer is owned by the caller
 * and freed with the matching `_free`, which accepts NULL. Nothing here exits, aborts on input or prints. Objects may
 * be used from any thread but from one at a time, unless their header says that they are shared freely.
 */
#ifndef WEIR_BASE_H
#define WEIR_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION "0.1.0"

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_CHECKED __attribute__((warn_unused_result))
#define WEIR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define WEIR_API
#define WEIR_CHECKED
#define WEIR_PRINTF(fmt, args)
#endif

/* 0 is success, negative values are errors. WEIR_STOP is no error: a hook asked the run to end here. */
typedef enum weir_status {
    WEIR_OK = 0,
    WEIR_STOP = 1,
    WEIR_E_IO = -1,          /* the system said no: open, read, write, map (msg carries strerror) */
    WEIR_E_FORMAT = -2,      /* a file breaks its format */
    WEIR_E_UNSUPPORTED = -3, /* a valid thing that weir does not do, named in msg */
    WEIR_E_SHAPE = -4,       /* sizes do not fit together */
    WEIR_E_NOMEM = -5,
    WEIR_E_ARG = -6,  /* the caller's or user's argument is wrong */
    WEIR_E_HOOK = -7, /* a hook failed, is unknown, or never fired */
    WEIR_E_HDF5 = -8  /* the HDF5 library failed */
} weir_status;

/* One error: what (msg, one line, no full stop), where (file, byte offset or -1, tensor), all optional but msg.
 * Zero it before use. The first error wins: a call that finds code != 0 leaves the struct alone. */
typedef struct weir_err {
    weir_status code;
    int64_t offset;
    char msg[512];
    char file[512];
    char tensor[160];
} weir_err;

/* Fills *err (if non-NULL and still empty) and returns code, so that `return weir_fail(err, ...)` works. offset = -1.
 * What is not printable becomes '?', what does not fit ends in "...": an error is one printable line. */
WEIR_API weir_status weir_fail(weir_err *err, weir_status code, const char *fmt, ...) WEIR_PRINTF(3, 4);

/* After a failure: adds the parts of its place that are not known yet. file and tensor may be NULL, offset -1. Nothing
 * is added to an error that happened in another file. Returns err's code (WEIR_E_FORMAT when err is NULL). */
WEIR_API weir_status weir_err_where(weir_err *err, const char *file, const char *tensor, int64_t offset);

/* Writes "FILE: tensor NAME at byte N: MSG" (parts that are known) into buf[n] and returns buf. */
WEIR_API const char *weir_err_line(const weir_err *err, char *buf, size_t n);

/* Forwards a failure: WEIR_TRY(call(...)); */
#define WEIR_TRY(expr)                         \
    do {                                       \
        weir_status weir_try_status_ = (expr); \
        if (weir_try_status_ != WEIR_OK)       \
            return weir_try_status_;           \
    } while (0)

/* Bytes that need not end in NUL. Borrowed. */
typedef struct weir_str {
    const char *p;
    size_t n;
} weir_str;

/* Does a code point act on a terminal, break a line, turn text around, or show nothing? Names and tokens may hold such;
 * what people read shows them escaped. The joiners U+200C and U+200D are printable: scripts and emoji need them. */
WEIR_API bool weir_unprintable(uint32_t cp);
/* Makes each byte of such characters, and each byte that belongs to no character of UTF-8, a '?'. */
WEIR_API void weir_make_printable(char *text);

typedef enum weir_log_level { WEIR_LOG_INFO = 0, WEIR_LOG_WARN = 1 } weir_log_level;

/* Where the library's remarks go (what was assumed, what is odd about a file). line may be NULL: silence. Called on the
 * thread that made the call; msg is one line without newline, valid during the call. */
typedef struct weir_log {
    void (*line)(void *user, weir_log_level level, const char *msg);
    void *user;
} weir_log;

WEIR_API const char *weir_version(void);

/* SHA-256 (FIPS 180-4) of bytes, or of a file's whole content, as 64 hex digits and NUL. */
WEIR_API void weir_sha256_bytes(const void *p, size_t n, char hex[65]);
WEIR_API WEIR_CHECKED weir_status weir_sha256_file(const char *path, char hex[65], weir_err *err);

/* An output file that appears whole or not at all: written as PATH.part beside PATH, renamed by commit. */
typedef struct weir_outfile weir_outfile;

/* Fails with WEIR_E_ARG when PATH exists and replace is false, or when it or PATH.part is a device or a pipe; with
 * WEIR_E_IO when another run is writing it. */
WEIR_API WEIR_CHECKED weir_status weir_outfile_open(weir_outfile **out, const char *path, bool replace, weir_err *err);
WEIR_API FILE *weir_outfile_stream(weir_outfile *f);
/* Flushes, checks the stream, closes and renames. On failure the .part is removed. Frees f in every case. */
WEIR_API WEIR_CHECKED weir_status weir_outfile_commit(weir_outfile *f, weir_err *err);
/* Removes the .part and frees f. NULL is fine. */
WEIR_API void weir_outfile_abort(weir_outfile *f);

#ifdef __cplusplus
}
#endif
#endif
