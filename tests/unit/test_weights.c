/* weir/weights.h: the vectors of heads and neurons are those that the forward pass multiplies with. Biases are taken out
 * by looking at differences between two rows. */
#include <math.h>
#include <stdio.h>

#include <weir/weights.h>

#include "run_kit.h"
#include "support/said.h"

enum { ROWS = 5 };

static const char *const files[] = {KIT_GPT2,
                                    KIT_LLAMA,
                                    KIT_LLAMA3,
                                    KIT_MISTRAL,
                                    KIT_NEOX,
                                    KIT_GEMMA,
                                    "tests/golden/models/gpt2.gguf",
                                    "tests/golden/models/llama-gqa-bf16.gguf",
                                    "tests/golden/models/llama-q4_0.gguf",
                                    "tests/golden/models/neox-parallel.gguf",
                                    "tests/golden/models/gemma2.gguf"};
enum { FILES = sizeof files / sizeof *files };

typedef struct pass {
    weir_model *m;
    const weir_model_info *info;
    weir_run *r;
    kit_tap t;
} pass;

static void begin(pass *p, const char *path)
{
    p->m = kit_open(path);
    p->info = weir_model_info_of(p->m);
    p->r = kit_run(p->m, ROWS, 0, NULL, 1);
    kit_tap_init(&p->t, p->m);
    kit_attach(p->r, &p->t);
    int32_t *ids = kit_ids(p->m, ROWS, 5);
    kit_forward(p->r, ids, ROWS, -1, 0);
    free(ids);
}

static void end(pass *p)
{
    weir_run_free(p->r);
    kit_tap_free(&p->t);
    weir_model_free(p->m);
}

/* Row 3 minus row 1 of a hook point of a layer. */
static double *difference(const pass *p, const char *name, int64_t layer, int64_t *width)
{
    char full[96];
    snprintf(full, sizeof full, "blocks.%lld.%s", (long long)layer, name);
    const weir_point *at = weir_model_point(p->m, full);
    assert_non_null(at);
    const int64_t i = at - p->t.point, w = p->t.width[i];
    double *d = calloc((size_t)w, sizeof *d);
    assert_non_null(d);
    for (int64_t c = 0; c < w; c++)
        d[c] = (double)p->t.copy[i][3 * w + c] - (double)p->t.copy[i][w + c];
    if (width)
        *width = w;
    return d;
}

static double dot(const float *a, const double *b, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += (double)a[i] * b[i];
    return s;
}

static bool near_to(double a, double b, double scale)
{
    return fabs(a - b) <= 1e-5 * scale;
}

static double largest(const double *x, int64_t n)
{
    double m = 0;
    for (int64_t i = 0; i < n; i++)
        m = fmax(m, fabs(x[i]));
    return m;
}

/* Rows of a head are what `in` is multiplied with to make its part of `out`; `wrong` counts those that are not. */
static int64_t check_inputs(const pass *p, int64_t layer, weir_head_matrix which, const char *out)
{
    weir_err err = {0};
    int64_t width, wrong = 0;
    const int64_t c = p->info->C, d = p->info->D;
    double *x = difference(p, "ln1.hook_out", layer, NULL), *y = difference(p, out, layer, &width);
    float *w = malloc((size_t)(d * c) * sizeof *w);
    assert_non_null(w);
    for (int64_t h = 0; h < width / d; h++) {
        kit_ok(weir_weights_head(p->m, layer, which, h, w, &err), &err);
        for (int64_t i = 0; i < d; i++)
            wrong += !near_to(dot(w + i * c, x, c), y[h * d + i], largest(y, width));
    }
    free(w);
    free(x);
    free(y);
    return wrong;
}

/* hook_result of each head is z times its rows of W_O. */
static void check_outputs(const pass *p, int64_t layer)
{
    weir_err err = {0};
    int64_t width;
    const int64_t c = p->info->C, d = p->info->D;
    double *z = difference(p, "attn.hook_z", layer, NULL), *y = difference(p, "attn.hook_result", layer, &width);
    float *w = malloc((size_t)(d * c) * sizeof *w);
    assert_non_null(w);
    for (int64_t h = 0; h < p->info->H; h++) {
        kit_ok(weir_weights_head(p->m, layer, WEIR_WEIGHTS_O, h, w, &err), &err);
        for (int64_t j = 0; j < c; j++) {
            double sum = 0;
            for (int64_t i = 0; i < d; i++)
                sum += z[h * d + i] * (double)w[i * c + j];
            assert_true(near_to(sum, y[h * c + j], largest(y, width)));
        }
    }
    free(w);
    free(z);
    free(y);
}

static void check_keys(const pass *p, int64_t layer, weir_neuron_matrix which, const char *out)
{
    weir_err err = {0};
    int64_t f;
    const int64_t c = p->info->C;
    double *x = difference(p, "ln2.hook_out", layer, NULL), *y = difference(p, out, layer, &f);
    const int64_t unit[] = {0, 1, f / 2, f - 1};
    float *w = malloc((size_t)(4 * c) * sizeof *w);
    assert_non_null(w);
    kit_ok(weir_weights_neurons(p->m, layer, which, unit, 4, w, &err), &err);
    for (int i = 0; i < 4; i++)
        assert_true(near_to(dot(w + i * c, x, c), y[unit[i]], largest(y, f)));
    free(w);
    free(x);
    free(y);
}

/* All neurons together make mlp_out, where no norm stands behind it. */
static void check_values(const pass *p, int64_t layer)
{
    weir_err err = {0};
    int64_t f;
    const int64_t c = p->info->C;
    double *post = difference(p, "mlp.hook_post", layer, &f), *y = difference(p, "hook_mlp_out", layer, NULL);
    double *sum = calloc((size_t)c, sizeof *sum);
    float *w = malloc((size_t)c * sizeof *w);
    assert_true(sum && w);
    for (int64_t n = 0; n < f; n++) {
        kit_ok(weir_weights_neurons(p->m, layer, WEIR_WEIGHTS_VALUE, &n, 1, w, &err), &err);
        for (int64_t i = 0; i < c; i++)
            sum[i] += post[n] * (double)w[i];
    }
    for (int64_t i = 0; i < c; i++)
        assert_true(near_to(sum[i], y[i], largest(y, c)));
    free(w);
    free(sum);
    free(post);
    free(y);
}

static void test_they_are_what_the_pass_multiplies_with(void **state)
{
    (void)state;
    for (int i = 0; i < FILES; i++) {
        pass p;
        begin(&p, files[i]);
        for (int64_t l = 0; l < p.info->L; l++) {
            assert_int_equal(check_inputs(&p, l, WEIR_WEIGHTS_Q, "attn.hook_q"), 0);
            assert_int_equal(check_inputs(&p, l, WEIR_WEIGHTS_K, "attn.hook_k"), 0);
            assert_int_equal(check_inputs(&p, l, WEIR_WEIGHTS_V, "attn.hook_v"), 0);
            check_outputs(&p, l);
            check_keys(&p, l, WEIR_WEIGHTS_KEY, "mlp.hook_pre");
            if (p.info->gated)
                check_keys(&p, l, WEIR_WEIGHTS_UP, "mlp.hook_pre_linear");
            if (!weir_model_point(p.m, "blocks.0.ln2_post.hook_scale"))
                check_values(&p, l);
        }
        end(&p);
    }
}

static void test_comparison_can_fail(void **state)
{
    pass p;
    (void)state;
    begin(&p, KIT_GPT2);
    assert_true(check_inputs(&p, 0, WEIR_WEIGHTS_Q, "attn.hook_k") > 0);
    assert_true(check_inputs(&p, 0, WEIR_WEIGHTS_V, "attn.hook_k") > 0);
    end(&p);
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
    weir_model *m = kit_open(KIT_LLAMA), *plain = kit_open(KIT_GPT2);
    const weir_model_info *i = weir_model_info_of(m);
    float w[4096];
    const int64_t twice[] = {3, 3};
    (void)state;
    refused(weir_weights_head(m, i->L, WEIR_WEIGHTS_Q, 0, w, &err), &err, "the model has layers 0 to");
    refused(weir_weights_head(m, -1, WEIR_WEIGHTS_Q, 0, w, &err), &err, "layer -1");
    refused(weir_weights_head(m, 0, WEIR_WEIGHTS_Q, i->H, w, &err), &err, "the model has heads 0 to");
    refused(weir_weights_head(m, 0, WEIR_WEIGHTS_K, i->K, w, &err), &err, "key-value heads");
    refused(weir_weights_neurons(m, 0, WEIR_WEIGHTS_KEY, &i->F, 1, w, &err), &err, "neuron");
    refused(weir_weights_neurons(m, 0, WEIR_WEIGHTS_KEY, twice, 2, w, &err), &err, "ascending");
    refused(weir_weights_neurons(plain, 0, WEIR_WEIGHTS_UP, twice, 1, w, &err), &err, "not gated");
    weir_model_free(m);
    weir_model_free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_they_are_what_the_pass_multiplies_with),
        cmocka_unit_test(test_comparison_can_fail),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
