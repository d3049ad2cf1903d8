/* unit/search_kit.h: a small text with activations for searches, and what a search of it must find, by brute force. */
#ifndef WEIR_TEST_SEARCH_KIT_H
#define WEIR_TEST_SEARCH_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/impl.h"

enum { SK_ROWS = 4000, SK_WIDTH = 83, SK_TABLES = 2 };

/* Rows in the order in which they are fed; those that are repeated as context too. */
typedef struct sk_text {
    int64_t n;
    int32_t id[SK_ROWS];
    int64_t doc[SK_ROWS], pos[SK_ROWS], ctx_pos[SK_ROWS];
    uint8_t keep[SK_ROWS], mask[SK_ROWS];
    float *x; /* [SK_TABLES, SK_ROWS, SK_WIDTH] */
} sk_text;

static uint64_t sk_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double sk_uniform(uint64_t *state) /* [0, 1) */
{
    return (double)(sk_random(state) >> 11) * 0x1p-53;
}

static void sk_row(sk_text *t, int64_t doc, int64_t pos, int64_t ctx_pos, int32_t id, bool keep, int mask)
{
    assert_true(t->n < SK_ROWS);
    t->doc[t->n] = doc;
    t->pos[t->n] = pos;
    t->ctx_pos[t->n] = ctx_pos;
    t->id[t->n] = id;
    t->keep[t->n] = keep;
    t->mask[t->n++] = (uint8_t)mask;
}

/* A document of n tokens behind a BOS, in windows of 32 that overlap by 8; each window begins with the BOS again. */
static void sk_document(sk_text *t, int64_t doc, int64_t n, uint64_t seed)
{
    enum { WINDOW = 32, OVERLAP = 8, BOS = 1 };
    int32_t id[SK_ROWS];
    for (int64_t i = 1; i <= n; i++)
        id[i] = 3 + (int32_t)(sk_random(&seed) % 5);
    for (int64_t begin = 1; begin <= n; begin += WINDOW - 1 - OVERLAP) {
        sk_row(t, doc, begin == 1 ? 0 : -1, 0, BOS, true, WEIR_MASK_BOS);
        for (int64_t c = 1; c < WINDOW && begin + c - 1 <= n; c++) {
            const int64_t pos = begin + c - 1;
            const bool repeated = begin > 1 && c <= OVERLAP;
            sk_row(t, doc, pos, c, id[pos], !repeated, id[pos] == 7 ? WEIR_MASK_ID : 0);
        }
        if (begin + WINDOW - 2 >= n)
            break;
    }
}

/* What neurons do, by their number modulo 8. */
static float sk_value(const sk_text *t, int64_t row, int64_t neuron, uint64_t *state)
{
    const double u = sk_uniform(state), v = sk_uniform(state);
    const int64_t back = t->ctx_pos[row] > 0 ? 1 : 0;
    switch (neuron % 8) {
    case 1:
        return (float)(sk_random(state) % 4) / 4; /* ties */
    case 2:
        return -(float)u - 0.01f; /* never positive */
    case 3:
        return u < 0.5 ? 0.0f : -0.0f; /* dead, with both zeros */
    case 4:
        return u < 0.1 ? NAN : u < 0.2 ? INFINITY : u < 0.3 ? -INFINITY : (float)(v - 0.5);
    case 5:
        return NAN;
    case 6:
        return (float)((v < 0.5 ? -1 : 1) * exp2(300 * u - 150)); /* every magnitude, subnormal ones too */
    case 7:
        return (float)(t->id[row] * 10 + t->id[row - back]) / 16 - 2; /* of the text: repeated with it */
    default:
        return (float)((u + v + sk_uniform(state) - 1.5) * (double)(1 + neuron));
    }
}

/* Documents of 1 to 150 tokens, some of them twice or more often. */
static sk_text *sk_text_new(uint64_t seed, int docs)
{
    sk_text *t = calloc(1, sizeof *t);
    for (int64_t d = 0; d < docs; d++) {
        const int64_t n = d % 9 == 4 ? 150 : 1 + (int64_t)(sk_random(&seed) % 40);
        const uint64_t content = sk_random(&seed);
        sk_document(t, 2 * d, d % 3 == 2 ? 20 : n, d % 3 == 2 ? 77 : content);
    }
    t->x = calloc((size_t)SK_TABLES * SK_ROWS * SK_WIDTH, sizeof *t->x);
    for (int table = 0; table < SK_TABLES; table++)
        for (int64_t r = 0; r < t->n; r++)
            for (int64_t i = 0; i < SK_WIDTH; i++)
                t->x[(table * SK_ROWS + r) * SK_WIDTH + i] = sk_value(t, r, i, &seed);
    return t;
}

static void sk_text_free(sk_text *t)
{
    free(t->x);
    free(t);
}

static float sk_at(const sk_text *t, int table, int64_t row, int64_t unit)
{
    return t->x[(table * SK_ROWS + row) * SK_WIDTH + unit];
}

/* --- searching */

/* Table 0 has all units of its point, table 1 every third. */
static const int64_t *sk_units(void)
{
    static int64_t units[SK_WIDTH / 3];
    for (int64_t i = 0; i < SK_WIDTH / 3; i++)
        units[i] = 3 * i + 1;
    return units;
}

static int64_t sk_unit(int table, int64_t i)
{
    return table == 0 ? i : sk_units()[i];
}

static weir_neurons *sk_new(const weir_neurons_options *o)
{
    const weir_neurons_table table[SK_TABLES] = {
        {.hook = "blocks.0.mlp.hook_post", .site = "post", .layer = 0, .width = SK_WIDTH, .n = SK_WIDTH},
        {"blocks.1.mlp.hook_post", "post", 1, SK_WIDTH, SK_WIDTH / 3, sk_units()}};
    weir_err err = {0};
    weir_neurons *s;
    assert_int_equal(weir_neurons_new(&s, o, table, SK_TABLES, &err), WEIR_OK);
    return s;
}

static weir_neurons_rows_of sk_rows(const sk_text *t, int64_t from, int64_t n)
{
    return (weir_neurons_rows_of){
        n, t->id + from, t->doc + from, t->pos + from, t->ctx_pos + from, t->keep + from, t->mask + from};
}

static void sk_add(weir_neurons *s, const sk_text *t, int table, int64_t from)
{
    weir_err err = {0};
    const weir_neurons_values v = {.x = t->x + (table * SK_ROWS + from) * SK_WIDTH, .stride = SK_WIDTH, .whole = true};
    assert_int_equal(weir_neurons_add(s, table, &v, &err), WEIR_OK);
}

/* Rows [from, to) in passes of `batch` rows; by_table: each table in a sweep of its own, as a dump is read. */
static void sk_feed(weir_neurons *s, const sk_text *t, int64_t from, int64_t to, int64_t batch, bool by_table)
{
    weir_err err = {0};
    for (int sweep = 0; sweep < (by_table ? SK_TABLES : 1); sweep++)
        for (int64_t r = from; r < to; r += batch) {
            const weir_neurons_rows_of rows = sk_rows(t, r, to - r < batch ? to - r : batch);
            assert_int_equal(weir_neurons_rows(s, &rows, sweep > 0, &err), WEIR_OK);
            for (int table = 0; table < SK_TABLES; table++)
                if (!by_table || table == sweep)
                    sk_add(s, t, table, r);
        }
}

static weir_neurons *sk_search(const weir_neurons_options *o, const sk_text *t, int64_t batch, bool by_table)
{
    weir_err err = {0};
    weir_neurons *s = sk_new(o);
    sk_feed(s, t, 0, t->n, batch, by_table);
    assert_int_equal(weir_neurons_finish(s, &err), WEIR_OK);
    return s;
}

/* --- are two searches the same? */

static bool sk_same_hits(const weir_neuron_hit *a, const weir_neuron_hit *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&a[i].value, &b[i].value, sizeof a[i].value) || a[i].doc != b[i].doc || a[i].pos != b[i].pos ||
            a[i].count != b[i].count)
            return false;
    return true;
}

static bool sk_same_neuron(const weir_neurons *a, const weir_neurons *b, int t, int64_t i)
{
    weir_neuron_stats p, q;
    int64_t h[WEIR_NEURONS_BINS], g[WEIR_NEURONS_BINS], n;
    static weir_neuron_hit x[WEIR_NEURONS_MAX_K], y[WEIR_NEURONS_MAX_K];
    memset(&p, 0, sizeof p);
    memset(&q, 0, sizeof q);
    weir_neurons_stats(a, t, i, &p);
    weir_neurons_stats(b, t, i, &q);
    weir_neurons_hist(a, t, i, h);
    weir_neurons_hist(b, t, i, g);
    bool same = memcmp(&p, &q, sizeof p) == 0 && memcmp(h, g, sizeof h) == 0;
    same = same && memcmp(&a->table[t].sums[i], &b->table[t].sums[i], sizeof(weir_sums)) == 0;
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++) {
        const weir_lists *l = &a->table[t].list[which], *m = &b->table[t].list[which];
        same = same && l->room == m->room && (!l->room || l->size[i] == m->size[i]);
        for (int64_t j = 0; same && l->room && j < l->size[i]; j++) { /* the place that just missed it too */
            const weir_entry e = weir_lists_get(l, i, j), f = weir_lists_get(m, i, j);
            same = !memcmp(&e.value, &f.value, sizeof e.value) && e.at.doc == f.at.doc && e.at.pos == f.at.pos &&
                   e.key == f.key && e.count == f.count;
        }
    }
    for (int band = 0; band < WEIR_NEURONS_BANDS; band++) {
        n = weir_neurons_band(a, t, i, band, x);
        same = same && weir_neurons_band(b, t, i, band, y) == n && sk_same_hits(x, y, n);
    }
    n = weir_neurons_random(a, t, i, x);
    return same && weir_neurons_random(b, t, i, y) == n && sk_same_hits(x, y, n);
}

static bool sk_same(const weir_neurons *a, const weir_neurons *b)
{
    const weir_neurons_counts c = weir_neurons_counts_of(a), d = weir_neurons_counts_of(b);
    bool same = memcmp(&c, &d, sizeof c) == 0;
    for (int t = 0; t < SK_TABLES; t++) {
        same = same && weir_neurons_skipped(a, t) == weir_neurons_skipped(b, t);
        for (int64_t i = 0; i < a->table[t].n; i++)
            same = same && sk_same_neuron(a, b, t, i);
    }
    return same;
}

#endif
