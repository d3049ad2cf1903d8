/* How many things a neuron's contexts are: contexts of known families, fed to a search of one neuron. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/neurons.h>

enum { MOST_TOKENS = 6000, MOST_CONTEXTS = 300 };

/* Texts of tokens, written with | between them; the firing one begins with '>'. */
typedef struct corpus {
    char bytes[40000];
    int64_t offset[MOST_TOKENS + 1];
    uint8_t special[MOST_TOKENS];
    int64_t words;
    int32_t id[MOST_TOKENS];
    int64_t doc[MOST_TOKENS], pos[MOST_TOKENS];
    float value[MOST_TOKENS];
    int64_t n, docs;
} corpus;

static corpus c;

static int32_t word(const char *p, size_t n)
{
    for (int64_t i = 0; i < c.words; i++)
        if ((size_t)(c.offset[i + 1] - c.offset[i]) == n && memcmp(c.bytes + c.offset[i], p, n) == 0)
            return (int32_t)i;
    assert_true(c.words < MOST_TOKENS && (size_t)c.offset[c.words] + n <= sizeof c.bytes);
    memcpy(c.bytes + c.offset[c.words], p, n);
    c.offset[c.words + 1] = c.offset[c.words] + (int64_t)n;
    return (int32_t)c.words++;
}

/* One document, one context; earlier ones are the stronger ones. */
static void add(const char *text)
{
    int64_t pos = 0;
    for (const char *p = text; *p;) {
        bool fires = *p == '>';
        p += fires;
        size_t n = strcspn(p, "|");
        assert_true(c.n < MOST_TOKENS);
        c.id[c.n] = word(p, n);
        c.doc[c.n] = c.docs;
        c.pos[c.n] = pos++;
        c.value[c.n++] = fires ? 1000.0f - (float)c.docs : -1;
        p += n + (p[n] == '|');
    }
    c.docs++;
}

/* before and after are other tokens in each: words that stand nowhere else. */
static void add_alone(const char *firing)
{
    char text[200];
    long long d = c.docs;
    snprintf(text, sizeof text, " u%lld| v%lld| w%lld| x%lld| y%lld|>%s| z%lld", d, d, d, d, d, firing, d);
    add(text);
}

static void add_numbers(int n)
{
    char text[20];
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, " %d", 17 + 31 * i);
        add_alone(text);
    }
}

static void add_countries(void)
{
    static const char *const name[] = {"France", "Spain", "Italy",  "Norway", "Peru",
                                       "Chile",  "Kenya", "Poland", "Japan",  "India"};
    char text[200];
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof text, " p%d| q%d| of|> %s| r%d", i, i, name[i], i);
        add(text);
    }
}

static void add_brackets(void)
{
    static const char *const mark[] = {"(", "[", "{", "((", "[[", "{{", "(\"", "['", "({", "[("};
    for (int i = 0; i < 10; i++)
        add_alone(mark[i]);
}

static void add_ten_numbers(void)
{
    add_numbers(10);
}

static void add_ten_newlines(void)
{
    for (int i = 0; i < 10; i++)
        add_alone(i % 2 ? "\n" : "\n\n");
}

static void add_words(int n)
{
    char text[20];
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, " %c%cing", 'a' + i % 26, 'a' + i / 26);
        add_alone(text);
    }
}

static int64_t kept = 10; /* tokens of context, at both ends */

static weir_neurons *make_search(int64_t k)
{
    const weir_neurons_table table = {
        .hook = "blocks.0.mlp.hook_post", .site = "post", .layer = 0, .width = 1, .n = 1, .units = NULL};
    weir_neurons_options o;
    weir_neurons *s;
    weir_err err = {0};
    weir_neurons_options_init(&o);
    o.k = k;
    o.before = o.after = kept;
    o.lists = 1u << WEIR_NEURONS_TOP;
    o.dedup = WEIR_DEDUP_NONE;
    o.threads = 1;
    assert_int_equal(weir_neurons_new(&s, &o, &table, 1, &err), WEIR_OK);
    assert_int_equal(weir_neurons_vocab_bytes(s, c.words, (const uint8_t *)c.bytes, c.offset, c.special, &err),
                     WEIR_OK);
    if (c.n > 0) {
        const weir_neurons_rows_of rows = {.n = c.n, .id = c.id, .doc = c.doc, .pos = c.pos, .ctx_pos = c.pos};
        const weir_neurons_values v = {.x = c.value, .stride = 1, .whole = true};
        assert_int_equal(weir_neurons_rows(s, &rows, false, &err), WEIR_OK);
        assert_int_equal(weir_neurons_add(s, 0, &v, &err), WEIR_OK);
    }
    assert_int_equal(weir_neurons_finish(s, &err), WEIR_OK);
    return s;
}

static int32_t cluster[MOST_CONTEXTS];

static weir_neuron_clusters clusters(void)
{
    weir_err err = {0};
    weir_neuron_clusters out;
    weir_neurons *s = make_search(c.docs > 0 ? c.docs : 1);
    assert_int_equal(weir_neurons_clusters(s, 0, 0, WEIR_NEURONS_TOP, &out, cluster, &err), WEIR_OK);
    weir_neurons_free(s);
    memset(&c, 0, sizeof c);
    return out;
}

static void assert_score(weir_neuron_clusters got, int64_t places, int64_t n, double score)
{
    assert_int_equal(got.places, places);
    assert_int_equal(got.clusters, n);
    assert_true(fabs(got.effective - score) < 1e-9);
}

static void test_one_kind(void **state)
{
    (void)state;
    add_numbers(20);
    assert_score(clusters(), 20, 1, 1);
    for (int i = 0; i < 20; i++)
        assert_int_equal(cluster[i], 0);
    add_countries();
    assert_score(clusters(), 10, 1, 1);
    add_brackets();
    assert_score(clusters(), 10, 1, 1);
}

static void test_two_families(void **state)
{
    (void)state;
    add_countries();
    add_brackets();
    assert_score(clusters(), 20, 2, 2);
    for (int i = 0; i < 20; i++)
        assert_int_equal(cluster[i], i / 10);
}

/* Shares .75 and .25: the entropy, not the number. */
static void test_sizes_count(void **state)
{
    (void)state;
    add_numbers(30);
    add_brackets();
    assert_score(clusters(), 40, 2, exp(-.75 * log(.75) - .25 * log(.25)));
}

static void test_all_different(void **state)
{
    (void)state;
    add_words(30);
    assert_score(clusters(), 30, 30, 30);
    for (int i = 0; i < 30; i++)
        assert_int_equal(cluster[i], i);
}

static void test_one_text(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++)
        add("the| same|> text| again");
    assert_score(clusters(), 12, 1, 1);
    add_alone(" only");
    assert_score(clusters(), 1, 1, 1);
}

static void test_no_contexts(void **state)
{
    (void)state;
    assert_score(clusters(), 0, 0, 0);
    assert_int_equal(cluster[0], -1);
}

/* Each family more of things that are alike is one thing more. */
static void test_families_add_up(void **state)
{
    (void)state;
    static void (*const family[])(void) = {add_countries, add_brackets, add_ten_numbers, add_ten_newlines};
    for (int n = 1; n <= 4; n++) {
        for (int i = 0; i < n; i++)
            family[i]();
        assert_score(clusters(), 10 * n, n, n);
    }
}

/* Case and leading spaces do not matter; other words do. */
static void test_spelling(void **state)
{
    (void)state;
    add_alone(" rivers");
    add_alone("Rivers");
    add_alone("RIVERS");
    add_alone("  rivers");
    assert_score(clusters(), 4, 1, 1);
    add_alone(" rivers");
    add_alone(" riverx");
    assert_score(clusters(), 2, 2, 2);
}

/* The same neighbours make different words one thing: two tokens before, or one on each side. */
static void test_neighbours(void **state)
{
    (void)state;
    add(" a1| b1| one| of|> apples| z1");
    add(" a2| b2| one| of|> pears| z2");
    assert_score(clusters(), 2, 1, 1);
    add(" a1| b1| c1| of|> apples| for");
    add(" a2| b2| c2| of|> pears| for");
    assert_score(clusters(), 2, 1, 1);
    add(" a1| b1| c1| of|> apples| z1");
    add(" a2| b2| c2| of|> pears| z2");
    assert_score(clusters(), 2, 2, 2);
}

/* Each kind by itself is one thing; and no two of them are the same. */
static void test_kinds(void **state)
{
    (void)state;
    static const char *const kind[][2] = {
        {" 12", "7"},
        {" Ann", "Bob"},
        {".", " !"},
        {"\n", "\n\n"},
        {"\xce\xb1", "\xce\xb2\xce\xb3"},         /* Greek */
        {" \xd0\xb4\xd0\xb0", "\xd0\xbd"},        /* Cyrillic */
        {"\xe4\xb8\xad", "\xe6\x96\x87"},         /* Chinese */
        {"\xe3\x81\x82", "\xe3\x82\xab"},         /* kana */
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x8e\x89"}, /* emoji */
        {"\xf0\x9f", "\x98"},                     /* pieces of characters */
    };
    int n = (int)(sizeof kind / sizeof *kind);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 2; j++)
            add_alone(kind[i][j]);
    weir_neuron_clusters got = clusters();
    assert_score(got, 2 * n, n, n);
    for (int i = 0; i < 2 * n; i++)
        assert_int_equal(cluster[i], i / 2);
}

/* Special tokens are a kind, whatever they look like. Tokens without bytes are alike to themselves only. */
static void test_special_and_unknown(void **state)
{
    (void)state;
    add_alone("<|a|>");
    add_alone("<|b|>");
    add_alone("(");
    c.special[word("<|a|>", 5)] = c.special[word("<|b|>", 5)] = 1;
    assert_score(clusters(), 3, 2, exp(-2. / 3 * log(2. / 3) - 1. / 3 * log(1. / 3)));
    add_alone("");
    add_alone(" x");
    add_alone("");
    weir_neuron_clusters got = clusters();
    assert_int_equal(got.clusters, 2);
    assert_int_equal(cluster[0], cluster[2]);
}

/* At the begin and end of a document windows are shut, and count for neither. */
static void test_edges(void **state)
{
    (void)state;
    add(">5");
    add(">6");
    assert_score(clusters(), 2, 1, 1);
    add(">alpha");
    add(">beta");
    assert_score(clusters(), 2, 2, 2);
}

/* A long list: the first 256 places. */
static void test_many(void **state)
{
    (void)state;
    add_numbers(150);
    add_words(130);
    weir_neuron_clusters got = clusters();
    assert_int_equal(got.places, 256);
    assert_int_equal(got.clusters, 1 + 106);
    assert_int_equal(cluster[255], 106);
    assert_int_equal(cluster[256], -1);
    assert_int_equal(cluster[279], -1);
}

/* How much context is kept to be shown does not matter. */
static void test_context_kept(void **state)
{
    (void)state;
    static const int64_t tokens[] = {0, 1, 10, INT32_MAX};
    for (int i = 0; i < 4; i++) {
        kept = tokens[i];
        add_countries();
        add_brackets();
        add(" a1| b1| one| of|> apples| z1");
        add(" a2| b2| one| of|> pears| z2");
        weir_neuron_clusters got = clusters();
        assert_int_equal(got.clusters, 3);
        assert_int_equal(cluster[20], 2);
        assert_int_equal(cluster[21], 2);
    }
    kept = 10;
}

/* A list that is not kept. */
static void test_no_list(void **state)
{
    (void)state;
    weir_err err = {0};
    weir_neuron_clusters out;
    add_numbers(3);
    weir_neurons *s = make_search(3);
    memset(&c, 0, sizeof c);
    assert_int_equal(weir_neurons_clusters(s, 0, 0, WEIR_NEURONS_BOTTOM, &out, NULL, &err), WEIR_OK);
    assert_score(out, 0, 0, 0);
    weir_neurons_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_kind),
        cmocka_unit_test(test_two_families),
        cmocka_unit_test(test_sizes_count),
        cmocka_unit_test(test_all_different),
        cmocka_unit_test(test_one_text),
        cmocka_unit_test(test_no_contexts),
        cmocka_unit_test(test_families_add_up),
        cmocka_unit_test(test_spelling),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_special_and_unknown),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_context_kept),
        cmocka_unit_test(test_no_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
