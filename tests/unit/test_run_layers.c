/* Layer by layer: every hook point of every family has the bits of the ordinary pass, whatever the batches; and weights
 * that are released and packed again, also by several runs at once, are the same weights. */
#include <pthread.h>

#include "../../lib/model/spec.h"
#include "run_kit.h"

enum { MAX_ROWS = 13 };

/* The tap of run_kit.h, as a hook that does not mind the order. */
static weir_hook_class any_order(void)
{
    weir_hook_class c = kit_tap_class;
    c.flags = WEIR_HOOK_ANY_ORDER;
    return c;
}

static weir_run *new_run(const weir_model *m, bool by_layer, int64_t memory, int slots)
{
    weir_err err = {0};
    weir_run_options o;
    weir_run *r = NULL;
    weir_run_options_init(&o);
    o.max_rows = MAX_ROWS;
    o.slots = slots;
    o.threads = 2;
    o.by_layer = by_layer;
    o.memory = memory;
    kit_ok(weir_run_new(&r, m, &o, &err), &err);
    return r;
}

/* --- the batches of a small corpus: many sequences, one token, and a window in slot 0 that takes three batches */
typedef struct batch {
    weir_seq seq[4];
    int64_t n, rows;
    bool restart; /* slot 0 begins a window */
} batch;

enum { BATCHES = 6 };

static void make_batches(batch *b, const int32_t *ids)
{
    b[0] = (batch){.seq = {{.ids = ids, .n = 5, .slot = -1},
                           {.ids = ids + 3, .n = 1, .slot = -1},
                           {.ids = ids + 1, .n = 7, .slot = -1}},
                   .n = 3};
    b[1] = (batch){.seq = {{.ids = ids + 2, .n = 1, .slot = -1}}, .n = 1};
    b[2] = (batch){.seq = {{.ids = ids, .n = 9, .slot = 0}}, .n = 1, .restart = true};
    b[3] = (batch){.seq = {{.ids = ids + 9, .n = 1, .slot = 0}, {.ids = ids, .n = 3, .slot = -1}}, .n = 2};
    b[4] = (batch){.seq = {{.ids = ids + 10, .n = 6, .slot = 0}}, .n = 1};
    b[5] = (batch){.seq = {{.ids = ids + 4, .n = MAX_ROWS, .slot = 0}}, .n = 1, .restart = true};
    for (int i = 0; i < BATCHES; i++)
        for (int64_t k = 0; k < b[i].n; k++)
            b[i].rows += b[i].seq[k].n;
}

static void begin(weir_run *r, const batch *b)
{
    if (b->restart)
        weir_run_slot_reset(r, 0);
}

/* What a hook does that writes: a different change at each point, so that an order of changes can be told. */
static void change(kit_tap *t, const weir_value *v)
{
    (void)t;
    for (int64_t i = 0; i < v->rows->n * v->width; i += 3)
        v->data[i] = v->data[i] * 1.25f + (float)v->point->site * 0.001f;
}

typedef struct corpus {
    weir_model *m;
    const weir_model_info *info;
    int32_t *ids;
    batch batch[BATCHES];
    kit_tap heard[BATCHES]; /* by the ordinary run */
    float *logits[BATCHES], *stream[BATCHES];
} corpus;

static void corpus_open(corpus *c, const char *path, bool write)
{
    weir_err err = {0};
    *c = (corpus){.m = kit_open(path)};
    c->info = weir_model_info_of(c->m);
    c->ids = kit_ids(c->m, 32, 5);
    make_batches(c->batch, c->ids);
    weir_run *r = new_run(c->m, false, 0, 1);
    kit_tap t;
    kit_tap_init(&t, c->m);
    t.write = write;
    t.edit = change;
    kit_attach(r, &t);
    for (int i = 0; i < BATCHES; i++) {
        batch *b = &c->batch[i];
        kit_tap_init(&c->heard[i], c->m);
        c->logits[i] = malloc((size_t)(b->rows * c->info->V) * sizeof(float));
        c->stream[i] = malloc((size_t)(b->rows * c->info->C) * sizeof(float));
        begin(r, b);
        kit_ok(weir_run_forward(r, b->seq, b->n, WEIR_FINAL, &err), &err);
        kit_ok(weir_run_logits(r, 0, b->rows, c->logits[i], &err), &err);
        for (int64_t p = 0; p < t.n; p++) {
            c->heard[i].floats[p] = t.floats[p];
            c->heard[i].copy[p] = t.copy[p];
            t.copy[p] = NULL;
        }
    }
    kit_tap_free(&t);
    weir_run_free(r);
}

static void corpus_close(corpus *c)
{
    for (int i = 0; i < BATCHES; i++) {
        kit_tap_free(&c->heard[i]);
        free(c->logits[i]);
        free(c->stream[i]);
    }
    free(c->ids);
    weir_model_free(c->m);
}

/* Points that `t` heard in one call, compared with the ordinary run's; returns how many. */
static int64_t compare_heard(const kit_tap *t, const kit_tap *want)
{
    int64_t n = 0;
    for (int64_t p = 0; p < t->n; p++) {
        if (!t->floats[p])
            continue;
        assert_int_equal(t->floats[p], want->floats[p]);
        kit_same(want->copy[p], t->copy[p], t->floats[p], t->point[p].name);
        t->floats[p] = 0;
        n++;
    }
    return n;
}

static void one_part(corpus *c, weir_run *r, int64_t part, kit_tap *t, int64_t *points)
{
    weir_err err = {0};
    const size_t row = (size_t)c->info->C * sizeof(float);
    for (int i = 0; i < BATCHES; i++) {
        batch *b = &c->batch[i];
        begin(r, b);
        memcpy(weir_run_stream(r), c->stream[i], (size_t)b->rows * row);
        kit_ok(weir_run_part(r, part, b->seq, b->n, &err), &err);
        memcpy(c->stream[i], weir_run_stream(r), (size_t)b->rows * row);
        *points += compare_heard(t, &c->heard[i]);
        if (part != c->info->L + 1)
            continue;
        float *logits = malloc((size_t)(b->rows * c->info->V) * sizeof *logits);
        kit_ok(weir_run_logits(r, 0, b->rows, logits, &err), &err);
        kit_same(c->logits[i], logits, b->rows * c->info->V, "logits");
        free(logits);
    }
}

static void layer_by_layer(corpus *c, bool write)
{
    weir_err err = {0};
    const weir_hook_class class = any_order();
    weir_run *r = new_run(c->m, true, 0, 1);
    kit_tap t;
    kit_tap_init(&t, c->m);
    t.write = write;
    t.edit = change;
    kit_ok(weir_run_hook_object(r, &class, &t, &err), &err);
    assert_int_equal(weir_run_parts(r), 0);
    kit_ok(weir_run_prepare(r, WEIR_FINAL, &err), &err);
    assert_int_equal(weir_run_parts(r), c->info->L + 2);
    int64_t points = 0;
    for (int64_t part = 0; part < weir_run_parts(r); part++)
        one_part(c, r, part, &t, &points);
    assert_int_equal(points, BATCHES * t.n);
    assert_int_equal(t.begins, BATCHES * (c->info->L + 2));
    assert_int_equal(t.ends, t.begins);
    kit_tap_free(&t);
    weir_run_free(r);
}

static void test_same_bits(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++)
        for (int write = 0; write < 2; write++) {
            corpus c;
            corpus_open(&c, kit_models[k], write);
            layer_by_layer(&c, write);
            corpus_close(&c);
        }
}

/* The comparison sees one bit. */
static void test_comparison_can_fail(void **state)
{
    (void)state;
    corpus c;
    corpus_open(&c, KIT_GPT2, false);
    kit_tap t;
    kit_tap_init(&t, c.m);
    t.copy[3] = malloc(sizeof(float));
    t.floats[3] = c.heard[1].floats[3] = 1;
    *t.copy[3] = *c.heard[1].copy[3];
    assert_int_equal(compare_heard(&t, &c.heard[1]), 1);
    ((uint32_t *)(void *)t.copy[3])[0] ^= 1;
    assert_int_not_equal(kit_differs(t.copy[3], c.heard[1].copy[3], 1), -1);
    kit_tap_free(&t);
    corpus_close(&c);
}

/* --- how far a run goes */
static void check_parts(const weir_model *m, const char *hooks, int flags, int64_t want)
{
    weir_err err = {0};
    const weir_hook_class class = any_order();
    weir_selector *sel = NULL;
    weir_run *r = new_run(m, true, 0, 0);
    kit_tap t;
    kit_tap_init(&t, m);
    if (hooks) {
        kit_ok(weir_selector_build(&sel, m, hooks, NULL, NULL, &err), &err);
        t.only = sel;
        kit_ok(weir_run_hook_object(r, &class, &t, &err), &err);
    }
    kit_ok(weir_run_prepare(r, flags, &err), &err);
    assert_int_equal(weir_run_parts(r), want);
    int32_t ids[] = {1, 2, 3};
    weir_seq s = {.ids = ids, .n = 3, .slot = -1};
    for (int64_t part = 0; part < want; part++)
        kit_ok(weir_run_part(r, part, &s, 1, &err), &err);
    assert_int_equal(t.calls, hooks ? weir_selector_count(sel) : 0);
    assert_int_equal(weir_run_part(r, want, &s, 1, &err), WEIR_E_ARG);
    assert_int_equal(weir_run_part(r, -1, &s, 1, NULL), WEIR_E_ARG);
    weir_run_free(r);
    weir_selector_free(sel);
    kit_tap_free(&t);
}

static void test_parts(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_GPT2);
    int64_t layers = weir_model_info_of(m)->L;
    check_parts(m, NULL, 0, 0);
    check_parts(m, NULL, WEIR_FINAL, layers + 2);
    check_parts(m, "hook_embed", 0, 1);
    check_parts(m, "blocks.0.hook_resid_pre", 0, 2);
    check_parts(m, "blocks.1.attn.hook_z", 0, 3);
    check_parts(m, "blocks.*.hook_resid_post", 0, layers + 1);
    check_parts(m, "ln_final.hook_scale", 0, layers + 2);
    check_parts(m, "hook_embed,unembed.hook_out", 0, layers + 2);
    weir_model_free(m);
}

static void test_refusals(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_LLAMA);
    int32_t ids[] = {1, 2, 3};
    weir_seq s = {.ids = ids, .n = 3, .slot = 0};
    kit_tap t;
    kit_tap_init(&t, m);
    weir_run *r = new_run(m, true, 0, 1);
    assert_int_equal(weir_run_hook_object(r, &kit_tap_class, &t, &err), WEIR_E_HOOK);
    assert_non_null(strstr(err.msg, "hook tap has to see whole passes"));
    assert_int_equal(weir_run_part(r, 0, &s, 1, &err), WEIR_E_ARG);
    assert_null(weir_run_stream(r));
    kit_ok(weir_run_prepare(r, WEIR_FINAL, &err), &err);
    assert_int_equal(weir_run_forward(r, &s, 1, 0, &err), WEIR_E_ARG);
    kit_ok(weir_run_part(r, 0, &s, 1, &err), &err);
    assert_int_equal(weir_run_part(r, 1, &s, 1, &err), WEIR_E_ARG); /* the slot was not reset */
    weir_run_slot_reset(r, 0);
    kit_ok(weir_run_part(r, 1, &s, 1, &err), &err);
    float logits[512];
    assert_int_equal(weir_run_logits(r, 0, 1, logits, &err), WEIR_E_ARG);
    weir_run_free(r);
    r = new_run(m, false, 0, 1);
    kit_ok(weir_run_prepare(r, WEIR_FINAL, &err), &err);
    assert_int_equal(weir_run_part(r, 0, &s, 1, &err), WEIR_E_ARG);
    weir_run_free(r);
    kit_tap_free(&t);
    weir_model_free(m);
}

/* --- memory */

/* One layer is packed at a time, and slots have room for one. */
static void test_one_layer_at_a_time(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_model *m = kit_open(KIT_LLAMA);
    int64_t layers = weir_model_info_of(m)->L;
    int32_t ids[] = {1, 2, 3};
    weir_seq s = {.ids = ids, .n = 3, .slot = -1};
    weir_run *r = new_run(m, true, 0, 2), *whole = new_run(m, false, 0, 2);
    kit_ok(weir_run_prepare(r, WEIR_FINAL, &err), &err);
    kit_ok(weir_run_prepare(whole, WEIR_FINAL, &err), &err);
    assert_true(weir_run_arena_bytes(r) < weir_run_arena_bytes(whole));
    weir_run_free(whole);
    for (int64_t part = 0; part < weir_run_parts(r); part++)
        for (int again = 0; again < 2; again++) {
            kit_ok(weir_run_part(r, part, &s, 1, &err), &err);
            int64_t panels = weir_model_memory_of(m).panels, layer = weir_model_largest_bytes(m, layers, false);
            assert_true(part == 0 || part > layers ? panels == 0 : panels >= layer && panels < layer + 4096);
        }
    assert_int_equal(weir_model_memory_of(m).packed_again, 0);
    weir_run_free(r);
    weir_model_free(m);
}

/* Of what fits all but one, a pass packs two again, not all. */
static void test_last_used_goes_first(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_GEMMA);
    weir_err err = {0};
    int64_t layers = weir_model_info_of(m)->L, room = weir_model_weight_bytes(m, layers, false) - 1;
    assert_true(layers > 2);
    for (int pass = 0; pass < 10; pass++)
        for (int64_t l = 0; l < layers; l++) {
            const weir_layer *w;
            kit_ok(weir_model_layer(m, l, room, &w, &err), &err);
            assert_non_null(w->q.w);
            weir_model_layer_done(m, l, false);
        }
    int64_t again = weir_model_memory_of(m).packed_again;
    if (again < 9 || again > 20)
        fail_msg("%lld packed again", (long long)again);
    weir_model_free(m);
}

/* What is leased is not released, whatever the bound; what is dropped is, but not under another's lease. */
static void test_leases_hold(void **state)
{
    (void)state;
    weir_model *m = kit_open(KIT_GEMMA);
    weir_err err = {0};
    const weir_layer *a, *b;
    kit_ok(weir_model_layer(m, 0, INT64_MAX, &a, &err), &err);
    kit_ok(weir_model_layer(m, 0, INT64_MAX, &a, &err), &err);
    const weir_panels *held = a->q.w;
    kit_ok(weir_model_layer(m, 1, 0, &b, &err), &err);
    assert_ptr_equal(a->q.w, held);
    weir_model_layer_done(m, 0, true);
    assert_ptr_equal(a->q.w, held);
    weir_model_layer_done(m, 0, true);
    assert_null(a->q.w);
    assert_non_null(b->q.w);
    weir_model_layer_done(m, 1, false);
    kit_ok(weir_model_layer(m, 2, 0, &a, &err), &err);
    assert_null(b->q.w);
    weir_model_layer_done(m, 2, false);
    weir_model_free(m);
}

typedef struct racer {
    const weir_model *m;
    const float *want;
    int64_t memory;
    bool by_layer, ok;
} racer;

static weir_status race_once(weir_run *r, const racer *c, float *logits, weir_err *err)
{
    int32_t ids[] = {1, 2, 3, 4};
    weir_seq s = {.ids = ids, .n = 4, .slot = -1};
    if (!c->by_layer)
        WEIR_TRY(weir_run_forward(r, &s, 1, WEIR_FINAL, err));
    for (int64_t part = 0; c->by_layer && part < weir_run_parts(r); part++)
        WEIR_TRY(weir_run_part(r, part, &s, 1, err));
    return weir_run_logits(r, 0, 4, logits, err);
}

static void *race(void *arg)
{
    racer *c = arg;
    weir_err err = {0};
    const int64_t n = 4 * weir_model_info_of(c->m)->V;
    float *logits = malloc((size_t)n * sizeof *logits);
    weir_run_options o;
    weir_run *r;
    weir_run_options_init(&o);
    o.max_rows = MAX_ROWS;
    o.threads = 1;
    o.memory = c->memory;
    o.by_layer = c->by_layer;
    c->ok = logits && !weir_run_new(&r, c->m, &o, &err) && !weir_run_prepare(r, WEIR_FINAL, &err);
    for (int i = 0; c->ok && i < 40; i++)
        c->ok = race_once(r, c, logits, &err) == WEIR_OK && kit_differs(c->want, logits, n) < 0;
    weir_run_free(r);
    free(logits);
    return NULL;
}

/* Runs of one model that have no room for it, all at once. */
static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GEMMA);
    const int64_t layers = weir_model_info_of(m)->L, n = 4 * weir_model_info_of(m)->V;
    int32_t ids[] = {1, 2, 3, 4};
    float *want = malloc((size_t)n * sizeof *want);
    weir_run *r = kit_run(m, MAX_ROWS, 0, NULL, 1);
    kit_forward(r, ids, 4, -1, WEIR_FINAL);
    kit_ok(weir_run_logits(r, 0, 4, want, &err), &err);
    const int64_t least = weir_run_arena_bytes(r) + weir_model_largest_bytes(m, layers, true);
    weir_run_free(r);
    pthread_t t[THREADS];
    racer c[THREADS];
    for (int i = 0; i < THREADS; i++) {
        c[i] = (racer){.m = m, .want = want, .memory = i == 3 ? 0 : least + 5000 * (i / 2), .by_layer = i % 2};
        assert_int_equal(pthread_create(&t[i], NULL, race, &c[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        assert_true(c[i].ok);
    }
    assert_true(weir_model_memory_of(m).packed_again > 0);
    free(want);
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_comparison_can_fail),
                                       cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_one_layer_at_a_time),
                                       cmocka_unit_test(test_last_used_goes_first),
                                       cmocka_unit_test(test_leases_hold),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
