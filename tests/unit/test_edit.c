/* Edits as the forward pass applies them: what is added, to the bit; the same bits from every table, for any threads
 * and batch, in prefill and decode; and nothing at all where there is none. */
#include <math.h>

#include "../../lib/kernels/kernels.h"
#include "edit_kit.h"

enum { N = 7 };

static const char *const sites[] = {"attn.hook_q",  "attn.hook_k",         "attn.hook_v", "hook_attn_out",
                                    "mlp.hook_pre", "mlp.hook_pre_linear", "hook_mlp_out"};
static const char *const inputs[] = {"ln1.hook_out", "ln1.hook_out", "ln1.hook_out", "attn.hook_z",
                                     "ln2.hook_out", "ln2.hook_out", "mlp.hook_post"};

/* y + (x U^T) V, in the order that weir/edit.h promises. */
static void add_update(float *y, const float *x, int64_t rows, const weir_update *u, int64_t in, int64_t out)
{
    float *s = malloc((size_t)u->r * sizeof *s);
    for (int64_t t = 0; t < rows; t++) {
        for (int64_t k = 0; k < u->r; k++) {
            s[k] = 0;
            for (int64_t i = 0; i < in; i++)
                s[k] = fmaf(x[t * in + i], u->u[k * in + i], s[k]);
        }
        for (int64_t o = 0; o < out; o++) {
            float d = 0;
            for (int64_t k = 0; k < u->r; k++)
                d = fmaf(s[k], u->v[k * out + o], d);
            y[t * out + o] += d;
        }
    }
    free(s);
}

/* In the first layer the input of the matrix is the same with the edit and without. */
static void check_matrix(const weir_model *m, weir_matrix w, int64_t r)
{
    kit_tap plain, edited;
    int64_t in, out;
    int32_t *ids = kit_ids(m, N, 5);
    const weir_update u = kit_update(m, 0, w, r, 40 + (uint64_t)w), u2 = kit_update(m, 0, w, 2, 90);
    weir_edit *stack[] = {kit_edit(m, &u, 1), kit_edit(m, &u2, 1)};
    weir_run *a = kit_run(m, N, 0, "ref", 1);
    weir_run *b = kit_run_edited(m, N, 0, "ref", 1, (const weir_edit *const *)stack, 2);
    kit_tap_init(&plain, m);
    kit_tap_init(&edited, m);
    kit_attach(a, &plain);
    kit_attach(b, &edited);
    kit_forward(a, ids, N, -1, 0);
    kit_forward(b, ids, N, -1, 0);
    weir_matrix_shape(m, w, &in, &out);
    float *y = malloc((size_t)(N * out) * sizeof *y);
    const float *x = kit_heard_at(&plain, m, 0, inputs[w]);
    kit_same(x, kit_heard_at(&edited, m, 0, inputs[w]), N * in, "the input of the matrix");
    memcpy(y, kit_heard_at(&plain, m, 0, sites[w]), (size_t)(N * out) * sizeof *y);
    assert_true(kit_differs(y, kit_heard_at(&edited, m, 0, sites[w]), N * out) >= 0);
    add_update(y, x, N, &u, in, out);
    add_update(y, x, N, &u2, in, out); /* one edit after the other */
    kit_same(y, kit_heard_at(&edited, m, 0, sites[w]), N * out, weir_matrix_name(w));
    weir_run_free(a);
    weir_run_free(b);
    kit_tap_free(&plain);
    kit_tap_free(&edited);
    weir_edit_free(stack[0]);
    weir_edit_free(stack[1]);
    kit_update_free(&u);
    kit_update_free(&u2);
    free(ids);
    free(y);
}

static void test_adds_what_it_says(void **state)
{
    (void)state;
    static const char *const models[] = {KIT_GPT2, KIT_LLAMA, KIT_NEOX};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        weir_model *m = kit_open(models[i]);
        for (int w = 0; w < WEIR_MATRIX_COUNT; w++)
            if (w != WEIR_MATRIX_UP || weir_model_info_of(m)->gated)
                check_matrix(m, (weir_matrix)w, w % 2 ? 1 : 50); /* also more than a panel */
        weir_model_free(m);
    }
}

/* Logits of all rows of ids [n] in one pass. */
static float *logits_of(weir_run *r, const int32_t *ids, int64_t n)
{
    weir_err err = {0};
    const int64_t v = weir_model_info_of(weir_run_model(r))->V;
    float *out = malloc((size_t)(n * v) * sizeof *out);
    kit_forward(r, ids, n, -1, WEIR_FINAL);
    kit_ok(weir_run_logits(r, 0, n, out, &err), &err);
    return out;
}

/* Prefill of all but three tokens, then one after the other. */
static void check_decode(weir_run *r, const int32_t *ids, int64_t n, const float *want, int64_t v)
{
    weir_err err = {0};
    float *row = malloc((size_t)v * sizeof *row);
    weir_run_slot_reset(r, 0);
    for (int64_t at = 0, step = n - 3; at < n; at += step, step = 1) {
        kit_forward(r, ids + at, step, 0, WEIR_FINAL);
        kit_ok(weir_run_logits(r, step - 1, 1, row, &err), &err);
        kit_same(row, want + (at + step - 1) * v, v, "logits of a decode step");
    }
    free(row);
}

static void check_everywhere(const weir_model *m, const weir_edit *const *edits, int n_edits)
{
    weir_err err = {0};
    const int64_t v = weir_model_info_of(m)->V;
    int32_t *ids = kit_ids(m, N, 3), *other = kit_ids(m, N, 4);
    weir_run *ref = kit_run_edited(m, N, 0, "ref", 1, edits, n_edits);
    float *want = logits_of(ref, ids, N), *got = malloc((size_t)(N * v) * sizeof *got);
    static const char *const kernels[] = {"ref", "avx2", "avx512"};
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        for (int threads = 1; threads <= 3; threads += 2) {
            const weir_kern *kern;
            if (weir_kern_pick(&kern, kernels[k], NULL) != WEIR_OK)
                continue;
            weir_run *r = kit_run_edited(m, 3 * N, 1, kernels[k], threads, edits, n_edits);
            const weir_seq seqs[] = {{.ids = other, .n = 4, .slot = -1},
                                     {.ids = ids, .n = N, .slot = -1},
                                     {.ids = other, .n = N, .slot = -1}};
            kit_ok(weir_run_forward(r, seqs, 3, WEIR_FINAL, &err), &err);
            kit_ok(weir_run_logits(r, 4, N, got, &err), &err);
            kit_same(want, got, N * v, kernels[k]);
            check_decode(r, ids, N, want, v);
            weir_run_free(r);
        }
    weir_run_free(ref);
    free(ids);
    free(other);
    free(want);
    free(got);
}

static void test_bits_are_the_same_everywhere(void **state)
{
    (void)state;
    for (int i = 0; i < KIT_MODELS; i++) {
        weir_model *m = kit_open(kit_models[i]);
        weir_edit *stack[] = {kit_edit_all(m, 11), kit_edit_all(m, 12)};
        check_everywhere(m, (const weir_edit *const *)stack, 2);
        weir_edit_free(stack[0]);
        weir_edit_free(stack[1]);
        weir_model_free(m);
    }
}

static void test_order_of_the_stack_and_removal(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_LLAMA);
    const int64_t v = weir_model_info_of(m)->V;
    int32_t *ids = kit_ids(m, N, 3);
    weir_edit *e[] = {kit_edit_all(m, 11), kit_edit_all(m, 12)};
    const weir_edit *const turned[] = {e[1], e[0]};
    weir_run *runs[] = {kit_run(m, N, 0, NULL, 1), kit_run_edited(m, N, 0, NULL, 1, (const weir_edit *const *)e, 2),
                        kit_run_edited(m, N, 0, NULL, 1, turned, 2), kit_run_edited(m, N, 0, NULL, 1, NULL, 0)};
    float *logits[4];
    for (int i = 0; i < 4; i++)
        logits[i] = logits_of(runs[i], ids, N);
    assert_true(kit_differs(logits[0], logits[1], N * v) >= 0);
    for (int64_t i = 0; i < N * v; i++) /* sums in another order: other last bits at most */
        assert_true(fabsf(logits[1][i] - logits[2][i]) < 1e-3f);
    kit_same(logits[0], logits[3], N * v, "the model without its edits");
    for (int i = 0; i < 4; i++) {
        weir_run_free(runs[i]);
        free(logits[i]);
    }
    weir_edit_free(e[0]);
    weir_edit_free(e[1]);
    weir_model_free(m);
    free(ids);
}

/* hook_result has each head's share of the edit too: the heads sum to attn_out without its bias. */
static void test_result_has_the_heads_share(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_LLAMA); /* no bias */
    const weir_model_info *i = weir_model_info_of(m);
    int32_t *ids = kit_ids(m, N, 3);
    weir_edit *e = kit_edit_all(m, 21);
    weir_run *r = kit_run_edited(m, N, 0, NULL, 1, (const weir_edit *const *)&e, 1);
    weir_selector *sel;
    kit_tap tap;
    kit_ok(weir_selector_build(&sel, m, "blocks.*.attn.hook_result,blocks.*.hook_attn_out", NULL, NULL, &err), &err);
    kit_tap_init(&tap, m);
    tap.only = sel;
    kit_attach(r, &tap);
    kit_forward(r, ids, N, -1, 0);
    for (int64_t l = 0; l < i->L; l++) {
        const float *heads = kit_heard_at(&tap, m, l, "attn.hook_result"),
                    *out = kit_heard_at(&tap, m, l, "hook_attn_out");
        for (int64_t t = 0; t < N; t++)
            for (int64_t c = 0; c < i->C; c++) {
                double sum = 0;
                for (int64_t h = 0; h < i->H; h++)
                    sum += heads[(t * i->H + h) * i->C + c];
                assert_true(fabs(sum - out[t * i->C + c]) < 1e-5);
            }
    }
    weir_run_free(r);
    kit_tap_free(&tap);
    weir_selector_free(sel);
    weir_edit_free(e);
    weir_model_free(m);
    free(ids);
}

/* Layer by layer: the same bits. */
static void test_layer_by_layer(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GEMMA);
    const weir_model_info *i = weir_model_info_of(m);
    int32_t *ids = kit_ids(m, N, 3);
    weir_edit *e = kit_edit_all(m, 5);
    weir_run *whole = kit_run_edited(m, N, 0, NULL, 1, (const weir_edit *const *)&e, 1), *r = NULL;
    float *want = logits_of(whole, ids, N), *got = malloc((size_t)(N * i->V) * sizeof *got);
    weir_run_options o;
    weir_run_options_init(&o);
    o.max_rows = N;
    o.by_layer = true;
    o.edits = (const weir_edit *const *)&e;
    o.n_edits = 1;
    kit_ok(weir_run_new(&r, m, &o, &err), &err);
    kit_ok(weir_run_prepare(r, WEIR_FINAL, &err), &err);
    const weir_seq s = {.ids = ids, .n = N, .slot = -1};
    for (int64_t part = 0; part < weir_run_parts(r); part++)
        kit_ok(weir_run_part(r, part, &s, 1, &err), &err);
    kit_ok(weir_run_logits(r, 0, N, got, &err), &err);
    kit_same(want, got, N * i->V, "logits, layer by layer");
    weir_run_free(whole);
    weir_run_free(r);
    weir_edit_free(e);
    weir_model_free(m);
    free(ids);
    free(want);
    free(got);
}

/* Weights that are read for a neuron or a head have the edit's share: what the neuron writes, what the head reads. */
static void test_weights_of_units(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_LLAMA);
    const weir_model_info *i = weir_model_info_of(m);
    const int64_t units[] = {1, 5}, kv = i->K * i->D;
    const weir_update u[] = {kit_update(m, 1, WEIR_MATRIX_DOWN, 3, 1), kit_update(m, 1, WEIR_MATRIX_K, 2, 2),
                             kit_update(m, 1, WEIR_MATRIX_O, 2, 3), kit_update(m, 1, WEIR_MATRIX_UP, 2, 4)};
    weir_edit *e = kit_edit(m, u, 4);
    const weir_edit *const stack[] = {e, e};
    float *x = calloc((size_t)(i->D * i->C), sizeof *x);
    weir_edit_add_neurons(stack, 1, 1, WEIR_WEIGHTS_VALUE, units, 2, x);
    for (int64_t c = 0; c < i->C; c++)
        for (int k = 0; k < 2; k++) {
            double want = 0;
            for (int64_t r = 0; r < 3; r++)
                want += (double)u[0].u[r * i->F + units[k]] * u[0].v[r * i->C + c];
            assert_true(fabs(want - x[k * i->C + c]) < 1e-6);
        }
    weir_edit_add_neurons(stack, 1, 0, WEIR_WEIGHTS_VALUE, units, 2, x); /* another layer: nothing */
    memset(x, 0, (size_t)(i->D * i->C) * sizeof *x);
    weir_edit_add_neurons(stack, 1, 1, WEIR_WEIGHTS_UP, units, 2, x);
    double up = 0;
    for (int64_t r = 0; r < 2; r++)
        up += (double)u[3].u[r * i->C + 3] * u[3].v[r * i->F + 5];
    assert_true(fabs(up - x[i->C + 3]) < 1e-6);
    memset(x, 0, (size_t)(i->D * i->C) * sizeof *x);
    weir_edit_add_head(stack, 2, 1, WEIR_WEIGHTS_K, 1, x); /* twice */
    for (int64_t d = 0; d < i->D; d++) {
        double want = 0;
        for (int64_t r = 0; r < 2; r++)
            want += 2 * (double)u[1].u[r * i->C + 4] * u[1].v[r * kv + i->D + d];
        assert_true(fabs(want - x[d * i->C + 4]) < 1e-6);
    }
    memset(x, 0, (size_t)(i->D * i->C) * sizeof *x);
    weir_edit_add_head(stack, 1, 1, WEIR_WEIGHTS_O, 2, x);
    double want = 0;
    for (int64_t r = 0; r < 2; r++)
        want += (double)u[2].u[r * i->H * i->D + 2 * i->D + 1] * u[2].v[r * i->C + 6];
    assert_true(fabs(want - x[i->C + 6]) < 1e-6);
    free(x);
    weir_edit_free(e);
    for (int k = 0; k < 4; k++)
        kit_update_free(&u[k]);
    weir_model_free(m);
}

static void refuses(const weir_model *m, const weir_update *u, int64_t n, const char *word)
{
    weir_err err = {0};
    weir_edit *e;
    assert_int_equal(weir_edit_new(&e, m, u, n, &err), WEIR_E_ARG);
    assert_null(e);
    if (!strstr(err.msg, word))
        fail_msg("\"%s\" lacks \"%s\"", err.msg, word);
}

static void test_wrong_updates_are_refused(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GPT2), *other = kit_open(KIT_GPT2);
    weir_update u[] = {kit_update(m, 0, WEIR_MATRIX_DOWN, 1, 1), kit_update(m, 0, WEIR_MATRIX_DOWN, 1, 1)};
    refuses(m, u, 0, "at least one");
    refuses(m, u, 2, "two updates of layer 0's down");
    u[0].layer = 99;
    refuses(m, u, 1, "layer 99");
    u[0].layer = -1;
    refuses(m, u, 1, "layer -1");
    u[0].layer = 0;
    u[0].matrix = WEIR_MATRIX_UP;
    refuses(m, u, 1, "not gated");
    u[0].matrix = WEIR_MATRIX_COUNT;
    refuses(m, u, 1, "matrix 7");
    u[0].matrix = WEIR_MATRIX_DOWN;
    u[0].r = 0;
    refuses(m, u, 1, "rank 0");
    u[0].r = 1;
    ((float *)u[0].v)[3] = NAN;
    refuses(m, u, 1, "element 3 of its v");
    ((float *)u[0].u)[2] = INFINITY;
    refuses(m, u, 1, "element 2 of its u");
    weir_edit *e = kit_edit(m, &u[1], 1);
    weir_run_options o;
    weir_run *r;
    weir_run_options_init(&o);
    o.edits = (const weir_edit *const *)&e;
    o.n_edits = 1;
    assert_int_equal(weir_run_new(&r, other, &o, &err), WEIR_E_ARG); /* the same bytes, but another object */
    assert_non_null(strstr(err.msg, "edit 0"));
    o.edits = NULL;
    assert_int_equal(weir_run_new(&r, m, &o, NULL), WEIR_E_ARG);
    weir_edit_free(e);
    kit_update_free(&u[0]);
    kit_update_free(&u[1]);
    weir_model_free(m);
    weir_model_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adds_what_it_says),
        cmocka_unit_test(test_bits_are_the_same_everywhere),
        cmocka_unit_test(test_order_of_the_stack_and_removal),
        cmocka_unit_test(test_result_has_the_heads_share),
        cmocka_unit_test(test_layer_by_layer),
        cmocka_unit_test(test_weights_of_units),
        cmocka_unit_test(test_wrong_updates_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
