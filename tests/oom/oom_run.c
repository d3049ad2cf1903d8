/* Every allocation of runs, selectors and hooks fails once: each time a clean error, and nothing leaks. And the promise
 * of weir/run.h: once prepared and its layers packed, a forward allocates nothing. */
#include "../unit/run_kit.h"
#include "support/oom.h"

static const int32_t ids[] = {1, 2, 3, 4, 5};

static weir_run_options options(void)
{
    weir_run_options o;
    weir_run_options_init(&o);
    o.max_rows = 8;
    o.threads = 1;
    o.slots = 1;
    return o;
}

static weir_status use_run(weir_run *r, weir_err *err)
{
    static const char *const hooks[][2] = {
        {"ablate", "L0N3[-1]"}, {"log", "resid_post"}, {"stats", "post[:,0:4]"}, {"template", "pattern"}};
    float logits[80];
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        WEIR_TRY(weir_run_hook(r, weir_hook_class_find(hooks[i][0]), hooks[i][1], err));
    WEIR_TRY(weir_run_forward(r, &(weir_seq){.ids = ids, .n = 3, .slot = 0}, 1, WEIR_FINAL, err));
    WEIR_TRY(weir_run_forward(r, &(weir_seq){.ids = ids + 3, .n = 2, .slot = 0}, 1, WEIR_FINAL, err));
    WEIR_TRY(weir_run_logits(r, 0, 1, logits, err));
    return weir_run_finish(r, NULL, err);
}

static weir_status use(const weir_model *m, weir_err *err)
{
    weir_run *r;
    const weir_run_options o = options();
    WEIR_TRY(weir_run_new(&r, m, &o, err));
    weir_status st = use_run(r, err);
    weir_run_free(r);
    return st;
}

static void test_every_allocation(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        long n = 0;
        for (long i = 0; i <= n; i++) { /* i = 0 counts them */
            weir_err err = {0};
            weir_model *m = kit_open(kit_models[k]);
            allocations = 0;
            fail_at = i;
            weir_status st = use(m, &err);
            fail_at = 0;
            if (i == 0)
                n = allocations;
            weir_status want = i ? WEIR_E_NOMEM : WEIR_OK;
            if (st != want || err.code != want)
                fail_msg("allocation %ld of %ld: status %d, %s", i, n, st, err.msg);
            weir_model_free(m);
        }
        assert_true(n > 40);
    }
}

static void test_forward_allocates_nothing(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        weir_err err = {0};
        weir_model *m = kit_open(kit_models[k]);
        const weir_run_options o = options();
        weir_run *r;
        float logits[80 * 8];
        int32_t target[] = {1, 2};
        kit_ok(weir_run_new(&r, m, &o, &err), &err);
        kit_ok(weir_run_hook(r, weir_hook_class_find("ablate"), "L0N3[-1]", &err), &err);
        kit_ok(weir_run_hook(r, weir_hook_class_find("stats"), "*", &err), &err);
        kit_forward(r, ids, 3, 0, WEIR_FINAL);
        kit_ok(weir_run_logits(r, 0, 1, logits, &err), &err);
        allocations = 0;
        kit_forward(r, ids + 3, 2, 0, WEIR_FINAL);
        kit_ok(weir_run_logits(r, 0, 1, logits, &err), &err);
        kit_ok(weir_run_logprobs(r, target, logits, &err), &err);
        assert_int_equal(allocations, 0);
        weir_run_free(r);
        weir_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation),
                                       cmocka_unit_test(test_forward_allocates_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
