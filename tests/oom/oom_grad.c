/* Every allocation of a way back fails once: each time a clean error, and nothing leaks. The models stay open and
 * packed, as oom_model and oom_run have seen to those. */
#include <weir/grad.h>

#include "../unit/run_kit.h"
#include "support/oom.h"

static const int32_t ids[] = {1, 2, 3, 4};

static weir_status go_back(weir_run *r, weir_grad *g, const weir_model *m, float *d, weir_err *err)
{
    const weir_loss_term term[] = {{.kind = WEIR_LOSS_LOGIT, .row = 3, .token = 5, .weight = 1},
                                   {.kind = WEIR_LOSS_NLL, .row = 3, .token = 2, .weight = 1}};
    WEIR_TRY(weir_grad_to(g, weir_model_point(m, "blocks.0.hook_resid_pre"), d, err));
    WEIR_TRY(weir_run_forward(r, &(weir_seq){.ids = ids, .n = 4, .slot = -1}, 1, WEIR_FINAL, err));
    return weir_grad_backward(g, term, 2, NULL, 0, NULL, NULL, err);
}

/* memory: 0, or a bound under which weights and activations are made again. */
static weir_status use_memory(const weir_model *m, int64_t memory, weir_err *err)
{
    static float d[4 * 64];
    weir_run_options o;
    weir_grad_options go = {.memory = memory};
    weir_run *r = NULL;
    weir_grad *g = NULL;
    weir_run_options_init(&o);
    o.max_rows = 4;
    o.threads = 1;
    o.backward = true;
    weir_status st = weir_run_new(&r, m, &o, err);
    if (!st)
        st = weir_run_hook(r, weir_hook_class_find("scale"), "blocks.1.hook_mlp_out=2", err);
    if (!st)
        st = weir_grad_new(&g, r, &go, err);
    if (!st)
        st = go_back(r, g, m, d, err);
    weir_grad_free(g);
    weir_run_free(r);
    return st;
}

static weir_status use(const void *model, weir_err *err)
{
    return use_memory(model, 0, err);
}

static weir_status use_bound(const void *model, weir_err *err)
{
    return use_memory(model, 1 << 16, err);
}

static void test_every_allocation(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        weir_err err = {0};
        weir_model *m = kit_open(kit_models[k]);
        kit_ok(use(m, &err), &err);
        assert_in_range(oom_each(use, m), 20, 500);
        if (k == 0)
            assert_in_range(oom_each(use_bound, m), 20, 500);
        weir_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
