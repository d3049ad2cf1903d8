/* Sums of powers: against school arithmetic bit for bit, in every table, any order and any cut; and the moments made of
 * them against two passes over the values. */
#include "moments_kit.h"

#include <stdio.h>

enum { NB = 64, GUARD = 3 };

/* --- single values, from every corner */

static void definition(weir_sums *want, const float *x, int64_t n)
{
    memset(want, 0, sizeof *want);
    kit_sum sum[4] = {{{0}}};
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(x[i]) && fabsf(x[i]) >= 0x1p24f)
            want->beyond++;
        else
            for (int p = 0; p < 4; p++)
                kit_add(&sum[p], x[i], p + 1);
    }
    for (int p = 0; p < 4; p++)
        want->power[p] = kit_wide(&sum[p]);
}

static void check_value(float x)
{
    static const int32_t row[1] = {0};
    kit_table table[3];
    weir_sums want;
    definition(&want, &x, 1);
    for (int k = 0, n = kit_tables(table); k < n; k++) {
        weir_sums got = {{{{0}}}, 0};
        table[k].moments(&got, &x, 1, row, 1, 1);
        if (memcmp(&got, &want, sizeof got))
            fail_msg("%s: powers of %a differ", table[k].name, (double)x);
    }
}

static void each_power_is_what_the_definition_says(void **state)
{
    (void)state;
    static const float edge[] = {0x1p-149f, 0x1p-126f, 0x1p-73f, 0x1p-41f, 0x1p-25f, 0x1p-24f, 0x1p-20f,
                                 0x1p-16f,  1,         0x1p4f,   0x1p8f,   0x1p24f,  0x1p127f, 0x1.fffffep127f};
    for (size_t i = 0; i < sizeof edge / sizeof edge[0]; i++) {
        uint32_t bits;
        memcpy(&bits, &edge[i], 4);
        for (uint32_t near = bits - (bits > 1) - (bits > 2); near != bits + 3; near++) {
            check_value(kit_float(near));
            check_value(kit_float(near | UINT32_C(1) << 31));
        }
    }
    for (int e = 0; e < 255; e++) /* each exponent, with all bits of the mantissa and with its lowest */
        for (uint32_t m = 1; m < 0x800000; m += 0x7ffffe)
            check_value(kit_float((uint32_t)e << 23 | m));
    uint32_t seed = 5;
    for (int i = 0; i < 20000; i++)
        check_value(kit_wild(&seed));
    check_value(0);
    check_value(-0.0f);
    check_value(NAN);
    check_value(-INFINITY);
}

static void the_definition_itself(void **state)
{
    (void)state;
    weir_sums s;
    const float x[] = {-1.5f, 2};
    definition(&s, x, 2);
    assert_true(weir_wide_to_double(&s.power[0]) == 0.5);
    assert_true(weir_wide_to_double(&s.power[1]) == 6.25);
    assert_true(weir_wide_to_double(&s.power[2]) == 8 - 3.375);
    assert_true(weir_wide_to_double(&s.power[3]) == 16 + 5.0625);
    assert_true(s.power[3].w[3] == 21 && s.power[3].w[2] == UINT64_C(1) << 60 && s.power[3].w[1] == 0);
    const float half[] = {-0x1p-97f + 0x1p-120f, 0x1p-149f, 0x1p-64f, 0x1.000002p-48f}; /* around half a unit */
    definition(&s, half, 1);
    assert_true(s.power[1].w[0] == 0); /* just below 2^-194 */
    const float more[] = {-0x1.6a09e8p-97f, 0x1p-65f, -0x1p-65f};
    definition(&s, more, 1);
    assert_true(s.power[1].w[0] == 1); /* just above 2^-193 */
    definition(&s, more + 1, 1);
    assert_true(s.power[2].w[0] == 0); /* 2^-195 */
    const float tie = -0x1.428a3p-65f; /* cubed just above half: away from zero is -1 */
    definition(&s, &tie, 1);
    assert_true(s.power[2].w[0] == (cbrt(0.5) * 0x1p-64 < -(double)tie ? UINT64_MAX : 0));
}

static void comparison_sees_the_lowest_bit(void **state)
{
    (void)state;
    float x[2] = {3.25f, 0x1.fffffep7f}, y[2] = {3.25f, 0x1.fffffcp7f};
    weir_sums a, b;
    definition(&a, x, 2);
    definition(&b, y, 2);
    for (int p = 0; p < 4; p++)
        assert_memory_not_equal(&a.power[p], &b.power[p], sizeof a.power[p]);
}

/* --- many values */

typedef struct field {
    float *x;
    int64_t stride, m;
    int32_t *row;
} field;

static field make(int64_t m, float (*value)(uint32_t *), uint32_t seed)
{
    field f = {.stride = NB + 5, .m = m};
    f.x = malloc((size_t)((m + 1) * f.stride) * sizeof *f.x);
    f.row = malloc((size_t)(m + 1) * sizeof *f.row);
    for (int64_t i = 0; i < (m + 1) * f.stride; i++)
        f.x[i] = value(&seed);
    for (int64_t r = 0; r < m; r++)
        f.row[r] = (int32_t)(kit_next(&seed) % (uint32_t)m);
    return f;
}

static void drop(field *f)
{
    free(f->x);
    free(f->row);
}

static void tables_agree(const field *f, int64_t nb)
{
    kit_table table[3];
    weir_sums want[NB + GUARD], got[NB + GUARD];
    memset(want, 0x5a, sizeof want);
    weir_moments_ref(want, f->x + 1, f->stride, f->row, f->m, nb);
    for (int k = 1, n = kit_tables(table); k < n; k++) {
        memset(got, 0x5a, sizeof got);
        table[k].moments(got, f->x + 1, f->stride, f->row, f->m, nb);
        if (memcmp(got, want, sizeof got))
            fail_msg("%s: %d units of %d rows differ", table[k].name, (int)nb, (int)f->m);
    }
}

static void every_table_has_the_same_sums(void **state)
{
    (void)state;
    static const int64_t rows[] = {0, 1, 2, 63, 64, 65, 127, 128, 511, 512, 513};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int wild = 0; wild < 2; wild++) {
            field f = make(rows[i], wild ? kit_wild : kit_gauss, (uint32_t)i + 9);
            for (int64_t nb = 1; nb <= NB; nb += rows[i] > 2 ? 21 : 1)
                tables_agree(&f, nb);
            tables_agree(&f, 8);
            tables_agree(&f, 16);
            drop(&f);
        }
}

static float largest(uint32_t *s)
{
    (void)s;
    return 0x1.fffffep7f;
}
static float lowest(uint32_t *s)
{
    (void)s;
    return -0x1.fffffep7f;
}
static float smallest(uint32_t *s)
{
    return kit_next(s) & 1 ? 0x1.fffffep-20f : -0x1.000002p-20f;
}
static float middle(uint32_t *s)
{
    (void)s;
    return 0x1.6a09e4p-14f; /* squared, just under half of the upper limb's unit: the largest rest */
}

static void limbs_hold_any_number_of_rows(void **state)
{
    (void)state;
    float (*const extreme[])(uint32_t *) = {largest, lowest, smallest, middle, kit_gauss};
    for (int i = 0; i < 5; i++)
        for (int64_t m = 2047; m < 7000; m = m == 2047 ? 2049 : m * 2 + 1) {
            field f = make(m, extreme[i], 3);
            tables_agree(&f, 9);
            drop(&f);
        }
}

static void shuffle(int32_t *row, int64_t m, uint32_t *seed)
{
    for (int64_t r = m - 1; r > 0; r--) {
        const int64_t o = kit_next(seed) % (uint32_t)(r + 1);
        const int32_t t = row[r];
        row[r] = row[o];
        row[o] = t;
    }
}

/* Shuffled, cut into parts of any length with any kernel, the parts merged from the last to the first. */
static void no_order_and_no_cut_is_seen(void **state)
{
    (void)state;
    enum { M = 700, PARTS = 40 };
    kit_table table[3];
    const int n = kit_tables(table);
    uint32_t seed = 77;
    field f = make(M, kit_wild, 21);
    weir_sums want[NB] = {{{{{0}}}, 0}};
    table[n - 1].moments(want, f.x, f.stride, f.row, M, NB);
    for (int turn = 0; turn < 20; turn++) {
        weir_sums part[PARTS][NB], all[NB];
        memset(part, 0, sizeof part);
        memset(all, 0, sizeof all);
        shuffle(f.row, M, &seed);
        for (int64_t r = 0, p = 0; r < M; p++) {
            int64_t left = kit_next(&seed) % 100;
            left = left < M - r ? left : M - r;
            table[kit_next(&seed) % (uint32_t)n].moments(part[p % PARTS], f.x, f.stride, f.row + r, left, NB);
            r += left;
        }
        for (int p = PARTS - 1; p >= 0; p--)
            for (int j = 0; j < NB; j++)
                weir_sums_merge(&all[j], &part[p][j]);
        assert_memory_equal(all, want, sizeof want);
    }
    f.x[f.row[0] * f.stride] = 2.5f; /* and another value is seen */
    weir_sums other[NB] = {{{{{0}}}, 0}};
    table[n - 1].moments(other, f.x, f.stride, f.row, M, NB);
    assert_memory_not_equal(other, want, sizeof want);
    drop(&f);
}

/* --- wide numbers */

static weir_wide wide_of(double x)
{
    weir_wide w = {{0}};
    weir_wide_add_double(&w, x);
    return w;
}

static void doubles_go_in_and_out(void **state)
{
    (void)state;
    static const double exact[] = {
        0, 1, -1, 0.1, -0x1.fffffep127, 0x1p-149, -0x1p-192, 12345.678, 0x1.fffffffffffffp100};
    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++) {
        const weir_wide w = wide_of(exact[i]);
        assert_true(weir_wide_to_double(&w) == exact[i]);
    }
    const weir_wide half = wide_of(0x1p-193), less = wide_of(-0x1.fffffffffffffp-194), none = wide_of(0x1p-300);
    assert_true(weir_wide_to_double(&half) == 0x1p-192);
    assert_true(weir_wide_to_double(&less) == 0 && weir_wide_to_double(&none) == 0);
    for (int negative = 0; negative < 2; negative++) { /* to nearest, ties to even, whatever stands below */
        const double sign = negative ? -1 : 1;
        weir_wide w = wide_of(sign * 0x1p60);
        weir_wide_add_double(&w, sign * 0x1p7);
        assert_true(weir_wide_to_double(&w) == sign * 0x1p60);
        weir_wide_add_double(&w, sign * 0x1p-192);
        assert_true(weir_wide_to_double(&w) == sign * (0x1p60 + 0x1p8));
        weir_wide_add_double(&w, sign * 0x1p8);
        weir_wide_add_double(&w, sign * -0x1p-192);
        assert_true(weir_wide_to_double(&w) == sign * (0x1p60 + 0x1p9));
    }
    weir_wide a = wide_of(-3.5), b = wide_of(0x1p-192);
    weir_wide_sub(&a, &b);
    weir_wide_add(&a, &b);
    b = wide_of(-3.5);
    assert_memory_equal(&a, &b, sizeof a);
    weir_wide_sub(&a, &b);
    assert_true(weir_wide_to_double(&a) == 0);
}

/* --- moments */

typedef struct moments {
    double mean, sd, skew, kurtosis;
} moments;

static moments finish(const float *x, int64_t n)
{
    weir_sums s = {{{{0}}}, 0};
    int32_t *row = calloc((size_t)n + 1, sizeof *row);
    for (int64_t r = 0; r < n; r++)
        row[r] = (int32_t)r;
    weir_moments_ref(&s, x, 1, row, n, 1);
    free(row);
    moments m;
    weir_sums_finish(&s, n, &m.mean, &m.sd, &m.skew, &m.kurtosis);
    return m;
}

/* Two passes in long double, the mean put right by what the second finds. */
static moments two_passes(const float *x, int64_t n)
{
    long double sum = 0, rest = 0, m2 = 0, m3 = 0, m4 = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (long double)x[i];
    for (int64_t i = 0; i < n; i++)
        rest += (long double)x[i] - sum / (long double)n;
    const long double mean = sum / (long double)n + rest / (long double)n;
    for (int64_t i = 0; i < n; i++) {
        const long double d = (long double)x[i] - mean;
        m2 += d * d;
        m3 += d * d * d;
        m4 += d * d * d * d;
    }
    m2 /= (long double)n;
    m3 /= (long double)n;
    m4 /= (long double)n;
    return (moments){(double)mean, (double)sqrtl(m2), (double)(m3 / (m2 * sqrtl(m2))), (double)(m4 / (m2 * m2))};
}

static bool near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fabs(b);
}

static bool same_moments(moments a, moments b)
{
    return near(a.mean, b.mean, 1e-12) && near(a.sd, b.sd, 1e-12) && near(a.skew, b.skew, 1e-12) &&
           near(a.kurtosis, b.kurtosis, 1e-12);
}

static void moments_are_those_of_two_passes(void **state)
{
    (void)state;
    enum { N = 5000 };
    float *x = malloc(N * sizeof *x);
    uint32_t seed = 31;
    int checked = 0;
    for (double sd = 1e-4; sd < 2e4; sd *= 10)
        for (double ratio = -1000; ratio <= 1000; ratio += 250)
            for (int64_t n = 3; n <= N; n = n * 3 + 7) {
                if (sd * fabs(ratio) > 0x1p23)
                    continue;
                for (int64_t i = 0; i < n; i++) { /* a lopsided distribution */
                    const float g = kit_gauss(&seed);
                    x[i] = (float)(sd * ((double)(g * g + g) + ratio));
                }
                if (!same_moments(finish(x, n), two_passes(x, n)))
                    fail_msg("n %d, sd %g, mean %g sd: off", (int)n, sd, ratio);
                checked++;
            }
    assert_true(checked > 500);
    moments a = finish(x, 100), b = two_passes(x, 100);
    b.kurtosis *= 1 + 1e-11;
    assert_true(!same_moments(a, b)); /* the comparison can fail */
    free(x);
}

static void moments_that_have_no_meaning_are_nan(void **state)
{
    (void)state;
    moments m = finish(NULL, 0);
    assert_true(isnan(m.mean) && isnan(m.sd) && isnan(m.skew) && isnan(m.kurtosis));
    const float same[] = {0.1f, 0.1f, 0.1f};
    m = finish(same, 3);
    assert_true(m.mean == (double)0.1f && m.sd == 0 && isnan(m.skew) && isnan(m.kurtosis));
    m = finish(same, 1);
    assert_true(m.mean == (double)0.1f && m.sd == 0 && isnan(m.skew));
    const float far[] = {1, -0x1p24f};
    m = finish(far, 2);
    assert_true(isnan(m.mean) && isnan(m.sd) && isnan(m.skew) && isnan(m.kurtosis));
    const float large[] = {0x1.fffffep23f, -0x1.fffffep23f, 0, 0};
    m = finish(large, 4);
    assert_true(m.mean == 0 && m.skew == 0 && m.kurtosis == 2);
    const float tiny[] = {0x1p-39f, -0x1p-39f}, small[] = {0x1p-38f, -0x1p-38f};
    m = finish(tiny, 2);
    assert_true(m.sd == 0x1p-39 && isnan(m.skew) && isnan(m.kurtosis));
    m = finish(small, 2);
    assert_true(m.sd == 0x1p-38 && m.skew == 0 && m.kurtosis == 1);
    const float subnormal[] = {0x1p-149f, 0x1p-149f, 0x1p-148f};
    m = finish(subnormal, 3);
    assert_true(m.mean == 0x1p-147 / 3 && isnan(m.skew));
}

/* As if 2^61 values had been seen: nothing overflows. */
static void sums_have_room_for_any_text(void **state)
{
    (void)state;
    weir_sums s = {{{{0}}}, 0};
    const float x[] = {0x1.fffffep23f, 0x1.fffffep23f, -0x1.fffffep23f, -0x1.fffffep23f, 0x1.fffffep23f, 1, 0, -7};
    static const int32_t row[] = {0, 1, 2, 3, 4, 5, 6, 7};
    moments a, b;
    weir_moments_ref(&s, x, 1, row, 8, 1);
    weir_sums_finish(&s, 8, &a.mean, &a.sd, &a.skew, &a.kurtosis);
    for (int i = 0; i < 58; i++) {
        const weir_sums copy = s;
        weir_sums_merge(&s, &copy);
    }
    weir_sums_finish(&s, INT64_C(1) << 61, &b.mean, &b.sd, &b.skew, &b.kurtosis);
    assert_true(near(a.mean, b.mean, 1e-15) && near(a.sd, b.sd, 1e-15) && near(a.skew, b.skew, 1e-15) &&
                near(a.kurtosis, b.kurtosis, 1e-15));
    assert_true(near(a.kurtosis, two_passes(x, 8).kurtosis, 1e-14));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_definition_itself),
        cmocka_unit_test(comparison_sees_the_lowest_bit),
        cmocka_unit_test(each_power_is_what_the_definition_says),
        cmocka_unit_test(every_table_has_the_same_sums),
        cmocka_unit_test(limbs_hold_any_number_of_rows),
        cmocka_unit_test(no_order_and_no_cut_is_seen),
        cmocka_unit_test(doubles_go_in_and_out),
        cmocka_unit_test(moments_are_those_of_two_passes),
        cmocka_unit_test(moments_that_have_no_meaning_are_nan),
        cmocka_unit_test(sums_have_room_for_any_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
