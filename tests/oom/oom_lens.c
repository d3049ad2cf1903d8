/* Lenses with every allocation failing once: an error that says so, nothing lost, and the next call works. */
#include <stdlib.h>
#include <string.h>

#include "support/oom.h"

#include <weir/lens.h>

#include "unit/run_kit.h"

enum { N = 5, ROWS = 3, T = 2, K = 4, MOST_C = 64 };

/* Two rows are compared with earlier ones; of all results. */
static weir_status measure(weir_lens *l, const float *x, weir_err *err)
{
    float number[5][ROWS * N], target[2][ROWS * N * T], top[ROWS * N * K];
    int32_t rank[ROWS * N * T], id[ROWS * N * K], ask[N * T];
    const weir_lens_row row[ROWS] = {
        {x, -1, WEIR_LENS_RECOMPUTE}, {x, 0, WEIR_LENS_CACHED}, {x, 0, WEIR_LENS_RECOMPUTE}};
    for (int i = 0; i < N * T; i++)
        ask[i] = i % T ? WEIR_LENS_FINAL_TOP : i;
    const weir_lens_what what = {.row = row, .n_rows = ROWS, .n = N, .target = ask, .n_targets = T, .k = K};
    const weir_lens_out out = {.entropy = number[0],
                               .kl_final = number[1],
                               .kl_prev = number[2],
                               .jsd = number[3],
                               .log_z = number[4],
                               .logit = target[0],
                               .logprob = target[1],
                               .rank = rank,
                               .top_id = id,
                               .top_logprob = top};
    return weir_lens_measure(l, &what, &out, err);
}

static weir_status use_lens(weir_lens *l, const weir_model *m, weir_err *err)
{
    float x[N * MOST_C], logprob[N * K], dir[2 * MOST_C], scale[N];
    int32_t id[N * K];
    double bias[2];
    for (int i = 0; i < N * MOST_C; i++)
        x[i] = (float)(i % 7) - 3;
    WEIR_TRY(weir_lens_top(l, x, N, K, id, logprob, err));
    WEIR_TRY(measure(l, x, err));
    WEIR_TRY(weir_lens_directions(m, (const int32_t[]){0, 1}, 2, dir, bias, err));
    return weir_lens_scale(l, x, N, NULL, scale, err);
}

static weir_status use(const void *path, weir_err *err)
{
    weir_model *m;
    weir_lens *l;
    WEIR_TRY(weir_model_open(&m, path, NULL, err));
    weir_status st = weir_lens_new(&l, m, NULL, 1, err);
    if (!st)
        st = use_lens(l, m, err);
    weir_lens_free(l);
    weir_model_free(m);
    return st;
}

static void every_allocation(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++)
        assert_in_range(oom_each(use, kit_models[k]), 40, 5000);
}

/* A lens survives a call that had no memory. */
static weir_status measure_twice(const void *lens, weir_err *err)
{
    weir_lens *l = *(weir_lens *const *)lens;
    float x[N * MOST_C] = {0};
    weir_status st = measure(l, x, err);
    if (st) {
        weir_err again = {0};
        fail_at = 0;
        kit_ok(measure(l, x, &again), &again);
    }
    return st;
}

static void the_next_call_works(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GPT2);
    weir_lens *l;
    kit_ok(weir_lens_new(&l, m, NULL, 1, &err), &err);
    assert_in_range(oom_each(measure_twice, &l), 4, 50);
    weir_lens_free(l);
    weir_model_free(m);
}

int main(void)
{
    oom_one_processor();
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation), cmocka_unit_test(the_next_call_works)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
