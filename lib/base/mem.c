#include "mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM ((size_t)4 << 20)

/* count * size, at least 1; false beyond what any object may have. */
static bool total(size_t count, size_t size, size_t *bytes)
{
    if (__builtin_mul_overflow(count, size, bytes) || *bytes > PTRDIFF_MAX)
        return false;
    *bytes += !*bytes;
    return true;
}

void *weir_calloc(size_t count, size_t size)
{
    size_t bytes;
    return total(count, size, &bytes) ? calloc(1, bytes) : NULL;
}

void *weir_realloc(void *p, size_t count, size_t size)
{
    size_t bytes;
    return total(count, size, &bytes) ? realloc(p, bytes) : NULL;
}

void *weir_grow(void *p, size_t n, size_t size)
{
    bool full = n == 0 || (n >= 16 && (n & (n - 1)) == 0);
    return full ? weir_realloc(p, n ? n * 2 : 16, size) : p;
}

void weir_free(void *p)
{
    free(p);
}

void *weir_alloc_aligned(size_t bytes)
{
    size_t align = bytes >= HUGE_FROM ? HUGE_PAGE : 64;
    void *p;
    if (!total(bytes, 1, &bytes) || posix_memalign(&p, align, bytes))
        return NULL;
    if (bytes >= HUGE_FROM)
        madvise(p, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE); /* advice: without it the block is only slower */
    return p;
}

void weir_free_aligned(void *p)
{
    free(p);
}

char *weir_strndup(const char *p, size_t n)
{
    if (n == SIZE_MAX)
        return NULL;
    char *s = weir_calloc(n + 1, 1);
    if (s && n)
        memcpy(s, p, n);
    return s;
}

weir_status weir_nomem(weir_err *err, const char *what)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for %s", what);
}

bool weir_mul64(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

bool weir_add64(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, out);
}
