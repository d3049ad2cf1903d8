/* weir/keyvalue.h: counting by hand, and what values and their negatives promote against the lens. */
#include <math.h>

#include <weir/keyvalue.h>
#include <weir/weights.h>

#include "run_kit.h"

/* --- agreement */

static void test_agreement_of_a_few_keys(void **state)
{
    /* Five keys of two triggers; the last two have no next token behind the best, or no likeliest one. */
    const int32_t top[] = {7, 7, 3, 4, -1}, next[] = {7, 7, 9, 7, 7, 2, -1, 4, 1, 1},
                  rank[] = {1, 1, 12, 1, 5, 8, 0, 1, 0, 0};
    const weir_keyvalue_keys keys = {.n = 5, .k = 2, .top = top, .next = next, .rank = rank};
    weir_keyvalue_figures f;
    weir_err err = {0};
    (void)state;
    kit_ok(weir_keyvalue_agree(&keys, &f, &err), &err);
    assert_int_equal(f.keys, 3);
    assert_int_equal(f.agree, 1);
    assert_int_equal(f.any, 2);
    assert_int_equal(f.places, 6);
    assert_int_equal(f.matches, 3);
    assert_true(f.chance == 4.0 / 9); /* values 7 7 3, next tokens 7 9 7: four of nine pairs */
    assert_true(f.rank == 5);
    const weir_keyvalue_keys none = {.n = 0, .k = 1};
    kit_ok(weir_keyvalue_agree(&none, &f, &err), &err);
    assert_true(f.keys == 0 && isnan(f.chance) && isnan(f.rank));
    assert_int_equal(weir_keyvalue_agree(&(weir_keyvalue_keys){.n = 1}, &f, &err), WEIR_E_ARG);
}

/* --- the split */

static void test_split_by_hand(void **state)
{
    weir_keyvalue *kv;
    weir_err err = {0};
    /* Memories 0 and 1 promote 5 and 6, and against it 8 and 9. */
    const int32_t top[] = {5, 6}, bottom[] = {8, 9}, residual[] = {5, 4, 5, 1, 1, -1, 2}, mlp[] = {6, 5, 5, 8, 9, 1, 2},
                  layer[] = {5, 5, 5, 7, 1, 1, 3}, final[] = {5, 4, 6, 1, -1, 1, 3};
    const float m[] = {1, 1, 0, 1, 1, 0, -1, 1, 1, 1, 1, 1, 0, 0};
    (void)state;
    kit_ok(weir_keyvalue_new(&kv, 1, 2, 10, &err), &err);
    const weir_keyvalue_rows rows = {.n = 7, .residual = residual, .mlp = mlp, .layer = layer, .coefficient = m};
    assert_int_equal(weir_keyvalue_add(kv, 0, &rows, &err), WEIR_E_ARG); /* its memories come first */
    kit_ok(weir_keyvalue_memories(kv, 0, top, bottom, &err), &err);
    kit_ok(weir_keyvalue_add(kv, 0, &rows, &err), &err);
    kit_ok(weir_keyvalue_add_final(kv, 0, 7, residual, layer, final, &err), &err);
    const weir_keyvalue_counts c = weir_keyvalue_counts_of(kv, 0);
    assert_int_equal(c.rows, 6);
    assert_int_equal(c.lost, 1);
    assert_int_equal(c.residual, 2);    /* rows 0 and 4 */
    assert_int_equal(c.mlp, 1);         /* row 1 */
    assert_int_equal(c.agreement, 1);   /* row 2 */
    assert_int_equal(c.composition, 2); /* rows 3 and 6, */
    assert_int_equal(c.apart, 1);       /* of which 6 has two that agree */
    /* Row 0 has memory 1 at 1, row 2 memory 0 at 1, row 3 memory 0 at -1, whose negative promotes 8. Row 1 has memory 0
     * at 0, row 4 memory 1 at 1, not below 0; nothing promotes 2. */
    assert_int_equal(c.unlike_acting, 3);
    assert_int_equal(c.unlike_values, 3);
    assert_int_equal(c.positive, 7);
    assert_int_equal(c.negative, 1);
    assert_int_equal(c.compared, 5);
    assert_int_equal(c.residual_final, 3);
    assert_int_equal(c.layer_final, 2);
    weir_keyvalue_free(kv);
}

static void test_split_takes_no_strangers(void **state)
{
    weir_keyvalue *kv;
    weir_err err = {0};
    const int32_t one[] = {1}, ten[] = {10};
    const float m[] = {1};
    (void)state;
    assert_int_equal(weir_keyvalue_new(&kv, 0, 1, 10, &err), WEIR_E_ARG);
    kit_ok(weir_keyvalue_new(&kv, 1, 1, 10, &err), &err);
    kit_ok(weir_keyvalue_memories(kv, 0, one, one, &err), &err);
    const weir_keyvalue_rows rows = {.n = 1, .residual = one, .mlp = ten, .layer = one, .coefficient = m};
    assert_int_equal(weir_keyvalue_add(kv, 0, &rows, &err), WEIR_E_ARG);
    assert_int_equal(weir_keyvalue_add(kv, 1, &rows, &err), WEIR_E_ARG);
    assert_int_equal(weir_keyvalue_memories(kv, -1, one, one, &err), WEIR_E_ARG);
    assert_int_equal(weir_keyvalue_counts_of(kv, 0).rows, 0);
    weir_keyvalue_free(kv);
}

/* --- values: read with the whole final norm they are rows of the lens; negatives too, which are not the same turned
 * over where the norm has a bias */

typedef struct values {
    float *row, *want_logprob, *logprob;
    int32_t *want, *id;
    int64_t n, c;
} values;

static void take(values *v, const weir_model *m)
{
    const weir_model_info *info = weir_model_info_of(m);
    weir_err err = {0};
    v->n = info->F;
    v->c = info->C;
    const size_t n = (size_t)v->n;
    int64_t *unit = calloc(n, sizeof *unit);
    v->row = calloc(n * (size_t)v->c, sizeof *v->row);
    v->want_logprob = calloc(3 * n, sizeof *v->logprob);
    v->logprob = calloc(3 * n, sizeof *v->logprob);
    v->want = calloc(3 * n, sizeof *v->id);
    v->id = calloc(3 * n, sizeof *v->id);
    for (int64_t i = 0; i < v->n; i++)
        unit[i] = i;
    kit_ok(weir_weights_neurons(m, 1, WEIR_WEIGHTS_VALUE, unit, v->n, v->row, &err), &err);
    free(unit);
}

static void give_back(values *v)
{
    free(v->row);
    free(v->want_logprob);
    free(v->logprob);
    free(v->want);
    free(v->id);
}

static void check_values(const char *path, const char *kernel, int threads)
{
    weir_model *m = kit_open(path);
    weir_lens *l;
    values v;
    weir_err err = {0};
    kit_ok(weir_lens_new(&l, m, kernel, threads, &err), &err);
    take(&v, m);
    const weir_memory_ask ask = {.layer = 1, .norm = WEIR_LENS_RECOMPUTE, .k = 3};
    for (int sign = 0; sign < 2; sign++) {
        weir_memory_side side[2] = {{0}, {0}};
        side[sign] = (weir_memory_side){.top_id = v.id, .top_logprob = v.logprob};
        for (int64_t i = 0; sign && i < v.n * v.c; i++)
            v.row[i] = -v.row[i];
        kit_ok(weir_memory_values(l, &ask, side, &err), &err);
        kit_ok(weir_lens_top(l, v.row, v.n, 3, v.want, v.want_logprob, &err), &err);
        assert_memory_equal(v.id, v.want, 3 * (size_t)v.n * sizeof *v.id);
        assert_memory_equal(v.logprob, v.want_logprob, 3 * (size_t)v.n * sizeof *v.logprob);
    }
    give_back(&v);
    weir_lens_free(l);
    weir_model_free(m);
}

static void test_values_are_rows_of_the_lens(void **state)
{
    (void)state;
    check_values(KIT_GPT2, "ref", 1);
    check_values(KIT_LLAMA, NULL, 2);
    check_values(KIT_NEOX, NULL, 1);
}

/* Raw: the negatives' ranks are those of the values from the other end, and the i-th likeliest has rank i. */
static void test_ranks_and_negatives(void **state)
{
    weir_model *m = kit_open(KIT_GEMMA);
    weir_lens *l;
    values v;
    weir_err err = {0};
    (void)state;
    kit_ok(weir_lens_new(&l, m, NULL, 2, &err), &err);
    take(&v, m);
    const int64_t V = weir_model_info_of(m)->V;
    int32_t *rank = calloc(6 * (size_t)v.n, sizeof *rank);
    const weir_memory_ask ask = {.layer = 1, .norm = WEIR_LENS_NONE, .k = 3};
    const weir_memory_side first[2] = {{.top_id = v.id}, {0}},
                           second[2] = {{.target = v.id, .n_targets = 3, .rank = rank, .logprob = v.logprob},
                                        {.target = v.id, .n_targets = 3, .rank = rank + 3 * v.n}};
    kit_ok(weir_memory_values(l, &ask, first, &err), &err);
    kit_ok(weir_memory_values(l, &ask, second, &err), &err);
    for (int64_t i = 0; i < 3 * v.n; i++) {
        assert_int_equal(rank[i], 1 + i % 3);
        assert_int_equal(rank[3 * v.n + i], V - i % 3);
        assert_true(v.logprob[i] < 0 && (i % 3 == 0 || v.logprob[i] <= v.logprob[i - 1]));
    }
    const weir_memory_ask cached = {.layer = 1, .norm = WEIR_LENS_CACHED, .k = 3}, many = {.layer = 1, .k = V + 1},
                          nowhere = {.layer = 99, .norm = WEIR_LENS_NONE, .k = 3};
    assert_int_equal(weir_memory_values(l, &cached, first, &err), WEIR_E_ARG);
    assert_int_equal(weir_memory_values(l, &many, first, &err), WEIR_E_ARG);
    assert_int_equal(weir_memory_values(l, &nowhere, first, &err), WEIR_E_ARG);
    v.id[0] = (int32_t)V;
    assert_int_equal(weir_memory_values(l, &ask, second, &err), WEIR_E_ARG);
    free(rank);
    give_back(&v);
    weir_lens_free(l);
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agreement_of_a_few_keys), cmocka_unit_test(test_split_by_hand),
        cmocka_unit_test(test_split_takes_no_strangers), cmocka_unit_test(test_values_are_rows_of_the_lens),
        cmocka_unit_test(test_ranks_and_negatives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
