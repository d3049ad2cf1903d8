/* The way back as programs ask for it: what is refused, what hooks are told and may do, partial passes over a cache as
 * edits use them. The numbers are checked in tests/cli/test_grad.py and tests/conformance. */
#include <math.h>

#include <weir/grad.h>

#include "run_kit.h"

enum { ROWS = 8 };

static weir_model *model;
static const weir_model_info *info;
static int32_t *ids;

static int begin(void **state)
{
    (void)state;
    model = kit_open(KIT_GEMMA);
    info = weir_model_info_of(model);
    ids = kit_ids(model, ROWS, 41);
    return 0;
}

static int end(void **state)
{
    (void)state;
    weir_model_free(model);
    free(ids);
    return 0;
}

static weir_run *run_back(int slots)
{
    weir_err err = {0};
    weir_run_options o;
    weir_run *r = NULL;
    weir_run_options_init(&o);
    o.max_rows = ROWS;
    o.max_len = ROWS;
    o.slots = slots;
    o.threads = 1;
    o.backward = true;
    kit_ok(weir_run_new(&r, model, &o, &err), &err);
    return r;
}

static weir_grad *grad_of(weir_run *r, int64_t memory)
{
    weir_err err = {0};
    weir_grad_options o;
    weir_grad *g = NULL;
    weir_grad_options_init(&o);
    o.memory = memory;
    kit_ok(weir_grad_new(&g, r, &o, &err), &err);
    return g;
}

static weir_loss_term nll(int64_t row)
{
    return (weir_loss_term){.kind = WEIR_LOSS_NLL, .row = row, .token = 3, .weight = 1};
}

static float *rows_of(int64_t width)
{
    float *x = calloc((size_t)(ROWS * width), sizeof *x);
    assert_non_null(x);
    return x;
}

static void says(const weir_err *err, weir_status st, weir_status expected, const char *text)
{
    assert_int_equal(st, expected);
    if (!strstr(err->msg, text))
        fail_msg("\"%s\" does not say \"%s\"", err->msg, text);
}

/* --- what is refused */

static void test_making(void **state)
{
    weir_err err = {0};
    weir_grad *g;
    weir_run *forward = kit_run(model, ROWS, 0, NULL, 1), *r = run_back(0);
    (void)state;
    says(&err, weir_grad_new(&g, forward, NULL, &err), WEIR_E_ARG, "the run keeps nothing for a way back");
    assert_null(g);
    err = (weir_err){0};
    kit_ok(weir_run_prepare(r, 0, &err), &err);
    says(&err, weir_grad_new(&g, r, NULL, &err), WEIR_E_ARG, "the run is prepared already");
    weir_grad_free(NULL);
    weir_run_free(forward);
    weir_run_free(r);
}

static void test_points_and_passes(void **state)
{
    weir_err err = {0};
    weir_run *r = run_back(0);
    weir_grad *g = grad_of(r, 0);
    const weir_loss_term t = nll(ROWS - 1);
    double loss;
    (void)state;
    says(&err, weir_grad_to(g, weir_model_point(model, "hook_embed_grad"), NULL, &err), WEIR_E_ARG, "hook_embed_grad");
    err = (weir_err){0};
    says(&err, weir_grad_to(g, NULL, NULL, &err), WEIR_E_ARG, "no point");
    err = (weir_err){0};
    says(&err, weir_grad_backward(g, &t, 1, NULL, 0, &loss, NULL, &err), WEIR_E_ARG, "the last pass did not run");
    kit_ok(weir_run_prepare(r, WEIR_FINAL, &(weir_err){0}), &err);
    kit_forward(r, ids, ROWS, -1, 0);
    err = (weir_err){0};
    says(&err, weir_grad_backward(g, &t, 1, NULL, 0, &loss, NULL, &err), WEIR_E_ARG, "the last pass did not run");
    kit_forward(r, ids, ROWS, -1, WEIR_FINAL);
    err = (weir_err){0};
    kit_ok(weir_grad_backward(g, &t, 1, NULL, 0, &loss, NULL, &err),
           &err); /* nobody wants a gradient: the loss alone */
    assert_true(loss > 0);
    const weir_grad_seed none = {.point = weir_model_point(model, "hook_embed")};
    says(&err, weir_grad_backward(g, NULL, 0, &none, 1, NULL, NULL, &err), WEIR_E_ARG,
         "seed 0, about hook_embed, has no values");
    /* a pass that fails leaves nothing to go back through */
    err = (weir_err){0};
    const int32_t wrong = (int32_t)info->V;
    assert_int_equal(weir_run_forward(r, &(weir_seq){.ids = &wrong, .n = 1, .slot = -1}, 1, WEIR_FINAL, &err),
                     WEIR_E_ARG);
    err = (weir_err){0};
    says(&err, weir_grad_backward(g, &t, 1, NULL, 0, &loss, NULL, &err), WEIR_E_ARG, "the last pass did not run");
    weir_grad_free(g);
    weir_run_free(r);
}

/* --- hooks */

static void test_a_writer_without_on_grad(void **state)
{
    weir_err err = {0};
    kit_tap t;
    weir_run *r = run_back(0);
    (void)state;
    kit_tap_init(&t, model);
    t.write = true;
    says(&err, weir_run_hook_object(r, &kit_tap_class, &t, &err), WEIR_E_HOOK,
         "hook tap writes to hook_embed and cannot tell what that does to gradients");
    kit_tap_free(&t);
    weir_run_free(r);
}

/* Wants everything, as a hook does that knows nothing of gradients. */
static weir_want all_wants(void *self, const weir_point *p)
{
    *(bool *)self |= p->grad;
    return WEIR_READ;
}

static weir_status all_value(void *self, const weir_value *v, weir_err *err)
{
    (void)self, (void)v, (void)err;
    return WEIR_OK;
}

/* A hook is asked about gradients if it says that it knows of them; nothing else in its answers is a guess. */
static void test_hooks_that_know_of_gradients(void **state)
{
    weir_hook_class c = {
        .struct_size = sizeof c, .abi = WEIR_HOOK_ABI, .name = "all", .wants = all_wants, .on_value = all_value};
    (void)state;
    for (int knows = 0; knows < 2; knows++) {
        for (int back = 0; back < 2; back++) {
            weir_err err = {0};
            weir_run_options o;
            weir_run *r;
            bool asked = false;
            weir_run_options_init(&o);
            o.backward = back;
            c.flags = knows ? WEIR_HOOK_GRADIENTS : 0;
            kit_ok(weir_run_new(&r, model, &o, &err), &err);
            const weir_status st = weir_run_hook_object(r, &c, &asked, &err);
            if (knows && !back)
                says(&err, st, WEIR_E_HOOK,
                     "hook all wants hook_embed_grad, a gradient, but this run only goes forward");
            else
                kit_ok(st, &err);
            assert_int_equal(asked, knows);
            assert_int_equal(weir_run_hook_gradients(r, 0), knows && back);
            assert_false(weir_run_hook_gradients(r, 1));
            weir_run_free(r);
        }
    }
}

/* Wants gradients, in a run that has none; beside values, these do not hide it. */
static void test_gradients_need_a_way_back(void **state)
{
    weir_err err = {0};
    weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
    (void)state;
    says(&err, weir_run_hook(r, weir_hook_class_find("template"), "resid_post_grad", &err), WEIR_E_HOOK,
         "hook template wants blocks.0.hook_resid_post_grad, a gradient, but this run only goes forward");
    err = (weir_err){0};
    says(&err, weir_run_hook(r, weir_hook_class_find("stats"), "resid_post,L1N3_grad", &err), WEIR_E_HOOK,
         "hook stats wants blocks.1.mlp.hook_post_grad, a gradient, but this run only goes forward");
    err = (weir_err){0};
    says(&err, weir_run_hook(r, weir_hook_class_find("lens"), "resid_post,resid_post_grad", &err), WEIR_E_ARG,
         "hook lens: blocks.0.hook_resid_post_grad is a gradient");
    weir_run_free(r);
}

/* A hook that notes in which order it is told of gradients, and may stop there. */
typedef struct listener {
    const weir_selector *only;
    char heard[1024];
    weir_status answer;
} listener;

static weir_want listener_wants(void *self, const weir_point *p)
{
    const listener *l = self;
    return p->grad && weir_selector_matches(l->only, p) ? WEIR_READ : WEIR_NONE;
}

static weir_status listener_value(void *self, const weir_value *v, weir_err *err)
{
    listener *l = self;
    strcat(strcat(l->heard, v->point->name), " ");
    assert_int_equal(v->rows->n, ROWS);
    return l->answer < 0 ? weir_fail(err, l->answer, "enough") : l->answer;
}

static const weir_hook_class listener_class = {.struct_size = sizeof listener_class,
                                               .abi = WEIR_HOOK_ABI,
                                               .flags = WEIR_HOOK_GRADIENTS,
                                               .name = "listener",
                                               .wants = listener_wants,
                                               .on_value = listener_value};

static void test_order_and_errors(void **state)
{
    weir_err err = {0};
    weir_selector *sel;
    weir_run *r = run_back(0);
    listener l = {0};
    const weir_loss_term t = nll(ROWS - 1);
    (void)state;
    kit_ok(weir_selector_build(&sel, model,
                               "blocks.1.hook_{mlp_out,resid_post}_grad,blocks.2.attn.hook_rot_q_grad,"
                               "unembed.hook_in_grad,L1H2_grad",
                               NULL, NULL, &err),
           &err);
    assert_int_equal(weir_selector_count(sel), 5);
    l.only = sel;
    kit_ok(weir_run_hook_object(r, &listener_class, &l, &err), &err);
    weir_grad *g = grad_of(r, 0);
    kit_forward(r, ids, ROWS, -1, WEIR_FINAL);
    assert_string_equal(l.heard, "");
    kit_ok(weir_grad_backward(g, &t, 1, NULL, 0, NULL, NULL, &err), &err);
    assert_string_equal(l.heard, "unembed.hook_in_grad blocks.2.attn.hook_rot_q_grad blocks.1.hook_resid_post_grad "
                                 "blocks.1.hook_mlp_out_grad blocks.1.attn.hook_z_grad ");
    assert_int_equal(weir_run_hook_fired(r, 0), 5);
    kit_ok(weir_run_finish(r, NULL, &err), &err);
    l.answer = WEIR_E_IO;
    says(&err, weir_grad_backward(g, &t, 1, NULL, 0, NULL, NULL, &err), WEIR_E_IO, "enough");
    l.answer = WEIR_STOP;
    assert_int_equal(weir_grad_backward(g, &t, 1, NULL, 0, NULL, NULL, &err), WEIR_STOP);
    weir_grad_free(g);
    weir_run_free(r);
    weir_selector_free(sel);
}

/* Hooks are taken back in reverse: 3 (x + v) and then times 2 is 6 x' for what stood there; the count stays the
 * forward's. */
static void test_writers_are_taken_back(void **state)
{
    weir_err err = {0};
    const int64_t c = info->C;
    const weir_loss_term t = nll(ROWS - 1);
    weir_run *r = run_back(0);
    float *left = rows_of(c), *before = rows_of(c), *plain = rows_of(c);
    int64_t missed;
    (void)state;
    kit_ok(weir_run_hook(r, weir_hook_class_find("scale"), "blocks.1.hook_resid_post=3", &err), &err);
    kit_ok(weir_run_hook(r, weir_hook_class_find("scale"), "blocks.1.hook_resid_post[2]=2", &err), &err);
    weir_grad *g = grad_of(r, 0);
    kit_ok(weir_grad_to(g, weir_model_point(model, "blocks.1.hook_resid_post"), left, &err), &err);
    kit_ok(weir_grad_to(g, weir_model_point(model, "blocks.1.hook_mlp_out"), before, &err), &err);
    kit_forward(r, ids, ROWS, -1, WEIR_FINAL);
    kit_ok(weir_grad_backward(g, &t, 1, NULL, 0, NULL, NULL, &err), &err);
    for (int64_t i = 0; i < ROWS * c; i++)
        plain[i] = left[i] * (i / c == 2 ? 2.0F : 1.0F) * 3;
    kit_same(plain, before, ROWS * c, "the gradient of what stood there");
    assert_int_equal(weir_run_hook_changed(r, 0, &missed), ROWS);
    assert_int_equal(weir_run_hook_changed(r, 1, &missed), 1);
    free(left);
    free(before);
    free(plain);
    weir_grad_free(g);
    weir_run_free(r);
}

/* The selector's `_grad`: only where it is spelled, and what a dump says to it. */
static void test_selectors(void **state)
{
    (void)state;
    const weir_point *p;
    const int64_t n = weir_model_points(model, &p), most = n - 3 * info->L; /* without scores, pattern and result */
    const struct {
        const char *text;
        int64_t n;
    } cases[] = {{"*", most},
                 {"*_grad", most},
                 {"*_grad,*", 2 * most},
                 {"resid_post_grad", info->L},
                 {"L2N5_grad", 1},
                 {"blocks.{0,2}.*pattern_grad", 2}};
    assert_int_equal(weir_model_points_all(model, &p), 2 * n);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_err err = {0};
        weir_selector *sel;
        kit_ok(weir_selector_build(&sel, model, cases[i].text, NULL, NULL, &err), &err);
        assert_int_equal(weir_selector_count(sel), cases[i].n);
        for (int64_t k = 0; k < 2 * n; k++)
            if (weir_selector_matches(sel, &p[k]) && p[k].grad)
                assert_non_null(strstr(cases[i].text, "_grad"));
        weir_selector_free(sel);
    }
    for (int64_t k = 0; k < n; k++) {
        char name[128];
        snprintf(name, sizeof name, "%s_grad", p[k].name);
        assert_ptr_equal(weir_model_point(model, name), &p[n + k]);
        assert_true(p[n + k].grad && !p[k].grad && p[n + k].width == p[k].width && p[n + k].site == p[k].site);
    }
}

/* --- the way of an edit: a prefix in a slot, the rest again and again from a layer on */

static void test_again_and_again(void **state)
{
    enum { PREFIX = 3, LAYER = 1 };
    weir_err err = {0};
    const int64_t c = info->C, n = ROWS - PREFIX;
    const weir_loss_term t = nll(n - 1);
    const weir_point *post = weir_model_point(model, "blocks.0.hook_resid_post");
    const weir_seq prefix = {.ids = ids, .n = PREFIX, .slot = 0}, rest = {.ids = ids + PREFIX, .n = n, .slot = 0};
    float *x = rows_of(c), *whole = rows_of(c), *part = rows_of(c);
    double losses[3];
    int64_t arena[2];
    (void)state;
    for (int64_t memory = 0; memory < 2; memory++) {
        weir_run *r = run_back(1);
        kit_tap tap;
        kit_tap_init(&tap, model);
        kit_attach(r, &tap);
        weir_grad *g = grad_of(r, memory ? 60000 : 0);
        kit_ok(weir_grad_to(g, post, whole, &err), &err);
        kit_ok(weir_run_forward(r, &prefix, 1, WEIR_FINAL, &err), &err);
        arena[memory] = weir_run_arena_bytes(r);
        kit_ok(weir_run_forward(r, &rest, 1, WEIR_FINAL | WEIR_KEEP_SLOTS, &err), &err);
        kit_ok(weir_grad_backward(g, &t, 1, NULL, 0, &losses[0], NULL, &err), &err);
        memcpy(x, kit_heard(&tap, model, "blocks.0.hook_resid_post"), (size_t)(n * c) * sizeof *x);
        kit_ok(weir_grad_to(g, post, part, &err), &err);
        for (int again = 1; again < 3; again++) {
            memset(part, 0, (size_t)(n * c) * sizeof *part);
            memcpy(weir_run_stream(r), x, (size_t)(n * c) * sizeof *x);
            kit_ok(weir_run_forward_from(r, &rest, 1, LAYER, WEIR_FINAL | WEIR_KEEP_SLOTS, &err), &err);
            kit_ok(weir_grad_backward(g, &t, 1, NULL, 0, &losses[again], NULL, &err), &err);
            assert_memory_equal(&losses[0], &losses[again], sizeof *losses);
            kit_same(whole, part, n * c, "the gradient of the stream");
        }
        /* a step against the gradient lowers the loss */
        for (int64_t i = 0; i < n * c; i++)
            weir_run_stream(r)[i] = x[i] - 1e-2F * part[i];
        kit_ok(weir_run_forward_from(r, &rest, 1, LAYER, WEIR_FINAL | WEIR_KEEP_SLOTS, &err), &err);
        kit_ok(weir_grad_backward(g, &t, 1, NULL, 0, &losses[1], NULL, &err), &err);
        assert_true(losses[1] < losses[0]);
        kit_tap_free(&tap);
        weir_grad_free(g);
        weir_run_free(r);
    }
    assert_true(arena[1] < arena[0]); /* the bound was felt: layers were made again */
    free(x);
    free(whole);
    free(part);
}

/* A wish can be taken back, and the way then ends earlier. */
static void test_wishes_change(void **state)
{
    weir_err err = {0};
    const weir_loss_term t = nll(ROWS - 1);
    weir_run *r = run_back(0);
    weir_grad *g = grad_of(r, 0);
    float *a = rows_of(info->C), *b = rows_of(info->C);
    (void)state;
    kit_ok(weir_grad_to(g, weir_model_point(model, "hook_embed"), a, &err), &err);
    kit_ok(weir_grad_to(g, weir_model_point(model, "blocks.2.hook_resid_mid"), b, &err), &err);
    kit_forward(r, ids, ROWS, -1, WEIR_FINAL);
    kit_ok(weir_grad_backward(g, &t, 1, NULL, 0, NULL, NULL, &err), &err);
    assert_true(a[0] != 0 && b[(ROWS - 1) * info->C] != 0);
    memset(a, 0, (size_t)(ROWS * info->C) * sizeof *a);
    kit_ok(weir_grad_to(g, weir_model_point(model, "hook_embed"), NULL, &err), &err);
    kit_ok(weir_grad_backward(g, &t, 1, NULL, 0, NULL, NULL, &err), &err);
    for (int64_t i = 0; i < ROWS * info->C; i++)
        assert_true(a[i] == 0);
    /* a seed before what is wished: nothing comes back there */
    const weir_grad_seed seed = {weir_model_point(model, "blocks.0.hook_resid_pre"), a};
    kit_ok(weir_grad_backward(g, NULL, 0, &seed, 1, NULL, NULL, &err), &err);
    for (int64_t i = 0; i < ROWS * info->C; i++)
        assert_true(b[i] == 0);
    free(a);
    free(b);
    weir_grad_free(g);
    weir_run_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_making),
        cmocka_unit_test(test_points_and_passes),
        cmocka_unit_test(test_a_writer_without_on_grad),
        cmocka_unit_test(test_hooks_that_know_of_gradients),
        cmocka_unit_test(test_gradients_need_a_way_back),
        cmocka_unit_test(test_order_and_errors),
        cmocka_unit_test(test_writers_are_taken_back),
        cmocka_unit_test(test_selectors),
        cmocka_unit_test(test_again_and_again),
        cmocka_unit_test(test_wishes_change),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
