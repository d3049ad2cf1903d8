/* support/oom.h: work whose n-th allocation fails, for every n (if there are many: see oom_next). The linker sends
 * malloc and its kin through the __wrap_ functions (see the Makefile's rule for tests/oom); what shared libraries
 * allocate for themselves does not come here.
 * Included once by each program of tests/oom.
 *
 *     static weir_status open_it(const void *path, weir_err *err) { ...; return st; }     // closes what it opened
 *     ...
 *     assert_in_range(oom_each(open_it, path), 10, 500);
 */
#ifndef WEIR_TEST_OOM_H
#define WEIR_TEST_OOM_H

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <weir/base.h>

static long allocations, fail_at; /* calls so far; which one fails (0: none) */
static long blocks;               /* allocated and not freed */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
int __real_posix_memalign(void **p, size_t align, size_t n);
void __real_free(void *p);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
int __wrap_posix_memalign(void **p, size_t align, size_t n);
void __wrap_free(void *p);
char *__wrap_strndup(const char *s, size_t n);

static bool allowed(void)
{
    return ++allocations != fail_at;
}

static void *counted(void *p)
{
    blocks += p != NULL;
    return p;
}

void *__wrap_malloc(size_t n)
{
    return allowed() ? counted(__real_malloc(n)) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
    return allowed() ? counted(__real_calloc(n, size)) : NULL;
}

void *__wrap_realloc(void *p, size_t n)
{
    if (!p)
        return __wrap_malloc(n);
    return allowed() ? __real_realloc(p, n) : NULL;
}

int __wrap_posix_memalign(void **p, size_t align, size_t n)
{
    int e = allowed() ? __real_posix_memalign(p, align, n) : 12;
    blocks += !e;
    return e;
}

char *__wrap_strndup(const char *s, size_t n)
{
    return allowed() ? counted(__real_strndup(s, n)) : NULL;
}

void __wrap_free(void *p)
{
    blocks -= p != NULL;
    __real_free(p);
}

/* Opens something, uses it, closes it. */
typedef weir_status oom_work(const void *ctx, weir_err *err);

typedef struct oom_result {
    long n;       /* the allocation that was to fail; 0: none */
    bool reached; /* there was an n-th one */
    weir_status status;
    weir_err err;
    long kept; /* blocks that are still allocated afterwards */
} oom_result;

static inline oom_result oom_once(oom_work *work, const void *ctx, long n)
{
    oom_result r = {.n = n};
    const long before = blocks;
    allocations = 0;
    fail_at = n;
    r.status = work(ctx, &r.err);
    fail_at = 0;
    r.reached = n && allocations >= n;
    r.kept = blocks - before;
    return r;
}

/* What is wrong with it, as one line in buf; NULL: nothing. */
static inline const char *oom_fault(const oom_result *r, char *buf, size_t n)
{
    const weir_status want = r->reached ? WEIR_E_NOMEM : WEIR_OK;
    if (r->status != want || r->err.code != want || (r->reached && !r->err.msg[0]))
        snprintf(buf, n, "allocation %ld fails: status %d, error %d: %s", r->n, r->status, r->err.code, r->err.msg);
    else if (r->kept)
        snprintf(buf, n, "allocation %ld fails: %ld blocks are lost", r->n, r->kept);
    else
        return NULL;
    return buf;
}

/* Allocations are counted, and those of several threads would come in any order: for programs that run a model. */
static inline void oom_one_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* The number behind n. Work that allocates thousands of times does so in loops, and takes the longer the more there
 * are: behind the first OOM_EACH, one allocation in OOM_STEP fails, unless WEIR_SLOW is set (make check-slow). The step
 * is prime, so that each place of a loop has its turn. */
enum { OOM_EACH = 128, OOM_STEP = 7 };

static inline long oom_next(long n)
{
    return n < OOM_EACH || getenv("WEIR_SLOW") ? n + 1 : n + OOM_STEP;
}

/* Allocations of the work fail, one in each run: each time an error that says so, and nothing is left. Returns how many
 * there are. */
static inline long oom_each(oom_work *work, const void *ctx)
{
    char fault[700];
    long faults = 0;
    oom_once(work, ctx, 0); /* what is made once in a process is made now */
    for (long n = 0;; n = oom_next(n)) {
        const oom_result r = oom_once(work, ctx, n);
        if (oom_fault(&r, fault, sizeof fault)) {
            print_error("%s\n", fault);
            faults++;
        }
        if (n == 0 && faults)
            fail_msg("the work fails by itself");
        if (n && !r.reached && faults)
            fail_msg("%ld failing allocations of %ld are not dealt with", faults, allocations);
        if (n && !r.reached)
            return allocations;
    }
}

#endif
