/* Another activation in place of the model's (weir_run_options.act): what follows has its bits, forward and on the way
 * back, and without it nothing changes. */
#include <weir/grad.h>

#include "run_kit.h"

enum { ROWS = 9 };

static weir_run *run_with(const weir_model *m, const char *act, const char *kernel, bool backward)
{
    weir_err err = {0};
    weir_run_options o;
    weir_run *r = NULL;
    weir_run_options_init(&o);
    o.max_rows = ROWS;
    o.kernel = kernel;
    o.threads = 2;
    o.backward = backward;
    o.act = act ? weir_activation_named(act) : NULL;
    kit_ok(weir_run_new(&r, m, &o, &err), &err);
    return r;
}

/* All values and the logits of a pass. */
static float *pass(const weir_model *m, const char *act, const char *kernel, kit_tap *tap)
{
    weir_err err = {0};
    const int64_t v = weir_model_info_of(m)->V;
    int32_t *ids = kit_ids(m, ROWS, 5);
    weir_run *r = run_with(m, act, kernel, false);
    float *logits = malloc((size_t)(ROWS * v) * sizeof *logits);
    assert_non_null(logits);
    kit_tap_init(tap, m);
    kit_attach(r, tap);
    kit_forward(r, ids, ROWS, -1, WEIR_FINAL);
    kit_ok(weir_run_logits(r, 0, ROWS, logits, &err), &err);
    weir_run_free(r);
    free(ids);
    return logits;
}

/* hook_post is f(hook_pre), times up, by the function's own kernel. */
static void check_post(const weir_model *m, const kit_tap *tap, const char *act)
{
    weir_err err = {0};
    const weir_model_info *info = weir_model_info_of(m);
    float *want = malloc((size_t)(ROWS * info->F) * sizeof *want);
    assert_non_null(want);
    for (int64_t l = 0; l < info->L; l++) {
        const float *up = info->gated ? kit_heard_at(tap, m, l, "mlp.hook_pre_linear") : NULL;
        kit_ok(weir_activation_run(weir_activation_named(act), want, kit_heard_at(tap, m, l, "mlp.hook_pre"), up,
                                   ROWS * info->F, "ref", &err),
               &err);
        kit_same(kit_heard_at(tap, m, l, "mlp.hook_post"), want, ROWS * info->F, act);
    }
    free(want);
}

static void the_function_is_the_one_that_was_asked_for(void **state)
{
    static const char *const act[] = {"relu", "relu2", "identity", "silu", "gelu"};
    (void)state;
    for (int i = 0; i < KIT_MODELS; i++) {
        weir_model *m = kit_open(kit_models[i]);
        const int64_t n = ROWS * weir_model_info_of(m)->V;
        kit_tap plain, tap;
        float *own = pass(m, NULL, NULL, &plain), *logits;
        for (int a = 0; a < 5; a++, kit_tap_free(&tap), free(logits)) {
            logits = pass(m, act[a], NULL, &tap);
            check_post(m, &tap, act[a]);
            kit_tap again;
            float *ref = pass(m, act[a], "ref", &again);
            kit_same(ref, logits, n, act[a]);
            kit_tap_free(&again);
            free(ref);
            if (strcmp(act[a], "identity") == 0)
                assert_true(kit_differs(own, logits, n) >= 0);
        }
        kit_tap_free(&plain);
        free(own);
        weir_model_free(m);
    }
}

static void the_models_own_by_name_changes_nothing(void **state)
{
    (void)state;
    static const char *const path[] = {KIT_LLAMA, KIT_GPT2, KIT_NEOX}, *const act[] = {"silu", "gelu_new", "gelu"};
    for (int i = 0; i < 3; i++) {
        weir_model *m = kit_open(path[i]);
        kit_tap a, b;
        float *x = pass(m, NULL, NULL, &a), *y = pass(m, act[i], NULL, &b);
        kit_same(x, y, ROWS * weir_model_info_of(m)->V, act[i]);
        kit_tap_free(&a);
        kit_tap_free(&b);
        free(x);
        free(y);
        weir_model_free(m);
    }
}

/* Through the identity the gradient passes as it is. */
static void gradients_go_through_it(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GPT2);
    const int64_t f = weir_model_info_of(m)->F;
    int32_t *ids = kit_ids(m, ROWS, 5);
    const weir_loss_term nll = {.kind = WEIR_LOSS_NLL, .row = ROWS - 1, .token = 3, .weight = 1};
    for (int i = 0; i < 2; i++) {
        weir_run *r = run_with(m, i ? "identity" : NULL, NULL, true);
        weir_grad *g = NULL;
        double loss;
        float *pre = calloc((size_t)(ROWS * f), sizeof *pre), *post = calloc((size_t)(ROWS * f), sizeof *post);
        assert_true(pre && post);
        kit_ok(weir_grad_new(&g, r, NULL, &err), &err);
        kit_ok(weir_grad_to(g, weir_model_point(m, "blocks.0.mlp.hook_pre"), pre, &err), &err);
        kit_ok(weir_grad_to(g, weir_model_point(m, "blocks.0.mlp.hook_post"), post, &err), &err);
        kit_forward(r, ids, ROWS, -1, WEIR_FINAL);
        kit_ok(weir_grad_backward(g, &nll, 1, NULL, 0, &loss, NULL, &err), &err);
        assert_int_equal(kit_differs(pre, post, ROWS * f) < 0, i);
        free(pre);
        free(post);
        weir_grad_free(g);
        weir_run_free(r);
    }
    free(ids);
    weir_model_free(m);
}

static void what_no_kernel_has_is_refused(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GPT2);
    weir_run_options o;
    weir_run *r = (weir_run *)&err;
    weir_run_options_init(&o);
    o.act = weir_activation_named("gpt_oss");
    assert_int_equal(weir_run_new(&r, m, &o, &err), WEIR_E_UNSUPPORTED);
    assert_null(r);
    assert_non_null(strstr(err.msg, "gpt_oss"));
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_function_is_the_one_that_was_asked_for),
                                       cmocka_unit_test(the_models_own_by_name_changes_nothing),
                                       cmocka_unit_test(gradients_go_through_it),
                                       cmocka_unit_test(what_no_kernel_has_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
