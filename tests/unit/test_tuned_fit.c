/* Training a tuned lens: its gradient against central differences of the loss in double, its steps against Adam in
 * double, what its result may depend on, and its directory. */
#include "lens/fit.h"
#include "tuned_kit.h"

/* --- the loss, by plain loops in double */

typedef struct world {
    weir_model *m;
    const weir_spec *s;
    weir_normw norm;
    double *w; /* [V,C] the unembedding */
    int64_t n;
    float **x;       /* [L + 1]: [n,C] */
    double *f_ln_p;  /* [n,V] logarithms of the final distributions */
} world;

static double *logits_of(const world *y, const double *h, double *z)
{
    const int64_t c = y->s->C;
    double mean = 0, square = 0;
    double u[300];
    assert_true(c <= 300);
    for (int64_t k = 0; k < c && !y->s->rms; k++)
        mean += h[k] / (double)c;
    for (int64_t k = 0; k < c; k++)
        square += (h[k] - mean) * (h[k] - mean) / (double)c;
    for (int64_t k = 0; k < c; k++) {
        const double gain = y->norm.w ? (double)y->s->norm_offset + (double)y->norm.w[k] : 1;
        u[k] = (h[k] - mean) / sqrt(square + (double)y->s->eps) * gain + (y->norm.b ? (double)y->norm.b[k] : 0);
    }
    for (int64_t v = 0; v < y->s->V; v++) {
        z[v] = 0;
        for (int64_t k = 0; k < c; k++)
            z[v] += y->w[v * c + k] * u[k];
        const double cap = (double)y->s->logit_softcap;
        z[v] = cap > 0 ? cap * tanh(z[v] / cap) : z[v];
    }
    return z;
}

static void to_logarithms(double *z, int64_t v)
{
    double max = z[0], sum = 0;
    for (int64_t i = 1; i < v; i++)
        max = fmax(max, z[i]);
    for (int64_t i = 0; i < v; i++)
        sum += exp(z[i] - max);
    for (int64_t i = 0; i < v; i++)
        z[i] -= max + log(sum);
}

/* Sum over the positions of the loss of translator i with these parameters (NULL: of the plain lens). */
static double loss_of(const world *y, int64_t i, const double *theta)
{
    const int64_t c = y->s->C, v = y->s->V;
    double *z = malloc((size_t)v * sizeof *z), h[300], loss = 0;
    assert_non_null(z);
    for (int64_t r = 0; r < y->n; r++) {
        for (int64_t o = 0; o < c; o++) {
            h[o] = (double)y->x[i][r * c + o];
            for (int64_t k = 0; theta && k < c; k++)
                h[o] += theta[o * c + k] * (double)y->x[i][r * c + k];
            h[o] += theta ? theta[c * c + o] : 0;
        }
        to_logarithms(logits_of(y, h, z), v);
        for (int64_t t = 0; t < v; t++)
            loss += exp(y->f_ln_p[r * v + t]) * (y->f_ln_p[r * v + t] - z[t]);
    }
    free(z);
    return loss;
}

static void world_make(world *y, weir_model *m, int64_t n)
{
    weir_err err = {0};
    uint64_t seed = 17;
    *y = (world){.m = m, .s = weir_model_spec(m), .n = n};
    const int64_t l = y->s->L, c = y->s->C, v = y->s->V;
    kit_ok(weir_model_final(m, &y->norm, &err), &err);
    y->w = malloc((size_t)(v * c) * sizeof *y->w);
    y->f_ln_p = malloc((size_t)(n * v) * sizeof *y->f_ln_p);
    y->x = calloc((size_t)l + 1, sizeof *y->x);
    float *row = malloc((size_t)c * sizeof *row);
    assert_true(y->w && y->f_ln_p && y->x && row);
    for (int64_t t = 0; t < v; t++) {
        weir_model_head_row(m, (int32_t)t, row);
        for (int64_t k = 0; k < c; k++)
            y->w[t * c + k] = (double)row[k];
    }
    free(row);
    for (int64_t i = 0; i <= l; i++) {
        y->x[i] = malloc((size_t)(n * c) * sizeof **y->x);
        assert_non_null(y->x[i]);
        for (int64_t k = 0; k < n * c; k++)
            y->x[i][k] = (0.5f + (float)i) * tuned_random(&seed) + 0.1f;
    }
    for (int64_t r = 0; r < n; r++) {
        double h[300];
        for (int64_t k = 0; k < c; k++)
            h[k] = (double)y->x[l][r * c + k];
        to_logarithms(logits_of(y, h, y->f_ln_p + r * v), v);
    }
}

static void world_end(world *y)
{
    for (int64_t i = 0; i <= y->s->L; i++)
        free(y->x[i]);
    free(y->x);
    free(y->w);
    free(y->f_ln_p);
}

static weir_fit *fit_of(const world *y, int64_t steps, int64_t rows, const char *kernel, int threads)
{
    weir_err err = {0};
    weir_fit *f;
    weir_fit_options o;
    weir_fit_options_init(&o);
    o.steps = steps;
    o.step_rows = rows;
    o.kernel = kernel;
    o.threads = threads;
    kit_ok(weir_fit_new(&f, y->m, &o, &err), &err);
    return f;
}

static void add_rows(weir_fit *f, const world *y, int64_t at, int64_t n)
{
    weir_err err = {0};
    const float *x[100];
    assert_true(y->s->L < 100);
    for (int64_t i = 0; i <= y->s->L; i++)
        x[i] = y->x[i] + at * y->s->C;
    kit_ok(weir_fit_add(f, x, n, &err), &err);
}

/* --- the gradient */

static bool near(double got, double want, double scale)
{
    return fabs(got - want) <= 2e-5 * scale;
}

/* Central differences of some parameters, among them b's; every one must be near. */
static void check_translator(const world *y, weir_fit *f, int64_t i)
{
    const int64_t size = f->size, c = y->s->C;
    const double step = 1e-4;
    double *theta = malloc((size_t)size * sizeof *theta), scale = 0;
    uint64_t seed = 23 + (uint64_t)i;
    assert_non_null(theta);
    for (int64_t k = 0; k < size; k++) {
        theta[k] = (double)f->theta[i * size + k];
        scale = fmax(scale, fabs((double)f->grad[i * size + k]));
    }
    assert_true(scale > 1e-3);
    for (int t = 0; t < 24; t++) {
        const int64_t k = t < 6 ? c * c + (int64_t)(kit_random(&seed) % (uint64_t)c)
                                : (int64_t)(kit_random(&seed) % (uint64_t)(c * c));
        const double kept = theta[k];
        theta[k] = kept + step;
        const double above = loss_of(y, i, theta);
        theta[k] = kept - step;
        const double want = (above - loss_of(y, i, theta)) / (2 * step), got = (double)f->grad[i * size + k];
        theta[k] = kept;
        if (!near(got, want, scale))
            fail_msg("translator %lld, parameter %lld: %.9g, by differences %.9g (largest %.3g)", (long long)i,
                     (long long)k, got, want, scale);
        assert_false(near(got, want + 1e-3 * scale, scale)); /* the comparison can fail */
    }
    assert_true(fabs(f->loss_sum[i] - loss_of(y, i, theta)) <= 1e-5 * (1 + f->loss_sum[i]));
    free(theta);
}

static void check_gradient(weir_model *m, int64_t n)
{
    weir_err err = {0};
    uint64_t seed = 5;
    world y;
    world_make(&y, m, n);
    weir_fit *f = fit_of(&y, 1, n + 1, NULL, 2);
    for (int64_t k = 0; k < y.s->L * f->size; k++)
        f->theta[k] = 0.2f * tuned_random(&seed);
    add_rows(f, &y, 0, n);
    kit_ok(weir_fit_block(f, &err), &err);
    for (int64_t i = 0; i < y.s->L; i++)
        check_translator(&y, f, i);
    weir_fit_free(f);
    world_end(&y);
}

/* LayerNorm with and without bias, RMS norm, an offset to the gain, a soft cap that bends; fp32, 16 bits, blocks. */
static void gradient_is_that_of_the_loss(void **state)
{
    (void)state;
    static const char *const path[] = {KIT_GPT2, KIT_LLAMA, KIT_MISTRAL, KIT_NEOX, KIT_GEMMA,
                                       "tests/golden/models/llama-q4_0.gguf"};
    for (size_t k = 0; k < sizeof path / sizeof *path; k++) {
        weir_model *m = kit_open(path[k]);
        check_gradient(m, 11);
        weir_model_free(m);
    }
}

static void unembedding_in_several_parts(void **state)
{
    (void)state;
    lens_model m;
    lens_model_gpt2(&m, 20001);
    assert_true(weir_model_head_parts(m.m) > 1);
    check_gradient(m.m, 2);
    lens_model_end(&m);
}

/* --- rows of logits: the tables give the same bits, and those of double but for rounding */

static void rows_of_logits(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 15, 16, 17, 1023, 1024, 1025, 3000};
    const weir_kern *table[8];
    const int tables = weir_kern_available(table, 8);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int64_t n = sizes[k];
        float x[3001], f[3001], d[3001], first_f[3001] = {0}, first_d[3001] = {0};
        double ln_f[3000], ln_p[3000], kl[2] = {0}, entropy = 0, want = 0;
        uint64_t seed = (uint64_t)n;
        for (int64_t i = 0; i < n; i++) {
            ln_f[i] = (double)(x[i] = 9 * tuned_random(&seed));
            ln_p[i] = (double)(d[i] = 5 * tuned_random(&seed));
        }
        to_logarithms(ln_f, n);
        to_logarithms(ln_p, n);
        for (int64_t i = 0; i < n; i++) {
            entropy += exp(ln_f[i]) * ln_f[i];
            want += exp(ln_f[i]) * (ln_f[i] - ln_p[i]);
        }
        for (int t = 0; t < tables; t++) {
            const weir_fit_kern *kern = weir_fit_kern_of(table[t]);
            assert_string_equal(kern->name, weir_kern_name(table[t]));
            float z[3001];
            memcpy(f, x, sizeof f);
            memcpy(z, d, sizeof z);
            f[n] = z[n] = 77; /* not touched */
            const double f_ln_f = kern->softmax(f, n), got = kern->gradient(z, f, n, 6, f_ln_f);
            assert_true(f[n] == 77 && z[n] == 77);
            assert_true(fabs(f_ln_f - entropy) < 1e-5 && fabs(got - want) < 1e-5);
            for (int64_t i = 0; i < n; i++) {
                const double r = (double)d[i] / 6, g = (exp(ln_p[i]) - exp(ln_f[i])) * (1 - r * r);
                assert_true(fabs((double)f[i] - exp(ln_f[i])) < 1e-6 && fabs((double)z[i] - g) < 1e-6);
            }
            if (t == 0) {
                memcpy(first_f, f, sizeof f);
                memcpy(first_d, z, sizeof z);
                kl[0] = f_ln_f;
                kl[1] = got;
            }
            kit_same(first_f, f, n, "softmax");
            kit_same(first_d, z, n, "gradient");
            assert_true(kl[0] == f_ln_f && kl[1] == got);
        }
    }
}

/* --- steps */

/* Step `step` of 10 by the formulas of Adam, with the sum of 10 gradients in probe. */
static void adam_step(const weir_fit *probe, int step, double *theta, double *mean, double *square)
{
    const double rate = 3e-3 * (double[]){0.5, 1, 1, 7.0 / 8}[step]; /* 2 up, 8 down */
    for (int64_t i = 0; i < probe->spec->L; i++) {
        double norm = 0;
        for (int64_t k = i * probe->size; k < (i + 1) * probe->size; k++)
            norm += pow((double)probe->grad[k] / 10, 2);
        const double scale = sqrt(norm) > 1 ? 0.1 / sqrt(norm) : 0.1;
        for (int64_t k = i * probe->size; k < (i + 1) * probe->size; k++) {
            const double g = (double)probe->grad[k] * scale;
            mean[k] = 0.9 * mean[k] + 0.1 * g;
            square[k] = 0.999 * square[k] + 0.001 * g * g;
            const double first = mean[k] / (1 - pow(0.9, step + 1));
            const double second = square[k] / (1 - pow(0.999, step + 1));
            theta[k] -= rate * (first / (sqrt(second) + 1e-8) + 0.01 * theta[k]);
        }
    }
}

/* Some steps by the formulas of Adam, from the gradients that the training itself makes. */
static void steps_are_those_of_adam(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_LLAMA);
    world y;
    world_make(&y, m, 40);
    weir_fit *f = fit_of(&y, 10, 10, NULL, 1);
    const int64_t all = y.s->L * f->size;
    double *theta = calloc((size_t)all, sizeof *theta), *mean = calloc((size_t)all, sizeof *mean),
           *square = calloc((size_t)all, sizeof *square);
    assert_true(theta && mean && square);
    for (int step = 0; step < 4; step++) {
        add_rows(f, &y, 10 * step, 9);
        const float *last[100];
        for (int64_t i = 0; i <= y.s->L; i++)
            last[i] = y.x[i] + (10 * step + 9) * y.s->C;
        weir_fit *probe = fit_of(&y, 1, 11, NULL, 1); /* the same gradient, seen before the update */
        memcpy(probe->theta, f->theta, (size_t)all * sizeof *f->theta);
        add_rows(probe, &y, 10 * step, 10);
        kit_ok(weir_fit_block(probe, &err), &err);
        adam_step(probe, step, theta, mean, square);
        kit_ok(weir_fit_add(f, last, 1, &err), &err);
        assert_int_equal(weir_fit_steps(f), step + 1);
        for (int64_t k = 0; k < all; k++)
            assert_true(fabs((double)f->theta[k] - theta[k]) < 2e-6);
        for (int64_t i = 0; i < y.s->L; i++) {
            assert_true(fabs(weir_fit_loss(f)[i] - probe->loss_sum[i] / 10) < 1e-9);
            for (int64_t k = 0; k < f->size; k++)
                assert_true(f->grad[i * f->size + k] == 0);
        }
        weir_fit_free(probe);
    }
    assert_false(weir_fit_done(f));
    free(theta);
    free(mean);
    free(square);
    weir_fit_free(f);
    world_end(&y);
    weir_model_free(m);
}

/* The same rows: one by one or all at once, by any table, by several threads; and more rows than the steps need. */
static void result_depends_on_the_rows_alone(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        int threads;
        int64_t at_once;
    } how[] = {{"ref", 1, 1000}, {NULL, 1, 1}, {NULL, 3, 7}, {NULL, 2, 299}};
    weir_model *m = kit_open(KIT_GEMMA);
    world y;
    world_make(&y, m, 700);
    float *first = NULL;
    int64_t all = 0;
    for (size_t k = 0; k < sizeof how / sizeof *how; k++) {
        weir_fit *f = fit_of(&y, 2, 300, how[k].kernel, how[k].threads);
        for (int64_t at = 0; at < y.n; at += how[k].at_once)
            add_rows(f, &y, at, y.n - at < how[k].at_once ? y.n - at : how[k].at_once);
        assert_true(weir_fit_done(f) && weir_fit_steps(f) == 2);
        all = y.s->L * f->size;
        if (!first) {
            first = malloc((size_t)all * sizeof *first);
            assert_non_null(first);
            memcpy(first, f->theta, (size_t)all * sizeof *first);
        }
        kit_same(first, f->theta, all, "a translator");
        weir_fit_free(f);
    }
    weir_fit *f = fit_of(&y, 2, 301, NULL, 1); /* other steps: another result */
    add_rows(f, &y, 0, y.n);
    assert_true(kit_differs(first, f->theta, all) >= 0);
    weir_fit_free(f);
    free(first);
    world_end(&y);
    weir_model_free(m);
}

static void training_lowers_the_loss(void **state)
{
    (void)state;
    static const char *const path[] = {KIT_GPT2, KIT_LLAMA, KIT_NEOX, KIT_GEMMA};
    weir_err err = {0};
    for (size_t k = 0; k < sizeof path / sizeof *path; k++) {
        weir_model *m = kit_open(path[k]);
        world y;
        world_make(&y, m, 40);
        weir_fit *f = fit_of(&y, 60, 40, NULL, 1);
        for (int step = 0; step < 60; step++)
            add_rows(f, &y, 0, 40);
        double plain[8] = {0}, tuned[8] = {0};
        kit_ok(weir_fit_measure(f, (const float *const *)y.x, 40, plain, tuned, &err), &err);
        for (int64_t i = 0; i < y.s->L; i++) {
            double *theta = malloc((size_t)f->size * sizeof *theta);
            const float *a, *b;
            assert_non_null(theta);
            weir_fit_translator(f, i, &a, &b);
            assert_ptr_equal(b, a + y.s->C * y.s->C);
            for (int64_t p = 0; p < f->size; p++)
                theta[p] = (double)a[p];
            assert_true(fabs(plain[i] - loss_of(&y, i, NULL)) < 1e-4 * plain[i]);
            assert_true(fabs(tuned[i] - loss_of(&y, i, theta)) < 1e-4 * tuned[i]);
            assert_true(tuned[i] < 0.9 * plain[i]);
            free(theta);
        }
        weir_fit_free(f);
        world_end(&y);
        weir_model_free(m);
    }
}

/* --- mistakes */

static void options_out_of_range(void **state)
{
    (void)state;
    static const weir_fit_options bad[] = {
        {.steps = 0, .step_rows = 1, .lr = 1},
        {.steps = 1, .step_rows = 0, .lr = 1},
        {.steps = 1, .step_rows = 1, .lr = 0},
        {.steps = 1, .step_rows = 1, .lr = NAN},
        {.steps = 1, .step_rows = 1, .lr = 1, .weight_decay = -1},
        {.steps = 1, .step_rows = 1, .lr = 1, .clip = -1},
        {.steps = 1, .step_rows = 1, .lr = 1, .threads = -1},
        {.steps = 1, .step_rows = 1, .lr = 1, .kernel = "mmx"},
    };
    weir_model *m = kit_open(KIT_GPT2);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        weir_err err = {0};
        weir_fit *f;
        assert_int_equal(weir_fit_new(&f, m, &bad[k], &err), WEIR_E_ARG);
        assert_true(err.msg[0] && !f);
    }
    weir_model_free(m);
}

static void values_that_are_not_finite(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GPT2);
    world y;
    world_make(&y, m, 4);
    weir_fit *f = fit_of(&y, 1, 4, NULL, 1);
    y.x[1][3] = NAN;
    assert_int_equal(weir_fit_add(f, (const float *const *)y.x, 4, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, "translator 1 is not finite in step 1"));
    weir_fit_free(f);
    world_end(&y);
    weir_model_free(m);
}

/* --- the directory */

static void saved_and_read_again(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_NEOX);
    world y;
    world_make(&y, m, 20);
    weir_fit *f = fit_of(&y, 3, 20, NULL, 1);
    for (int step = 0; step < 3; step++)
        add_rows(f, &y, 0, 20);
    const double kl[8] = {1, 0.5};
    const weir_fit_about about = {.base_model = "tiny \"one\"", .plain = kl, .tuned = kl, .held_out = 20, .text = "{}"};
    for (int again = 0; again < 2; again++) { /* the second time it replaces its own */
        char name[400];
        snprintf(name, sizeof name, "%s%s", scratch("fitted"), again ? "/" : "");
        kit_ok(weir_fit_may_save(name, &err), &err);
        kit_ok(weir_fit_save(f, name, &about, &err), &err);
        assert_true(scratch_exists("fitted/config.json") && scratch_exists("fitted/fit.json"));
        assert_false(scratch_exists("fitted.part"));
        if (!again)
            scratch_text("fitted/params.pt", "what the user made of it");
        else
            assert_false(scratch_exists("fitted/params.pt"));
    }
    weir_tuned *t;
    kit_ok(weir_tuned_open(&t, scratch("fitted"), m, NULL, &err), &err);
    assert_string_equal(weir_tuned_info_of(t)->base_model, "tiny \"one\"");
    const int64_t floats = 20 * y.s->C;
    float *a = malloc((size_t)floats * sizeof *a), *b = malloc((size_t)floats * sizeof *b);
    assert_true(a && b);
    for (int64_t i = 0; i < y.s->L; i++) {
        kit_ok(weir_tuned_apply(t, i, y.x[i], 20, a, &err), &err);
        kit_ok(weir_fit_translate(f, i, y.x[i], 20, b, &err), &err);
        kit_same(a, b, floats, "a row translated by what was read");
        assert_true(kit_differs(a, y.x[i], floats) >= 0);
    }
    free(a);
    free(b);
    weir_tuned_free(t);
    weir_fit_free(f);
    world_end(&y);
    weir_model_free(m);
}

static void refuse(const weir_fit *f, const char *dir, weir_status code, const char *words)
{
    weir_err err = {0};
    const weir_fit_about about = {0};
    assert_int_equal(weir_fit_save(f, dir, &about, &err), code);
    assert_true(said(&err, code, words));
}

static void what_is_not_a_lens_is_left_alone(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_GPT2);
    world y;
    world_make(&y, m, 2);
    weir_fit *f = fit_of(&y, 1, 2, NULL, 1);
    const weir_fit_about about = {0};
    weir_err err = {0};
    refuse(f, scratch_text("a file", "x"), WEIR_E_ARG, "is no directory");
    scratch_dir("things");
    scratch_text("things/config.json", "{}");
    refuse(f, scratch("things"), WEIR_E_ARG, "nothing in it says that it is a lens of weir's");
    assert_true(scratch_exists("things/config.json") && !scratch_exists("things.part"));
    kit_ok(weir_fit_save(f, scratch("mixed"), &about, &err), &err);
    scratch_text("mixed/notes.txt", "mine");
    refuse(f, scratch("mixed"), WEIR_E_ARG, "holds notes.txt, which is no part of a lens");
    assert_true(scratch_exists("mixed/params.safetensors"));
    refuse(f, scratch("no/such/place"), WEIR_E_IO, "cannot create it");
    refuse(f, "", WEIR_E_ARG, "is empty");
    scratch_dir("empty");
    kit_ok(weir_fit_save(f, scratch("empty"), &about, &err), &err); /* nothing is lost */
    scratch_dir("left.part"); /* of a run that was killed */
    scratch_text("left.part/config.json", "{");
    scratch_text("left.part/params.safetensors.part", "");
    kit_ok(weir_fit_save(f, scratch("left"), &about, &err), &err);
    assert_false(scratch_exists("left.part"));
    scratch_dir("taken.part");
    scratch_text("taken.part/notes.txt", "mine");
    refuse(f, scratch("taken"), WEIR_E_IO, "taken.part: cannot create it");
    assert_true(scratch_exists("taken.part/notes.txt") && !scratch_exists("taken"));
    weir_fit_free(f);
    world_end(&y);
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient_is_that_of_the_loss),
        cmocka_unit_test(unembedding_in_several_parts),
        cmocka_unit_test(rows_of_logits),
        cmocka_unit_test(steps_are_those_of_adam),
        cmocka_unit_test(result_depends_on_the_rows_alone),
        cmocka_unit_test(training_lowers_the_loss),
        cmocka_unit_test(options_out_of_range),
        cmocka_unit_test(values_that_are_not_finite),
        cmocka_unit_test(saved_and_read_again),
        cmocka_unit_test(what_is_not_a_lens_is_left_alone),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
