/* kernels/backward.h: the derivatives of kernels.h, one for one, under the same promise: each result is the same bits
 * from every table, for any number of threads and any grouping of rows. d is always the gradient of the scalar with
 * respect to what is named before it ("dy": of y).
 */
#ifndef WEIR_KERNELS_BACKWARD_H
#define WEIR_KERNELS_BACKWARD_H

#include "kernels/kernels.h"

/* Norm: from d out to d x. With n = (x - mean) / scale and g = d out * gain:
 *   LN:  d x = (g - mean(g) - n mean(g n)) / scale;   RMS: d x = (g - n mean(g n)) / scale
 * (Ba, Kiros and Hinton, arXiv 1607.06450; Zhang and Sennrich, arXiv 1910.07467; differentiated). The statistics are
 * taken from x again. dx may be dy. The pieces are separate where hooks stand between:
 *   d norm = d out * gain;  d scale[t] = -(sum over c of d norm * norm) / scale;  d x from d norm with the
 *   scale held: (d norm - mean(d norm)) / scale (LN, the mean depends on x), d norm / scale (RMS);
 *   and d scale's share: d x += d scale * norm / C  (both kinds: scale = sqrt(mean((x - mean)^2) + eps)). */
typedef struct weir_norm_back {
    bool rms;
    float eps, offset;
    const float *w; /* gain = offset + w; NULL: 1 */
    int64_t rows, c;
    const float *x;     /* [T,C] */
    const float *scale; /* [T] what the pass divided by, where a hook may have written it; NULL: the scale of x */
    const float *dy;    /* [T,C] d out */
    float *d_norm;      /* [T,C] */
    float *d_scale;     /* [T] */
    float *dx;          /* [T,C] */
    bool add;           /* dx += */
} weir_norm_back;
/* All of it: dx from dy. */
void weir_norm_backward(const weir_kern *k, int threads, const weir_norm_back *n);
/* Its pieces, the same bits together: d_norm from dy (may be dy); d_scale from d_norm; dx from d_norm (may be it) and
 * d_scale. */
void weir_norm_back_gain(const weir_kern *k, int threads, const weir_norm_back *n);
void weir_norm_back_scale(const weir_kern *k, int threads, const weir_norm_back *n);
void weir_norm_back_x(const weir_kern *k, int threads, const weir_norm_back *n);

/* post = act(pre), or act(pre) * up: d pre and, if up, d up from d post. d_pre may be d_post. */
void weir_act_backward(const weir_kern *k, int threads, weir_act act, float *d_pre, float *d_up, const float *d_post,
                       const float *pre, const float *up, int64_t n);

/* RoPE turns pairs; its backward turns them back: d src from d dst. dst may be src. Arguments as weir_op_rope. */
void weir_rope_backward(const weir_kern *k, int threads, float *dst, const float *src, int64_t rows, int64_t heads,
                        int64_t d, int64_t rot, const float *cos_sin, const int64_t *pos);

/* y = cap tanh(x / cap), from y: d x = d y (1 - (y / cap)^2). In place. */
void weir_softcap_backward(const weir_kern *k, int threads, float *dy, const float *y, float cap, int64_t n);

/* Attention: from d z to d q, d k, d v of the pass's own rows (keys before them, in the cache, are constants). The
 * pattern is made again from q and the stored keys, with the forward's bits. With i a query, j a key that it sees:
 *   d P[i,j] = chain over the head size of dz[i] v[j]
 *   d S[i,j] = P[i,j] (d P[i,j] - sum over j of P d P)       S: the scores as the softmax saw them
 *   G[i,j] = d S[i,j] (1 - (S[i,j] / cap)^2) scale           S here: as they were computed; no factor without a cap
 *   dq[i] = chain over j of G[i,j] k[j];   dk[j] = chain over i of G[i,j] q[i];   dv[j] = chain over i of P[i,j] dz[i]
 * Chains ascend; of one query the heads that share the key head come one after the other. What is invisible has no part
 * in any of them, not even 0 times a value. */
typedef struct weir_attn_back {
    const weir_attn *a; /* as the forward had it, keys and values stored: seq, q, scale, softcap, window; S for the
                           stages. Its z and scratch are not used */
    const float *dz;    /* [T,H,D] */
    float *dq;          /* [T,H,D] */
    float *dk, *dv;     /* [T,K,D] */
    void *scratch;      /* weir_attn_back_scratch bytes, 64-byte aligned */
    /* For the stages, [T,H,S]: what the pass left, as hooks may have written it, and the gradients. */
    const float *scores, *pattern;
    float *d_scores, *d_pattern;
} weir_attn_back;
/* max_len: positions of the longest sequence, its cache included; group: H / K. */
size_t weir_attn_back_scratch(int64_t max_len, int64_t d, int64_t group, int threads);
/* dq, dk, dv from dz: all stages at once, storing no [T,H,S]; the same bits. */
void weir_attn_backward(const weir_kern *k, int threads, const weir_attn_back *b);
/* The stages, for hooks between them. Gradients of what is invisible are written as 0, and what a hook writes there is
 * ignored. d_pattern and dv from dz and pattern; then d_scores (may be d_pattern) from d_pattern and scores, of which
 * the softmax is taken again; then dq and dk from d_scores. */
void weir_attn_mix_backward(const weir_kern *k, int threads, const weir_attn_back *b);
void weir_attn_softmax_backward(const weir_kern *k, int threads, const weir_attn_back *b);
void weir_attn_scores_backward(const weir_kern *k, int threads, const weir_attn_back *b);

/* Rows of logits to rows of gradients, in place: x [rows, ld], v columns.
 *   NLL of token t: w (p - onehot(t));   KL(p || q): w p (log p - log q - KL);   logit of t: w onehot(t).
 * value [rows]: each row's own NLL, KL or logit, without its weight. A column whose p is 0 has no part in the KL. A row
 * whose p is NaN gives NaN in every column and as its value, whatever the weight. */
typedef enum weir_loss_row_kind { WEIR_ROW_NLL, WEIR_ROW_LOGIT, WEIR_ROW_KL } weir_loss_row_kind;
typedef struct weir_loss_row {
    weir_loss_row_kind kind;
    int32_t token; /* [0, v); not for KL */
    float weight;
    const float *log_q; /* [v] KL only */
} weir_loss_row;
void weir_loss_backward(const weir_kern *k, int threads, float *x, int64_t ld, int64_t rows, int64_t v,
                        const weir_loss_row *row, double *value);

#endif
