/* search/detail_pairs.c: correlations of named neurons with every unit of their hook point. */
#include <math.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "search/detail.h"
#include "search/moments_wide.h"

void weir_relations_free(weir_relations *g)
{
    weir_free(g->column);
    weir_free(g->rows);
    weir_free(g->sum);
    weir_free(g->square);
    weir_free(g->count);
    weir_free(g->product);
    weir_free(g->both);
    weir_free(g->apart);
    weir_free(g->apart_count);
}

static weir_status group_new(weir_neurons *s, weir_detail *d, int t, weir_err *err)
{
    const weir_neurons_table *table = &s->table[t].pub;
    weir_relations *g = &d->group[d->n_groups++];
    const size_t width = (size_t)table->width;
    g->table = t;
    g->width = table->width;
    for (int j = 0; j < s->o.n_named; j++)
        if (s->named[j].table == t) {
            d->group_of[j] = d->n_groups - 1;
            d->member_of[j] = g->n++;
        }
    const size_t n = (size_t)g->n;
    g->column = weir_calloc(n, sizeof *g->column);
    g->rows = weir_calloc(1, sizeof *g->rows);
    g->sum = weir_calloc(width, sizeof *g->sum);
    g->square = weir_calloc(width, sizeof *g->square);
    g->count = weir_calloc(width, 3 * sizeof *g->count);
    g->product = weir_calloc(width, n * sizeof *g->product);
    g->both = weir_calloc(width, n * sizeof *g->both);
    if (!g->column || !g->rows || !g->sum || !g->square || !g->count || !g->product || !g->both)
        return weir_nomem(err, "correlations of named neurons");
    for (int j = 0, k = 0; j < s->o.n_named; j++)
        if (s->named[j].table == t) {
            const int64_t i = s->named[j].neuron;
            g->column[k++] = table->units ? table->units[i] : i;
        }
    return WEIR_OK;
}

/* The kernel that goes with the kernel table in use. */
static weir_status pick(weir_detail *d, const char *name, weir_err *err)
{
    const weir_kern *k;
    WEIR_TRY(weir_kern_pick(&k, name, err));
    d->pairs = weir_pairs_ref;
#if defined(__x86_64__)
    if (!strcmp(weir_kern_name(k), "avx2"))
        d->pairs = weir_pairs_avx2;
    if (!strcmp(weir_kern_name(k), "avx512"))
        d->pairs = weir_pairs_avx512;
#endif
    return WEIR_OK;
}

weir_status weir_relations_new(weir_neurons *s, weir_detail *d, weir_err *err)
{
    WEIR_TRY(pick(d, s->o.kernel, err));
    d->group = weir_calloc((size_t)s->n_tables, sizeof *d->group);
    if (!d->group)
        return weir_nomem(err, "correlations of named neurons");
    for (int t = 0; t < s->n_tables; t++) {
        bool any = false;
        for (int j = 0; j < s->o.n_named; j++)
            any |= s->named[j].table == t;
        if (any)
            WEIR_TRY(group_new(s, d, t, err));
    }
    return WEIR_OK;
}

weir_status weir_relations_apart(weir_detail *d, weir_err *err)
{
    for (int i = 0; i < d->n_groups; i++) {
        weir_relations *g = &d->group[i];
        const size_t n = (size_t)g->n;
        if (!g->apart)
            g->apart = weir_calloc((size_t)g->width, 4 * n * sizeof *g->apart);
        if (!g->apart_count)
            g->apart_count = weir_calloc((size_t)g->width, 3 * n * sizeof *g->apart_count);
        if (!g->apart || !g->apart_count)
            return weir_nomem(err, "correlations of neurons with values that are not finite");
    }
    d->apart = true;
    return WEIR_OK;
}

/* --- rows */

typedef struct work {
    const weir_detail *d;
    const weir_relations *g;
    const float *x, *y;
    int64_t stride;
    const int32_t *row;
    int64_t m;
} work;

static void block(void *ctx, int64_t i, int thread)
{
    (void)thread;
    const work *w = ctx;
    const weir_relations *g = w->g;
    const int64_t at = i * WEIR_NEURONS_BLOCK, left = g->width - at;
    const weir_pairs p = {g->sum + at, g->square + at,  g->count + 3 * at, g->n,
                          w->y,        g->product + at, g->both + at,      g->width};
    w->d->pairs(&p, w->x + at, w->stride, w->row, w->m, left < WEIR_NEURONS_BLOCK ? left : WEIR_NEURONS_BLOCK);
}

static int64_t not_finite(const weir_relations *g)
{
    int64_t n = 0;
    for (int64_t u = 0; u < g->width; u++)
        n += g->count[3 * u + WEIR_NOT_FINITE];
    return n;
}

static void add_apart(weir_wide sums[2], float x)
{
    const weir_float_parts p = weir_float_take(x);
    if (p.beyond)
        return;
    weir_wide_add_scaled(&sums[0], p.m, p.e, p.negative);
    weir_wide_add_square(&sums[1], p);
}

/* Member k in one row. */
static void row_apart(weir_relations *g, int k, const float *x)
{
    const float y = x[g->column[k]];
    for (int64_t u = 0; u < g->width; u++) {
        weir_wide *sums = g->apart + 4 * (k * g->width + u);
        int64_t *count = g->apart_count + 3 * (k * g->width + u);
        if (!isfinite(y) && isfinite(x[u])) {
            add_apart(sums, x[u]);
            count[0]++;
            count[1] += x[u] > 0;
        } else if (isfinite(y) && !isfinite(x[u])) {
            add_apart(sums + 2, y);
            count[2] += y > 0;
        }
    }
}

weir_status weir_relations_add(weir_neurons *s, weir_relations *g, const float *x, int64_t stride, const int32_t *row,
                               int64_t m, weir_err *err)
{
    float *y = weir_calloc((size_t)m, (size_t)g->n * sizeof *y);
    if (!y)
        return weir_nomem(err, "values of named neurons");
    for (int k = 0; k < g->n; k++)
        for (int64_t r = 0; r < m; r++)
            y[k * m + r] = x[row[r] * stride + g->column[k]];
    const int64_t before = not_finite(g);
    work w = {s->detail, g, x, y, stride, row, m};
    weir_parallel_for(s->threads, (g->width + WEIR_NEURONS_BLOCK - 1) / WEIR_NEURONS_BLOCK, 1, block, &w);
    weir_free(y);
    *g->rows += m;
    if (not_finite(g) == before)
        return WEIR_OK;
    WEIR_TRY(weir_relations_apart(s->detail, err));
    for (int64_t r = 0; r < m; r++)
        for (int k = 0; k < g->n; k++)
            row_apart(g, k, x + row[r] * stride);
    return WEIR_OK;
}

static void add_wides(weir_wide *to, const weir_wide *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        weir_wide_add(&to[i], &from[i]);
}

static void add_counts(int64_t *to, const int64_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

void weir_relations_merge(weir_relations *to, const weir_relations *from)
{
    const int64_t w = to->width, nw = to->n * w;
    *to->rows += *from->rows;
    add_wides(to->sum, from->sum, w);
    add_wides(to->square, from->square, w);
    add_counts(to->count, from->count, 3 * w);
    add_wides(to->product, from->product, nw);
    add_counts(to->both, from->both, nw);
    if (from->apart) {
        add_wides(to->apart, from->apart, 4 * nw);
        add_counts(to->apart_count, from->apart_count, 3 * nw);
    }
}

/* --- results */

/* Exact sums of one member of a pair over rows where both are finite. */
typedef struct side {
    weir_wide sum, square;
    int64_t firing;
} side;

static side side_of(const weir_relations *g, int64_t unit, const weir_wide *apart, int64_t firing_apart)
{
    side s = {g->sum[unit], g->square[unit], g->count[3 * unit + WEIR_FIRING] - firing_apart};
    if (apart) {
        weir_wide_sub(&s.sum, &apart[0]);
        weir_wide_sub(&s.square, &apart[1]);
    }
    return s;
}

static weir_neuron_relation relation(const weir_relations *g, int k, int64_t u)
{
    const int64_t at = k * g->width + u, i = g->column[k];
    static const int64_t none[3] = {0};
    const int64_t *out = g->apart ? g->apart_count + 3 * at : none;
    const weir_wide *apart = g->apart ? g->apart + 4 * at : NULL;
    const side a = side_of(g, u, apart, out[1]), b = side_of(g, i, apart ? apart + 2 : NULL, out[2]);
    const int64_t n = *g->rows - g->count[3 * u + WEIR_NOT_FINITE] - out[0];
    const int64_t either = a.firing + b.firing - g->both[at];
    weir_neuron_relation e = {u, (double)NAN, either > 0 ? (double)g->both[at] / (double)either : (double)NAN};
    if (g->count[3 * u + WEIR_BEYOND] || g->count[3 * i + WEIR_BEYOND])
        return e;
    const double va = weir_wide_covariance(&a.square, &a.sum, &a.sum, n);
    const double vb = weir_wide_covariance(&b.square, &b.sum, &b.sum, n);
    if (va > 0 && vb > 0) {
        e.r = weir_wide_covariance(&g->product[at], &a.sum, &b.sum, n) / sqrt(va * vb);
        e.r = e.r > 1 ? 1 : e.r < -1 ? -1 : e.r;
    }
    return e;
}

/* What has no number comes last. */
static int compare(double a, double b, int64_t unit_a, int64_t unit_b)
{
    a = isnan(a) ? -1 : a;
    b = isnan(b) ? -1 : b;
    return a != b ? (a < b) - (a > b) : (unit_a > unit_b) - (unit_a < unit_b);
}

static int by_r(const void *a, const void *b)
{
    const weir_neuron_relation *p = a, *q = b;
    return compare(fabs(p->r), fabs(q->r), p->unit, q->unit);
}

static int by_cofiring(const void *a, const void *b)
{
    const weir_neuron_relation *p = a, *q = b;
    return compare(p->cofire, q->cofire, p->unit, q->unit);
}

int64_t weir_neurons_related(const weir_neurons *s, int named, bool by_cofire, int64_t n, weir_neuron_relation *out)
{
    const weir_detail *d = s->detail;
    if (!d || named < 0 || named >= d->n_named || d->group_of[named] < 0)
        return 0;
    const weir_relations *g = &d->group[d->group_of[named]];
    const int k = d->member_of[named];
    int64_t count = 0;
    for (int64_t u = 0; u < g->width; u++) {
        const weir_neuron_relation e = relation(g, k, u);
        if (u != g->column[k])
            weir_keep_best(out, &count, n, sizeof e, &e, by_cofire ? by_cofiring : by_r);
    }
    qsort(out, (size_t)count, sizeof *out, by_cofire ? by_cofiring : by_r);
    return count;
}
