/* Statistics of a text: bins, exact sums, results against brute force, files that do not depend on how the text was
 * cut, merges that are refused, and files that are damaged. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>

#include "support/said.h"
#include "support/scratch.h"
#include "survey/impl.h"

enum { LINES = 6, N = 600, TOKENS = 4, K = 2, TARGETS = 3, TARGET = 1 };

static const weir_survey_line lines[LINES] = {
    {"embed", "blocks.0.hook_resid_pre", "resid_post", -1}, {"L0 attn", "blocks.0.hook_attn_out", "attn_out", 0},
    {"L0", "blocks.0.hook_resid_post", "resid_post", 0},    {"L1 attn", "blocks.1.hook_attn_out", "attn_out", 1},
    {"L1", "blocks.1.hook_resid_post", "resid_post", 1},    {"out", "blocks.2.hook_resid_post", "resid_post", 2}};
static const int site_of[LINES] = {0, 1, 0, 1, 0, -1};

/* What a lens could have measured of N positions. */
typedef struct world {
    float kl[LINES][N], logprob[LINES][N][TARGETS];
    int32_t top[LINES][N][K], next[N];
    uint8_t mask[N];
} world;

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

static float draw_value(void)
{
    const int e = (int)draw(44) - 36;
    return ldexpf(1 + (float)draw(1 << 23) / (1 << 23), e) * (draw(40) ? 1 : -1);
}

/* Few tokens, so that lines often agree; sometimes none of it is a number. */
static world *make_world(uint64_t seed)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    state = seed;
    for (int i = 0; i < N; i++) {
        const bool lost = draw(50) == 0;
        w->next[i] = draw(9) ? (int32_t)draw(TOKENS) : -1;
        w->mask[i] = draw(8) ? 0 : (uint8_t)draw(WEIR_MASK_KINDS);
        for (int l = 0; l < LINES; l++) {
            w->kl[l][i] = lost || draw(90) == 0 ? NAN : l == LINES - 1 ? 0 : draw_value();
            w->top[l][i][0] = lost ? -1 : (int32_t)draw(TOKENS);
            w->top[l][i][1] = 77;
            for (int t = 0; t < TARGETS; t++)
                w->logprob[l][i][t] = t != TARGET ? 5e5f : draw(99) ? -draw_value() : -INFINITY;
        }
        if (!lost && draw(70))
            w->kl[LINES - 1][i] = 0;
    }
    return w;
}

/* Positions [from, to) as a batch, which has rows of its own length. */
static void feed(weir_survey *c, const world *w, int from, int to)
{
    const int n = to - from;
    float *kl = calloc((size_t)(n * LINES + 1), sizeof *kl);
    float *logprob = calloc((size_t)(n * LINES * TARGETS + 1), sizeof *logprob);
    int32_t *top = calloc((size_t)(n * LINES * K + 1), sizeof *top);
    weir_err err = {0};
    for (int l = 0; l < LINES; l++)
        for (int i = 0; i < n; i++) {
            kl[l * n + i] = w->kl[l][from + i];
            memcpy(logprob + (l * n + i) * TARGETS, w->logprob[l][from + i], sizeof w->logprob[l][0]);
            memcpy(top + (l * n + i) * K, w->top[l][from + i], sizeof w->top[l][0]);
        }
    const weir_survey_batch b = {n, kl, logprob, TARGETS, TARGET, top, K, w->next + from, w->mask + from, 1};
    assert_int_equal(weir_survey_add(c, &b, &err), WEIR_OK);
    free(kl);
    free(logprob);
    free(top);
}

static const weir_survey_about plain = {.model = "m",
                                        .fingerprint = "f",
                                        .tokenizer = "t",
                                        .source = "{\"text\":1}",
                                        .interventions = "[]",
                                        .lens = "logit lens",
                                        .norm = "recompute"};

static weir_survey *fresh(int64_t shard, int64_t shards)
{
    weir_survey *c;
    weir_err err = {0};
    weir_survey_about a = plain;
    a.shard = shard;
    a.shards = shards;
    assert_int_equal(weir_survey_new(&c, lines, LINES, &err), WEIR_OK);
    assert_int_equal(weir_survey_set_about(c, &a, &err), WEIR_OK);
    return c;
}

static const char *written(const weir_survey *c, const char *name)
{
    const char *path = scratch(name);
    weir_err err = {0};
    if (weir_survey_write(c, path, 1, &err) != WEIR_OK)
        fail_msg("%s", err.msg);
    return path;
}

static char *bytes_of(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *p = malloc(1 << 20);
    assert_non_null(p);
    *n = fread(p, 1, 1 << 20, f);
    assert_true(feof(f));
    fclose(f);
    return p;
}

static bool same_file(const char *a, const char *b)
{
    size_t n, m;
    char *p = bytes_of(a, &n), *q = bytes_of(b, &m);
    const bool same = n == m && memcmp(p, q, n) == 0;
    free(p);
    free(q);
    return same;
}

/* --- bins */

static void test_bins(void **s)
{
    (void)s;
    for (int b = 0; b < WEIR_SURVEY_BINS; b++) {
        const double low = weir_survey_edge(b), high = weir_survey_edge(b + 1);
        const double near = b < WEIR_SURVEY_BIN_SIDE ? high : low, width = high - low;
        assert_true(low < high);
        if (b == WEIR_SURVEY_BIN_SIDE)
            continue;
        assert_int_equal(weir_survey_bin((float)near), b);
        assert_int_equal(weir_survey_bin((float)(low / 2 + high / 2)), b);
        assert_true(width <= fabs(near) / 128);
    }
    assert_true(weir_survey_edge(0) == -0x1p20 && weir_survey_edge(WEIR_SURVEY_BINS) == 0x1p20);
    const float inside[] = {0, -0.0f, 1e-40f, 0x1.fffffep-31f, -0x1.fffffep-31f};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        assert_int_equal(weir_survey_bin(inside[i]), WEIR_SURVEY_BIN_SIDE);
    const float outside[] = {0x1p20f, -0x1p20f, 3e38f, INFINITY, -INFINITY, NAN, -NAN};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_int_equal(weir_survey_bin(outside[i]), -1);
    assert_int_equal(weir_survey_bin(0x1.fffffep19f), WEIR_SURVEY_BINS - 1);
    assert_int_equal(weir_survey_bin(-0x1.fffffep19f), 0);
}

/* --- sums */

/* The mean of one line's n values, and their count. */
static weir_survey_stat stat_of_values(const float *x, int64_t n)
{
    weir_survey *c;
    weir_err err = {0};
    int32_t *zero = calloc((size_t)n, sizeof *zero);
    float *logprob = calloc((size_t)n, sizeof *logprob), *kl = calloc((size_t)n, sizeof *kl);
    for (int64_t i = 0; i < n; i++)
        logprob[i] = -x[i];
    assert_int_equal(weir_survey_new(&c, lines + LINES - 1, 1, &err), WEIR_OK);
    const weir_survey_batch b = {n, kl, logprob, 1, 0, zero, 1, zero, NULL, 0};
    assert_int_equal(weir_survey_add(c, &b, &err), WEIR_OK);
    const weir_survey_stat out = weir_survey_stat_of(c, 0, WEIR_SURVEY_CE);
    weir_survey_free(c);
    free(zero);
    free(logprob);
    free(kl);
    return out;
}

static double mean_of(float a, float b)
{
    return stat_of_values((float[]){a, b}, 2).mean;
}

static void test_sums(void **s)
{
    (void)s;
    assert_true(mean_of(0x1.fffffep19f, -0x1.fffffep19f) == 0);
    assert_true(mean_of(0x1.fffffep19f, 0x1p-4f) == (0x1.fffffep19 + 0x1p-4) / 2);
    assert_true(mean_of(0x1p-64f, 0) == 0x1p-65);
    assert_true(mean_of(0x1p-65f, 0) == 0x1p-65); /* a half is rounded away from 0 */
    assert_true(mean_of(-0x1p-65f, 0) == -0x1p-65);
    assert_true(mean_of(0x1.fffffep-66f, 0) == 0);
    assert_true(mean_of(-0x1.8p-64f, 0) == -0x1p-64);
    assert_true(mean_of(0x1.8p-64f, 0) == 0x1p-64);
    assert_true(mean_of(0x1p-88f, 0) == 0 && mean_of(0x1p-89f, 0) == 0 && mean_of(1e-45f, 0) == 0);
    assert_true(mean_of(0x1.000002p-41f, 0) == 0x1.000002p-42);
    /* 2^-40 a million times beside a large number: nothing is lost */
    enum { MANY = 1 << 20 };
    float *x = calloc(MANY, sizeof *x);
    for (int i = 0; i < MANY; i++)
        x[i] = 0x1p-40f;
    x[MANY / 2] = 0x1p19f;
    assert_true(stat_of_values(x, MANY).mean == (0x1p19 + (MANY - 1) * 0x1p-40) / MANY);
    free(x);
}

static void test_values_that_are_none(void **s)
{
    (void)s;
    const weir_survey_stat none = stat_of_values((float[]){INFINITY, NAN, 0x1p20f}, 3);
    assert_true(none.count == 0 && none.lost == 3 && isnan(none.mean) && isnan(none.min) && isnan(none.quantile[2]));
    const weir_survey_stat one = stat_of_values((float[]){NAN, 0}, 2);
    assert_true(one.count == 1 && one.lost == 1 && one.mean == 0 && one.quantile[0] == 0);
}

/* Which zero comes first must not show in a file. */
static void test_zeros(void **s)
{
    (void)s;
    const float kl[2] = {-0.0f, 0}, logprob[2] = {0};
    const int32_t id[2] = {0};
    const weir_survey_batch b = {2, kl, logprob, 1, 0, id, 1, id, NULL, 0};
    weir_survey *c;
    weir_err err = {0};
    assert_int_equal(weir_survey_new(&c, lines + LINES - 1, 1, &err), WEIR_OK);
    assert_int_equal(weir_survey_add(c, &b, &err), WEIR_OK);
    const weir_survey_stat k = weir_survey_stat_of(c, 0, WEIR_SURVEY_KL);
    assert_true(k.count == 2 && k.min == 0 && !signbit(k.min) && !signbit(k.max) && !signbit(k.quantile[0]));
    weir_survey_free(c);
}

/* --- against brute force */

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Does the statistic tell of these n values? Sorts them. */
static bool right_stat(const weir_survey_stat *s, float *x, int64_t n, double wrong_by)
{
    static const int64_t twentieths[] = {1, 5, 10, 15, 19};
    long double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    qsort(x, (size_t)n, sizeof *x, by_value);
    bool good =
        s->count == n && fabs(s->mean + wrong_by - (double)(sum / n)) < 1e-12 && s->min == x[0] && s->max == x[n - 1];
    for (int q = 0; q < WEIR_SURVEY_QUANTILES && good; q++) {
        const double want = x[(n * twentieths[q] + 19) / 20 - 1], got = s->quantile[q] + wrong_by;
        good = fabs(got - want) <= fmax(fabs(want) / 256, 0x1p-30);
    }
    return good;
}

static bool is_seen(const world *w, int i)
{
    return w->mask[i] == 0 && w->top[LINES - 1][i][0] >= 0 && isfinite(w->kl[LINES - 1][i]);
}

static void check_line(const weir_survey *c, const world *w, int l)
{
    float ce[N], kl[N];
    int64_t n_ce = 0, n_kl = 0, agree = 0, right = 0;
    for (int i = 0; i < N; i++) {
        if (!is_seen(w, i))
            continue;
        agree += w->top[l][i][0] == w->top[LINES - 1][i][0];
        right += w->next[i] >= 0 && w->top[l][i][0] == w->next[i];
        if (isfinite(w->kl[l][i]))
            kl[n_kl++] = w->kl[l][i];
        if (w->next[i] >= 0 && isfinite(w->logprob[l][i][TARGET]))
            ce[n_ce++] = -w->logprob[l][i][TARGET];
    }
    const weir_survey_stat a = weir_survey_stat_of(c, l, WEIR_SURVEY_CE), b = weir_survey_stat_of(c, l, WEIR_SURVEY_KL);
    assert_true(right_stat(&a, ce, n_ce, 0) && right_stat(&b, kl, n_kl, 0));
    assert_false(right_stat(&a, ce, n_ce, 0.1) || right_stat(&a, kl, n_kl, 0));
    assert_int_equal(weir_survey_agree(c, l), agree);
    assert_int_equal(weir_survey_right(c, l), right);
    const weir_survey_counts k = weir_survey_counts_of(c);
    assert_int_equal(a.lost, k.seen - k.without_next - n_ce);
    assert_int_equal(b.lost, k.seen - n_kl);
}

/* The first line of the site such that it and all later ones agree with the final row: the definition itself. */
static int settled_at(const world *w, int site, int i)
{
    for (int l = 0; l < LINES; l++) {
        bool stays = site_of[l] == site || l == LINES - 1;
        for (int m = l; m < LINES && stays; m++)
            if (site_of[m] == site)
                stays = w->top[m][i][0] == w->top[LINES - 1][i][0];
        if (stays)
            return l;
    }
    return -1;
}

static void check_settling(const weir_survey *c, const world *w)
{
    for (int s = 0; s < 2; s++) {
        int64_t want[LINES] = {0}, n = 0;
        float layer[N];
        for (int i = 0; i < N; i++) {
            if (!is_seen(w, i))
                continue;
            const int at = settled_at(w, s, i);
            want[at]++;
            layer[n++] = (float)lines[at].layer;
        }
        for (int l = 0; l < LINES; l++)
            assert_int_equal(weir_survey_settled(c, s, l), want[l]);
        const weir_survey_stat got = weir_survey_settle_of(c, s);
        assert_true(right_stat(&got, layer, n, 0));
        for (int q = 0; q < WEIR_SURVEY_QUANTILES; q++)
            assert_true(got.quantile[q] == floor(got.quantile[q]));
    }
}

static void test_brute_force(void **s)
{
    (void)s;
    world *w = make_world(1);
    weir_survey *c = fresh(0, 0);
    feed(c, w, 0, N);
    int64_t masked[WEIR_MASK_KINDS] = {0}, seen = 0, without_next = 0;
    for (int i = 0; i < N; i++) {
        masked[w->mask[i]]++;
        seen += is_seen(w, i);
        without_next += is_seen(w, i) && w->next[i] < 0;
    }
    const weir_survey_counts k = weir_survey_counts_of(c);
    assert_memory_equal(k.masked, masked, sizeof masked);
    assert_true(k.rows == N && k.docs == 1 && k.seen == seen && k.lost == masked[0] - seen && k.lost > 0);
    assert_int_equal(k.without_next, without_next);
    for (int l = 0; l < LINES; l++)
        check_line(c, w, l);
    assert_int_equal(weir_survey_n_sites(c), 2);
    assert_string_equal(weir_survey_site(c, 1), "attn_out");
    check_settling(c, w);
    weir_survey_free(c);
    free(w);
}

/* --- files */

static void test_batches_and_files(void **s)
{
    (void)s;
    world *w = make_world(2);
    weir_survey *one = fresh(0, 0), *many = fresh(0, 1), *back;
    weir_err err = {0};
    feed(one, w, 0, N);
    for (int i = N; i > 0; i -= 100) /* in another order too */
        for (int j = i - 100; j < i; j += 20)
            feed(many, w, j, j + 20);
    many->counts.docs = 1;
    const char *path = written(one, "one.h5");
    assert_true(same_file(path, written(many, "many.h5")));
    assert_int_equal(weir_survey_read(&back, path, &err), WEIR_OK);
    assert_true(same_file(path, written(back, "back.h5")));
    assert_true(weir_survey_is_file(path) && !weir_survey_is_file(scratch_text("x.h5", "x")));
    feed(many, w, 0, 1);
    assert_false(same_file(path, written(many, "more.h5")));
    weir_survey_free(one);
    weir_survey_free(many);
    weir_survey_free(back);
    free(w);
}

static void test_nothing(void **s)
{
    (void)s;
    weir_survey *c = fresh(0, 0), *back;
    weir_err err = {0};
    const char *path = written(c, "nothing.h5");
    assert_int_equal(weir_survey_read(&back, path, &err), WEIR_OK);
    assert_true(same_file(path, written(back, "nothing2.h5")));
    assert_true(isnan(weir_survey_settle_of(back, 0).mean) && isnan(weir_survey_stat_of(back, 0, WEIR_SURVEY_KL).mean));
    weir_survey_free(c);
    weir_survey_free(back);
}

/* --- merging */

enum { SHARDS = 4, SEAL = 42 /* bytes behind HDF5's own */ };

static weir_survey *shard(const world *w, int i)
{
    weir_survey *c = fresh(i, SHARDS);
    feed(c, w, i * N / SHARDS, (i + 1) * N / SHARDS);
    return c;
}

static void test_every_order(void **s)
{
    (void)s;
    world *w = make_world(3);
    weir_survey *whole = fresh(0, 0);
    weir_err err = {0};
    feed(whole, w, 0, N);
    whole->counts.docs = SHARDS;
    const char *path = written(whole, "whole.h5");
    for (int order = 0; order < 256; order++) {
        const int at[SHARDS] = {order & 3, order >> 2 & 3, order >> 4 & 3, order >> 6};
        if ((1 << at[0] | 1 << at[1] | 1 << at[2] | 1 << at[3]) != 15)
            continue;
        weir_survey *c = shard(w, at[0]), *rest = shard(w, at[2]);
        weir_survey *b = shard(w, at[1]), *d = shard(w, at[3]);
        assert_int_equal(weir_survey_merge(c, b, &err), WEIR_OK);
        assert_int_equal(weir_survey_missing(c, 0) < 0, 0);
        assert_int_equal(weir_survey_merge(rest, d, &err), WEIR_OK); /* two pairs */
        assert_int_equal(weir_survey_merge(c, rest, &err), WEIR_OK);
        assert_int_equal(weir_survey_missing(c, 0), -1);
        assert_true(same_file(path, written(c, "merged.h5")));
        weir_survey_free(c);
        weir_survey_free(b);
        weir_survey_free(d);
        weir_survey_free(rest);
    }
    weir_survey_free(whole);
    free(w);
}

static void test_partial_files(void **s)
{
    (void)s;
    world *w = make_world(4);
    weir_survey *c = shard(w, 2), *b = shard(w, 0), *back;
    weir_err err = {0};
    assert_int_equal(weir_survey_merge(c, b, &err), WEIR_OK);
    const char *path = written(c, "part.h5");
    assert_int_equal(weir_survey_read(&back, path, &err), WEIR_OK);
    assert_true(same_file(path, written(back, "part2.h5")));
    assert_int_equal(weir_survey_missing(back, 0), 1);
    assert_int_equal(weir_survey_missing(back, 2), 3);
    assert_int_equal(weir_survey_missing(back, 4), -1);
    assert_true(weir_survey_about_of(back)->shard == 0 && weir_survey_about_of(back)->shards == SHARDS);
    weir_survey_free(c);
    weir_survey_free(b);
    weir_survey_free(back);
    free(w);
}

static void refused(weir_survey *to, const weir_survey_about *a, const char *words)
{
    weir_err err = {0};
    weir_survey *from = fresh(0, 0);
    assert_int_equal(weir_survey_set_about(from, a, &err), WEIR_OK);
    const char *before = written(to, "before.h5");
    assert_int_equal(weir_survey_merge(to, from, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, words));
    assert_true(same_file(before, written(to, "after.h5")));
    weir_survey_free(from);
}

static void test_wrong_merges(void **s)
{
    (void)s;
    weir_survey *to = fresh(0, 3);
    const struct {
        weir_survey_about a;
        const char *words;
    } wrong[] = {
        {{"x", "f", "t", "{\"text\":1}", "[]", "logit lens", "recompute", false, false, 1, 3}, "the model: m and x"},
        {{"m", "f", "t", "{}", "[]", "logit lens", "recompute", false, false, 1, 3}, "the text (source)"},
        {{"m", "f", "t", "{\"text\":1}", "[]", "tuned", "recompute", false, false, 1, 3}, "the lens"},
        {{"m", "f", "t", "{\"text\":1}", "[]", "logit lens", "recompute", true, false, 1, 3}, "the soft cap"},
        {{"m", "f", "t", "{\"text\":1}", "[]", "logit lens", "recompute", false, true, 1, 3}, "padding"},
        {{"m", "f", "t", "{\"text\":1}", "[]", "logit lens", "recompute", false, false, 0, 3},
         "both have shard 0 of 3"},
        {{"m", "f", "t", "{\"text\":1}", "[]", "logit lens", "recompute", false, false, 1, 2},
         "in 3 shards, the other in 2"},
        {{"m", "f", "t", "{\"text\":1}", "[]", "logit lens", "recompute", false, false, 0, 0}, "the other in 0"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(to, &wrong[i].a, wrong[i].words);
    weir_survey_free(to);
    to = fresh(0, 0);
    refused(to, &plain, "both are of the whole text");
    weir_err err = {0};
    weir_survey *few;
    assert_int_equal(weir_survey_new(&few, lines + 1, LINES - 1, &err), WEIR_OK);
    assert_int_equal(weir_survey_set_about(few, &plain, &err), WEIR_OK);
    assert_int_equal(weir_survey_merge(to, few, &err), WEIR_E_ARG);
    assert_true(said(&err, WEIR_E_ARG, "the number of lines: 6 and 5"));
    weir_survey_free(few);
    weir_survey_free(to);
}

static void test_wrong_calls(void **s)
{
    (void)s;
    weir_err err = {0};
    weir_survey *c;
    assert_int_equal(weir_survey_new(&c, lines, 0, &err), WEIR_E_ARG);
    c = fresh(0, 0);
    const float x[LINES] = {0};
    const int32_t id[LINES] = {0};
    const uint8_t mask = WEIR_MASK_KINDS;
    weir_survey_batch b = {1, x, x, 1, 1, id, 1, id, NULL, 0};
    assert_int_equal(weir_survey_add(c, &b, NULL), WEIR_E_ARG);
    b.target = 0;
    b.mask = &mask;
    assert_int_equal(weir_survey_add(c, &b, NULL), WEIR_E_ARG);
    assert_int_equal(weir_survey_counts_of(c).rows, 0);
    weir_survey_about a = plain;
    a.shard = 2;
    a.shards = 2;
    assert_int_equal(weir_survey_set_about(c, &a, NULL), WEIR_E_ARG);
    weir_survey_free(c);
}

/* --- damage */

static bool reads(const char *path)
{
    weir_survey *c;
    weir_err err = {0};
    weir_status st = weir_survey_read(&c, path, &err);
    assert_true(st == WEIR_OK ? c != NULL : c == NULL && said(&err, st, path));
    weir_survey_free(c);
    return st == WEIR_OK;
}

static void test_damaged_bytes(void **s)
{
    (void)s;
    world *w = make_world(5);
    weir_survey *c = shard(w, 1);
    size_t n;
    const char *path = written(c, "sound.h5");
    char *p = bytes_of(path, &n);
    assert_true(reads(path));
    for (size_t i = 0; i < n; i += n / 97) {
        p[i] ^= 16;
        assert_false(reads(scratch_write("bad.h5", p, n)));
        p[i] ^= 16;
    }
    for (size_t i = 0; i < n - SEAL; i += n / 13) /* without its seal alone it would be whole */
        assert_false(reads(scratch_write("short.h5", p, i)));
    assert_true(reads(scratch_write("again.h5", p, n)));
    free(p);
    weir_survey_free(c);
    free(w);
}

/* A file whose seal is sound and whose numbers are not. */
static void test_numbers_that_do_not_fit(void **s)
{
    (void)s;
    world *w = make_world(6);
    weir_survey *c = shard(w, 1);
    int64_t *const number[] = {&c->counts.seen, &c->counts.rows,   &c->counts.lost,  &c->counts.without_next,
                               &c->counts.docs, &c->agree[1],      &c->right[0],     &c->settled[0],
                               &c->settled[1],  &c->sums[0].count, &c->sums[3].lost, &c->sums[2].hist[7],
                               &c->about.shard, &c->about.shards,  &c->shard[0],     &c->counts.masked[0]};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        const int64_t was = *number[i];
        *number[i] = (int64_t)1 << 50;
        assert_false(reads(written(c, "unfit.h5")));
        *number[i] = -1;
        assert_false(reads(written(c, "unfit.h5")));
        *number[i] = was;
    }
    weir_survey_sums *k = &c->sums[0];
    const weir_survey_sums was = *k;
    k->min = k->max * 2;
    assert_false(reads(written(c, "unfit.h5")));
    *k = was;
    k->max = NAN;
    assert_false(reads(written(c, "unfit.h5")));
    *k = was;
    k->sum = (__int128)1 << 126;
    assert_false(reads(written(c, "unfit.h5")));
    *k = was;
    assert_true(reads(written(c, "fit.h5")));
    weir_survey_free(c);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bins),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_values_that_are_none),
        cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_batches_and_files),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_every_order),
        cmocka_unit_test(test_partial_files),
        cmocka_unit_test(test_wrong_merges),
        cmocka_unit_test(test_wrong_calls),
        cmocka_unit_test(test_damaged_bytes),
        cmocka_unit_test(test_numbers_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
