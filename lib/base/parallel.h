/* base/parallel.h: the only door to OpenMP (parallel.c is the only file compiled with it). */
#ifndef WEIR_PARALLEL_H
#define WEIR_PARALLEL_H

#include <weir/base.h>

/* body(ctx, i, thread) for i in [0, n), each exactly once, by at most `threads` threads (thread in [0, threads)),
 * `grain` indices handed out at a time in ascending order (grain 0: one equal slice a thread). Returns when all are
 * done. threads <= 1 or n <= 1 runs on the calling thread. Never nested: inside a body it runs serially. Results must
 * not depend on which thread ran what. */
void weir_parallel_for(int threads, int64_t n, int64_t grain, void (*body)(void *ctx, int64_t i, int thread),
                       void *ctx);
/* Processors that this process may use (cgroup or affinity respected), at least 1. */
int weir_processors(void);
/* How many threads a caller gets who wants `wanted` (0: all processors): fewer where the system refuses to create so
 * many (ulimit -u, ulimit -v, a container's pids.max), because OpenMP would end the program then. At least 1, at most
 * 4096. Threads are created to find out: to be asked once, when an object is made. */
int weir_threads(int wanted);

#endif
