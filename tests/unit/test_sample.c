/* Sampling against brute force: sorted lists and sums in long double. tests/cli/test_sample.py does it again in numpy,
 * and tests/conformance/test_generate.py with transformers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <weir/sample.h>

enum { MOST = 64 };

static uint32_t random32(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static float uniform(uint64_t *state, float low, float high)
{
    return low + (high - low) * (float)random32(state) / 2147483648.0f;
}

/* --- brute force */

/* Ids by falling score, equal ones by rising id. */
static void order_of(const float *x, int v, int *id)
{
    for (int i = 0; i < v; i++) {
        int at = i;
        for (; at > 0 && x[id[at - 1]] < x[i]; at--)
            id[at] = id[at - 1];
        id[at] = i;
    }
}

static long double weight(const float *x, int i, float top)
{
    return x[i] == -INFINITY ? 0 : expl((long double)x[i] - top);
}

static void by_hand(const weir_sampling *o, const float *logits, int v, const int32_t *ids, int n, float *x)
{
    int id[MOST];
    memcpy(x, logits, sizeof *x * (size_t)v);
    for (int i = 0; i < v; i++) {
        bool seen = false;
        for (int k = 0; k < n; k++)
            seen = seen || ids[k] == i;
        if (seen && o->repetition_penalty != 1)
            x[i] = x[i] < 0 ? x[i] * o->repetition_penalty : x[i] / o->repetition_penalty;
    }
    if (o->temperature == 0)
        return;
    for (int i = 0; i < v; i++)
        x[i] /= o->temperature;
    order_of(x, v, id);
    const float top = x[id[0]];
    if (o->top_k && o->top_k < v) {
        float least = x[id[o->top_k - 1]];
        for (int i = 0; i < v; i++)
            x[i] = x[i] < least ? -INFINITY : x[i];
    }
    long double sum = 0, before = 0;
    for (int i = 0; i < v; i++)
        sum += weight(x, i, top);
    for (int k = 0; k < v && o->top_p < 1; k++) {
        long double w = weight(x, id[k], top);
        if (before >= o->top_p * sum)
            x[id[k]] = -INFINITY;
        before += w;
    }
    for (int i = 0; i < v && o->min_p > 0; i++)
        if (weight(x, i, top) < o->min_p)
            x[i] = -INFINITY;
}

static int differs(const float *a, const float *b, int v)
{
    for (int i = 0; i < v; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            return i;
    return -1;
}

static weir_sampler *make(const weir_sampling *o, int v)
{
    weir_err err = {0};
    weir_sampler *s = NULL;
    assert_int_equal(weir_sampler_new(&s, v, o, &err), WEIR_OK);
    return s;
}

/* --- tests */

static void test_rules(void **state)
{
    static const float temperature[] = {0, 0.5f, 1, 2.5f}, top_p[] = {1, 0.93f, 0.3f}, min_p[] = {0, 0.02f, 0.7f},
                       penalty[] = {1, 1.25f, 0.6f};
    static const int64_t top_k[] = {0, 1, 6, 1000};
    uint64_t seed = 1;
    (void)state;
    for (int c = 0; c < 4 * 4 * 3 * 3 * 3; c++) {
        float logits[MOST], want[MOST], got[MOST];
        int32_t ids[5];
        int v = 1 + (int)(random32(&seed) % MOST);
        weir_err err = {0};
        const weir_sampling o = {.temperature = temperature[c % 4],
                                 .top_k = top_k[c / 4 % 4],
                                 .top_p = top_p[c / 16 % 3],
                                 .min_p = min_p[c / 48 % 3],
                                 .repetition_penalty = penalty[c / 144 % 3]};
        for (int i = 0; i < v; i++)
            logits[i] = c % 5 ? uniform(&seed, -6, 6) : (float)(random32(&seed) % 4); /* ties in every fifth */
        for (int i = 0; i < 5; i++)
            ids[i] = (int32_t)(random32(&seed) % (uint32_t)v);
        weir_sampler *s = make(&o, v);
        assert_int_equal(weir_sampler_scores(s, logits, ids, 5, got, &err), WEIR_OK);
        by_hand(&o, logits, v, ids, 5, want);
        if (differs(got, want, v) >= 0)
            fail_msg("case %d, token %d", c, differs(got, want, v));
        weir_sampler_free(s);
    }
}

static void test_comparison_can_fail(void **state)
{
    const float a[2] = {0.0f, 1.0f}, b[2] = {-0.0f, 1.0f};
    (void)state;
    assert_int_equal(differs(a, a, 2), -1);
    assert_int_equal(differs(a, b, 2), 0);
}

/* What is drawn is among what stays, and each of it is drawn. */
static void test_draws(void **state)
{
    const float logits[6] = {0, 1, -1, 0.5f, 3, -9};
    weir_sampling o;
    weir_err err = {0};
    int32_t id, drawn[6] = {0};
    (void)state;
    weir_sampling_init(&o);
    o.temperature = 1.5f;
    o.top_k = 4;
    o.seed = 3;
    weir_sampler *s = make(&o, 6);
    for (uint64_t step = 0; step < 500; step++) {
        assert_int_equal(weir_sampler_next(s, logits, NULL, 0, 0, step, &id, &err), WEIR_OK);
        drawn[id]++;
    }
    assert_true(drawn[0] > 20 && drawn[1] > 50 && drawn[3] > 30 && drawn[4] > 200);
    assert_int_equal(drawn[2] + drawn[5], 0);
    weir_sampler_free(s);
}

/* The draws of one seed, written down: they must stay what they are. */
static void test_draws_stay(void **state)
{
    static const int32_t want[8] = {425, 267, 994, 934, 418, 794, 968, 316};
    float logits[1000] = {0};
    weir_sampling o;
    weir_err err = {0};
    int32_t id;
    (void)state;
    weir_sampling_init(&o);
    o.temperature = 1;
    o.seed = 20240229;
    weir_sampler *s = make(&o, 1000);
    for (uint64_t k = 0; k < 8; k++) {
        assert_int_equal(weir_sampler_next(s, logits, NULL, 0, k / 4, k % 4, &id, &err), WEIR_OK);
        assert_int_equal(id, want[k]);
    }
    weir_sampler_free(s);
}

/* Scores that the temperature or the penalty moves beyond float are the highest or lowest, and some token is drawn. */
static void test_overflow(void **state)
{
    (void)state;
    const float low[4] = {-3e38f, -2e38f, -INFINITY, -1e38f}, high[4] = {1e38f, -1e38f, -INFINITY, 3e38f};
    const int32_t all[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++) {
        weir_sampling o;
        weir_sampler *s;
        weir_err err;
        float x[4];
        int32_t id = -1;
        weir_sampling_init(&o);
        o.temperature = i & 1 ? 1e-6f : 0.5f;
        o.repetition_penalty = i & 2 ? 1e6f : 1e-6f;
        assert_int_equal(weir_sampler_new(&s, 4, &o, &err), WEIR_OK);
        for (int k = 0; k < 2; k++) {
            const float *logits = k ? high : low;
            assert_int_equal(weir_sampler_scores(s, logits, all, 4, x, &err), WEIR_OK);
            assert_true(isfinite(x[0]) && isfinite(x[1]) && x[2] == -INFINITY && isfinite(x[3]));
            assert_int_equal(weir_sampler_next(s, logits, all, 4, 0, 5, &id, &err), WEIR_OK);
            assert_true(id == 0 || id == 1 || id == 3);
        }
        weir_sampler_free(s);
    }
}

static void test_errors(void **state)
{
    weir_sampling o;
    weir_err err = {0};
    weir_sampler *s;
    const float bad[3] = {0, NAN, 1};
    int32_t id;
    (void)state;
    weir_sampling_init(&o);
    assert_int_equal(weir_sampler_new(&s, 0, &o, &err), WEIR_E_ARG);
    assert_null(s);
    s = make(&o, 3);
    err = (weir_err){0};
    assert_int_equal(weir_sampler_next(s, bad, NULL, 0, 0, 0, &id, &err), WEIR_E_ARG);
    assert_string_equal(err.msg, "the logit of token 1 is not a number: no token can be chosen");
    weir_sampler_free(s);
    weir_sampler_free(NULL);
    o.top_p = 0;
    err = (weir_err){0};
    assert_int_equal(weir_sampling_check(&o, &err), WEIR_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules), cmocka_unit_test(test_comparison_can_fail),
                                       cmocka_unit_test(test_draws), cmocka_unit_test(test_draws_stay),
                                       cmocka_unit_test(test_overflow), cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
