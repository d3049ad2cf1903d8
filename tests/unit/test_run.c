/* The forward pass: identities to the bit, hooks that do not disturb, where it stops, what writes do, and its errors.
 */
#include <math.h>

#include "../../lib/model/spec.h"
#include "run_kit.h"

enum { ROWS = 19 };

static void test_comparison_can_fail(void **state)
{
    float a[2] = {0.0f, 1.0f}, b[2] = {-0.0f, 1.0f};
    (void)state;
    assert_int_equal(kit_differs(a, a, 2), -1);
    assert_int_equal(kit_differs(a, b, 2), 0);
}

/* --- identities */

/* resid_pre + attn_out = resid_mid, + mlp_out = resid_post; parallel: resid_pre + (attn_out + mlp_out) = resid_post. */
static void block_adds_up(const kit_tap *t, const weir_model *m, int64_t l, int64_t rows)
{
    const weir_model_info *i = weir_model_info_of(m);
    int64_t n = rows * i->C;
    const float *pre = kit_heard_at(t, m, l, "hook_resid_pre"), *attn = kit_heard_at(t, m, l, "hook_attn_out");
    const float *mlp = kit_heard_at(t, m, l, "hook_mlp_out"), *post = kit_heard_at(t, m, l, "hook_resid_post");
    if (i->parallel) {
        float *both = malloc((size_t)n * sizeof *both);
        for (int64_t k = 0; k < n; k++)
            both[k] = attn[k] + mlp[k];
        kit_sum(pre, both, post, n, "pre + (attn_out + mlp_out)");
        free(both);
    } else {
        const float *mid = kit_heard_at(t, m, l, "hook_resid_mid");
        kit_sum(pre, attn, mid, n, "pre + attn_out");
        kit_sum(mid, mlp, post, n, "mid + mlp_out");
    }
    const float *next = l + 1 < i->L ? kit_heard_at(t, m, l + 1, "hook_resid_pre") : NULL;
    if (next)
        kit_same(post, next, n, "resid_post and the next resid_pre");
}

static void identities_of(const char *path)
{
    weir_model *m = kit_open(path);
    weir_run *r = kit_run(m, ROWS, 0, NULL, 2);
    int32_t *ids = kit_ids(m, ROWS, 7);
    int64_t n = ROWS * weir_model_info_of(m)->C;
    kit_tap t;
    kit_tap_init(&t, m);
    kit_attach(r, &t);
    kit_forward(r, ids, ROWS, -1, 0);
    assert_int_equal(t.calls, t.n); /* every point of the list fired, once */
    for (int64_t l = 0; l < weir_model_info_of(m)->L; l++)
        block_adds_up(&t, m, l, ROWS);
    const float *embed = kit_heard(&t, m, "hook_embed"), *first = kit_heard(&t, m, "blocks.0.hook_resid_pre");
    if (weir_model_point(m, "hook_pos_embed"))
        kit_sum(embed, kit_heard(&t, m, "hook_pos_embed"), first, n, "embed + pos_embed");
    else
        kit_same(embed, first, n, "embed and resid_pre");
    kit_same(kit_heard(&t, m, "ln_final.hook_out"), kit_heard(&t, m, "unembed.hook_in"), n,
             "ln_final.hook_out and unembed.hook_in");
    kit_tap_free(&t);
    free(ids);
    weir_run_free(r);
    weir_model_free(m);
}

static void test_identities(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++)
        identities_of(kit_models[k]);
    identities_of(NULL);
}

/* The points fire in the order of the model's list. */
static void test_order(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        weir_model *m = kit_open(kit_models[k]);
        weir_run *r = kit_run(m, 4, 0, NULL, 1);
        int32_t *ids = kit_ids(m, 3, 1);
        kit_tap t;
        kit_tap_init(&t, m);
        kit_attach(r, &t);
        kit_forward(r, ids, 3, -1, 0);
        for (int64_t i = 0; i < t.n; i++)
            assert_int_equal(t.order[i], 'A' + t.point[i].site);
        kit_tap_free(&t);
        free(ids);
        weir_run_free(r);
        weir_model_free(m);
    }
}

/* --- hooks do not disturb */

/* Logits of one sequence; tap may be NULL. */
static float *logits_of(const weir_model *m, const int32_t *ids, int64_t n, kit_tap *tap)
{
    weir_err err = {0};
    weir_run *r = kit_run(m, n, 0, NULL, 1);
    float *out = malloc((size_t)(n * weir_model_info_of(m)->V) * sizeof *out);
    assert_non_null(out);
    if (tap)
        kit_attach(r, tap);
    kit_forward(r, ids, n, -1, WEIR_FINAL);
    kit_ok(weir_run_logits(r, 0, n, out, &err), &err);
    weir_run_free(r);
    return out;
}

/* Writes back what another tap heard at the same point. */
static void put_back(kit_tap *t, const weir_value *v)
{
    memcpy(v->data, t->from->copy[v->point - t->point], (size_t)(v->rows->n * v->width) * sizeof(float));
}

static void undisturbed(const char *path)
{
    weir_model *m = kit_open(path);
    int32_t *ids = kit_ids(m, ROWS, 3);
    int64_t n = ROWS * weir_model_info_of(m)->V;
    kit_tap reads, writes;
    kit_tap_init(&reads, m);
    kit_tap_init(&writes, m);
    float *silent = logits_of(m, ids, ROWS, NULL);
    float *heard = logits_of(m, ids, ROWS, &reads);
    kit_same(silent, heard, n, "logits with every point heard");
    writes.write = true;
    writes.edit = put_back;
    writes.from = &reads;
    float *patched = logits_of(m, ids, ROWS, &writes);
    kit_same(silent, patched, n, "logits of a run patched with its own values");
    for (int64_t i = 0; i < reads.n; i++)
        kit_same(reads.copy[i], writes.copy[i], reads.floats[i], reads.point[i].name);
    const char *last = weir_model_point(m, "hook_logits") ? "hook_logits" : "unembed.hook_out";
    kit_same(silent, kit_heard(&reads, m, last), n, "logits asked for and logits heard");
    free(silent);
    free(heard);
    free(patched);
    free(ids);
    kit_tap_free(&reads);
    kit_tap_free(&writes);
    weir_model_free(m);
}

static void test_hooks_do_not_disturb(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++)
        undisturbed(kit_models[k]);
    undisturbed(NULL);
}

/* Each point heard alone gives the same values as all together: whatever is fused or staged. */
static void test_each_point_alone(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        weir_model *m = kit_open(kit_models[k]);
        int32_t *ids = kit_ids(m, ROWS, 5);
        kit_tap all;
        kit_tap_init(&all, m);
        free(logits_of(m, ids, ROWS, &all));
        for (int64_t i = 0; i < all.n; i++) {
            weir_err err = {0};
            weir_selector *s;
            kit_tap one;
            kit_tap_init(&one, m);
            kit_ok(weir_selector_parse(&s, m, all.point[i].name, &err), &err);
            one.only = s;
            weir_run *r = kit_run(m, ROWS, 0, NULL, 1);
            kit_attach(r, &one);
            kit_forward(r, ids, ROWS, -1, 0);
            assert_int_equal(one.calls, 1);
            kit_same(all.copy[i], one.copy[i], all.floats[i], all.point[i].name);
            weir_run_free(r);
            weir_selector_free(s);
            kit_tap_free(&one);
        }
        kit_tap_free(&all);
        free(ids);
        weir_model_free(m);
    }
}

/* --- the lens of the last layer, and a neuron's column */

static void test_lens_of_last_layer_is_logits(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        weir_err err = {0};
        weir_model *m = kit_open(kit_models[k]);
        const weir_spec *s = weir_model_spec(m);
        int32_t *ids = kit_ids(m, ROWS, 11);
        kit_tap t;
        kit_tap_init(&t, m);
        float *logits = logits_of(m, ids, ROWS, &t);
        const weir_kern *kern;
        weir_normw w;
        weir_head head;
        kit_ok(weir_kern_pick(&kern, "ref", &err), &err);
        kit_ok(weir_model_final(m, &w, &err), &err);
        kit_ok(weir_model_head(m, 0, INT64_MAX, &head, &err), &err);
        float *h = malloc((size_t)(ROWS * s->C) * sizeof *h), *lens = malloc((size_t)(ROWS * s->V) * sizeof *lens);
        void *scratch = aligned_alloc(64, (weir_gemm_scratch(ROWS, s->C, 1) + 63) / 64 * 64);
        weir_norm norm = {.rms = s->rms,
                          .eps = s->eps,
                          .offset = s->norm_offset,
                          .w = w.w,
                          .b = w.b,
                          .rows = ROWS,
                          .c = s->C,
                          .out = h};
        norm.x = kit_heard_at(&t, m, s->L - 1, "hook_resid_post");
        weir_norm_run(kern, 1, &norm);
        weir_gemm g = {.m = ROWS, .x = h, .ldx = s->C, .kn = s->C, .n_out = 1, .scratch = scratch};
        g.out[0] = (weir_gemm_out){.w = head.w, .y = lens, .ldy = s->V};
        weir_gemm_run(kern, 1, &g);
        if (s->logit_softcap != 0)
            weir_op_softcap(kern, 1, lens, s->logit_softcap, ROWS * s->V);
        kit_same(lens, logits, ROWS * s->V, "lens of the last layer");
        free(h);
        free(lens);
        free(scratch);
        free(logits);
        free(ids);
        kit_tap_free(&t);
        weir_model_free(m);
    }
}

static const weir_tensor *tensor_named(const weir_model *m, const char *end)
{
    for (int64_t i = 0; i < weir_model_n_tensors(m); i++) {
        const weir_tensor *t = weir_model_tensor(m, i);
        size_t n = strlen(t->name), e = strlen(end);
        if (n >= e && strcmp(t->name + n - e, end) == 0)
            return t;
    }
    fail_msg("no tensor %s", end);
    return NULL;
}

/* Ablating a neuron is zeroing its column of the down projection. */
static void test_ablated_neuron_is_zero_column(void **state)
{
    enum { NEURON = 5 };
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GPT2);
    const weir_spec *s = weir_model_spec(m);
    int32_t *ids = kit_ids(m, ROWS, 13);
    kit_tap whole, cut;
    const weir_kern *kern;
    const weir_layer *w;
    (void)state;
    kit_tap_init(&whole, m);
    kit_tap_init(&cut, m);
    free(logits_of(m, ids, ROWS, &whole));
    weir_run *r = kit_run(m, ROWS, 0, NULL, 1);
    kit_ok(weir_run_hook(r, weir_hook_class_find("ablate"), "L1N5", &err), &err);
    kit_attach(r, &cut);
    kit_forward(r, ids, ROWS, -1, 0);
    const weir_tensor *stored = tensor_named(m, "h.1.mlp.c_proj.weight"); /* [F][C], F32 */
    assert_int_equal(stored->dtype, WEIR_F32);
    float *copy = malloc(stored->bytes);
    memcpy(copy, stored->data, stored->bytes);
    memset(copy + NEURON * s->C, 0, (size_t)s->C * sizeof *copy);
    weir_tensor zeroed = *stored;
    zeroed.data = copy;
    weir_wview view = {.t = &zeroed, .n = s->C, .k = s->F, .k_major = true, .stride = s->C};
    weir_panels *panels;
    kit_ok(weir_panels_new(&panels, &view, 1, &err), &err);
    kit_ok(weir_kern_pick(&kern, NULL, &err), &err);
    kit_ok(weir_model_layer(m, 1, INT64_MAX, &w, &err), &err);
    float *y = malloc((size_t)(ROWS * s->C) * sizeof *y);
    void *scratch = aligned_alloc(64, (weir_gemm_scratch(ROWS, s->F, 1) + 63) / 64 * 64);
    weir_gemm g = {.m = ROWS,
                   .x = kit_heard(&whole, m, "blocks.1.mlp.hook_post"),
                   .ldx = s->F,
                   .kn = s->F,
                   .n_out = 1,
                   .scratch = scratch};
    g.out[0] = (weir_gemm_out){.w = panels, .bias = w->down.bias, .y = y, .ldy = s->C};
    weir_gemm_run(kern, 1, &g);
    kit_same(y, kit_heard(&cut, m, "blocks.1.hook_mlp_out"), ROWS * s->C, "mlp_out without a neuron");
    assert_true(kit_differs(y, kit_heard(&whole, m, "blocks.1.hook_mlp_out"), ROWS * s->C) >= 0);
    weir_panels_free(panels);
    free(copy);
    free(y);
    free(scratch);
    free(ids);
    weir_run_free(r);
    kit_tap_free(&whole);
    kit_tap_free(&cut);
    weir_model_free(m);
}

/* --- where a pass stops */

static void test_stops_behind_the_last_point(void **state)
{
    static const char *const texts[] = {"hook_embed", "blocks.0.hook_resid_pre"};
    weir_err err = {0};
    (void)state;
    for (size_t k = 0; k < 2; k++) { /* no layer is packed for these */
        weir_model *m = kit_open(KIT_LLAMA);
        weir_run *r = kit_run(m, 4, 0, NULL, 1);
        int32_t ids[] = {1, 2, 3};
        kit_ok(weir_run_hook(r, weir_hook_class_find("template"), texts[k], &err), &err);
        kit_forward(r, ids, 3, -1, 0);
        assert_int_equal(weir_run_hook_fired(r, 0), 1);
        assert_int_equal(weir_model_memory_of(m).panels, 0);
        weir_run_free(r);
        weir_model_free(m);
    }
    int64_t panels[3] = {0};
    static const char *const layers[] = {"blocks.0.hook_resid_post", "blocks.1.attn.hook_q", "unembed.hook_out"};
    for (size_t k = 0; k < 3; k++) { /* each needs more than the one before */
        weir_model *m = kit_open(KIT_LLAMA);
        weir_run *r = kit_run(m, 4, 0, NULL, 1);
        int32_t ids[] = {1, 2, 3};
        kit_ok(weir_run_hook(r, weir_hook_class_find("template"), layers[k], &err), &err);
        kit_forward(r, ids, 3, -1, 0);
        panels[k] = weir_model_memory_of(m).panels;
        weir_run_free(r);
        weir_model_free(m);
    }
    assert_true(panels[0] > 0 && panels[0] < panels[1] && panels[1] < panels[2]);
}

/* --- log-probabilities */
static void test_logprobs(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        weir_err err = {0};
        weir_model *m = kit_open(kit_models[k]);
        int64_t v = weir_model_info_of(m)->V;
        int32_t *ids = kit_ids(m, ROWS, 23), target[ROWS];
        float *logits = logits_of(m, ids, ROWS, NULL), out[ROWS], again[ROWS];
        kit_tap t;
        kit_tap_init(&t, m);
        for (int i = 0; i < ROWS; i++)
            target[i] = i + 1 < ROWS ? ids[i + 1] : -1;
        for (int heard = 0; heard < 2; heard++) {
            weir_run *r = kit_run(m, ROWS, 0, NULL, 2);
            if (heard)
                kit_attach(r, &t);
            kit_forward(r, ids, ROWS, -1, WEIR_FINAL);
            kit_ok(weir_run_logprobs(r, target, heard ? again : out, &err), &err);
            weir_run_free(r);
        }
        kit_same(out, again, ROWS, "log-probabilities with and without hooks");
        assert_true(isnan(out[ROWS - 1]));
        for (int i = 0; i + 1 < ROWS; i++) {
            double sum = 0;
            for (int64_t c = 0; c < v; c++)
                sum += exp((double)logits[i * v + c]);
            assert_true(fabs((double)logits[i * v + target[i]] - log(sum) - (double)out[i]) <
                        2e-6 * (1 + fabs((double)out[i])));
        }
        kit_tap_free(&t);
        free(logits);
        free(ids);
        weir_model_free(m);
    }
}

/* --- errors */

static void expect(weir_run *r, const weir_seq *seqs, int64_t n, int flags, const char *says)
{
    weir_err err = {0};
    assert_int_equal(weir_run_forward(r, seqs, n, flags, &err), WEIR_E_ARG);
    if (!strstr(err.msg, says))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
}

static void test_errors(void **state)
{
    weir_model *m = kit_open(KIT_GPT2); /* V 67, context 24 */
    weir_run *r = kit_run(m, 20, 2, NULL, 1);
    int32_t ids[24] = {0}, wrong[] = {0, 1, 67, 3}, negative[] = {-1};
    (void)state;
    kit_forward(r, ids, 4, 1, WEIR_FINAL);
    expect(r, &(weir_seq){.ids = wrong, .n = 4, .slot = -1}, 1, 0,
           "token id 67 at position 2 of sequence 0 is outside the vocabulary, 0 to 66");
    expect(r, &(weir_seq){.ids = negative, .n = 1, .slot = 1}, 1, 0, "token id -1 at position 4");
    expect(r, &(weir_seq){.ids = ids, .n = 0, .slot = -1}, 1, 0, "no tokens");
    expect(r, &(weir_seq){.ids = ids, .n = 21, .slot = -1}, 1, 0, "20 rows");
    expect(r, NULL, 0, 0, "at least one sequence");
    expect(r, (weir_seq[]){{.ids = ids, .n = 11, .slot = -1}, {.ids = ids, .n = 11, .slot = -1}}, 2, 0,
           "more than the 20 rows");
    expect(r, &(weir_seq){.ids = ids, .n = 1, .slot = 2}, 1, 0, "slot 2, but the run has 2");
    expect(r, &(weir_seq){.ids = ids, .n = 1, .slot = -2}, 1, 0, "slot -2");
    expect(r, (weir_seq[]){{.ids = ids, .n = 1, .slot = 0}, {.ids = ids, .n = 1, .slot = 0}}, 2, 0, "two sequences");
    kit_forward(r, ids, 20, 1, WEIR_FINAL);
    expect(r, &(weir_seq){.ids = ids, .n = 1, .slot = 1}, 1, WEIR_FINAL, "the model's context has 24");
    assert_int_equal(weir_run_slot_len(r, 1), 24);
    weir_run_slot_reset(r, 1);
    assert_int_equal(weir_run_slot_len(r, 1), 0);
    assert_int_equal(weir_run_slot_len(r, 7), 0);
    kit_forward(r, ids, 20, 1, WEIR_FINAL); /* an error leaves the run usable */
    weir_run_free(r);
    weir_model_free(m);
}

static void test_slot_of_a_shorter_pass(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    weir_run *r = kit_run(m, 8, 1, NULL, 1);
    weir_err err = {0};
    int32_t ids[] = {1, 2, 3};
    (void)state;
    kit_ok(weir_run_hook(r, weir_hook_class_find("template"), "blocks.0.mlp.hook_post", &err), &err);
    kit_ok(weir_run_prepare(r, WEIR_FINAL, &err), &err);
    kit_forward(r, ids, 3, 0, 0); /* stores the keys of layer 0 only */
    expect(r, &(weir_seq){.ids = ids, .n = 1, .slot = 0}, 1, WEIR_FINAL, "slot 0 holds 1 of the 2 layers");
    kit_forward(r, ids, 1, 0, 0);
    assert_int_equal(weir_run_slot_len(r, 0), 4);
    weir_run_slot_reset(r, 0);
    kit_forward(r, ids, 3, 0, WEIR_FINAL);
    kit_forward(r, ids, 1, 0, WEIR_FINAL);
    weir_run_free(r);
    weir_model_free(m);
}

static void refuse(const weir_model *m, const weir_run_options *o, const char *says)
{
    weir_err err = {0};
    weir_run *r = NULL;
    weir_status st = weir_run_new(&r, m, o, &err);
    if (!st)
        st = weir_run_prepare(r, 0, &err);
    assert_true(st < 0);
    if (!strstr(err.msg, says))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
    weir_run_free(r);
}

static void test_options(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    weir_run_options o;
    (void)state;
    weir_run_options_init(&o);
    o.max_rows = 0;
    refuse(m, &o, "max_rows is 0");
    o.max_rows = 8;
    o.max_len = 25;
    refuse(m, &o, "max_len is 25, but the model's context has 24");
    o.max_len = 0;
    o.slots = -1;
    refuse(m, &o, "slots");
    o.slots = 0;
    o.threads = -1;
    refuse(m, &o, "threads");
    o.threads = 1;
    o.kernel = "mmx";
    refuse(m, &o, "mmx");
    o.kernel = NULL;
    o.memory = 1000;
    refuse(m, &o, "bound is 1000");
    o.max_rows = INT32_MAX;
    o.slots = 1000;
    refuse(m, &o, "bound is 1000");
    o.threads = INT32_MAX; /* as many as the system gives */
    refuse(m, &o, "bound is 1000");
    o.threads = 1;
    o.max_rows += 1;
    refuse(m, &o, "max_rows");
    weir_model_free(m);
}

/* The bound has to cover the arena and the largest layer, to the byte; what is packed never takes more than it leaves,
 * and the bits are those of a run without a bound. */
static void test_memory_bound(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        weir_err err = {0};
        weir_model *m = kit_open(kit_models[k]);
        weir_run *r = kit_run(m, 4, 0, NULL, 1);
        float free_logits[512], logits[512];
        kit_forward(r, (int32_t[]){1, 2, 3}, 3, -1, WEIR_FINAL);
        kit_ok(weir_run_logits(r, 2, 1, free_logits, &err), &err);
        int64_t layers = weir_model_info_of(m)->L, all = weir_model_weight_bytes(m, layers, true);
        int64_t more = weir_model_memory_of(m).panels - all; /* descriptions of the panels, row maps */
        assert_true(more >= 0 && more < 32768);
        int64_t largest = weir_model_largest_bytes(m, layers, true), need = weir_run_arena_bytes(r) + largest;
        assert_true(largest < all);
        weir_run_free(r);
        weir_model_free(m);
        m = kit_open(kit_models[k]);
        for (int short_of = 0; short_of < 2; short_of++) {
            weir_run_options o;
            weir_run_options_init(&o);
            o.max_rows = 4;
            o.threads = 1;
            o.memory = need - short_of;
            kit_ok(weir_run_new(&r, m, &o, &err), &err);
            assert_int_equal(weir_run_prepare(r, WEIR_FINAL, &err), short_of ? WEIR_E_NOMEM : WEIR_OK);
            for (int pass = 0; !short_of && pass < 2; pass++) {
                kit_forward(r, (int32_t[]){1, 2, 3}, 3, -1, WEIR_FINAL);
                kit_ok(weir_run_logits(r, 2, 1, logits, &err), &err);
                kit_same(free_logits, logits, weir_model_info_of(m)->V, "logits");
                assert_true(weir_model_memory_of(m).panels <= largest + more);
                assert_true(pass == 0 || weir_model_memory_of(m).packed_again >= layers);
            }
            weir_run_free(r);
        }
        weir_model_free(m);
    }
}

static void test_logits_need_a_final_pass(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    weir_run *r = kit_run(m, 8, 0, NULL, 1);
    weir_err err = {0};
    float out[67 * 4];
    int32_t ids[] = {1, 2, 3}, far[] = {1, 2, 67};
    (void)state;
    assert_int_equal(weir_run_logits(r, 0, 1, out, &err), WEIR_E_ARG);
    kit_forward(r, ids, 3, -1, WEIR_FINAL);
    err = (weir_err){0};
    kit_ok(weir_run_logits(r, 2, 1, out, &err), &err);
    kit_ok(weir_run_logits(r, 3, 0, out, &err), &err);
    assert_int_equal(weir_run_logits(r, 2, 2, out, &err), WEIR_E_ARG);
    assert_int_equal(weir_run_logprobs(r, far, out, NULL), WEIR_E_ARG);
    kit_forward(r, ids, 3, -1, 0); /* nothing listens: nothing is made */
    assert_int_equal(weir_run_logits(r, 0, 1, out, NULL), WEIR_E_ARG);
    weir_run_free(r);
    r = kit_run(m, 8, 0, NULL, 1);
    kit_forward(r, ids, 3, -1, 0);
    err = (weir_err){0};
    assert_int_equal(weir_run_forward(r, &(weir_seq){.ids = ids, .n = 3, .slot = -1}, 1, WEIR_FINAL, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "prepared without WEIR_FINAL"));
    weir_run_free(r);
    weir_model_free(m);
}

/* What nobody wants takes no memory. */
static void test_plan(void **state)
{
    weir_model *m = kit_open(NULL);
    weir_err err = {0};
    int64_t bytes[4];
    static const char *const listen[] = {"resid_post", "pattern", "blocks.0.attn.hook_result", "unembed.hook_out"};
    (void)state;
    for (int k = 0; k < 4; k++) {
        weir_run *r = kit_run(m, 128, 0, NULL, 1);
        kit_ok(weir_run_hook(r, weir_hook_class_find("template"), listen[k], &err), &err);
        kit_ok(weir_run_prepare(r, 0, &err), &err);
        bytes[k] = weir_run_arena_bytes(r);
        weir_run_free(r);
    }
    for (int k = 1; k < 4; k++)
        assert_true(bytes[k] > bytes[0]);
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comparison_can_fail),
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_hooks_do_not_disturb),
        cmocka_unit_test(test_each_point_alone),
        cmocka_unit_test(test_lens_of_last_layer_is_logits),
        cmocka_unit_test(test_ablated_neuron_is_zero_column),
        cmocka_unit_test(test_stops_behind_the_last_point),
        cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_slot_of_a_shorter_pass),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_memory_bound),
        cmocka_unit_test(test_logits_need_a_final_pass),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
