/* The loops of lib/lens/lanes.h, table by table: divergences of single terms against long double, places behind the
 * end, and counting. */
#include <math.h>
#include <stdio.h>

#include "run_kit.h"

#include "kernels/kernels.h"
#include "lens/lanes.h"

enum { P = WEIR_LENS_PIECE };

static const weir_lens_lanes *table_at(int i)
{
    const weir_kern *kern[8];
    return i < weir_kern_available(kern, 8) ? weir_lens_lanes_of(weir_kern_name(kern[i])) : NULL;
}

static void every_kernel_table_has_one(void **state)
{
    const weir_kern *kern[8];
    const int n = weir_kern_available(kern, 8);
    (void)state;
    for (int i = 0; i < n; i++)
        assert_string_equal(table_at(i)->name, weir_kern_name(kern[i]));
    assert_null(weir_lens_lanes_of("nothing"));
}

/* (p + q) g((p - q) / (p + q)) */
static long double jsd_term(long double p, long double q)
{
    const long double r = (p - q) / (p + q);
    const long double minus = r < 1 ? (1 - r) * log1pl(-r) : 0, plus = r > -1 ? (1 + r) * log1pl(r) : 0;
    return (p + q) * (minus + plus) / 2;
}

/* One term by itself, in lane 3: exactly half of all terms that a pair of distributions can have, from nearly equal to
 * 30 powers of ten apart. */
static void terms_of_the_jsd(void **state)
{
    (void)state;
    for (int t = 0; table_at(t); t++) {
        double worst = 0;
        for (int i = 0; i < 20000; i++) {
            _Alignas(64) float p[16] = {0}, q[16] = {0}, ln_p[16] = {0}, ln_q[16] = {0};
            p[3] = 0.25f;
            q[3] = 0.25f * expf(-powf(10, -3 + 5 * (float)i / 20000)); /* e^-0.001 to e^-100 */
            if (q[3] < 1e-37f)
                continue;
            ln_p[3] = logf(p[3]);
            ln_q[3] = (float)(logl(q[3])); /* known to 1e-7 of itself */
            const float got = table_at(t)->jsd(p, ln_p, q, ln_q, 16), back = table_at(t)->jsd(q, ln_q, p, ln_p, 16);
            const long double want = jsd_term(p[3], q[3]);
            assert_memory_equal(&got, &back, sizeof got);
            assert_true(got >= 0 && got <= (p[3] + q[3]) * 0x1.62e430p-1f * 1.0000002f);
            /* q is a float: r is exact to 6e-8 of p + q */
            const double error = fabs((double)((long double)got - want)) / ((double)want + 1e-6 * (double)sqrtl(want));
            worst = fmax(worst, error);
        }
        printf("  %-8s %.2e of the term\n", table_at(t)->name, worst);
        assert_true(worst < 2e-6);
        const float zero[16] = {0};
        assert_true(table_at(t)->jsd(zero, zero, zero, zero, 16) == 0);
    }
}

static void places_behind_the_end(void **state)
{
    static float x[P], next[P];
    static _Alignas(64) float p[P], ln_p[P];
    const weir_lens_softmax s = {2, 0.125f, 2.079f};
    (void)state;
    for (int i = 0; i < P; i++)
        x[i] = (float)(i % 13) / 4 - 1;
    for (int t = 0; table_at(t); t++)
        for (int n = 1; n < 40; n++) {
            double sum = 0;
            memset(p, 0x7f, sizeof p);
            memset(ln_p, 0x7f, sizeof ln_p);
            const float got = table_at(t)->softmax(p, ln_p, x, n, &s, next);
            const float again = table_at(t)->kl(p, ln_p, NULL, n);
            assert_memory_equal(&got, &again, sizeof got);
            for (int i = 0; i < n; i++) {
                assert_true(fabs((double)ln_p[i] - ((double)x[i] - 4.079)) < 1e-6);
                assert_true(fabs((double)p[i] - exp((double)x[i] - 2) / 8) < 1e-7);
                sum += (double)p[i] * (double)ln_p[i];
            }
            assert_true(fabs(sum - (double)got) < 1e-6 * n);
            for (int i = n; i % 16; i++)
                assert_true(p[i] == 0 && ln_p[i] == 0);
        }
}

static void counting(void **state)
{
    static float x[P];
    (void)state;
    for (int i = 0; i < P; i++)
        x[i] = i % 11 == 5 ? NAN : (float)(i * 37 % 101);
    for (int t = 0; table_at(t); t++)
        for (int n = 0; n < 70; n++) {
            int64_t count = 0, first = n;
            for (int i = n - 1; i >= 0; i--) {
                count += x[i] > 60;
                if (i >= n / 3 && x[i] > 60)
                    first = i;
            }
            assert_int_equal(table_at(t)->count_above(x, n, 60), count);
            assert_int_equal(table_at(t)->find_above(x, n / 3, n, 60), first);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_table_has_one),
        cmocka_unit_test(terms_of_the_jsd),
        cmocka_unit_test(places_behind_the_end),
        cmocka_unit_test(counting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
