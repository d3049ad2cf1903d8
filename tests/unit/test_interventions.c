/* Each intervention at each kind of point, to the bit, against the same operation done here; order; positions, in
 * windows and with a cache; writes that change nothing. */
#include <math.h>

#include "npy_kit.h"
#include "run_kit.h"

#include <weir/values.h>

enum { ROWS = 9 };

static const char *const models[] = {KIT_GPT2, KIT_LLAMA, KIT_NEOX, KIT_GEMMA};
enum { MODELS = sizeof models / sizeof *models };

static void attach(weir_run *r, const char *hook, const char *args)
{
    weir_err err = {0};
    weir_status st = weir_run_hook(r, weir_hook_class_find(hook), args, &err);
    if (st)
        fail_msg("%s:%s: %s", hook, args, err.msg);
}

static void refused(const weir_model *m, const char *hook, const char *args, const char *says)
{
    weir_err err = {0};
    char line[1200];
    weir_run *r = kit_run(m, ROWS, 0, NULL, 1);
    if (weir_run_hook(r, weir_hook_class_find(hook), args, &err) >= 0)
        fail_msg("%s:%s was attached", hook, args);
    weir_err_line(&err, line, sizeof line);
    if (!strstr(line, says))
        fail_msg("%s:%s: \"%s\" does not say \"%s\"", hook, args, line, says);
    weir_run_free(r);
}

static const char *text(const char *fmt, ...) WEIR_PRINTF(1, 2);
static const char *text(const char *fmt, ...)
{
    static char buf[4][1400];
    static unsigned turn;
    char *p = buf[turn++ % 4];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p, sizeof buf[0], fmt, ap);
    va_end(ap);
    return p;
}

/* A vector of n numbers of both signs in an .npy file; v gets them. */
static const char *vector(const char *name, int64_t n, uint64_t seed, float *v)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)((int64_t)(kit_random(&seed) % 2000) - 1000) / 256;
    return npy_floats(name, 1, n, v);
}

/* One pass with a hook between two listeners. */
typedef struct heard {
    kit_tap before, after;
    float *logits;
    int64_t changed, missed;
} heard;

static heard run_hooks(const weir_model *m, const char *const (*hooks)[2], int n_hooks, const weir_seq *seq)
{
    heard h;
    weir_err err = {0};
    weir_run *r = kit_run(m, seq->n, 0, NULL, 1);
    kit_tap_init(&h.before, m);
    kit_tap_init(&h.after, m);
    h.logits = calloc((size_t)(seq->n * weir_model_info_of(m)->V), sizeof *h.logits);
    kit_attach(r, &h.before);
    for (int i = 0; i < n_hooks; i++)
        attach(r, hooks[i][0], hooks[i][1]);
    kit_attach(r, &h.after);
    kit_ok(weir_run_forward(r, seq, 1, WEIR_FINAL, &err), &err);
    kit_ok(weir_run_logits(r, 0, seq->n, h.logits, &err), &err);
    h.changed = weir_run_hook_changed(r, 1, &h.missed);
    weir_run_free(r);
    return h;
}

static heard run_one(const weir_model *m, const char *hook, const char *args, const weir_seq *seq)
{
    const char *const one[1][2] = {{hook, args}};
    return run_hooks(m, one, hook ? 1 : 0, seq);
}

static void heard_free(heard *h)
{
    kit_tap_free(&h->before);
    kit_tap_free(&h->after);
    free(h->logits);
}

/* --- every kind of point */

typedef enum op { ZERO, MEAN, SCALE, ADD, SET, PROJECT } op;
static const char *const op_hook[] = {"ablate", "ablate", "scale", "steer", "set", "project-out"};

static void apply(op o, float *x, const float *v, int64_t n)
{
    double dot = 0, norm = 0;
    for (int64_t i = 0; i < n && o == PROJECT; i++)
        norm += (double)v[i] * (double)v[i];
    norm = sqrt(norm);
    for (int64_t i = 0; i < n && o == PROJECT; i++)
        dot += (double)v[i] / norm * (double)x[i];
    for (int64_t i = 0; i < n; i++)
        switch (o) {
        case ZERO:
            x[i] = x[i] == -INFINITY ? x[i] : 0;
            break;
        case SCALE:
            x[i] = x[i] == -INFINITY ? x[i] : x[i] * -1.5f;
            break;
        case ADD:
            x[i] += v[i];
            break;
        case PROJECT:
            x[i] = (float)((double)x[i] - dot * ((double)v[i] / norm));
            break;
        case SET:
        case MEAN:
            x[i] = v[i];
            break;
        }
}

/* What the point's rows 1 and 3 should be behind the hook. */
static void check_point(const weir_model *m, const weir_point *p, op o, const float *v, const char *value,
                        const weir_seq *seq)
{
    heard h = run_one(m, op_hook[o], text("%s[1+3]%s%s", p->name, *value ? "=" : "", value), seq);
    int64_t i = p - h.before.point, width = h.before.width[i], n = h.before.floats[i];
    float *want = malloc((size_t)n * sizeof *want);
    memcpy(want, h.before.copy[i], (size_t)n * sizeof *want);
    for (int64_t t = 1; t <= 3; t += 2)
        apply(o, want + t * width, v, width);
    kit_same(h.after.copy[i], want, n, text("%s at %s", op_hook[o], p->name));
    assert_true(kit_differs(h.before.copy[i], want, n) >= 0); /* it did something */
    assert_int_equal(h.changed, 2);
    assert_int_equal(h.missed, 0);
    free(want);
    heard_free(&h);
}

static void test_every_point(void **state)
{
    (void)state;
    for (int k = 0; k < MODELS; k++) {
        weir_model *m = kit_open(models[k]);
        const weir_point *p;
        int64_t n = weir_model_points(m, &p);
        int32_t *ids = kit_ids(m, ROWS, 5);
        const weir_seq seq = {.ids = ids, .n = ROWS, .slot = -1};
        for (int64_t i = 0; i < n; i++) {
            if (p[i].read_only || p[i].layer > 0)
                continue;
            check_point(m, &p[i], ZERO, NULL, "", &seq);
            check_point(m, &p[i], SCALE, NULL, "-1.5", &seq);
            if (p[i].keyed)
                continue;
            float *v = malloc((size_t)p[i].width * sizeof *v);
            const char *file = vector("v.npy", p[i].width, (uint64_t)i + 1, v);
            check_point(m, &p[i], ADD, v, file, &seq);
            check_point(m, &p[i], SET, v, file, &seq);
            check_point(m, &p[i], PROJECT, v, file, &seq);
            free(v);
        }
        free(ids);
        weir_model_free(m);
    }
}

/* What follows the point is that of a run in which the same values were written by another hook. */
static const float *written;
static void write_back(kit_tap *t, const weir_value *v)
{
    (void)t;
    memcpy(v->data, written, (size_t)(v->rows->n * v->width) * sizeof(float));
}

static void test_what_follows(void **state)
{
    static const char *const where[] = {"blocks.0.attn.hook_k", "blocks.0.attn.hook_z", "blocks.1.hook_resid_pre",
                                        "blocks.0.ln2.hook_normalized", "blocks.0.mlp.hook_pre"};
    (void)state;
    for (int k = 0; k < MODELS; k++)
        for (size_t w = 0; w < sizeof where / sizeof *where; w++) {
            weir_model *m = kit_open(models[k]);
            const weir_point *p = weir_model_point(m, where[w]);
            int32_t *ids = kit_ids(m, ROWS, 5);
            const weir_seq seq = {.ids = ids, .n = ROWS, .slot = -1};
            float *v = malloc((size_t)p->width * sizeof *v);
            heard h = run_one(m, "steer", text("%s[2:6]=%s", where[w], vector("v.npy", p->width, 3, v)), &seq);
            weir_selector *s;
            weir_err err = {0};
            kit_tap writer, after;
            kit_ok(weir_selector_parse(&s, m, where[w], &err), &err);
            kit_tap_init(&writer, m);
            kit_tap_init(&after, m);
            writer.only = s;
            writer.write = true;
            writer.edit = write_back;
            written = kit_heard(&h.after, m, where[w]);
            weir_run *r = kit_run(m, ROWS, 0, NULL, 1);
            kit_attach(r, &writer);
            kit_attach(r, &after);
            kit_forward(r, ids, ROWS, -1, WEIR_FINAL);
            for (int64_t i = 0; i < after.n; i++)
                kit_same(after.copy[i], h.after.copy[i], after.floats[i], after.point[i].name);
            weir_run_free(r);
            weir_selector_free(s);
            kit_tap_free(&writer);
            kit_tap_free(&after);
            heard_free(&h);
            free(v);
            free(ids);
            weir_model_free(m);
        }
}

/* --- heads and units */

static void test_heads_and_units(void **state)
{
    weir_model *m = kit_open(KIT_LLAMA);
    const weir_model_info *info = weir_model_info_of(m);
    const int64_t d = info->D, width = info->H * d;
    int32_t *ids = kit_ids(m, ROWS, 5);
    const weir_seq seq = {.ids = ids, .n = ROWS, .slot = -1};
    float v[64], w[64], u[4];
    (void)state;
    assert_true(2 * d <= 64);
    const char *one = vector("one.npy", d, 1, v), *two = vector("two.npy", 2 * d, 2, w),
               *four = vector("u.npy", 4, 3, u);
    for (int joint = 0; joint < 2; joint++)
        for (op o = ADD; o <= PROJECT; o++) {
            heard h = run_one(m, op_hook[o], text("blocks.1.attn.hook_z[:, 1+4]=%s", joint ? two : one), &seq);
            const float *x = kit_heard(&h.before, m, "blocks.1.attn.hook_z");
            float *want = malloc((size_t)(ROWS * width) * sizeof *want), both[64];
            memcpy(want, x, (size_t)(ROWS * width) * sizeof *want);
            for (int64_t t = 0; t < ROWS; t++) {
                float *a = want + t * width + d, *b = want + t * width + 4 * d;
                memcpy(both, a, (size_t)d * sizeof *a);
                memcpy(both + d, b, (size_t)d * sizeof *b);
                for (int64_t g = 0; g < 2 && !joint; g++)
                    apply(o, both + g * d, v, d);
                if (joint)
                    apply(o, both, w, 2 * d);
                memcpy(a, both, (size_t)d * sizeof *a);
                memcpy(b, both + d, (size_t)d * sizeof *b);
            }
            kit_same(kit_heard(&h.after, m, "blocks.1.attn.hook_z"), want, ROWS * width, op_hook[o]);
            free(want);
            heard_free(&h);
        }
    heard h = run_one(m, "set", text("post[-1, 2+7:9+30]=%s", four), &seq);
    const int64_t units[4] = {2, 7, 8, 30};
    for (int64_t l = 0; l < info->L; l++)
        for (int64_t t = 0; t < ROWS; t++)
            for (int k = 0; k < 4; k++) {
                const float *x = kit_heard_at(&h.after, m, l, "mlp.hook_post") + t * info->F + units[k];
                assert_int_equal(*x == u[k], t == ROWS - 1);
            }
    assert_int_equal(h.changed, info->L);
    heard_free(&h);
    refused(m, "set", text("L1H2=%s", two),
            text("rows of %lld numbers, but %lld are selected of blocks.1.attn.hook_z, %lld of "
                 "each head",
                 (long long)(2 * d), (long long)d, (long long)d));
    refused(m, "set", text("L1N2=%s", four), "rows of 4 numbers, but 1 are selected of blocks.1.mlp.hook_post");
    refused(m, "steer", text("resid_post=%s", four), text("rows of 4 numbers, but %lld", (long long)info->C));
    refused(m, "set", text("blocks.1.attn.hook_z=%s", one), text("but %lld are selected", (long long)width));
    free(ids);
    weir_model_free(m);
}

/* --- composition */

static void test_order(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    const int64_t c = weir_model_info_of(m)->C;
    int32_t *ids = kit_ids(m, ROWS, 5);
    const weir_seq seq = {.ids = ids, .n = ROWS, .slot = -1};
    float *v = malloc((size_t)c * sizeof *v);
    char add[1400];
    (void)state;
    snprintf(add, sizeof add, "resid_mid=%s", vector("v.npy", c, 9, v));
    const char *const hooks[][2] = {{"steer", add}, {"scale", "resid_mid=2"}, {"steer", add}};
    for (int scale_first = 0; scale_first < 2; scale_first++) {
        heard h = run_hooks(m, hooks + scale_first, 2, &seq);
        const float *x = kit_heard(&h.before, m, "blocks.0.hook_resid_mid");
        float *want = malloc((size_t)(ROWS * c) * sizeof *want);
        for (int64_t i = 0; i < ROWS * c; i++)
            want[i] = scale_first ? x[i] * 2 + v[i % c] : (x[i] + v[i % c]) * 2;
        kit_same(kit_heard(&h.after, m, "blocks.0.hook_resid_mid"), want, ROWS * c, "two hooks");
        free(want);
        heard_free(&h);
    }
    free(v);
    free(ids);
    weir_model_free(m);
}

/* --- positions */

/* The same text in one pass, and token by token through a cache: the same bits at every row, whatever was written
 * where. */
static void test_decode(void **state)
{
    (void)state;
    for (int k = 0; k < MODELS; k++) {
        weir_model *m = kit_open(models[k]);
        const int64_t c = weir_model_info_of(m)->C, kd = weir_model_point(m, "blocks.0.attn.hook_k")->width;
        int32_t *ids = kit_ids(m, ROWS, 5);
        const weir_seq seq = {.ids = ids, .n = ROWS, .slot = -1, .total = ROWS};
        float *v = malloc((size_t)(c + kd) * sizeof *v);
        char add[1400], set[1400];
        snprintf(add, sizeof add, "blocks.0.hook_resid_post[2+5:7]=%s", vector("a.npy", c, 9, v));
        snprintf(set, sizeof set, "blocks.0.attn.hook_k[1+-1]=%s", vector("b.npy", kd, 8, v));
        const char *const hooks[][2] = {{"steer", add}, {"set", set}, {"ablate", "blocks.1.attn.hook_z[3:,1]"}};
        heard whole = run_hooks(m, hooks, 3, &seq);
        weir_run *r = kit_run(m, ROWS, 1, NULL, 1);
        kit_tap t;
        kit_tap_init(&t, m);
        for (int i = 0; i < 3; i++)
            attach(r, hooks[i][0], hooks[i][1]);
        kit_attach(r, &t);
        for (int64_t pos = 0; pos < ROWS; pos++) {
            weir_err err = {0};
            const weir_seq one = {.ids = ids + pos, .n = 1, .slot = 0, .total = ROWS};
            kit_ok(weir_run_forward(r, &one, 1, WEIR_FINAL, &err), &err);
            for (int64_t i = 0; i < t.n; i++)
                if (!t.point[i].keyed)
                    kit_same(t.copy[i], whole.after.copy[i] + pos * t.width[i], t.width[i], t.point[i].name);
        }
        assert_int_equal(weir_run_hook_changed(r, 0, NULL), 3);
        assert_int_equal(weir_run_hook_changed(r, 1, NULL), 2);
        assert_int_equal(weir_run_hook_changed(r, 2, NULL), ROWS - 3);
        weir_run_free(r);
        kit_tap_free(&t);
        heard_free(&whole);
        free(v);
        free(ids);
        weir_model_free(m);
    }
}

/* Positions are the document's, whatever window a row stands in; a BOS that a window repeats is met by `:` alone. */
static void test_windows(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    const int64_t f = weir_model_info_of(m)->F;
    int32_t *ids = kit_ids(m, ROWS, 5);
    const int64_t place[ROWS] = {-1, 20, 21, 22, 23, 24, 25, 26, 27};
    const weir_seq seq = {.ids = ids, .n = ROWS, .slot = -1, .place = place, .total = 28};
    static const struct {
        const char *positions;
        bool rows[ROWS];
    } cases[] = {{"21", {0, 0, 1}},
                 {"-1", {[8] = 1}},
                 {"-5:25", {[4] = 1, [5] = 1}},
                 {"0+26", {[7] = 1}},
                 {":", {1, 1, 1, 1, 1, 1, 1, 1, 1}}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heard h = run_one(m, "ablate", text("L0N3[%s]", cases[i].positions), &seq);
        const float *x = kit_heard(&h.after, m, "blocks.0.mlp.hook_post");
        int64_t n = 0;
        for (int64_t t = 0; t < ROWS; t++) {
            assert_int_equal(x[t * f + 3] == 0, cases[i].rows[t]);
            n += cases[i].rows[t];
        }
        assert_int_equal(h.changed, n);
        heard_free(&h);
    }
    free(ids);
    weir_model_free(m);
}

/* --- directions */

static void test_project_out(void **state)
{
    weir_model *m = kit_open(KIT_LLAMA);
    const int64_t c = weir_model_info_of(m)->C;
    int32_t *ids = kit_ids(m, ROWS, 5);
    const weir_seq seq = {.ids = ids, .n = ROWS, .slot = -1};
    float *v = malloc((size_t)(3 * c) * sizeof *v);
    (void)state;
    vector("v.npy", 3 * c, 4, v);
    heard h = run_one(m, "project-out", text("blocks.1.hook_resid_pre=%s", npy_floats("three.npy", 3, c, v)), &seq);
    const float *x = kit_heard(&h.after, m, "blocks.1.hook_resid_pre"),
                *before = kit_heard(&h.before, m, "blocks.1.hook_resid_pre");
    for (int64_t t = 0; t < ROWS; t++) { /* nothing is left along any of the three, although they are not orthogonal */
        double left[3] = {0}, had[3] = {0}, scale = 0;
        for (int64_t i = 0; i < c; i++)
            for (int k = 0; k < 3; k++) {
                left[k] += (double)x[t * c + i] * (double)v[k * c + i];
                had[k] += (double)before[t * c + i] * (double)v[k * c + i];
                scale += fabs((double)before[t * c + i] * (double)v[k * c + i]);
            }
        for (int k = 0; k < 3; k++)
            assert_true(fabs(left[k]) < 1e-6 * scale && fabs(had[k]) > 1e-4 * scale);
    }
    heard_free(&h);
    /* Points of different widths under one direction of a head. */
    const int64_t d = weir_model_info_of(m)->D, width = d * weir_model_info_of(m)->H;
    const char *one = vector("d.npy", d, 2, v);
    h = run_one(m, "project-out", text("blocks.0.attn.hook_z[:,0:5],blocks.1.attn.hook_z[:,1]=%s", one), &seq);
    float *want = malloc((size_t)(ROWS * width) * sizeof *want);
    for (int64_t l = 0; l < 2; l++) {
        memcpy(want, kit_heard_at(&h.before, m, l, "attn.hook_z"), (size_t)(ROWS * width) * sizeof *want);
        for (int64_t t = 0; t < ROWS; t++)
            for (int64_t g = l; g < (l ? 2 : 5); g++)
                apply(PROJECT, want + t * width + g * d, v, d);
        kit_same(kit_heard_at(&h.after, m, l, "attn.hook_z"), want, ROWS * width, "z");
    }
    free(want);
    assert_int_equal(h.changed, 2 * ROWS);
    heard_free(&h);
    vector("v.npy", 3 * c, 4, v);
    memcpy(v + c, v, (size_t)c * sizeof *v);
    refused(m, "project-out", text("resid_pre=%s", npy_floats("twice.npy", 2, c, v)),
            "row 1, for blocks.0.hook_resid_pre, depends "
            "on the rows before it");
    memset(v, 0, (size_t)c * sizeof *v);
    refused(m, "project-out", text("resid_pre=%s", npy_floats("zero.npy", 1, c, v)), "is zero: it has no direction");
    free(v);
    free(ids);
    weir_model_free(m);
}

/* --- means, patches, and writes that change nothing */

/* Records every point that can be of two documents of ROWS tokens; what was heard is in tap[2]. */
static const char *record(const weir_model *m, const char *name, const char *points, uint64_t seed, kit_tap tap[2])
{
    weir_err err = {0};
    weir_run *r = kit_run(m, ROWS, 0, NULL, 1);
    kit_tap t;
    const char *path = scratch(name);
    attach(r, "record", text("%s=%s", path, points));
    kit_tap_init(&t, m);
    kit_attach(r, &t);
    for (int d = 0; d < 2; d++) {
        int32_t *ids = kit_ids(m, ROWS, seed + (uint64_t)d);
        weir_seq s = {.ids = ids, .n = ROWS, .slot = -1, .tag = d};
        kit_ok(weir_run_forward(r, &s, 1, 0, &err), &err);
        free(ids);
        kit_tap_init(&tap[d], m);
        for (int64_t i = 0; i < t.n; i++) {
            tap[d].copy[i] = t.copy[i];
            tap[d].floats[i] = t.floats[i];
            tap[d].width[i] = t.width[i];
            t.copy[i] = NULL;
        }
    }
    kit_ok(weir_run_finish(r, NULL, &err), &err);
    weir_run_free(r);
    kit_tap_free(&t);
    return path;
}

static void test_mean(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    const int64_t d = weir_model_info_of(m)->D, width = d * weir_model_info_of(m)->H;
    int32_t *ids = kit_ids(m, ROWS, 50);
    const weir_seq seq = {.ids = ids, .n = ROWS, .slot = -1};
    kit_tap tap[2];
    const char *path = record(m, "m.h5", "z", 60, tap);
    heard h = run_one(m, "ablate", text("blocks.*.attn.hook_z[4:, 1]=mean:%s", path), &seq);
    (void)state;
    for (int64_t l = 0; l < 2; l++)
        for (int64_t i = 0; i < width; i++) {
            double sum = 0;
            for (int k = 0; k < 2; k++)
                for (int64_t t = 0; t < ROWS; t++)
                    sum += (double)kit_heard_at(&tap[k], m, l, "attn.hook_z")[t * width + i];
            float mean = (float)(sum / (2 * ROWS));
            for (int64_t t = 0; t < ROWS; t++)
                assert_int_equal(kit_heard_at(&h.after, m, l, "attn.hook_z")[t * width + i] == mean,
                                 t >= 4 && i / d == 1);
        }
    heard_free(&h);
    refused(m, "ablate", text("resid_pre=mean:%s", path), "blocks.0.hook_resid_pre is not among the 2 hook points");
    refused(m, "ablate", text("pattern=mean:%s", path), "ablate cannot act there");
    refused(m, "ablate", text("resid_pre=mean:%s", scratch("no.h5")), "No such file");
    for (int k = 0; k < 2; k++)
        kit_tap_free(&tap[k]);
    free(ids);
    weir_model_free(m);
}

static void test_patch(void **state)
{
    weir_model *m = kit_open(KIT_LLAMA);
    const weir_model_info *info = weir_model_info_of(m);
    const int64_t f = info->F, place[ROWS] = {-1, 4, 5, 6, 7, 8, 9, 10, 11};
    int32_t *ids = kit_ids(m, ROWS, 50);
    kit_tap tap[2];
    const char *path = record(m, "p.h5", "blocks.0.mlp.hook_post,blocks.1.mlp.hook_post[:,3+8],z", 60, tap);
    (void)state;
    for (int windowed = 0; windowed < 2; windowed++)
        for (int doc = 0; doc < 3; doc++) {
            weir_seq seq = {.ids = ids,
                            .n = ROWS,
                            .slot = -1,
                            .tag = doc,
                            .place = windowed ? place : NULL,
                            .total = windowed ? 12 : 0};
            heard h = run_one(m, "patch", text("blocks.0.mlp.hook_post[5:]=%s", path), &seq);
            const float *x = kit_heard(&h.after, m, "blocks.0.mlp.hook_post"),
                        *before = kit_heard(&h.before, m, "blocks.0.mlp.hook_post");
            int64_t changed = 0, missed = 0;
            for (int64_t t = 0; t < ROWS; t++) {
                int64_t pos = windowed ? place[t] : t;
                bool there = doc < 2 && pos < ROWS, asked = pos >= 5;
                const float *want =
                    asked && there ? kit_heard(&tap[doc], m, "blocks.0.mlp.hook_post") + pos * f : before + t * f;
                kit_same(x + t * f, want, f, "patched row");
                changed += asked && there;
                missed += asked && !there;
            }
            assert_int_equal(h.changed, changed);
            assert_int_equal(h.missed, missed);
            heard_free(&h);
        }
    weir_seq seq = {.ids = ids, .n = ROWS, .slot = -1, .tag = 1};
    heard h = run_one(m, "patch", text("L1N8[:]=%s", path), &seq); /* a recording of units */
    for (int64_t t = 0; t < ROWS; t++)
        assert_true(kit_heard(&h.after, m, "blocks.1.mlp.hook_post")[t * f + 8] ==
                    kit_heard(&tap[1], m, "blocks.1.mlp.hook_post")[t * f + 8]);
    heard_free(&h);
    refused(m, "patch", text("L1N9=%s", path), "unit 9 of blocks.1.mlp.hook_post was not recorded");
    refused(m, "patch", text("resid_pre=%s", path), "blocks.0.hook_resid_pre was not recorded in it: --hooks");
    refused(m, "patch", text("pattern=%s", path), "patch cannot act there");
    refused(m, "patch", "L1N9", "the dump is missing");
    refused(m, "patch", text("L1N8=%s", npy_floats("v.npy", 1, 1, &(float){1})), "not an HDF5 file");
    weir_model *other = kit_open(KIT_GPT2);
    refused(other, "patch", text("blocks.0.mlp.hook_post=%s", path),
            text("have %lld numbers, this model's %lld", (long long)f, (long long)weir_model_info_of(other)->F));
    weir_model_free(other);
    weir_err err = {0};
    weir_run *r = kit_run(m, ROWS, 0, NULL, 1);
    attach(r, "patch", text("L1N8=%s", path));
    seq.tag = 7;
    kit_ok(weir_run_forward(r, &seq, 1, 0, &err), &err);
    assert_int_equal(weir_run_finish(r, NULL, &err), WEIR_E_HOOK);
    assert_non_null(strstr(err.msg, "patch L1N8 changed nothing: the dump has none of the 9 rows"));
    weir_run_free(r);
    for (int k = 0; k < 2; k++)
        kit_tap_free(&tap[k]);
    free(ids);
    weir_model_free(m);
}

/* Every point at once: scaled by 1, moved by 0, set and patched with what it has. Not a bit changes anywhere. */
static void test_identity(void **state)
{
    (void)state;
    for (int k = 0; k < MODELS; k++) {
        weir_model *m = kit_open(models[k]);
        const weir_point *p;
        int64_t n = weir_model_points(m, &p);
        int32_t *ids = kit_ids(m, ROWS, 60);
        const weir_seq seq = {.ids = ids, .n = ROWS, .slot = -1};
        kit_tap tap[2];
        const char *path = record(m, "i.h5", "*", 60, tap);
        heard plain = run_one(m, NULL, NULL, &seq);
        weir_run *r = kit_run(m, ROWS, 0, NULL, 1);
        kit_tap t;
        weir_err err = {0};
        kit_tap_init(&t, m);
        attach(r, "scale", "{*,*scores,*pattern}=1");
        attach(r, "patch", text("*=%s", path));
        attach(r, "set", text("*[2]=%s@2", path));
        attach(r, "steer", text("*=%s@3*0", path));
        kit_attach(r, &t);
        kit_ok(weir_run_forward(r, &seq, 1, WEIR_FINAL, &err), &err);
        for (int64_t i = 0; i < n; i++)
            kit_same(t.copy[i], plain.after.copy[i], t.floats[i], p[i].name);
        float *logits = malloc((size_t)(ROWS * weir_model_info_of(m)->V) * sizeof *logits);
        kit_ok(weir_run_logits(r, 0, ROWS, logits, &err), &err);
        kit_same(logits, plain.logits, ROWS * weir_model_info_of(m)->V, "logits");
        kit_ok(weir_run_finish(r, NULL, &err), &err);
        free(logits);
        weir_run_free(r);
        kit_tap_free(&t);
        heard_free(&plain);
        for (int d = 0; d < 2; d++)
            kit_tap_free(&tap[d]);
        free(ids);
        weir_model_free(m);
    }
}

/* Zeros of both signs keep their sign when nothing is added to them. */
static void test_adding_nothing_keeps_minus_zero(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    const int64_t c = weir_model_info_of(m)->C;
    int32_t *ids = kit_ids(m, ROWS, 5);
    const weir_seq seq = {.ids = ids, .n = ROWS, .slot = -1};
    float *v = calloc((size_t)c, sizeof *v);
    char set[1400], add[1400];
    (void)state;
    v[3] = -0.0f;
    snprintf(set, sizeof set, "blocks.0.hook_resid_pre=%s", npy_floats("z.npy", 1, c, v));
    v[3] = 0;
    snprintf(add, sizeof add, "blocks.0.hook_resid_pre=%s", npy_floats("0.npy", 1, c, v));
    const char *const hooks[][2] = {{"set", set}, {"steer", add}};
    heard h = run_hooks(m, hooks, 2, &seq);
    assert_true(signbit(kit_heard(&h.after, m, "blocks.0.hook_resid_pre")[3]));
    heard_free(&h);
    free(v);
    free(ids);
    weir_model_free(m);
}

static void test_refusals(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    const float one = 1;
    const char *v = npy_floats("one.npy", 1, 1, &one);
    static const char *const with_file[] = {"steer", "set", "project-out"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        refused(m, with_file[i], NULL, "needs a selector");
        refused(m, with_file[i], "=x.npy", "needs a selector");
        refused(m, with_file[i], "L0N1", "is missing");
        refused(m, with_file[i], "L0N1=", "is missing");
        refused(m, with_file[i], text("pots=%s", v), "the nearest is \"post\"");
        refused(m, with_file[i], "L0N1=/nowhere/v.npy", "/nowhere/v.npy: cannot open: No such file");
        refused(m, with_file[i], text("pattern=%s", v), "cannot act there (ablate and scale can)");
    }
    refused(m, "scale", NULL, "needs a selector");
    refused(m, "scale", "L0N1", "a number was expected");
    refused(m, "scale", "L0N1=two", "\"two\": a number was expected");
    refused(m, "scale", "L0N1=1e99", "a number was expected");
    refused(m, "scale", "L0N1=nan", "a number was expected");
    refused(m, "scale", "blocks.0.attn.hook_result=2", "read-only");
    refused(m, "ablate", "L0N1=one", "\"one\": zero or mean:FILE was expected");
    refused(m, "ablate", "L0N1=mean:", "zero or mean:FILE was expected");
    weir_err err = {0};
    weir_run *r = kit_run(m, ROWS, 0, NULL, 1);
    int32_t *ids = kit_ids(m, ROWS, 5);
    attach(r, "scale", "L0N1[50]=2");
    kit_forward(r, ids, ROWS, -1, 0);
    assert_int_equal(weir_run_hook_changed(r, 0, NULL), 0);
    assert_int_equal(weir_run_hook_changed(r, 1, NULL), -1);
    assert_int_equal(weir_run_finish(r, NULL, &err), WEIR_E_HOOK);
    assert_non_null(strstr(err.msg, "scale L0N1[50] changed nothing: no sequence has such a position"));
    weir_run_free(r);
    free(ids);
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_point),
        cmocka_unit_test(test_what_follows),
        cmocka_unit_test(test_heads_and_units),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_project_out),
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_patch),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_adding_nothing_keeps_minus_zero),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
