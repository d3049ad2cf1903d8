/* Statistics of sparsity with every allocation failing once: made, fed by a run, finished, asked. */
#include "support/oom.h"

#include <weir/sparsity.h>

static weir_status feed(weir_sparsity *s, const weir_model *m, weir_err *err)
{
    static const int32_t ids[] = {1, 2, 3, 4};
    const weir_seq seq = {.ids = ids, .n = 4, .slot = -1};
    weir_run_options o;
    weir_run *r = NULL;
    weir_run_options_init(&o);
    o.max_rows = 4;
    o.threads = 1;
    weir_status st = weir_run_new(&r, m, &o, err);
    if (!st)
        st = weir_sparsity_attach(s, r, err);
    if (!st)
        st = weir_run_forward(r, &seq, 1, 0, err);
    weir_run_free(r);
    return st;
}

static weir_status use(const void *path, weir_err *err)
{
    weir_model *m = NULL;
    weir_sparsity *s = NULL;
    weir_sparsity_options o;
    double hot;
    weir_sparsity_options_init(&o);
    o.sample = 2;
    weir_status st = weir_model_open(&m, path, NULL, err);
    if (!st)
        st = weir_sparsity_new(&s, m, &o, err);
    if (!st)
        st = feed(s, m, err);
    if (!st)
        st = weir_sparsity_finish(s, 1, err);
    if (!st)
        st = weir_sparsity_hot(s, 0, 1, 0.1, &hot, err);
    weir_sparsity_free(s);
    weir_model_free(m);
    return st;
}

static void test_sparsity(void **state)
{
    (void)state;
    assert_in_range(oom_each(use, "tests/golden/models/llama-llama3-v4"), 60, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sparsity)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
