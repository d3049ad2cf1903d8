/* kernels/elem_impl.h: the row kernels of a table, over 16 lanes. One source for every table: include a vec_*.h first.
 * Each .c that includes it gets its own static copies, compiled for its instruction set. */
#ifndef WEIR_ELEM_IMPL_H
#define WEIR_ELEM_IMPL_H

#include "kernels/math_impl.h"

/* Lanes that are left of n at i: the last step of a row may be partial. */
static inline int v_left(int64_t n, int64_t i)
{
    return n - i < WEIR_LANES ? (int)(n - i) : WEIR_LANES;
}
static inline vf v_get(const float *p, int m)
{
    return m == WEIR_LANES ? v_load(p) : v_load_n(p, m);
}
static inline void v_put(float *p, vf x, int m)
{
    if (m == WEIR_LANES)
        v_store(p, x);
    else
        v_store_n(p, x, m);
}

static void elem_add(float *dst, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += WEIR_LANES) {
        const int m = v_left(n, i);
        v_put(dst + i, v_canon(v_add(v_get(a + i, m), v_get(b + i, m))), m);
    }
}

static void elem_scale(float *x, float s, int64_t n)
{
    for (int64_t i = 0; i < n; i += WEIR_LANES) {
        const int m = v_left(n, i);
        v_put(x + i, v_canon(v_mul(v_get(x + i, m), v_set(s))), m);
    }
}

static inline vf v_softcap(vf x, vf cap)
{
    return v_mul(cap, v_tanh(v_div(x, cap)));
}

static void elem_softcap(float *x, float cap, int64_t n)
{
    for (int64_t i = 0; i < n; i += WEIR_LANES) {
        const int m = v_left(n, i);
        v_put(x + i, v_canon(v_softcap(v_get(x + i, m), v_set(cap))), m);
    }
}

static inline void act_loop(weir_act act, float *post, const float *pre, const float *up, int64_t n)
{
    for (int64_t i = 0; i < n; i += WEIR_LANES) {
        const int m = v_left(n, i);
        vf y = v_act(act, v_get(pre + i, m));
        if (up)
            y = v_mul(y, v_get(up + i, m));
        v_put(post + i, v_canon(y), m);
    }
}

/* One loop an activation, so that the choice is made outside it. */
static void elem_act(weir_act act, float *post, const float *pre, const float *up, int64_t n)
{
    switch (act) {
    case WEIR_ACT_GELU_ERF:
        act_loop(WEIR_ACT_GELU_ERF, post, pre, up, n);
        break;
    case WEIR_ACT_GELU_TANH:
        act_loop(WEIR_ACT_GELU_TANH, post, pre, up, n);
        break;
    case WEIR_ACT_SILU:
        act_loop(WEIR_ACT_SILU, post, pre, up, n);
        break;
    case WEIR_ACT_RELU:
        act_loop(WEIR_ACT_RELU, post, pre, up, n);
        break;
    case WEIR_ACT_RELU2:
        act_loop(WEIR_ACT_RELU2, post, pre, up, n);
        break;
    case WEIR_ACT_QUICK_GELU:
        act_loop(WEIR_ACT_QUICK_GELU, post, pre, up, n);
        break;
    case WEIR_ACT_IDENTITY:
        act_loop(WEIR_ACT_IDENTITY, post, pre, up, n);
        break;
    }
}

static void elem_rope(float *dst, const float *src, int64_t d, int64_t rot, const float *cs)
{
    const int64_t half = rot / 2;
    for (int64_t i = 0; i < half; i += WEIR_LANES) {
        const int m = v_left(half, i);
        const vf a = v_get(src + i, m), b = v_get(src + half + i, m);
        const vf c = v_get(cs + i, m), s = v_get(cs + half + i, m);
        v_put(dst + i, v_canon(v_fms(a, c, v_mul(b, s))), m);
        v_put(dst + half + i, v_canon(v_fma(b, c, v_mul(a, s))), m);
    }
    for (int64_t i = rot; dst != src && i < d; i += WEIR_LANES) {
        const int m = v_left(d, i);
        v_put(dst + i, v_get(src + i, m), m);
    }
}

/* --- norms */

static weir_norm_stat elem_norm_stat(const float *x, int64_t c, bool rms, float eps)
{
    weir_norm_stat s = {0};
    const vf zero = v_set(0.0f);
    if (!rms) {
        vf sum = zero;
        for (int64_t i = 0; i < c; i += WEIR_LANES)
            sum = v_add(sum, v_get(x + i, v_left(c, i)));
        s.mean = v_fold_add(sum) / (float)c;
    }
    vf sum = zero;
    const vf mean = v_set(s.mean);
    for (int64_t i = 0; i < c; i += WEIR_LANES) {
        const int m = v_left(c, i);
        vf d = v_sub(v_get(x + i, m), mean);
        if (m < WEIR_LANES)
            d = v_select(v_range(0, m), d, zero);
        sum = v_fma(d, d, sum);
    }
    s.scale = sqrtf(v_fold_add(sum) / (float)c + eps);
    return s;
}

static inline vf v_gain(vf y, const weir_norm *n, int64_t i, int m)
{
    if (n->w) {
        const vf g = v_add(v_set(n->offset), v_get(n->w + i, m));
        return n->b ? v_fma(y, g, v_get(n->b + i, m)) : v_mul(y, g);
    }
    return n->b ? v_add(y, v_get(n->b + i, m)) : y;
}

static void elem_norm_apply(float *norm, float *out, const float *x, weir_norm_stat s, const weir_norm *n)
{
    const vf mean = v_set(s.mean), scale = v_set(s.scale);
    for (int64_t i = 0; i < n->c; i += WEIR_LANES) {
        const int m = v_left(n->c, i);
        const vf y = v_div(v_sub(v_get(x + i, m), mean), scale);
        if (norm)
            v_put(norm + i, v_canon(y), m);
        if (out)
            v_put(out + i, v_canon(v_gain(y, n, i, m)), m);
    }
}

static void elem_norm_gain(float *out, const float *norm, const weir_norm *n)
{
    for (int64_t i = 0; i < n->c; i += WEIR_LANES) {
        const int m = v_left(n->c, i);
        v_put(out + i, v_canon(v_gain(v_get(norm + i, m), n, i, m)), m);
    }
}

/* --- attention and logits */

static inline vf score(vf x, vf scale, float cap)
{
    x = v_mul(x, scale);
    return cap > 0 ? v_softcap(x, v_set(cap)) : x;
}

static void elem_score_row(float *dst, const float *src, int64_t n, float scale, float cap)
{
    const vf s = v_set(scale);
    for (int64_t i = 0; i < n; i += WEIR_LANES) {
        const int m = v_left(n, i);
        v_put(dst + i, v_canon(score(v_get(src + i, m), s, cap)), m);
    }
}

/* What to subtract from a row before exp: its maximum, or 0 when nothing in it is above -inf. */
static inline float exp_base(float max)
{
    return max > -INFINITY ? max : 0.0f;
}

static void elem_softmax_row(float *dst, const float *src, int64_t lo, int64_t hi, float scale, float cap)
{
    const vf zero = v_set(0.0f), low = v_set(-INFINITY), s = v_set(scale);
    const int64_t first = lo & ~(int64_t)(WEIR_LANES - 1);
    vf top = low;
    for (int64_t i = first; i < hi; i += WEIR_LANES) {
        const int m = v_left(hi, i);
        vf x = score(v_get(src + i, m), s, cap);
        if (m < WEIR_LANES || i < lo)
            x = v_select(v_range(i < lo ? (int)(lo - i) : 0, m), x, low);
        v_put(dst + i, x, m);
        top = v_max(x, top); /* a NaN leaves top as it was */
    }
    const vf base = v_set(exp_base(v_fold_max(top)));
    vf sum = zero;
    for (int64_t i = first; i < hi; i += WEIR_LANES) {
        const int m = v_left(hi, i);
        vf e = v_exp(v_sub(v_get(dst + i, m), base));
        if (m < WEIR_LANES || i < lo)
            e = v_select(v_range(i < lo ? (int)(lo - i) : 0, m), e, zero);
        sum = v_add(sum, e);
        v_put(dst + i, e, m);
    }
    const float total = v_fold_add(sum);
    const vf inv = v_set(total == 0.0f ? 0.0f : 1.0f / total);
    for (int64_t i = first; i < hi; i += WEIR_LANES) {
        const int m = v_left(hi, i);
        v_put(dst + i, v_canon(v_mul(v_get(dst + i, m), inv)), m);
    }
}

static void elem_exp_sum(const float *x, int64_t n, float *max, float *sum)
{
    const vf zero = v_set(0.0f), low = v_set(-INFINITY);
    vf top = low, total = zero;
    for (int64_t i = 0; i < n; i += WEIR_LANES) {
        const int m = v_left(n, i);
        vf v = v_get(x + i, m);
        if (m < WEIR_LANES)
            v = v_select(v_range(0, m), v, low);
        top = v_max(v, top);
    }
    *max = exp_base(v_fold_max(top));
    const vf base = v_set(*max);
    for (int64_t b = 0; b < n; b += 1024) {
        const int64_t end = weir_min64(n, b + 1024);
        vf part = zero;
        for (int64_t i = b; i < end; i += WEIR_LANES) {
            const int m = v_left(end, i);
            vf e = v_exp(v_sub(v_get(x + i, m), base));
            if (m < WEIR_LANES)
                e = v_select(v_range(0, m), e, zero);
            part = v_add(part, e);
        }
        total = v_add(total, part);
    }
    *sum = v_fold_add(total);
}

/* The part of a table that comes from this file. */
#define WEIR_ELEM_KERNELS                                                                                              \
    .add = elem_add, .scale = elem_scale, .softcap = elem_softcap, .act = elem_act, .rope = elem_rope,                 \
    .norm_stat = elem_norm_stat, .norm_apply = elem_norm_apply, .norm_gain = elem_norm_gain,                           \
    .score_row = elem_score_row, .softmax_row = elem_softmax_row, .exp_sum = elem_exp_sum

#endif
