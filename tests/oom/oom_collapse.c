/* Every allocation of what weir/collapse.h does fails once: each time a clean error, and nothing leaks. */
#include <weir/collapse.h>

#include "../unit/run_kit.h"
#include "support/oom.h"

static const int32_t ids[] = {1, 2, 3, 4};
static const float rows[2 * 64] = {1, 2, 3, [64] = 3, 1, 2};

static weir_status alike(const void *model, weir_err *err)
{
    weir_alike a;
    double value[2];
    (void)model;
    WEIR_TRY(weir_alike_measure(&a, rows, 2, 64, err));
    return weir_alike_singular(rows, 2, 64, true, 2, value, err);
}

/* A pass with both hooks. */
static weir_status pass(const weir_model *m, weir_hull *h, weir_run **r, weir_err *err)
{
    weir_run_options o;
    weir_run_options_init(&o);
    o.max_rows = 4;
    o.threads = 1;
    WEIR_TRY(weir_run_new(r, m, &o, err));
    WEIR_TRY(weir_run_hook(*r, weir_hook_class_find("without"), "mlp,norms", err));
    WEIR_TRY(weir_hull_attach(h, *r, err));
    return weir_run_forward(*r, &(weir_seq){.ids = ids, .n = 4, .slot = -1}, 1, 0, err);
}

static weir_status hull(const void *model, weir_err *err)
{
    weir_hull *h = NULL;
    weir_run *r = NULL;
    weir_status s = weir_hull_new(&h, model, 3, 1, err);
    if (s == WEIR_OK)
        s = pass(model, h, &r, err);
    weir_run_free(r);
    weir_hull_free(h);
    return s;
}

static weir_status lipschitz(const void *model, weir_err *err)
{
    weir_lipschitz out[1];
    const weir_lipschitz_options o = {.threads = 1, .iterations = 2, .seed = 1};
    return weir_lipschitz_measure(out, model, 1, rows, 1, &o, err);
}

static void test_every_allocation(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(kit_models[0]);
    assert_true(weir_model_info_of(m)->C <= 64);
    kit_ok(hull(m, &err), &err);
    kit_ok(lipschitz(m, &err), &err);
    assert_in_range(oom_each(alike, m), 6, 30);
    assert_in_range(oom_each(hull, m), 15, 200);
    assert_in_range(oom_each(lipschitz, m), 25, 300);
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
