/* Edits as directories: what is written is read back, damaged directories are refused by name, merged checkpoints hold
 * the sums, and a look needs no model. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/edit/narrow.h"
#include "edit_kit.h"
#include "support/scratch.h"

static const char JSON[] = "{\"format\":\"weir-edit\",\"method\":\"test\",\"requests\":[]}";

/* The path of a directory that is not there yet. */
static void fresh(char dir[1200], const char *name)
{
    static int n;
    char full[64];
    snprintf(full, sizeof full, "%s%d", name, n++);
    snprintf(dir, 1200, "%s", scratch(full));
}

static char *path_of(const char *dir, const char *name)
{
    static char path[2][1400];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *p = calloc(1 << 20, 1);
    *n = fread(p, 1, (1 << 20) - 1, f);
    fclose(f);
    return p;
}

static void save(const weir_edit *e, const char *dir)
{
    weir_err err = {0};
    kit_ok(weir_edit_save(e, dir, JSON, &err), &err);
}

static const weir_update *update_of(const weir_edit *e, int64_t layer, weir_matrix m)
{
    for (int64_t i = 0; i < weir_edit_n(e); i++)
        if (weir_edit_update(e, i)->layer == layer && weir_edit_update(e, i)->matrix == m)
            return weir_edit_update(e, i);
    return NULL;
}

/* dW of an update, [in,out], 0 where u is NULL. */
static double *dense(const weir_update *u, int64_t in, int64_t out)
{
    double *w = calloc((size_t)(in * out), sizeof *w);
    assert_non_null(w);
    for (int64_t k = 0; u && k < u->r; k++)
        for (int64_t i = 0; i < in; i++)
            for (int64_t o = 0; o < out; o++)
                w[i * out + o] += (double)u->u[k * in + i] * u->v[k * out + o];
    return w;
}

/* The largest difference of any element of two edits. */
static double distance(const weir_model *m, const weir_edit *a, const weir_edit *b)
{
    double most = 0;
    for (int64_t l = 0; l < weir_model_info_of(m)->L; l++)
        for (int w = 0; w < WEIR_MATRIX_COUNT; w++) {
            int64_t in, out;
            weir_matrix_shape(m, (weir_matrix)w, &in, &out);
            double *x = dense(update_of(a, l, (weir_matrix)w), in, out),
                   *y = dense(update_of(b, l, (weir_matrix)w), in, out);
            for (int64_t i = 0; i < in * out; i++)
                most = fmax(most, fabs(x[i] - y[i]));
            free(x);
            free(y);
        }
    return most;
}

static weir_edit *open_edit(const weir_model *m, const char *dir)
{
    weir_err err = {0};
    weir_edit *e = NULL;
    kit_ok(weir_edit_open(&e, m, dir, NULL, &err), &err);
    return e;
}

static void test_saved_edits_come_back(void **state)
{
    (void)state;
    for (int i = 0; i < KIT_MODELS; i++) {
        char dir[1200];
        weir_model *m = kit_open(kit_models[i]);
        weir_edit *e = kit_edit_all(m, 3), *other = kit_edit_all(m, 4);
        fresh(dir, "edit");
        save(e, dir);
        weir_edit *back = open_edit(m, dir);
        assert_true(distance(m, e, back) == 0); /* nothing is scaled: not even a last bit */
        assert_true(distance(m, e, other) > 1e-3);
        save(back, dir); /* one of ours is replaced; q, k and v that share their U keep its rank */
        weir_edit *again = open_edit(m, dir);
        assert_true(distance(m, e, again) == 0);
        for (int64_t k = 0; k < weir_edit_n(back); k++)
            assert_int_equal(weir_edit_update(back, k)->r, weir_edit_update(again, k)->r);
        assert_string_equal(weir_edit_about_of(back)->method, "test");
        assert_string_equal(weir_edit_about_of(back)->json, JSON);
        assert_int_equal(strlen(weir_edit_about_of(back)->sha256), 64);
        weir_edit_free(e);
        weir_edit_free(other);
        weir_edit_free(back);
        weir_edit_free(again);
        weir_model_free(m);
    }
}

/* --- what may be written over */

static void test_foreign_directories_stay(void **state)
{
    (void)state;
    weir_err err = {0};
    char dir[1200];
    weir_model *m = kit_open(KIT_GPT2);
    weir_edit *e = kit_edit_all(m, 3);
    fresh(dir, "edit");
    assert_int_equal(weir_edit_may_save("", &err), WEIR_E_ARG);
    kit_ok(weir_edit_may_save(dir, NULL), &err);
    assert_int_equal(mkdir(dir, 0777), 0);
    save(e, dir); /* an empty directory is as good as none */
    write_text(path_of(dir, "notes.txt"), "mine");
    err = (weir_err){0};
    assert_int_equal(weir_edit_save(e, dir, JSON, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "notes.txt"));
    unlink(path_of(dir, "notes.txt"));
    unlink(path_of(dir, "edit.json")); /* now it is an adapter from elsewhere */
    assert_int_equal(weir_edit_may_save(dir, NULL), WEIR_E_ARG);
    assert_int_equal(weir_edit_save(e, path_of(dir, "adapter_config.json"), JSON, NULL), WEIR_E_ARG);
    err = (weir_err){0};
    assert_int_equal(weir_edit_save(e, path_of(dir, "new"), "[]", &err), WEIR_E_FORMAT); /* edit.json is an object */
    assert_int_equal(access(path_of(dir, "new"), F_OK), -1);
    assert_int_equal(access(path_of(dir, "new.part"), F_OK), -1);
    weir_edit_free(e);
    weir_model_free(m);
}

/* --- damage */

typedef struct damage {
    const char *from, *to; /* in adapter_config.json */
    weir_status code;
    const char *word;
} damage;

static const damage CONFIGS[] = {
    {"\"LORA\"", "\"IA3\"", WEIR_E_UNSUPPORTED, "IA3"},
    {"\"peft_type\":\"LORA\"", "\"x\":false", WEIR_E_FORMAT, "peft_type is missing"},
    {"\"bias\":\"none\"", "\"bias\":\"all\"", WEIR_E_UNSUPPORTED, "bias"},
    {"\"bias\":\"none\"", "\"bias\":7", WEIR_E_FORMAT, "bias"},
    {"\"bias\":\"none\"", "\"use_dora\":true", WEIR_E_UNSUPPORTED, "use_dora"},
    {"\"bias\":\"none\"", "\"modules_to_save\":[\"lm_head\"]", WEIR_E_UNSUPPORTED, "modules_to_save"},
    {"\"bias\":\"none\"", "\"of_the_future\":1", WEIR_E_UNSUPPORTED, "of_the_future"},
    {"\"bias\":\"none\"", "\"init_lora_weights\":\"pissa_niter_4\"", WEIR_E_UNSUPPORTED, "pissa"},
    {"\"use_rslora\":false", "\"use_rslora\":\"no\"", WEIR_E_FORMAT, "use_rslora"},
    {"\"fan_in_fan_out\":true", "\"fan_in_fan_out\":0", WEIR_E_FORMAT, "fan_in_fan_out"},
    {"\"r\":2", "\"r\":3", WEIR_E_UNSUPPORTED, "rank 3"},
    {"\"r\":2", "\"r\":0", WEIR_E_FORMAT, "at least 1"},
    {"\"r\":2", "\"r\":2.5", WEIR_E_FORMAT, "r"},
    {"\"r\":2", "\"r\":99999999999999999999", WEIR_E_FORMAT, "r"},
    {"\"lora_alpha\":2", "\"lora_alpha\":1e300", WEIR_E_FORMAT, "scale"},
    {"\"lora_alpha\":2", "\"lora_alpha\":[]", WEIR_E_FORMAT, "lora_alpha"},
    {"\"rank_pattern\":{}", "\"rank_pattern\":{\"down|up\":2}", WEIR_E_UNSUPPORTED, "regular expression"},
    {"\"rank_pattern\":{}", "\"rank_pattern\":{\"c_proj\":5}", WEIR_E_UNSUPPORTED, "rank 5"},
    {"\"rank_pattern\":{}", "\"rank_pattern\":[1]", WEIR_E_FORMAT, "rank_pattern"},
    {"\"alpha_pattern\":{}", "\"alpha_pattern\":{\"c_proj\":\"x\"}", WEIR_E_FORMAT, "alpha_pattern"},
    {"\"alpha_pattern\":{}", "\"layers_to_transform\":[1]", WEIR_E_FORMAT, "does not name this module"},
    {"\"alpha_pattern\":{}", "\"layers_to_transform\":\"x\"", WEIR_E_FORMAT, "layers_to_transform"},
    {"mlp.c_proj\"]", "mlp.c_fc\"]", WEIR_E_FORMAT, "does not name this module"},
    {"\"target_modules\":[", "\"target_modules\":[1,", WEIR_E_FORMAT, "target_modules"},
    {"}\n", "", WEIR_E_FORMAT, "adapter_config.json"},
};

/* A copy of text, which ends with NUL, with the first `from` replaced. */
static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    char *out = calloc(strlen(text) + strlen(to) + 1, 1);
    if (!at)
        fail_msg("\"%s\" is not in %s", from, text);
    memcpy(out, text, (size_t)(at - text));
    strcat(strcat(out, to), at + strlen(from));
    return out;
}

/* Rank-2 update of a down matrix, saved; its directory. */
static char *one_edit(const weir_model *m)
{
    static char dir[1200];
    const weir_update u = kit_update(m, 0, WEIR_MATRIX_DOWN, 2, 9);
    weir_edit *e = kit_edit(m, &u, 1);
    fresh(dir, "edit");
    save(e, dir);
    weir_edit_free(e);
    kit_update_free(&u);
    return dir;
}

static void refuses(const weir_model *m, const char *dir, weir_status code, const char *word)
{
    weir_err err = {0};
    weir_edit *e = NULL;
    char line[1400];
    const weir_status s = weir_edit_open(&e, m, dir, NULL, &err);
    weir_err_line(&err, line, sizeof line);
    assert_null(e);
    if (s != code || err.code != code || !strstr(line, word))
        fail_msg("status %d (%s), not %d with \"%s\"", s, line, code, word);
    assert_int_equal(weir_edit_open(&e, m, dir, NULL, NULL), code); /* err may be NULL */
}

static void test_damaged_configurations(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_GPT2);
    char *dir = one_edit(m), *config = path_of(dir, "adapter_config.json");
    size_t n;
    char *text = read_all(config, &n);
    for (size_t i = 0; i < sizeof CONFIGS / sizeof *CONFIGS; i++) {
        char *bad = replaced(text, CONFIGS[i].from, CONFIGS[i].to);
        write_text(config, bad);
        refuses(m, dir, CONFIGS[i].code, CONFIGS[i].word);
        free(bad);
    }
    write_text(config, text);
    weir_edit_free(open_edit(m, dir));
    free(text);
    weir_model_free(m);
}

static const damage TENSORS[] = {
    {"lora_A.weight", "lora_a.weight", WEIR_E_FORMAT, "no tensor of a LoRA adapter"},
    {"lora_B.weight", "lora_A.weight", WEIR_E_FORMAT, "transformer.h.0"}, /* the same name twice */
    {"lora_B.weight", "lora_C.weight", WEIR_E_FORMAT, "no tensor of a LoRA adapter"},
    {"base_model.model.", "base_model.modal.", WEIR_E_FORMAT, "no tensor of a LoRA adapter"},
    {"mlp.c_proj.lora_B", "mlp.c_praj.lora_B", WEIR_E_UNSUPPORTED, "mlp.c_praj is no matrix of a block"},
    {"h.0.mlp.c_proj.lora_B", "h.9.mlp.c_proj.lora_B", WEIR_E_SHAPE, "layers 0 to"},
    {"\"F32\",\"shape\":[2,", "\"I32\",\"shape\":[2,", WEIR_E_UNSUPPORTED, "not F32"},
    {"[2,84]", "[84,2]", WEIR_E_SHAPE, "its shape begins"},
    {"[21,2]", "[2,21]", WEIR_E_SHAPE, "its shape begins"},
};

static void test_damaged_tensors(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_GPT2);
    char *dir = one_edit(m), *file = path_of(dir, "adapter_model.safetensors");
    size_t n;
    char *bytes = read_all(file, &n), header[4000] = "";
    assert_true(bytes[1] < 14 && !bytes[2]); /* its length, and below 4000 */
    memcpy(header, bytes + 8, (size_t)((uint8_t)bytes[0] + 256 * bytes[1]));
    for (size_t i = 0; i < sizeof TENSORS / sizeof *TENSORS; i++) {
        char *bad = replaced(header, TENSORS[i].from, TENSORS[i].to); /* of the same length */
        FILE *f = fopen(file, "wb");
        fwrite(bytes, 1, 8, f);
        fwrite(bad, 1, strlen(bad), f);
        fwrite(bytes + 8 + strlen(bad), 1, n - 8 - strlen(bad), f);
        fclose(f);
        refuses(m, dir, TENSORS[i].code, TENSORS[i].word);
        free(bad);
    }
    const float nan = NAN;
    memcpy(bytes + n - 4, &nan, 4);
    FILE *f = fopen(file, "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
    refuses(m, dir, WEIR_E_FORMAT, "element 41 is nan");
    assert_int_equal(truncate(file, (off_t)n - 4), 0);
    refuses(m, dir, WEIR_E_FORMAT, "adapter_model.safetensors");
    unlink(file);
    refuses(m, dir, WEIR_E_IO, "no such file: an edit is a directory");
    write_text(path_of(dir, "adapter_model.bin"), "");
    refuses(m, dir, WEIR_E_IO, "save_file");
    free(bytes);
    weir_model_free(m);
}

static void test_edits_of_other_models(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GPT2), *other = kit_open(KIT_NEOX);
    char *dir = one_edit(m);
    refuses(other, dir, WEIR_E_UNSUPPORTED, "is no matrix of a block"); /* another family's names */
    write_text(path_of(dir, "edit.json"), "{\"format\":\"weir-edit\",\"fingerprint\":\"0123\"}");
    refuses(m, dir, WEIR_E_ARG, "made for another model");
    weir_edit *e;
    const weir_edit_options force = {.force = true};
    kit_ok(weir_edit_open(&e, m, dir, &force, &err), &err);
    weir_edit_free(e);
    write_text(path_of(dir, "edit.json"), "{\"format\":\"weir-edit\",\"fingerprint\":7}");
    refuses(m, dir, WEIR_E_FORMAT, "edit.json");
    write_text(path_of(dir, "edit.json"), "[");
    refuses(m, dir, WEIR_E_FORMAT, "edit.json");
    weir_model_free(m);
    weir_model_free(other);
}

/* --- a look */

static void test_look(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GPT2);
    char *dir = one_edit(m);
    weir_edit *e = open_edit(m, dir);
    weir_edit_look *l = NULL;
    const weir_edit_module *module;
    int64_t in, out;
    kit_ok(weir_edit_look_at(&l, dir, &err), &err);
    assert_int_equal(weir_edit_look_modules(l, &module), 1);
    assert_string_equal(module->name, "transformer.h.0.mlp.c_proj");
    weir_matrix_shape(m, WEIR_MATRIX_DOWN, &in, &out);
    assert_true(module->in == in && module->out == out && module->r == 2);
    double *w = dense(weir_edit_update(e, 0), in, out), sum = 0;
    for (int64_t i = 0; i < in * out; i++)
        sum += w[i] * w[i];
    assert_true(fabs(module->norm - sqrt(sum)) < 1e-9 * sqrt(sum) + 1e-12);
    assert_string_equal(weir_edit_look_about(l)->method, "test");
    assert_string_equal(weir_edit_look_about(l)->sha256, weir_edit_about_of(e)->sha256);
    free(w);
    weir_edit_look_free(l);
    weir_edit_free(e);
    unlink(path_of(dir, "adapter_config.json"));
    assert_int_equal(weir_edit_look_at(&l, dir, NULL), WEIR_E_IO);
    weir_model_free(m);
}

/* --- merging */

typedef struct seen {
    int64_t n;
    weir_edit_merged last;
} seen;

static void note(void *user, const weir_edit_merged *m)
{
    seen *s = user;
    s->n++;
    s->last = *m;
}

/* Every element of the merged checkpoint is the sum, rounded to the type. */
static void check_sums(const weir_model *a, const weir_model *b, const weir_edit *const *e, int n)
{
    for (int64_t l = 0; l < weir_model_info_of(a)->L; l++)
        for (int w = 0; w < WEIR_MATRIX_COUNT; w++) {
            const weir_tensor *t = weir_matrix_tensor(b, l, (weir_matrix)w);
            int64_t in, out;
            if (!t)
                continue;
            weir_matrix_shape(a, (weir_matrix)w, &in, &out);
            float *x = malloc((size_t)(in * out) * sizeof *x), *y = malloc((size_t)(in * out) * sizeof *y);
            kit_ok(weir_matrix_read(a, l, (weir_matrix)w, x, NULL), &(weir_err){0});
            kit_ok(weir_matrix_read(b, l, (weir_matrix)w, y, NULL), &(weir_err){0});
            double *d[2] = {dense(update_of(e[0], l, (weir_matrix)w), in, out),
                            dense(n > 1 ? update_of(e[1], l, (weir_matrix)w) : NULL, in, out)};
            for (int64_t i = 0; i < in; i++)
                for (int64_t o = 0; o < out; o++) {
                    const double want = x[o * in + i] + (d[0][i * out + o] + d[1][i * out + o]);
                    const double step = fabs(want) * (t->dtype == WEIR_F32   ? 0x1p-24
                                                      : t->dtype == WEIR_F16 ? 0x1p-11
                                                                             : 0x1p-8);
                    if (fabs(y[o * in + i] - want) > 1.0001 * step + 0x1p-25) /* F16's smallest unit */
                        fail_msg("layer %d %s [%d,%d]: %.9g, not %.9g", (int)l, weir_matrix_name((weir_matrix)w),
                                 (int)i, (int)o, (double)y[o * in + i], want);
                }
            free(d[0]);
            free(d[1]);
            free(x);
            free(y);
        }
}

/* And what no edit touches has its bytes. */
static void check_merged(const weir_model *a, const weir_model *b, const weir_edit *const *e, int n)
{
    check_sums(a, b, e, n);
    for (int64_t i = 0; i < weir_model_n_tensors(a); i++) {
        const weir_tensor *t = weir_model_tensor(a, i), *u = weir_model_tensor(b, i);
        assert_string_equal(t->name, u->name);
        assert_int_equal(t->dtype, u->dtype);
        if (t->rank == 1)
            assert_memory_equal(t->data, u->data, t->bytes);
    }
}

static void test_merged_checkpoints(void **state)
{
    (void)state;
    for (int i = 0; i < KIT_MODELS; i++) {
        weir_err err = {0};
        char dir[1200];
        weir_model *m = kit_open(kit_models[i]);
        const weir_update one = kit_update(m, 1, WEIR_MATRIX_V, 2, 77); /* of a tensor that may hold q and k as well */
        weir_edit *e[] = {kit_edit_all(m, 8), kit_edit(m, &one, 1)};
        seen s = {0};
        const weir_edit_merge_options o = {.threads = 2, .merged = note, .user = &s};
        fresh(dir, "merged");
        kit_ok(weir_edit_merge(m, (const weir_edit *const *)e, 2, dir, &o, &err), &err);
        assert_int_equal(s.n, weir_edit_n(e[0]));
        assert_true(s.last.wanted > 0 && s.last.got > 0 && s.last.lost < 0.1 * s.last.wanted);
        weir_model *b = kit_open(dir);
        check_merged(m, b, (const weir_edit *const *)e, 2);
        assert_int_equal(weir_edit_merge(m, (const weir_edit *const *)e, 2, dir, &o, NULL), WEIR_E_ARG);
        weir_model_free(b);
        s.n = 0;
        fresh(dir, "one");
        kit_ok(weir_edit_merge(m, (const weir_edit *const *)&e[1], 1, dir, &o, &err), &err);
        assert_int_equal(s.n, 1);
        b = kit_open(dir);
        check_merged(m, b, (const weir_edit *const *)&e[1], 1);
        weir_model_free(b);
        weir_edit_free(e[0]);
        weir_edit_free(e[1]);
        kit_update_free(&one);
        weir_model_free(m);
    }
}

static bool always(void *user)
{
    (void)user;
    return true;
}

static const char *const ggufs[] = {"gemma2", "gpt2", "llama-gqa-bf16", "llama-q4_0", "neox-parallel", "qwen2", "qwen3"};

/* GGUF files become directories in F32: rows of heads, fused and turned matrices are where the class has them. */
static void test_merged_gguf(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ggufs / sizeof *ggufs; i++) {
        weir_err err = {0};
        char dir[1200], path[200];
        snprintf(path, sizeof path, "tests/golden/models/%s.gguf", ggufs[i]);
        weir_model *m = kit_open(path);
        weir_edit *e = kit_edit_all(m, 8);
        seen s = {0};
        const weir_edit_merge_options o = {.threads = 2, .merged = note, .user = &s}, stopped = {.stop = always};
        fresh(dir, "merged");
        assert_int_equal(weir_edit_merge(m, (const weir_edit *const *)&e, 1, dir, &stopped, NULL), WEIR_STOP);
        assert_int_equal(access(dir, F_OK), -1);
        kit_ok(weir_edit_merge(m, (const weir_edit *const *)&e, 1, dir, &o, &err), &err);
        assert_int_equal(s.n, weir_edit_n(e));
        assert_int_equal(s.last.dtype, WEIR_F32);
        weir_model *b = kit_open(dir);
        assert_string_equal(weir_model_info_of(b)->dtype, "F32");
        check_sums(m, b, (const weir_edit *const *)&e, 1);
        weir_model_free(b);
        weir_edit_free(e);
        weir_model_free(m);
    }
}

static void test_merging_that_ends_early(void **state)
{
    (void)state;
    weir_err err = {0};
    char dir[1200];
    weir_model *m = kit_open(KIT_MISTRAL), *g = kit_open("tests/golden/models/gpt2.gguf");
    weir_edit *e = kit_edit_all(m, 8), *eg = kit_edit_all(g, 8);
    weir_edit_merge_options o = {.stop = always};
    fresh(dir, "merged");
    assert_int_equal(weir_edit_merge(m, (const weir_edit *const *)&e, 1, dir, &o, &err), WEIR_STOP);
    assert_int_equal(access(dir, F_OK), -1);
    assert_int_equal(weir_edit_merge(m, NULL, 0, dir, NULL, NULL), WEIR_E_ARG);
    weir_update big = kit_update(m, 0, WEIR_MATRIX_O, 1, 5); /* F16 ends at 65504 */
    ((float *)big.u)[0] = 1e6f, ((float *)big.v)[0] = 1e6f;
    weir_edit *large = kit_edit(m, &big, 1);
    assert_int_equal(weir_edit_merge(m, (const weir_edit *const *)&large, 1, dir, NULL, &err), WEIR_E_FORMAT);
    assert_non_null(strstr(err.msg, "too large for F16"));
    assert_int_equal(access(dir, F_OK), -1);
    weir_edit_free(e);
    weir_edit_free(eg);
    weir_edit_free(large);
    kit_update_free(&big);
    weir_model_free(m);
    weir_model_free(g);
}

/* weir_narrow against the numbers that the types have. */
static void test_rounding(void **state)
{
    (void)state;
    static const struct {
        weir_dtype t;
        double x, y;
        uint16_t bits;
    } cases[] = {{WEIR_F16, 1, 1, 0x3c00},
                 {WEIR_F16, -2.5, -2.5, 0xc100},
                 {WEIR_F16, 1 + 0x1p-11, 1, 0x3c00},
                 {WEIR_F16, 1 + 3 * 0x1p-11, 1 + 0x1p-9, 0x3c02},
                 {WEIR_F16, 65504, 65504, 0x7bff},
                 {WEIR_F16, 65519.9, 65504, 0x7bff},
                 {WEIR_F16, 65520, INFINITY, 0x7c00},
                 {WEIR_F16, -0x1p-24, -0x1p-24, 0x8001},
                 {WEIR_F16, 0x1p-25, 0, 0},
                 {WEIR_F16, 0x1.8p-24, 0x1p-23, 0x0002},
                 {WEIR_F16, 0x1p-14, 0x1p-14, 0x0400},
                 {WEIR_F16, 0x1.ffffp-15, 0x1p-14, 0x0400},
                 {WEIR_F16, 0x1.ffcp0, 0x1.ffcp0, 0x3fff},
                 {WEIR_F16, 0x1.fffp0, 2, 0x4000},
                 {WEIR_BF16, 1, 1, 0x3f80},
                 {WEIR_BF16, 1 + 0x1p-8, 1, 0x3f80},
                 {WEIR_BF16, 1 + 0x1p-8 + 0x1p-50, 1 + 0x1p-7, 0x3f81},
                 {WEIR_BF16, -3.0e38, -0x1.c4p127, 0xff62},
                 {WEIR_BF16, 0x1.ffp127, INFINITY, 0x7f80},
                 {WEIR_BF16, 0x1p-133, 0x1p-133, 0x0001},
                 {WEIR_BF16, 0x1p-135, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint16_t bits = 0xdead;
        const double y = weir_narrow(cases[i].t, cases[i].x, &bits);
        if (y != cases[i].y || bits != cases[i].bits)
            fail_msg("case %d: %.17g and %04x, not %.17g and %04x", (int)i, y, bits, cases[i].y, cases[i].bits);
    }
    float f;
    assert_true(weir_narrow(WEIR_F32, 1 + 0x1p-30, &f) == 1 && f == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saved_edits_come_back),   cmocka_unit_test(test_foreign_directories_stay),
        cmocka_unit_test(test_damaged_configurations),  cmocka_unit_test(test_damaged_tensors),
        cmocka_unit_test(test_edits_of_other_models),   cmocka_unit_test(test_look),
        cmocka_unit_test(test_merged_checkpoints),      cmocka_unit_test(test_merged_gguf),
        cmocka_unit_test(test_merging_that_ends_early), cmocka_unit_test(test_rounding),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
