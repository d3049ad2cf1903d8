/* A search against brute force, and the same state whatever the way there: passes, threads, instruction sets, tables
 * one by one, halves that are merged. */
#include "search_kit.h"

#include "kernels/kernels.h"
#include "search/scan.h"

/* --- brute force */

/* Rows of a text that stand for themselves, in order: neither repeated nor without a place. */
typedef struct brute {
    const sk_text *t;
    int64_t n, row[SK_ROWS];      /* all of them */
    int64_t counted, at[SK_ROWS]; /* indices of row[] that are counted */
} brute;

static brute *brute_new(const sk_text *t)
{
    brute *b = calloc(1, sizeof *b);
    b->t = t;
    for (int64_t r = 0; r < t->n; r++) {
        bool seen = t->pos[r] < 0;
        for (int64_t k = 0; k < b->n && !seen; k++)
            seen = t->doc[b->row[k]] == t->doc[r] && t->pos[b->row[k]] == t->pos[r];
        if (seen)
            continue;
        if (t->keep[r] && !t->mask[r])
            b->at[b->counted++] = b->n;
        b->row[b->n++] = r;
    }
    return b;
}

/* Do texts that end at k and l have the same last n tokens, or the same begin? */
static bool same_text(const brute *b, int64_t k, int64_t l, int64_t n)
{
    const sk_text *t = b->t;
    for (int64_t i = 0; i < n; i++) {
        const bool more = k - i >= 0 && t->doc[b->row[k - i]] == t->doc[b->row[k]];
        const bool others = l - i >= 0 && t->doc[b->row[l - i]] == t->doc[b->row[l]];
        if (more != others)
            return false;
        if (!more)
            return true;
        if (t->id[b->row[k - i]] != t->id[b->row[l - i]])
            return false;
    }
    return true;
}

static int64_t last_of_document(const brute *b, int64_t k)
{
    while (k + 1 < b->n && b->t->doc[b->row[k + 1]] == b->t->doc[b->row[k]])
        k++;
    return k;
}

static bool same_key(const brute *b, const weir_neurons_options *o, int64_t k, int64_t l)
{
    const sk_text *t = b->t;
    const int64_t p = b->row[k], q = b->row[l];
    if (o->dedup == WEIR_DEDUP_NONE)
        return k == l;
    if (o->dedup == WEIR_DEDUP_TEXT && o->rank == WEIR_RANK_MEAN)
        return same_text(b, last_of_document(b, k), last_of_document(b, l), SK_ROWS);
    if (o->dedup == WEIR_DEDUP_TEXT)
        return same_text(b, k, l, o->dedup_n);
    const bool window = o->dedup == WEIR_DEDUP_DOC || o->rank == WEIR_RANK_MEAN ||
                        t->pos[p] - t->ctx_pos[p] == t->pos[q] - t->ctx_pos[q];
    return t->doc[p] == t->doc[q] && window;
}

/* A candidate of a list. */
typedef struct candidate {
    float value, figure;
    int64_t k;
} candidate;

static int by_rank(const void *a, const void *b)
{
    const candidate *p = a, *q = b;
    return p->figure != q->figure ? (p->figure < q->figure) - (p->figure > q->figure) : (p->k > q->k) - (p->k < q->k);
}

static float figure_of(weir_neurons_list which, float x)
{
    return which == WEIR_NEURONS_TOP ? x : which == WEIR_NEURONS_BOTTOM ? -x : fabsf(x);
}

static int64_t token_candidates(const brute *b, int table, int64_t unit, weir_neurons_list which, candidate *out)
{
    int64_t n = 0;
    for (int64_t c = 0; c < b->counted; c++) {
        const float x = sk_at(b->t, table, b->row[b->at[c]], unit);
        if (isfinite(x))
            out[n++] = (candidate){x, figure_of(which, x), b->at[c]};
    }
    return n;
}

static int64_t document_candidates(const brute *b, int table, int64_t unit, weir_neurons_list which, candidate *out)
{
    candidate *token = calloc(SK_ROWS, sizeof *token);
    const int64_t tokens = token_candidates(b, table, unit, which, token);
    int64_t n = 0;
    for (int64_t i = 0; i < tokens;) {
        const int64_t doc = b->t->doc[b->row[token[i].k]], first = i;
        candidate best = token[i];
        double sum = 0;
        for (; i < tokens && b->t->doc[b->row[token[i].k]] == doc; i++) {
            sum += (double)token[i].value;
            if (token[i].figure > best.figure)
                best = token[i];
        }
        best.value = (float)(sum / (double)(i - first));
        best.figure = figure_of(which, best.value);
        out[n++] = best;
    }
    free(token);
    return n;
}

/* What list `which` must be; returns its length. */
static int64_t brute_hits(const brute *b, const weir_neurons_options *o, int table, int64_t unit,
                          weir_neurons_list which, weir_neuron_hit *out)
{
    candidate *all = calloc(SK_ROWS, sizeof *all);
    const int64_t n = (o->rank == WEIR_RANK_MEAN ? document_candidates : token_candidates)(b, table, unit, which, all);
    qsort(all, (size_t)n, sizeof *all, by_rank);
    int64_t listed = 0;
    const candidate **first = calloc(SK_ROWS, sizeof(*first));
    for (int64_t i = 0; i < n; i++) {
        int64_t j = 0;
        while (j < listed && !same_key(b, o, first[j]->k, all[i].k))
            j++;
        if (j == listed) {
            if (listed == o->k + 1)
                continue;
            first[listed] = &all[i];
            out[listed++] =
                (weir_neuron_hit){all[i].value, b->t->doc[b->row[all[i].k]], b->t->pos[b->row[all[i].k]], 0};
        }
        out[j].count += all[i].figure == first[j]->figure;
    }
    if (listed == o->k + 1 && o->dedup != WEIR_DEDUP_NONE)
        for (int64_t j = 0; j < listed; j++)
            if (first[j]->figure == first[o->k]->figure)
                out[j].count = 0;
    free(first);
    free(all);
    return listed <= o->k ? listed : o->k;
}

static bool right_lists(const weir_neurons *s, const brute *b, int table, int64_t i)
{
    static weir_neuron_hit want[SK_ROWS], got[SK_ROWS];
    const weir_neurons_options *o = weir_neurons_options_of(s);
    bool right = true;
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++) {
        const int64_t n = weir_neurons_hits(s, table, i, (weir_neurons_list)which, got);
        if (o->lists & 1u << which)
            right = right && n == brute_hits(b, o, table, sk_unit(table, i), (weir_neurons_list)which, want) &&
                    sk_same_hits(got, want, n);
        else
            right = right && n == 0;
    }
    return right;
}

/* The bin by its definition. */
static int brute_bin(float x)
{
    for (int bin = 0; bin < WEIR_NEURONS_BINS; bin++) {
        const double low = weir_neurons_edge(bin), high = weir_neurons_edge(bin + 1), v = (double)x;
        if (bin == 321 ? v > low && v < high : bin < 321 ? v > low && v <= high : v >= low && v < high)
            return bin;
    }
    return -1;
}

static bool right_counts(const weir_neurons *s, const brute *b, int table, int64_t i)
{
    const weir_neurons_options *o = weir_neurons_options_of(s);
    int64_t hist[WEIR_NEURONS_BINS] = {0}, got[WEIR_NEURONS_BINS], above[WEIR_NEURONS_MAX_THRESHOLDS] = {0}, n = 0;
    float min = INFINITY, max = -INFINITY;
    weir_neuron_stats stats;
    for (int64_t c = 0; c < b->counted; c++) {
        const float x = sk_at(b->t, table, b->row[b->at[c]], sk_unit(table, i));
        if (!isfinite(x))
            continue;
        n++;
        hist[brute_bin(x)]++;
        min = fminf(min, x);
        max = fmaxf(max, x);
        for (int t = 0; t < o->n_thresholds; t++)
            above[t] += x > (float)o->threshold[t];
    }
    weir_neurons_stats(s, table, i, &stats);
    weir_neurons_hist(s, table, i, got);
    return stats.count == n && stats.nonfinite == b->counted - n &&
           (n ? stats.min == min && stats.max == max : isnan(stats.min) && isnan(stats.max)) &&
           !memcmp(stats.above, above, sizeof above) && !memcmp(hist, got, sizeof hist);
}

/* --- samples by brute force */

typedef struct place_hash {
    uint64_t hash;
    int64_t doc, pos;
    float value;
} place_hash;

static int by_hash(const void *a, const void *b)
{
    const place_hash *p = a, *q = b;
    return (p->hash > q->hash) - (p->hash < q->hash);
}

static int by_value(const void *a, const void *b)
{
    const place_hash *p = a, *q = b;
    if (p->value != q->value)
        return (p->value < q->value) - (p->value > q->value);
    return p->doc != q->doc ? (p->doc > q->doc) - (p->doc < q->doc) : (p->pos > q->pos) - (p->pos < q->pos);
}

static int by_place(const void *a, const void *b)
{
    const place_hash *p = a, *q = b;
    return p->doc != q->doc ? (p->doc > q->doc) - (p->doc < q->doc) : (p->pos > q->pos) - (p->pos < q->pos);
}

static int64_t all_places(const brute *b, uint64_t seed, int table, int64_t unit, place_hash *out)
{
    for (int64_t c = 0; c < b->counted; c++) {
        const int64_t r = b->row[b->at[c]];
        const weir_place at = {(uint32_t)b->t->doc[r], (uint32_t)b->t->pos[r]};
        out[c] = (place_hash){weir_place_hash(seed, at), b->t->doc[r], b->t->pos[r], sk_at(b->t, table, r, unit)};
    }
    return b->counted;
}

static bool right_places(const place_hash *want, int64_t n, const weir_neuron_hit *got, int64_t m)
{
    for (int64_t j = 0; j < n && n == m; j++)
        if (got[j].doc != want[j].doc || got[j].pos != want[j].pos || got[j].count != 1 ||
            (isfinite(want[j].value) ? got[j].value != want[j].value : !isnan(got[j].value)))
            return false;
    return n == m;
}

/* The share of the values in the bin of x or below it: the rank of the bin's highest value. */
static double upto_bin_of(const place_hash *p, int64_t n, float x)
{
    int64_t upto = 0, all = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(p[i].value)) {
            all++;
            upto += weir_neurons_bin(p[i].value) <= weir_neurons_bin(x);
        }
    return (double)upto / (double)all;
}

static bool right_samples(const weir_neurons *s, const brute *b, int table, int64_t i)
{
    static place_hash all[SK_ROWS], some[SK_ROWS];
    static weir_neuron_hit got[1000];
    const weir_neurons_options *o = weir_neurons_options_of(s);
    const int64_t n = all_places(b, o->seed, table, sk_unit(table, i), all);
    bool right = true;
    qsort(all, (size_t)n, sizeof *all, by_hash);
    for (int band = 0; band < WEIR_NEURONS_BANDS; band++) {
        int64_t m = 0;
        for (int64_t j = 0; j < n && m < o->per_band; j++) {
            if (!isfinite(all[j].value))
                continue;
            const double rank = upto_bin_of(all, n, all[j].value);
            if (rank <= weir_neurons_band_edge(band + 1) && (band == 0 || rank > weir_neurons_band_edge(band)))
                some[m++] = all[j];
        }
        qsort(some, (size_t)m, sizeof *some, by_value);
        right = right && right_places(some, m, got, weir_neurons_band(s, table, i, band, got));
    }
    const int64_t random = n < o->random ? n : o->random;
    memcpy(some, all, (size_t)random * sizeof *some);
    qsort(some, (size_t)random, sizeof *some, by_place);
    return right && right_places(some, random, got, weir_neurons_random(s, table, i, got));
}

/* --- against brute force */

static weir_neurons_options options_of(int64_t k, weir_neurons_dedup dedup, weir_neurons_rank rank)
{
    weir_neurons_options o;
    weir_neurons_options_init(&o);
    o.k = k;
    o.lists = 7;
    o.dedup = dedup;
    o.dedup_n = 3;
    o.rank = rank;
    o.n_thresholds = 4;
    o.threshold[1] = 0.1;
    o.threshold[2] = 3;
    o.threshold[3] = -0.25;
    o.per_band = 3;
    o.random = 7;
    o.seed = 11;
    o.threads = 2;
    return o;
}

static void assert_right(const weir_neurons *s, const brute *b)
{
    for (int table = 0; table < SK_TABLES; table++)
        for (int64_t i = 0; i < weir_neurons_table_at(s, table)->n; i += table ? 1 : 5) {
            assert_true(right_lists(s, b, table, i));
            assert_true(right_counts(s, b, table, i));
        }
    for (int64_t i = 0; i < 8; i++)
        assert_true(right_samples(s, b, 0, i));
}

static void test_brute_force(void **state)
{
    (void)state;
    sk_text *t = sk_text_new(3, 18);
    brute *b = brute_new(t);
    for (int dedup = WEIR_DEDUP_NONE; dedup <= WEIR_DEDUP_TEXT; dedup++)
        for (int rank = WEIR_RANK_MAX; rank <= WEIR_RANK_MEAN; rank++)
            for (int64_t k = 1; k <= 2000; k = k == 1 ? 12 : k * 167) {
                const weir_neurons_options o = options_of(k, (weir_neurons_dedup)dedup, (weir_neurons_rank)rank);
                weir_neurons *s = sk_search(&o, t, 100, false);
                assert_right(s, b);
                weir_neurons_free(s);
            }
    free(b);
    sk_text_free(t);
}

static void test_brute_force_can_fail(void **state)
{
    (void)state;
    sk_text *t = sk_text_new(3, 18);
    brute *b = brute_new(t);
    const weir_neurons_options o = options_of(12, WEIR_DEDUP_TEXT, WEIR_RANK_MAX);
    weir_neurons *s = sk_search(&o, t, 100, false);
    weir_ntable *table = &s->table[0];
    const int64_t at = 7 * table->list[0].room;
    assert_true(right_lists(s, b, 0, 7) && right_counts(s, b, 0, 7) && right_samples(s, b, 0, 7));
    const int64_t best = at + table->list[0].slot[at];
    table->list[0].count[best]++;
    assert_false(right_lists(s, b, 0, 7));
    table->list[0].count[best]--;
    table->list[0].at[best].pos++;
    assert_false(right_lists(s, b, 0, 7));
    table->list[0].at[best].pos--;
    assert_true(right_lists(s, b, 0, 7));
    table->hist[7 * WEIR_NEURONS_BINS + 330]++;
    assert_false(right_counts(s, b, 0, 7));
    table->hist[7 * WEIR_NEURONS_BINS + 330]--;
    table->above[7 * 4 + 3]++;
    assert_false(right_counts(s, b, 0, 7));
    table->above[7 * 4 + 3]--;
    table->random.value[table->random.row[2] * table->n + 7] += 1;
    assert_false(right_samples(s, b, 0, 7));
    weir_neurons_free(s);
    free(b);
    sk_text_free(t);
}

/* --- the same whatever the way */

static void test_ways(void **state)
{
    (void)state;
    sk_text *t = sk_text_new(5, 40);
    static const int64_t batches[] = {1, 7, 64, 513, SK_ROWS};
    for (int rank = WEIR_RANK_MAX; rank <= WEIR_RANK_MEAN; rank++)
        for (int dedup = WEIR_DEDUP_NONE; dedup <= WEIR_DEDUP_TEXT; dedup += 3) {
            weir_neurons_options o = options_of(9, (weir_neurons_dedup)dedup, (weir_neurons_rank)rank);
            weir_neurons *first = sk_search(&o, t, 100, false);
            for (int i = 0; i < 5; i++) {
                o.threads = 1 + i % 3;
                weir_neurons *s = sk_search(&o, t, batches[i], i % 2);
                assert_true(sk_same(first, s));
                weir_neurons_free(s);
            }
            o.seed++;
            weir_neurons *other = sk_search(&o, t, 100, false);
            assert_false(sk_same(first, other));
            weir_neurons_free(other);
            weir_neurons_free(first);
        }
    sk_text_free(t);
}

static void test_kernels(void **state)
{
    (void)state;
    const weir_kern *all[8];
    const int n = weir_kern_available(all, 8);
    sk_text *t = sk_text_new(6, 40);
    for (int64_t k = 1; k < 200; k = k * 3 + 2) {
        weir_neurons_options o = options_of(k, k % 2 ? WEIR_DEDUP_TEXT : WEIR_DEDUP_NONE, WEIR_RANK_MAX);
        o.kernel = "ref";
        weir_neurons *ref = sk_search(&o, t, 300, false);
        for (int i = 1; i < n; i++) {
            o.kernel = weir_kern_name(all[i]);
            weir_neurons *s = sk_search(&o, t, 300, false);
            assert_string_equal(s->kernel->name, o.kernel);
            assert_true(sk_same(ref, s));
            weir_neurons_free(s);
        }
        weir_neurons_free(ref);
    }
    sk_text_free(t);
}

/* Rows [from, to) of a text that begin and end at documents, as a search of its own. */
static weir_neurons *search_part(const weir_neurons_options *o, const sk_text *t, int64_t from, int64_t to)
{
    weir_err err = {0};
    weir_neurons *s = sk_new(o);
    sk_feed(s, t, from, to, 64, false);
    assert_int_equal(weir_neurons_finish(s, &err), WEIR_OK);
    return s;
}

static int64_t next_document(const sk_text *t, int64_t r)
{
    while (r < t->n && t->doc[r] == t->doc[r - 1])
        r++;
    return r;
}

static void test_merged(void **state)
{
    (void)state;
    sk_text *t = sk_text_new(7, 40);
    const int64_t cut[] = {0, next_document(t, t->n / 4), next_document(t, t->n / 2), t->n};
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
    for (int rank = WEIR_RANK_MAX; rank <= WEIR_RANK_MEAN; rank++)
        for (int i = 0; i < 3; i++) {
            const weir_neurons_options o = options_of(9, WEIR_DEDUP_TEXT, (weir_neurons_rank)rank);
            weir_err err = {0};
            weir_neurons *whole = sk_search(&o, t, 100, false), *sum = NULL;
            for (int j = 0; j < 3; j++) {
                const int p = orders[i][j];
                weir_neurons *part = search_part(&o, t, cut[p], cut[p + 1]);
                if (!sum) {
                    sum = part;
                    continue;
                }
                assert_int_equal(weir_neurons_merge(sum, part, &err), WEIR_OK);
                weir_neurons_free(part);
            }
            assert_false(sk_same(whole, sum));
            assert_int_equal(weir_neurons_finish(sum, &err), WEIR_OK);
            assert_true(sk_same(whole, sum));
            weir_neurons_free(sum);
            weir_neurons_free(whole);
        }
    sk_text_free(t);
}

/* A checkpoint in the middle changes nothing; nor does a merge with what comes later, before the rest is fed. */
static void test_goes_on(void **state)
{
    (void)state;
    sk_text *t = sk_text_new(8, 40);
    const weir_neurons_options o = options_of(9, WEIR_DEDUP_TEXT, WEIR_RANK_MAX);
    const int64_t a = next_document(t, t->n / 3), b = next_document(t, t->n / 2);
    weir_err err = {0};
    weir_neurons *whole = sk_search(&o, t, 100, false), *s = sk_new(&o), *late = search_part(&o, t, b, t->n);
    sk_feed(s, t, 0, a - 5, 50, false);
    assert_int_equal(weir_neurons_finish(s, &err), WEIR_OK);
    assert_false(sk_same(whole, s));
    sk_feed(s, t, a - 5, a, 50, false);
    assert_int_equal(weir_neurons_finish(s, &err), WEIR_OK);
    assert_int_equal(weir_neurons_merge(s, late, &err), WEIR_OK);
    sk_feed(s, t, a, b, 50, false); /* these places lie before some that the lists have */
    assert_int_equal(weir_neurons_finish(s, &err), WEIR_OK);
    assert_true(sk_same(whole, s));
    weir_neurons_free(late);
    weir_neurons_free(s);
    weir_neurons_free(whole);
    sk_text_free(t);
}

/* Counters are full after 2^31 rows: a search that is said to be nearly there. */
static void test_spill(void **state)
{
    (void)state;
    sk_text *t = sk_text_new(9, 20);
    const weir_neurons_options o = options_of(5, WEIR_DEDUP_NONE, WEIR_RANK_MAX);
    weir_err err = {0};
    weir_neurons *want = sk_search(&o, t, 100, false), *s = sk_new(&o);
    for (int table = 0; table < SK_TABLES; table++)
        s->table[table].hist_rows = INT32_MAX - 250;
    sk_feed(s, t, 0, t->n, 100, false);
    assert_int_equal(weir_neurons_finish(s, &err), WEIR_OK);
    assert_non_null(s->table[0].hist_all);
    assert_true(s->table[0].hist_rows < t->n);
    assert_true(sk_same(want, s));
    weir_neurons_free(s);
    weir_neurons_free(want);
    sk_text_free(t);
}

/* --- rows */

static void test_counts(void **state)
{
    (void)state;
    sk_text *t = sk_text_new(10, 25);
    brute *b = brute_new(t);
    const weir_neurons_options o = options_of(5, WEIR_DEDUP_NONE, WEIR_RANK_MAX);
    weir_neurons *s = sk_search(&o, t, 33, true);
    const weir_neurons_counts c = weir_neurons_counts_of(s);
    int64_t masked[WEIR_MASK_KINDS] = {0};
    for (int64_t k = 0; k < b->n; k++)
        masked[t->mask[b->row[k]]]++;
    assert_int_equal(c.docs, 25);
    assert_int_equal(c.rows, b->n);
    assert_true(t->n > b->n); /* windows overlap */
    assert_int_equal(c.context, 0);
    assert_memory_equal(c.masked, masked, sizeof masked);
    assert_int_equal(masked[WEIR_MASK_BOS], 25);
    assert_int_equal(weir_spool_count(s->tokens), b->n);
    weir_neurons_free(s);
    free(b);
    sk_text_free(t);
}

/* Rows that are context only and new: kept as text, not counted; skipped rows of one table. */
static void test_context_and_skipped(void **state)
{
    (void)state;
    enum { N = 20 };
    static float x[N * SK_WIDTH];
    int32_t id[N];
    int64_t doc[N], pos[N];
    uint8_t keep[N], skip[N];
    weir_err err = {0};
    weir_neurons_options o = options_of(100, WEIR_DEDUP_NONE, WEIR_RANK_MAX);
    weir_neurons *s = sk_new(&o);
    for (int i = 0; i < N; i++) {
        id[i] = i;
        doc[i] = 0;
        pos[i] = i;
        keep[i] = i >= 4;
        skip[i] = i % 5 == 0;
        for (int j = 0; j < SK_WIDTH; j++)
            x[i * SK_WIDTH + j] = (float)(i + j);
    }
    const weir_neurons_rows_of rows = {N, id, doc, pos, pos, keep, NULL};
    assert_int_equal(weir_neurons_rows(s, &rows, false, &err), WEIR_OK);
    weir_neurons_values v = {.x = x, .stride = SK_WIDTH, .whole = true, .skip = skip};
    assert_int_equal(weir_neurons_add(s, 0, &v, &err), WEIR_OK);
    v = (weir_neurons_values){.x = x, .stride = SK_WIDTH}; /* neuron i in column i */
    assert_int_equal(weir_neurons_add(s, 1, &v, &err), WEIR_OK);
    assert_int_equal(weir_neurons_add(s, 1, &v, &err), WEIR_OK); /* the same rows again: not counted twice */
    assert_int_equal(weir_neurons_finish(s, &err), WEIR_OK);
    weir_neuron_stats stats;
    weir_neuron_hit hit[100];
    weir_neurons_stats(s, 0, 2, &stats);
    assert_int_equal(stats.count, 13);
    assert_int_equal(weir_neurons_skipped(s, 0), 3);
    assert_int_equal(weir_neurons_counts_of(s).context, 4);
    assert_int_equal(weir_neurons_counts_of(s).rows, N);
    assert_int_equal(weir_neurons_hits(s, 1, 2, WEIR_NEURONS_BOTTOM, hit), 16);
    assert_true(hit[0].value == 4 + 2 && hit[0].pos == 4);
    assert_int_equal(weir_neurons_context_of(s, 0, 4, -1).n, 18);
    weir_neurons_free(s);
}

/* --- bins */

static void test_bins(void **state)
{
    (void)state;
    assert_int_equal(weir_neurons_bin(0.0f), 321);
    assert_int_equal(weir_neurons_bin(-0.0f), 321);
    assert_int_equal(weir_neurons_bin(0x1p-20f), 322);
    assert_int_equal(weir_neurons_bin(nextafterf(0x1p-20f, 0)), 321);
    assert_int_equal(weir_neurons_bin(-0x1p-20f), 320);
    assert_int_equal(weir_neurons_bin(0x1p20f), 642);
    assert_int_equal(weir_neurons_bin(nextafterf(0x1p20f, 0)), 641);
    assert_int_equal(weir_neurons_bin(-0x1p20f), 0);
    assert_int_equal(weir_neurons_bin(3.4e38f), 642);
    assert_int_equal(weir_neurons_bin(-3.4e38f), 0);
    for (int bin = 1; bin < WEIR_NEURONS_BINS; bin++) {
        const float edge = (float)weir_neurons_edge(bin);
        assert_true((double)edge == weir_neurons_edge(bin) && edge > weir_neurons_edge(bin - 1));
        for (int step = -1; step <= 1; step++) {
            const float x = step ? nextafterf(edge, step * INFINITY) : edge;
            assert_int_equal(weir_neurons_bin(x), brute_bin(x));
        }
    }
    assert_true(isinf(weir_neurons_edge(0)) && isinf(weir_neurons_edge(WEIR_NEURONS_BINS)));
}

/* --- what is refused */

static void refuse(const weir_neurons_options *o, const weir_neurons_table *t, int n, const char *why)
{
    weir_err err = {0};
    weir_neurons *s;
    assert_int_equal(weir_neurons_new(&s, o, t, n, &err), WEIR_E_ARG);
    assert_null(s);
    assert_non_null(strstr(err.msg, why));
}

static void test_refused_options(void **state)
{
    (void)state;
    const int64_t backward[] = {3, 2}, beyond[] = {3, 9};
    const weir_neurons_table good = {"h", "post", 0, 9, 9, NULL};
    const weir_neurons_named unknown = {0, 9}, twice[] = {{0, 3}, {0, 3}};
    weir_neurons_options o;
#define REFUSE(set, why)                                                                                               \
    do {                                                                                                               \
        weir_neurons_options_init(&o);                                                                                 \
        set;                                                                                                           \
        refuse(&o, &good, 1, why);                                                                                     \
    } while (0)
    REFUSE(o.k = 0, "k is 0");
    REFUSE(o.k = WEIR_NEURONS_MAX_K + 1, "k is 10001");
    REFUSE(o.lists = 8, "set of lists");
    REFUSE(o.dedup_n = 0, "dedup_n");
    REFUSE(o.threshold[0] = 1, "first threshold");
    REFUSE((o.n_thresholds = 2, o.threshold[1] = 1e300), "threshold 1");
    REFUSE(o.n_thresholds = 17, "thresholds");
    REFUSE(o.per_band = 101, "per_band");
    REFUSE(o.random = 1001, "random");
    REFUSE(o.before = -1, "before");
    REFUSE(o.threads = -1, "threads");
    REFUSE((o.n_named = 1, o.named = &unknown), "neuron 9");
    REFUSE((o.n_named = 2, o.named = twice), "named twice");
    REFUSE(o.kernel = "mmx", "mmx");
#undef REFUSE
    weir_neurons_options_init(&o);
    refuse(&o, &good, 0, "tables");
    refuse(&o, &(weir_neurons_table){"h", "post", 0, 9, 2, backward}, 1, "unit 2");
    refuse(&o, &(weir_neurons_table){"h", "post", 0, 9, 2, beyond}, 1, "unit 9");
    refuse(&o, &(weir_neurons_table){"h", "post", 0, 9, 8, NULL}, 1, "8 neurons of 9");
    refuse(&o, (weir_neurons_table[]){good, good}, 2, "twice");
}

static void test_refused_rows(void **state)
{
    (void)state;
    int32_t id[] = {5, 6};
    int64_t pos[] = {0, 1};
    const uint8_t mask[] = {0, 9};
    weir_neurons_options o;
    weir_neurons_options_init(&o);
    weir_neurons *s = sk_new(&o);
    const struct {
        int64_t doc[2];
        const uint8_t *mask;
        bool again;
        const char *why;
    } bad[] = {{{7, 6}, NULL, false, "must ascend"},
               {{0, (int64_t)1 << 32}, NULL, false, "below 2^32"},
               {{0, -1}, NULL, false, "below 2^32"},
               {{0, 0}, mask, false, "reason 9"},
               {{0, 0}, NULL, true, "before"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weir_err err = {0};
        const weir_neurons_rows_of rows = {2, id, bad[i].doc, pos, pos, NULL, bad[i].mask};
        assert_int_equal(weir_neurons_rows(s, &rows, bad[i].again, &err), WEIR_E_ARG);
        assert_non_null(strstr(err.msg, bad[i].why));
        assert_int_equal(weir_neurons_counts_of(s).rows, 0);
    }
    weir_err err = {0};
    assert_int_equal(weir_neurons_add(s, SK_TABLES, &(weir_neurons_values){0}, &err), WEIR_E_ARG);
    weir_neurons_free(s);
    weir_neurons_free(NULL);
}

/* --- the vocabulary */

static void test_vocabulary(void **state)
{
    (void)state;
    const int64_t offset[] = {2, 4, 4, 7}, crossed[] = {0, 3, 2};
    const uint8_t special[] = {0, 1, 0};
    weir_neurons_options o;
    weir_neurons_options_init(&o);
    weir_neurons *s = sk_new(&o);
    weir_err err = {0};
    assert_int_equal(weir_neurons_vocab_bytes(s, 3, (const uint8_t *)"..abxyz", offset, special, &err), WEIR_OK);
    assert_int_equal(weir_neurons_vocab_size(s), 3);
    assert_memory_equal(weir_neurons_token(s, 2).p, "xyz", 3);
    assert_int_equal(weir_neurons_token(s, 0).n, 2);
    assert_int_equal(weir_neurons_token(s, 1).n, 0);
    assert_int_equal(weir_neurons_token(s, 3).n, 0);
    assert_int_equal(weir_neurons_token(s, -1).n, 0);
    assert_true(weir_neurons_token_special(s, 1) && !weir_neurons_token_special(s, 2));
    assert_int_equal(weir_neurons_vocab_bytes(s, 2, (const uint8_t *)"abc", crossed, NULL, &err), WEIR_E_ARG);
    weir_neurons_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_brute_force_can_fail),
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_merged),
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_spill),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_context_and_skipped),
        cmocka_unit_test(test_bins),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_refused_rows),
        cmocka_unit_test(test_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
