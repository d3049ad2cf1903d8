/* How rows meet the final norm, what tokens are left out, and the directions of the unembedding: against plain sums in
 * double over the weights that the test itself has written. */
#include "lens_kit.h"

enum { N = 3, MOST_C = 32 };

/* The end of a model as its checkpoint has it. */
typedef struct ending {
    const char *head; /* name of the unembedding's values */
    bool rms, bias;   /* of the norm */
    double eps, plus; /* gain = plus + weight */
    double cap;       /* 0: none */
} ending;

static const ending gpt2_end = {"embed", false, true, 1e-5, 0, 0}, gemma_end = {"embed", true, false, 1e-6, 1, 5},
                    llama_end = {"head", true, false, 1e-6, 0, 0};

typedef struct family {
    void (*open)(lens_model *t, int64_t v);
    const ending *end;
} family;

static const family families[] = {
    {lens_model_gpt2, &gpt2_end}, {lens_model_gemma, &gemma_end}, {lens_model_llama, &llama_end}};
enum { FAMILIES = sizeof families / sizeof *families };

static double head_weight(const ending *e, int64_t v, int64_t c)
{
    return (double)mf_value(e->head, v, c);
}

static double gain(const ending *e, int64_t c)
{
    return e->plus + (double)mf_value(mf_weight("lnf", -1), c, 0);
}

static double norm_bias(const ending *e, int64_t c)
{
    return e->bias ? (double)mf_value(mf_weight("lnf bias", -1), c, 0) : 0;
}

static double mean_of(const ending *e, const float *x, int64_t c)
{
    double sum = 0;
    for (int64_t i = 0; i < c && !e->rms; i++)
        sum += (double)x[i];
    return sum / (double)c;
}

static double scale_of(const ending *e, const float *x, int64_t c)
{
    const double mean = mean_of(e, x, c);
    double sum = 0;
    for (int64_t i = 0; i < c; i++)
        sum += ((double)x[i] - mean) * ((double)x[i] - mean);
    return sqrt(sum / (double)c + e->eps);
}

/* The logit of token v of a row; f: the final row. */
static double logit_of(const ending *e, weir_lens_norm how, const float *x, const float *f, int64_t c, int64_t v,
                       bool softcap)
{
    const double mean = how == WEIR_LENS_NONE ? 0 : mean_of(e, x, c);
    double scale = 1, y = 0;
    if (how == WEIR_LENS_RECOMPUTE || how == WEIR_LENS_CACHED)
        scale = scale_of(e, how == WEIR_LENS_CACHED ? f : x, c);
    for (int64_t i = 0; i < c; i++) {
        double h = ((double)x[i] - mean) / scale;
        if (how != WEIR_LENS_NONE)
            h = h * gain(e, i) + (how == WEIR_LENS_GAIN ? 0 : norm_bias(e, i));
        y += h * head_weight(e, v, i);
    }
    return softcap && e->cap > 0 ? e->cap * tanh(y / e->cap) : y;
}

/* Every token's logit is asked for, and what follows from them. */
static void check_ways(const lens_model *t, const ending *e, bool softcap)
{
    enum { V = 17 };
    static const weir_lens_norm how[] = {WEIR_LENS_CACHED,    WEIR_LENS_NONE,   WEIR_LENS_GAIN,
                                         WEIR_LENS_RECOMPUTE, WEIR_LENS_CACHED, WEIR_LENS_RECOMPUTE};
    const int64_t c = t->info->C;
    float logits[LENS_ROWS * N * V];
    lens_rows w;
    lens_results y;
    lens_rows_make(&w, t->info, N, V);
    w.what.no_softcap = !softcap;
    for (int r = 0; r < LENS_ROWS; r++)
        w.row[r].norm = how[r];
    weir_lens *l = lens_new(t, NULL, 1);
    for (int32_t v = 0; v < V; v++) {
        for (int i = 0; i < N; i++)
            w.target[i * LENS_TARGETS] = v;
        lens_measure(l, &w.what, &y);
        for (int i = 0; i < LENS_ROWS * N; i++) {
            const int64_t at = i % N * c;
            const double z = logit_of(e, how[i / N], w.x[i / N] + at, w.x[LENS_ROWS - 1] + at, c, v, softcap);
            assert_true(close_to(y.out.logit[i * LENS_TARGETS], z, 2e-6 * fabs(z) + 4e-5));
            logits[i * V + v] = y.out.logit[i * LENS_TARGETS];
        }
        if (v == V - 1)
            lens_check(&w.what, &y.out, logits, V, V);
        free(y.all);
    }
    weir_lens_free(l);
    lens_rows_end(&w);
}

static void every_way_to_the_norm(void **state)
{
    (void)state;
    for (int f = 0; f < FAMILIES; f++) {
        lens_model t;
        families[f].open(&t, 17);
        check_ways(&t, families[f].end, true);
        check_ways(&t, families[f].end, false);
        lens_model_end(&t);
    }
}

/* weir_lens_scores: directions by themselves, before the soft cap. */
static void scores_of_directions(void **state)
{
    enum { V = 17 };
    (void)state;
    for (int f = 0; f < FAMILIES; f++) {
        lens_model t;
        lens_rows w;
        weir_err err = {0};
        float score[N * V];
        families[f].open(&t, V);
        const int64_t c = t.info->C;
        lens_rows_make(&w, t.info, N, 0);
        weir_lens *l = lens_new(&t, NULL, 2);
        kit_ok(weir_lens_scores(l, w.x[1], N, score, &err), &err);
        for (int i = 0; i < N * V; i++) {
            const float *x = w.x[1] + i / V * c;
            const double z = logit_of(families[f].end, WEIR_LENS_GAIN, x, x, c, i % V, false);
            assert_true(close_to(score[i], z, 2e-6 * fabs(z) + 4e-5));
        }
        weir_lens_free(l);
        lens_rows_end(&w);
        lens_model_end(&t);
    }
}

/* A wrong way is told from the right one: what the helper must notice. */
static void the_ways_differ(void **state)
{
    (void)state;
    const float x[4] = {1, 2, 3, 4}, f[4] = {4, -3, 2, 0};
    double z[4];
    for (int how = 0; how < 4; how++) {
        z[how] = logit_of(&gpt2_end, (weir_lens_norm)how, x, f, 4, 1, true);
        for (int other = 0; other < how; other++)
            assert_true(fabs(z[how] - z[other]) > 1e-3);
    }
    assert_true(fabs(logit_of(&gemma_end, WEIR_LENS_NONE, x, f, 4, 1, true) -
                     logit_of(&gemma_end, WEIR_LENS_NONE, x, f, 4, 1, false)) > 1e-3);
}

/* Padding is left out of everything: as if the vocabulary were smaller. */
static void padded_vocabulary(void **state)
{
    enum { V = 1100 };
    static const int64_t counted[] = {1, 33, 1024, 1025, 1099};
    (void)state;
    lens_model t;
    lens_model_llama(&t, V);
    weir_lens *l = lens_new(&t, NULL, 2);
    for (int i = 0; i < 5; i++) {
        lens_rows w;
        lens_results y;
        lens_rows_make(&w, t.info, N, 9 < counted[i] ? 9 : counted[i]);
        w.what.vocab = counted[i];
        for (int j = 0; j < N; j++) {
            w.target[j * LENS_TARGETS] %= (int32_t)counted[i];
            w.target[j * LENS_TARGETS + 2] = (int32_t)counted[i] - 1;
        }
        float *logits = lens_logits_of(l, &w.what, V);
        lens_measure(l, &w.what, &y);
        lens_check(&w.what, &y.out, logits, V, counted[i]);
        free(y.all);
        w.what.k = counted[i] + 3 < V ? counted[i] + 3 : V; /* more than there are */
        lens_measure(l, &w.what, &y);
        assert_int_equal(y.out.top_id[w.what.k - 1], -1);
        assert_true(isnan(y.out.top_logprob[w.what.k - 1]));
        free(y.all);
        free(logits);
        lens_rows_end(&w);
    }
    weir_lens_free(l);
    lens_model_end(&t);
}

/* --- directions and statistics */

static void directions_give_the_logit(void **state)
{
    enum { V = 19 };
    (void)state;
    for (int f = 0; f < FAMILIES; f++) {
        lens_model t;
        weir_err err = {0};
        lens_rows w;
        families[f].open(&t, V);
        const ending *e = families[f].end;
        const int64_t c = t.info->C;
        const int32_t id[] = {V - 1, 0, 7, 7};
        float dir[4 * MOST_C], mean[N], scale[N], other[N];
        double bias[4];
        lens_rows_make(&w, t.info, N, 0);
        weir_lens *l = lens_new(&t, NULL, 1);
        kit_ok(weir_lens_directions(t.m, id, 4, dir, bias, &err), &err);
        kit_ok(weir_lens_scale(l, w.x[2], N, mean, scale, &err), &err);
        kit_ok(weir_lens_scale(l, w.x[2], N, NULL, other, &err), &err);
        kit_same(scale, other, N, "scale");
        for (int i = 0; i < N; i++) {
            const float *x = w.x[2] + i * c;
            assert_true(close_to(mean[i], mean_of(e, x, c), 1e-6) && close_to(scale[i], scale_of(e, x, c), 2e-6));
            for (int j = 0; j < 4; j++) {
                double y = bias[j];
                for (int64_t k = 0; k < c; k++)
                    y += (double)dir[j * c + k] * ((double)x[k] - (double)mean[i]) / (double)scale[i];
                const double z = logit_of(e, WEIR_LENS_RECOMPUTE, x, x, c, id[j], false);
                assert_true(fabs(y - z) < 1e-5 * (1 + fabs(z)));
            }
        }
        for (int j = 0; j < 4; j++)
            for (int64_t k = 0; k < c; k++)
                assert_true(close_to(dir[j * c + k], head_weight(e, id[j], k) * gain(e, k), 1e-5));
        assert_memory_equal(dir + 2 * c, dir + 3 * c, (size_t)c * sizeof *dir);
        for (int bad = 0; bad < 2; bad++) {
            const int32_t wrong[] = {0, bad ? V : -1};
            err = (weir_err){0};
            assert_int_equal(weir_lens_directions(t.m, wrong, 2, dir, bias, &err), WEIR_E_ARG);
            assert_true(said(&err, WEIR_E_ARG, "is outside the vocabulary, 0 to 18"));
        }
        weir_lens_free(l);
        lens_rows_end(&w);
        lens_model_end(&t);
    }
}

/* --- the last row is the model's own */

/* Logits of every token, log-probabilities, statistics of the norm: those that the run itself made. */
static void check_last_row(const char *path)
{
    enum { ROWS = 9 };
    weir_err err = {0};
    weir_model *m = kit_open(path);
    const weir_model_info *info = weir_model_info_of(m);
    weir_run *r = kit_run(m, ROWS, 0, "ref", 1);
    kit_tap tap;
    kit_tap_init(&tap, m);
    kit_attach(r, &tap);
    int32_t *ids = kit_ids(m, ROWS, 77), *target = calloc(ROWS, 8 * sizeof *target), next[ROWS];
    kit_forward(r, ids, ROWS, -1, WEIR_FINAL);
    const float *x = kit_heard_at(&tap, m, info->L - 1, "hook_resid_post");
    float *logits = malloc((size_t)(ROWS * info->V) * sizeof *logits), logprob[ROWS], mean[ROWS], scale[ROWS];
    assert_true(target && logits);
    kit_ok(weir_run_logits(r, 0, ROWS, logits, &err), &err);
    weir_lens *l;
    kit_ok(weir_lens_new(&l, m, NULL, 2, &err), &err);
    const weir_lens_row row[] = {{kit_heard_at(&tap, m, 0, "hook_resid_pre"), -1, WEIR_LENS_RECOMPUTE},
                                 {x, 0, WEIR_LENS_RECOMPUTE}};
    weir_lens_what w = {.row = row, .n_rows = 2, .n = ROWS, .target = target, .n_targets = 8, .k = 3};
    for (int64_t v = 0; v < info->V; v += 8) {
        lens_results y;
        for (int i = 0; i < ROWS * 8; i++)
            target[i] = v + i % 8 < info->V ? (int32_t)(v + i % 8) : -1;
        for (int i = 0; i < ROWS; i++)
            next[i] = (int32_t)v;
        lens_measure(l, &w, &y);
        kit_ok(weir_run_logprobs(r, next, logprob, &err), &err);
        for (int i = 0; i < ROWS; i++) {
            const float *got = y.out.logit + (ROWS + i) * 8;
            assert_memory_equal(got, logits + i * info->V + v, (size_t)(info->V - v < 8 ? info->V - v : 8) * 4);
            kit_same(y.out.logprob + (ROWS + i) * 8, &logprob[i], 1, "log-probability");
            assert_true(y.out.kl_final[ROWS + i] == 0 && y.out.jsd[ROWS + i] == 0 && y.out.kl_final[i] > 0);
            assert_true(kit_differs(y.out.logit + i * 8, logits + i * info->V + v, 1) == 0); /* it can fail */
        }
        free(y.all);
    }
    kit_ok(weir_lens_scale(l, x, ROWS, mean, scale, &err), &err);
    kit_same(scale, kit_heard(&tap, m, "ln_final.hook_scale"), ROWS, "scale");
    weir_lens_free(l);
    weir_run_free(r);
    kit_tap_free(&tap);
    free(ids);
    free(target);
    free(logits);
    weir_model_free(m);
}

static void the_last_row_is_the_models(void **state)
{
    (void)state;
    for (int i = 0; i < KIT_MODELS; i++)
        check_last_row(kit_models[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ways_differ),
        cmocka_unit_test(scores_of_directions),
        cmocka_unit_test(every_way_to_the_norm),
        cmocka_unit_test(padded_vocabulary),
        cmocka_unit_test(directions_give_the_logit),
        cmocka_unit_test(the_last_row_is_the_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
