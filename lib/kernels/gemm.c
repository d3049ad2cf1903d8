/* kernels/gemm.c: y = x W + bias over packed panels, for one row or many.
 *
 * x is packed once into row panels [k][<= 8 rows] (a single row is used as it is); then every (range of column panels,
 * block of rows) is a task. Inside a task k goes in blocks that keep the rows' panels in the second-level cache;
 * between blocks the chains rest in y, which is exact. So no choice of blocks, tasks or threads can reach the bits.
 */
#include <string.h>

#include "base/parallel.h"
#include "kernels/kern.h"

#define K_BLOCK 768       /* a block of k of one panel: 147 KiB */
#define ROW_PANELS 12     /* row panels in a task: 12 x 8 x 768 floats are 295 KiB */
#define PACK_SERIAL 32768 /* fewer elements than this are packed by the calling thread */

typedef struct gemm_plan {
    const weir_kern *kern;
    const weir_gemm *g;
    int64_t row_panels, row_blocks; /* of x */
    int64_t panels, chunks;         /* of all weights together */
    int64_t first[5];               /* first panel of each weight */
    float *a;                       /* packed x */
    const float *rows;              /* what the tiles read: a, or x itself */
    float *widen;                   /* scratch of each thread */
} gemm_plan;

static size_t round64(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

size_t weir_gemm_scratch(int64_t m_max, int64_t k_max, int threads)
{
    const size_t each = round64(weir_dequant_scratch());
    return (round64((size_t)m_max * (size_t)k_max) + each * (size_t)(threads > 1 ? threads : 1)) * sizeof(float);
}

/* First row of row panel p: as even as can be. */
static int64_t row_of(const gemm_plan *s, int64_t p)
{
    return s->g->m * p / s->row_panels;
}

static void pack_x(void *ctx, int64_t p, int thread)
{
    (void)thread;
    const gemm_plan *s = ctx;
    const weir_gemm *g = s->g;
    const int64_t r0 = row_of(s, p), n = row_of(s, p + 1) - r0;
    const weir_f32u *row[WEIR_TILE_ROWS];
    for (int64_t i = 0; i < n; i++)
        row[i] = g->x + (r0 + i) * g->ldx;
    s->kern->transpose(s->a + r0 * g->kn, n, row, (int)n, g->kn);
}

/* One tile to its place in y. A last panel that is wider than the weights goes through a buffer. */
static void tile_to(const gemm_plan *s, weir_tile *t, weir_dtype type, float *y, int64_t ldy, int64_t cols,
                    const float *bias)
{
    if (cols >= WEIR_PANEL) {
        t->c = y;
        t->ldc = ldy;
        t->bias = bias;
        s->kern->tile[type](t);
        return;
    }
    float c[WEIR_TILE_ROWS * WEIR_PANEL] = {0}, b[WEIR_PANEL] = {0};
    const size_t bytes = (size_t)cols * sizeof *y;
    if (t->flags & WEIR_TILE_ADD)
        for (int i = 0; i < t->mr; i++)
            memcpy(c + i * WEIR_PANEL, y + i * ldy, bytes);
    if (bias)
        memcpy(b, bias, bytes);
    t->c = c;
    t->ldc = WEIR_PANEL;
    t->bias = bias ? b : NULL;
    s->kern->tile[type](t);
    for (int i = 0; i < t->mr; i++)
        memcpy(y + i * ldy, c + i * WEIR_PANEL, bytes);
}

/* Column panel j of weight o, k in [k0, k0 + kn) of the call's range, for the row panels [p0, p1). */
static void run_panel(const gemm_plan *s, const weir_gemm_out *o, int64_t j, int64_t k0, int64_t kn, int64_t p0,
                      int64_t p1, int thread)
{
    const weir_gemm *g = s->g;
    const weir_panels *w = o->w;
    weir_dtype type = w->type;
    weir_tile t = {.nv = 3, .k = kn, .ldb = WEIR_PANEL};
    const int64_t at = g->k0 + k0;
    if (weir_dtype_block(type) > 1) {
        t.b = weir_panels_widen(s->kern, w, j, at, kn, s->widen + (size_t)thread * round64(weir_dequant_scratch()));
        type = WEIR_F32;
    } else {
        t.b = (const char *)w->data + (j * w->k + at) * WEIR_PANEL * (type == WEIR_F32 ? 4 : 2);
    }
    t.flags = (k0 > 0 ? WEIR_TILE_ADD : 0) | (k0 + kn == g->kn ? WEIR_TILE_END : 0);
    const int64_t n = j * WEIR_PANEL;
    for (int64_t p = p0; p < p1; p++) {
        const int64_t r0 = row_of(s, p);
        t.mr = (int)(row_of(s, p + 1) - r0);
        t.lda = t.mr;
        t.a = s->rows + r0 * g->kn + k0 * t.mr;
        tile_to(s, &t, type, o->y + r0 * o->ldy + n, o->ldy, w->n - n, o->bias ? o->bias + n : NULL);
    }
}

/* k in one go. One or two rows have no use for blocks of k, and want to read a panel from end to end. */
static int64_t k_block(const weir_panels *w, int64_t m, int64_t kn)
{
    if (weir_dtype_block(w->type) > 1)
        return WEIR_QUANT_K;
    if (m <= 2)
        return kn;
    return weir_ceil_div(kn, weir_max64(1, weir_ceil_div(kn, K_BLOCK)));
}

/* The column panels [j0, j1) of weight o. */
static void run_range(const gemm_plan *s, const weir_gemm_out *o, int64_t j0, int64_t j1, int64_t p0, int64_t p1,
                      int thread)
{
    const int64_t kn = s->g->kn, step = k_block(o->w, s->g->m, kn);
    for (int64_t k0 = 0; k0 < kn; k0 += step)
        for (int64_t j = j0; j < j1; j++)
            run_panel(s, o, j, k0, weir_min64(step, kn - k0), p0, p1, thread);
}

static void run_task(void *ctx, int64_t i, int thread)
{
    const gemm_plan *s = ctx;
    const int64_t chunk = i / s->row_blocks, block = i % s->row_blocks;
    const int64_t j0 = s->panels * chunk / s->chunks, j1 = s->panels * (chunk + 1) / s->chunks;
    const int64_t p0 = s->row_panels * block / s->row_blocks, p1 = s->row_panels * (block + 1) / s->row_blocks;
    for (int o = 0; o < s->g->n_out; o++) {
        const int64_t from = weir_max64(j0, s->first[o]), to = weir_min64(j1, s->first[o + 1]);
        if (from < to)
            run_range(s, &s->g->out[o], from - s->first[o], to - s->first[o], p0, p1, thread);
    }
}

/* How finely the columns are cut: enough tasks to share evenly, each with enough panels to be worth its start. */
static int64_t column_chunks(const gemm_plan *s, int threads)
{
    const int64_t n = s->panels;
    if (s->row_panels == 1)
        return weir_min64(n, weir_max64(4 * threads, n / 4));
    if (n >= 256)
        return n / 8;
    const int64_t want = weir_max64(threads, weir_ceil_div(8 * threads, s->row_blocks));
    return weir_min64(n, want);
}

void weir_gemm_run(const weir_kern *k, int threads, const weir_gemm *g)
{
    gemm_plan s = {.kern = k, .g = g};
    if (g->m <= 0)
        return;
    bool quantised = false;
    for (int o = 0; o < g->n_out; o++) {
        s.first[o] = s.panels;
        s.panels += weir_ceil_div(g->out[o].w->n, WEIR_PANEL);
        quantised |= weir_dtype_block(g->out[o].w->type) > 1;
    }
    s.first[g->n_out] = s.panels;
    s.row_panels = weir_ceil_div(g->m, WEIR_TILE_ROWS);
    /* Widening a tile costs as much as many rows: let all of them use it. */
    s.row_blocks = quantised ? 1 : weir_ceil_div(s.row_panels, ROW_PANELS);
    s.a = g->scratch;
    s.widen = s.a + round64((size_t)g->m * (size_t)g->kn);
    s.rows = g->m == 1 ? g->x : s.a;
    if (g->m > 1)
        weir_parallel_for(g->m * g->kn < PACK_SERIAL ? 1 : threads, s.row_panels, 0, pack_x, &s);
    s.chunks = column_chunks(&s, threads);
    weir_parallel_for(threads, s.chunks * s.row_blocks, 1, run_task, &s);
}
