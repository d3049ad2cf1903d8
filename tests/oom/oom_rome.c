/* Every allocation of making an edit, and of asking a model with it, fails once: each time a clean error, and nothing
 * leaks. */
#include <weir/rome.h>

#include "../unit/run_kit.h"
#include "support/oom.h"

#define TOKENIZER "tests/data/tokenizers/tiny/13.json"

/* The models have two layers, and behind the last one only the subject itself reads what is written at it. */
static const weir_rome_request requests[] = {{"d {}", "e l", "c"}, {"0 {}", "t d", "a e"}};
static const int64_t both[] = {0, 1};

typedef struct job {
    weir_rome_method method;
    int64_t n; /* requests */
    int n_layers;
    weir_model *m;
    weir_tokenizer *tok;
    weir_covariance *cov;
} job;

static weir_status ask(const job *j, const weir_edit *e, weir_err *err)
{
    weir_asker *a;
    weir_answer r;
    int32_t id[2];
    int64_t made;
    double nll;
    const weir_question q = {"d e l t", "c"};
    WEIR_TRY(weir_asker_new(&a, j->m, j->tok, &(weir_asker_options){.edits = &e, .n_edits = 1, .threads = 1}, err));
    weir_status st = weir_asker_ask(a, &q, 1, &r, err);
    if (!st)
        st = weir_asker_continue(a, q.prompt, 2, id, &made, err);
    if (!st)
        st = weir_asker_text(a, q.prompt, 7, &nll, &made, err);
    weir_asker_free(a);
    return st;
}

static weir_status make_with(const job *j, weir_rome *w, weir_err *err)
{
    weir_edit *e;
    weir_rome_report report[2];
    WEIR_TRY(weir_rome_make(w, requests, j->n, &e, report, err));
    const weir_status st = ask(j, e, err);
    for (int64_t i = 0; i < j->n; i++)
        weir_rome_report_free(&report[i]);
    weir_edit_free(e);
    return st;
}

static weir_status make(const void *ctx, weir_err *err)
{
    const job *j = ctx;
    const char *const prefix[] = {"t e"};
    const weir_covariance *const cov[] = {j->cov, j->cov};
    weir_rome_prefixes *p;
    weir_rome *w = NULL;
    weir_rome_options o;
    weir_rome_options_for(&o, j->method);
    o.layer = both, o.n_layers = j->n_layers, o.covariance = cov;
    o.steps = 2, o.threads = 1, o.weight = 1;
    WEIR_TRY(weir_rome_prefixes_new(&p, prefix, 1, err));
    weir_status st = weir_rome_new(&w, j->m, j->tok, p, &o, err);
    if (!st)
        st = make_with(j, w, err);
    weir_rome_free(w);
    weir_rome_prefixes_free(p);
    return st;
}

static void run_job(const char *path, job j)
{
    weir_err err = {0};
    j.m = kit_open(path);
    kit_ok(weir_tokenizer_open(&j.tok, TOKENIZER, NULL, &err), &err);
    kit_ok(weir_covariance_identity(&j.cov, weir_model_info_of(j.m)->F, &err), &err);
    assert_in_range(oom_each(make, &j), 40, 5000);
    weir_covariance_free(j.cov);
    weir_tokenizer_free(j.tok);
    weir_model_free(j.m);
}

static void test_one_layer(void **state)
{
    (void)state;
    run_job(KIT_GPT2, (job){.method = WEIR_ROME_CONSISTENT, .n = 1, .n_layers = 1});
    run_job(KIT_GEMMA, (job){.method = WEIR_ROME_CONSISTENT, .n = 1, .n_layers = 1});
    run_job(KIT_LLAMA, (job){.method = WEIR_ROME_EMMET, .n = 2, .n_layers = 1});
}

static void test_several_layers(void **state)
{
    (void)state;
    run_job(KIT_GPT2, (job){.method = WEIR_ROME_MEMIT, .n = 2, .n_layers = 2});
}

static weir_status sample(const void *ctx, weir_err *err)
{
    const job *j = ctx;
    weir_rome_prefixes *p;
    const weir_rome_lengths few = {(const int64_t[]){2}, (const int64_t[]){2}, 1};
    const weir_status st = weir_rome_prefixes_sample(&p, j->m, j->tok, &few, 1, err);
    weir_rome_prefixes_free(p);
    return st;
}

static void test_prefixes(void **state)
{
    (void)state;
    weir_err err = {0};
    job j = {.m = kit_open(KIT_GPT2)};
    kit_ok(weir_tokenizer_open(&j.tok, TOKENIZER, NULL, &err), &err);
    assert_in_range(oom_each(sample, &j), 10, 2000);
    weir_tokenizer_free(j.tok);
    weir_model_free(j.m);
}

int main(void)
{
    oom_one_processor();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_layer), cmocka_unit_test(test_several_layers),
                                       cmocka_unit_test(test_prefixes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
