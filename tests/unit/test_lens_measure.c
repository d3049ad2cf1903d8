/* weir_lens_measure: every statistic against brute force in double, on vocabularies of odd sizes. */
#include "lens_kit.h"

#include "lens/impl.h"

static void the_helpers_notice(void **state)
{
    (void)state;
    assert_true(close_to(1, 1, 0) && close_to(NAN, NAN, 0) && close_to(INFINITY, INFINITY, 0));
    assert_false(close_to(1, 1.001, 1e-4));
    assert_false(close_to(NAN, 1, 1));
    assert_false(close_to(1, NAN, 1));
    assert_false(close_to(1e30f, INFINITY, 1));
    const float even[] = {0, 0}, sharp[] = {0, -INFINITY}, other[] = {-INFINITY, 0};
    brute p = brute_of(even, 2), q = brute_of(sharp, 2), r = brute_of(other, 2);
    assert_true(fabs(brute_entropy(&p) - log(2)) < 1e-12 && brute_entropy(&q) == 0);
    assert_true(fabs(brute_kl(&q, &p) - log(2)) < 1e-12 && isinf(brute_kl(&p, &q)) && brute_kl(&p, &p) == 0);
    assert_true(fabs(brute_jsd(&q, &r) - log(2)) < 1e-12 && brute_jsd(&q, &q) == 0);
    assert_int_equal(brute_rank(&p, 0), 1);
    assert_int_equal(brute_rank(&p, 1), 2);
    free(p.ln_p);
    free(q.ln_p);
    free(r.ln_p);
}

/* --- small odd vocabularies, and one of several pieces */

static void measured_like_brute_force(lens_model *t, int64_t n, int64_t k)
{
    lens_rows w;
    lens_results y;
    lens_rows_make(&w, t->info, n, k);
    weir_lens *l = lens_new(t, NULL, 2);
    float *logits = lens_logits_of(l, &w.what, t->info->V);
    lens_measure(l, &w.what, &y);
    lens_check(&w.what, &y.out, logits, t->info->V, t->info->V);
    free(y.all);
    free(logits);
    weir_lens_free(l);
    lens_rows_end(&w);
}

static void odd_vocabularies(void **state)
{
    static void (*const family[])(lens_model *, int64_t) = {lens_model_gpt2, lens_model_gemma, lens_model_llama};
    static const int64_t size[] = {1, 15, 16, 17, 50, 1024, 2503};
    (void)state;
    for (int f = 0; f < 3; f++)
        for (int i = 0; i < 7; i++) {
            lens_model t;
            family[f](&t, size[i]);
            measured_like_brute_force(&t, 5, size[i] < 7 ? size[i] : 7);
            measured_like_brute_force(&t, 1, 0);
            if (size[i] <= 50)
                measured_like_brute_force(&t, 2, size[i]); /* k = V */
            lens_model_end(&t);
        }
}

static void one_row_alone(void **state)
{
    (void)state;
    lens_model t;
    lens_rows w;
    lens_results y;
    lens_model_gpt2(&t, 17);
    lens_rows_make(&w, t.info, 3, 17);
    w.what.row = &w.row[0]; /* the row that is compared with none */
    w.what.n_rows = 1;
    weir_lens *l = lens_new(&t, NULL, 1);
    float *logits = lens_logits_of(l, &w.what, 17);
    lens_measure(l, &w.what, &y);
    lens_check(&w.what, &y.out, logits, 17, 17);
    for (int i = 0; i < 3; i++)
        assert_true(isnan(y.out.kl_prev[i]) && y.out.kl_final[i] == 0);
    free(y.all);
    free(logits);
    weir_lens_free(l);
    lens_rows_end(&w);
    lens_model_end(&t);
}

/* --- log-probabilities and likeliest tokens have the bits of weir_lens_top */

static void the_bits_of_weir_lens_top(void **state)
{
    enum { V = 2503, N = 4, K = 9 };
    (void)state;
    lens_model t;
    lens_rows w;
    lens_results y;
    weir_err err = {0};
    int32_t id[N * K];
    float logprob[N * K];
    lens_model_gpt2(&t, V);
    lens_rows_make(&w, t.info, N, K);
    weir_lens *l = lens_new(&t, NULL, 2);
    for (int r = 0; r < LENS_ROWS; r++) {
        kit_ok(weir_lens_top(l, w.x[r], N, K, id, logprob, &err), &err);
        for (int i = 0; i < N; i++) /* asked about as targets too */
            w.target[i * LENS_TARGETS] = id[i * K + 3];
        lens_measure(l, &w.what, &y);
        assert_memory_equal(y.out.top_id + r * N * K, id, sizeof id);
        assert_memory_equal(y.out.top_logprob + r * N * K, logprob, sizeof logprob);
        for (int i = 0; i < N; i++)
            assert_memory_equal(&y.out.logprob[(r * N + i) * LENS_TARGETS], &logprob[i * K + 3], sizeof(float));
        free(y.all);
    }
    weir_lens_free(l);
    lens_rows_end(&w);
    lens_model_end(&t);
}

/* WEIR_LENS_ROW_TOP: each row is asked about its own likeliest token. */
static void each_rows_own_top(void **state)
{
    enum { V = 1500, N = 3 };
    (void)state;
    lens_model t;
    lens_rows w;
    lens_results y;
    lens_model_gemma(&t, V);
    for (int64_t k = 0; k <= 1; k++) {
        lens_rows_make(&w, t.info, N, 1);
        for (int i = 0; i < N; i++)
            w.target[i * LENS_TARGETS] = WEIR_LENS_ROW_TOP;
        weir_lens *l = lens_new(&t, NULL, 2);
        lens_measure(l, &w.what, &y);
        float *logits = lens_logits_of(l, &w.what, V);
        w.what.k = k; /* the likeliest token is known also where it is not listed */
        lens_results again;
        lens_measure(l, &w.what, &again);
        for (int i = 0; i < LENS_ROWS * N; i++) {
            const int64_t at = (int64_t)i * LENS_TARGETS;
            assert_memory_equal(&again.out.logit[at], &logits[(int64_t)i * V + y.out.top_id[i]], sizeof(float));
            assert_memory_equal(&again.out.logprob[at], &y.out.top_logprob[i], sizeof(float));
            assert_int_equal(again.out.rank[at], 1);
        }
        free(y.all);
        free(again.all);
        free(logits);
        weir_lens_free(l);
        lens_rows_end(&w);
    }
    lens_model_end(&t);
}

/* --- the same bits from every table, any threads, any block, and whatever else is asked for */

typedef struct setting {
    const char *kernel;
    int threads;
    int64_t block; /* positions, 0: as it comes */
} setting;

static void measure_as(const lens_model *t, const lens_rows *w, setting s, lens_results *y)
{
    weir_lens *l = lens_new(t, s.kernel, s.threads);
    if (s.block)
        l->block_bytes = s.block * LENS_ROWS * t->info->V * 4;
    lens_measure(l, &w->what, y);
    weir_lens_free(l);
}

static void the_same_bits_everywhere(void **state)
{
    static const setting other[] = {{"ref", 2, 0},    {"avx2", 1, 0},   {"avx2", 3, 2},    {"avx512", 1, 1},
                                    {"avx512", 2, 0}, {"avx512", 3, 4}, {"avx512", 2, 100}};
    (void)state;
    for (int f = 0; f < 2; f++) {
        lens_model t;
        lens_rows w;
        lens_results want, y;
        (f ? lens_model_gemma : lens_model_gpt2)(&t, 2503);
        lens_rows_make(&w, t.info, 7, 11);
        measure_as(&t, &w, (setting){"ref", 1, 3}, &want);
        for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
            const weir_kern *kern;
            if (weir_kern_pick(&kern, other[i].kernel, NULL))
                continue; /* not on this machine */
            measure_as(&t, &w, other[i], &y);
            assert_memory_equal(y.all, want.all, want.bytes);
            free(y.all);
        }
        w.x[1][3] += 1;
        measure_as(&t, &w, (setting){"ref", 1, 3}, &y);
        assert_true(memcmp(y.all, want.all, want.bytes) != 0); /* the comparison can fail */
        free(y.all);
        free(want.all);
        lens_rows_end(&w);
        lens_model_end(&t);
    }
}

/* Each result by itself. */
static void each_alone(weir_lens *l, const lens_rows *w, const lens_results *all)
{
    enum { N = sizeof(weir_lens_out) / sizeof(void *) };
    void *whole[N], *none[N] = {0};
    memcpy(whole, &all->out, sizeof whole);
    for (int i = 0; i < N; i++) {
        lens_results y;
        weir_err err = {0};
        void *one[N];
        weir_lens_out out;
        lens_results_make(&y, &w->what);
        memcpy(one, &y.out, sizeof one);
        char *result = one[i];
        memcpy(one, none, sizeof one);
        one[i] = result;
        memcpy(&out, one, sizeof out);
        kit_ok(weir_lens_measure(l, &w->what, &out, &err), &err);
        const char *want = whole[i], *end = (char *)all->all + all->bytes;
        for (int j = 0; j < N; j++) /* up to the next array, or the end */
            if ((char *)whole[j] > want && (char *)whole[j] < end)
                end = whole[j];
        assert_memory_equal(result, want, (size_t)(end - want));
        free(y.all);
    }
}

static void what_is_not_asked_for_changes_nothing(void **state)
{
    (void)state;
    lens_model t;
    lens_rows w;
    lens_results y;
    lens_model_gemma(&t, 1100);
    lens_rows_make(&w, t.info, 3, 4);
    weir_lens *l = lens_new(&t, NULL, 1);
    lens_measure(l, &w.what, &y);
    each_alone(l, &w, &y);
    free(y.all);
    weir_lens_free(l);
    lens_rows_end(&w);
    lens_model_end(&t);
}

/* --- ties, and numbers that are none */

static void equal_logits(void **state)
{
    (void)state;
    lens_model t;
    lens_rows w;
    lens_results y;
    lens_model_llama(&t, 1500);
    lens_rows_make(&w, t.info, 2, 1500);
    for (int r = 0; r < LENS_ROWS; r++)
        memset(w.x[r], 0, (size_t)(2 * t.info->C) * sizeof(float)); /* an RMS norm leaves it 0: all logits are 0 */
    weir_lens *l = lens_new(&t, NULL, 2);
    lens_measure(l, &w.what, &y);
    for (int64_t i = 0; i < LENS_ROWS * 2; i++) {
        for (int32_t v = 0; v < 1500; v++)
            assert_int_equal(y.out.top_id[i * 1500 + v], v);
        for (int j = 0; j < 3; j++) {
            const int32_t t_ = w.target[i % 2 * LENS_TARGETS + j];
            assert_int_equal(y.out.rank[i * LENS_TARGETS + j], t_ == WEIR_LENS_FINAL_TOP ? 1 : t_ + 1);
        }
        assert_true(y.out.jsd[i] == 0 && y.out.kl_final[i] == 0 && close_to(y.out.entropy[i], log(1500), 1e-5));
    }
    free(y.all);
    weir_lens_free(l);
    lens_rows_end(&w);
    lens_model_end(&t);
}

/* A row that is no number has NaN and rank 0; others only where they are compared with it. */
static void rows_that_are_no_numbers(void **state)
{
    enum { N = 3 };
    (void)state;
    for (int bad = 0; bad < LENS_ROWS; bad++) {
        lens_model t;
        lens_rows w;
        lens_results y, good;
        lens_model_gpt2(&t, 50);
        lens_rows_make(&w, t.info, N, 5);
        weir_lens *l = lens_new(&t, NULL, 2);
        lens_measure(l, &w.what, &good);
        w.x[bad][t.info->C] = bad % 2 ? NAN : INFINITY; /* of position 1 */
        lens_measure(l, &w.what, &y);
        for (int64_t i = 0; i < LENS_ROWS * N; i++) {
            const int row = (int)(i / N);
            const bool here = i % N == 1, is = here && row == bad, final = here && bad == LENS_ROWS - 1;
            const bool prev = here && w.row[row].prev == bad;
            const float *got[] = {&y.out.entropy[i],  &y.out.log_z[i], &y.out.logprob[i * LENS_TARGETS],
                                  &y.out.kl_final[i], &y.out.jsd[i],   &y.out.kl_prev[i]};
            const float *want[] = {&good.out.entropy[i],  &good.out.log_z[i], &good.out.logprob[i * LENS_TARGETS],
                                   &good.out.kl_final[i], &good.out.jsd[i],   &good.out.kl_prev[i]};
            const bool gone[] = {is, is, is, is || final, is || final, is || prev || w.row[row].prev < 0};
            for (int s = 0; s < 6; s++)
                assert_true(gone[s] ? isnan(*got[s]) : memcmp(got[s], want[s], sizeof(float)) == 0);
            assert_int_equal(y.out.rank[i * LENS_TARGETS], is ? 0 : good.out.rank[i * LENS_TARGETS]);
            assert_int_equal(y.out.top_id[i * 5], is ? -1 : good.out.top_id[i * 5]);
        }
        free(y.all);
        free(good.all);
        weir_lens_free(l);
        lens_rows_end(&w);
        lens_model_end(&t);
    }
}

/* Puts a number into the unembedding of a model that is not open yet. */
static void put_weight(const mf_checkpoint *k, int64_t row, int64_t c_of, int64_t c, float x)
{
    char path[400];
    snprintf(path, sizeof path, "%s/model.safetensors", k->dir);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f); /* lm_head is the last tensor */
    const mf_tensor *head = &k->t[k->n - 1];
    assert_string_equal(head->name, "lm_head.weight");
    assert_int_equal(fseek(f, -(long)mf_bytes(head) + (long)(row * c_of + c) * 4, SEEK_END), 0);
    assert_int_equal(fwrite(&x, sizeof x, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

/* Tokens that a weight of -inf rules out where the row is positive there, and makes NaN of elsewhere. */
static void ruled_out_tokens(void **state)
{
    enum { V = 1100, C = 18 };
    (void)state;
    lens_model t;
    lens_rows w;
    lens_results y;
    mf_sizes s = MF_LLAMA;
    s.V = V;
    mf_llama_hf(&t.k, &s, "F32", false, false, "");
    mf_write_hf(&t.k);
    put_weight(&t.k, 7, C, 2, -INFINITY);
    put_weight(&t.k, 1099, C, 2, -INFINITY);
    put_weight(&t.k, 8, C, 3, -INFINITY);
    t.m = kit_open(t.k.path);
    t.info = weir_model_info_of(t.m);
    lens_rows_make(&w, t.info, 4, V);
    const float gain2 = mf_value("lnf -1", 2, 0), gain3 = mf_value("lnf -1", 3, 0);
    assert_true(gain2 != 0 && gain3 != 0);
    for (int r = 0; r < LENS_ROWS; r++)
        for (int i = 0; i < 4; i++) { /* logits of 7, 1099 and 8: -inf */
            w.x[r][i * C + 2] = gain2 > 0 ? 1 : -1;
            w.x[r][i * C + 3] = gain3 > 0 ? 1 : -1;
        }
    w.target[0] = 7;
    weir_lens *l = lens_new(&t, NULL, 2);
    float *logits = lens_logits_of(l, &w.what, V);
    assert_true(isinf(logits[7]) && isinf(logits[1099]) && isinf(logits[8]));
    lens_measure(l, &w.what, &y);
    lens_check(&w.what, &y.out, logits, V, V);
    free(logits);
    free(y.all);
    weir_lens_free(l);
    lens_rows_end(&w);
    lens_model_end(&t);
}

/* --- wrong numbers */

static void refused(const char *words, weir_lens *l, const weir_lens_what *w)
{
    weir_err err = {0};
    const weir_lens_out none = {0};
    assert_int_equal(weir_lens_measure(l, w, &none, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, words));
}

static void wrong_numbers_are_refused(void **state)
{
    (void)state;
    lens_model t;
    lens_rows w;
    lens_model_gpt2(&t, 19);
    lens_rows_make(&w, t.info, 2, 3);
    weir_lens *l = lens_new(&t, NULL, 1);
    const weir_lens_what right = w.what;
    w.what.n_rows = 0;
    refused("0 rows", l, &w.what);
    w.what = right;
    w.what.n = -1;
    refused("-1 positions", l, &w.what);
    w.what = right;
    w.row[2].prev = 2;
    refused("row 2 is to be compared with row 2, which does not stand before it", l, &w.what);
    w.row[2].prev = -2;
    refused("with row -2", l, &w.what);
    w.row[2].prev = 1;
    w.row[LENS_ROWS - 1].norm = WEIR_LENS_NONE;
    refused("WEIR_LENS_RECOMPUTE", l, &w.what);
    w.row[LENS_ROWS - 1].norm = WEIR_LENS_RECOMPUTE;
    w.what.k = 20;
    refused("the 20 likeliest of a vocabulary of 19", l, &w.what);
    w.what.k = -1;
    refused("the -1 likeliest", l, &w.what);
    w.what = right;
    w.what.vocab = 20;
    refused("20 tokens of a vocabulary of 19 cannot count", l, &w.what);
    w.what.vocab = 18; /* the last token is a target */
    refused("target 18 of position 0 is outside the vocabulary, 0 to 17", l, &w.what);
    w.what = right;
    w.what.n_targets = 9;
    refused("9 targets", l, &w.what);
    w.what = right;
    w.target[LENS_TARGETS] = -3;
    refused("target -3 of position 1", l, &w.what);
    w.target[LENS_TARGETS] = 19;
    refused("target 19 of position 1", l, &w.what);
    w.what.n = 0; /* nothing to do */
    assert_int_equal(weir_lens_measure(l, &w.what, &(weir_lens_out){0}, NULL), WEIR_OK);
    weir_lens_free(l);
    lens_rows_end(&w);
    lens_model_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_helpers_notice),
        cmocka_unit_test(odd_vocabularies),
        cmocka_unit_test(one_row_alone),
        cmocka_unit_test(the_bits_of_weir_lens_top),
        cmocka_unit_test(each_rows_own_top),
        cmocka_unit_test(the_same_bits_everywhere),
        cmocka_unit_test(what_is_not_asked_for_changes_nothing),
        cmocka_unit_test(equal_logits),
        cmocka_unit_test(rows_that_are_no_numbers),
        cmocka_unit_test(ruled_out_tokens),
        cmocka_unit_test(wrong_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
