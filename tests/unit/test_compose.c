/* Composition scores against the paper's own formulas: whole matrices [C,C] in double, made of the vectors of heads and
 * neurons that weir/weights.h gives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/compose.h>

#include "run_kit.h"
#include "support/said.h"

enum { UNITS = 3, MOST = 16 };

static const char *const files[] = {KIT_GPT2, KIT_LLAMA, KIT_LLAMA3, KIT_MISTRAL, KIT_NEOX, KIT_GEMMA, KIT_QWEN3};
enum { FILES = sizeof files / sizeof *files };

/* --- whole matrices [C,C] */

static float *head_rows(const weir_model *m, int64_t layer, weir_head_matrix which, int64_t head)
{
    const weir_model_info *i = weir_model_info_of(m);
    const bool shared = which == WEIR_WEIGHTS_K || which == WEIR_WEIGHTS_V;
    weir_err err = {0};
    float *w = malloc((size_t)(i->D * i->C) * sizeof *w);
    assert_non_null(w);
    kit_ok(weir_weights_head(m, layer, which, shared ? head * i->K / i->H : head, w, &err), &err);
    return w;
}

/* a^T b of two heads' rows: W_QK = Q^T K, W_OV = O^T V. */
static double *circuit(const weir_model *m, int64_t layer, int64_t head, weir_head_matrix a, weir_head_matrix b)
{
    const weir_model_info *info = weir_model_info_of(m);
    const int64_t c = info->C;
    float *x = head_rows(m, layer, a, head), *y = head_rows(m, layer, b, head);
    double *w = calloc((size_t)(c * c), sizeof *w);
    assert_non_null(w);
    for (int64_t d = 0; d < info->D; d++)
        for (int64_t i = 0; i < c; i++)
            for (int64_t j = 0; j < c; j++)
                w[i * c + j] += (double)x[d * c + i] * (double)y[d * c + j];
    free(x);
    free(y);
    return w;
}

static double norm(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* |A B| / (|A| |B|), A [C,C] turned round if asked, B [C,n] */
static double score(const double *a, bool turned, const double *b, int64_t n, int64_t c)
{
    double sum = 0;
    for (int64_t i = 0; i < c; i++)
        for (int64_t j = 0; j < n; j++) {
            double x = 0;
            for (int64_t k = 0; k < c; k++)
                x += (turned ? a[k * c + i] : a[i * c + k]) * b[k * n + j];
            sum += x * x;
        }
    return sqrt(sum) / (norm(a, c * c) * norm(b, c * n));
}

/* What a head reads: the matrix that stands at the left for an input, and whether it is turned round. */
static double *left_of(const weir_model *m, int64_t layer, int64_t head, int input, bool *turned)
{
    *turned = input == WEIR_COMPOSE_Q;
    return input == WEIR_COMPOSE_V ? circuit(m, layer, head, WEIR_WEIGHTS_O, WEIR_WEIGHTS_V)
                                   : circuit(m, layer, head, WEIR_WEIGHTS_Q, WEIR_WEIGHTS_K);
}

static bool near_to(double got, double want)
{
    return fabs(got - want) <= 1e-7 * fabs(want);
}

/* --- heads */

/* Scores of layer 0's heads into layer 1's that are not as they should be; all of them, `input` being taken for `as`.
 */
static int64_t wrong_heads(const weir_model *m, const double *got, int input, int as)
{
    const weir_model_info *i = weir_model_info_of(m);
    int64_t wrong = 0;
    for (int64_t to = 0; to < i->H; to++)
        for (int64_t from = 0; from < i->H; from++) {
            bool turned;
            double *a = left_of(m, 1, to, as, &turned), *b = circuit(m, 0, from, WEIR_WEIGHTS_O, WEIR_WEIGHTS_V);
            wrong += !near_to(got[(input * i->H + from) * i->H + to], score(a, turned, b, i->C, i->C));
            free(a);
            free(b);
        }
    return wrong;
}

static void test_heads_are_the_papers_formulas(void **state)
{
    (void)state;
    for (int f = 0; f < FILES; f++) {
        weir_err err = {0};
        weir_model *m = kit_open(files[f]);
        weir_compose *c;
        double got[3 * MOST * MOST];
        assert_true(weir_model_info_of(m)->H <= MOST);
        kit_ok(weir_compose_new(&c, m, WEIR_COMPOSE_RAW, NULL, 0, &err), &err);
        kit_ok(weir_compose_heads(c, 0, 1, got, &err), &err);
        for (int input = 0; input < 3; input++) {
            assert_int_equal(wrong_heads(m, got, input, input), 0);
            assert_true(wrong_heads(m, got, input, (input + 1) % 3) > 0); /* the comparison can fail */
        }
        weir_compose_free(c);
        weir_model_free(m);
    }
}

static void same_everywhere(const weir_model *m, weir_compose_weights weights)
{
    static const char *const kernel[] = {"ref", "avx2", "avx512"};
    const weir_model_info *i = weir_model_info_of(m);
    double want[3 * MOST * MOST], got[3 * MOST * MOST];
    const size_t bytes = (size_t)(3 * i->H * i->H) * sizeof *want;
    for (int k = 0; k < 6; k++) {
        weir_err err = {0};
        weir_compose *c;
        if (weir_compose_new(&c, m, weights, kernel[k / 2], 1 + k % 2, &err) != WEIR_OK)
            continue; /* this machine lacks it */
        kit_ok(weir_compose_heads(c, 0, 1, got, &err), &err);
        if (k == 0)
            memcpy(want, got, bytes);
        assert_memory_equal(got, want, bytes);
        weir_compose_free(c);
    }
}

static void test_threads_and_tables_give_the_same_bits(void **state)
{
    (void)state;
    for (int f = 0; f < FILES; f++) {
        weir_model *m = kit_open(files[f]);
        same_everywhere(m, WEIR_COMPOSE_RAW);
        same_everywhere(m, WEIR_COMPOSE_FOLDED);
        weir_model_free(m);
    }
}

/* --- neurons */

static double *neuron_vectors(const weir_model *m, int64_t layer, weir_neuron_matrix which, const int64_t *unit)
{
    const int64_t c = weir_model_info_of(m)->C;
    weir_err err = {0};
    float *w = malloc((size_t)(UNITS * c) * sizeof *w);
    double *x = malloc((size_t)(UNITS * c) * sizeof *x);
    assert_true(w && x);
    kit_ok(weir_weights_neurons(m, layer, which, unit, UNITS, w, &err), &err);
    for (int64_t k = 0; k < UNITS * c; k++)
        x[k] = (double)w[k];
    free(w);
    return x;
}

static void check_into_heads(const weir_model *m, weir_compose *c, const int64_t *unit)
{
    const weir_model_info *i = weir_model_info_of(m);
    double got[3 * UNITS * MOST], *v = neuron_vectors(m, 0, WEIR_WEIGHTS_VALUE, unit);
    weir_err err = {0};
    kit_ok(weir_compose_neurons_heads(c, 0, unit, UNITS, 1, got, &err), &err);
    for (int input = 0; input < 3; input++)
        for (int64_t h = 0; h < i->H; h++) {
            bool turned;
            double *a = left_of(m, 1, h, input, &turned);
            for (int k = 0; k < UNITS; k++)
                assert_true(near_to(got[(input * UNITS + k) * i->H + h], score(a, turned, v + k * i->C, 1, i->C)));
            free(a);
        }
    free(v);
}

static void check_from_heads(const weir_model *m, weir_compose *c, const int64_t *unit, weir_compose_input input,
                             weir_neuron_matrix which)
{
    const weir_model_info *i = weir_model_info_of(m);
    double got[MOST * UNITS], *key = neuron_vectors(m, 1, which, unit);
    weir_err err = {0};
    kit_ok(weir_compose_heads_neurons(c, 0, 1, input, unit, UNITS, got, &err), &err);
    for (int64_t h = 0; h < i->H; h++) {
        double *ov = circuit(m, 0, h, WEIR_WEIGHTS_O, WEIR_WEIGHTS_V);
        for (int k = 0; k < UNITS; k++)
            assert_true(near_to(got[h * UNITS + k], score(ov, true, key + k * i->C, 1, i->C)));
        free(ov);
    }
    free(key);
}

static void check_cosines(const weir_model *m, weir_compose *c, const int64_t *unit, weir_compose_input input,
                          weir_neuron_matrix which)
{
    const int64_t n = weir_model_info_of(m)->C;
    double got[UNITS * UNITS], *v = neuron_vectors(m, 0, WEIR_WEIGHTS_VALUE, unit),
                               *key = neuron_vectors(m, 1, which, unit);
    weir_err err = {0};
    bool negative = false;
    kit_ok(weir_compose_neurons(c, 0, unit, UNITS, 1, input, unit, UNITS, got, &err), &err);
    for (int i = 0; i < UNITS; i++)
        for (int j = 0; j < UNITS; j++) {
            double dot = 0;
            for (int64_t k = 0; k < n; k++)
                dot += v[i * n + k] * key[j * n + k];
            assert_true(near_to(got[i * UNITS + j], dot / (norm(v + i * n, n) * norm(key + j * n, n))));
            negative |= dot < 0;
        }
    assert_true(negative); /* the sign is kept */
    free(v);
    free(key);
}

static void test_neurons_take_the_places_of_matrices(void **state)
{
    (void)state;
    for (int f = 0; f < FILES; f++) {
        weir_err err = {0};
        weir_model *m = kit_open(files[f]);
        const int64_t unit[UNITS] = {0, 2, weir_model_info_of(m)->F - 1};
        weir_compose *c;
        kit_ok(weir_compose_new(&c, m, WEIR_COMPOSE_RAW, NULL, 0, &err), &err);
        check_into_heads(m, c, unit);
        check_from_heads(m, c, unit, WEIR_COMPOSE_KEY, WEIR_WEIGHTS_KEY);
        check_cosines(m, c, unit, WEIR_COMPOSE_KEY, WEIR_WEIGHTS_KEY);
        if (weir_model_info_of(m)->gated) {
            check_from_heads(m, c, unit, WEIR_COMPOSE_UP, WEIR_WEIGHTS_UP);
            check_cosines(m, c, unit, WEIR_COMPOSE_UP, WEIR_WEIGHTS_UP);
        }
        weir_compose_free(c);
        weir_model_free(m);
    }
}

/* --- what reads what, and mistakes */

static void test_what_reads_what(void **state)
{
    weir_model *m = kit_open(KIT_GPT2), *parallel = kit_open(KIT_NEOX);
    (void)state;
    for (int pair = 0; pair < 4; pair++) {
        const weir_compose_part from = (weir_compose_part)(pair / 2), to = (weir_compose_part)(pair % 2);
        const bool within = from == WEIR_COMPOSE_HEADS && to == WEIR_COMPOSE_NEURONS;
        assert_true(weir_compose_reads(m, from, 0, to, 1));
        assert_false(weir_compose_reads(m, from, 1, to, 0));
        assert_int_equal(weir_compose_reads(m, from, 1, to, 1), within);
        assert_false(weir_compose_reads(parallel, from, 1, to, 1));
    }
    assert_true(weir_compose_chance(m) == 1 / sqrt(21.0));
    weir_model_free(m);
    weir_model_free(parallel);
}

static void refused(weir_status st, weir_err *err, const char *words)
{
    assert_int_equal(st, WEIR_E_ARG);
    assert_true(said(err, WEIR_E_ARG, words));
    *err = (weir_err){0};
}

static void test_errors(void **state)
{
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GPT2);
    weir_compose *c, *none;
    const int64_t unit[] = {0, 1}, falls[] = {1, 0}, far = 1 << 20;
    double out[3 * MOST * MOST];
    (void)state;
    refused(weir_compose_new(&none, m, WEIR_COMPOSE_RAW, NULL, -1, &err), &err, "threads");
    assert_null(none);
    refused(weir_compose_new(&none, m, WEIR_COMPOSE_RAW, "fast", 0, &err), &err, "fast");
    kit_ok(weir_compose_new(&c, m, WEIR_COMPOSE_RAW, NULL, 1, &err), &err);
    refused(weir_compose_heads(c, 0, 2, out, &err), &err, "layers 0 to 1");
    refused(weir_compose_heads(c, -1, 1, out, &err), &err, "layer -1");
    refused(weir_compose_heads(c, 1, 1, out, &err), &err, "layer 1 does not read what layer 1 writes there");
    refused(weir_compose_heads(c, 1, 0, out, &err), &err, "layer 0 does not read");
    refused(weir_compose_neurons_heads(c, 0, falls, 2, 1, out, &err), &err, "ascending");
    refused(weir_compose_neurons_heads(c, 0, &far, 1, 1, out, &err), &err, "neuron");
    refused(weir_compose_heads_neurons(c, 0, 1, WEIR_COMPOSE_UP, unit, 2, out, &err), &err, "not gated");
    refused(weir_compose_heads_neurons(c, 0, 1, WEIR_COMPOSE_Q, unit, 2, out, &err), &err, "key");
    refused(weir_compose_neurons(c, 0, unit, 2, 0, WEIR_COMPOSE_KEY, unit, 2, out, &err), &err, "does not read");
    refused(weir_compose_neurons(c, 0, unit, 2, 1, WEIR_COMPOSE_KEY, falls, 2, out, &err), &err, "ascending");
    kit_ok(weir_compose_heads(c, 0, 1, out, &err), &err);
    weir_compose_free(c);
    weir_compose_free(NULL);
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads_are_the_papers_formulas),
        cmocka_unit_test(test_threads_and_tables_give_the_same_bits),
        cmocka_unit_test(test_neurons_take_the_places_of_matrices),
        cmocka_unit_test(test_what_reads_what),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
