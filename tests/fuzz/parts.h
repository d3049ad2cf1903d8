/* fuzz/parts.h: an input that is several files, for readers of a directory. A line "--NAME--" begins the file NAME:
 *
 *     {"version":"1.0", ...}
 *     --tokenizer_config.json--
 *     {"add_bos_token":true}
 *
 * What stands before the first such line has the name that the target gives it. */
#ifndef FUZZ_PARTS_H
#define FUZZ_PARTS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct fuzz_part {
    const char *name; /* NULL: this input lacks it */
    const uint8_t *p;
    size_t n;
} fuzz_part;

/* Is p[n] at a line "--NAME--"? *length: of the line and its newline. */
static inline bool parts_begins(const uint8_t *p, size_t n, const char *name, size_t *length)
{
    size_t k = strlen(name);
    *length = k + 5;
    return n >= *length && !memcmp(p, "--", 2) && !memcmp(p + 2, name, k) && !memcmp(p + 2 + k, "--\n", 3);
}

/* part[i] is the file names[i] of the input; of two with one name the last. What comes first is names[0]. */
static inline void parts_split(const uint8_t *p, size_t n, const char *const *names, int n_names, fuzz_part *part)
{
    const uint8_t *end = p + n;
    fuzz_part *now = &part[0];
    size_t length;
    memset(part, 0, (size_t)n_names * sizeof *part);
    *now = (fuzz_part){names[0], p, 0};
    while (p < end) {
        for (int i = 0; i < n_names; i++)
            if (parts_begins(p, (size_t)(end - p), names[i], &length)) {
                p += length;
                now = &part[i];
                *now = (fuzz_part){names[i], p, 0};
                break;
            }
        const uint8_t *newline = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        p = newline ? newline + 1 : end;
        now->n = (size_t)(p - now->p);
    }
}

static char parts_dir[256];

static inline void parts_remove(void)
{
    rmdir(parts_dir);
}

/* Path of NAME in a directory of the process's own, which is removed, if it is empty, at exit. Valid until the next
 * call. */
static inline const char *parts_path(const char *name)
{
    static char path[512];
    const char *base = getenv("TMPDIR");
    if (!parts_dir[0]) {
        snprintf(parts_dir, sizeof parts_dir, "%s/weir-fuzz-XXXXXX", base && *base ? base : P_tmpdir);
        if (!mkdtemp(parts_dir) || atexit(parts_remove))
            abort();
    }
    snprintf(path, sizeof path, "%s/%s", parts_dir, name);
    return path;
}

static inline void parts_write(const char *name, const void *bytes, size_t n)
{
    int fd = open(parts_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || (n && write(fd, bytes, n) != (ssize_t)n) || close(fd))
        abort();
}

/* An open file without a name that holds these bytes; path[64]: what to open. */
static inline int parts_memory(const void *bytes, size_t n, char path[64])
{
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 || (n && write(fd, bytes, n) != (ssize_t)n))
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

/* The last number in a text, at most 9999. */
static inline size_t parts_last_number(const uint8_t *p, size_t n)
{
    size_t v = 0;
    while (n && (p[n - 1] < '0' || p[n - 1] > '9'))
        n--;
    size_t from = n;
    while (from && n - from < 4 && p[from - 1] >= '0' && p[from - 1] <= '9')
        from--;
    for (; from < n; from++)
        v = v * 10 + (size_t)(p[from] - '0');
    return v;
}

/* A safetensors file around a header: its length, and as many bytes of data as its last number says, so that a header
 * that was changed is still one. Free it. */
static inline uint8_t *parts_safetensors(const uint8_t *header, size_t n, size_t *whole)
{
    const uint64_t length = n;
    *whole = 8 + n + parts_last_number(header, n);
    uint8_t *file = calloc(*whole, 1);
    if (!file)
        abort();
    memcpy(file, &length, 8);
    memcpy(file + 8, header, n);
    return file;
}

#endif
