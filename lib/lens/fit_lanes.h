/* lens/fit_lanes.h: fit_kern.h's functions over 16 lanes. Include a kernels/vec_*.h first; each file that includes this
 * gets its own copies, compiled for its instruction set. */
#ifndef WEIR_LENS_FIT_LANES_H
#define WEIR_LENS_FIT_LANES_H

#include "kernels/math_impl.h"
#include "lens/fit_kern.h"

#define SUM_BLOCK 1024 /* elements that are summed apart */

static inline int lanes_at(int64_t n, int64_t i)
{
    return n - i < WEIR_LANES ? (int)(n - i) : WEIR_LANES;
}

/* Lanes from m on become `rest`. */
static inline vf lanes_load(const float *p, int m, vf rest)
{
    return m == WEIR_LANES ? v_load(p) : v_select(v_range(0, m), v_load_n(p, m), rest);
}

static inline void lanes_store(float *p, vf x, int m)
{
    if (m == WEIR_LANES)
        v_store(p, x);
    else
        v_store_n(p, x, m);
}

/* A row's softmax is exp(x - max) / sum. NaN anywhere makes sum NaN. */
typedef struct row_scale {
    float max;
    double sum;
} row_scale;

static row_scale row_scale_of(const float *x, int64_t n)
{
    const vf low = v_set(-INFINITY);
    vf top = low;
    for (int64_t i = 0; i < n; i += WEIR_LANES)
        top = v_max(lanes_load(x + i, lanes_at(n, i), low), top);
    row_scale s = {.max = v_fold_max(top)};
    const vf max = v_set(s.max);
    for (int64_t b = 0; b < n; b += SUM_BLOCK) {
        const int64_t end = n - b < SUM_BLOCK ? n : b + SUM_BLOCK;
        vf sum = v_set(0.0f);
        for (int64_t i = b; i < end; i += WEIR_LANES) /* exp(-inf) = 0 */
            sum = v_add(sum, v_exp(v_sub(lanes_load(x + i, lanes_at(end, i), low), max)));
        s.sum += (double)v_fold_add(sum);
    }
    return s;
}

static double lanes_softmax(float *x, int64_t n)
{
    const row_scale s = row_scale_of(x, n);
    const vf max = v_set(s.max), share = v_set((float)(1 / s.sum)), zero = v_set(0.0f);
    double dot = 0;
    for (int64_t b = 0; b < n; b += SUM_BLOCK) {
        const int64_t end = n - b < SUM_BLOCK ? n : b + SUM_BLOCK;
        vf sum = zero;
        for (int64_t i = b; i < end; i += WEIR_LANES) {
            const int m = lanes_at(end, i);
            const vf t = v_sub(lanes_load(x + i, m, max), max); /* 0 in the lanes that are left over */
            const vf f = v_mul(v_exp(t), share);
            sum = v_fma(f, t, sum);
            lanes_store(x + i, f, m);
        }
        dot += (double)v_fold_add(sum);
    }
    return dot - weir_natural_log(s.sum);
}

static double lanes_gradient(float *x, const float *f, int64_t n, float cap, double f_ln_f)
{
    const row_scale s = row_scale_of(x, n);
    const vf max = v_set(s.max), share = v_set((float)(1 / s.sum)), zero = v_set(0.0f), one = v_set(1.0f);
    const vf per_cap = v_set(cap > 0 ? 1 / cap : 0);
    double dot = 0;
    for (int64_t b = 0; b < n; b += SUM_BLOCK) {
        const int64_t end = n - b < SUM_BLOCK ? n : b + SUM_BLOCK;
        vf sum = zero;
        for (int64_t i = b; i < end; i += WEIR_LANES) {
            const int m = lanes_at(end, i);
            const vf z = lanes_load(x + i, m, max), q = lanes_load(f + i, m, zero);
            const vf t = v_sub(z, max), d = v_sub(v_mul(v_exp(t), share), q);
            const vf r = v_mul(z, per_cap); /* tanh of the logit before the cap over the cap; d tanh = 1 - tanh^2 */
            sum = v_fma(q, t, sum);
            lanes_store(x + i, v_mul(d, v_fnma(r, r, one)), m);
        }
        dot += (double)v_fold_add(sum);
    }
    return f_ln_f - (dot - weir_natural_log(s.sum));
}

#define WEIR_FIT_KERNELS .softmax = lanes_softmax, .gradient = lanes_gradient

#endif
