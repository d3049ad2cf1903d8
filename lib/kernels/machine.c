/* kernels/machine.c: what this machine's arithmetic and memory give at most, measured. */
#include "kernels/machine.h"

#include <weir/roofline.h>

#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "kernels/kern.h"

enum { ROUNDS = 5, MOST_THREADS = 64, SLICE = 96 << 20 }; /* SLICE: bytes of a thread, more than its share of a cache */

/* Plain C, for processors without a table of their own. */
static double multiply_plain(float *sink, int64_t rounds)
{
    float c[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < 8; i++)
            c[i] = 0.999f * c[i] + 1e-9f;
    *sink = c[0] + c[1] + c[2] + c[3] + c[4] + c[5] + c[6] + c[7];
    return 2.0 * 8 * (double)rounds;
}

static float sum_plain(const float *p, int64_t n)
{
    float s[8] = {0};
    for (int64_t k = 0; k < n; k += 8)
        for (int i = 0; i < 8; i++)
            s[i] += p[k + i];
    return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

static weir_machine_loops loops_of_this_machine(void)
{
#if defined(__x86_64__)
    const char *name = weir_kern_name(weir_kern_best());
    if (!strcmp(name, "avx512"))
        return weir_machine_loops_avx512;
    if (!strcmp(name, "avx2"))
        return weir_machine_loops_avx2;
#endif
    return (weir_machine_loops){multiply_plain, sum_plain};
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct timed {
    weir_machine_loops loop;
    int64_t rounds;
    const float *memory;
    double flops[MOST_THREADS];
    volatile float sink[MOST_THREADS]; /* read by nobody: what is stored must be computed */
} timed;

static void multiply(void *ctx, int64_t i, int thread)
{
    timed *t = ctx;
    float sink;
    (void)thread;
    t->flops[i] = t->loop.multiply(&sink, t->rounds);
    t->sink[i] = sink;
}

static void sum(void *ctx, int64_t i, int thread)
{
    timed *t = ctx;
    const int64_t n = SLICE / (int64_t)sizeof(float);
    (void)thread;
    t->sink[i] = t->loop.sum(t->memory + i * n, n);
}

static int threads_of(int threads)
{
    const int n = weir_threads(threads);
    return n < MOST_THREADS ? n : MOST_THREADS;
}

double weir_machine_flops(int threads)
{
    timed t = {.loop = loops_of_this_machine(), .rounds = 1 << 20};
    const int n = threads_of(threads);
    double best = 0;
    for (int r = 0; r <= ROUNDS; r++) { /* the first wakes the threads up */
        const double start = now();
        weir_parallel_for(n, n, 1, multiply, &t);
        const double seconds = now() - start;
        double flops = 0;
        for (int i = 0; i < n; i++)
            flops += t.flops[i];
        if (r > 0 && seconds > 0 && flops / seconds > best)
            best = flops / seconds;
    }
    return best;
}

weir_status weir_machine_bandwidth(double *out, int threads, weir_err *err)
{
    timed t = {.loop = loops_of_this_machine()};
    const int n = threads_of(threads);
    const size_t bytes = (size_t)n * SLICE;
    float *memory = weir_alloc_aligned(bytes);
    *out = 0;
    if (!memory)
        return weir_nomem(err, "the memory whose speed is measured");
    memset(memory, 0, bytes);
    t.memory = memory;
    for (int r = 0; r < ROUNDS; r++) {
        const double start = now();
        weir_parallel_for(n, n, 1, sum, &t);
        const double seconds = now() - start;
        if (seconds > 0 && (double)bytes / seconds > *out)
            *out = (double)bytes / seconds;
    }
    weir_free_aligned(memory);
    return WEIR_OK;
}
