/* support/scratch.h: a directory of a test's own, made and removed with everything in it. */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_root[256];

/* cmocka group setup. */
static inline int scratch_make(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(scratch_root, sizeof scratch_root, "%s/weir-test-XXXXXX", base && *base ? base : P_tmpdir);
    return mkdtemp(scratch_root) ? 0 : -1;
}

static inline int scratch_remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

/* cmocka group teardown. */
static inline int scratch_remove(void **state)
{
    (void)state;
    return nftw(scratch_root, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Path of `name` in the directory; valid for the next 8 calls. */
static inline const char *scratch(const char *name)
{
    static char path[8][1024];
    static unsigned turn;
    char *p = path[turn++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", scratch_root, name);
    return p;
}

/* Writes a file (replacing it) and returns its path. */
static inline const char *scratch_write(const char *name, const void *bytes, size_t n)
{
    const char *path = scratch(name);
    FILE *f = fopen(path, "wb");
    if (!f || (n && fwrite(bytes, 1, n, f) != n) || fclose(f) != 0)
        abort();
    return path;
}

static inline const char *scratch_text(const char *name, const char *text)
{
    return scratch_write(name, text, strlen(text));
}

static inline const char *scratch_dir(const char *name)
{
    const char *path = scratch(name);
    mkdir(path, 0777);
    return path;
}

static inline bool scratch_exists(const char *name)
{
    struct stat st;
    return lstat(scratch(name), &st) == 0;
}

#endif
