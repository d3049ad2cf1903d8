/* Attaching and firing, and the built-in hooks. */
#include <math.h>

#include "run_kit.h"

enum { ROWS = 9 };

static weir_model *model;
static int32_t *ids;

static int open_model(void **state)
{
    (void)state;
    model = kit_open(KIT_GPT2);
    ids = kit_ids(model, ROWS, 31);
    return 0;
}

static int close_model(void **state)
{
    (void)state;
    weir_model_free(model);
    free(ids);
    return 0;
}

static weir_status attach(weir_run *r, const char *name, const char *args, weir_err *err)
{
    const weir_hook_class *c = weir_hook_class_find(name);
    assert_non_null(c);
    return weir_run_hook(r, c, args, err);
}

static void attach_ok(weir_run *r, const char *name, const char *args)
{
    weir_err err = {0};
    kit_ok(attach(r, name, args, &err), &err);
}

static void refused(const char *name, const char *args, const char *says)
{
    weir_err err = {0};
    weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
    assert_true(attach(r, name, args, &err) < 0);
    if (!strstr(err.msg, says))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
    weir_run_free(r);
}

/* What a hook writes at the end. */
static void finish_text(weir_run *r, char *buf, size_t size)
{
    weir_err err = {0};
    FILE *f = tmpfile();
    assert_non_null(f);
    kit_ok(weir_run_finish(r, f, &err), &err);
    rewind(f);
    size_t n = fread(buf, 1, size - 1, f);
    buf[n] = 0;
    fclose(f);
}

static void test_registry(void **state)
{
    static const char *const names[] = {"ablate", "lens", "log", "stats", "template", "topk"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(weir_hook_class_find(names[i])->name, names[i]);
    assert_null(weir_hook_class_find("nothing"));
    assert_null(weir_hook_class_at(-1));
    assert_null(weir_hook_class_at(weir_hook_class_count()));
    for (int i = 0; i < weir_hook_class_count(); i++) {
        const weir_hook_class *c = weir_hook_class_at(i);
        assert_int_equal(c->struct_size, sizeof *c);
        assert_true(c->help && c->args && c->create && c->wants && c->on_value && c->destroy);
    }
}

/* Hooks fire in the order in which they were attached: one before an ablation sees the value, one behind it sees zeros.
 */
static void test_order_of_attaching(void **state)
{
    kit_tap before, after;
    weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
    int64_t n = ROWS * weir_model_info_of(model)->F, zeros = 0;
    (void)state;
    kit_tap_init(&before, model);
    kit_tap_init(&after, model);
    kit_attach(r, &before);
    attach_ok(r, "ablate", "blocks.1.mlp.hook_post");
    kit_attach(r, &after);
    kit_forward(r, ids, ROWS, -1, 0);
    const float *x = kit_heard(&before, model, "blocks.1.mlp.hook_post"),
                *y = kit_heard(&after, model, "blocks.1.mlp.hook_post");
    for (int64_t i = 0; i < n; i++) {
        zeros += x[i] == 0;
        assert_true(y[i] == 0);
    }
    assert_true(zeros < n / 2);
    assert_int_equal(weir_run_hook_fired(r, 0), before.n);
    assert_int_equal(weir_run_hook_fired(r, 1), 1);
    assert_int_equal(weir_run_hook_fired(r, 2), after.n);
    assert_int_equal(weir_run_hook_fired(r, 3), 0);
    for (int i = -1; i <= 3; i++)
        assert_int_equal(weir_run_hook_writes(r, i), i == 1);
    assert_true(before.begins == 1 && before.ends == 1 && before.finishes == 0);
    kit_forward(r, ids, 2, -1, 0);
    assert_int_equal(weir_run_hook_fired(r, 1), 2);
    weir_err err = {0};
    kit_ok(weir_run_finish(r, NULL, &err), &err);
    assert_int_equal(before.finishes, 1);
    weir_run_free(r);
    kit_tap_free(&before);
    kit_tap_free(&after);
}

/* --- a hook that does as it is told */
typedef struct puppet {
    weir_want want;
    const char *point;
    weir_status on_value, on_begin;
    int values, ends;
    bool says;
} puppet;

static weir_want puppet_wants(void *self, const weir_point *p)
{
    puppet *s = self;
    return s->point && strcmp(s->point, p->name) == 0 ? s->want : WEIR_NONE;
}

static weir_status puppet_begin(void *self, const weir_rows *rows, weir_err *err)
{
    (void)rows, (void)err;
    return ((puppet *)self)->on_begin;
}

static weir_status puppet_value(void *self, const weir_value *v, weir_err *err)
{
    puppet *s = self;
    (void)v;
    s->values++;
    return s->says ? weir_fail(err, s->on_value, "the puppet's own words") : s->on_value;
}

static weir_status puppet_end(void *self, const weir_rows *rows, weir_err *err)
{
    (void)rows, (void)err;
    ((puppet *)self)->ends++;
    return WEIR_OK;
}

static const weir_hook_class puppet_class = {.struct_size = sizeof(weir_hook_class),
                                             .abi = WEIR_HOOK_ABI,
                                             .name = "puppet",
                                             .wants = puppet_wants,
                                             .on_begin = puppet_begin,
                                             .on_value = puppet_value,
                                             .on_end = puppet_end};

static weir_status run_puppet(puppet *s, int flags, weir_err *err)
{
    weir_run *r = kit_run(model, ROWS, 1, NULL, 1);
    weir_status st = weir_run_hook_object(r, &puppet_class, s, err);
    if (!st)
        st = weir_run_forward(r, &(weir_seq){.ids = ids, .n = 3, .slot = 0}, 1, flags, err);
    if (st)
        assert_int_equal(weir_run_slot_len(r, 0), 0);
    if (st == WEIR_STOP) {
        float logits[67];
        assert_int_equal(weir_run_logits(r, 0, 1, logits, NULL), WEIR_E_ARG);
    }
    weir_run_free(r);
    return st;
}

static void test_failures(void **state)
{
    weir_err err = {0};
    puppet s = {.want = WEIR_READ};
    (void)state;
    assert_int_equal(run_puppet(&s, 0, &err), WEIR_E_HOOK);
    assert_string_equal(err.msg, "hook puppet wants no point of this model");
    err = (weir_err){0};
    s = (puppet){.want = WEIR_WRITE, .point = "blocks.0.attn.hook_result"};
    assert_int_equal(run_puppet(&s, 0, &err), WEIR_E_HOOK);
    assert_non_null(strstr(err.msg, "blocks.0.attn.hook_result, which is read-only"));
    err = (weir_err){0};
    s = (puppet){.want = WEIR_READ, .point = "blocks.0.hook_attn_out", .on_value = WEIR_E_IO};
    assert_int_equal(run_puppet(&s, 0, &err), WEIR_E_IO);
    assert_string_equal(err.msg, "hook puppet failed at blocks.0.hook_attn_out");
    assert_true(s.values == 1 && s.ends == 0);
    err = (weir_err){0};
    s = (puppet){.want = WEIR_READ, .point = "blocks.0.hook_attn_out", .on_value = WEIR_E_IO, .says = true};
    assert_int_equal(run_puppet(&s, 0, &err), WEIR_E_IO);
    assert_string_equal(err.msg, "the puppet's own words");
    err = (weir_err){0};
    s = (puppet){.want = WEIR_READ, .point = "hook_embed", .on_begin = WEIR_E_NOMEM};
    assert_int_equal(run_puppet(&s, 0, &err), WEIR_E_NOMEM);
    assert_string_equal(err.msg, "hook puppet failed at the beginning of a pass");
}

static void test_stop(void **state)
{
    weir_err err = {0};
    puppet s = {.want = WEIR_READ, .point = "blocks.0.hook_attn_out", .on_value = WEIR_STOP};
    (void)state;
    assert_int_equal(run_puppet(&s, WEIR_FINAL, &err), WEIR_STOP);
    assert_true(err.code == WEIR_OK && s.values == 1 && s.ends == 1);
    s = (puppet){.want = WEIR_READ, .point = "blocks.0.hook_attn_out"};
    assert_int_equal(run_puppet(&s, WEIR_FINAL, &err), WEIR_OK);
}

/* What a program may hand over by mistake: the class of a name that does not exist, one built for other headers. */
static void test_no_class(void **state)
{
    static const weir_hook_class other = {.struct_size = sizeof other - sizeof(void *), .abi = WEIR_HOOK_ABI, .name = "other"};
    const weir_hook_class *cases[] = {NULL, &other};
    const char *says[] = {"of no class", "another version"};
    weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
    (void)state;
    for (int i = 0; i < 2; i++) {
        weir_err err = {0};
        assert_int_equal(weir_run_hook(r, cases[i], "post", &err), WEIR_E_HOOK);
        assert_non_null(strstr(err.msg, says[i]));
        assert_int_equal(weir_run_hook_object(r, cases[i], NULL, NULL), WEIR_E_HOOK);
    }
    weir_run_free(r);
}

static void test_too_late_and_never(void **state)
{
    weir_err err = {0};
    weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
    (void)state;
    attach_ok(r, "stats", "hook_embed");
    assert_int_equal(weir_run_finish(r, NULL, &err), WEIR_E_HOOK);
    assert_string_equal(err.msg, "hook stats never fired: no pass reached a point that it wants");
    kit_forward(r, ids, ROWS, -1, 0);
    err = (weir_err){0};
    assert_int_equal(attach(r, "stats", "hook_embed", &err), WEIR_E_HOOK);
    assert_non_null(strstr(err.msg, "too late"));
    err = (weir_err){0};
    kit_ok(weir_run_finish(r, NULL, &err), &err);
    weir_run_free(r);
    puppet never = {.want = WEIR_READ, .point = "blocks.1.hook_resid_post"};
    puppet stops = {.want = WEIR_READ, .point = "hook_embed", .on_value = WEIR_STOP};
    r = kit_run(model, ROWS, 0, NULL, 1);
    kit_ok(weir_run_hook_object(r, &puppet_class, &never, &err), &err);
    kit_ok(weir_run_hook_object(r, &puppet_class, &stops, &err), &err);
    assert_int_equal(weir_run_forward(r, &(weir_seq){.ids = ids, .n = 3, .slot = -1}, 1, 0, &err), WEIR_STOP);
    assert_int_equal(weir_run_finish(r, NULL, &err), WEIR_E_HOOK);
    weir_run_free(r);
}

/* --- rows as hooks see them */
typedef struct watcher {
    int pass, calls; /* of the second pass */
} watcher;

static weir_status watch(void *self, const weir_value *v, weir_err *err)
{
    static const int64_t pos[] = {0, 1, 3, 4, 0}, len[] = {2, 2, 5, 5, 1}, tag[] = {70, 70, -8, -8, 9};
    static const int seq[] = {0, 0, 1, 1, 2}, keep[] = {1, 1, 0, 1, 1};
    const weir_rows *w = v->rows;
    (void)err;
    if (((watcher *)self)->pass == 0)
        return WEIR_OK;
    ((watcher *)self)->calls++;
    assert_int_equal(w->n, 5);
    for (int t = 0; t < 5; t++) {
        assert_int_equal(w->pos[t], pos[t]);
        assert_int_equal(w->len[t], len[t]);
        assert_int_equal(w->tag[t], tag[t]);
        assert_int_equal(w->seq[t], seq[t]);
        assert_int_equal(w->keep[t], keep[t]);
        assert_int_equal(w->id[t], ids[t]);
    }
    if (v->point->site == WEIR_SITE_PATTERN)
        assert_int_equal(v->size, 5); /* the longest sequence, with what its slot holds */
    assert_int_equal(v->width, v->heads * v->size);
    return WEIR_OK;
}

static weir_want watcher_wants(void *self, const weir_point *p)
{
    (void)self;
    return p->site == WEIR_SITE_RESID_PRE || p->site == WEIR_SITE_PATTERN ? WEIR_READ : WEIR_NONE;
}

static weir_status watcher_end(void *self, const weir_rows *rows, weir_err *err)
{
    (void)rows, (void)err;
    ((watcher *)self)->pass++;
    return WEIR_OK;
}

static void test_rows(void **state)
{
    static const uint8_t keep[] = {0, 1};
    static const weir_hook_class c = {
        .struct_size = sizeof c, .abi = WEIR_HOOK_ABI, .name = "watcher", .wants = watcher_wants, .on_value = watch, .on_end = watcher_end};
    const weir_seq seq[] = {{.ids = ids, .n = 2, .slot = -1, .tag = 70},
                            {.ids = ids + 2, .n = 2, .slot = 0, .keep = keep, .tag = -8},
                            {.ids = ids + 4, .n = 1, .slot = -1, .tag = 9}};
    weir_err err = {0};
    watcher w = {0};
    weir_run *r = kit_run(model, ROWS, 1, NULL, 1);
    (void)state;
    kit_ok(weir_run_hook_object(r, &c, &w, &err), &err);
    kit_forward(r, ids, 3, 0, 0);
    kit_ok(weir_run_forward(r, seq, 3, 0, &err), &err);
    assert_int_equal(w.calls, 4); /* two points in each of two layers */
    weir_run_free(r);
}

/* --- the built-in hooks */

static void test_ablate(void **state)
{
    weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
    kit_tap t;
    const int64_t d = weir_model_info_of(model)->D, h = weir_model_info_of(model)->H, f = weir_model_info_of(model)->F;
    (void)state;
    kit_tap_init(&t, model);
    attach_ok(r, "ablate", "blocks.0.attn.hook_z[-1,1]=zero");
    attach_ok(r, "ablate", "L1N3[0+2],L1N3[0]");
    attach_ok(r, "ablate", "blocks.1.attn.hook_pattern[-1,0,2]");
    kit_attach(r, &t);
    kit_forward(r, ids, ROWS, -1, 0);
    const float *z = kit_heard(&t, model, "blocks.0.attn.hook_z");
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t i = 0; i < h * d; i++)
            assert_int_equal(z[row * h * d + i] == 0, row == ROWS - 1 && i / d == 1);
    const float *post = kit_heard(&t, model, "blocks.1.mlp.hook_post");
    for (int64_t row = 0; row < ROWS; row++)
        assert_int_equal(post[row * f + 3] == 0, row == 0 || row == 2);
    const float *p =
        kit_heard(&t, model, "blocks.1.attn.hook_pattern") + (ROWS - 1) * h * ROWS; /* S = ROWS here, not the context */
    for (int64_t i = 0; i < h * ROWS; i++)
        assert_int_equal(p[i] == 0, i == 2);
    weir_run_free(r);
    kit_tap_free(&t);
    weir_err err = {0};
    r = kit_run(model, ROWS, 0, NULL, 1);
    attach_ok(r, "ablate", "L1N3[99]");
    kit_forward(r, ids, ROWS, -1, 0);
    assert_int_equal(weir_run_finish(r, NULL, &err), WEIR_E_HOOK);
    assert_non_null(strstr(err.msg, "L1N3[99] changed nothing"));
    weir_run_free(r);
    refused("ablate", NULL, "needs a selector");
    refused("ablate", "post=mean:nowhere.h5", "cannot open");
    refused("ablate", "post=one", "zero or mean:FILE was expected");
    refused("ablate", "pots", "the nearest is \"post\"");
    refused("ablate", "blocks.0.attn.hook_result", "read-only");
}

/* Rows of a text in lines and tabs. */
static char *cell(char *text, int line, int column)
{
    static char out[256];
    for (; line > 0; line--) {
        text = strchr(text, '\n');
        assert_non_null(text);
        text++;
    }
    for (; column > 0; column--)
        text = strchr(text, '\t') + 1;
    size_t n = strcspn(text, "\t\n");
    assert_true(n < sizeof out);
    memcpy(out, text, n);
    out[n] = 0;
    return out;
}

/* Mean, standard deviation, extremes and share above zero of n numbers, the plain way. */
typedef struct facts {
    double mean, sd, min, max, positive;
} facts;

static facts facts_of(const float *x, int64_t n, int64_t stride)
{
    facts f = {.min = INFINITY, .max = -INFINITY};
    for (int64_t i = 0; i < n; i++) {
        double v = x[i * stride];
        f.mean += v / (double)n;
        f.positive += (v > 0) / (double)n;
        f.min = v < f.min ? v : f.min;
        f.max = v > f.max ? v : f.max;
    }
    for (int64_t i = 0; i < n; i++)
        f.sd += (x[i * stride] - f.mean) * (x[i * stride] - f.mean) / (double)n;
    f.sd = sqrt(f.sd);
    return f;
}

static void close_to(const char *text, double want, double digits)
{
    if (!(fabs(atof(text) - want) <= digits * (fabs(want) + 1e-3)))
        fail_msg("%s is not %.9g", text, want);
}

static void test_log(void **state)
{
    char text[8192];
    weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
    kit_tap t;
    const int64_t n = ROWS * weir_model_info_of(model)->C;
    (void)state;
    kit_tap_init(&t, model);
    kit_attach(r, &t);
    attach_ok(r, "log", "blocks.0.hook_resid_post,blocks.0.attn.hook_attn_scores,L1N3[0+2]");
    kit_forward(r, ids, ROWS, -1, 0);
    const float *x = kit_heard(&t, model, "blocks.0.hook_resid_post");
    facts f = facts_of(x, n, 1);
    char first[128], shape[64];
    snprintf(first, sizeof first, "%.6g %.6g %.6g %.6g", (double)x[0], (double)x[1], (double)x[2], (double)x[3]);
    snprintf(shape, sizeof shape, "%d,%lld", ROWS, (long long)weir_model_info_of(model)->C);
    kit_forward(r, ids, 2, -1, 0);
    finish_text(r, text, sizeof text);
    assert_string_equal(cell(text, 0, 0), "pass");
    assert_string_equal(cell(text, 1, 1), "blocks.0.attn.hook_attn_scores");
    assert_string_equal(cell(text, 1, 3), "135"); /* 3 heads, 9 * 10 / 2 visible keys: masked ones do not count */
    assert_string_equal(cell(text, 2, 1), "blocks.0.hook_resid_post");
    assert_string_equal(cell(text, 2, 2), shape);
    close_to(cell(text, 2, 4), f.mean, 1e-5);
    close_to(cell(text, 2, 5), f.sd, 1e-5);
    close_to(cell(text, 2, 6), f.min, 1e-5);
    close_to(cell(text, 2, 7), f.max, 1e-5);
    assert_string_equal(cell(text, 2, 8), first);
    assert_string_equal(cell(text, 3, 1), "blocks.1.mlp.hook_post");
    assert_string_equal(cell(text, 3, 3), "2");
    assert_string_equal(cell(text, 4, 0), "1"); /* the second pass */
    weir_run_free(r);
    kit_tap_free(&t);
    refused("log", "pots", "the nearest is");
}

static void test_stats(void **state)
{
    char whole[8192], cut[8192];
    const int64_t f = weir_model_info_of(model)->F;
    kit_tap t;
    (void)state;
    kit_tap_init(&t, model);
    for (int pieces = 0; pieces < 2; pieces++) {
        weir_run *r = kit_run(model, ROWS, 1, NULL, 1);
        if (!pieces)
            kit_attach(r, &t);
        attach_ok(r, "stats", "blocks.0.mlp.hook_post,blocks.1.mlp.hook_post[:,5+2]");
        if (pieces) { /* the same text in two passes */
            kit_forward(r, ids, 4, 0, 0);
            kit_forward(r, ids + 4, ROWS - 4, 0, 0);
        } else {
            kit_forward(r, ids, ROWS, 0, 0);
        }
        finish_text(r, pieces ? cut : whole, sizeof whole);
        weir_run_free(r);
    }
    assert_string_equal(whole, cut);
    facts all = facts_of(kit_heard(&t, model, "blocks.0.mlp.hook_post"), ROWS * f, 1);
    facts five = facts_of(kit_heard(&t, model, "blocks.1.mlp.hook_post") + 5, ROWS, f);
    assert_string_equal(cell(whole, 1, 0), "blocks.0.mlp.hook_post");
    assert_string_equal(cell(whole, 1, 1), "all");
    close_to(cell(whole, 1, 2), (double)(ROWS * f), 0);
    close_to(cell(whole, 1, 3), all.mean, 1e-8);
    close_to(cell(whole, 1, 4), all.sd, 1e-8);
    close_to(cell(whole, 1, 5), all.min, 1e-8);
    close_to(cell(whole, 1, 6), all.max, 1e-8);
    close_to(cell(whole, 1, 7), all.positive, 1e-5);
    assert_string_equal(cell(whole, 2, 1), "2");
    assert_string_equal(cell(whole, 3, 1), "5");
    assert_string_equal(cell(whole, 3, 2), "9");
    close_to(cell(whole, 3, 3), five.mean, 1e-8);
    close_to(cell(whole, 3, 4), five.sd, 1e-8);
    kit_tap_free(&t);
}

static void test_template(void **state)
{
    char text[8192];
    weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
    kit_tap t;
    float best = -1;
    int64_t at = 0, c = weir_model_info_of(model)->C;
    (void)state;
    kit_tap_init(&t, model);
    kit_attach(r, &t);
    attach_ok(r, "template", "blocks.1.hook_resid_post");
    kit_forward(r, ids, ROWS, -1, 0);
    const float *x = kit_heard(&t, model, "blocks.1.hook_resid_post");
    for (int64_t i = 0; i < ROWS * c; i++)
        if (fabsf(x[i]) > best) {
            best = fabsf(x[i]);
            at = i;
        }
    finish_text(r, text, sizeof text);
    char want[256];
    snprintf(want, sizeof want,
             "hook\tlargest\ttoken\tposition\telement\nblocks.1.hook_resid_post\t%.9g\t%d\t%lld\t%lld\n", (double)best,
             ids[at / c], (long long)(at / c), (long long)(at % c));
    assert_string_equal(text, want);
    weir_run_free(r);
    kit_tap_free(&t);
}

/* Kept rows only. */
static void test_keep(void **state)
{
    static const uint8_t keep[ROWS] = {0, 0, 1};
    static const char *const names[] = {"stats", "log"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[4096];
        weir_err err = {0};
        weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
        attach_ok(r, names[i], "hook_embed[:,0]");
        weir_seq s = {.ids = ids, .n = ROWS, .slot = -1, .keep = keep};
        kit_ok(weir_run_forward(r, &s, 1, 0, &err), &err);
        finish_text(r, text, sizeof text);
        assert_string_equal(cell(text, 1, i ? 3 : 2), "1");
        weir_run_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registry), cmocka_unit_test(test_order_of_attaching),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_stop),
        cmocka_unit_test(test_rows),     cmocka_unit_test(test_too_late_and_never),
        cmocka_unit_test(test_ablate),   cmocka_unit_test(test_log),
        cmocka_unit_test(test_stats),    cmocka_unit_test(test_template),
        cmocka_unit_test(test_keep),     cmocka_unit_test(test_no_class),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
