/* bench/machine.h: what this machine can do, measured beside what is compared with it: fused multiply-adds a second and bytes
 * read a second. Vectors of 16 floats (GCC's extension) become the widest registers that the attribute allows. */
#ifndef WEIR_BENCH_MACHINE_H
#define WEIR_BENCH_MACHINE_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__x86_64__)
#define MACHINE_WIDE __attribute__((target("avx512f,fma")))
#define MACHINE_NARROW __attribute__((target("avx2,fma")))
#include <immintrin.h>
#endif

static inline double machine_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int machine_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts x[n] and returns its median. */
static inline double machine_median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, machine_compare);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

enum { MACHINE_FMA_ROUNDS = 1500000, MACHINE_CHAINS = 16, MACHINE_READ_BYTES = 96 << 20, MACHINE_HUGE_PAGE = 2 << 20 };

typedef struct machine_task {
    const float *p;
    size_t n;
    float sink;
    double work; /* multiply-adds times two, or bytes */
} machine_task;

/* 16 independent chains, each in a register of its own (named one by one: an array would live in memory), hide the latency of
 * the multiply-add; the empty asm keeps the compiler from folding them. */
#define MACHINE_EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define MACHINE_STEP(i)    \
    c##i = FMADD(a, c##i, b); \
    __asm__ volatile("" : "+v"(c##i));
#define MACHINE_SINK(i)  \
    STOREU(out, c##i); \
    t->sink += out[0];
#define MACHINE_FMA_BODY(type, width)                     \
    type a = SET1(0.999f), b = SET1(1e-9f);               \
    MACHINE_EACH(MACHINE_DECLARE)                         \
    for (long r = 0; r < MACHINE_FMA_ROUNDS; r++) {       \
        MACHINE_EACH(MACHINE_STEP)                        \
    }                                                     \
    float out[width];                                     \
    MACHINE_EACH(MACHINE_SINK)                            \
    t->work = 2.0 * (width) * MACHINE_CHAINS * (double)MACHINE_FMA_ROUNDS

#define MACHINE_READ_BODY(type, zero, add, loadu, storeu, width)                       \
    type s0 = zero(), s1 = s0, s2 = s0, s3 = s0;                                       \
    for (size_t k = 0; k + 4 * (width) <= t->n; k += 4 * (width)) {                    \
        s0 = add(s0, loadu(t->p + k));                                                 \
        s1 = add(s1, loadu(t->p + k + (width)));                                       \
        s2 = add(s2, loadu(t->p + k + 2 * (width)));                                   \
        s3 = add(s3, loadu(t->p + k + 3 * (width)));                                   \
    }                                                                                  \
    float out[width];                                                                  \
    storeu(out, add(add(s0, s1), add(s2, s3)));                                        \
    t->sink += out[0];                                                                 \
    t->work = (double)t->n * sizeof(float)

#if defined(__x86_64__)
#define SET1 _mm512_set1_ps
#define FMADD _mm512_fmadd_ps
#define STOREU _mm512_storeu_ps
#define MACHINE_DECLARE(i) __m512 c##i = SET1((float)i);
MACHINE_WIDE static void machine_fma_wide(machine_task *t)
{
    MACHINE_FMA_BODY(__m512, 16);
}
#undef SET1
#undef FMADD
#undef STOREU
#undef MACHINE_DECLARE
#define SET1 _mm256_set1_ps
#define FMADD _mm256_fmadd_ps
#define STOREU _mm256_storeu_ps
#define MACHINE_DECLARE(i) __m256 c##i = SET1((float)i);
MACHINE_NARROW static void machine_fma_narrow(machine_task *t)
{
    MACHINE_FMA_BODY(__m256, 8);
}
#undef SET1
#undef FMADD
#undef STOREU
#undef MACHINE_DECLARE
MACHINE_WIDE static void machine_read_wide(machine_task *t)
{
    MACHINE_READ_BODY(__m512, _mm512_setzero_ps, _mm512_add_ps, _mm512_loadu_ps, _mm512_storeu_ps, 16);
}
MACHINE_NARROW static void machine_read_narrow(machine_task *t)
{
    MACHINE_READ_BODY(__m256, _mm256_setzero_ps, _mm256_add_ps, _mm256_loadu_ps, _mm256_storeu_ps, 8);
}
static inline void *machine_fma(void *t)
{
    (__builtin_cpu_supports("avx512f") ? machine_fma_wide : machine_fma_narrow)(t);
    return NULL;
}
static inline void *machine_read(void *t)
{
    (__builtin_cpu_supports("avx512f") ? machine_read_wide : machine_read_narrow)(t);
    return NULL;
}
#else
#error "the benchmark measures x86-64 machines only"
#endif

enum { MACHINE_MAX_THREADS = 64 };

/* Runs f in `threads` threads at once; work a second of all of them. */
static inline double machine_rate(void *(*f)(void *), machine_task *task, int threads)
{
    pthread_t id[MACHINE_MAX_THREADS];
    double t = machine_now(), work = 0;
    for (int i = 1; i < threads; i++)
        pthread_create(&id[i], NULL, f, &task[i]);
    f(&task[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(id[i], NULL);
    t = machine_now() - t;
    for (int i = 0; i < threads; i++)
        work += task[i].work;
    return work / t;
}

/* Floating-point operations a second (a multiply-add is two). */
static inline double machine_peak_flops(int threads)
{
    machine_task task[MACHINE_MAX_THREADS];
    memset(task, 0, sizeof task);
    return machine_rate(machine_fma, task, threads > MACHINE_MAX_THREADS ? MACHINE_MAX_THREADS : threads);
}

/* Bytes a second out of memory; a buffer far larger than the caches is kept for the next call. */
static inline double machine_read_bandwidth(int threads)
{
    static float *buffer;
    if (threads > MACHINE_MAX_THREADS)
        threads = MACHINE_MAX_THREADS;
    size_t n = MACHINE_READ_BYTES / sizeof(float);
    if (!buffer) {
        buffer = aligned_alloc(MACHINE_HUGE_PAGE, n * (size_t)threads * sizeof(float));
        if (!buffer)
            abort();
        madvise(buffer, n * (size_t)threads * sizeof(float), MADV_HUGEPAGE); /* as the weights lie: no page table in the way */
        memset(buffer, 0, n * (size_t)threads * sizeof(float));
    }
    machine_task task[MACHINE_MAX_THREADS];
    memset(task, 0, sizeof task);
    for (int i = 0; i < threads; i++)
        task[i] = (machine_task){.p = buffer + n * (size_t)i, .n = n};
    return machine_rate(machine_read, task, threads);
}

#endif
