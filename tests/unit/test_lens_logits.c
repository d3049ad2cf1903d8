/* The stream projected by weir_lens: the model's own logits when it is the last layer's. */
#include <math.h>

#include <weir/lens.h>

#include "run_kit.h"
#include "support/said.h"

enum { ROWS = 9 };

/* A pass over ROWS tokens: every stream, and the model's own logits and log-probabilities. */
typedef struct pass {
    weir_model *m;
    const weir_model_info *info;
    weir_run *r;
    kit_tap t;
    float *logits; /* [ROWS,V] */
} pass;

static void begin(pass *p, const char *path, const char *kernel)
{
    weir_err err = {0};
    p->m = kit_open(path);
    p->info = weir_model_info_of(p->m);
    p->r = kit_run(p->m, ROWS, 0, kernel, 1);
    kit_tap_init(&p->t, p->m);
    kit_attach(p->r, &p->t);
    int32_t *ids = kit_ids(p->m, ROWS, 77);
    kit_forward(p->r, ids, ROWS, -1, WEIR_FINAL);
    free(ids);
    p->logits = malloc((size_t)(ROWS * p->info->V) * sizeof *p->logits);
    assert_non_null(p->logits);
    kit_ok(weir_run_logits(p->r, 0, ROWS, p->logits, &err), &err);
}

static void end(pass *p)
{
    weir_run_free(p->r);
    kit_tap_free(&p->t);
    free(p->logits);
    weir_model_free(p->m);
}

static weir_lens *lens(const pass *p, const char *kernel, int threads)
{
    weir_err err = {0};
    weir_lens *l;
    kit_ok(weir_lens_new(&l, p->m, kernel, threads, &err), &err);
    return l;
}

static float *project(const pass *p, weir_lens *l, const float *x, int64_t n)
{
    weir_err err = {0};
    float *out = malloc((size_t)(n * p->info->V) * sizeof *out);
    assert_non_null(out);
    kit_ok(weir_lens_logits(l, x, n, out, &err), &err);
    return out;
}

static void the_last_layer_gives_the_models_logits(void **state)
{
    static const char *const kernels[] = {"ref", NULL};
    (void)state;
    for (int i = -1; i < KIT_MODELS; i++)
        for (int k = 0; k < 2; k++) {
            pass p;
            begin(&p, i < 0 ? NULL : kit_models[i], "ref");
            weir_lens *l = lens(&p, kernels[k], k + 1);
            const float *last = kit_heard_at(&p.t, p.m, p.info->L - 1, "hook_resid_post");
            const float *first = kit_heard_at(&p.t, p.m, 0, "hook_resid_pre");
            float *y = project(&p, l, last, ROWS), *other = project(&p, l, first, ROWS);
            kit_same(y, p.logits, ROWS * p.info->V, p.info->name);
            assert_true(kit_differs(other, p.logits, ROWS * p.info->V) >= 0); /* the comparison can fail */
            free(y);
            free(other);
            weir_lens_free(l);
            end(&p);
        }
}

/* More rows than a tile holds. */
static void rows_do_not_depend_on_each_other(void **state)
{
    enum { TIMES = 230 };
    pass p;
    (void)state;
    begin(&p, KIT_GEMMA, NULL);
    weir_lens *l = lens(&p, NULL, 2);
    const float *x = kit_heard_at(&p.t, p.m, 1, "hook_resid_mid");
    size_t floats = (size_t)(ROWS * p.info->C);
    float *many = malloc(TIMES * floats * sizeof *many);
    assert_non_null(many);
    for (int i = 0; i < TIMES; i++)
        memcpy(many + (size_t)i * floats, x, floats * sizeof *x);
    float *one = project(&p, l, x, ROWS), *y = project(&p, l, many, TIMES * ROWS);
    for (int i = 0; i < TIMES; i++)
        kit_same(y + i * ROWS * p.info->V, one, ROWS * p.info->V, "a row of many");
    free(many);
    free(one);
    free(y);
    weir_lens_free(l);
    end(&p);
}

static void top(weir_lens *l, const float *x, int64_t n, int64_t k, int32_t *id, float *logprob)
{
    weir_err err = {0};
    kit_ok(weir_lens_top(l, x, n, k, id, logprob, &err), &err);
}

/* Against a search through all logits, and against the run's own log-probabilities. */
static void the_likeliest_tokens(void **state)
{
    enum { K = 7 };
    int32_t id[ROWS * K];
    float logprob[ROWS * K], own[ROWS];
    pass p;
    (void)state;
    begin(&p, KIT_GEMMA, NULL); /* with a soft cap */
    weir_lens *l = lens(&p, NULL, 2);
    top(l, kit_heard_at(&p.t, p.m, p.info->L - 1, "hook_resid_post"), ROWS, K, id, logprob);
    for (int r = 0; r < ROWS; r++) {
        const float *x = p.logits + r * p.info->V;
        for (int i = 0; i < K; i++) {
            int64_t better = 0;
            for (int64_t v = 0; v < p.info->V; v++)
                better += x[v] > x[id[r * K + i]] || (x[v] == x[id[r * K + i]] && v < id[r * K + i]);
            assert_int_equal(better, i);
        }
    }
    for (int i = 0; i < K; i++) {
        int32_t target[ROWS];
        float want[ROWS];
        for (int r = 0; r < ROWS; r++) {
            target[r] = id[r * K + i];
            own[r] = logprob[r * K + i];
        }
        assert_int_equal(weir_run_logprobs(p.r, target, want, NULL), WEIR_OK);
        kit_same(own, want, ROWS, "log-probability");
    }
    weir_lens_free(l);
    end(&p);
}

static void ties_and_nan(void **state)
{
    pass p;
    (void)state;
    begin(&p, KIT_LLAMA, NULL);
    int64_t v = p.info->V;
    float *x = calloc((size_t)(2 * p.info->C), sizeof *x); /* a zero row: an RMS norm leaves it zero, all logits are */
    int32_t *id = calloc((size_t)(2 * v), sizeof *id);
    float *logprob = calloc((size_t)(2 * v), sizeof *logprob);
    assert_true(x && id && logprob);
    for (int64_t c = 0; c < p.info->C; c++)
        x[p.info->C + c] = NAN;
    weir_lens *l = lens(&p, NULL, 1);
    top(l, x, 2, v, id, logprob);
    for (int64_t i = 0; i < v; i++) {
        assert_int_equal(id[i], i);
        assert_true(fabs(exp((double)logprob[i]) * (double)v - 1) < 1e-5);
        assert_int_equal(id[v + i], -1);
        assert_true(isnan(logprob[v + i]));
    }
    free(x);
    free(id);
    free(logprob);
    weir_lens_free(l);
    end(&p);
}

static void wrong_numbers_are_refused(void **state)
{
    weir_err err = {0};
    weir_lens *l;
    int32_t id;
    float logprob, x[256] = {0};
    pass p;
    (void)state;
    begin(&p, KIT_GPT2, NULL);
    assert_int_equal(weir_lens_new(&l, p.m, NULL, -1, &err), WEIR_E_ARG);
    assert_null(l);
    assert_true(weir_lens_new(&l, p.m, "nothing", 1, NULL) < 0);
    assert_null(l);
    l = lens(&p, NULL, 1);
    int64_t wrong[] = {0, p.info->V + 1};
    for (int i = 0; i < 2; i++) {
        err = (weir_err){0};
        assert_int_equal(weir_lens_top(l, x, 1, wrong[i], &id, &logprob, &err), WEIR_E_ARG);
        assert_true(said(&err, WEIR_E_ARG, "of a vocabulary of"));
    }
    weir_lens_free(l);
    weir_lens_free(NULL);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_layer_gives_the_models_logits),
        cmocka_unit_test(rows_do_not_depend_on_each_other),
        cmocka_unit_test(the_likeliest_tokens),
        cmocka_unit_test(ties_and_nan),
        cmocka_unit_test(wrong_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
