/* Every allocation of finding and of merging the tokens that weights stand for fails once: each time an error that says
 * so, and the search is as before. */
#include "search/weights.h"
#include "support/oom.h"

static weir_model *model;

static weir_neurons *search_of(const weir_model *m)
{
    static const int64_t unit[] = {2, 9};
    const weir_neurons_table t[] = {
        {"blocks.0.mlp.hook_pre", "pre", 0, weir_model_info_of(m)->F, 2, unit},
        {"blocks.0.mlp.hook_post", "post", 0, weir_model_info_of(m)->F, 2, unit}, /* takes them from the one before */
    };
    weir_err err = {0};
    weir_neurons *s;
    weir_neurons_options o;
    weir_neurons_options_init(&o);
    o.threads = 1;
    assert_int_equal(weir_neurons_new(&s, &o, t, 2, &err), WEIR_OK);
    return s;
}

static weir_status find(weir_neurons *s, weir_err *err)
{
    weir_neurons_weights_options o;
    weir_neurons_weights_options_init(&o);
    o.threads = 1;
    return weir_neurons_weights(s, model, &o, err);
}

/* s has no tokens before, and none after. */
static weir_status find_once(const void *ctx, weir_err *err)
{
    weir_neurons *s = *(weir_neurons *const *)ctx;
    const weir_status st = find(s, err);
    assert_true((st == WEIR_OK) == (s->weights != NULL));
    weir_weights_free(s->weights);
    s->weights = NULL;
    return st;
}

static weir_status merge(const void *ctx, weir_err *err)
{
    weir_neurons *const *s = ctx;
    const weir_status st = weir_weights_merge(s[0], s[1], err);
    assert_true((st == WEIR_OK) == (s[0]->weights != NULL));
    weir_weights_free(s[0]->weights);
    s[0]->weights = NULL;
    return st;
}

static void test_all(void **state)
{
    (void)state;
    static const char *const path[] = {"tests/golden/models/llama-gqa-bf16", "tests/golden/models/gpt2"};
    for (int i = 0; i < 2; i++) {
        weir_err err = {0};
        assert_int_equal(weir_model_open(&model, path[i], NULL, &err), WEIR_OK);
        weir_neurons *s[2] = {search_of(model), search_of(model)};
        assert_int_equal(find(s[1], &err), WEIR_OK); /* and the model has packed what it packs once */
        assert_in_range(oom_each(find_once, s), 15, 60);
        assert_in_range(oom_each(merge, s), 4, 20);
        weir_neurons_free(s[0]);
        weir_neurons_free(s[1]);
        weir_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
