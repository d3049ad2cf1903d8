/* Lossy floats: every half, and floats from everywhere, against models that look for the nearest value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "record/round.h"

enum { TABLES = 3, N = 1 << 16 };

static uint32_t next(uint32_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    return *s ^= *s << 5;
}

static float from_bits(uint32_t x)
{
    float f;
    memcpy(&f, &x, 4);
    return f;
}
static uint32_t to_bits(float f)
{
    uint32_t x;
    memcpy(&x, &f, 4);
    return x;
}

/* Runs f once with each table that this machine has. */
static void with_each_table(void (*f)(void))
{
    const weir_kern *all[TABLES];
    for (int i = 0, n = weir_kern_available(all, TABLES); i < n; i++) {
        setenv("WEIR_KERNEL", weir_kern_name(all[i]), 1);
        f();
    }
    unsetenv("WEIR_KERNEL");
}

/* --- halves */

/* What the bits mean, from the definition. */
static double half_value(uint16_t h)
{
    const int e = h >> 10 & 31, m = h & 0x3ff;
    const double x = e == 31 ? (double)(m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -x : x;
}

/* The nearest half by searching all of them; ties go to the even one. 65520 is half-way to the first that is not. */
static uint16_t nearest_half(float f)
{
    const uint16_t sign = signbit(f) ? 0x8000 : 0;
    const double x = fabs((double)f);
    if (isnan(f))
        return (uint16_t)(sign | 0x7e00 | (to_bits(f) >> 13 & 0x3ff));
    if (x >= 65520)
        return sign | 0x7c00;
    int lo = 0, hi = 0x7c00; /* lo's value <= x < hi's */
    while (hi - lo > 1) {
        const int mid = (lo + hi) / 2;
        if (half_value((uint16_t)mid) <= x)
            lo = mid;
        else
            hi = mid;
    }
    const double up = hi == 0x7c00 ? 65536 : half_value((uint16_t)hi), below = x - half_value((uint16_t)lo);
    const bool take_up = up - x < below || (up - x == below && hi % 2 == 0);
    return (uint16_t)(sign | (take_up ? hi : lo));
}

static void check_every_half(void)
{
    uint16_t *h = malloc(N * sizeof *h), *back = malloc(N * sizeof *back);
    float *x = malloc(N * sizeof *x);
    for (int i = 0; i < N; i++)
        h[i] = (uint16_t)i;
    weir_from_f16(x, h, N);
    weir_to_f16(back, x, N);
    for (int i = 0; i < N; i++) {
        const double want = half_value(h[i]);
        if (isnan(want)) {
            assert_int_equal(to_bits(x[i]), (uint32_t)(i & 0x8000) << 16 | 0x7fc00000 | (uint32_t)(i & 0x3ff) << 13);
            assert_int_equal(back[i], i | 0x200);
        } else {
            assert_true((double)x[i] == want && !signbit(x[i]) == !(i & 0x8000));
            assert_int_equal(back[i], i);
        }
    }
    free(h);
    free(back);
    free(x);
}

static void every_half_is_exact(void **state)
{
    (void)state;
    with_each_table(check_every_half);
}

/* Floats around every half and every middle between two, and anything else. */
static float *hard_floats(uint32_t seed)
{
    float *x = malloc(N * sizeof *x);
    for (int i = 0; i < N; i++) {
        const uint16_t h = (uint16_t)next(&seed);
        const float middle = (float)(half_value(h & 0x7fff) + half_value((uint16_t)((h & 0x7fff) + 1))) / 2;
        uint32_t bits = next(&seed);
        if (i % 4 == 1)
            bits = to_bits((float)half_value(h)) + next(&seed) % 3 - 1;
        else if (i % 4 == 2)
            bits = (to_bits(middle) + next(&seed) % 3 - 1) ^ (uint32_t)(h & 0x8000) << 16;
        else if (i % 4 == 3)
            bits = (bits & 0x807fffff) | (96 + next(&seed) % 56) << 23; /* within reach of a half */
        x[i] = from_bits(bits);
    }
    return x;
}

static void check_nearest_half(void)
{
    for (uint32_t seed = 1; seed < 4; seed++) {
        float *x = hard_floats(seed);
        uint16_t *h = malloc(N * sizeof *h);
        weir_to_f16(h, x, N);
        for (int i = 0; i < N; i++)
            assert_int_equal(h[i], nearest_half(x[i]));
        free(x);
        free(h);
    }
}

static void floats_become_the_nearest_half(void **state)
{
    (void)state;
    assert_int_equal(nearest_half(65519.996f), 0x7bff); /* the model itself */
    assert_int_equal(nearest_half(65520), 0x7c00);
    assert_int_equal(nearest_half(0x1p-25f), 0);
    assert_int_equal(nearest_half(0x1.8p-25f), 1);
    assert_int_equal(nearest_half(-1.00048828125f), 0xbc00);
    with_each_table(check_nearest_half);
}

/* --- mantissas */

/* By arithmetic: the distance between neighbours is 2^(exponent - bits), and rint breaks ties to even. */
static float nearest_short(float f, int bits)
{
    if (!isfinite(f) || f == 0)
        return f;
    int e;
    frexp((double)f, &e);
    e = e < -125 ? -125 : e; /* subnormals share their exponent */
    const double step = ldexp(1, e - 1 - bits);
    return (float)(rint((double)f / step) * step);
}

static void check_mantissas(void)
{
    float *x = hard_floats(77), *y = malloc(N * sizeof *y);
    x[0] = from_bits(0x7f800001); /* signalling, payload below what is kept */
    x[1] = from_bits(0xff800000);
    x[2] = from_bits(0x7f7fffff);
    x[3] = from_bits(0x80000001);
    for (int bits = 1; bits <= 22; bits++) {
        for (int i = 100; i < N; i += 3) /* ties and their neighbours */
            x[i] = from_bits((to_bits(x[i]) & ~UINT32_C(0) << (22 - bits)) + (uint32_t)(i / 3 % 3) - 1);
        weir_round_mantissa(y, x, N, bits);
        for (int i = 0; i < N; i++) {
            const uint32_t want = isnan(x[i]) ? to_bits(x[i]) : to_bits(nearest_short(x[i], bits));
            assert_int_equal(to_bits(y[i]), want);
        }
    }
    assert_int_equal(to_bits(y[2]), 0x7f800000);
    weir_round_mantissa(x, x, N, 22); /* in place */
    assert_memory_equal(x, y, N * sizeof *x);
    free(x);
    free(y);
}

static void mantissas_become_the_nearest(void **state)
{
    (void)state;
    with_each_table(check_mantissas);
}

/* --- odd lengths touch nothing else */
static void check_lengths(void)
{
    float x[40], y[41];
    uint16_t h[41];
    for (int i = 0; i < 40; i++)
        x[i] = (float)i * 1.37f;
    for (int n = 0; n <= 40; n++) {
        memset(y, 0xa5, sizeof y);
        memset(h, 0xa5, sizeof h);
        weir_round_mantissa(y, x, n, 7);
        weir_to_f16(h, x, n);
        for (int i = 0; i < n; i++) {
            assert_true(y[i] == nearest_short(x[i], 7));
            assert_int_equal(h[i], nearest_half(x[i]));
        }
        assert_int_equal(to_bits(y[n]), 0xa5a5a5a5);
        assert_int_equal(h[n], 0xa5a5);
    }
}

static void any_length(void **state)
{
    (void)state;
    with_each_table(check_lengths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_is_exact),
        cmocka_unit_test(floats_become_the_nearest_half),
        cmocka_unit_test(mantissas_become_the_nearest),
        cmocka_unit_test(any_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
