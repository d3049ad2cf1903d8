/* Matrices turned round are the matrices: multiplied with unit vectors they give the rows that weir/weights.h reads
 * straight from the checkpoint, for every layout and every type of weights there is. */
#include <weir/weights.h>

#include "../lib/base/mem.h"
#include "../lib/model/spec.h"
#include "run_kit.h"

static const char *const files[] = {KIT_GPT2,
                                    KIT_LLAMA,
                                    KIT_LLAMA3,
                                    KIT_MISTRAL,
                                    KIT_NEOX,
                                    KIT_GEMMA,
                                    "tests/golden/models/gpt2.gguf",
                                    "tests/golden/models/llama-gqa-bf16.gguf",
                                    "tests/golden/models/llama-llama3-v4.gguf",
                                    "tests/golden/models/llama-q4_0.gguf",
                                    "tests/golden/models/mistral-window-f16.gguf",
                                    "tests/golden/models/neox-parallel.gguf",
                                    "tests/golden/models/gemma2.gguf"};
enum { FILES = sizeof files / sizeof *files };

static float *floats(int64_t n)
{
    float *p = calloc((size_t)n, sizeof *p);
    assert_non_null(p);
    return p;
}

/* [out, in]: what the panels make of each unit vector. */
static float *through(const weir_panels *w, int64_t in, int64_t out)
{
    const weir_kern *k;
    weir_err err = {0};
    kit_ok(weir_kern_pick(&k, NULL, &err), &err);
    float *x = floats(out * out), *y = floats(out * in);
    for (int64_t i = 0; i < out; i++)
        x[i * out + i] = 1;
    weir_gemm g = {.m = out, .x = x, .ldx = out, .kn = out, .n_out = 1, .out = {{w, NULL, y, in}}};
    g.scratch = weir_alloc_aligned(weir_gemm_scratch(out, out, 1));
    assert_non_null(g.scratch);
    weir_gemm_run(k, 1, &g);
    weir_free_aligned(g.scratch);
    free(x);
    return y;
}

/* Panels take what was told before they were made and the objects that hold them; blocks are told as they are stored, in
 * the file, and take a map of rows at most. */
static void check_bytes(const char *file, int64_t panels, int64_t told, int64_t matrices, int64_t rows)
{
    const bool blocks = strstr(file, "q4_0") != NULL;
    const int64_t rest = blocks ? panels - rows * (int64_t)sizeof rows : panels - told;
    assert_true(told > 0);
    assert_true((rest > 0 || blocks) && rest <= matrices * 256);
}

/* The matrix as [out, in], from the rows of its heads or neurons. */
static float *straight(const weir_model *m, int64_t layer, weir_matrix which, int64_t in, int64_t out)
{
    static const weir_head_matrix head[] = {WEIR_WEIGHTS_Q, WEIR_WEIGHTS_K, WEIR_WEIGHTS_V, WEIR_WEIGHTS_O};
    const weir_model_info *info = weir_model_info_of(m);
    const bool writes = which == WEIR_MATRIX_O || which == WEIR_MATRIX_DOWN;
    const int64_t units = writes ? in : out, c = writes ? out : in, d = info->D;
    float *rows = floats(units * c), *w = floats(out * in);
    weir_err err = {0};
    if (which <= WEIR_MATRIX_O) {
        for (int64_t h = 0; h < units / d; h++)
            kit_ok(weir_weights_head(m, layer, head[which], h, rows + h * d * c, &err), &err);
    } else {
        int64_t *unit = calloc((size_t)units, sizeof *unit);
        assert_non_null(unit);
        for (int64_t i = 0; i < units; i++)
            unit[i] = i;
        const weir_neuron_matrix n = which == WEIR_MATRIX_PRE  ? WEIR_WEIGHTS_KEY
                                     : which == WEIR_MATRIX_UP ? WEIR_WEIGHTS_UP
                                                               : WEIR_WEIGHTS_VALUE;
        kit_ok(weir_weights_neurons(m, layer, n, unit, units, rows, &err), &err);
        free(unit);
    }
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
            w[o * in + i] = writes ? rows[i * c + o] : rows[o * c + i];
    free(rows);
    return w;
}

static int64_t differ(const float *a, const float *b, int64_t n)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++)
        wrong += a[i] != b[i];
    return wrong;
}

static void check_matrix(const weir_model *m, int64_t layer, weir_matrix which, const weir_panels *w)
{
    int64_t in, out;
    weir_matrix_shape(m, which, &in, &out);
    float *got = through(w, in, out), *want = straight(m, layer, which, in, out);
    if (differ(got, want, in * out))
        fail_msg("%s of layer %lld of %s is not what the checkpoint holds", weir_matrix_name(which), (long long)layer,
                 weir_model_info_of(m)->name);
    got[in * out - 1] += 1; /* the comparison can fail */
    assert_int_equal(differ(got, want, in * out), 1);
    free(got);
    free(want);
}

static void the_matrices(void **state)
{
    (void)state;
    for (int f = 0; f < FILES; f++) {
        weir_err err = {0};
        weir_model *m = kit_open(files[f]);
        const weir_model_info *info = weir_model_info_of(m);
        for (int64_t l = 0; l < info->L; l++) {
            weir_turned_layer t;
            kit_ok(weir_model_layer_turned(m, l, &t, &err), &err);
            int64_t bytes = 0, matrices = 0, rows = 0;
            for (int w = 0; w < WEIR_MATRIX_COUNT; w++)
                if (t.w[w]) {
                    check_matrix(m, l, (weir_matrix)w, t.w[w]);
                    int64_t in, out;
                    weir_matrix_shape(m, (weir_matrix)w, &in, &out);
                    bytes += weir_panels_bytes(t.w[w]);
                    rows += out;
                    matrices++;
                }
            assert_int_equal(matrices, weir_model_spec(m)->gated ? 7 : 6);
            check_bytes(files[f], bytes, weir_model_turned_bytes(m, l), matrices, rows);
            weir_turned_layer_free(&t);
            assert_null(t.w[0]);
        }
        weir_model_free(m);
    }
}

static void the_head(void **state)
{
    (void)state;
    for (int f = 0; f < FILES; f++) {
        weir_err err = {0};
        weir_model *m = kit_open(files[f]);
        const int64_t c = weir_model_info_of(m)->C;
        weir_turned t;
        kit_ok(weir_model_head_turned(m, 0, &t, &err), &err);
        const int64_t n = t.n < 64 ? t.n : 64;
        check_bytes(files[f], weir_panels_bytes(t.w), weir_model_head_turned_bytes(m, 0), 1, t.n);
        float *x = floats(t.n), *y = floats(c), *row = floats(c);
        const weir_kern *k;
        kit_ok(weir_kern_pick(&k, NULL, &err), &err);
        weir_gemm g = {.m = 1, .x = x, .ldx = t.n, .kn = t.n, .n_out = 1, .out = {{t.w, NULL, y, c}}};
        g.scratch = weir_alloc_aligned(weir_gemm_scratch(1, t.n, 1));
        assert_non_null(g.scratch);
        for (int64_t i = 0; i < n; i++) {
            x[i] = 1;
            weir_gemm_run(k, 1, &g);
            x[i] = 0;
            weir_model_head_row(m, (int32_t)(t.first + i), row);
            assert_int_equal(differ(y, row, c), 0);
        }
        weir_free_aligned(g.scratch);
        free(x);
        free(y);
        free(row);
        weir_panels_free(t.w);
        weir_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_matrices),
        cmocka_unit_test(the_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
