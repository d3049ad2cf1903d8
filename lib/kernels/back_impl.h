/* kernels/back_impl.h: the row kernels of the backward pass, over 16 lanes. One source for every table, as elem_impl.h.
 */
#ifndef WEIR_BACK_IMPL_H
#define WEIR_BACK_IMPL_H

#include "kernels/elem_impl.h"

/* --- norms */

/* d norm of the columns from i on */
static inline vf v_back_gain(const float *dy, const weir_norm_back *n, int64_t i, int m)
{
    const vf d = v_get(dy + i, m);
    return n->w ? v_mul(d, v_add(v_set(n->offset), v_get(n->w + i, m))) : d;
}

static void back_norm_gain(float *d_norm, const float *dy, const weir_norm_back *n)
{
    for (int64_t i = 0; i < n->c; i += WEIR_LANES) {
        const int m = v_left(n->c, i);
        v_put(d_norm + i, v_canon(v_back_gain(dy, n, i, m)), m);
    }
}

static float back_norm_scale(const float *dy, const float *x, weir_norm_stat s, float held, const weir_norm_back *n)
{
    const vf mean = v_set(s.mean), divisor = v_set(held), zero = v_set(0.0f);
    vf sum = zero;
    for (int64_t i = 0; i < n->c; i += WEIR_LANES) {
        const int m = v_left(n->c, i);
        vf d = v_back_gain(dy, n, i, m), norm = v_div(v_sub(v_get(x + i, m), mean), divisor);
        if (m < WEIR_LANES) {
            d = v_select(v_range(0, m), d, zero);
            norm = v_select(v_range(0, m), norm, zero);
        }
        sum = v_fma(d, norm, sum);
    }
    return -v_fold_add(sum) / held;
}

/* The sum of d norm over its count: what moves with the mean. */
static inline float back_norm_mean(const float *dy, const weir_norm_back *n)
{
    vf sum = v_set(0.0f);
    for (int64_t i = 0; i < n->c; i += WEIR_LANES) /* the lanes that are left over are 0, whatever the offset */
        sum = v_add(sum, v_back_gain(dy, n, i, v_left(n->c, i)));
    return v_fold_add(sum) / (float)n->c;
}

static void back_norm_x(float *dx, const float *dy, const float *x, weir_norm_stat s, float held, float d_scale,
                        const weir_norm_back *n)
{
    const vf d_mean = v_set(n->rms ? 0.0f : back_norm_mean(dy, n)), divisor = v_set(held);
    const vf mean = v_set(s.mean), scale = v_set(s.scale), share = v_set(d_scale / (float)n->c);
    for (int64_t i = 0; i < n->c; i += WEIR_LANES) {
        const int m = v_left(n->c, i);
        const vf norm = v_div(v_sub(v_get(x + i, m), mean), scale);
        vf d = v_fma(share, norm, v_div(v_sub(v_back_gain(dy, n, i, m), d_mean), divisor));
        if (n->add)
            d = v_add(v_get(dx + i, m), d);
        v_put(dx + i, v_canon(d), m);
    }
}

/* --- activations */

/* d of x s(u), s(u) = 1 / (1 + exp(-u)): s + x u' s (1 - s) */
static inline vf v_logistic_slope(vf x, vf minus_u, vf u_slope)
{
    const vf one = v_set(1.0f), s = v_div(one, v_add(one, v_exp(minus_u)));
    return v_fma(v_mul(v_mul(x, u_slope), s), v_sub(one, s), s);
}

/* act'(x), by the forms of v_act */
static inline vf v_act_slope(weir_act act, vf x)
{
    const vf zero = v_set(0.0f), one = v_set(1.0f), square = v_mul(x, x);
    switch (act) {
    case WEIR_ACT_GELU_ERF: { /* Phi(x) + x phi(x) */
        const vf half = v_mul(v_set(0.5f), v_add(one, v_erf(v_mul(x, v_set(0x1.6a09e6p-1f)))));
        const vf density = v_mul(v_set(0x1.988454p-2f), v_exp(v_mul(square, v_set(-0.5f))));
        return v_fma(x, density, half);
    }
    case WEIR_ACT_GELU_TANH:
        return v_logistic_slope(x, v_mul(x, v_fma(square, v_set(-0.07135481627f), v_set(-1.59576912161f))),
                                v_fma(square, v_set(3 * 0.07135481627f), v_set(1.59576912161f)));
    case WEIR_ACT_SILU:
        return v_logistic_slope(x, v_sub(zero, x), one);
    case WEIR_ACT_QUICK_GELU:
        return v_logistic_slope(x, v_mul(x, v_set(-1.702f)), v_set(1.702f));
    case WEIR_ACT_RELU: /* NaN stays NaN */
        return v_select(v_isnan(x), x, v_select(v_less(zero, x), one, zero));
    case WEIR_ACT_RELU2:
        return v_mul(v_set(2.0f), v_max(zero, x));
    case WEIR_ACT_IDENTITY: /* NaN stays NaN */
        return v_select(v_isnan(x), x, one);
    }
    return x;
}

static inline void act_back_loop(weir_act act, float *d_pre, float *d_up, const float *d_post, const float *pre,
                                 const float *up, int64_t n)
{
    for (int64_t i = 0; i < n; i += WEIR_LANES) {
        const int m = v_left(n, i);
        const vf x = v_get(pre + i, m);
        vf d = v_get(d_post + i, m);
        if (up) {
            v_put(d_up + i, v_canon(v_mul(d, v_act(act, x))), m);
            d = v_mul(d, v_get(up + i, m));
        }
        v_put(d_pre + i, v_canon(v_mul(d, v_act_slope(act, x))), m);
    }
}

/* One loop an activation, so that the choice is made outside it. */
static void back_act(weir_act act, float *d_pre, float *d_up, const float *d_post, const float *pre, const float *up,
                     int64_t n)
{
    switch (act) {
    case WEIR_ACT_GELU_ERF:
        act_back_loop(WEIR_ACT_GELU_ERF, d_pre, d_up, d_post, pre, up, n);
        break;
    case WEIR_ACT_GELU_TANH:
        act_back_loop(WEIR_ACT_GELU_TANH, d_pre, d_up, d_post, pre, up, n);
        break;
    case WEIR_ACT_SILU:
        act_back_loop(WEIR_ACT_SILU, d_pre, d_up, d_post, pre, up, n);
        break;
    case WEIR_ACT_RELU:
        act_back_loop(WEIR_ACT_RELU, d_pre, d_up, d_post, pre, up, n);
        break;
    case WEIR_ACT_RELU2:
        act_back_loop(WEIR_ACT_RELU2, d_pre, d_up, d_post, pre, up, n);
        break;
    case WEIR_ACT_QUICK_GELU:
        act_back_loop(WEIR_ACT_QUICK_GELU, d_pre, d_up, d_post, pre, up, n);
        break;
    case WEIR_ACT_IDENTITY:
        act_back_loop(WEIR_ACT_IDENTITY, d_pre, d_up, d_post, pre, up, n);
        break;
    }
}

/* The turn by the opposite angle. */
static void back_rope(float *dst, const float *src, int64_t d, int64_t rot, const float *cs)
{
    const int64_t half = rot / 2;
    for (int64_t i = 0; i < half; i += WEIR_LANES) {
        const int m = v_left(half, i);
        const vf a = v_get(src + i, m), b = v_get(src + half + i, m);
        const vf c = v_get(cs + i, m), s = v_get(cs + half + i, m);
        v_put(dst + i, v_canon(v_fma(a, c, v_mul(b, s))), m);
        v_put(dst + half + i, v_canon(v_fms(b, c, v_mul(a, s))), m);
    }
    for (int64_t i = rot; dst != src && i < d; i += WEIR_LANES) {
        const int m = v_left(d, i);
        v_put(dst + i, v_get(src + i, m), m);
    }
}

/* --- attention */

static void back_softmax(float *d, const float *p, int64_t lo, int64_t hi)
{
    const vf zero = v_set(0.0f);
    const int64_t first = lo & ~(int64_t)(WEIR_LANES - 1);
    vf sum = zero;
    for (int64_t i = first; i < hi; i += WEIR_LANES) {
        const int m = v_left(hi, i);
        vf x = v_get(d + i, m), y = v_get(p + i, m);
        if (m < WEIR_LANES || i < lo) {
            const vm in = v_range(i < lo ? (int)(lo - i) : 0, m);
            x = v_select(in, x, zero);
            y = v_select(in, y, zero);
        }
        sum = v_fma(y, x, sum);
    }
    const vf mean = v_set(v_fold_add(sum));
    for (int64_t i = first; i < hi; i += WEIR_LANES) {
        const int m = v_left(hi, i);
        v_put(d + i, v_canon(v_mul(v_get(p + i, m), v_sub(v_get(d + i, m), mean))), m);
    }
}

static void back_score(float *d, const float *y, int64_t n, float scale, float cap)
{
    const vf s = v_set(scale), c = v_set(cap), one = v_set(1.0f);
    for (int64_t i = 0; i < n; i += WEIR_LANES) {
        const int m = v_left(n, i);
        vf x = v_get(d + i, m);
        if (cap > 0) {
            const vf t = v_div(v_get(y + i, m), c);
            x = v_mul(x, v_fnma(t, t, one));
        }
        v_put(d + i, v_canon(v_mul(x, s)), m);
    }
}

/* --- rows of logits */

static void back_prob(float *x, int64_t n, float max, float inv, float weight)
{
    const vf base = v_set(max), over = v_set(inv), w = v_set(weight);
    for (int64_t i = 0; i < n; i += WEIR_LANES) {
        const int m = v_left(n, i);
        v_put(x + i, v_canon(v_mul(w, v_mul(v_exp(v_sub(v_get(x + i, m), base)), over))), m);
    }
}

/* p of 16 columns, and e where p is not 0 (else 0: what has no probability has no part). */
static inline vf kl_lanes(const float *x, const float *log_q, int m, const weir_kl_row *r, vf *e)
{
    const vf zero = v_set(0.0f), from_max = v_sub(v_get(x, m), v_set(r->max));
    vf p = v_mul(v_exp(from_max), v_set(r->inv));
    if (m < WEIR_LANES)
        p = v_select(v_range(0, m), p, zero);
    const vf diff = v_sub(v_sub(from_max, v_set(r->log_sum)), v_get(log_q, m));
    *e = v_select(v_isnan(p), p, v_select(v_less(zero, p), diff, zero));
    return p;
}

static float back_kl_sum(const float *x, const float *log_q, int64_t n, const weir_kl_row *r)
{
    vf sum = v_set(0.0f);
    for (int64_t i = 0; i < n; i += WEIR_LANES) {
        vf e;
        const vf p = kl_lanes(x + i, log_q + i, v_left(n, i), r, &e);
        sum = v_fma(p, e, sum);
    }
    return v_fold_add(sum);
}

static void back_kl_row(float *x, const float *log_q, int64_t n, const weir_kl_row *r)
{
    for (int64_t i = 0; i < n; i += WEIR_LANES) {
        const int m = v_left(n, i);
        vf e;
        const vf p = kl_lanes(x + i, log_q + i, m, r, &e);
        v_put(x + i, v_canon(v_mul(v_set(r->weight), v_mul(p, v_sub(e, v_set(r->kl))))), m);
    }
}

/* The part of a table that comes from this file. */
#define WEIR_BACK_KERNELS                                                                                              \
    .norm_back_gain = back_norm_gain, .norm_back_scale = back_norm_scale, .norm_back_x = back_norm_x,                  \
    .act_back = back_act, .rope_back = back_rope, .softmax_back = back_softmax, .score_back = back_score,              \
    .prob_row = back_prob, .kl_sum = back_kl_sum, .kl_row = back_kl_row

#endif
