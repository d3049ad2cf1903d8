/* support/oom.h: makes one allocation of the library fail. The linker sends malloc and its kin through the __wrap_ functions
 * (see the Makefile's rule for tests/oom): the allocation numbered fail_at, counted in `allocations`, returns NULL. Included
 * once by each program of tests/oom. */
#ifndef WEIR_TEST_OOM_H
#define WEIR_TEST_OOM_H

#include <stdbool.h>
#include <stddef.h>

static long allocations, fail_at; /* fail_at 0: never */

static bool allowed(void)
{
    return ++allocations != fail_at;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
int __real_posix_memalign(void **p, size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
int __wrap_posix_memalign(void **p, size_t align, size_t n);

void *__wrap_malloc(size_t n)
{
    return allowed() ? __real_malloc(n) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
    return allowed() ? __real_calloc(n, size) : NULL;
}

void *__wrap_realloc(void *p, size_t n)
{
    return allowed() ? __real_realloc(p, n) : NULL;
}

int __wrap_posix_memalign(void **p, size_t align, size_t n)
{
    return allowed() ? __real_posix_memalign(p, align, n) : 12;
}

#endif
