/* Passes that begin with the stream before a layer (weir_run_forward_from), slots that stay where they are
 * (WEIR_KEEP_SLOTS), and runs that keep a tape for the way back: the bits of the whole pass, always. */
#include "run_kit.h"

enum { ROWS = 13, PREFIX = 5, SUFFIX = ROWS - PREFIX };

/* A model, a text, and everything that the whole pass over it makes. */
typedef struct whole {
    weir_model *m;
    const weir_model_info *info;
    int32_t *ids;
    kit_tap tap;
    float *logits; /* [ROWS,V] */
} whole;

static weir_run *run_of(const weir_model *m, int slots, bool backward)
{
    weir_err err = {0};
    weir_run_options o;
    weir_run *r = NULL;
    weir_run_options_init(&o);
    o.max_rows = ROWS;
    o.max_len = slots ? ROWS + 2 : 0;
    o.slots = slots;
    o.threads = 1; /* test_run_layers and test_run_batch vary them */
    o.backward = backward;
    kit_ok(weir_run_new(&r, m, &o, &err), &err);
    return r;
}

static void whole_open(whole *w, const char *path)
{
    weir_err err = {0};
    w->m = kit_open(path);
    w->info = weir_model_info_of(w->m);
    w->ids = kit_ids(w->m, ROWS, 17);
    w->logits = malloc((size_t)(ROWS * w->info->V) * sizeof *w->logits);
    assert_non_null(w->logits);
    weir_run *r = run_of(w->m, 0, false);
    kit_tap_init(&w->tap, w->m);
    kit_attach(r, &w->tap);
    kit_forward(r, w->ids, ROWS, -1, WEIR_FINAL);
    kit_ok(weir_run_logits(r, 0, ROWS, w->logits, &err), &err);
    weir_run_free(r);
}

static void whole_close(whole *w)
{
    free(w->ids);
    free(w->logits);
    kit_tap_free(&w->tap);
    weir_model_free(w->m);
}

/* The stream before layer l of the whole pass, [ROWS,C]. */
static const float *stream_before(const whole *w, int64_t l)
{
    return l < w->info->L ? kit_heard_at(&w->tap, w->m, l, "hook_resid_pre")
                          : kit_heard_at(&w->tap, w->m, l - 1, "hook_resid_post");
}

/* Everything that `tap` heard in a pass over rows [first, first + n), from layer l on, is what the whole pass has. Maps
 * have as many keys there as here. */
static void compare(const whole *w, const kit_tap *tap, int64_t l, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < tap->n; i++) {
        const weir_point *p = &tap->point[i];
        if (tap->floats[i] == 0) {
            assert_true(p->layer >= 0 ? p->layer < l : p->site < WEIR_SITE_RESID_PRE);
            continue;
        }
        assert_true(p->layer >= 0 ? p->layer >= l : p->site > WEIR_SITE_RESID_POST || l < 0);
        assert_int_equal(tap->floats[i], n * tap->width[i]);
        kit_same(w->tap.copy[i] + first * tap->width[i], tap->copy[i], n * tap->width[i], p->name);
    }
}

/* The suffix of the text from layer l on, behind its prefix in slot 0. */
static void pass_from(const whole *w, weir_run *r, int64_t l, int slot, int flags)
{
    weir_err err = {0};
    const int64_t first = slot < 0 ? 0 : PREFIX, n = ROWS - first, c = w->info->C;
    const weir_seq s = {.ids = w->ids + first, .n = n, .slot = slot};
    memcpy(weir_run_stream(r), stream_before(w, l) + first * c, (size_t)(n * c) * sizeof(float));
    kit_ok(weir_run_forward_from(r, &s, 1, l, flags, &err), &err);
    float *logits = malloc((size_t)(n * w->info->V) * sizeof *logits);
    assert_non_null(logits);
    kit_ok(weir_run_logits(r, 0, n, logits, &err), &err);
    kit_same(w->logits + first * w->info->V, logits, n * w->info->V, "logits");
    free(logits);
}

static void from_every_layer(const whole *w, bool backward, bool listen)
{
    for (int64_t l = 0; l <= w->info->L; l++) {
        weir_run *r = run_of(w->m, 1, backward);
        weir_err err = {0};
        kit_tap tap;
        kit_tap_init(&tap, w->m);
        if (listen)
            kit_attach(r, &tap);
        kit_ok(weir_run_prepare(r, WEIR_FINAL, &err), &err);
        kit_forward(r, w->ids, PREFIX, 0, WEIR_FINAL);
        for (int again = 0; again < 2; again++) {
            memset(tap.floats, 0, (size_t)tap.n * sizeof *tap.floats);
            pass_from(w, r, l, 0, WEIR_FINAL | WEIR_KEEP_SLOTS);
            assert_int_equal(weir_run_slot_len(r, 0), PREFIX);
            if (listen)
                compare(w, &tap, l, PREFIX, SUFFIX);
        }
        memset(tap.floats, 0, (size_t)tap.n * sizeof *tap.floats);
        pass_from(w, r, l, -1, WEIR_FINAL);
        if (listen)
            compare(w, &tap, l, 0, ROWS);
        kit_tap_free(&tap);
        weir_run_free(r);
    }
}

static void test_from_every_layer(void **state)
{
    (void)state;
    for (int k = 0; k <= KIT_MODELS; k++) {
        whole w;
        whole_open(&w, k < KIT_MODELS ? kit_models[k] : NULL);
        for (int i = 0; i < 4; i++)
            if (k < KIT_MODELS || i == 3) /* brook: once */
                from_every_layer(&w, i & 1, i & 2);
        whole_close(&w);
    }
}

/* A pass that keeps its slots can be followed by one that does not: the slot is the same as if there had been one. */
static void test_kept_slots(void **state)
{
    weir_err err = {0};
    whole w;
    (void)state;
    whole_open(&w, KIT_LLAMA);
    weir_run *r = run_of(w.m, 2, false);
    const weir_seq wrong[] = {{.ids = w.ids, .n = 3, .slot = 0}, {.ids = w.ids, .n = 4, .slot = 1}};
    const weir_seq right = {.ids = w.ids + PREFIX, .n = SUFFIX, .slot = 0};
    float *logits = malloc((size_t)(SUFFIX * w.info->V) * sizeof *logits);
    assert_non_null(logits);
    kit_forward(r, w.ids, PREFIX, 0, WEIR_FINAL);
    kit_ok(weir_run_forward(r, wrong, 2, WEIR_FINAL | WEIR_KEEP_SLOTS, &err), &err);
    assert_int_equal(weir_run_slot_len(r, 0), PREFIX);
    assert_int_equal(weir_run_slot_len(r, 1), 0);
    kit_ok(weir_run_forward(r, &right, 1, WEIR_FINAL, &err), &err);
    assert_int_equal(weir_run_slot_len(r, 0), ROWS);
    kit_ok(weir_run_logits(r, 0, SUFFIX, logits, &err), &err);
    kit_same(w.logits + PREFIX * w.info->V, logits, SUFFIX * w.info->V, "logits behind a pass that was forgotten");
    free(logits);
    weir_run_free(r);
    whole_close(&w);
}

/* What a slot holds of a beginning goes on in another, and in itself, as if it had been run there. */
static void test_copied_slots(void **state)
{
    whole w;
    const char *const models[] = {KIT_LLAMA, KIT_GPT2};
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        weir_err err = {0};
        whole_open(&w, models[m]);
        weir_run *r = run_of(w.m, 2, false);
        float *logits = malloc((size_t)(SUFFIX * w.info->V) * sizeof *logits);
        assert_non_null(logits);
        kit_ok(weir_run_slot_copy(r, 1, 0, 0, &err), &err);
        kit_forward(r, w.ids, ROWS, 0, WEIR_FINAL);
        kit_forward(r, w.ids, 3, 1, WEIR_FINAL);
        for (int to = 1; to >= 0; to--) {
            const weir_seq more = {.ids = w.ids + PREFIX, .n = SUFFIX, .slot = to};
            kit_ok(weir_run_slot_copy(r, to, 0, PREFIX, &err), &err);
            assert_int_equal(weir_run_slot_len(r, to), PREFIX);
            kit_ok(weir_run_forward(r, &more, 1, WEIR_FINAL, &err), &err);
            kit_ok(weir_run_logits(r, 0, SUFFIX, logits, &err), &err);
            kit_same(w.logits + PREFIX * w.info->V, logits, SUFFIX * w.info->V,
                     "logits behind a beginning that was copied");
        }
        kit_ok(weir_run_slot_copy(r, 1, 0, 0, &err), &err);
        assert_int_equal(weir_run_slot_len(r, 1), 0);
        const struct {
            int to, from;
            int64_t n;
        } wrong[] = {{0, 1, 1}, {0, 2, 0}, {-1, 0, 0}, {1, 0, ROWS + 1}, {1, 0, -1}};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            err = (weir_err){0};
            assert_int_equal(weir_run_slot_copy(r, wrong[i].to, wrong[i].from, wrong[i].n, &err), WEIR_E_ARG);
            assert_non_null(strstr(err.msg, wrong[i].to < 0 || wrong[i].from > 1 ? "the run has 2" : "tokens, not"));
        }
        free(logits);
        weir_run_free(r);
        whole_close(&w);
    }
}

/* A slot that went on from layer 1 cannot go on from layer 0, but from layer 1. */
static void test_slot_remembers(void **state)
{
    weir_err err = {0};
    whole w;
    (void)state;
    whole_open(&w, KIT_GPT2);
    weir_run *r = run_of(w.m, 1, false);
    const weir_seq more = {.ids = w.ids, .n = 1, .slot = 0};
    kit_forward(r, w.ids, PREFIX, 0, WEIR_FINAL);
    pass_from(&w, r, 1, 0, WEIR_FINAL);
    assert_int_equal(weir_run_slot_len(r, 0), ROWS);
    assert_int_equal(weir_run_forward(r, &more, 1, WEIR_FINAL, &err), WEIR_E_ARG);
    assert_string_equal(err.msg,
                        "slot 0 was continued from layer 1 on (weir_run_forward_from) and lacks the last tokens "
                        "in the layers before: fill it again from the start");
    kit_ok(weir_run_forward_from(r, &more, 1, 1, WEIR_FINAL, &err), &err);
    weir_run_slot_reset(r, 0);
    kit_ok(weir_run_forward(r, &more, 1, WEIR_FINAL, &err), &err);
    weir_run_free(r);
    whole_close(&w);
}

/* The tape changes no bit, whatever its bound, heard or not, and the pass can be cut and batched as ever. */
static void test_tape(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        whole w;
        weir_err err = {0};
        whole_open(&w, kit_models[k]);
        weir_run *r = run_of(w.m, 2, true);
        kit_tap tap;
        kit_tap_init(&tap, w.m);
        kit_attach(r, &tap);
        kit_forward(r, w.ids, ROWS, -1, WEIR_FINAL);
        compare(&w, &tap, -1, 0, ROWS);
        kit_forward(r, w.ids, PREFIX, 1, WEIR_FINAL);
        kit_forward(r, w.ids + PREFIX, SUFFIX, 1, WEIR_FINAL);
        compare(&w, &tap, -1, PREFIX, SUFFIX);
        float *logits = malloc((size_t)(SUFFIX * w.info->V) * sizeof *logits);
        assert_non_null(logits);
        kit_ok(weir_run_logits(r, 0, SUFFIX, logits, &err), &err);
        kit_same(w.logits + PREFIX * w.info->V, logits, SUFFIX * w.info->V, "logits of a run with a tape");
        free(logits);
        kit_tap_free(&tap);
        weir_run_free(r);
        whole_close(&w);
    }
}

static void test_errors(void **state)
{
    weir_err err = {0};
    whole w;
    (void)state;
    whole_open(&w, KIT_GPT2);
    const weir_seq s = {.ids = w.ids, .n = 1, .slot = -1};
    weir_run *r = run_of(w.m, 0, false);
    assert_null(weir_run_stream(r));
    assert_int_equal(weir_run_forward_from(r, &s, 1, 0, 0, &err), WEIR_E_ARG);
    assert_string_equal(err.msg, "weir_run_prepare comes before weir_run_forward_from: it gives the stream its room");
    kit_ok(weir_run_prepare(r, WEIR_FINAL, &err), &err);
    for (int64_t wrong = -1; wrong <= w.info->L + 1; wrong += w.info->L + 2) {
        err = (weir_err){0};
        assert_int_equal(weir_run_forward_from(r, &s, 1, wrong, 0, &err), WEIR_E_ARG);
        assert_non_null(strstr(err.msg, "a pass from layer"));
    }
    weir_run_free(r);
    weir_run_options o;
    weir_run_options_init(&o);
    o.by_layer = true;
    o.backward = true;
    err = (weir_err){0};
    assert_int_equal(weir_run_new(&r, w.m, &o, &err), WEIR_E_ARG);
    assert_string_equal(err.msg, "a run that goes layer by layer keeps nothing for a way back");
    o.backward = false;
    kit_ok(weir_run_new(&r, w.m, &o, &err), &err);
    err = (weir_err){0};
    assert_int_equal(weir_run_forward_from(r, &s, 1, 0, 0, &err), WEIR_E_ARG);
    assert_string_equal(err.msg, "the run was made to go layer by layer: weir_run_part");
    weir_run_free(r);
    whole_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_every_layer), cmocka_unit_test(test_kept_slots), cmocka_unit_test(test_copied_slots),
        cmocka_unit_test(test_slot_remembers),   cmocka_unit_test(test_tape),       cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
