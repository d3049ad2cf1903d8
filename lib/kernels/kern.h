/* kernels/kern.h: the table of micro-kernels (private to lib/kernels).
 *
 * One table an instruction set: kern_ref.c, kern_avx2.c, kern_avx512.c. Everything that decides an order of arithmetic
 * across blocks, rows or threads lives in the drivers (gemm.c, attention.c, norm.c, ops.c), which all tables share; a
 * micro-kernel only has to keep the order that is written beside it here, and all of them do, to the bit.
 */
#ifndef WEIR_KERNELS_KERN_H
#define WEIR_KERNELS_KERN_H

#include "kernels/backward.h"

#define WEIR_LANES 16    /* virtual lanes of a row reduction */
#define WEIR_TILE_ROWS 8 /* rows of the largest tile */

/* Checkpoints may store numbers at any byte. */
typedef float weir_f32u __attribute__((aligned(1), may_alias));
typedef uint16_t weir_u16u __attribute__((aligned(1), may_alias));

enum {
    WEIR_TILE_ADD = 1, /* the chains go on from what c holds; else they start from +0 */
    WEIR_TILE_END = 2, /* the chains end here: add the bias, store NaN as 0x7fc00000 */
    /* mr - 1 more steps of k follow, step j only for the rows after row j: the keys that the later queries of a block
       see. */
    WEIR_TILE_STAIRS = 4
};

/* One tile: c[i][n] = chain over k ascending of fma(a[k * lda + i], b[k * ldb + n], c[i][n]), for i < mr <= 8 and
 * n < 16 nv <= 48. b holds fp32 or 16-bit elements, as the kernel's index in weir_kern.tile says. */
typedef struct weir_tile {
    int mr, nv, flags;
    int64_t k;
    const float *a;
    int64_t lda;
    const void *b;
    int64_t ldb;
    float *c;
    int64_t ldc;
    const float *bias; /* [16 nv] or NULL; read only with WEIR_TILE_END */
} weir_tile;

typedef struct weir_norm_stat {
    float mean, scale; /* mean is 0 for RMS */
} weir_norm_stat;

typedef struct weir_kl_row {
    float max, inv, log_sum, kl, weight;
} weir_kl_row;

enum { WEIR_OUTER_ROWS = 4, WEIR_OUTER_COLUMNS = 8 };

struct weir_kern {
    const char *name;
    /* Indexed by WEIR_F32, WEIR_F16, WEIR_BF16; the 16-bit ones only for nv = 3 and without stairs. */
    void (*tile[3])(const weir_tile *t);
    /* dst[c * ldd + r] = row[r][c] for r < rows <= 16, c < cols; nothing else is written. */
    void (*transpose)(float *dst, int64_t ldd, const weir_f32u *const *row, int rows, int64_t cols);
    void (*transpose16)(uint16_t *dst, int64_t ldd, const weir_u16u *const *row, int rows, int64_t cols);
    /* dst[r * ldd + i] = element from + i of the stored row[r], for i < n; of block types whole sixteens. */
    void (*dequant)(weir_dtype type, const void *const *row, int rows, int64_t from, int64_t n, float *dst,
                    int64_t ldd);

    /* sum[r * ld + c] += sum over t < rows, ascending, of a[t * WEIR_OUTER_COLUMNS + r] b[t * WEIR_OUTER_COLUMNS + c],
     * for r < WEIR_OUTER_ROWS and c < WEIR_OUTER_COLUMNS; a and b hold floats. */
    void (*outer)(double *sum, int64_t ld, const double *a, const double *b, int64_t rows);

    void (*add)(float *dst, const float *a, const float *b, int64_t n);
    void (*scale)(float *x, float s, int64_t n);
    void (*softcap)(float *x, float cap, int64_t n);
    void (*act)(weir_act act, float *post, const float *pre, const float *up, int64_t n); /* up may be NULL */
    /* One head: cs = cos[rot/2], sin[rot/2]. */
    void (*rope)(float *dst, const float *src, int64_t d, int64_t rot, const float *cs);

    weir_norm_stat (*norm_stat)(const float *x, int64_t c, bool rms, float eps);
    /* norm and out may be NULL. */
    void (*norm_apply)(float *norm, float *out, const float *x, weir_norm_stat s, const weir_norm *n);
    void (*norm_gain)(float *out, const float *norm, const weir_norm *n);

    /* dst[i] = src[i] * scale, then cap * tanh(. / cap) if cap > 0, for i in [0, n). */
    void (*score_row)(float *dst, const float *src, int64_t n, float scale, float cap);
    /* x[i] = score of src[i] as in score_row; dst[i] = exp(x[i] - max) * (1 / sum) for i in [lo, hi), 0 for all if
     * every one is -inf; lanes by i mod 16. dst may be src. Below lo, as far as a multiple of 16, dst is overwritten
     * too. */
    void (*softmax_row)(float *dst, const float *src, int64_t lo, int64_t hi, float scale, float cap);
    /* max and sum of exp(x - max) over n columns, lanes by i mod 16, each 1024 columns summed apart. */
    void (*exp_sum)(const float *x, int64_t n, float *max, float *sum);

    /* --- backward: back_impl.h */
    /* d norm[i] = dy[i] * gain: to d_norm. */
    void (*norm_back_gain)(float *d_norm, const float *dy, const weir_norm_back *n);
    /* d scale of a row: -(sum of d norm * norm) / held, lanes by i mod 16; norm = (x - s.mean) / held. */
    float (*norm_back_scale)(const float *dy, const float *x, weir_norm_stat s, float held, const weir_norm_back *n);
    /* dx = (d norm - its mean, but for RMS) / held + (d_scale / c) (x - s.mean) / s.scale, or dx += that; dx may be dy.
     */
    void (*norm_back_x)(float *dx, const float *dy, const float *x, weir_norm_stat s, float held, float d_scale,
                        const weir_norm_back *n);
    /* up and d_up may be NULL, both; d_pre may be d_post. */
    void (*act_back)(weir_act act, float *d_pre, float *d_up, const float *d_post, const float *pre, const float *up,
                     int64_t n);
    void (*rope_back)(float *dst, const float *src, int64_t d, int64_t rot, const float *cs);
    /* d[i] = p[i] * (d[i] - sum of p d) for i in [lo, hi), lanes by i mod 16. Below lo, as far as a multiple of 16, d
     * is overwritten too. */
    void (*softmax_back)(float *d, const float *p, int64_t lo, int64_t hi);
    /* From y = score: d[i] = d[i] (1 - (y[i] / cap)^2) scale; without a cap d[i] scale, and y may be NULL. */
    void (*score_back)(float *d, const float *y, int64_t n, float scale, float cap);
    /* x[i] = weight * exp(x[i] - max) * inv */
    void (*prob_row)(float *x, int64_t n, float max, float inv, float weight);
    /* Of n columns, with p[i] = exp(x[i] - max) inv and e[i] = (x[i] - max - log_sum) - log_q[i]: the sum of p e, lanes
     * by i mod 16; x[i] = weight p (e - kl). 0 where p is 0. */
    float (*kl_sum)(const float *x, const float *log_q, int64_t n, const weir_kl_row *r);
    void (*kl_row)(float *x, const float *log_q, int64_t n, const weir_kl_row *r);
};

extern const weir_kern weir_kern_ref, weir_kern_avx2, weir_kern_avx512;

/* The best table of this machine, whatever the environment says: for packing, which only moves bits. */
const weir_kern *weir_kern_best(void);

/* ln x for finite x > 0, correct to the last bits of double: the same everywhere. */
double weir_natural_log(double x);

/* --- panels */
struct weir_panels {
    weir_dtype type;
    struct weir_panel_piece *piece; /* of a pool, where data lies; NULL: data is a block of its own */
    int64_t n, k;
    void *data;   /* F32, F16, BF16: [ceil(n/48)][k][48] */
    size_t bytes; /* of data and row */
    /* block types */
    const char *stored; /* row 0 of the view: an output, or (k_major) a k */
    int64_t row_bytes;
    int64_t *row; /* the map, or NULL */
    bool k_major, mapped;
};

/* Memory of a pool: p is 64-byte aligned, not zeroed. NULL when there is none. */
typedef struct weir_panel_piece {
    weir_panel_pool *pool;
    void *p;
    size_t bytes;
    struct weir_panel_piece *next; /* the pool's */
} weir_panel_piece;
weir_panel_piece *weir_panel_pool_take(weir_panel_pool *pool, size_t bytes);
void weir_panel_pool_give(weir_panel_piece *piece); /* back to its pool */

#define WEIR_QUANT_K 256           /* weights of a block type are widened this many k at a time */
size_t weir_dequant_scratch(void); /* floats that a thread needs for one tile of such weights */
/* The tile [kn][48] of panel j from column k0 on, in scratch; kn <= WEIR_QUANT_K. */
const float *weir_panels_widen(const weir_kern *k, const weir_panels *p, int64_t j, int64_t k0, int64_t kn,
                               float *scratch);

static inline int64_t weir_min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t weir_max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t weir_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif
