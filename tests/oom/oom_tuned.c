/* Tuned lenses: every allocation fails once: while one is fitted, measured and saved, and while it is read and used. */
#include <weir/tuned.h>

#include "support/oom.h"
#include "support/scratch.h"

static const char MODEL[] = "tests/golden/models/gpt2";

typedef struct world {
    weir_model *m;
    const float *x[3]; /* two layers, and the final stream */
} world;

static weir_status fit(const void *ctx, weir_err *err)
{
    const world *w = ctx;
    double plain[2] = {0}, tuned[2] = {0};
    const weir_fit_about about = {.base_model = "gpt2", .plain = plain, .tuned = tuned};
    weir_fit *f;
    weir_fit_options o;
    weir_fit_options_init(&o);
    o.steps = 1;
    o.step_rows = 4;
    o.threads = 1;
    WEIR_TRY(weir_fit_new(&f, w->m, &o, err));
    weir_status s = weir_fit_add(f, w->x, 4, err);
    if (s == WEIR_OK)
        s = weir_fit_measure(f, w->x, 2, plain, tuned, err);
    if (s == WEIR_OK)
        s = weir_fit_save(f, scratch("lens"), &about, err);
    weir_fit_free(f);
    return s;
}

static weir_status use(const void *ctx, weir_err *err)
{
    const world *w = ctx;
    float y[4 * 64];
    weir_tuned *t;
    const weir_tuned_options o = {.threads = 1};
    WEIR_TRY(weir_tuned_open(&t, scratch("lens"), w->m, &o, err));
    const weir_status s = weir_tuned_apply(t, 1, w->x[1], 4, y, err);
    weir_tuned_free(t);
    return s;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    weir_err err = {0};
    world w = {0};
    float x[4 * 64];
    for (int i = 0; i < 4 * 64; i++)
        x[i] = (float)(i * 37 % 101) / 50 - 1;
    w.x[0] = w.x[1] = w.x[2] = x;
    assert_int_equal(weir_model_open(&w.m, MODEL, NULL, &err), WEIR_OK);
    assert_true(weir_model_info_of(w.m)->L == 2 && weir_model_info_of(w.m)->C <= 64);
    assert_in_range(oom_each(fit, &w), 20, 1000);
    assert_in_range(oom_each(use, &w), 10, 1000);
    weir_model_free(w.m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails_once)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
