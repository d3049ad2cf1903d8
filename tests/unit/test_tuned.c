/* Tuned lenses out of files: what they do to a row, and what is wrong with damaged ones. */
#include "tuned_kit.h"

typedef struct remarks {
    int n;
    char last[600];
} remarks;

static void note(void *user, weir_log_level level, const char *msg)
{
    remarks *r = user;
    (void)level;
    r->n++;
    snprintf(r->last, sizeof r->last, "%s", msg);
}

static weir_tuned *open_lens(const char *dir, const weir_model *m, const char *kernel, int threads)
{
    weir_err err = {0};
    weir_tuned *t;
    weir_tuned_options o;
    weir_tuned_options_init(&o);
    o.kernel = kernel;
    o.threads = threads;
    kit_ok(weir_tuned_open(&t, dir, m, &o, &err), &err);
    return t;
}

/* out [n,C] by a plain loop. */
static void apply_in_double(const tuned_files *f, int64_t i, const float *x, int64_t n, double *out)
{
    const int64_t c = f->C;
    for (int64_t r = 0; r < n; r++)
        for (int64_t o = 0; o < c; o++) {
            double sum = 0;
            for (int64_t k = 0; k < c; k++)
                sum += (double)f->a[(i * c + o) * c + k] * (double)x[r * c + k];
            out[r * c + o] = (double)x[r * c + o] + (sum + (f->bias ? (double)f->b[i * c + o] : 0));
        }
}

/* Index of the first that is further off than fp32 explains; -1: none. */
static int64_t further_off(const float *got, const double *want, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        if (!(fabs((double)got[k] - want[k]) <= 3e-6 * (1 + fabs(want[k]))))
            return k;
    return -1;
}

static float *rows_of(int64_t n, int64_t c)
{
    uint64_t seed = 3;
    float *x = malloc((size_t)(n * c) * sizeof *x);
    assert_non_null(x);
    for (int64_t k = 0; k < n * c; k++)
        x[k] = 2 * tuned_random(&seed);
    return x;
}

static void check_apply(const tuned_files *f, const weir_model *m, const char *dir, int64_t n)
{
    weir_err err = {0};
    const int64_t c = f->C;
    float *x = rows_of(n, c), *y = malloc((size_t)(n * c) * sizeof *y);
    double *want = malloc((size_t)(n * c) * sizeof *want);
    weir_tuned *t = open_lens(dir, m, NULL, 2);
    assert_true(y && want);
    for (int64_t i = 0; i < f->L; i++) {
        kit_ok(weir_tuned_apply(t, i, x, n, y, &err), &err);
        apply_in_double(f, i, x, n, want);
        assert_int_equal(further_off(y, want, n * c), -1);
        want[n * c - 1] += 1e-4; /* the comparison can fail */
        assert_int_equal(further_off(y, want, n * c), n * c - 1);
    }
    kit_ok(weir_tuned_apply(t, f->L, x, n, y, &err), &err);
    kit_same(x, y, n * c, "the final stream");
    weir_tuned_free(t);
    free(x);
    free(y);
    free(want);
}

static void translates_rows(void **state)
{
    (void)state;
    static void (*const make[])(lens_model *m, int64_t v) = {lens_model_gpt2, lens_model_llama, lens_model_gemma};
    for (int k = 0; k < 3; k++) {
        lens_model m;
        make[k](&m, 40);
        tuned_files f = tuned_files_of(m.info);
        check_apply(&f, m.m, tuned_write(&f, "lens"), 1);
        check_apply(&f, m.m, tuned_write(&f, "lens"), 1030); /* more than a tile */
        f.bias = false;
        check_apply(&f, m.m, tuned_write(&f, "lens"), 7);
        tuned_files_end(&f);
        lens_model_end(&m);
    }
}

static void bits_do_not_depend_on_the_machine(void **state)
{
    (void)state;
    static const char *const kernel[] = {"ref", NULL, NULL};
    static const int threads[] = {1, 1, 3};
    weir_err err = {0};
    lens_model m;
    lens_model_gpt2(&m, 40);
    tuned_files f = tuned_files_of(m.info);
    const int64_t n = 29, c = f.C;
    float *x = rows_of(n, c), *y[3];
    tuned_write(&f, "lens");
    for (int k = 0; k < 3; k++) {
        weir_tuned *t = open_lens(scratch("lens"), m.m, kernel[k], threads[k]);
        y[k] = calloc((size_t)(n * c), sizeof **y);
        assert_non_null(y[k]);
        if (k < 2)
            kit_ok(weir_tuned_apply(t, 1, x, n, y[k], &err), &err);
        for (int64_t r = 0; k == 2 && r < n; r++) /* row by row */
            kit_ok(weir_tuned_apply(t, 1, x + r * c, 1, y[k] + r * c, &err), &err);
        kit_same(y[0], y[k], n * c, "a translated row");
        weir_tuned_free(t);
    }
    for (int k = 0; k < 3; k++)
        free(y[k]);
    free(x);
    tuned_files_end(&f);
    lens_model_end(&m);
}

static void narrow_numbers_are_widened(void **state)
{
    (void)state;
    lens_model m;
    lens_model_gpt2(&m, 40);
    tuned_files f = tuned_files_of(m.info);
    for (int64_t k = 0; k < f.L * f.C * f.C; k++)
        f.a[k] = (float)(int)(f.a[k] * 64) / 64; /* bfloat16 holds these */
    for (int64_t k = 0; k < f.L * f.C; k++)
        f.b[k] = (float)(int)(f.b[k] * 64) / 64;
    f.dtype = "BF16";
    check_apply(&f, m.m, tuned_write(&f, "lens"), 9);
    tuned_files_end(&f);
    lens_model_end(&m);
}

static void places_of_the_stream(void **state)
{
    (void)state;
    weir_err err = {0};
    lens_model m;
    lens_model_gpt2(&m, 40);
    tuned_files f = tuned_files_of(m.info);
    weir_tuned *t = open_lens(tuned_write(&f, "lens"), m.m, NULL, 1);
    assert_int_equal(weir_tuned_index(t, WEIR_SITE_RESID_PRE, 0), 0);
    assert_int_equal(weir_tuned_index(t, WEIR_SITE_RESID_POST, 0), 1);
    assert_int_equal(weir_tuned_index(t, WEIR_SITE_RESID_POST, f.L - 1), f.L);
    assert_int_equal(weir_tuned_index(t, WEIR_SITE_RESID_MID, 0), -1);
    assert_int_equal(weir_tuned_index(t, WEIR_SITE_ATTN_OUT, 0), -1);
    assert_int_equal(weir_tuned_index(t, WEIR_SITE_RESID_PRE, f.L), -1);
    assert_int_equal(weir_tuned_index(t, WEIR_SITE_EMBED, -1), -1);
    assert_string_equal(weir_tuned_info_of(t)->base_model, "tiny");
    assert_null(weir_tuned_info_of(t)->revision);
    assert_true(weir_tuned_info_of(t)->bias);
    float x[64] = {0}, y[64];
    assert_int_equal(weir_tuned_apply(t, f.L + 1, x, 1, y, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, "translator"));
    weir_tuned_free(t);
    tuned_files_end(&f);
    lens_model_end(&m);
}

/* --- remarks */

static void says_what_it_does_not_know(void **state)
{
    (void)state;
    weir_err err = {0};
    remarks r = {0};
    weir_tuned *t;
    lens_model m;
    lens_model_gpt2(&m, 40);
    tuned_files f = tuned_files_of(m.info);
    const weir_tuned_options o = {.log = {note, &r}};
    kit_ok(weir_tuned_open(&t, tuned_write(&f, "lens"), m.m, &o, &err), &err);
    assert_int_equal(r.n, 0);
    weir_tuned_free(t);
    f.more = "\"sparsity\":[1,2],";
    kit_ok(weir_tuned_open(&t, tuned_write(&f, "lens"), m.m, &o, &err), &err);
    assert_int_equal(r.n, 1);
    assert_non_null(strstr(r.last, "\"sparsity\""));
    weir_tuned_free(t);
    scratch_text("lens/fit.json", "{\"format\":\"weir-lens-fit\",\"model\":\"other\",\"fingerprint\":\"00\"}");
    kit_ok(weir_tuned_open(&t, scratch("lens"), m.m, &o, &err), &err);
    assert_int_equal(r.n, 3);
    assert_non_null(strstr(r.last, "fitted to other"));
    weir_tuned_free(t);
    unlink(scratch("lens/fit.json"));
    tuned_files_end(&f);
    lens_model_end(&m);
}

/* --- damage */

typedef struct damage {
    const char *what;
    void (*make)(tuned_files *f);
    weir_status code;
    const char *words;
} damage;

static void no_weight(tuned_files *f)
{
    f->leave_out = f->L;
}
static void no_bias(tuned_files *f)
{
    f->bias = false;
    f->config = "{\"d_model\":15,\"num_hidden_layers\":2}"; /* bias: tuned-lens' default is true */
}
static void bad_shape(tuned_files *f)
{
    f->misshape = 2;
}
static void not_a_number(tuned_files *f)
{
    f->a[f->C * f->C + 5] = NAN;
}
static void infinite_bias(tuned_files *f)
{
    f->b[1] = INFINITY;
}
static void cut_short(tuned_files *f)
{
    f->cut = 9;
}
static void surplus(tuned_files *f)
{
    f->rename = "7.weight";
}
static void strange_name(tuned_files *f)
{
    f->rename = "00.weight";
}
static void whole_numbers(tuned_files *f)
{
    f->dtype = "I32";
}
static void other_width(tuned_files *f)
{
    f->config = "{\"d_model\":768,\"num_hidden_layers\":2}";
}
static void other_depth(tuned_files *f)
{
    f->config = "{\"d_model\":15,\"num_hidden_layers\":24}";
}
static void other_kind(tuned_files *f)
{
    f->config = "{\"d_model\":15,\"num_hidden_layers\":2,\"lens_type\":\"mlp\"}";
}
static void no_width(tuned_files *f)
{
    f->config = "{\"num_hidden_layers\":2}";
}
static void no_json(tuned_files *f)
{
    f->config = "{\"d_model\":15,";
}
static void wrong_type(tuned_files *f)
{
    f->config = "{\"d_model\":\"15\",\"num_hidden_layers\":2}";
}

static void damaged_lenses_are_refused(void **state)
{
    (void)state;
    static const damage all[] = {
        {"a weight is missing", no_weight, WEIR_E_FORMAT, "tensor 1.weight is missing"},
        {"a bias is missing", no_bias, WEIR_E_FORMAT, "tensor 0.bias is missing"},
        {"a shape", bad_shape, WEIR_E_SHAPE, "1.weight at byte"},
        {"NaN", not_a_number, WEIR_E_FORMAT, "element 5 is not a finite number"},
        {"infinity", infinite_bias, WEIR_E_FORMAT, "element 1 is not a finite number"},
        {"a cut file", cut_short, WEIR_E_FORMAT, "cut short"},
        {"one too many", surplus, WEIR_E_FORMAT, "7.weight at byte"},
        {"a strange name", strange_name, WEIR_E_FORMAT, "no such tensor: 2 layers, with bias"},
        {"a type", whole_numbers, WEIR_E_UNSUPPORTED, "F32, F16 or BF16"},
        {"the width", other_width, WEIR_E_SHAPE, "768 units of the stream, the model has 15"},
        {"the depth", other_depth, WEIR_E_SHAPE, "24 layers, the model has 2"},
        {"the kind", other_kind, WEIR_E_UNSUPPORTED, "linear_tuned_lens"},
        {"no width", no_width, WEIR_E_FORMAT, "d_model is missing"},
        {"broken JSON", no_json, WEIR_E_FORMAT, "config.json"},
        {"a text for a number", wrong_type, WEIR_E_FORMAT, "d_model"},
    };
    lens_model m;
    lens_model_gpt2(&m, 40);
    assert_true(m.info->C == 15 && m.info->L == 2); /* what the texts above say */
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        weir_err err = {0};
        weir_tuned *t;
        tuned_files f = tuned_files_of(m.info);
        all[k].make(&f);
        const weir_status s = weir_tuned_open(&t, tuned_write(&f, "lens"), m.m, NULL, &err);
        if (s != all[k].code || !said(&err, all[k].code, all[k].words))
            fail_msg("%s: status %d", all[k].what, s);
        assert_null(t);
        tuned_files_end(&f);
    }
    lens_model_end(&m);
}

static void files_that_are_not_there(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_tuned *t;
    lens_model m;
    lens_model_gpt2(&m, 40);
    tuned_files f = tuned_files_of(m.info);
    assert_int_equal(weir_tuned_open(&t, scratch("nowhere"), m.m, NULL, &err), WEIR_E_IO);
    assert_true(said(&err, WEIR_E_IO, "a tuned lens is a directory with config.json and params.safetensors"));
    tuned_write(&f, "bare");
    unlink(scratch("bare/params.safetensors"));
    err = (weir_err){0};
    assert_int_equal(weir_tuned_open(&t, scratch("bare"), m.m, NULL, &err), WEIR_E_IO);
    assert_true(said(&err, WEIR_E_IO, "bare/params.safetensors: no such file"));
    scratch_text("bare/params.pt", "a zip file");
    err = (weir_err){0};
    assert_int_equal(weir_tuned_open(&t, scratch("bare"), m.m, NULL, &err), WEIR_E_IO);
    assert_true(said(&err, WEIR_E_IO, "s.save_file(torch.load('params.pt'), 'params.safetensors')"));
    tuned_files_end(&f);
    lens_model_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(translates_rows),
        cmocka_unit_test(bits_do_not_depend_on_the_machine),
        cmocka_unit_test(narrow_numbers_are_widened),
        cmocka_unit_test(places_of_the_stream),
        cmocka_unit_test(says_what_it_does_not_know),
        cmocka_unit_test(damaged_lenses_are_refused),
        cmocka_unit_test(files_that_are_not_there),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
