/* The spool, and the tokens around a search's places, against a plain model of both: every token of every document in
 * memory, and for each the question whether a place needs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "search/impl.h"
#include "support/scratch.h"

/* --- the spool */

static weir_spool *new_spool(void)
{
    weir_err err = {0};
    weir_spool *s;
    assert_int_equal(weir_spool_new(&s, scratch("."), &err), WEIR_OK);
    return s;
}

/* Record i of a spool: documents of 7 tokens, every third position left out. */
static weir_spool_record nth(int64_t i)
{
    return (weir_spool_record){(uint32_t)(i / 7 * 2), (uint32_t)(i % 7 + i % 7 / 2), (uint32_t)(i * 2654435761u)};
}

static void fill(weir_spool *s, int64_t from, int64_t to)
{
    weir_err err = {0};
    for (int64_t i = from; i < to; i++) {
        weir_spool_record r = nth(i);
        assert_int_equal(weir_spool_add(s, r.doc, r.pos, r.payload, &err), WEIR_OK);
    }
}

static bool holds(weir_spool *s, int64_t at, int64_t n)
{
    weir_err err = {0};
    weir_spool_record *r = malloc((size_t)(n + 1) * sizeof *r);
    assert_int_equal(weir_spool_read(s, at, n, r, &err), WEIR_OK);
    bool same = true;
    for (int64_t i = 0; i < n; i++) {
        weir_spool_record want = nth(at + i);
        same = same && memcmp(&r[i], &want, sizeof want) == 0;
    }
    free(r);
    return same;
}

static void test_spool_reads(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 5460, 5461, 5462, 10922, 30000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t n = sizes[i];
        weir_spool *s = new_spool();
        fill(s, 0, n);
        assert_int_equal(weir_spool_count(s), n);
        assert_true(holds(s, 0, n));
        for (int64_t at = 0; at < n; at += 997)
            assert_true(holds(s, at, n - at < 600 ? n - at : 600));
        fill(s, n, n + 10); /* reading has not moved where writing goes on */
        assert_true(holds(s, 0, n + 10));
        weir_spool_free(s);
    }
    weir_spool_free(NULL);
}

static void test_spool_comparison_can_fail(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_spool *s = new_spool();
    fill(s, 0, 50);
    weir_spool_record r = nth(50);
    assert_int_equal(weir_spool_add(s, r.doc, r.pos, r.payload + 1, &err), WEIR_OK);
    assert_true(holds(s, 0, 50));
    assert_false(holds(s, 0, 51));
    weir_spool_free(s);
}

static void test_spool_finds(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 255, 256, 257, 5461, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        weir_err err = {0};
        int64_t n = sizes[i], at, want = 0;
        weir_spool *s = new_spool();
        fill(s, 0, n);
        for (uint32_t doc = 0; doc <= (uint32_t)(n / 7 * 2 + 3); doc += n > 2000 ? 13 : 1)
            for (uint32_t pos = 0; pos < 12; pos++) {
                while (want < n && (nth(want).doc < doc || (nth(want).doc == doc && nth(want).pos < pos)))
                    want++;
                assert_int_equal(weir_spool_find(s, doc, pos, &at, &err), WEIR_OK);
                assert_int_equal(at, want);
            }
        weir_spool_free(s);
    }
}

static void test_spool_refuses(void **state)
{
    (void)state;
    weir_spool_record r[20];
    weir_spool *s = new_spool();
    fill(s, 0, 10);
    static const int64_t beyond[][2] = {{0, 11}, {10, 1}, {11, 0}, {-1, 1}, {0, -1}, {5, INT64_MAX}, {INT64_MAX, 1}};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        weir_err err = {0};
        assert_int_equal(weir_spool_read(s, beyond[i][0], beyond[i][1], r, &err), WEIR_E_ARG);
    }
    weir_spool_record last = nth(9);
    static const int back[][2] = {{0, 0}, {0, -1}, {-1, 5}};
    for (int i = 0; i < 3; i++) {
        weir_err err = {0};
        uint32_t doc = last.doc + (uint32_t)back[i][0], pos = last.pos + (uint32_t)back[i][1];
        assert_int_equal(weir_spool_add(s, doc, pos, 1, &err), WEIR_E_ARG);
        assert_non_null(strstr(err.msg, "order"));
    }
    fill(s, 10, 20);
    assert_true(holds(s, 0, 20));
    weir_spool_free(s);
}

static void test_spool_without_a_place(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_spool *s;
    assert_int_equal(weir_spool_new(&s, scratch("none"), &err), WEIR_E_IO);
    assert_null(s);
    assert_string_equal(err.file, scratch("none"));
    assert_non_null(strstr(err.msg, strerror(ENOENT)));
    assert_non_null(strstr(err.msg, "--spool DIR"));
}

static int files_in(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

/* Neither while it is there, nor after it, has it a name. NULL and "": $TMPDIR. */
static void test_spool_has_no_name(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_spool *s[2];
    const char *dir = scratch_dir("empty");
    const char *before = getenv("TMPDIR");
    char *kept = before ? strdup(before) : NULL;
    setenv("TMPDIR", dir, 1);
    assert_int_equal(weir_spool_new(&s[0], NULL, &err), WEIR_OK);
    assert_int_equal(weir_spool_new(&s[1], "", &err), WEIR_OK);
    fill(s[0], 0, 6000);
    fill(s[1], 0, 6000);
    assert_int_equal(files_in(dir), 0);
    setenv("TMPDIR", scratch("none"), 1);
    weir_spool *none;
    assert_int_equal(weir_spool_new(&none, NULL, &err), WEIR_E_IO);
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
    assert_true(holds(s[0], 0, 6000) && holds(s[1], 0, 6000));
    weir_spool_free(s[0]);
    weir_spool_free(s[1]);
    assert_int_equal(files_in(dir), 0);
}

/* The system lets a file grow to a limit only, in the midst of a block: the block's first part is written, then comes
 * the error. Nothing is lost by it: when there is room again, the work goes on. */
static void test_spool_full(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_spool *s = new_spool();
    struct rlimit old, small;
    fill(s, 0, 5461);
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    small = (struct rlimit){1001, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    weir_spool_record r = nth(5461);
    weir_status st = weir_spool_add(s, r.doc, r.pos, r.payload, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(st, WEIR_E_IO);
    assert_string_equal(err.file, scratch("."));
    assert_non_null(strstr(err.msg, "--spool DIR chooses a directory with more room"));
    assert_int_equal(weir_spool_count(s), 5461);
    assert_true(holds(s, 0, 5461));
    fill(s, 5461, 12000);
    assert_true(holds(s, 0, 12000));
    weir_spool_free(s);
}

/* --- a text, and searches over it that hold places by hand */

enum { DOCS = 40, LONG = 3000, NAMED = 2, TABLES = 2, NEURONS = 3, K = 4, RANDOM = 5 };

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
    return x ^ x >> 32;
}

/* Tokens of document d: few in most, many in every tenth; document 7 has none, of document 9 only every other position
 * was fed. */
static int64_t length(int64_t d)
{
    return d == 7 ? 0 : d % 10 == 3 ? LONG : 1 + (int64_t)(mix((uint64_t)d) % 40);
}

static bool fed(int64_t d, int64_t pos)
{
    return pos < length(d) && (d != 9 || pos % 2 == 0);
}

static int32_t id_at(int64_t d, int64_t pos)
{
    return (int32_t)(mix((uint64_t)(d << 20 | pos)) % 50000);
}

/* The value of named neuron j: of every fourth token it is not known. */
static float value_at(int64_t d, int64_t pos, int j)
{
    uint64_t h = mix((uint64_t)(d << 20 | pos) + 77777u * (uint64_t)(j + 1));
    return h % 4 == 0 ? NAN : (float)(h % 1000) / 8 - 60;
}

static void feed(weir_neurons *s, int64_t first, int64_t last)
{
    weir_err err = {0};
    for (int64_t d = first; d < last; d++)
        for (int64_t pos = 0; pos < length(d); pos++) {
            if (!fed(d, pos))
                continue;
            uint32_t doc = (uint32_t)d, p = (uint32_t)pos;
            assert_int_equal(weir_spool_add(s->tokens, doc, p, (uint32_t)id_at(d, pos), &err), WEIR_OK);
            for (int j = 0; j < NAMED; j++) {
                float x = value_at(d, pos, j);
                uint32_t bits;
                memcpy(&bits, &x, sizeof bits);
                if (!isnan(x))
                    assert_int_equal(weir_spool_add(s->heat[j], doc, p, bits, &err), WEIR_OK);
            }
        }
}

/* A search that was fed nothing, with lists that are empty. */
static weir_neurons *new_search(int64_t before, int64_t after)
{
    weir_neurons *s = calloc(1, sizeof *s);
    s->o = (weir_neurons_options){
        .k = K, .before = before, .after = after, .n_named = NAMED, .per_band = 2, .random = RANDOM};
    s->tokens = new_spool();
    s->heat = calloc(NAMED, sizeof *s->heat);
    for (int j = 0; j < NAMED; j++)
        s->heat[j] = new_spool();
    s->n_tables = TABLES;
    s->table = calloc(TABLES, sizeof *s->table);
    weir_err err = {0};
    for (int t = 0; t < TABLES; t++) {
        weir_ntable *table = &s->table[t];
        table->n = NEURONS;
        for (int l = 0; l < 2; l++) { /* the third list is not kept */
            weir_lists *list = &table->list[l];
            *list = (weir_lists){.n = NEURONS, .room = K + 1};
            list->size = calloc(NEURONS, sizeof *list->size);
            list->at = calloc(NEURONS * (K + 1), sizeof *list->at);
        }
        assert_int_equal(weir_samples_new(&table->samples, NEURONS, &err), WEIR_OK);
        table->random.at = calloc(RANDOM, sizeof *table->random.at);
    }
    return s;
}

static void free_search(weir_neurons *s)
{
    for (int t = 0; t < TABLES; t++) {
        for (int l = 0; l < 2; l++) {
            free(s->table[t].list[l].size);
            free(s->table[t].list[l].at);
        }
        weir_samples_free(&s->table[t].samples, NEURONS);
        free(s->table[t].random.at);
    }
    weir_texts_free(&s->texts, NAMED);
    weir_spool_free(s->tokens);
    for (int j = 0; j < NAMED; j++)
        weir_spool_free(s->heat[j]);
    free(s->heat);
    free(s->table);
    free(s);
}

static void put_place(weir_neurons *s, int64_t which, weir_place at)
{
    weir_err err = {0};
    weir_ntable *t = &s->table[which % TABLES];
    int64_t i = which / TABLES % NEURONS, kind = which / (TABLES * NEURONS) % 4;
    if (kind < 2) {
        weir_lists *l = &t->list[kind];
        if (l->size[i] <= K)
            l->at[i * (K + 1) + l->size[i]++] = at;
    } else if (kind == 2) {
        const weir_sample e = {.hash = mix((uint64_t)which), .at = at, .value = 1, .bin = (uint32_t)(which % 643)};
        assert_int_equal(weir_samples_put(&t->samples, i, s->o.per_band, &e, &err), WEIR_OK);
    } else if (t->random.n < RANDOM) {
        t->random.at[t->random.n++] = at;
    }
}

/* Some of the places of documents [first, last): the same ones however the documents are divided. One search may hold a
 * place many times; so do the lists of a real one. */
static void put_places(weir_neurons *s, int64_t first, int64_t last, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t h = mix((uint64_t)i * 31 + 5);
        int64_t d = (int64_t)(h % DOCS), pos = length(d) ? (int64_t)(h / DOCS) % length(d) : 0;
        if (d >= first && d < last && fed(d, pos))
            put_place(s, i, (weir_place){(uint32_t)d, (uint32_t)pos});
    }
}

/* --- the plain model */

typedef struct model {
    bool need[DOCS][LONG];
} model;

/* Tokens kept ahead of a place and behind it. */
static int64_t ahead_of(const weir_neurons_options *o)
{
    return o->before < 2 ? 5 : o->before + 3;
}

static int64_t behind_of(const weir_neurons_options *o)
{
    return o->after + 3;
}

static void need(model *m, const weir_neurons *s, weir_place at)
{
    for (int64_t pos = 0; pos < length(at.doc); pos++) {
        int64_t ahead = (int64_t)at.pos - pos;
        m->need[at.doc][pos] |= ahead <= ahead_of(&s->o) && -ahead <= behind_of(&s->o) && fed(at.doc, pos);
    }
}

static model *make_model(const weir_neurons *s)
{
    model *m = calloc(1, sizeof *m);
    for (int t = 0; t < TABLES; t++) {
        const weir_ntable *table = &s->table[t];
        for (int64_t i = 0; i < NEURONS; i++) {
            weir_sample sample[100];
            int64_t n = weir_samples_get(&table->samples, i, sample, 100);
            for (int64_t j = 0; j < n; j++)
                need(m, s, sample[j].at);
            for (int l = 0; l < 2; l++)
                for (int64_t j = 0; j < table->list[l].size[i]; j++)
                    need(m, s, table->list[l].at[i * (K + 1) + j]);
        }
        for (int64_t j = 0; j < table->random.n; j++)
            need(m, s, table->random.at[j]);
    }
    return m;
}

static bool last_of(int64_t d, int64_t pos)
{
    while (++pos < length(d))
        if (fed(d, pos))
            return false;
    return true;
}

/* NULL: s's texts are what its places need; else what differs first. */
static const char *difference(const weir_neurons *s)
{
    static char text[200];
    model *m = make_model(s);
    const weir_texts *t = &s->texts;
    const char *what = NULL;
    int64_t n = 0;
    for (int64_t d = 0; d < DOCS; d++)
        for (int64_t pos = 0; pos < length(d) && !what; pos++) {
            if (!m->need[d][pos])
                continue;
            if (n == t->n || t->at[n].doc != d || t->at[n].pos != pos)
                what = "place";
            else if (t->id[n] != id_at(d, pos))
                what = "id";
            else if (t->edge[n] != (pos == 0 ? 1 : 0) + (last_of(d, pos) ? 2 : 0))
                what = "edge";
            for (int j = 0; j < NAMED && !what; j++) {
                float want = value_at(d, pos, j);
                if (memcmp(&t->value[j][n], &want, sizeof want) != 0)
                    what = "value";
            }
            if (what)
                snprintf(text, sizeof text, "%s of document %d, position %d (text %d of %d)", what, (int)d, (int)pos,
                         (int)n, (int)t->n);
            n++;
        }
    free(m);
    if (!what && n != t->n)
        snprintf(text, sizeof text, "%d texts, not %d", (int)t->n, (int)n);
    return what || n != t->n ? text : NULL;
}

static void assert_right(const weir_neurons *s)
{
    const char *d = difference(s);
    if (d)
        fail_msg("%s", d);
}

static void gather(weir_neurons *s)
{
    weir_err err = {0};
    if (weir_texts_gather(s, &err))
        fail_msg("%s", err.msg);
}

static bool same_texts(const weir_neurons *a, const weir_neurons *b)
{
    const weir_texts *x = &a->texts, *y = &b->texts;
    size_t n = (size_t)x->n;
    bool same = x->n == y->n && memcmp(x->at, y->at, n * sizeof *x->at) == 0 &&
                memcmp(x->id, y->id, n * sizeof *x->id) == 0 && memcmp(x->edge, y->edge, n) == 0;
    for (int j = 0; j < NAMED && same; j++)
        same = memcmp(x->value[j], y->value[j], n * sizeof **x->value) == 0;
    return same;
}

static const int64_t windows[][2] = {{10, 10},   {0, 0},         {3, 1},         {0, 5},
                                     {700, 700}, {INT32_MAX, 0}, {0, INT32_MAX}, {INT32_MAX, INT32_MAX}};
enum { WINDOWS = sizeof windows / sizeof *windows };

/* --- tests of texts */

static weir_neurons *whole_search(int64_t before, int64_t after, int64_t places)
{
    weir_neurons *s = new_search(before, after);
    feed(s, 0, DOCS);
    put_places(s, 0, DOCS, places);
    gather(s);
    return s;
}

static void test_gather(void **state)
{
    (void)state;
    static const int64_t places[] = {0, 1, 7, 60, 400};
    for (int w = 0; w < WINDOWS; w++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            weir_neurons *s = whole_search(windows[w][0], windows[w][1], places[p]);
            assert_right(s);
            assert_int_equal(s->texts.n > 0, places[p] > 0);
            free_search(s);
        }
}

static void test_comparisons_can_fail(void **state)
{
    (void)state;
    weir_neurons *s = whole_search(10, 10, 60), *other = whole_search(10, 10, 60);
    int64_t middle = s->texts.n / 2;
    assert_true(same_texts(s, other));
    s->texts.id[middle]++;
    assert_non_null(difference(s));
    assert_false(same_texts(s, other));
    s->texts.id[middle]--;
    s->texts.edge[middle] ^= 2;
    assert_non_null(difference(s));
    assert_false(same_texts(s, other));
    s->texts.edge[middle] ^= 2;
    s->texts.at[middle].pos++;
    assert_non_null(difference(s));
    assert_false(same_texts(s, other));
    s->texts.at[middle].pos--;
    s->texts.value[1][middle] = 1e9f;
    assert_non_null(difference(s));
    assert_false(same_texts(s, other));
    free_search(s);
    s = whole_search(10, 10, 60);
    s->texts.n--;
    assert_non_null(difference(s));
    assert_false(same_texts(s, other));
    s->texts.n++;
    assert_null(difference(s));
    free_search(s);
    free_search(other);
}

/* Shards: each gathers for itself; joined in any order, with nothing fed, they are what one search has. */
static void test_shards(void **state)
{
    (void)state;
    static const int order[][3] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}};
    for (int w = 0; w < WINDOWS; w++)
        for (int o = 0; o < 3; o++) {
            weir_err err = {0};
            weir_neurons *whole = whole_search(windows[w][0], windows[w][1], 300);
            weir_neurons *merged = new_search(windows[w][0], windows[w][1]);
            for (int i = 0; i < 3; i++) {
                int64_t first = order[o][i] * 13, last = order[o][i] == 2 ? DOCS : first + 13;
                weir_neurons *shard = new_search(windows[w][0], windows[w][1]);
                feed(shard, first, last);
                put_places(shard, first, last, 300);
                gather(shard);
                assert_right(shard);
                assert_int_equal(weir_texts_join(merged, &shard->texts, &err), WEIR_OK);
                free_search(shard);
            }
            put_places(merged, 0, DOCS, 300);
            gather(merged);
            assert_right(merged);
            assert_true(same_texts(whole, merged));
            free_search(whole);
            free_search(merged);
        }
}

/* A run that goes on: what it had comes from a file, what is new from the spool; and one that gathers now and then. */
static void test_resume(void **state)
{
    (void)state;
    for (int w = 0; w < WINDOWS; w++) {
        weir_err err = {0};
        weir_neurons *whole = whole_search(windows[w][0], windows[w][1], 300);
        weir_neurons *first = new_search(windows[w][0], windows[w][1]);
        feed(first, 0, 21);
        put_places(first, 0, 21, 300);
        gather(first);
        weir_neurons *second = new_search(windows[w][0], windows[w][1]);
        assert_int_equal(weir_texts_join(second, &first->texts, &err), WEIR_OK);
        assert_true(same_texts(first, second));
        feed(second, 21, DOCS);
        put_places(second, 0, DOCS, 300);
        gather(second);
        assert_true(same_texts(whole, second));
        gather(second);
        assert_true(same_texts(whole, second));
        feed(first, 21, DOCS);
        for (int t = 0; t < TABLES; t++) /* its places anew: lists hold what is best now */
            first->table[t].list[0].size[0] = first->table[t].list[0].size[1] = first->table[t].list[0].size[2] =
                first->table[t].list[1].size[0] = first->table[t].list[1].size[1] = first->table[t].list[1].size[2] = 0;
        put_places(first, 0, DOCS, 24);
        gather(first);
        assert_right(first);
        free_search(whole);
        free_search(first);
        free_search(second);
    }
}

/* A checkpoint within a document: its last token so far is an end, until more comes. */
static void test_document_goes_on(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_neurons *s = new_search(2, 3);
    for (uint32_t p = 0; p < 10; p++)
        assert_int_equal(weir_spool_add(s->tokens, 3, p, p, &err), WEIR_OK);
    put_place(s, 0, (weir_place){3, 8});
    gather(s);
    weir_neurons_context c = weir_neurons_context_of(s, 3, 8, -1);
    assert_int_equal(c.n, 7);
    assert_true(c.ends && !c.begins);
    for (uint32_t p = 10; p < 20; p++)
        assert_int_equal(weir_spool_add(s->tokens, 3, p, p, &err), WEIR_OK);
    gather(s);
    c = weir_neurons_context_of(s, 3, 8, -1);
    assert_int_equal(c.n, 12);
    assert_false(c.ends || c.begins);
    assert_int_equal(c.pos, 3);
    assert_int_equal(c.hit, 5);
    free_search(s);
}

/* Two files that hold parts of one document: its end is where the later one says. */
static void test_join_parts(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        weir_err err = {0};
        weir_place at[4] = {{1, 0}, {1, 1}, {1, 1}, {1, 2}};
        int32_t id[4] = {5, 6, 6, 7};
        uint8_t edge[4] = {1, 2, 2, 2};
        float value[4] = {1, NAN, 2, 3};
        float *early[NAMED] = {value, value}, *late[NAMED] = {value + 2, value + 2};
        const weir_texts part[2] = {{2, at, id, edge, early}, {2, at + 2, id + 2, edge + 2, late}};
        weir_neurons *s = new_search(1, 1);
        assert_int_equal(weir_texts_join(s, &part[turn], &err), WEIR_OK);
        assert_int_equal(weir_texts_join(s, &part[!turn], &err), WEIR_OK);
        assert_int_equal(s->texts.n, 3);
        static const uint8_t want[3] = {1, 0, 2};
        assert_memory_equal(s->texts.edge, want, 3);
        static const int32_t ids[3] = {5, 6, 7};
        assert_memory_equal(s->texts.id, ids, sizeof ids);
        free_search(s);
    }
}

static void test_find(void **state)
{
    (void)state;
    weir_neurons *s = whole_search(4, 4, 100);
    for (int64_t i = 0; i < s->texts.n; i++)
        assert_int_equal(weir_texts_find(&s->texts, s->texts.at[i]), i);
    assert_int_equal(weir_texts_find(&s->texts, (weir_place){7, 0}), -1);
    assert_int_equal(weir_texts_find(&s->texts, (weir_place){UINT32_MAX, UINT32_MAX}), -1);
    const weir_texts none = {0};
    assert_int_equal(weir_texts_find(&none, (weir_place){0, 0}), -1);
    free_search(s);
}

/* Every place's context, token by token. */
static void test_context(void **state)
{
    (void)state;
    for (int w = 0; w < WINDOWS; w++) {
        weir_neurons *s = whole_search(windows[w][0], windows[w][1], 40);
        int64_t before = ahead_of(&s->o), after = behind_of(&s->o);
        const weir_lists *l = &s->table[0].list[0];
        for (int64_t i = 0; i < l->size[0]; i++) {
            int64_t d = l->at[i].doc, pos = l->at[i].pos;
            weir_neurons_context c = weir_neurons_context_of(s, d, pos, 1);
            int64_t first = d == 9 ? pos : pos > before ? pos - before : 0, last = d == 9 ? pos : length(d) - 1;
            if (last > pos + after)
                last = pos + after;
            assert_int_equal(c.pos, first);
            assert_int_equal(c.n, last - first + 1);
            assert_int_equal(c.hit, pos - first);
            assert_int_equal(c.begins, first == 0);
            assert_int_equal(c.ends, last_of(d, last));
            for (int64_t p = first; p <= last; p++) {
                float want = value_at(d, p, 1);
                assert_int_equal(c.id[p - first], id_at(d, p));
                assert_memory_equal(&c.value[p - first], &want, sizeof want);
            }
            assert_null(weir_neurons_context_of(s, d, pos, -1).value);
        }
        static const int64_t nowhere[][2] = {{7, 0}, {-1, 0}, {0, -1}, {1ll << 32, 0}, {3, 1ll << 40}, {39, LONG}};
        for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++)
            assert_int_equal(weir_neurons_context_of(s, nowhere[i][0], nowhere[i][1], -1).n, 0);
        free_search(s);
    }
}

/* The last numbers that a document and a position can have. */
static void test_far_places(void **state)
{
    (void)state;
    for (int w = 0; w < WINDOWS; w++) {
        weir_err err = {0};
        weir_neurons *s = new_search(windows[w][0], windows[w][1]);
        for (uint32_t i = 9; i-- > 0;)
            assert_int_equal(weir_spool_add(s->tokens, UINT32_MAX, UINT32_MAX - i, i, &err), WEIR_OK);
        put_place(s, 0, (weir_place){UINT32_MAX, UINT32_MAX});
        gather(s);
        weir_neurons_context c = weir_neurons_context_of(s, UINT32_MAX, UINT32_MAX, -1);
        assert_int_equal(c.n, 1 + (ahead_of(&s->o) < 8 ? ahead_of(&s->o) : 8));
        assert_int_equal(c.id[c.hit], 0);
        assert_true(c.ends && !c.begins);
        free_search(s);
    }
}

/* Few places in a long text: what lies between is not kept. */
static void test_sparse(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_neurons *s = new_search(1, 1);
    for (uint32_t d = 0; d < 60; d++)
        for (uint32_t p = 0; p < 1000; p++)
            assert_int_equal(weir_spool_add(s->tokens, d, p, d * 1000 + p, &err), WEIR_OK);
    static const weir_place far[] = {{2, 500}, {2, 508}, {13, 999}, {14, 0}, {59, 998}};
    for (int i = 0; i < 5; i++)
        put_place(s, 0, far[i]);
    gather(s);
    static const int32_t want[][2] = {{2495, 2512}, {13994, 13999}, {14000, 14004}, {59993, 59999}}; /* from, to */
    int64_t n = 0;
    for (int i = 0; i < 4; i++)
        for (int32_t id = want[i][0]; id <= want[i][1]; id++, n++) {
            assert_true(n < s->texts.n);
            assert_int_equal(s->texts.id[n], id);
            assert_int_equal(s->texts.edge[n], (id % 1000 == 0 ? 1 : 0) + (id % 1000 == 999 ? 2 : 0));
        }
    assert_int_equal(s->texts.n, n);
    free_search(s);
}

/* More different places than the first room for them. */
static void test_many_places(void **state)
{
    (void)state;
    enum { MANY = 300000 };
    weir_err err = {0};
    weir_neurons *s = new_search(0, 0);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(weir_spool_add(s->tokens, i / 1000, i % 1000 * 3, i, &err), WEIR_OK);
    weir_lists *l = &s->table[1].list[0];
    free(l->at);
    l->at = calloc(NEURONS * MANY, sizeof *l->at);
    l->room = MANY;
    for (int n = 0; n < NEURONS; n++) {
        l->size[n] = MANY - 1000 * n;
        for (int64_t i = 0; i < l->size[n]; i++) {
            int64_t j = i * 7919 % MANY;
            l->at[n * l->room + i] = (weir_place){(uint32_t)(j / 1000), (uint32_t)(j % 1000 * 3)};
        }
    }
    gather(s);
    assert_int_equal(s->texts.n, MANY);
    for (int64_t i = 0; i < MANY; i++)
        assert_int_equal(s->texts.id[i], i);
    free_search(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spool_reads),
        cmocka_unit_test(test_spool_comparison_can_fail),
        cmocka_unit_test(test_spool_finds),
        cmocka_unit_test(test_spool_refuses),
        cmocka_unit_test(test_spool_without_a_place),
        cmocka_unit_test(test_spool_has_no_name),
        cmocka_unit_test(test_spool_full),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_comparisons_can_fail),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_document_goes_on),
        cmocka_unit_test(test_join_parts),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_far_places),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_many_places),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
