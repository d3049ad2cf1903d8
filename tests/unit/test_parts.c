/* The final stream taken apart (weir/parts.h), on every family: identities to the bit and sums, against what the run
 * itself had. tests/cli/test_decompose.py computes every number a second time. */
#include <math.h>

#include <weir/parts.h>

#include "run_kit.h"
#include "support/said.h"

enum { ROWS = 7 };

static const char *const models[] = {NULL, /* brook */
                                     KIT_GPT2,
                                     KIT_LLAMA,
                                     KIT_LLAMA3,
                                     KIT_MISTRAL,
                                     KIT_NEOX,
                                     KIT_GEMMA,
                                     "tests/golden/models/gpt2.gguf",
                                     "tests/golden/models/llama-q4_0.gguf",
                                     "tests/golden/models/gemma2.gguf"};
enum { MODELS = sizeof models / sizeof *models };

/* A pass, and its values as weir_parts takes them. */
typedef struct pass {
    weir_model *m;
    const weir_model_info *info;
    weir_run *r;
    kit_tap t;
    float *logits;             /* [ROWS,V] */
    const float *layer[6][64]; /* attn_out, mlp_out, z, post, attn_scale, mlp_scale */
    int32_t target[ROWS], against[ROWS];
    weir_parts_rows rows;
} pass;

static const float *at(const pass *p, int64_t layer, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "blocks.%lld.%s", (long long)layer, name);
    return weir_model_point(p->m, full) ? kit_heard(&p->t, p->m, full) : NULL;
}

static void begin(pass *p, const char *path)
{
    static const char *const site[] = {"hook_attn_out", "hook_mlp_out",        "attn.hook_z",
                                       "mlp.hook_post", "ln1_post.hook_scale", "ln2_post.hook_scale"};
    weir_err err = {0};
    *p = (pass){.m = kit_open(path)};
    p->info = weir_model_info_of(p->m);
    p->r = kit_run(p->m, ROWS, 0, "ref", 1);
    kit_tap_init(&p->t, p->m);
    kit_attach(p->r, &p->t);
    int32_t *ids = kit_ids(p->m, ROWS, 77);
    kit_forward(p->r, ids, ROWS, -1, WEIR_FINAL);
    p->logits = malloc((size_t)(ROWS * p->info->V) * sizeof *p->logits);
    assert_true(p->logits && p->info->L <= 64);
    kit_ok(weir_run_logits(p->r, 0, ROWS, p->logits, &err), &err);
    for (int s = 0; s < 6; s++)
        for (int64_t l = 0; l < p->info->L; l++)
            p->layer[s][l] = at(p, l, site[s]);
    for (int i = 0; i < ROWS; i++) {
        p->target[i] = ids[(i + 1) % ROWS];
        p->against[i] = ids[(i + 3) % ROWS];
    }
    free(ids);
    const bool pos = weir_model_point(p->m, "hook_pos_embed");
    p->rows = (weir_parts_rows){.n = ROWS,
                                .embed = kit_heard(&p->t, p->m, "hook_embed"),
                                .pos_embed = pos ? kit_heard(&p->t, p->m, "hook_pos_embed") : NULL,
                                .attn_out = p->layer[0],
                                .mlp_out = p->layer[1],
                                .z = p->layer[2],
                                .post = p->layer[3],
                                .attn_scale = p->layer[4],
                                .mlp_scale = p->layer[5],
                                .stream = at(p, p->info->L - 1, "hook_resid_post"),
                                .target = p->target};
}

static void end(pass *p)
{
    weir_run_free(p->r);
    kit_tap_free(&p->t);
    free(p->logits);
    weir_model_free(p->m);
}

static weir_parts *parts_of(const pass *p, const weir_parts_rows *rows, const char *kernel, int threads)
{
    weir_err err = {0};
    weir_parts *parts;
    kit_ok(weir_parts_new(&parts, p->m, kernel, threads, &err), &err);
    kit_ok(weir_parts_begin(parts, rows, &err), &err);
    return parts;
}

/* Heads (mlp false) or neurons of a layer: [n, n_units + 1], to be freed. */
static weir_part_value *units_of(const weir_parts *parts, const pass *p, int64_t n, bool mlp, int64_t layer,
                                 const int64_t *unit, int64_t n_units)
{
    weir_err err = {0};
    const int64_t width = unit ? n_units : mlp ? p->info->F : p->info->H;
    weir_part_value *out = calloc((size_t)(n * (width + 1)), sizeof *out);
    assert_non_null(out);
    weir_status st = mlp ? weir_parts_neurons(parts, layer, unit, n_units, out, &err)
                         : weir_parts_heads(parts, layer, unit, n_units, out, &err);
    kit_ok(st, &err);
    return out;
}

static void near(double a, double b, double scale, const char *what, const pass *p)
{
    if (!(fabs(a - b) <= 2e-6 * (scale + fabs(b))))
        fail_msg("%s: %s is %.9g instead of %.9g", p->info->name, what, a, b);
}

static double norm_of(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return sqrt(sum);
}

/* --- tests */

static void edits_are_the_stream_to_the_bit(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        pass p;
        begin(&p, models[i]);
        weir_parts *parts = parts_of(&p, &p.rows, NULL, 1);
        const weir_part *list;
        const int64_t e = weir_parts_list(parts, &list);
        assert_int_equal(e, 1 + (p.rows.pos_embed != NULL) + 2 * p.info->L + 1);
        assert_int_equal(list[e - 1].kind, WEIR_PART_REST);
        for (int r = 0; r < ROWS; r++) {
            const weir_parts_sum *s = &weir_parts_sums(parts)[r];
            const weir_part_value *v = weir_parts_edits(parts) + r * e;
            assert_true(s->exact && s->holds);
            near(s->share, 1, 0, "the sum of shares", &p);
            assert_true(v[e - 1].norm == 0 && v[e - 1].share == 0 && isnan(v[e - 1].cosine));
            near(s->norm, norm_of(p.rows.stream + r * p.info->C, p.info->C), 0, "the stream's norm", &p);
            near(v[0].norm, norm_of(p.rows.embed + r * p.info->C, p.info->C), 0, "the embedding's norm", &p);
            near(v[0].cosine * v[0].norm, v[0].share * s->norm, 0, "cosine and share", &p);
        }
        weir_parts_free(parts);
        end(&p);
    }
}

/* The logit is the model's own to the bit, and what the parts come to. */
static void attributions_sum_to_the_models_logit(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        pass p;
        begin(&p, models[i]);
        const bool capped = weir_model_point(p.m, "hook_logits");
        const float *raw = kit_heard(&p.t, p.m, "unembed.hook_out");
        weir_parts *parts = parts_of(&p, &p.rows, NULL, 1);
        for (int r = 0; r < ROWS; r++) {
            const weir_parts_sum *s = &weir_parts_sums(parts)[r];
            const int64_t token = r * p.info->V + p.target[r];
            assert_int_equal(s->target, p.target[r]);
            assert_int_equal(s->against, -1);
            assert_true(s->logit == raw[token] && s->capped == p.logits[token]);
            assert_true(capped || s->logit == s->capped);
            assert_true(s->holds && fabs(s->difference) < s->tolerance && s->tolerance > 0);
            assert_true(s->difference == s->parts - s->logit);
        }
        weir_parts_free(parts);
        end(&p);
    }
}

static void final_is_the_likeliest_token(void **state)
{
    pass p;
    (void)state;
    begin(&p, KIT_GEMMA);
    for (int r = 0; r < ROWS; r++)
        p.target[r] = r == 2 ? -1 : WEIR_LENS_FINAL_TOP;
    weir_parts *parts = parts_of(&p, &p.rows, NULL, 1);
    for (int r = 0; r < ROWS; r++) {
        const weir_parts_sum *s = &weir_parts_sums(parts)[r];
        int32_t best = 0;
        for (int32_t v = 1; v < p.info->V; v++)
            best = p.logits[r * p.info->V + v] > p.logits[r * p.info->V + best] ? v : best;
        assert_int_equal(s->target, r == 2 ? -1 : best);
        assert_true(isnan(s->logit) == (r == 2) && isnan(s->parts) == (r == 2) && s->holds);
    }
    weir_parts_free(parts);
    p.rows.target = NULL;
    parts = parts_of(&p, &p.rows, NULL, 1);
    assert_true(weir_parts_sums(parts)[0].target == -1 && isnan(weir_parts_edits(parts)[0].logit));
    assert_true(weir_parts_edits(parts)[0].norm > 0);
    weir_parts_free(parts);
    end(&p);
}

static void a_contrast_is_the_difference_of_two_targets(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        pass p;
        begin(&p, models[i]);
        weir_parts_rows rows = p.rows;
        weir_parts *a = parts_of(&p, &rows, NULL, 1);
        rows.target = p.against;
        weir_parts *b = parts_of(&p, &rows, NULL, 1);
        rows.target = p.target;
        rows.against = p.against;
        weir_parts *both = parts_of(&p, &rows, NULL, 1);
        const weir_part *list;
        const int64_t e = weir_parts_list(both, &list);
        for (int r = 0; r < ROWS; r++) {
            const weir_parts_sum *s = &weir_parts_sums(both)[r], *x = &weir_parts_sums(a)[r],
                                 *y = &weir_parts_sums(b)[r];
            assert_true(s->logit == x->logit - y->logit && s->capped == x->capped - y->capped && s->holds);
            near(s->constant, x->constant - y->constant, s->tolerance, "the constant", &p);
            for (int64_t k = 0; k < e; k++)
                near(weir_parts_edits(both)[r * e + k].logit,
                     weir_parts_edits(a)[r * e + k].logit - weir_parts_edits(b)[r * e + k].logit, s->tolerance,
                     "a contrast", &p);
        }
        weir_parts_free(a);
        weir_parts_free(b);
        weir_parts_free(both);
        end(&p);
    }
}

/* Shares and logits of all units of a sublayer, and of its bias, against those of the sublayer. */
static void check_units(const pass *p, const weir_parts *parts, bool mlp, int64_t layer)
{
    const weir_part *list;
    const int64_t e = weir_parts_list(parts, &list), n = (mlp ? p->info->F : p->info->H) + 1;
    weir_part_value *v = units_of(parts, p, ROWS, mlp, layer, NULL, 0);
    int64_t k = 0;
    while (list[k].kind != (mlp ? WEIR_PART_MLP : WEIR_PART_ATTN) || list[k].layer != layer)
        k++;
    for (int r = 0; r < ROWS; r++) {
        const weir_part_value want = weir_parts_edits(parts)[r * e + k];
        double share = 0, logit = 0;
        for (int64_t u = 0; u < n; u++) {
            share += v[r * n + u].share;
            logit += v[r * n + u].logit;
        }
        near(share, want.share, 1, mlp ? "neurons' share" : "heads' share", p);
        near(logit, want.logit, 10, mlp ? "neurons' logit" : "heads' logit", p);
    }
    free(v);
}

static void heads_and_neurons_sum_to_their_sublayer(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        pass p;
        begin(&p, models[i]);
        weir_parts *parts = parts_of(&p, &p.rows, NULL, 1);
        for (int64_t l = 0; l < p.info->L; l++) {
            check_units(&p, parts, false, l);
            check_units(&p, parts, true, l);
        }
        weir_parts_free(parts);
        end(&p);
    }
}

/* hook_result is what the run itself makes of a head; a norm behind it (Gemma 2) is not in there. */
static void heads_are_hook_result(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        pass p;
        begin(&p, models[i]);
        weir_parts *parts = parts_of(&p, &p.rows, NULL, 1);
        const int64_t h = p.info->H, c = p.info->C;
        const float *result = at(&p, p.info->L - 1, "attn.hook_result");
        weir_part_value *v = units_of(parts, &p, ROWS, false, p.info->L - 1, NULL, 0);
        for (int64_t r = 0; r < ROWS && !p.layer[4][0]; r++)
            for (int64_t k = 0; k < h; k++)
                near(v[r * (h + 1) + k].norm, norm_of(result + (r * h + k) * c, c), 0, "a head's norm", &p);
        free(v);
        weir_parts_free(parts);
        end(&p);
    }
}

/* --- the same bits however they are asked for */

static void same(const weir_part_value *a, const weir_part_value *b, int64_t n, const char *what)
{
    if (memcmp(a, b, (size_t)n * sizeof *a))
        fail_msg("%s: other bits", what);
}

static void bits_do_not_depend_on_threads_kernel_or_positions(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        pass p;
        begin(&p, models[i]);
        const int64_t last = p.info->L - 1, c = p.info->C, h = p.info->H, f = p.info->F;
        weir_parts *many = parts_of(&p, &p.rows, "ref", 1), *two = parts_of(&p, &p.rows, NULL, 2);
        const weir_part *list;
        const int64_t e = weir_parts_list(many, &list);
        same(weir_parts_edits(many), weir_parts_edits(two), ROWS * e, "edits");
        weir_part_value *heads = units_of(many, &p, ROWS, false, last, NULL, 0);
        weir_part_value *heads2 = units_of(two, &p, ROWS, false, last, NULL, 0);
        weir_part_value *neurons = units_of(many, &p, ROWS, true, last, NULL, 0);
        weir_part_value *neurons2 = units_of(two, &p, ROWS, true, last, NULL, 0);
        same(heads, heads2, ROWS * (h + 1), "heads");
        same(neurons, neurons2, ROWS * (f + 1), "neurons");

        /* the last position alone, and some units of it */
        enum { R = ROWS - 1 };
        const float *layer[6][64];
        const int64_t width[6] = {c, c, h * p.info->D, f, 1, 1};
        for (int s = 0; s < 6; s++)
            for (int64_t l = 0; l <= last; l++)
                layer[s][l] = p.layer[s][l] ? p.layer[s][l] + R * width[s] : NULL;
        const weir_parts_rows one = {.n = 1,
                                     .embed = p.rows.embed + R * c,
                                     .pos_embed = p.rows.pos_embed ? p.rows.pos_embed + R * c : NULL,
                                     .attn_out = layer[0],
                                     .mlp_out = layer[1],
                                     .z = layer[2],
                                     .post = layer[3],
                                     .attn_scale = layer[4],
                                     .mlp_scale = layer[5],
                                     .stream = p.rows.stream + R * c,
                                     .target = p.target + R};
        weir_err err = {0};
        kit_ok(weir_parts_begin(two, &one, &err), &err);
        same(weir_parts_edits(two), weir_parts_edits(many) + R * e, e, "edits of one position");
        const int64_t some_heads[] = {h - 1, 0}, some[] = {1, f / 2, f - 1};
        weir_part_value *few = units_of(two, &p, 1, false, last, some_heads, 2);
        same(few, heads + R * (h + 1) + h - 1, 1, "the last head");
        same(few + 1, heads + R * (h + 1), 1, "head 0");
        same(few + 2, heads + R * (h + 1) + h, 1, "the bias of attention");
        free(few);
        few = units_of(two, &p, 1, true, last, some, 3);
        for (int k = 0; k < 3; k++)
            same(few + k, neurons + R * (f + 1) + some[k], 1, "a neuron");
        same(few + 3, neurons + R * (f + 1) + f, 1, "the bias of the MLP");
        assert_true(memcmp(few, few + 1, sizeof *few) != 0); /* the comparison can fail */
        void *const own[] = {few, heads, heads2, neurons, neurons2};
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            free(own[k]);
        weir_parts_free(many);
        weir_parts_free(two);
        end(&p);
    }
}

static void what_others_wrote_into_the_stream_is_the_rest(void **state)
{
    pass p;
    (void)state;
    begin(&p, KIT_NEOX);
    const int64_t c = p.info->C;
    float *stream = malloc((size_t)(ROWS * c) * sizeof *stream);
    assert_non_null(stream);
    memcpy(stream, p.rows.stream, (size_t)(ROWS * c) * sizeof *stream);
    stream[2 * c + 1] += 3;
    p.rows.stream = stream;
    weir_parts *parts = parts_of(&p, &p.rows, NULL, 1);
    const weir_part *list;
    const int64_t e = weir_parts_list(parts, &list);
    for (int r = 0; r < ROWS; r++) {
        const weir_parts_sum *s = &weir_parts_sums(parts)[r];
        assert_true(s->exact == (r != 2) && s->holds);
        near(s->share, 1, 0, "the sum of shares", &p);
        near(weir_parts_edits(parts)[r * e + e - 1].norm, r == 2 ? 3 : 0, 0, "the rest", &p);
    }
    weir_parts_free(parts);
    free(stream);
    end(&p);
}

/* A stream of zeros has no direction; NaN stays where it is. */
static void odd_values(void **state)
{
    pass p;
    (void)state;
    begin(&p, KIT_LLAMA);
    const int64_t c = p.info->C;
    float *zero = calloc((size_t)(ROWS * c), sizeof *zero);
    assert_non_null(zero);
    const float *zeros[64];
    for (int l = 0; l < 64; l++)
        zeros[l] = zero;
    zero[3 * c] = NAN;
    weir_parts_rows rows = {
        .n = ROWS, .embed = zero, .attn_out = zeros, .mlp_out = zeros, .stream = zero, .target = p.target};
    weir_parts *parts = parts_of(&p, &rows, NULL, 1);
    for (int r = 0; r < ROWS; r++) {
        const weir_parts_sum *s = &weir_parts_sums(parts)[r];
        assert_true(r == 3 ? isnan(s->norm) && !s->holds : s->norm == 0 && s->exact && s->holds && s->logit == 0);
        assert_true(isnan(s->share));
    }
    weir_parts_free(parts);
    free(zero);
    end(&p);
}

/* --- what is refused */

static void refused(const pass *p, const weir_parts_rows *rows, const char *words)
{
    weir_err err = {0};
    weir_parts *parts;
    weir_part_value out;
    kit_ok(weir_parts_new(&parts, p->m, NULL, 1, &err), &err);
    assert_int_equal(weir_parts_begin(parts, rows, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, words));
    err = (weir_err){0};
    assert_int_equal(weir_parts_heads(parts, 0, NULL, 0, &out, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, "no positions"));
    weir_parts_free(parts);
}

static void missing_values_are_refused(void **state)
{
    const float *hole[64] = {NULL};
    const int32_t wrong[ROWS] = {0, -3}, large[ROWS] = {1 << 20};
    pass p;
    (void)state;
    begin(&p, KIT_GEMMA);
    weir_parts_rows rows = p.rows;
    rows.n = 0;
    refused(&p, &rows, "n >= 1 positions");
    rows = p.rows;
    rows.stream = NULL;
    refused(&p, &rows, "embed, attn_out, mlp_out and stream");
    rows = p.rows;
    rows.pos_embed = rows.embed;
    refused(&p, &rows, "pos_embed is given, but this model has none");
    rows = p.rows;
    rows.mlp_out = hole;
    refused(&p, &rows, "attn_out or mlp_out of layer 0 is missing");
    rows = p.rows;
    rows.attn_scale = hole;
    refused(&p, &rows, "ln1_post.hook_scale of layer 0 is missing");
    rows = p.rows;
    rows.mlp_scale = NULL;
    refused(&p, &rows, "ln2_post.hook_scale of layer 0 is missing");
    rows = p.rows;
    rows.target = wrong;
    refused(&p, &rows, "token -3: the model has");
    rows.target = p.target;
    rows.against = large;
    refused(&p, &rows, "token 1048576: the model has");
    end(&p);
    begin(&p, KIT_GPT2);
    p.rows.pos_embed = NULL;
    refused(&p, &p.rows, "pos_embed is missing");
    end(&p);
}

static void unknown_units_are_refused(void **state)
{
    pass p;
    (void)state;
    begin(&p, KIT_GPT2);
    const float *hole[64] = {NULL};
    const int64_t f = p.info->F, l = p.info->L;
    const struct {
        bool mlp;
        int64_t layer, unit[2];
        int64_t n;
        const char *words;
    } wrong[] = {{false, -1, {0}, 0, "layer -1: the model has"},
                 {true, l, {0}, 0, "from 0"},
                 {false, 0, {p.info->H}, 1, "of layer 0: it has"},
                 {true, 0, {-1}, 1, "neuron -1 of layer 0"},
                 {true, 0, {3, f}, 2, "of layer 0: it has"},
                 {true, 0, {3, 3}, 2, "ascending"},
                 {false, 1, {0}, 1, "heads of layer 1: attn.hook_z is missing"},
                 {true, 1, {0}, 1, "neurons of layer 1: mlp.hook_post is missing"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weir_err err = {0};
        weir_parts_rows rows = p.rows;
        rows.z = i == 6 ? hole : rows.z;
        rows.post = i == 7 ? NULL : rows.post;
        weir_parts *parts = parts_of(&p, &rows, NULL, 1);
        const int64_t *unit = wrong[i].n ? wrong[i].unit : NULL;
        weir_part_value out[3];
        weir_status st = wrong[i].mlp ? weir_parts_neurons(parts, wrong[i].layer, unit, wrong[i].n, out, &err)
                                      : weir_parts_heads(parts, wrong[i].layer, unit, wrong[i].n, out, &err);
        assert_int_equal(st, WEIR_E_ARG);
        assert_true(said(&err, WEIR_E_ARG, wrong[i].words));
        weir_parts_free(parts);
    }
    weir_err err = {0};
    weir_parts *none;
    assert_int_equal(weir_parts_new(&none, p.m, "nothing", 1, &err), WEIR_E_ARG);
    assert_null(none);
    err = (weir_err){0};
    assert_int_equal(weir_parts_new(&none, p.m, NULL, -1, &err), WEIR_E_ARG);
    weir_parts_free(NULL);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_are_the_stream_to_the_bit),
        cmocka_unit_test(attributions_sum_to_the_models_logit),
        cmocka_unit_test(final_is_the_likeliest_token),
        cmocka_unit_test(a_contrast_is_the_difference_of_two_targets),
        cmocka_unit_test(heads_and_neurons_sum_to_their_sublayer),
        cmocka_unit_test(heads_are_hook_result),
        cmocka_unit_test(bits_do_not_depend_on_threads_kernel_or_positions),
        cmocka_unit_test(what_others_wrote_into_the_stream_is_the_rest),
        cmocka_unit_test(odd_values),
        cmocka_unit_test(missing_values_are_refused),
        cmocka_unit_test(unknown_units_are_refused),
    };
    return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
