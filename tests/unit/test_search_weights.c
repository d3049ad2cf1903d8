/* Tokens read from the weights, against a plain loop over the same weights in the order of arithmetic that
 * lib/search/weights_find.c states (to the bit), and against the formulas of weir/neurons.h as they are written there
 * (nearly); every family in both formats, with the weights of model_files.h. */
#include <math.h>

#include "kernels/kernels.h"
#include "model_families.h"
#include "run_kit.h"
#include "search/weights.h"

/* A family as the formulas see it; names of weights are those of model_families.h. */
typedef struct family {
    mf_sizes s;
    bool rms, post, gated, tied;
    float offset, scale;
} family;

enum { N = 5 };

/* --- the oracle */

static float vector(const char *what, int64_t layer, int64_t c)
{
    return mf_value(mf_weight(what, layer), c, 0);
}

static void centre(const family *f, double *z)
{
    double sum = 0;
    for (int64_t c = 0; c < f->s.C && !f->rms; c++)
        sum += z[c];
    const double mean = sum / (double)f->s.C;
    for (int64_t c = 0; c < f->s.C; c++)
        z[c] -= mean;
}

static void gain(const family *f, const char *what, int64_t layer, double *z)
{
    for (int64_t c = 0; c < f->s.C; c++)
        z[c] *= f->offset + vector(what, layer, c);
}

static void raw(const family *f, int64_t layer, int64_t unit, weir_weight_side side, double *z)
{
    for (int64_t c = 0; c < f->s.C; c++)
        z[c] = side == WEIR_SIDE_OUT  ? mf_value(mf_weight("down", layer), c, unit)
               : side == WEIR_SIDE_UP ? mf_value(mf_weight("up", layer), unit, c)
                                      : mf_value(mf_weight("pre", layer), unit, c);
}

static const char *table_of(const family *f, weir_weight_side side)
{
    return side == WEIR_SIDE_OUT && !f->tied ? "head" : "embed";
}

/* All scores of one neuron and side, out [V]. */
static void oracle(const family *f, int64_t layer, int64_t unit, weir_weight_side side, float *out)
{
    double z[64];
    raw(f, layer, unit, side, z);
    if (side == WEIR_SIDE_OUT) {
        if (f->post)
            gain(f, "ln2 post", layer, z);
        centre(f, z);
        gain(f, "lnf", -1, z);
    } else {
        gain(f, "ln2", layer, z);
        centre(f, z);
        for (int64_t c = 0; c < f->s.C; c++)
            z[c] *= f->scale;
    }
    for (int64_t t = 0; t < f->s.V; t++) {
        out[t] = 0;
        for (int64_t c = 0; c < f->s.C; c++)
            out[t] = fmaf((float)z[c], mf_value(table_of(f, side), t, c), out[t]);
    }
}

/* The formula as it is written. */
static double formula(const family *f, int64_t layer, int64_t unit, weir_weight_side side, int64_t t)
{
    double w[64], e[64], sum = 0;
    raw(f, layer, unit, side, w);
    for (int64_t c = 0; c < f->s.C; c++)
        e[c] = mf_value(table_of(f, side), t, c) * (side == WEIR_SIDE_OUT ? 1 : f->scale);
    if (side == WEIR_SIDE_OUT) {
        if (f->post)
            gain(f, "ln2 post", layer, w);
        centre(f, w);
        gain(f, "lnf", -1, w);
    } else {
        centre(f, e);
        gain(f, "ln2", layer, e);
    }
    for (int64_t c = 0; c < f->s.C; c++)
        sum += w[c] * e[c];
    return sum;
}

static bool better(const float *x, int32_t a, int32_t b, bool positive)
{
    return x[a] != x[b] ? positive == (x[a] > x[b]) : a < b;
}

/* The first of n tokens that is not what sorting all scores gives, or -1. */
static int64_t differs(const weir_weight_token *list, int64_t n, const float *x, int64_t vocab, bool positive)
{
    bool taken[64] = {false};
    for (int64_t i = 0; i < n; i++) {
        int32_t best = -1;
        for (int32_t t = 0; t < vocab; t++)
            if (!taken[t] && !isnan(x[t]) && (best < 0 || better(x, t, best, positive)))
                best = t;
        if (list[i].id != best || (best >= 0 && memcmp(&list[i].score, &x[best], sizeof *x)))
            return i;
        if (best >= 0)
            taken[best] = true;
    }
    return -1;
}

/* --- searches */

static weir_neurons *search_of(const weir_neurons_table *tables, int n)
{
    weir_err err = {0};
    weir_neurons *s;
    weir_neurons_options o;
    weir_neurons_options_init(&o);
    o.k = 4;
    kit_ok(weir_neurons_new(&s, &o, tables, n, &err), &err);
    return s;
}

static weir_neurons_weights_options five(void)
{
    weir_neurons_weights_options o;
    weir_neurons_weights_options_init(&o);
    assert_int_equal(o.n, 10);
    o.n = N;
    o.threads = 1;
    return o;
}

static void find(weir_neurons *s, const weir_model *m, const weir_neurons_weights_options *o)
{
    weir_err err = {0};
    kit_ok(weir_neurons_weights(s, m, o, &err), &err);
}

static const int64_t some[] = {1, 4, 20};

static int make_tables(const family *f, weir_neurons_table *t)
{
    t[0] = (weir_neurons_table){"blocks.0.hook_mlp_out", "mlp_out", 0, f->s.C, f->s.C, NULL};
    t[1] = (weir_neurons_table){"blocks.0.mlp.hook_post", "post", 0, f->s.F, f->s.F, NULL};
    t[2] = (weir_neurons_table){"blocks.1.mlp.hook_pre", "pre", 1, f->s.F, 3, some};
    t[3] = (weir_neurons_table){"blocks.1.mlp.hook_post", "post", 1, f->s.F, 3, some};
    return f->s.L > 1 ? 4 : 2;
}

static void check_neuron(const family *f, const weir_neurons *s, int t, int64_t i, int side, int64_t vocab)
{
    const weir_neurons_table *p = weir_neurons_table_at(s, t);
    const int64_t unit = p->units ? p->units[i] : i;
    float x[64];
    oracle(f, p->layer, unit, (weir_weight_side)side, x);
    for (int positive = 0; positive < 2; positive++) {
        int64_t n;
        const weir_weight_token *list = weir_neurons_weight_tokens(s, t, i, (weir_weight_side)side, positive, &n);
        assert_non_null(list);
        assert_int_equal(n, N);
        const int64_t at = differs(list, n, x, vocab, positive);
        if (at >= 0)
            fail_msg("%s unit %lld side %d: token %lld is %d with %.9g", p->hook, (long long)unit, side, (long long)at,
                     list[at].id, (double)list[at].score);
        for (int64_t r = 0; r < n; r++) {
            const double want = formula(f, p->layer, unit, (weir_weight_side)side, list[r].id);
            assert_true(fabs(want - list[r].score) <= 1e-4 * (1 + fabs(want)));
        }
    }
}

static void check_model(const family *f, const mf_checkpoint *k, int64_t vocab)
{
    weir_model *m = kit_open(k->path);
    weir_neurons_table t[4];
    const int n = make_tables(f, t);
    weir_neurons *s = search_of(t, n);
    weir_neurons_weights_options o = five();
    o.vocab = vocab;
    find(s, m, &o);
    int64_t none;
    assert_null(weir_neurons_weight_tokens(s, 0, 0, WEIR_SIDE_IN, true, &none));
    assert_int_equal(none, 0);
    for (int i = 1; i < n; i++)
        for (int64_t j = 0; j < t[i].n; j++)
            for (int side = 0; side < WEIR_SIDES; side++)
                if (side != WEIR_SIDE_UP || f->gated)
                    check_neuron(f, s, i, j, side, vocab ? vocab : f->s.V);
    if (!f->gated)
        assert_null(weir_neurons_weight_tokens(s, 1, 0, WEIR_SIDE_UP, true, &none));
    const int64_t neurons = f->s.F + (n > 2 ? 3 : 0); /* the same neurons at two sites count once */
    assert_true(weir_neurons_weights_cost(s, m) == (double)(neurons * (f->gated ? 3 : 2) * f->s.V * f->s.C));
    weir_neurons_free(s);
    weir_model_free(m);
}

static void check_both(const family *f, mf_checkpoint *hf, mf_checkpoint *gguf, const mf_meta *meta)
{
    mf_write_hf(hf);
    check_model(f, hf, 0);
    check_model(f, hf, f->s.V - 4);
    mf_remove(hf);
    mf_write_gguf(gguf, meta);
    check_model(f, gguf, 0);
    mf_remove(gguf);
}

static void test_gpt2(void **state)
{
    (void)state;
    const family f = {.s = MF_GPT2, .tied = true, .scale = 1};
    mf_checkpoint a, b;
    mf_meta meta;
    mf_gpt2_hf(&a, &f.s, "F32");
    mf_gpt2_gguf(&b, &meta, &f.s, "F16");
    check_both(&f, &a, &b, &meta);
}

static void test_llama(void **state)
{
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        const family f = {.s = MF_LLAMA, .rms = true, .gated = true, .tied = tied, .scale = 1};
        mf_checkpoint a, b;
        mf_meta meta;
        mf_llama_hf(&a, &f.s, "BF16", false, tied, "");
        mf_llama_gguf(&b, &meta, &f.s, "F16", false, tied);
        check_both(&f, &a, &b, &meta);
    }
}

/* The embedding's scale is fp32(sqrt(20)). */
static void test_gemma2(void **state)
{
    (void)state;
    const family f = {.s = MF_GEMMA,
                      .rms = true,
                      .post = true,
                      .gated = true,
                      .tied = true,
                      .offset = 1,
                      .scale = 4.47213595499957939282f};
    mf_checkpoint a, b;
    mf_meta meta;
    mf_gemma2_hf(&a, &f.s, "F32", "");
    mf_gemma2_gguf(&b, &meta, &f.s, "F32");
    check_both(&f, &a, &b, &meta);
}

/* The MLP of a parallel block reads its own norm of the block's input. */
static void test_neox(void **state)
{
    (void)state;
    const family f = {.s = MF_NEOX, .scale = 1};
    mf_checkpoint a, b;
    mf_meta meta;
    mf_neox_hf(&a, &f.s, "F32", "");
    mf_neox_gguf(&b, &meta, &f.s, "F16");
    check_both(&f, &a, &b, &meta);
}

static void test_blocks(void **state)
{
    (void)state;
    const family f = {.s = MF_BLOCKS, .rms = true, .gated = true, .scale = 1};
    mf_checkpoint k;
    mf_meta meta;
    mf_llama_gguf(&k, &meta, &f.s, "Q8_0", false, false);
    mf_write_gguf(&k, &meta);
    check_model(&f, &k, 0);
    mf_remove(&k);
}

static void test_oracle_can_fail(void **state)
{
    (void)state;
    const float x[] = {1, 3, NAN, 3, -2};
    const weir_weight_token right[] = {{1, 3}, {3, 3}, {0, 1}, {4, -2}, {-1, NAN}};
    assert_int_equal(differs(right, 5, x, 5, true), -1);
    assert_int_equal(differs(right, 4, x, 4, true), 3);
    weir_weight_token wrong[5];
    memcpy(wrong, right, sizeof wrong);
    wrong[0] = right[1];
    assert_int_equal(differs(wrong, 5, x, 5, true), 0);
    memcpy(wrong, right, sizeof wrong);
    wrong[2].score = nextafterf(1, 2);
    assert_int_equal(differs(wrong, 5, x, 5, true), 2);
    memcpy(wrong, right, sizeof wrong);
    wrong[4].id = 2;
    assert_int_equal(differs(wrong, 5, x, 5, true), 4);
    assert_int_equal(differs(right, 5, x, 5, false), 0);
}

/* --- the same bits however it is computed */

static bool same(const weir_neurons *a, const weir_neurons *b, int t, int side)
{
    const size_t bytes = (size_t)(a->weights->table[t].neurons * a->weights->n) * sizeof(weir_weight_token);
    for (int end = 0; end < 2; end++) {
        const weir_weight_token *x = weir_weights_list(a->weights, t, (weir_weight_side)side, end);
        const weir_weight_token *y = weir_weights_list(b->weights, t, (weir_weight_side)side, end);
        if (!x != !y || (x && memcmp(x, y, bytes)))
            return false;
    }
    return true;
}

/* All of a layer, a few of it, threads, instruction sets. */
static void test_same_bits(void **state)
{
    (void)state;
    static const int64_t few[] = {7, 300, 766};
    static const char *const kernel[] = {"ref", "avx2", "avx512"};
    weir_model *m = kit_open(NULL);
    const weir_neurons_table all = {"blocks.2.mlp.hook_post", "post", 2, 768, 768, NULL};
    weir_neurons *s = search_of(&all, 1);
    weir_neurons_weights_options o = five();
    find(s, m, &o);
    weir_neurons_table t[2] = {{"blocks.1.mlp.hook_post", "post", 1, 768, 3, few},
                               {"blocks.2.mlp.hook_pre", "pre", 2, 768, 3, few}};
    for (int i = 0; i < 3; i++) {
        const weir_kern *have;
        weir_err err = {0};
        if (weir_kern_pick(&have, kernel[i], &err))
            continue;
        weir_neurons *other = search_of(t, 2);
        o.kernel = kernel[i];
        o.threads = i + 1;
        find(other, m, &o);
        for (int side = 0; side < WEIR_SIDES; side += 2)
            for (int j = 0; j < 3; j++)
                for (int end = 0; end < 2; end++) {
                    int64_t n;
                    const weir_weight_token *x =
                        weir_neurons_weight_tokens(s, 0, few[j], (weir_weight_side)side, end, &n);
                    const weir_weight_token *y =
                        weir_neurons_weight_tokens(other, 1, j, (weir_weight_side)side, end, &n);
                    assert_memory_equal(x, y, (size_t)n * sizeof *x);
                }
        weir_neurons_free(other);
    }
    weir_neurons_free(s);
    weir_model_free(m);
}

/* --- merging, files, errors */

static weir_neurons *found(const weir_model *m, const weir_neurons_table *t, int n_tables, int64_t n)
{
    weir_neurons *s = search_of(t, n_tables);
    weir_neurons_weights_options o = five();
    o.n = n;
    find(s, m, &o);
    return s;
}

static void test_merge(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GEMMA);
    const weir_model_info *i = weir_model_info_of(m);
    const weir_neurons_table t = {"blocks.0.mlp.hook_post", "post", 0, i->F, i->F, NULL};
    weir_neurons *a = found(m, &t, 1, N), *b = found(m, &t, 1, N), *none = search_of(&t, 1), *more = found(m, &t, 1, 9);
    kit_ok(weir_weights_merge(a, b, &err), &err);
    kit_ok(weir_weights_merge(a, none, &err), &err);
    assert_null(none->weights);
    kit_ok(weir_weights_merge(none, a, &err), &err);
    for (int side = 0; side < WEIR_SIDES; side++)
        assert_true(same(a, none, 0, side));
    assert_int_equal(weir_weights_merge(a, more, &err), WEIR_E_ARG);
    weir_weights_list(b->weights, 0, WEIR_SIDE_UP, true)[3].score += 1;
    assert_false(same(a, b, 0, WEIR_SIDE_UP));
    err = (weir_err){0};
    assert_int_equal(weir_weights_merge(a, b, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "hook_post"));
    weir_neurons_free(a);
    weir_neurons_free(b);
    weir_neurons_free(none);
    weir_neurons_free(more);
    weir_model_free(m);
}

static void unsound(const weir_neurons *s, weir_weight_token *place, weir_weight_token put, int64_t vocab)
{
    weir_err err = {0};
    const weir_weight_token was = *place;
    kit_ok(weir_weights_check(s->weights, vocab, &err), &err);
    *place = put;
    assert_int_equal(weir_weights_check(s->weights, vocab, &err), WEIR_E_FORMAT);
    *place = was;
}

static void test_check(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_GPT2);
    const weir_model_info *i = weir_model_info_of(m);
    const weir_neurons_table t = {"blocks.0.mlp.hook_post", "post", 0, i->F, i->F, NULL};
    weir_neurons *s = found(m, &t, 1, N);
    weir_weight_token *list = weir_weights_list(s->weights, 0, WEIR_SIDE_OUT, false);
    unsound(s, list + 2, (weir_weight_token){(int32_t)i->V, list[2].score}, i->V);
    unsound(s, list + 2, (weir_weight_token){-2, list[2].score}, i->V);
    unsound(s, list + 2, (weir_weight_token){-1, list[2].score}, i->V);
    unsound(s, list + 2, (weir_weight_token){list[2].id, NAN}, i->V);
    unsound(s, list + 2, list[1], i->V);
    unsound(s, list, (weir_weight_token){list[0].id, list[4].score + 1}, i->V);
    weir_neurons_free(s);
    weir_model_free(m);
}

static void refused(const weir_model *m, const weir_neurons_table *t, const weir_neurons_weights_options *o,
                    const char *word)
{
    weir_err err = {0};
    weir_neurons *s = search_of(t, 1);
    assert_int_equal(weir_neurons_weights(s, m, o, &err), WEIR_E_ARG);
    if (!strstr(err.msg, word))
        fail_msg("no \"%s\" in: %s", word, err.msg);
    assert_null(s->weights);
    weir_neurons_free(s);
}

static void test_errors(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_GPT2);
    const weir_model_info *i = weir_model_info_of(m);
    const weir_neurons_table t = {"blocks.0.mlp.hook_post", "post", 0, i->F, i->F, NULL};
    weir_neurons_weights_options o = five();
    o.n = 0;
    refused(m, &t, &o, "1 to 100");
    o.n = 101;
    refused(m, &t, &o, "1 to 100");
    o = five();
    o.vocab = i->V + 1;
    refused(m, &t, &o, "vocabulary");
    o = five();
    o.threads = -1;
    refused(m, &t, &o, "threads");
    o = five();
    o.kernel = "sse9";
    refused(m, &t, &o, "sse9");
    o = five();
    weir_neurons_table bad = t;
    bad.width = bad.n = i->F + 1;
    refused(m, &bad, &o, "not of this model");
    bad = t;
    bad.layer = (int)i->L;
    refused(m, &bad, &o, "not of this model");
    weir_model_free(m);
}

/* More tokens asked than there are. */
static void test_small_vocabulary(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_GPT2);
    const weir_model_info *i = weir_model_info_of(m);
    const weir_neurons_table t = {"blocks.0.mlp.hook_post", "post", 0, i->F, i->F, NULL};
    weir_neurons *s = search_of(&t, 1);
    weir_neurons_weights_options o = five();
    o.vocab = 3;
    find(s, m, &o);
    int64_t n;
    const weir_weight_token *high = weir_neurons_weight_tokens(s, 0, 1, WEIR_SIDE_IN, true, &n), copy[] = {high[0]};
    assert_int_equal(n, N);
    const weir_weight_token *low = weir_neurons_weight_tokens(s, 0, 1, WEIR_SIDE_IN, false, &n);
    assert_int_equal(low[2].id, copy[0].id);
    assert_int_equal(high[3].id, -1);
    assert_int_equal(low[4].id, -1);
    assert_true(isnan(high[3].score));
    weir_neurons_free(s);
    weir_model_free(m);
}

typedef struct watch {
    int calls, stop_at;
    double last;
} watch;

static void progress(void *user, double share)
{
    watch *w = user;
    assert_true(share >= w->last && share <= 1 + 1e-9);
    w->last = share;
}

static bool stop(void *user)
{
    watch *w = user;
    return ++w->calls == w->stop_at;
}

static void test_stop_and_progress(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_LLAMA);
    const weir_model_info *i = weir_model_info_of(m);
    const weir_neurons_table t = {"blocks.0.mlp.hook_post", "post", 0, i->F, i->F, NULL};
    watch w = {0};
    weir_neurons *s = search_of(&t, 1);
    weir_neurons_weights_options o = five();
    o.progress = progress;
    o.stop = stop;
    o.user = &w;
    find(s, m, &o);
    assert_true(w.calls >= 3 && fabs(w.last - 1) < 1e-9);
    const weir_weights *before = s->weights;
    w = (watch){.stop_at = 2};
    weir_err err = {0};
    assert_int_equal(weir_neurons_weights(s, m, &o, &err), WEIR_STOP);
    assert_int_equal(w.calls, 2);
    assert_ptr_equal(s->weights, before); /* what was there stays */
    weir_neurons_free(s);
    weir_model_free(m);
}

/* --- agreement: a search whose places are followed by known tokens */

static void test_agreement(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GPT2);
    const weir_model_info *i = weir_model_info_of(m);
    const int64_t unit[] = {5};
    const weir_neurons_table t = {"blocks.0.mlp.hook_post", "post", 0, i->F, 1, unit};
    weir_neurons *s = search_of(&t, 1);
    int64_t agree, places, n;
    assert_false(weir_neurons_agreement(s, 0, 0, &agree, &places));
    weir_neurons_weights_options o = five();
    find(s, m, &o);
    const int32_t best = weir_neurons_weight_tokens(s, 0, 0, WEIR_SIDE_OUT, true, &n)[0].id, not_it = !best;
    /* Fires at 0 (followed by best), 2 (by another), 4 (by best), and at the end (by nothing). */
    const int32_t id[] = {9, best, 9, not_it, 8, best, 7};
    const int64_t doc[7] = {0}, pos[] = {0, 1, 2, 3, 4, 5, 6};
    const float x[] = {9, 0, 8, 0, 7, 0, 6};
    const weir_neurons_rows_of rows = {.n = 7, .id = id, .doc = doc, .pos = pos, .ctx_pos = pos};
    const weir_neurons_values v = {.x = x, .stride = 1};
    kit_ok(weir_neurons_rows(s, &rows, false, &err), &err);
    kit_ok(weir_neurons_add(s, 0, &v, &err), &err);
    kit_ok(weir_neurons_finish(s, &err), &err);
    assert_true(weir_neurons_agreement(s, 0, 0, &agree, &places));
    assert_int_equal(places, 3);
    assert_int_equal(agree, 2);
    weir_neurons_free(s);
    weir_model_free(m);
}

/* --- the gate: act(hook_pre) * hook_pre_linear is hook_post */

static const float *heard(const kit_tap *tap, const char *hook, int64_t *n)
{
    for (int64_t i = 0; i < tap->n; i++)
        if (!strcmp(tap->point[i].name, hook)) {
            *n = tap->floats[i];
            return tap->copy[i];
        }
    fail_msg("%s was not heard", hook);
    return NULL;
}

static void check_gate(const char *model)
{
    weir_err err = {0};
    weir_model *m = kit_open(model);
    weir_run *r = kit_run(m, 12, 1, NULL, 2);
    kit_tap tap;
    kit_tap_init(&tap, m);
    kit_attach(r, &tap);
    int32_t *ids = kit_ids(m, 12, 3);
    kit_forward(r, ids, 12, 0, 0);
    int64_t n;
    const float *pre = heard(&tap, "blocks.1.mlp.hook_pre", &n), *up = heard(&tap, "blocks.1.mlp.hook_pre_linear", &n);
    const float *post = heard(&tap, "blocks.1.mlp.hook_post", &n);
    float *act = malloc((size_t)n * sizeof *act);
    assert_non_null(act);
    memcpy(act, pre, (size_t)n * sizeof *act);
    kit_ok(weir_gate_act(m, "ref", act, n, act, &err), &err); /* in place */
    for (int64_t i = 0; i < n; i++)
        act[i] *= up[i];
    kit_same(act, post, n, "act(gate) * up");
    assert_true(kit_differs(pre, post, n) >= 0);
    assert_int_equal(weir_gate_act(m, "sse9", pre, n, act, &err), WEIR_E_ARG);
    free(act);
    free(ids);
    weir_run_free(r);
    kit_tap_free(&tap);
    weir_model_free(m);
}

static void test_gate(void **state)
{
    (void)state;
    check_gate(KIT_LLAMA);
    check_gate(KIT_GEMMA);
    weir_err err = {0};
    weir_model *m = kit_open(KIT_NEOX);
    float x = 1;
    assert_int_equal(weir_gate_act(m, NULL, &x, 1, &x, &err), WEIR_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "no gate"));
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oracle_can_fail),
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_gemma2),
        cmocka_unit_test(test_neox),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_small_vocabulary),
        cmocka_unit_test(test_stop_and_progress),
        cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
