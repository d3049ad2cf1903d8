#include "parallel.h"

#ifdef _OPENMP
#include <omp.h>
#include <stdatomic.h>
#endif

static void run_serial(int64_t n, void (*body)(void *, int64_t, int), void *ctx)
{
    for (int64_t i = 0; i < n; i++)
        body(ctx, i, 0);
}

#ifdef _OPENMP

/* num_threads is always what the caller asked for, also when there are fewer pieces of work than threads: libgomp ends
 * the threads that a smaller team does not need and starts them anew for the next one, which costs more than letting
 * them idle. */

static void run_slices(int threads, int64_t n, void (*body)(void *, int64_t, int), void *ctx)
{
#pragma omp parallel num_threads(threads)
    {
        int t = omp_get_thread_num(), nt = omp_get_num_threads();
        int64_t share = n / nt, rest = n % nt;
        int64_t from = t * share + (t < rest ? t : rest), to = from + share + (t < rest);
        for (int64_t i = from; i < to; i++)
            body(ctx, i, t);
    }
}

/* An own counter and not schedule(dynamic), because that one need not hand out in ascending order. */
static void run_grains(int threads, int64_t n, int64_t grain, void (*body)(void *, int64_t, int), void *ctx)
{
    _Atomic int64_t next = 0;
#pragma omp parallel num_threads(threads)
    {
        int t = omp_get_thread_num();
        for (;;) {
            int64_t from = atomic_fetch_add_explicit(&next, grain, memory_order_relaxed);
            if (from >= n)
                break;
            int64_t to = n - from < grain ? n : from + grain;
            for (int64_t i = from; i < to; i++)
                body(ctx, i, t);
        }
    }
}

void weir_parallel_for(int threads, int64_t n, int64_t grain, void (*body)(void *ctx, int64_t i, int thread), void *ctx)
{
    if (threads <= 1 || n <= 1 || omp_in_parallel())
        run_serial(n, body, ctx);
    else if (grain <= 0)
        run_slices(threads, n, body, ctx);
    else
        run_grains(threads, n, grain < n ? grain : n, body, ctx);
}

#else

void weir_parallel_for(int threads, int64_t n, int64_t grain, void (*body)(void *ctx, int64_t i, int thread), void *ctx)
{
    (void)threads, (void)grain;
    run_serial(n, body, ctx);
}

#endif
