/* search/detail.c: see detail.h. Named neurons: values by token, merging, arrays for files. */
#include "search/detail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

weir_status weir_detail_new(weir_neurons *s, weir_err *err)
{
    if (s->o.n_named == 0)
        return WEIR_OK;
    weir_detail *d = s->detail = weir_calloc(1, sizeof *d);
    if (!d)
        return weir_nomem(err, "named neurons");
    d->n_named = s->o.n_named;
    d->ids = s->o.token_means;
    for (int j = 0; j < d->n_named; j++)
        d->group_of[j] = -1;
    d->slot_of = weir_calloc((size_t)d->ids, sizeof *d->slot_of);
    if (!d->slot_of)
        return weir_nomem(err, "means by token");
    return s->o.correlate ? weir_relations_new(s, d, err) : WEIR_OK;
}

void weir_detail_free(weir_detail *d)
{
    if (!d)
        return;
    for (int i = 0; i < d->n_groups; i++)
        weir_relations_free(&d->group[i]);
    weir_free(d->group);
    weir_free(d->slot_of);
    weir_free(d->id);
    weir_free(d->count);
    weir_free(d->sum);
    weir_free(d->row);
    weir_free(d);
}

/* --- tokens */

/* Room for n tokens in all. */
static weir_status tokens_room(weir_detail *d, int64_t n, weir_err *err)
{
    if (n <= d->room)
        return WEIR_OK;
    int64_t room = d->room ? 2 * d->room : 256;
    room = n > room ? n : room;
    const size_t named = (size_t)d->n_named;
    int32_t *id = weir_realloc(d->id, (size_t)room, sizeof *id);
    d->id = id ? id : d->id;
    int64_t *count = weir_realloc(d->count, (size_t)room, named * sizeof *count);
    d->count = count ? count : d->count;
    weir_wide *sum = weir_realloc(d->sum, (size_t)room, named * sizeof *sum);
    d->sum = sum ? sum : d->sum;
    if (!id || !count || !sum)
        return weir_nomem(err, "means by token");
    d->room = room;
    return WEIR_OK;
}

/* The slot of a token, a new one if need be; -1: it is not counted. */
static weir_status slot_of(weir_detail *d, int32_t id, int64_t *slot, weir_err *err)
{
    *slot = -1;
    if (id < 0 || id >= d->ids)
        return WEIR_OK;
    if (!d->slot_of[id]) {
        WEIR_TRY(tokens_room(d, d->n_tokens + 1, err));
        const size_t at = (size_t)d->n_tokens * (size_t)d->n_named;
        memset(d->count + at, 0, (size_t)d->n_named * sizeof *d->count);
        memset(d->sum + at, 0, (size_t)d->n_named * sizeof *d->sum);
        d->id[d->n_tokens++] = id;
        d->slot_of[id] = (int32_t)d->n_tokens;
    }
    *slot = d->slot_of[id] - 1;
    return WEIR_OK;
}

static weir_status add_token(weir_detail *d, int j, int32_t id, float x, weir_err *err)
{
    int64_t slot;
    WEIR_TRY(slot_of(d, id, &slot, err));
    if (slot >= 0 && isfinite(x)) {
        d->count[slot * d->n_named + j]++;
        weir_wide_add_double(&d->sum[slot * d->n_named + j], (double)x);
    }
    return WEIR_OK;
}

/* Puts the token of slot a into slot b, and the other way round. */
static void swap_tokens(weir_detail *d, int64_t a, int64_t b)
{
    const int32_t id = d->id[a];
    d->id[a] = d->id[b];
    d->id[b] = id;
    d->slot_of[d->id[a]] = (int32_t)a + 1;
    d->slot_of[d->id[b]] = (int32_t)b + 1;
    for (int j = 0; j < d->n_named; j++) {
        const int64_t p = a * d->n_named + j, q = b * d->n_named + j, count = d->count[p];
        const weir_wide sum = d->sum[p];
        d->count[p] = d->count[q];
        d->count[q] = count;
        d->sum[p] = d->sum[q];
        d->sum[q] = sum;
    }
}

void weir_detail_sort(weir_detail *d)
{
    int64_t at = 0;
    for (int64_t id = 0; id < d->ids; id++)
        if (d->slot_of[id])
            swap_tokens(d, at++, d->slot_of[id] - 1);
}

/* --- rows */

/* Rows of the values, of the packed rows that are counted. */
static weir_status value_rows(weir_neurons *s, const int32_t *rows, int64_t m, weir_err *err)
{
    weir_detail *d = s->detail;
    if (m > d->row_room) {
        int32_t *row = weir_realloc(d->row, (size_t)m, sizeof *row);
        if (!row)
            return weir_nomem(err, "rows of named neurons");
        d->row = row;
        d->row_room = m;
    }
    for (int64_t r = 0; r < m; r++)
        d->row[r] = s->pass.row[rows[r]];
    return WEIR_OK;
}

static weir_status add_named(weir_neurons *s, int j, const float *x, int64_t stride, const int32_t *rows, int64_t m,
                             weir_err *err)
{
    for (int64_t r = 0; r < m; r++) {
        const int32_t c = rows[r];
        const float value = x[s->pass.row[c] * stride];
        WEIR_TRY(add_token(s->detail, j, s->pass.id[c], value, err));
        if (s->heat) {
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            WEIR_TRY(weir_spool_add(s->heat[j], s->pass.at[c].doc, s->pass.at[c].pos, bits, err));
        }
    }
    return WEIR_OK;
}

weir_status weir_detail_add(weir_neurons *s, int t, const weir_neurons_values *v, const int32_t *rows, int64_t m,
                            weir_err *err)
{
    weir_detail *d = s->detail;
    if (!d || m == 0)
        return WEIR_OK;
    const weir_neurons_table *table = &s->table[t].pub;
    for (int j = 0; j < d->n_named; j++)
        if (s->named[j].table == t) {
            const int64_t i = s->named[j].neuron, column = v->whole && table->units ? table->units[i] : i;
            WEIR_TRY(add_named(s, j, v->x + column, v->stride, rows, m, err));
        }
    for (int i = 0; i < d->n_groups; i++)
        if (d->group[i].table == t) {
            if (!v->whole && table->n != table->width)
                return weir_fail(err, WEIR_E_ARG, "%s: correlations need whole rows, not the searched units alone",
                                 table->hook);
            WEIR_TRY(value_rows(s, rows, m, err));
            WEIR_TRY(weir_relations_add(s, &d->group[i], v->x, v->stride, d->row, m, err));
        }
    return WEIR_OK;
}

weir_status weir_detail_merge(weir_neurons *to, const weir_neurons *from, weir_err *err)
{
    weir_detail *a = to->detail;
    const weir_detail *b = from->detail;
    if (!a || !b)
        return WEIR_OK;
    if (b->apart)
        WEIR_TRY(weir_relations_apart(a, err));
    for (int64_t k = 0; k < b->n_tokens; k++) {
        int64_t slot;
        WEIR_TRY(slot_of(a, b->id[k], &slot, err));
        for (int j = 0; j < a->n_named; j++) {
            a->count[slot * a->n_named + j] += b->count[k * a->n_named + j];
            weir_wide_add(&a->sum[slot * a->n_named + j], &b->sum[k * a->n_named + j]);
        }
    }
    for (int i = 0; i < a->n_groups; i++)
        weir_relations_merge(&a->group[i], &b->group[i]);
    return WEIR_OK;
}

/* --- arrays */

/* Those of one group. */
static weir_detail_array group_array(const weir_relations *g, int i)
{
    const int64_t w = g->width, n = g->n, words = WEIR_SUM_WORDS;
    const struct {
        const char *name;
        weir_detail_array a;
    } all[] = {
        {"rows", {.type = WEIR_DETAIL_I64, .rank = 1, .dim = {1}, .p = g->rows}},
        {"sum", {.type = WEIR_DETAIL_U64, .rank = 2, .dim = {w, words}, .p = g->sum}},
        {"square", {.type = WEIR_DETAIL_U64, .rank = 2, .dim = {w, words}, .p = g->square}},
        {"count", {.type = WEIR_DETAIL_I64, .rank = 2, .dim = {w, 3}, .p = g->count}},
        {"product", {.type = WEIR_DETAIL_U64, .rank = 3, .dim = {n, w, words}, .p = g->product}},
        {"both", {.type = WEIR_DETAIL_I64, .rank = 2, .dim = {n, w}, .p = g->both}},
        {"apart", {.type = WEIR_DETAIL_U64, .rank = 3, .dim = {n, w, 4 * words}, .p = g->apart}},
        {"apart_count", {.type = WEIR_DETAIL_I64, .rank = 3, .dim = {n, w, 3}, .p = g->apart_count}},
    };
    weir_detail_array a = all[i].a;
    snprintf(a.name, sizeof a.name, "t%d_%s", g->table, all[i].name);
    return a;
}

bool weir_detail_array_at(const weir_detail *d, int i, weir_detail_array *out)
{
    enum { TOKENS = 3 };
    const int64_t t = d->n_tokens, n = d->n_named;
    const weir_detail_array tokens[TOKENS] = {
        {"token_id", WEIR_DETAIL_I32, 1, {t}, d->id},
        {"token_count", WEIR_DETAIL_I64, 2, {t, n}, d->count},
        {"token_sum", WEIR_DETAIL_U64, 3, {t, n, WEIR_SUM_WORDS}, d->sum},
    };
    const int each = d->apart ? 8 : 6;
    if (i < TOKENS)
        *out = tokens[i];
    else if (i - TOKENS < each * d->n_groups)
        *out = group_array(&d->group[(i - TOKENS) / each], (i - TOKENS) % each);
    else
        return false;
    return true;
}

weir_status weir_detail_room(weir_detail *d, int64_t n_tokens, bool apart, weir_err *err)
{
    if (n_tokens < 0 || n_tokens > d->ids)
        return weir_fail(err, WEIR_E_FORMAT, "sums by token of %lld tokens, where ids are below %lld",
                         (long long)n_tokens, (long long)d->ids);
    WEIR_TRY(tokens_room(d, n_tokens, err));
    d->n_tokens = n_tokens;
    return apart ? weir_relations_apart(d, err) : WEIR_OK;
}

/* Counts that cannot be, or whose sums would not fit into 64 bits. */
static bool bad_counts(const int64_t *count, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (count[i] < 0 || count[i] > INT64_C(1) << 53)
            return true;
    return false;
}

weir_status weir_detail_filled(weir_detail *d, weir_err *err)
{
    for (int64_t i = 0; i < d->n_tokens; i++) {
        const int32_t id = d->id[i];
        if (id < 0 || id >= d->ids || (i > 0 && id <= d->id[i - 1]))
            return weir_fail(err, WEIR_E_FORMAT, "token %lld of the sums by token is %d, out of order or range",
                             (long long)i, id);
        d->slot_of[id] = (int32_t)i + 1;
    }
    bool bad = bad_counts(d->count, d->n_tokens * d->n_named);
    for (int i = 0; i < d->n_groups; i++) {
        const weir_relations *g = &d->group[i];
        bad = bad || bad_counts(g->rows, 1) || bad_counts(g->count, 3 * g->width) ||
              bad_counts(g->both, g->n * g->width) || (g->apart && bad_counts(g->apart_count, 3 * g->n * g->width));
    }
    return bad ? weir_fail(err, WEIR_E_FORMAT, "a count of the named neurons is negative or too large") : WEIR_OK;
}

/* --- results */

/* Below i the worse one of two children is never better than its parent; now at i neither. */
static void sift(char *heap, int64_t i, int64_t n, size_t size, int (*order)(const void *, const void *))
{
    char kept[64];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && order(heap + (size_t)(child + 1) * size, heap + (size_t)child * size) > 0)
            child++;
        char *a = heap + (size_t)i * size, *b = heap + (size_t)child * size;
        if (order(a, b) >= 0)
            return;
        memcpy(kept, a, size);
        memcpy(a, b, size);
        memcpy(b, kept, size);
    }
}

void weir_keep_best(void *best, int64_t *count, int64_t most, size_t size, const void *e,
                    int (*order)(const void *, const void *))
{
    char *heap = best;
    if (*count < most) {
        memcpy(heap + (size_t)(*count)++ * size, e, size);
        if (*count == most) /* from now on a heap with the worst on top */
            for (int64_t n = most / 2; n-- > 0;)
                sift(heap, n, most, size, order);
    } else if (most > 0 && order(e, heap) < 0) {
        memcpy(heap, e, size);
        sift(heap, 0, most, size, order);
    }
}

static int falling(const void *a, const void *b)
{
    const weir_token_mean *p = a, *q = b;
    return p->mean != q->mean ? (p->mean < q->mean) - (p->mean > q->mean) : (p->id > q->id) - (p->id < q->id);
}

static int rising(const void *a, const void *b)
{
    const weir_token_mean *p = a, *q = b;
    return p->mean != q->mean ? (p->mean > q->mean) - (p->mean < q->mean) : (p->id > q->id) - (p->id < q->id);
}

int64_t weir_neurons_token_means(const weir_neurons *s, int named, bool descending, int64_t min_count, int64_t n,
                                 weir_token_mean *out)
{
    const weir_detail *d = s->detail;
    if (!d || named < 0 || named >= d->n_named)
        return 0;
    int64_t count = 0;
    for (int64_t k = 0; k < d->n_tokens; k++) {
        const int64_t at = k * d->n_named + named, seen = d->count[at];
        if (seen == 0 || seen < min_count)
            continue;
        const weir_token_mean e = {d->id[k], seen, weir_wide_to_double(&d->sum[at]) / (double)seen};
        weir_keep_best(out, &count, n, sizeof e, &e, descending ? falling : rising);
    }
    qsort(out, (size_t)count, sizeof *out, descending ? falling : rising);
    return count;
}
