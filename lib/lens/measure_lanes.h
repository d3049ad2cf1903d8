/* lens/measure_lanes.h: the loops of lanes.h over 16 lanes. One source for every table: include a vec_*.h first.
 *
 * Jensen and Shannon's divergence, term by term, with m = (p + q) / 2, r = |p - q| / (p + q):
 *
 *     (p ln(p/m) + q ln(q/m)) / 2 = m g(r),   g(r) = ((1 - r) ln(1 - r) + (1 + r) ln(1 + r)) / 2
 *
 * g grows from 0 to ln 2, so no term is negative and nothing cancels between terms. Near 0 it is r^2 times a polynomial
 * in r^2. Near 1, where ln(1 - r) has none, |ln p - ln q| = ln((1 + r) / (1 - r)) and min(p, q) = m (1 - r) help:
 *
 *     m g(r) = m ln(1 + r) - min(p, q) |ln p - ln q| / 2
 *
 * The fits are made by tests/conformance/fit_polynomials.py.
 */
#ifndef WEIR_LENS_MEASURE_LANES_H
#define WEIR_LENS_MEASURE_LANES_H

#include <math.h>

#include "kernels/math_impl.h"
#include "lens/lanes.h"

enum { STEP = 16 };

/* Places of the last step: 1 to 16. */
static inline int left_of(int64_t n, int64_t i)
{
    return n - i < STEP ? (int)(n - i) : STEP;
}

static float lanes_softmax(float *p, float *ln_p, const float *x, int64_t n, const weir_lens_softmax *s,
                           const float *next)
{
    const vf zero = v_set(0.0f), max = v_set(s->max), inv_z = v_set(s->inv_z), log_z = v_set(s->log_z);
    vf sum = zero;
    for (int64_t i = 0; i < n; i += STEP) {
        const int m = left_of(n, i);
        __builtin_prefetch(next + i);
        const vf d = v_sub(m < STEP ? v_load_n(x + i, m) : v_load(x + i), max);
        vf l = v_sub(d, log_z), e = v_mul(v_exp(d), inv_z);
        if (m < STEP) {
            l = v_select(v_range(0, m), l, zero);
            e = v_select(v_range(0, m), e, zero);
        }
        sum = v_fma(e, l, sum);
        v_store(p + i, e);
        v_store(ln_p + i, l);
    }
    return v_fold_add(sum);
}

static float lanes_kl(const float *p, const float *ln_p, const float *ln_q, int64_t n)
{
    vf sum = v_set(0.0f);
    if (ln_q)
        for (int64_t i = 0; i < n; i += STEP)
            sum = v_fma(v_load(p + i), v_sub(v_load(ln_p + i), v_load(ln_q + i)), sum);
    else
        for (int64_t i = 0; i < n; i += STEP)
            sum = v_fma(v_load(p + i), v_load(ln_p + i), sum);
    return v_fold_add(sum);
}

/* g(r) / r^2 for r below NEAR, s = r^2 */
#define NEAR 0.625f
static inline vf jsd_near(vf s)
{
    vf g = v_set(0x1.526e34p-6f);
    g = v_fma(g, s, v_set(0x1.0a4874p-8f));
    g = v_fma(g, s, v_set(0x1.3e98c2p-6f));
    g = v_fma(g, s, v_set(0x1.0fc9ecp-5f));
    g = v_fma(g, s, v_set(0x1.555b1cp-4f));
    return v_fma(g, s, v_set(0x1.fffffep-2f));
}

/* ln(1 + NEAR + u), u in [0, 1 - NEAR] */
static inline vf jsd_log(vf u)
{
    vf l = v_set(0x1.5ce41ap-7f);
    l = v_fma(l, u, v_set(-0x1.1184e8p-5f));
    l = v_fma(l, u, v_set(0x1.3c7a3cp-4f));
    l = v_fma(l, u, v_set(-0x1.83b8c4p-3f));
    l = v_fma(l, u, v_set(0x1.3b1394p-1f));
    return v_fma(l, u, v_set(0x1.f128f6p-2f));
}

static float lanes_jsd(const float *p, const float *ln_p, const float *q, const float *ln_q, int64_t n)
{
    const vf near = v_set(NEAR), least = v_set(0x1p-126f); /* 0 / least where p and q are both 0 */
    vf total = v_set(0.0f);
    for (int64_t i = 0; i < n; i += STEP) {
        const vf a = v_load(p + i), b = v_load(q + i), sum = v_add(a, b);
        const vf apart = v_abs(v_sub(v_load(ln_p + i), v_load(ln_q + i)));
        const vf r = v_div(v_abs(v_sub(a, b)), v_add(sum, least)), s = v_mul(r, r);
        const vf small = v_mul(v_mul(sum, s), jsd_near(s));
        const vf large = v_fms(sum, jsd_log(v_sub(r, near)), v_mul(v_min(a, b), apart));
        total = v_add(total, v_select(v_less(r, near), small, large));
    }
    return v_fold_add(total);
}

static inline uint32_t above_bits(const float *x, int m, vf than)
{
    if (m == STEP)
        return vm_bits(v_less(than, v_load(x)));
    return vm_bits(v_less(than, v_load_n(x, m))) & ((1u << m) - 1);
}

static int64_t lanes_count_above(const float *x, int64_t n, float than)
{
    const vf t = v_set(than);
    int64_t count = 0;
    for (int64_t i = 0; i < n; i += STEP)
        count += __builtin_popcount(above_bits(x + i, left_of(n, i), t));
    return count;
}

static int64_t lanes_find_above(const float *x, int64_t from, int64_t n, float than)
{
    const vf t = v_set(than);
    for (int64_t i = from; i < n; i += STEP) {
        const uint32_t bits = above_bits(x + i, left_of(n, i), t);
        if (bits)
            return i + __builtin_ctz(bits);
    }
    return n;
}

/* The table that comes from this file. */
#define WEIR_LENS_LANES                                                                                                \
    .softmax = lanes_softmax, .kl = lanes_kl, .jsd = lanes_jsd, .count_above = lanes_count_above,                      \
    .find_above = lanes_find_above

#endif
