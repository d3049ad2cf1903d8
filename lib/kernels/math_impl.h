/* kernels/math_impl.h: exp, tanh, erf and the activations over 16 lanes. One source for every table: include a vec_*.h
 * first.
 *
 * Each function is a fixed sequence of IEEE operations, so that it has the same bits wherever it runs. The polynomials
 * are minimax fits made by tests/conformance/fit_polynomials.py; README.md has the measured errors. Infinities, NaN,
 * subnormal results and overflow are those of the mathematical function. No table flushes subnormal numbers.
 */
#ifndef WEIR_MATH_IMPL_H
#define WEIR_MATH_IMPL_H

#include "kernels/kern.h"

#define V_SIGN 0x80000000u

static inline vf v_abs(vf x)
{
    return v_float(vi_and(v_bits(x), vi_set(~V_SIGN)));
}
/* |a| with the sign of s, for a that has none */
static inline vf v_signed(vf a, vf s)
{
    return v_float(vi_or(v_bits(a), vi_and(v_bits(s), vi_set(V_SIGN))));
}
/* Every NaN becomes the one that is stored. */
static inline vf v_canon(vf x)
{
    return v_select(v_isnan(x), v_float(vi_set(0x7fc00000u)), x);
}

/* exp x = 2^n exp f, f = x - n ln 2 in [-0.347, 0.347], exp f = 1 + f + f^2 q(f). v_max and v_min give their second
 * operand when it is NaN. */
static inline vf v_exp(vf x)
{
    const vf magic = v_set(0x1.8p23f); /* its last bit is worth 1: adding it rounds to an integer */
    x = v_min(v_set(89.0f), v_max(v_set(-104.0f), x));
    const vf t = v_fma(x, v_set(0x1.715476p0f), magic);
    const vf n = v_sub(t, magic);
    vf f = v_fnma(n, v_set(0x1.62e4p-1f), x); /* exact */
    f = v_fnma(n, v_set(0x1.7f7d1cp-20f), f);
    vf q = v_set(0x1.6a2352p-10f);
    q = v_fma(q, f, v_set(0x1.123a6cp-7f));
    q = v_fma(q, f, v_set(0x1.5558f4p-5f));
    q = v_fma(q, f, v_set(0x1.555490p-3f));
    q = v_fma(q, f, v_set(0x1.fffffcp-2f));
    return v_scale2(v_add(v_fma(q, v_mul(f, f), f), v_set(1.0f)), n);
}

/* |x| < 0.625: x + x^3 p(x^2); else 1 - 2 / (exp 2|x| + 1). */
static inline vf v_tanh(vf x)
{
    const vf a = v_abs(x), s = v_mul(a, a), one = v_set(1.0f);
    vf p = v_set(-0x1.76861ep-8f);
    p = v_fma(p, s, v_set(0x1.524ebcp-6f));
    p = v_fma(p, s, v_set(-0x1.b8431cp-5f));
    p = v_fma(p, s, v_set(0x1.110760p-3f));
    p = v_fma(p, s, v_set(-0x1.555534p-2f));
    const vf small = v_fma(v_mul(p, s), a, a);
    const vf e = v_exp(v_mul(v_min(v_set(10.0f), a), v_set(2.0f)));
    const vf large = v_sub(one, v_div(v_set(2.0f), v_add(e, one)));
    return v_signed(v_select(v_less(a, v_set(0.625f)), small, large), x);
}

/* |x| < 0.92: x + x p(x^2); else 1 - exp(-g(|x| - 1)), g = -log erfc. */
static inline vf v_erf(vf x)
{
    const vf a = v_abs(x), s = v_mul(a, a), one = v_set(1.0f);
    vf p = v_set(0x1.6034e8p-14f);
    p = v_fma(p, s, v_set(-0x1.ab4728p-11f));
    p = v_fma(p, s, v_set(0x1.54e620p-8f));
    p = v_fma(p, s, v_set(-0x1.b811bcp-6f));
    p = v_fma(p, s, v_set(0x1.ce2e30p-4f));
    p = v_fma(p, s, v_set(-0x1.812744p-2f));
    p = v_fma(p, s, v_set(0x1.06eba8p-3f));
    const vf small = v_fma(p, a, a);
    const vf u = v_sub(v_min(v_set(4.0f), a), one);
    vf g = v_set(-0x1.b46b6cp-21f);
    g = v_fma(g, u, v_set(0x1.b3cbaap-16f));
    g = v_fma(g, u, v_set(-0x1.37feacp-12f));
    g = v_fma(g, u, v_set(0x1.088808p-9f));
    g = v_fma(g, u, v_set(-0x1.494048p-7f));
    g = v_fma(g, u, v_set(0x1.547c16p-5f));
    g = v_fma(g, u, v_set(0x1.afabc2p-1f));
    g = v_fma(g, u, v_set(0x1.51c9b0p+1f));
    g = v_fma(g, u, v_set(0x1.d97fc0p+0f));
    const vf large = v_sub(one, v_exp(v_sub(v_set(0.0f), g)));
    return v_signed(v_select(v_less(a, v_set(0.92f)), small, large), x);
}

/* x / (1 + exp(s x)), s < 0: x times a logistic curve */
static inline vf v_logistic(vf x, vf minus_sx)
{
    return v_div(x, v_add(v_set(1.0f), v_exp(minus_sx)));
}

static inline vf v_act(weir_act act, vf x)
{
    switch (act) {
    case WEIR_ACT_GELU_ERF:
        return v_mul(v_mul(v_set(0.5f), x), v_add(v_set(1.0f), v_erf(v_mul(x, v_set(0x1.6a09e6p-1f)))));
    case WEIR_ACT_GELU_TANH: /* 0.5 (1 + tanh u) = 1 / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3) */
        return v_logistic(x, v_mul(x, v_fma(v_mul(x, x), v_set(-0.07135481627f), v_set(-1.59576912161f))));
    case WEIR_ACT_SILU:
        return v_logistic(x, v_sub(v_set(0.0f), x));
    case WEIR_ACT_QUICK_GELU:
        return v_logistic(x, v_mul(x, v_set(-1.702f)));
    case WEIR_ACT_RELU:
        return v_max(v_set(0.0f), x);
    case WEIR_ACT_RELU2:
        x = v_max(v_set(0.0f), x);
        return v_mul(x, x);
    case WEIR_ACT_IDENTITY:
        break;
    }
    return x;
}

#endif
