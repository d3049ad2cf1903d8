/* kernels/norm.c: layer norm and RMS norm, in one pass or stage by stage, over rows shared between threads. */
#include <math.h>

#include "base/parallel.h"
#include "kernels/kern.h"

#define GRAIN 16384 /* elements that are worth handing out */

typedef struct norm_ctx {
    const weir_kern *kern;
    const weir_norm *n;
    float *dst; /* of the sum, or NULL */
    const float *a, *b;
    int64_t c;
} norm_ctx;

static void for_rows(int threads, int64_t rows, int64_t c, void (*body)(void *, int64_t, int), norm_ctx *ctx)
{
    const int64_t grain = weir_max64(1, GRAIN / weir_max64(1, c));
    weir_parallel_for(rows <= grain ? 1 : threads, rows, grain, body, ctx);
}

static float *row(float *p, int64_t r, int64_t c)
{
    return p ? p + r * c : NULL;
}

static void norm_row(void *ctx, int64_t r, int thread)
{
    (void)thread;
    const norm_ctx *s = ctx;
    const weir_norm *n = s->n;
    const float *x = n->x + r * n->c;
    const weir_norm_stat stat = s->kern->norm_stat(x, n->c, n->rms, n->eps);
    if (n->mean)
        n->mean[r] = isnan(stat.mean) ? NAN : stat.mean;
    if (n->scale)
        n->scale[r] = isnan(stat.scale) ? NAN : stat.scale;
    if (n->norm || n->out)
        s->kern->norm_apply(row(n->norm, r, n->c), row(n->out, r, n->c), x, stat, n);
}

void weir_norm_run(const weir_kern *k, int threads, const weir_norm *n)
{
    for_rows(threads, n->rows, n->c, norm_row, &(norm_ctx){.kern = k, .n = n});
}

static void norm_row_from_scale(void *ctx, int64_t r, int thread)
{
    (void)thread;
    const norm_ctx *s = ctx;
    const weir_norm *n = s->n;
    const float *x = n->x + r * n->c;
    weir_norm_stat stat = {.mean = 0, .scale = n->scale[r]};
    if (!n->rms)
        stat.mean = s->kern->norm_stat(x, n->c, false, n->eps).mean;
    s->kern->norm_apply(row(n->norm, r, n->c), row(n->out, r, n->c), x, stat, n);
}

void weir_norm_from_scale(const weir_kern *k, int threads, const weir_norm *n)
{
    for_rows(threads, n->rows, n->c, norm_row_from_scale, &(norm_ctx){.kern = k, .n = n});
}

static void norm_row_from_norm(void *ctx, int64_t r, int thread)
{
    (void)thread;
    const norm_ctx *s = ctx;
    s->kern->norm_gain(s->n->out + r * s->n->c, s->n->norm + r * s->n->c, s->n);
}

void weir_norm_from_norm(const weir_kern *k, int threads, const weir_norm *n)
{
    for_rows(threads, n->rows, n->c, norm_row_from_norm, &(norm_ctx){.kern = k, .n = n});
}

static void add_norm_row(void *ctx, int64_t r, int thread)
{
    const norm_ctx *s = ctx;
    s->kern->add(s->dst + r * s->c, s->a + r * s->c, s->b + r * s->c, s->c);
    if (s->n)
        norm_row(ctx, r, thread);
}

void weir_add_norm(const weir_kern *k, int threads, float *dst, const float *a, const float *b, int64_t rows, int64_t c,
                   const weir_norm *n)
{
    for_rows(threads, rows, c, add_norm_row, &(norm_ctx){.kern = k, .n = n, .dst = dst, .a = a, .b = b, .c = c});
}
