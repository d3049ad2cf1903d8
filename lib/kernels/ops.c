/* kernels/ops.c: elementwise operations and log-probabilities, shared between threads in pieces. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "kernels/kern.h"

#define PIECE 16384 /* elements of a task */

typedef struct op_ctx {
    const weir_kern *kern;
    float *dst;
    const float *a, *b;
    int64_t n;
    float s;
    weir_act act;
} op_ctx;

static void for_pieces(int threads, void (*body)(void *, int64_t, int), op_ctx *c)
{
    weir_parallel_for(threads, weir_ceil_div(c->n, PIECE), 1, body, c);
}

static int64_t piece(const op_ctx *c, int64_t i, int64_t *at)
{
    *at = i * PIECE;
    return weir_min64(PIECE, c->n - *at);
}

static void add_piece(void *ctx, int64_t i, int thread)
{
    (void)thread;
    const op_ctx *c = ctx;
    int64_t at;
    const int64_t n = piece(c, i, &at);
    c->kern->add(c->dst + at, c->a + at, c->b + at, n);
}

void weir_op_add(const weir_kern *k, int threads, float *dst, const float *a, const float *b, int64_t n)
{
    for_pieces(threads, add_piece, &(op_ctx){.kern = k, .dst = dst, .a = a, .b = b, .n = n});
}

static void scale_piece(void *ctx, int64_t i, int thread)
{
    (void)thread;
    const op_ctx *c = ctx;
    int64_t at;
    const int64_t n = piece(c, i, &at);
    c->kern->scale(c->dst + at, c->s, n);
}

void weir_op_scale(const weir_kern *k, int threads, float *x, float s, int64_t n)
{
    for_pieces(threads, scale_piece, &(op_ctx){.kern = k, .dst = x, .s = s, .n = n});
}

static void softcap_piece(void *ctx, int64_t i, int thread)
{
    (void)thread;
    const op_ctx *c = ctx;
    int64_t at;
    const int64_t n = piece(c, i, &at);
    c->kern->softcap(c->dst + at, c->s, n);
}

void weir_op_softcap(const weir_kern *k, int threads, float *x, float cap, int64_t n)
{
    for_pieces(threads, softcap_piece, &(op_ctx){.kern = k, .dst = x, .s = cap, .n = n});
}

static void act_piece(void *ctx, int64_t i, int thread)
{
    (void)thread;
    const op_ctx *c = ctx;
    int64_t at;
    const int64_t n = piece(c, i, &at);
    c->kern->act(c->act, c->dst + at, c->a + at, c->b ? c->b + at : NULL, n);
}

void weir_op_act(const weir_kern *k, int threads, weir_act act, float *post, const float *pre, const float *up,
                 int64_t n)
{
    for_pieces(threads, act_piece, &(op_ctx){.kern = k, .dst = post, .a = pre, .b = up, .n = n, .act = act});
}

/* --- log-probabilities */

/* x = 2^e m, m in [sqrt(1/2), sqrt 2): ln x = e ln 2 + 2 atanh((m - 1) / (m + 1)), the series in double. */
double weir_natural_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52 & 2047) - 1023;
    bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 0x1.6a09e667f3bcdp0) {
        m = m * 0.5;
        e++;
    }
    const double t = (m - 1) / (m + 1), s = t * t;
    double p = 0;
    for (int i = 21; i >= 1; i -= 2) /* |t| < 0.172: the next term is below 1e-18 of the first */
        p = p * s + 1.0 / i;
    return e * 0x1.62e42fefa39efp-1 + 2 * t * p;
}

static weir_row_sum row_sum(const weir_kern *kern, const float *x, int64_t v)
{
    weir_row_sum s;
    kern->exp_sum(x, v, &s.max, &s.sum);
    s.log_sum = s.sum > 0 && s.sum <= 3.0e38f ? weir_natural_log((double)s.sum) : NAN;
    return s;
}

float weir_row_logprob(const weir_row_sum *s, float x)
{
    const float y = (float)((double)(x - s->max) - s->log_sum);
    return isnan(y) ? NAN : y;
}

typedef struct logprob_ctx {
    const weir_kern *kern;
    weir_row_sum *sum;
    float *out;
    const float *x;
    int64_t ld, v;
    const int32_t *target;
    int64_t k;
} logprob_ctx;

static void sum_row(void *ctx, int64_t r, int thread)
{
    (void)thread;
    const logprob_ctx *c = ctx;
    c->sum[r] = row_sum(c->kern, c->x + r * c->ld, c->v);
}

void weir_op_row_sums(const weir_kern *k, int threads, weir_row_sum *out, const float *x, int64_t ld, int64_t rows,
                      int64_t v)
{
    weir_parallel_for(threads, rows, 1, sum_row, &(logprob_ctx){.kern = k, .sum = out, .x = x, .ld = ld, .v = v});
}

static void logprob_row(void *ctx, int64_t r, int thread)
{
    (void)thread;
    const logprob_ctx *c = ctx;
    const float *x = c->x + r * c->ld;
    const int32_t *target = c->target + r * c->k;
    bool any = false;
    for (int64_t i = 0; i < c->k; i++)
        any |= target[i] >= 0 && target[i] < c->v;
    weir_row_sum s = {0};
    if (any)
        s = row_sum(c->kern, x, c->v);
    for (int64_t i = 0; i < c->k; i++)
        c->out[r * c->k + i] = target[i] >= 0 && target[i] < c->v ? weir_row_logprob(&s, x[target[i]]) : NAN;
}

void weir_op_logprobs(const weir_kern *k, int threads, float *out, const float *x, int64_t ld, int64_t rows, int64_t v,
                      const int32_t *target, int64_t targets)
{
    weir_parallel_for(
        threads, rows, 1, logprob_row,
        &(logprob_ctx){.kern = k, .out = out, .x = x, .ld = ld, .v = v, .target = target, .k = targets});
}

void weir_op_logprob(const weir_kern *k, int threads, float *out, const float *x, int64_t ld, int64_t rows, int64_t v,
                     const int32_t *target)
{
    weir_op_logprobs(k, threads, out, x, ld, rows, v, target, 1);
}
