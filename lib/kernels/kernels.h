/* kernels/kernels.h: every floating-point operation of the forward pass, behind one table of micro-kernels.
 *
 * The promise (lib/kernels/README.md tells how it is kept): each result is the same bits from every table, for any
 * number of threads and any grouping of rows. Dot products are one chain of fused multiply-adds in ascending k from +0,
 * the bias is added after it; row reductions run over 16 virtual lanes (element i in lane i mod 16) folded in one fixed
 * order; exp, tanh, erf, sin, cos, log are the library's own. A result that is NaN is stored as 0x7fc00000 by every
 * operation.
 */
#ifndef WEIR_KERNELS_H
#define WEIR_KERNELS_H

#include <weir/tensor.h>

typedef struct weir_kern weir_kern;

/* name NULL: $WEIR_KERNEL, else the best this machine has. A name that is unknown or that the machine lacks is an
 * error. */
WEIR_CHECKED weir_status weir_kern_pick(const weir_kern **out, const char *name, weir_err *err);
const char *weir_kern_name(const weir_kern *k);
/* All tables this machine can run, "ref" first: n of them. */
int weir_kern_available(const weir_kern **out, int cap);

/* --- packed weights: column panels of 48 outputs, [ceil(N/48)][Kdim][48]; fp32 and 16-bit types are copied into panels
 * once; block types keep their stored form and are dequantised tile by tile. Immutable after packing; shared freely. */
#define WEIR_PANEL 48
typedef struct weir_panels weir_panels;

/* Memory for the packed weights of one model: blocks on huge pages that many matrices share. A single row reads small
 * matrices up to 1.5 times as fast from it. Panels that are freed give their memory back to the system and their place
 * to the next ones of the same size; the pool is freed last. Safe from several threads. */
typedef struct weir_panel_pool weir_panel_pool;
WEIR_CHECKED weir_status weir_panel_pool_new(weir_panel_pool **out, weir_err *err);
void weir_panel_pool_free(weir_panel_pool *pool);

/* What to pack: y[n] = sum_k x[k] W(n,k), n in [0,N), k in [0,K). */
typedef struct weir_wview {
    const weir_tensor *t;
    int64_t n, k;
    bool k_major;   /* the tensor stores [k][n] (Conv1D, matrices turned round); else [n][k] */
    int64_t stride; /* elements between stored rows: the tensor's last axis */
    int64_t first;  /* first row; k_major: first column, but of block types first row */
    const int64_t
        *row; /* or NULL: output n (k_major block types: k) is stored in row (column) first + row[n]; copied */
    weir_panel_pool *pool; /* where the panels lie; NULL: in a block of their own */
    bool mapped; /* the tensor lies in a read-only map of a file: its pages are let go as they are packed, those of
                    block types by weir_panels_drop */
} weir_wview;
WEIR_CHECKED weir_status weir_panels_new(weir_panels **out, const weir_wview *w, int threads, weir_err *err);
void weir_panels_free(weir_panels *p);
/* Lets go of the pages of the map where a block type lies; they come back when they are read. Of others nothing. */
void weir_panels_drop(const weir_panels *p);
int64_t weir_panels_bytes(const weir_panels *p); /* memory of its own */

/* --- y = x W + bias for up to 4 weights that read the same x (q,k,v; gate,up). x [m, ldx], y [m, ldy], k range [k0,
 * k0+kn) of the weights (x points at column k0's partner: x[.., 0] pairs with k0). scratch: weir_gemm_scratch bytes,
 * 64-byte aligned. */
typedef struct weir_gemm_out {
    const weir_panels *w;
    const float *bias; /* [N] or NULL */
    float *y;
    int64_t ldy; /* >= N; nothing beyond column N is written */
} weir_gemm_out;
typedef struct weir_gemm {
    int64_t m;
    const float *x;
    int64_t ldx;
    int64_t k0, kn;
    int n_out;
    weir_gemm_out out[4];
    void *scratch;
} weir_gemm;
size_t weir_gemm_scratch(int64_t m_max, int64_t k_max, int threads);
void weir_gemm_run(const weir_kern *k, int threads, const weir_gemm *g);

/* --- norms. w, b [C] or NULL; gain = offset + w. The stages are separate so that a hook can write between them:
 *   scale[t]  = sqrt(mean((x - mean)^2) + eps)   LN;   sqrt(mean(x^2) + eps)   RMS
 *   norm[t,c] = (x - mean) / scale   or x / scale
 *   out[t,c]  = fma(norm, gain, b) with a bias, else norm * gain
 * weir_norm_run does what its pointers ask for: with only `out`, one fused pass with the same bits. */
typedef struct weir_norm {
    bool rms;
    float eps, offset;
    const float *w, *b;
    int64_t rows, c;
    const float *x; /* [T,C] */
    float *mean;    /* [T] or NULL; 0 for RMS. Only weir_norm_run gives it */
    float *scale;   /* [T] or NULL */
    float *norm;    /* [T,C] or NULL */
    float *out;     /* [T,C] or NULL */
} weir_norm;
void weir_norm_run(const weir_kern *k, int threads, const weir_norm *n);
/* Stages: norm from x and a given scale; out from a given norm. */
void weir_norm_from_scale(const weir_kern *k, int threads, const weir_norm *n);
void weir_norm_from_norm(const weir_kern *k, int threads, const weir_norm *n);
/* dst = a + b, then (if n) the norm of dst, in one pass over the rows: n->x must be dst. */
void weir_add_norm(const weir_kern *k, int threads, float *dst, const float *a, const float *b, int64_t rows, int64_t c,
                   const weir_norm *n);

/* --- elementwise over [rows, c] */
void weir_op_add(const weir_kern *k, int threads, float *dst, const float *a, const float *b, int64_t n);
void weir_op_scale(const weir_kern *k, int threads, float *x, float s, int64_t n);
void weir_op_softcap(const weir_kern *k, int threads, float *x, float cap, int64_t n); /* cap * tanh(x / cap) */

typedef enum weir_act {
    WEIR_ACT_GELU_ERF,
    WEIR_ACT_GELU_TANH,
    WEIR_ACT_SILU,
    WEIR_ACT_RELU,
    WEIR_ACT_RELU2,
    WEIR_ACT_QUICK_GELU,
    WEIR_ACT_IDENTITY /* of no model: it stands in for one's activation (weir_run_options.act) */
} weir_act;
/* post = act(pre), or act(pre) * up. */
void weir_op_act(const weir_kern *k, int threads, weir_act act, float *post, const float *pre, const float *up,
                 int64_t n);
/* The one of a weir/functions.h activation that runs. */
struct weir_activation;
weir_act weir_activation_act(const struct weir_activation *f);

/* RoPE, half-split pairs (x[i], x[i + rot/2]), on [rows, heads, d]: dst may be src; columns beyond rot are copied.
 * cos_sin: [positions][rot] = cos[rot/2] then sin[rot/2]; pos [rows].
 *   y[i] = fma(x[i], cos, -(x[i+r/2] * sin));   y[i+r/2] = fma(x[i+r/2], cos, x[i] * sin) */
void weir_op_rope(const weir_kern *k, int threads, float *dst, const float *src, int64_t rows, int64_t heads, int64_t d,
                  int64_t rot, const float *cos_sin, const int64_t *pos);
/* Fills cos_sin for positions [0, n): angle = fp32(pos) * inv_freq rounded to fp32, then the library's sin and cos,
 * times factor. */
void weir_rope_table(float *cos_sin, int64_t n, int64_t rot, const float *inv_freq, float factor);

/* --- attention. Keys of a sequence are kept in panels [K][ceil(cap/48)][D][48], values as [K][cap][D]. Key k is
 * visible to the query at position p iff k <= p and (no window, or p - k < window). Nothing of an invisible key ever
 * enters a row: the staged calls write -inf and 0 there, and ignore what a hook writes there. */
size_t weir_attn_k_floats(int64_t kv_heads, int64_t d, int64_t cap);
size_t weir_attn_v_floats(int64_t kv_heads, int64_t d, int64_t cap);
typedef struct weir_attn_seq {
    int64_t row0, n; /* its rows in the batch */
    int64_t past;    /* keys stored before this pass */
    int64_t cap;
    float *kp, *v;
} weir_attn_seq;
typedef struct weir_attn {
    int64_t heads, kv_heads, d; /* H, K, D */
    float scale, softcap;       /* softcap 0: none */
    int64_t window;             /* 0: no window */
    const weir_attn_seq *seq;
    int64_t n_seq;
    const float *q; /* [T,H,D] */
    float *z;       /* [T,H,D] */
    float *scores;  /* [T,H,S] for the staged calls */
    float *pattern; /* [T,H,S], may be scores */
    int64_t s;      /* S */
    void *scratch;  /* weir_attn_scratch bytes */
} weir_attn;
size_t weir_attn_scratch(int64_t max_len, int64_t d, int threads);
/* Appends k [T,K,D] and v [T,K,D] of each sequence's rows at positions past... */
void weir_attn_store(const weir_kern *k, int threads, const weir_attn *a, const float *key, const float *val);
void weir_attn_scores(const weir_kern *k, int threads, const weir_attn *a); /* scale, cap, mask with -inf up to S */
void weir_attn_softmax(const weir_kern *k, int threads,
                       const weir_attn *a); /* pattern from scores: 0 where -inf; an all -inf row gives 0 */
void weir_attn_mix(const weir_kern *k, int threads, const weir_attn *a); /* z from pattern */
void weir_attn_fused(const weir_kern *k, int threads,
                     const weir_attn *a); /* the three, storing no [T,H,S]; same bits */

/* --- logits: the softmax of a row is exp(x - max) / sum */
typedef struct weir_row_sum {
    float max, sum; /* max: 0 where nothing in the row is above -inf */
    double log_sum; /* ln sum; NaN where a column is NaN or +inf, or all are -inf */
} weir_row_sum;
/* out [rows] of x [rows, ld], v columns. */
void weir_op_row_sums(const weir_kern *k, int threads, weir_row_sum *out, const float *x, int64_t ld, int64_t rows,
                      int64_t v);
/* The log-probability of a column whose logit is x. */
float weir_row_logprob(const weir_row_sum *s, float x);

/* out[i] = x[i, target[i]] - log(sum exp x[i]) ; target < 0: NaN. x [rows, ld], v columns. */
void weir_op_logprob(const weir_kern *k, int threads, float *out, const float *x, int64_t ld, int64_t rows, int64_t v,
                     const int32_t *target);
/* The same for several targets of each row: target and out [rows, targets]. */
void weir_op_logprobs(const weir_kern *k, int threads, float *out, const float *x, int64_t ld, int64_t rows, int64_t v,
                      const int32_t *target, int64_t targets);

#endif
