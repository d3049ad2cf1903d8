/* Hooks that keep something of each row (topk, lens), statistics files, and hooks that say when it is enough. */
#include <math.h>

#include "run_kit.h"
#include "support/said.h"
#include "support/scratch.h"

enum { ROWS = 9 };

static weir_model *model;
static const weir_model_info *info;
static int32_t *ids;
static char text[1 << 20]; /* what the hook of the last run printed */

static int set_up(void **state)
{
    model = kit_open(KIT_GPT2);
    info = weir_model_info_of(model);
    ids = kit_ids(model, ROWS, 31);
    return scratch_make(state);
}

static int tear_down(void **state)
{
    weir_model_free(model);
    free(ids);
    return scratch_remove(state);
}

static void attach(weir_run *r, const char *name, const char *args)
{
    weir_err err = {0};
    kit_ok(weir_run_hook(r, weir_hook_class_find(name), args, &err), &err);
}

static void refused(const char *name, const char *args, const char *says)
{
    weir_err err = {0};
    weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
    assert_true(weir_run_hook(r, weir_hook_class_find(name), args, &err) < 0);
    assert_true(said(&err, err.code, says));
    weir_run_free(r);
}

static void finish(weir_run *r)
{
    weir_err err = {0};
    FILE *f = tmpfile();
    assert_non_null(f);
    kit_ok(weir_run_finish(r, f, &err), &err);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    weir_run_free(r);
}

/* One pass over the ids with a hook and, behind it, a tap. */
static void run_with_tap(const char *name, const char *args, kit_tap *t)
{
    weir_run *r = kit_run(model, ROWS, 0, NULL, 2);
    kit_tap_init(t, model);
    attach(r, name, args);
    kit_attach(r, t);
    weir_err err = {0};
    weir_seq s = {.ids = ids, .n = ROWS, .slot = -1, .tag = 40};
    kit_ok(weir_run_forward(r, &s, 1, WEIR_FINAL, &err), &err);
    finish(r);
}

/* The next line of the text, split at its tabs. */
typedef struct reader {
    char *at, *cell[8];
    int n;
} reader;

static bool next_line(reader *r)
{
    if (!*r->at)
        return false;
    char *end = strchr(r->at, '\n');
    assert_non_null(end);
    *end = 0;
    r->n = 0;
    for (char *p = r->at; p && r->n < 8; r->n++) {
        r->cell[r->n] = p;
        p = strchr(p, '\t');
        if (p)
            *p++ = 0;
    }
    r->at = end + 1;
    return true;
}

static reader read_text(const char *header)
{
    reader r = {.at = text};
    assert_int_equal(strncmp(text, header, strlen(header)), 0);
    assert_true(next_line(&r));
    return r;
}

/* --- topk */

static double key(char order, float x)
{
    return order == 'a' ? fabs((double)x) : order == 's' ? -(double)x : (double)x;
}

/* How many elements of the row come before element i. */
static int64_t rank_of(char order, const float *row, int64_t n, int64_t i)
{
    int64_t rank = 0;
    for (int64_t j = 0; j < n; j++)
        rank += key(order, row[j]) > key(order, row[i]) || (key(order, row[j]) == key(order, row[i]) && j < i);
    return rank;
}

static void topk_is_a_search_through_the_row(void **state)
{
    static const char *const args[] = {"L0H1,blocks.1.mlp.hook_post,k=4", "post,sel=z,k=4,smallest", "k=4,post,z,abs"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        kit_tap t;
        int64_t lines = 0;
        run_with_tap("topk", args[i], &t);
        reader r = read_text("hook\tdocument\tposition\ttoken\trank\tunit\tvalue\n");
        for (; next_line(&r); lines++) {
            const weir_point *p = weir_model_point(model, r.cell[0]);
            assert_non_null(p);
            const float *row = kit_heard(&t, model, r.cell[0]) + atoi(r.cell[2]) * p->width;
            bool head = i == 0 && p->site == WEIR_SITE_Z; /* L0H1: units of one head only, counted in the whole row */
            int64_t first = head ? p->size : 0, n = head ? p->size : p->width, unit = atoi(r.cell[5]);
            assert_int_equal(r.n, 7);
            assert_int_equal(atoi(r.cell[1]), 40);
            assert_int_equal(atoi(r.cell[3]), ids[atoi(r.cell[2])]);
            assert_true(unit >= first && unit < first + n);
            assert_true((float)atof(r.cell[6]) == row[unit]);
            assert_int_equal(rank_of("lsa"[i], row + first, n, unit - first) + 1, atoi(r.cell[4]));
        }
        assert_int_equal(lines, (i ? 2 * info->L : 2) * ROWS * 4);
        kit_tap_free(&t);
    }
}

/* Ties, not-a-number and rows with too few elements, in values that the test makes itself. */
static void topk_in_odd_rows(void **state)
{
    const weir_hook_class *c = weir_hook_class_find("topk");
    const weir_point *p = weir_model_point(model, "blocks.0.attn.hook_pattern");
    const float keys[3][2] = {{1, NAN}, {NAN, NAN}, {2, 1}}; /* three heads, two keys */
    const int32_t id = 5, seq = 0;
    const int64_t pos = 0, one = 1, tag = -3;
    const uint8_t keep_row = 1;
    const weir_rows rows = {1, &id, &seq, &pos, &keep_row, &one, &tag, &pos, &one, 1};
    const weir_value v = {p, (float *)keys, 6, 3, 2, &rows};
    void *self;
    weir_err err = {0};
    (void)state;
    kit_ok(c->create(&self, model, "pattern,k=5", &err), &err);
    kit_ok(c->on_value(self, &v, &err), &err);
    FILE *f = tmpfile();
    assert_non_null(f);
    kit_ok(c->finish(self, f, &err), &err);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    c->destroy(self);
    char want[512];
    const char *name = p->name;
    long long ctx = (long long)p->size;
    snprintf(want, sizeof want,
             "hook\tdocument\tposition\ttoken\trank\tunit\tvalue\n%s\t-3\t0\t5\t1\t%lld\t2\n%s\t-3\t0\t5\t2\t0\t1\n"
             "%s\t-3\t0\t5\t3\t%lld\t1\n",
             name, 2 * ctx, name, name, 2 * ctx + 1);
    assert_string_equal(text, want);
}

static void topk_prints_a_bounded_number_of_rows(void **state)
{
    (void)state;
    int64_t most = 100000 / 2000;
    char says[128];
    weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
    attach(r, "topk", "blocks.0.attn.hook_pattern,k=2000");
    for (int i = 0; i < 6; i++)
        kit_forward(r, ids, ROWS, -1, 0);
    finish(r);
    snprintf(says, sizeof says, "# blocks.0.attn.hook_pattern: %lld more rows are not printed",
             (long long)(6 * ROWS - most));
    assert_non_null(strstr(text, says));
}

static void only_selected_rows_count(void **state)
{
    static const char *const names[] = {"topk", "lens"}, *const args[] = {"blocks.1.hook_resid_post[-2],k=1",
                                                                          "blocks.1.hook_resid_post[-2],k=1"};
    static const uint8_t keep_rows[ROWS] = {1, 1, 0, 1, 1, 1, 1, 1, 1};
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int drop = 0; drop < 2; drop++) {
            weir_err err = {0};
            uint8_t keep[ROWS];
            memcpy(keep, keep_rows, sizeof keep);
            keep[ROWS - 2] = !drop;
            weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
            attach(r, names[i], args[i]);
            weir_seq s = {.ids = ids, .n = ROWS, .slot = -1, .keep = keep};
            kit_ok(weir_run_forward(r, &s, 1, 0, &err), &err);
            finish(r);
            reader lines = read_text("hook\tdocument\tposition\ttoken\trank\t");
            assert_int_equal(next_line(&lines), !drop);
            if (!drop)
                assert_int_equal(atoi(lines.cell[2]), ROWS - 2);
            assert_false(next_line(&lines));
        }
}

/* --- lens */

static void lens_of_the_last_layer_is_the_prediction(void **state)
{
    enum { K = 3 };
    kit_tap t;
    float logprob[ROWS];
    int32_t target[ROWS];
    int64_t lines = 0;
    (void)state;
    weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
    kit_forward(r, ids, ROWS, -1, WEIR_FINAL);
    float *logits = malloc((size_t)(ROWS * info->V) * sizeof *logits);
    assert_non_null(logits);
    assert_int_equal(weir_run_logits(r, 0, ROWS, logits, NULL), WEIR_OK);
    run_with_tap("lens", "k=3", &t); /* every layer */
    reader l = read_text("hook\tdocument\tposition\ttoken\trank\tprediction\tlogprob\ttext\n");
    for (; next_line(&l); lines++) {
        int row = atoi(l.cell[2]), id = atoi(l.cell[5]);
        assert_int_equal(l.n, 8);
        assert_int_equal(atoi(l.cell[3]), ids[row]);
        if (strcmp(l.cell[0], "blocks.1.hook_resid_post") != 0)
            continue;
        assert_int_equal(rank_of('l', logits + row * info->V, info->V, id) + 1, atoi(l.cell[4]));
        for (int i = 0; i < ROWS; i++)
            target[i] = id;
        assert_int_equal(weir_run_logprobs(r, target, logprob, NULL), WEIR_OK);
        assert_true((float)atof(l.cell[6]) == logprob[row]);
    }
    assert_int_equal(lines, info->L * ROWS * K);
    free(logits);
    weir_run_free(r);
    kit_tap_free(&t);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    refused("topk", NULL, "topk needs a selector");
    refused("topk", "k=3", "topk needs a selector");
    refused("topk", "post,k=0", "k=0 must be a whole number");
    refused("topk", "post,abs,smallest", "exclude each other");
    refused("topk", "post,kk=3", "the nearest is \"k\"");
    refused("topk", "pots", "the nearest is \"post\"");
    refused("lens", "post", "mlp.hook_post is not the residual stream");
    refused("lens", "resid_post[:,3]", "units cannot be chosen");
    refused("lens", "k=100000", "k=100000 must be a whole number from 1 to");
    refused("stats", "x=post", "stats:FILE.h5=SEL");
    refused("stats", ".h5=post", "stats:FILE.h5=SEL");
    refused("stats", "x.h5=", "stats:FILE.h5=SEL");
    char args[1100];
    snprintf(args, sizeof args, "%s=pots", scratch("none.h5"));
    refused("stats", args, "the nearest is \"post\"");
    assert_false(scratch_exists("none.h5.part"));
    snprintf(args, sizeof args, "%s/a/b.h5=post", scratch_root);
    refused("stats", args, "cannot create");
    snprintf(args, sizeof args, "%s=post", scratch_text("text.h5", "not ours\n"));
    refused("stats", args, "is not a file of weir's");
    snprintf(args, sizeof args, "%s=post", scratch("taken.h5"));
    scratch_text("taken.h5.part", "");
    refused("stats", args, "taken.h5.part exists");
    assert_true(scratch_exists("taken.h5.part"));
}

/* A statistics file appears at the end, and only then. */
static void a_statistics_file_appears_whole(void **state)
{
    char args[1100];
    (void)state;
    snprintf(args, sizeof args, "%s=post", scratch("s.h5"));
    for (int i = 0; i < 2; i++) {
        weir_run *r = kit_run(model, ROWS, 0, NULL, 1);
        attach(r, "stats", args);
        kit_forward(r, ids, ROWS, -1, 0);
        assert_true(scratch_exists("s.h5.part") && !scratch_exists("s.h5"));
        if (i)
            finish(r);
        else
            weir_run_free(r); /* a run that does not come to its end */
        assert_false(scratch_exists("s.h5.part"));
        assert_int_equal(scratch_exists("s.h5"), i);
    }
}

/* --- enough */

typedef struct counter {
    int values, ends, most; /* most: ends that are enough */
    weir_status value;
} counter;

static weir_want counter_wants(void *self, const weir_point *p)
{
    (void)self;
    return p->site == WEIR_SITE_RESID_POST && p->layer == 0 ? WEIR_READ : WEIR_NONE;
}

static weir_status counter_value(void *self, const weir_value *v, weir_err *err)
{
    (void)v, (void)err;
    ((counter *)self)->values++;
    return ((counter *)self)->value;
}

static weir_status counter_end(void *self, const weir_rows *rows, weir_err *err)
{
    counter *c = self;
    (void)rows, (void)err;
    return ++c->ends >= c->most ? WEIR_STOP : WEIR_OK;
}

static const weir_hook_class counter_class = {.struct_size = sizeof(weir_hook_class),
                                              .abi = WEIR_HOOK_ABI,
                                              .name = "counter",
                                              .wants = counter_wants,
                                              .on_value = counter_value,
                                              .on_end = counter_end};

/* The pass in which a hook has seen enough is whole: hooks, logits and slots are as after any other. */
static void enough_is_said_at_the_end_of_a_pass(void **state)
{
    weir_err err = {0};
    counter first = {.most = 2}, second = {.most = 100};
    float logits[ROWS * 128];
    weir_run *r = kit_run(model, ROWS, 1, NULL, 1);
    (void)state;
    assert_true(info->V <= 128);
    kit_ok(weir_run_hook_object(r, &counter_class, &first, &err), &err);
    kit_ok(weir_run_hook_object(r, &counter_class, &second, &err), &err);
    for (int i = 1; i <= 2; i++) {
        assert_false(weir_run_enough(r));
        kit_forward(r, ids, 3, 0, WEIR_FINAL);
        assert_true(first.ends == i && second.ends == i && second.values == i);
        assert_int_equal(weir_run_slot_len(r, 0), 3 * i);
        assert_int_equal(weir_run_logits(r, 0, 3, logits, NULL), WEIR_OK);
    }
    assert_true(weir_run_enough(r));
    kit_forward(r, ids, 3, 0, 0); /* a program may go on */
    assert_true(weir_run_enough(r) && first.ends == 3);
    weir_run_free(r);
}

/* A pass that on_value stops is not whole, and that alone does not say enough. */
static void a_stopped_pass_is_another_thing(void **state)
{
    weir_err err = {0};
    counter c = {.most = 100, .value = WEIR_STOP};
    weir_run *r = kit_run(model, ROWS, 1, NULL, 1);
    (void)state;
    kit_ok(weir_run_hook_object(r, &counter_class, &c, &err), &err);
    assert_int_equal(weir_run_forward(r, &(weir_seq){.ids = ids, .n = 3, .slot = 0}, 1, WEIR_FINAL, &err), WEIR_STOP);
    assert_true(c.ends == 1 && !weir_run_enough(r));
    assert_int_equal(weir_run_slot_len(r, 0), 0);
    weir_run_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topk_is_a_search_through_the_row),
        cmocka_unit_test(topk_in_odd_rows),
        cmocka_unit_test(topk_prints_a_bounded_number_of_rows),
        cmocka_unit_test(only_selected_rows_count),
        cmocka_unit_test(lens_of_the_last_layer_is_the_prediction),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(a_statistics_file_appears_whole),
        cmocka_unit_test(enough_is_said_at_the_end_of_a_pass),
        cmocka_unit_test(a_stopped_pass_is_another_thing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
