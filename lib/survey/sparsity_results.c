/* survey/sparsity_results.c: from counts to quantiles, shares and cuts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "survey/sparsity.h"

static const double quantile[WEIR_SPARSITY_QUANTILES] = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};

int weir_sparsity_lines(const weir_sparsity *s)
{
    return s->n;
}

weir_sparsity_line weir_sparsity_line_of(const weir_sparsity *s, int line)
{
    const weir_sparsity_count *c = &s->line[line];
    const double n = (double)c->rows * (double)c->point->width;
    if (!c->rows) /* all were lost: there is no mean, and no deviation of 0 */
        return (weir_sparsity_line){
            .point = c->point, .lost = c->lost, .mean = NAN, .sd = NAN, .kurtosis = NAN, .hoyer = NAN};
    const double m = c->sum[0] / n, a = c->sum[1] / n, b = c->sum[2] / n, d = c->sum[3] / n;
    const double m2 = a - m * m, m4 = d - 4 * m * b + 6 * m * m * a - 3 * m * m * m * m;
    return (weir_sparsity_line){.point = c->point,
                                .rows = c->rows,
                                .lost = c->lost,
                                .zeros = c->zeros,
                                .mean = m,
                                .sd = sqrt(fmax(m2, 0)),
                                .kurtosis = m2 > 0 ? m4 / (m2 * m2) : NAN,
                                .hoyer = c->hoyer_rows ? c->hoyer / (double)c->hoyer_rows : NAN};
}

/* The rank-th smallest of the rows' L0, from 1. */
static int64_t l0_at(const weir_sparsity_at *a, int64_t rank)
{
    int64_t l = 0;
    for (int64_t seen = a->l0[0]; seen < rank; seen += a->l0[l])
        l++;
    return l;
}

weir_sparsity_active weir_sparsity_active_of(const weir_sparsity *s, int line, int t)
{
    const weir_sparsity_count *c = &s->line[line];
    const weir_sparsity_at *a = &c->at[t];
    weir_sparsity_active r = {.below = (double)a->below,
                              .small = a->small,
                              .pairs = a->pairs,
                              .jaccard = a->pairs ? a->jaccard / (double)a->pairs : NAN};
    for (int64_t i = 0; i < c->point->width; i++) {
        r.dead += a->count[i] == 0;
        r.always += a->count[i] == c->rows;
    }
    for (int q = 0; c->rows && q < WEIR_SPARSITY_QUANTILES; q++) {
        const int64_t rank = (int64_t)ceil(quantile[q] * (double)c->rows);
        r.l0[q] = l0_at(a, rank ? rank : 1);
    }
    return r;
}

const int64_t *weir_sparsity_counts(const weir_sparsity *s, int line, int t)
{
    return s->line[line].at[t].count;
}

static int descending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

weir_status weir_sparsity_hot(const weir_sparsity *s, int line, int t, double share, double *out, weir_err *err)
{
    const int64_t n = s->line[line].point->width, hot = (int64_t)ceil(share * (double)n);
    int64_t *sorted = weir_calloc((size_t)n, sizeof *sorted), sum = 0, all = 0;
    if (!sorted)
        return weir_nomem(err, "the order of neurons");
    memcpy(sorted, weir_sparsity_counts(s, line, t), (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, descending);
    for (int64_t i = 0; i < n; i++) {
        sum += i < hot ? sorted[i] : 0;
        all += sorted[i];
    }
    weir_free(sorted);
    *out = all ? (double)sum / (double)all : NAN;
    return WEIR_OK;
}

weir_sparsity_cut weir_sparsity_cut_of(const weir_sparsity *s, int line, double share, bool gate)
{
    const weir_sparsity_count *c = &s->line[line];
    const int64_t *hist = gate ? c->gate : c->hist, zeros = gate ? c->gate_zeros : c->zeros;
    weir_sparsity_cut cut = {.edge = NAN};
    for (uint32_t b = 0; hist && b < WEIR_CUT_BINS; b++)
        cut.values += hist[b];
    if (cut.values && (double)zeros >= share * (double)cut.values)
        return (weir_sparsity_cut){.small = zeros, .values = cut.values};
    uint32_t edge = 0;
    while (cut.values && edge < WEIR_CUT_BINS && (double)cut.small < share * (double)cut.values)
        cut.small += hist[edge++];
    if (cut.values)
        cut.edge = (double)weir_sparsity_float(edge << WEIR_CUT_SHIFT);
    return cut;
}

int64_t weir_sparsity_sampled(const weir_sparsity *s, int line)
{
    return s->line[line].n_sample;
}

void weir_sparsity_sample_at(const weir_sparsity *s, int line, int64_t i, int64_t *tag, int64_t *pos)
{
    *tag = s->line[line].sample[i].tag;
    *pos = s->line[line].sample[i].pos;
}

const weir_sparsity_point *weir_sparsity_curve(const weir_sparsity *s, int line, int64_t *n)
{
    *n = s->line[line].n_curve;
    return s->line[line].curve;
}
