/* kernels/backward_rows.c: derivatives of what works row by row: norms, activations, RoPE, soft caps. */
#include <math.h>

#include "base/parallel.h"
#include "kernels/kern.h"

#define PIECE 16384 /* elements of a task */

/* --- norms */

typedef struct norm_back_ctx {
    const weir_kern *kern;
    const weir_norm_back *n;
} norm_back_ctx;

static void for_rows(const weir_kern *k, int threads, const weir_norm_back *n, void (*body)(void *, int64_t, int))
{
    const int64_t grain = weir_max64(1, PIECE / weir_max64(1, n->c));
    weir_parallel_for(n->rows <= grain ? 1 : threads, n->rows, grain, body, &(norm_back_ctx){.kern = k, .n = n});
}

/* One row: its statistics, and what the pass divided by. */
typedef struct norm_row {
    const float *x;
    int64_t at;
    weir_norm_stat stat;
    float held;
} norm_row;

static norm_row row_of(const norm_back_ctx *c, int64_t r)
{
    const weir_norm_back *n = c->n;
    norm_row row = {.x = n->x + r * n->c, .at = r * n->c};
    row.stat = c->kern->norm_stat(row.x, n->c, n->rms, n->eps);
    row.held = n->scale ? n->scale[r] : row.stat.scale;
    return row;
}

static void backward_row(void *ctx, int64_t r, int thread)
{
    (void)thread;
    const norm_back_ctx *c = ctx;
    const weir_norm_back *n = c->n;
    const norm_row row = row_of(c, r);
    const float *dy = n->dy + row.at;
    const float d_scale = c->kern->norm_back_scale(dy, row.x, row.stat, row.held, n);
    c->kern->norm_back_x(n->dx + row.at, dy, row.x, row.stat, row.held, d_scale, n);
}

void weir_norm_backward(const weir_kern *k, int threads, const weir_norm_back *n)
{
    for_rows(k, threads, n, backward_row);
}

static void gain_row(void *ctx, int64_t r, int thread)
{
    (void)thread;
    const norm_back_ctx *c = ctx;
    c->kern->norm_back_gain(c->n->d_norm + r * c->n->c, c->n->dy + r * c->n->c, c->n);
}

void weir_norm_back_gain(const weir_kern *k, int threads, const weir_norm_back *n)
{
    for_rows(k, threads, n, gain_row);
}

static void scale_row(void *ctx, int64_t r, int thread)
{
    (void)thread;
    const norm_back_ctx *c = ctx;
    const norm_row row = row_of(c, r);
    const float d = c->kern->norm_back_scale(c->n->d_norm + row.at, row.x, row.stat, row.held, c->n);
    c->n->d_scale[r] = isnan(d) ? NAN : d;
}

void weir_norm_back_scale(const weir_kern *k, int threads, const weir_norm_back *n)
{
    weir_norm_back plain = *n;
    plain.w = NULL; /* the gain is in d_norm */
    for_rows(k, threads, &plain, scale_row);
}

static void x_row(void *ctx, int64_t r, int thread)
{
    (void)thread;
    const norm_back_ctx *c = ctx;
    const weir_norm_back *n = c->n;
    const norm_row row = row_of(c, r);
    c->kern->norm_back_x(n->dx + row.at, n->d_norm + row.at, row.x, row.stat, row.held, n->d_scale[r], n);
}

void weir_norm_back_x(const weir_kern *k, int threads, const weir_norm_back *n)
{
    weir_norm_back plain = *n;
    plain.w = NULL;
    for_rows(k, threads, &plain, x_row);
}

/* --- elementwise */

typedef struct back_ctx {
    const weir_kern *kern;
    weir_act act;
    float *d, *d_up;
    const float *from, *y, *up;
    int64_t n;
    float cap;
} back_ctx;

static void for_pieces(int threads, void (*body)(void *, int64_t, int), back_ctx *c)
{
    weir_parallel_for(threads, weir_ceil_div(c->n, PIECE), 1, body, c);
}

static void act_piece(void *ctx, int64_t i, int thread)
{
    (void)thread;
    const back_ctx *c = ctx;
    const int64_t at = i * PIECE, n = weir_min64(PIECE, c->n - at);
    c->kern->act_back(c->act, c->d + at, c->up ? c->d_up + at : NULL, c->from + at, c->y + at,
                      c->up ? c->up + at : NULL, n);
}

void weir_act_backward(const weir_kern *k, int threads, weir_act act, float *d_pre, float *d_up, const float *d_post,
                       const float *pre, const float *up, int64_t n)
{
    for_pieces(
        threads, act_piece,
        &(back_ctx){.kern = k, .act = act, .d = d_pre, .d_up = d_up, .from = d_post, .y = pre, .up = up, .n = n});
}

static void softcap_piece(void *ctx, int64_t i, int thread)
{
    (void)thread;
    const back_ctx *c = ctx;
    const int64_t at = i * PIECE;
    c->kern->score_back(c->d + at, c->y + at, weir_min64(PIECE, c->n - at), 1.0f, c->cap);
}

void weir_softcap_backward(const weir_kern *k, int threads, float *dy, const float *y, float cap, int64_t n)
{
    for_pieces(threads, softcap_piece, &(back_ctx){.kern = k, .d = dy, .y = y, .n = n, .cap = cap});
}
