/* Blueprints, bills and ledgers: every allocation fails once. */
#include <weir/count.h>

#include "support/oom.h"

static weir_status weigh(const void *path, weir_err *err)
{
    weir_blueprint *b;
    weir_bill *bill = NULL;
    weir_ledger *ledger = NULL;
    weir_status s = weir_blueprint_open(&b, path, err);
    if (s == WEIR_OK)
        s = weir_bill_make(&bill, b, err);
    if (s == WEIR_OK)
        s = weir_ledger_open(&ledger, path, b, bill, err);
    weir_ledger_free(ledger);
    weir_bill_free(bill);
    weir_blueprint_free(b);
    return s;
}

/* Remarks, lists of layers, an object within another; a decoder's layers made anew. */
static void test_configurations(void **state)
{
    (void)state;
    assert_in_range(oom_each(weigh, "tests/data/configs/gpt-oss-120b.json"), 5, 100);
    assert_in_range(oom_each(weigh, "tests/data/configs/llama-4-maverick.json"), 5, 100);
    assert_in_range(oom_each(weigh, "tests/data/configs/t5-base.json"), 5, 100);
}

static void test_checkpoints(void **state)
{
    (void)state;
    assert_in_range(oom_each(weigh, "tests/golden/models/gpt2"), 10, 500);
    assert_in_range(oom_each(weigh, "tests/golden/models/gpt2/model.safetensors"), 10, 500);
    assert_in_range(oom_each(weigh, "tests/golden/models/llama-q4_0.gguf"), 10, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_configurations), cmocka_unit_test(test_checkpoints)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
