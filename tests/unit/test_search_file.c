/* Result files: the same search writes the same bytes; read and written again it is the same file; shards merged in any
 * order are the file of one run; what was read goes on as if it had never stopped; what does not belong together is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "search/impl.h"
#include "search_world.h"
#include "support/said.h"

static weir_neurons *searched(const weir_neurons_options *o, int64_t first, int64_t end, uint64_t cut)
{
    weir_err err = {0};
    weir_neurons *s;
    if (world_search(&s, o, first, end, cut, &err))
        fail_msg("%s", err.msg);
    return s;
}

static const char *written(weir_neurons *s, const char *name, const weir_neurons_about *about)
{
    weir_err err = {0};
    const char *path = scratch(name);
    if (weir_neurons_write(s, path, about, &err))
        fail_msg("%s", err.msg);
    return path;
}

static weir_neurons *read_back(const char *path)
{
    weir_err err = {0};
    weir_neurons *s;
    if (weir_neurons_read(&s, path, 1, &err))
        fail_msg("%s", err.msg);
    return s;
}

static bool same_files(const char *a, const char *b)
{
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    assert_true(f && g);
    int x, y;
    do {
        x = getc(f);
        y = getc(g);
    } while (x == y && x != EOF);
    fclose(f);
    fclose(g);
    return x == y;
}

/* The file of one run over everything. */
static const char *whole_file(const weir_neurons_options *o)
{
    static char path[1024]; /* what scratch returns is not valid for long */
    weir_neurons_about about = world_about(0, 0);
    about.rows_done = 1000;
    weir_neurons *s = searched(o, 0, WORLD_DOCS, 1);
    snprintf(path, sizeof path, "%s", written(s, "whole.h5", &about));
    weir_neurons_free(s);
    return path;
}

/* --- writing and reading */

static void test_equal_files(void **state)
{
    (void)state;
    const weir_neurons_about about = world_about(0, 0);
    for (int set = 0; set < WORLD_SETS; set++) {
        weir_neurons_options o = world_options(set);
        weir_neurons *s = searched(&o, 0, WORLD_DOCS, 1);
        o.threads = 1;
        o.kernel = "ref";
        weir_neurons *again = searched(&o, 0, WORLD_DOCS, 999);
        const char *a = written(s, "a.h5", &about), *b = written(again, "b.h5", &about);
        assert_true(same_files(a, b));
        weir_neurons *back = read_back(a);
        const char *c = written(back, "c.h5", weir_neurons_about_of(back));
        assert_true(same_files(a, c));
        assert_true(weir_neurons_is_file(a));
        assert_false(scratch_exists("a.h5.new"));
        weir_neurons_free(s);
        weir_neurons_free(again);
        weir_neurons_free(back);
    }
}

static void test_comparison_can_fail(void **state)
{
    (void)state;
    const weir_neurons_options o = world_options(0);
    const weir_neurons_about about = world_about(0, 0);
    weir_neurons *s = searched(&o, 0, WORLD_DOCS, 1), *less = searched(&o, 0, WORLD_DOCS - 1, 1);
    const char *a = written(s, "a.h5", &about), *b = written(less, "b.h5", &about);
    assert_false(same_files(a, b));
    weir_neurons_free(s);
    weir_neurons_free(less);
}

static bool same_hits(const weir_neuron_hit *a, const weir_neuron_hit *b, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        if (memcmp(&a[j].value, &b[j].value, sizeof a[j].value) != 0 || a[j].doc != b[j].doc || a[j].pos != b[j].pos ||
            a[j].count != b[j].count)
            return false;
    return true;
}

static bool same_context(const weir_neurons *a, const weir_neurons *b, const weir_neuron_hit *hit, int named)
{
    const weir_neurons_context x = weir_neurons_context_of(a, hit->doc, hit->pos, named),
                               y = weir_neurons_context_of(b, hit->doc, hit->pos, named);
    if (x.n != y.n || x.hit != y.hit || x.pos != y.pos || x.begins != y.begins || x.ends != y.ends || !x.n)
        return false;
    for (int64_t i = 0; i < x.n; i++)
        if (x.id[i] != y.id[i] || (x.value && memcmp(&x.value[i], &y.value[i], sizeof *x.value) != 0 &&
                                   !(isnan(x.value[i]) && isnan(y.value[i]))))
            return false;
    return !x.value == !y.value;
}

/* What a search says, against what it says of itself after the file: not by way of a second file. */
static void check_answers(const weir_neurons *a, const weir_neurons *b)
{
    const weir_neurons_options *o = weir_neurons_options_of(a);
    weir_neuron_hit x[128], y[128];
    for (int t = 0; t < WORLD_TABLES; t++)
        for (int64_t i = 0; i < weir_neurons_table_at(a, t)->n; i++) {
            weir_neuron_stats p, q;
            weir_neurons_stats(a, t, i, &p);
            weir_neurons_stats(b, t, i, &q);
            assert_int_equal(p.count, q.count);
            assert_memory_equal(&p.sd, &q.sd, sizeof p.sd);
            assert_memory_equal(&p.max, &q.max, sizeof p.max);
            for (int which = 0; which < WEIR_NEURONS_LISTS; which++) {
                const int64_t n = weir_neurons_hits(a, t, i, (weir_neurons_list)which, x);
                assert_int_equal(n, weir_neurons_hits(b, t, i, (weir_neurons_list)which, y));
                assert_true(same_hits(x, y, n));
                const int named = weir_neurons_find_named(a, t, i);
                for (int64_t j = 0; j < n; j++)
                    assert_true(same_context(a, b, &x[j], named));
            }
            for (int band = 0; band < WEIR_NEURONS_BANDS && o->per_band; band++) {
                const int64_t n = weir_neurons_band(a, t, i, band, x);
                assert_int_equal(n, weir_neurons_band(b, t, i, band, y));
                assert_true(same_hits(x, y, n));
            }
        }
}

static void test_answers(void **state)
{
    (void)state;
    const weir_neurons_about about = world_about(1, 3);
    for (int set = 0; set < WORLD_SETS; set++) {
        const weir_neurons_options o = world_options(set);
        weir_neurons *s = searched(&o, 0, WORLD_DOCS, 1);
        weir_neurons *back = read_back(written(s, "a.h5", &about));
        check_answers(s, back);
        const weir_neurons_about *a = weir_neurons_about_of(back);
        assert_string_equal(a->source, about.source);
        assert_int_equal(a->shard, 1);
        assert_int_equal(a->shards, 3);
        assert_true(a->complete);
        assert_int_equal(weir_neurons_counts_of(back).masked[WEIR_MASK_BOS], WORLD_DOCS);
        assert_true(weir_neurons_token_special(back, 0));
        assert_int_equal(weir_neurons_token(back, 9).n, 0);
        assert_int_equal(weir_neurons_options_of(back)->seed, o.seed);
        weir_neurons_free(s);
        weir_neurons_free(back);
    }
}

/* Large enough for packed chunks. */
static void test_large(void **state)
{
    (void)state;
    static weir_neurons_table t = {"hook_embed", "hook_embed", -1, 3000, 3000, NULL};
    weir_neurons_options o;
    weir_neurons *s;
    weir_err err = {0};
    enum { ROWS = 40 };
    float *x = calloc(ROWS * 3000, sizeof *x);
    int32_t id[ROWS];
    int64_t doc[ROWS] = {0}, pos[ROWS];
    for (int r = 0; r < ROWS; r++) {
        id[r] = r;
        pos[r] = r;
        for (int u = 0; u < 3000; u++)
            x[r * 3000 + u] = world_value(0, u * 2, r, u % 7);
    }
    const weir_neurons_rows_of rows = {.n = ROWS, .id = id, .doc = doc, .pos = pos, .ctx_pos = pos};
    weir_neurons_options_init(&o);
    assert_int_equal(weir_neurons_new(&s, &o, &t, 1, &err), WEIR_OK);
    assert_int_equal(weir_neurons_rows(s, &rows, false, &err), WEIR_OK);
    assert_int_equal(weir_neurons_add(s, 0, &(weir_neurons_values){.x = x, .stride = 3000, .whole = true}, &err), 0);
    assert_int_equal(weir_neurons_finish(s, &err), WEIR_OK);
    const weir_neurons_about about = {0};
    const char *a = written(s, "large.h5", &about);
    weir_neurons *back = read_back(a);
    assert_true(same_files(a, written(back, "large2.h5", weir_neurons_about_of(back))));
    for (int u = 0; u < 3000; u += 17) {
        weir_neuron_hit h[20], g[20];
        assert_int_equal(weir_neurons_hits(s, 0, u, WEIR_NEURONS_TOP, h), 20);
        assert_int_equal(weir_neurons_hits(back, 0, u, WEIR_NEURONS_TOP, g), 20);
        assert_true(same_hits(h, g, 20));
    }
    weir_neurons_free(s);
    weir_neurons_free(back);
    free(x);
}

/* --- merging */

enum { SHARDS = 5 };
/* One shard has one document, one has none. */
static const int64_t shard_end[SHARDS] = {14, 15, 33, 33, WORLD_DOCS};

static weir_neurons *shard_of(const weir_neurons_options *o, int i, bool through_file)
{
    char name[32];
    weir_neurons_about about = world_about(i, SHARDS);
    about.rows_done = 200;
    snprintf(name, sizeof name, "shard%d.h5", i);
    weir_neurons *s = searched(o, i ? shard_end[i - 1] : 0, shard_end[i], (uint64_t)i * 31);
    const char *path = written(s, name, &about);
    if (!through_file)
        return s;
    weir_neurons_free(s);
    return read_back(path);
}

static void merge_into(weir_neurons *to, weir_neurons *from)
{
    weir_err err = {0};
    if (weir_neurons_merge(to, from, &err))
        fail_msg("%s", err.msg);
    weir_neurons_free(from);
}

static void finish(weir_neurons *s)
{
    weir_err err = {0};
    if (weir_neurons_finish(s, &err))
        fail_msg("%s", err.msg);
}

static void test_merge(void **state)
{
    (void)state;
    static const int order[][SHARDS] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 4, 0, 3, 1}};
    for (int set = 0; set < WORLD_SETS; set++) {
        const weir_neurons_options o = world_options(set);
        const char *whole = whole_file(&o);
        for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
            weir_neurons *s = shard_of(&o, order[k][0], k == 1);
            for (int i = 1; i < SHARDS; i++)
                merge_into(s, shard_of(&o, order[k][i], (int)k + i > 2));
            finish(s);
            assert_int_equal(weir_neurons_about_of(s)->shards, 0);
            assert_true(same_files(whole, written(s, "merged.h5", weir_neurons_about_of(s))));
            weir_neurons_free(s);
        }
    }
}

/* Merged results are merged: (1 + 3) + (0 + 4) + 2, all by way of files. */
static void test_merge_of_merged(void **state)
{
    (void)state;
    for (int set = 0; set < WORLD_SETS; set += 2) {
        const weir_neurons_options o = world_options(set);
        const char *whole = whole_file(&o);
        weir_neurons *a = shard_of(&o, 3, true), *b = shard_of(&o, 4, true);
        merge_into(a, shard_of(&o, 1, true));
        finish(a);
        assert_int_equal(weir_neurons_about_of(a)->shard, 1);
        assert_int_equal(weir_neurons_about_of(a)->shards, SHARDS);
        merge_into(b, shard_of(&o, 0, true));
        finish(b);
        const char *first = written(a, "part1.h5", weir_neurons_about_of(a));
        const char *second = written(b, "part2.h5", weir_neurons_about_of(b));
        weir_neurons_free(a);
        weir_neurons_free(b);
        a = read_back(second);
        merge_into(a, read_back(first));
        merge_into(a, shard_of(&o, 2, true));
        finish(a);
        assert_true(same_files(whole, written(a, "merged.h5", weir_neurons_about_of(a))));
        weir_neurons_free(a);
    }
}

/* Where the small counters of a histogram are full, and where a text has more rows than they can count. */
static void test_many_rows(void **state)
{
    (void)state;
    enum { ZERO = WEIR_NEURONS_BIN_SIDE + 1 };
    const int64_t more = INT64_C(1) << 33;
    const weir_neurons_options o = world_options(1);
    const char *whole = whole_file(&o);
    weir_neurons *s = shard_of(&o, 0, false);
    for (int i = 1; i < SHARDS; i++) {
        for (int t = 0; t < WORLD_TABLES && i % 2; t++)
            s->table[t].hist_rows = INT32_MAX; /* as if so many had been counted since the last spill */
        merge_into(s, shard_of(&o, i, false));
    }
    finish(s);
    assert_non_null(s->table[0].hist_all);
    assert_true(same_files(whole, written(s, "merged.h5", weir_neurons_about_of(s))));
    for (int t = 0; t < WORLD_TABLES; t++) {
        s->table[t].rows += more;
        for (int64_t i = 0; i < s->table[t].n; i++)
            s->table[t].hist_all[i * WEIR_NEURONS_BINS + ZERO] += more;
    }
    const char *path = written(s, "many.h5", weir_neurons_about_of(s));
    weir_neurons *back = read_back(path);
    assert_true(same_files(path, written(back, "again.h5", weir_neurons_about_of(back))));
    int64_t hist[WEIR_NEURONS_BINS];
    weir_neurons_hist(back, 0, 0, hist);
    assert_true(hist[ZERO] >= more);
    weir_neurons_free(s);
    weir_neurons_free(back);
}

/* What is said when two do not belong together. */
static void refuse(weir_neurons *to, weir_neurons *from, const char *words)
{
    weir_err err = {0};
    assert_int_equal(weir_neurons_merge(to, from, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, words));
}

static void test_merge_refuses(void **state)
{
    (void)state;
    const weir_neurons_options o = world_options(0);
    weir_neurons *s = shard_of(&o, 0, false), *other = shard_of(&o, 1, true), *same = shard_of(&o, 0, true);
    refuse(s, same, "both have shard 0 of 5");
    merge_into(s, other);
    finish(s);
    refuse(s, same, "both have shard 0 of 5");
    weir_neurons_free(same);

    weir_neurons_about about = world_about(2, SHARDS);
    other = searched(&o, 14, 20, 1);
    written(other, "x.h5", &about);
    refuse(s, other, "both have document 14");
    about.shards = 7;
    written(other, "x.h5", &about);
    refuse(s, other, "a text in 5 shards, the other in 7");
    about.shards = SHARDS;
    about.fingerprint = "other";
    written(other, "x.h5", &about);
    refuse(s, other, "its fingerprint: abc and other");
    about.fingerprint = "abc";
    about.source = "{}";
    written(other, "x.h5", &about);
    refuse(s, other, "the text (source)");
    weir_neurons_free(other);
    weir_neurons_free(s);
}

typedef struct change {
    const char *words;
    void (*make)(weir_neurons_options *o);
} change;

static void change_k(weir_neurons_options *o)
{
    o->k = 7;
}
static void change_lists(weir_neurons_options *o)
{
    o->lists = 1;
}
static void change_dedup(weir_neurons_options *o)
{
    o->dedup_n = 4;
}
static void change_rank(weir_neurons_options *o)
{
    o->rank = WEIR_RANK_MEAN;
}
static void change_threshold(weir_neurons_options *o)
{
    o->n_thresholds = 2;
    o->threshold[1] = 3;
}
static void change_seed(weir_neurons_options *o)
{
    o->seed = 5;
}
static void change_after(weir_neurons_options *o)
{
    o->after = 3;
}
static void change_named(weir_neurons_options *o)
{
    static const weir_neurons_named named[] = {{0, 1}, {0, 5}, {1, 1}, {2, 68}};
    o->named = named;
}
static void change_means(weir_neurons_options *o)
{
    o->token_means = 3;
}

static void test_options_must_agree(void **state)
{
    (void)state;
    static const change all[] = {{"in k: 6 and 7", change_k},
                                 {"the lists that are kept", change_lists},
                                 {"duplicates are known: 3 and 4", change_dedup},
                                 {"how they rank", change_rank},
                                 {"thresholds: 1 and 2", change_threshold},
                                 {"the seed", change_seed},
                                 {"context after a place: 2 and 3", change_after},
                                 {"neurons that are named", change_named},
                                 {"means by token", change_means}};
    const weir_neurons_options o = world_options(0);
    const weir_neurons_about about = world_about(0, 0);
    weir_neurons *s = searched(&o, 0, 5, 1);
    written(s, "a.h5", &about);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        weir_neurons_options changed = o;
        weir_err err = {0};
        all[i].make(&changed);
        weir_neurons *other = searched(&changed, 5, 9, 1);
        written(other, "b.h5", &about);
        refuse(s, other, all[i].words);
        assert_int_equal(weir_neurons_same(s, other, &about, &err), WEIR_E_ARG);
        assert_true(said(&err, WEIR_E_ARG, all[i].words));
        weir_neurons_free(other);
    }
    weir_neurons_free(s);
}

/* --- going on */

static void test_resume(void **state)
{
    (void)state;
    weir_neurons_about about = world_about(0, 0);
    for (int set = 0; set < WORLD_SETS; set++) {
        const weir_neurons_options o = world_options(set);
        weir_err err = {0};
        const char *whole = whole_file(&o);
        about.complete = false;
        weir_neurons *s = searched(&o, 0, 21, 4), *fresh;
        written(s, "x.h5.part", &about);
        weir_neurons_free(s);
        for (int64_t from = 21, end; from < WORLD_DOCS; from = end) {
            end = from == 21 ? 22 : WORLD_DOCS;
            s = read_back(scratch("x.h5.part"));
            assert_int_equal(world_new(&fresh, &o, &err), WEIR_OK);
            assert_int_equal(weir_neurons_same(s, fresh, &about, &err), WEIR_OK);
            weir_neurons_free(fresh);
            assert_int_equal(world_feed(s, from, end, 9, &err), WEIR_OK);
            finish(s);
            about.complete = end == WORLD_DOCS;
            about.rows_done = 1000;
            written(s, "x.h5.part", &about);
            weir_neurons_free(s);
        }
        assert_true(same_files(whole, scratch("x.h5.part")));
    }
}

/* A checkpoint leaves nothing behind in the search that wrote it. */
static void test_checkpoint(void **state)
{
    (void)state;
    weir_neurons_about about = world_about(0, 0);
    about.rows_done = 1000;
    for (int set = 0; set < WORLD_SETS; set++) {
        const weir_neurons_options o = world_options(set);
        weir_err err = {0};
        const char *whole = whole_file(&o);
        weir_neurons *s = searched(&o, 0, 30, 4);
        written(s, "x.h5.part", &about);
        assert_int_equal(world_feed(s, 30, WORLD_DOCS, 9, &err), WEIR_OK);
        finish(s);
        assert_true(same_files(whole, written(s, "x.h5", &about)));
        weir_neurons_free(s);
    }
}

static void test_same_refuses(void **state)
{
    (void)state;
    const weir_neurons_options o = world_options(0);
    weir_neurons_about about = world_about(2, 4), other = about;
    weir_err err = {0};
    weir_neurons *s = searched(&o, 0, 5, 1), *fresh;
    written(s, "a.h5", &about);
    assert_int_equal(world_new(&fresh, &o, &err), WEIR_OK);
    assert_int_equal(weir_neurons_same(s, fresh, &about, &err), WEIR_OK);
    other.shard = 1;
    assert_int_equal(weir_neurons_same(s, fresh, &other, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, "the shard: 2/4 and 1/4"));
    other = about;
    other.interventions = "[1]";
    err = (weir_err){0};
    assert_int_equal(weir_neurons_same(s, fresh, &other, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, "interventions: [] and [1]"));
    weir_neurons_free(fresh);
    weir_neurons_free(s);
}

/* --- names in the file system */

static void test_replaces_its_own_only(void **state)
{
    (void)state;
    const weir_neurons_options o = world_options(3);
    const weir_neurons_about about = world_about(0, 0);
    weir_err err = {0};
    weir_neurons *s = searched(&o, 0, 5, 1);
    scratch_text("notes.txt", "mine");
    assert_int_equal(weir_neurons_write(s, scratch("notes.txt"), &about, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, "is not a file of weir's of this kind (weir-neurons)"));
    assert_false(weir_neurons_is_file(scratch("notes.txt")));
    assert_false(weir_neurons_is_file(scratch("nothing")));
    assert_false(weir_neurons_is_file(scratch(".")));

    err = (weir_err){0};
    scratch_text("a.h5.new", "somebody's");
    assert_int_equal(weir_neurons_write(s, scratch("a.h5"), &about, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, "a.h5.new exists and is not what an interrupted run left"));
    scratch_text("a.h5.new", "\x89HDF\r\n\x1a\n killed before it was whole"); /* ours, or as good as */
    written(s, "a.h5", &about);
    assert_false(scratch_exists("a.h5.new"));
    written(s, "a.h5", &about);

    err = (weir_err){0};
    assert_int_equal(weir_neurons_write(s, scratch("none/a.h5"), &about, &err), WEIR_E_IO);
    assert_true(said(&err, WEIR_E_IO, "none/a.h5"));
    weir_neurons_free(s);
}

static void test_foreign_files(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_neurons *s;
    scratch_text("notes.txt", "mine, and long enough to be looked at as a file of some kind or other");
    assert_int_equal(weir_neurons_read(&s, scratch("notes.txt"), 1, &err), WEIR_E_FORMAT);
    assert_true(said(&err, WEIR_E_FORMAT, "notes.txt: not an HDF5 file"));
    err = (weir_err){0};
    assert_int_equal(weir_neurons_read(&s, scratch("nothing"), 1, &err), WEIR_E_IO);
    assert_null(s);
    const weir_neurons_options o = world_options(3);
    const weir_neurons_about about = world_about(0, 0);
    s = searched(&o, 0, 5, 1);
    const char *path = written(s, "a.h5", &about);
    weir_neurons_free(s);
    assert_int_equal(truncate(path, 3000), 0);
    err = (weir_err){0};
    assert_int_equal(weir_neurons_read(&s, path, 1, &err), WEIR_E_FORMAT);
    assert_true(said(&err, WEIR_E_FORMAT, "the file is cut short"));
}

static void test_order_of_calls(void **state)
{
    (void)state;
    const weir_neurons_options o = world_options(0);
    const weir_neurons_about about = world_about(0, 0);
    weir_err err = {0};
    weir_neurons *s, *from = searched(&o, 0, 5, 1);
    assert_int_equal(world_new(&s, &o, &err), WEIR_OK);
    assert_int_equal(world_feed(s, 5, 9, 1, &err), WEIR_OK);
    assert_int_equal(weir_neurons_write(s, scratch("a.h5"), &about, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, "after weir_neurons_finish"));
    err = (weir_err){0};
    assert_int_equal(weir_neurons_merge(from, s, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, "after weir_neurons_finish"));
    weir_neurons_free(s);
    weir_neurons_free(from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_files),
        cmocka_unit_test(test_comparison_can_fail),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_merge_of_merged),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_merge_refuses),
        cmocka_unit_test(test_options_must_agree),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_same_refuses),
        cmocka_unit_test(test_replaces_its_own_only),
        cmocka_unit_test(test_foreign_files),
        cmocka_unit_test(test_order_of_calls),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
