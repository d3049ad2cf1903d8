/* The passes of a search: rows that are cut at the subject, cached and moved have the loss of whole texts, and d_delta
 * is its derivative, on every family. */
#include <math.h>

#include "edit/rome.h"
#include "run_kit.h"

enum { TEXTS = 3, ROWS = TEXTS + 1, TARGET = 2 };

/* Rows of made-up tokens: texts of several lengths and the KL row. */
typedef struct request {
    weir_model *m;
    const weir_model_info *info;
    weir_rome_rows rows;
    weir_rome_row row[ROWS];
    int32_t target[TARGET];
} request;

static void request_open(request *q, const char *path)
{
    static const int64_t length[ROWS] = {5, 9, 7, 4}, subject[ROWS] = {2, 5, 0, 3};
    q->m = kit_open(path);
    q->info = weir_model_info_of(q->m);
    q->rows = (weir_rome_rows){.row = q->row, .n = ROWS, .target = q->target, .n_target = TARGET};
    q->target[0] = 3, q->target[1] = 1;
    for (int64_t i = 0; i < ROWS; i++) {
        q->row[i] = (weir_rome_row){.id = kit_ids(q->m, length[i], (uint64_t)i + 40),
                                    .n = length[i],
                                    .subject = subject[i],
                                    .n_loss = i < TEXTS ? TARGET : 0,
                                    .at = q->rows.suffix};
        q->rows.suffix += length[i] - subject[i];
        q->rows.longest = length[i] > q->rows.longest ? length[i] : q->rows.longest;
    }
}

static void request_close(request *q)
{
    for (int64_t i = 0; i < ROWS; i++)
        free(q->row[i].id);
    weir_model_free(q->m);
}

static weir_rome_pass *pass_of(const request *q, int64_t layer, bool residual, const weir_rome_seen **seen)
{
    weir_err err = {0};
    weir_rome_options o;
    weir_rome_pass *p = NULL;
    weir_rome_options_init(&o);
    o.threads = 1;
    kit_ok(weir_rome_pass_new(&p, q->m, &o, layer, residual, &err), &err);
    kit_ok(weir_rome_pass_begin(p, &q->rows, true, seen, &err), &err);
    return p;
}

static double loss_at(weir_rome_pass *p, const float *delta, const float *log_q, double kl, float *d)
{
    weir_err err = {0};
    weir_rome_loss loss;
    kit_ok(weir_rome_pass_try(p, delta, &err), &err);
    kit_ok(weir_rome_pass_loss(p, log_q, kl, &loss, d, &err), &err);
    return loss.nll + kl * loss.kl;
}

/* Without delta the loss is that of the whole texts, one by one. */
static void loss_is_that_of_whole_texts(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        request q = {0};
        request_open(&q, kit_models[k]);
        const weir_rome_seen *seen;
        weir_rome_pass *p = pass_of(&q, q.info->L - 1, false, &seen);
        float *zero = calloc((size_t)q.info->C, sizeof *zero), *d = calloc((size_t)q.info->C, sizeof *d);
        const double loss = loss_at(p, zero, NULL, 0, d);
        weir_run *r = kit_run(q.m, 16, 0, NULL, 1);
        double sum = 0;
        for (int64_t i = 0; i < TEXTS; i++) {
            weir_err err = {0};
            int32_t target[16];
            float logprob[16];
            for (int64_t t = 0; t < q.row[i].n; t++)
                target[t] = -1;
            for (int64_t t = 0; t < TARGET; t++)
                target[q.row[i].n - TARGET + t] = q.target[t];
            kit_forward(r, q.row[i].id, q.row[i].n, -1, WEIR_FINAL);
            kit_ok(weir_run_logprobs(r, target, logprob, &err), &err);
            for (int64_t t = q.row[i].n - TARGET; t < q.row[i].n; t++)
                sum -= (double)logprob[t] / (TEXTS * TARGET);
        }
        assert_true(fabs(loss - sum) < 1e-6 * (1 + fabs(sum)));
        weir_run_free(r);
        weir_rome_pass_free(p);
        free(zero);
        free(d);
        request_close(&q);
    }
}

/* (loss(x + h e) - loss(x - h e)) / 2h along a direction, against d . e */
static void check_slope(const request *q, int64_t layer, bool residual)
{
    const size_t c = (size_t)q->info->C;
    const double h = 2e-2, kl = 0.25;
    const weir_rome_seen *seen;
    weir_err err = {0};
    weir_rome_pass *p = pass_of(q, layer, residual, &seen);
    float *x = calloc(c, sizeof *x), *y = calloc(c, sizeof *y), *d = calloc(c, sizeof *d),
          *unused = calloc(c, sizeof *d);
    float *log_q = calloc((size_t)q->info->V, sizeof *log_q);
    uint64_t seed = 9;
    kit_ok(weir_rome_pass_try(p, x, &err), &err);
    kit_ok(weir_rome_pass_log_q(p, log_q, &err), &err);
    for (size_t i = 0; i < c; i++)
        x[i] = (float)(kit_random(&seed) % 1000) / 1000 - 0.5f;
    loss_at(p, x, log_q, kl, d);
    for (int trial = 0; trial < 3; trial++) {
        double slope = 0, side[2];
        for (int s = 0; s < 2; s++) {
            uint64_t same = (uint64_t)trial + 77;
            slope = 0;
            for (size_t i = 0; i < c; i++) {
                const double e = (double)(kit_random(&same) % 1000) / 1000 - 0.5;
                y[i] = (float)((double)x[i] + (s ? -h : h) * e);
                slope += (double)d[i] * e;
            }
            side[s] = loss_at(p, y, log_q, kl, unused);
        }
        const double measured = (side[0] - side[1]) / (2 * h);
        if (!(fabs(measured - slope) < 2e-2 * fabs(slope) + 2e-4))
            fail_msg("layer %d: slope %g, measured %g", (int)layer, slope, measured);
    }
    weir_rome_pass_free(p);
    free(x), free(y), free(d), free(unused), free(log_q);
}

static void gradient_is_the_slope(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        request q = {0};
        request_open(&q, kit_models[k]);
        for (int64_t l = 0; l < q.info->L; l++) {
            check_slope(&q, l, false);
            if (!weir_model_spec(q.m)->post_norms)
                check_slope(&q, l, true);
        }
        request_close(&q);
    }
}

/* Keys and values are those of the whole texts. */
static void seen_is_what_hooks_see(void **state)
{
    (void)state;
    request q = {0};
    request_open(&q, KIT_LLAMA);
    const weir_rome_seen *seen;
    weir_rome_pass *p = pass_of(&q, 0, false, &seen);
    kit_tap tap;
    kit_tap_init(&tap, q.m);
    weir_run *r = kit_run(q.m, 16, 0, NULL, 1);
    kit_attach(r, &tap);
    for (int64_t i = 0; i < ROWS; i++) {
        kit_forward(r, q.row[i].id, q.row[i].n, -1, WEIR_FINAL);
        const float *key = kit_heard_at(&tap, q.m, 0, "mlp.hook_post"),
                    *value = kit_heard_at(&tap, q.m, 0, "hook_mlp_out");
        assert_memory_equal(seen->key + i * q.info->F, key + q.row[i].subject * q.info->F,
                            (size_t)q.info->F * sizeof *key);
        assert_memory_equal(seen->value + i * q.info->C, value + q.row[i].subject * q.info->C,
                            (size_t)q.info->C * sizeof *value);
    }
    weir_run_free(r);
    kit_tap_free(&tap);
    weir_rome_pass_free(p);
    request_close(&q);
}

static void post_norms_refuse_residuals(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_rome_options o;
    weir_rome_pass *p;
    weir_model *m = kit_open(KIT_GEMMA);
    weir_rome_options_for(&o, WEIR_ROME_MEMIT);
    assert_int_equal(weir_rome_pass_new(&p, m, &o, 0, true, &err), WEIR_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "r-rome"));
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_is_that_of_whole_texts), cmocka_unit_test(gradient_is_the_slope),
        cmocka_unit_test(seen_is_what_hooks_see), cmocka_unit_test(post_norms_refuse_residuals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
