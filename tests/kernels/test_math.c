/* test_math: the library's own exp, tanh, erf, activations, sin, cos and log against the long double ones, in units of
 * the last place, and their values where formulas break: infinities, NaN, signed zeros, subnormal results, overflow. */
#include "check.h"

#include "kernels/vec_ref.h"

#include "kernels/math_impl.h"

static float one(vf (*f)(vf), float x)
{
    return f(v_set(x)).f[0];
}

/* |got - exact| in units of the last place of exact as a float (of the smallest normal one below it). */
static double ulps(float got, long double exact)
{
    if (isnan(exact))
        return isnan(got) ? 0 : INFINITY;
    if (fabsl(exact) > 0x1.fffffffp127L) /* rounds to infinity */
        return isinf(got) && (got > 0) == (exact > 0) ? 0 : fabsl(exact) < 0x1.0000002p128L ? 1 : INFINITY;
    int e = exact == 0 ? -126 : ilogbl(exact);
    if (e < -126)
        e = -126;
    return (double)(fabsl((long double)got - exact) / ldexpl(1.0L, e - 23));
}

typedef struct range {
    float lo, hi;
} range;

/* The worst of about 400 000 floats spread evenly over the bit patterns of the range, and of as many spread evenly over
 * its values. */
static double worst(vf (*f)(vf), long double (*exact)(long double), range r)
{
    double w = 0;
    enum { N = 400000 };
    for (int i = 0; i <= N; i++) {
        const float even = r.lo + (r.hi - r.lo) * (float)i / (float)N;
        const float size = from_bits((uint32_t)((double)to_bits(fabsf(r.hi)) * i / N));
        const float bits = i % 2 && r.lo < 0 ? -size : size;
        const double a = ulps(one(f, even), exact(even)), b = ulps(one(f, bits), exact(bits));
        w = fmax(w, fmax(a, b));
    }
    return w;
}

static void helper_notices(void **state)
{
    (void)state;
    assert_true(ulps(1.0f, 1.0L) == 0);
    assert_true(ulps(nextafterf(1.0f, 2), 1.0L) == 1);
    assert_true(ulps(NAN, 1.0L) > 1 || isnan(ulps(NAN, 1.0L)));
    assert_true(isinf(ulps(1.0f, NAN)));
    assert_true(ulps(INFINITY, 1e30L) > 100);
    assert_true(ulps(1e30f, 1e60L) > 100);
}

#define WITHIN(bound, value)                                                                                           \
    do {                                                                                                               \
        const double v_ = (value);                                                                                     \
        printf("  %-45s %.3f ulp (at most %.2f)\n", #value, v_, (double)bound);                                        \
        assert_true(v_ <= (bound));                                                                                    \
    } while (0)

static void accuracy(void **state)
{
    (void)state;
    WITHIN(1.0, worst(v_exp, expl, (range){-104, 89}));
    WITHIN(2.0, worst(v_tanh, tanhl, (range){-12, 12}));
    WITHIN(2.0, worst(v_erf, erfl, (range){-5, 5}));
}

/* --- activations: the error relative to |x| (the scale on which an MLP's hidden layer lives) */
static vf gelu_erf(vf x)
{
    return v_act(WEIR_ACT_GELU_ERF, x);
}
static vf gelu_tanh(vf x)
{
    return v_act(WEIR_ACT_GELU_TANH, x);
}
static vf silu(vf x)
{
    return v_act(WEIR_ACT_SILU, x);
}
static vf quick_gelu(vf x)
{
    return v_act(WEIR_ACT_QUICK_GELU, x);
}
static long double gelu_erf_l(long double x)
{
    return 0.5L * x * (1 + erfl(x * sqrtl(0.5L)));
}
static long double gelu_tanh_l(long double x)
{
    return 0.5L * x * (1 + tanhl(sqrtl(2 / acosl(-1.0L)) * (x + 0.044715L * x * x * x)));
}
static long double silu_l(long double x)
{
    return x / (1 + expl(-x));
}
static long double quick_gelu_l(long double x)
{
    return x / (1 + expl(-1.702L * x));
}

static double worst_relative(vf (*f)(vf), long double (*exact)(long double))
{
    double w = 0;
    for (int i = -200000; i <= 200000; i++) {
        const float x = (float)i * 1e-4f;
        if (i)
            w = fmax(w, fabs((double)(((long double)one(f, x) - exact(x)) / (long double)x)));
    }
    return w;
}

static void activations(void **state)
{
    (void)state;
    assert_true(worst_relative(gelu_erf, gelu_erf_l) < 2e-7);
    assert_true(worst_relative(gelu_tanh, gelu_tanh_l) < 2e-7);
    assert_true(worst_relative(silu, silu_l) < 2e-7);
    assert_true(worst_relative(quick_gelu, quick_gelu_l) < 2e-7);
    assert_true(worst_relative(silu, quick_gelu_l) > 1e-3); /* the measure notices a wrong function */
}

static void corners(void **state)
{
    (void)state;
    assert_true(one(v_exp, 0.0f) == 1.0f && one(v_exp, -0.0f) == 1.0f);
    assert_true(one(v_exp, INFINITY) == INFINITY && one(v_exp, 89.5f) == INFINITY && one(v_exp, 3e38f) == INFINITY);
    assert_int_equal(to_bits(one(v_exp, -INFINITY)), 0);
    assert_int_equal(to_bits(one(v_exp, -104.5f)), 0);
    assert_int_equal(to_bits(one(v_exp, -103.5f)), 1);
    assert_int_equal(to_bits(one(v_exp, 1e-40f)), to_bits(1.0f));
    assert_true(isnan(one(v_exp, NAN)));
    vf (*const odd[2])(vf) = {v_tanh, v_erf};
    for (int i = 0; i < 2; i++) {
        assert_true(one(odd[i], INFINITY) == 1.0f && one(odd[i], -INFINITY) == -1.0f);
        assert_int_equal(to_bits(one(odd[i], 0.0f)), 0);
        assert_int_equal(to_bits(one(odd[i], -0.0f)), 0x80000000u);
        assert_true(isnan(one(odd[i], NAN)) && isnan(one(odd[i], -NAN)));
        assert_true(one(odd[i], 1e30f) == 1.0f);
    }
    assert_int_equal(to_bits(one(v_tanh, 1e-40f)), to_bits(1e-40f));
    assert_true(isnan(v_act(WEIR_ACT_RELU, v_set(NAN)).f[0]));
    assert_true(one(silu, INFINITY) == INFINITY && one(gelu_tanh, INFINITY) == INFINITY &&
                one(gelu_erf, INFINITY) == INFINITY);
}

/* --- tables of cosines and sines; logarithm */
static void rope_table(void **state)
{
    (void)state;
    /* One pair a row, so that inv_freq is the angle of position 1. */
    double w = 0;
    for (int i = 0; i < 200000; i++) {
        const float angle = i < 100000 ? (float)i * 1e-3f : (float)(rng() % 1000000) + (float)(rng() >> 8) * 0x1p-24f;
        const float freq[1] = {rng() & 1 ? angle : -angle};
        float cs[4];
        weir_rope_table(cs, 2, 2, freq, 1.0f);
        assert_true(cs[0] == 1.0f && cs[1] == 0.0f);
        w = fmax(w, fmax(ulps(cs[2], cosl(freq[0])), ulps(cs[3], sinl(freq[0]))));
    }
    printf("  sin, cos up to 1e6: %.3f ulp\n", w);
    assert_true(w <= 0.51);
    const float freq[3] = {0.1f, 1.0f, INFINITY};
    float cs[12];
    weir_rope_table(cs, 2, 6, freq, 0.5f);
    assert_true(cs[0] == 0.5f && cs[6] == (float)cosl(0.1f) * 0.5f && isnan(cs[8]) && isnan(cs[11]));
}

static void logarithm(void **state)
{
    (void)state;
    for (int i = 0; i < 100000; i++) {
        const double x = ldexp(1 + (double)rng() * 0x1p-32, (int)pick(-120, 127));
        assert_true(fabsl((long double)weir_natural_log(x) - logl(x)) <= 0x1p-50L * fmaxl(fabsl(logl(x)), 0x1p-3L));
    }
    assert_true(weir_natural_log(1.0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(helper_notices), cmocka_unit_test(accuracy),   cmocka_unit_test(activations),
        cmocka_unit_test(corners),        cmocka_unit_test(rope_table), cmocka_unit_test(logarithm),
        cmocka_unit_test(helpers_notice),
    };
    (void)every_table_ran; /* the formulas are the same source in every table: test_ops compares the tables */
    return cmocka_run_group_tests(tests, find_tables, NULL);
}
