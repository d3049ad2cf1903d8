/* Statistics of a text with every allocation failing once: made, fed, merged, written and read. */
#include <string.h>

#include "support/oom.h"

#include <weir/survey.h>

#include "support/scratch.h"

enum { LINES = 3, N = 4, MOST = 2000 };

static weir_status fill(weir_survey *s, int64_t shard, weir_err *err)
{
    static const float kl[LINES * N] = {1, 2, 3, 4}, logprob[LINES * N] = {-1};
    static const int32_t top[LINES * N] = {1, 1}, next[N] = {1, 0, -1, 1};
    const weir_survey_about about = {.model = "m", .source = "{}", .shard = shard, .shards = 3};
    const weir_survey_batch b = {N, kl, logprob, 1, 0, top, 1, next, NULL, 1};
    WEIR_TRY(weir_survey_set_about(s, &about, err));
    return weir_survey_add(s, &b, err);
}

static weir_status make(weir_survey **s, int64_t shard, weir_err *err)
{
    static const weir_survey_line line[LINES] = {
        {"L0", "h0", "resid_post", 0}, {"L1", "h1", "resid_post", 1}, {"out", "h2", "resid_post", 2}};
    WEIR_TRY(weir_survey_new(s, line, LINES, err));
    return fill(*s, shard, err);
}

/* Two shards, of which one comes back from a file. */
static weir_status use(const void *path, weir_err *err)
{
    weir_survey *a = NULL, *b = NULL, *back = NULL;
    weir_status st = make(&a, 0, err);
    if (!st)
        st = make(&b, 2, err);
    if (!st)
        st = weir_survey_write(b, path, 1, err);
    if (!st)
        st = weir_survey_read(&back, path, err);
    if (!st)
        st = weir_survey_merge(a, back, err);
    weir_survey_free(a);
    weir_survey_free(b);
    weir_survey_free(back);
    return st;
}

static void test_survey(void **state)
{
    (void)state;
    assert_in_range(oom_each(use, scratch("survey.h5")), 60, MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_survey)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
