/* Rows of the stream as they pass, and windows when they end. Everything is counted in the order of the text, one row
 * after the other, so that neither batches nor threads matter. */
#include <math.h>

#include "health.h"

/* --- a row of a line */

static weir_want wants(void *self, const weir_point *p)
{
    const weir_health *h = self;
    for (int i = 0; i < h->n_lines; i++)
        if (h->line[i].point == p)
            return WEIR_READ;
    return WEIR_NONE;
}

/* Counts what is not finite; false: there was such an element. */
static bool check_finite(weir_health_line *l, const float *x, int64_t n, const weir_health_place *at)
{
    int64_t nan = 0, inf = 0, first = -1;
    for (int64_t c = 0; c < n; c++) {
        nan += isnan(x[c]) != 0;
        inf += isinf(x[c]) != 0; /* a negative number for -inf, in some compilers */
        if (first < 0 && !isfinite(x[c]))
            first = c;
    }
    if (first >= 0 && l->nan + l->inf == 0) {
        l->first = *at;
        l->first_dim = first;
    }
    l->nan += nan;
    l->inf += inf;
    return first < 0;
}

static double rms_of(const float *x, int64_t n, float *largest)
{
    double sum = 0;
    *largest = 0;
    for (int64_t c = 0; c < n; c++) {
        sum += (double)x[c] * (double)x[c];
        *largest = fabsf(x[c]) > *largest ? fabsf(x[c]) : *largest;
    }
    return sqrt(sum / (double)n);
}

/* Can a dimension be massive? Not if so many magnitudes reach the largest one's share that the median does: that takes
 * no median, and settles nearly all rows. */
static bool may_be_massive(const float *x, int64_t n, float largest, double ratio)
{
    int64_t reach = 0;
    for (int64_t c = 0; c < n; c++)
        reach += ratio * (double)fabsf(x[c]) >= (double)largest;
    return reach < n - (n - 1) / 2;
}

static void take_dim(weir_health_line *l, weir_health_dim *d, float value, double median, bool first,
                     const weir_health_place *at)
{
    l->massive_dims += d->rows == 0;
    d->rows++;
    d->first += first;
    if (fabsf(value) <= fabsf(d->value))
        return;
    d->value = value;
    d->ratio = (double)fabsf(value) / median;
    d->at = *at;
}

static void take_dims(weir_health *h, int line, const float *x, bool first, const weir_health_place *at)
{
    const int64_t n = h->s.info->C;
    weir_health_dim *dim = h->dim + line * n;
    for (int64_t c = 0; c < n; c++)
        h->some[c] = (double)fabsf(x[c]);
    const double median = weir_median(h->some, n);
    for (int64_t c = 0; c < n; c++)
        if ((double)fabsf(x[c]) > h->a->dim_ratio * median)
            take_dim(&h->line[line], &dim[c], x[c], median, first, at);
}

double weir_health_value(weir_health *h, int line, const float *x, bool first, const weir_health_place *at)
{
    weir_health_line *l = &h->line[line];
    const int64_t n = h->s.info->C;
    float largest;
    if (!check_finite(l, x, n, at))
        return NAN;
    const double rms = rms_of(x, n, &largest);
    if (may_be_massive(x, n, largest, h->a->dim_ratio))
        take_dims(h, line, x, first, at);
    if (l->rows == 0 || rms > l->max) {
        l->max = rms;
        l->max_at = *at;
    }
    l->rows++;
    l->sum += rms;
    weir_bins_add(&l->bins, rms);
    return rms;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    weir_health *h = self;
    const weir_rows *r = v->rows;
    int line = 0;
    (void)err;
    while (h->line[line].point != v->point)
        line++;
    double *rms = h->batch + line * h->a->session.run.batch;
    for (int64_t t = 0; t < r->n; t++) {
        const weir_health_place at = {.doc = r->tag[t], .pos = r->doc_pos[t], .id = r->id[t]};
        if (r->keep[t])
            *rms++ = weir_health_value(h, line, v->data + t * v->width, r->pos[t] == 0, &at);
    }
    return WEIR_OK;
}

const weir_hook_class weir_health_reader = {.struct_size = sizeof(weir_hook_class),
                                            .abi = WEIR_HOOK_ABI,
                                            .name = "health",
                                            .wants = wants,
                                            .on_value = on_value};

/* --- windows */

static double window_median(weir_health *h, int line)
{
    const double *rms = h->w.rms + line * h->s.ctx;
    int64_t n = 0;
    for (int64_t i = 0; i < h->w.n; i++)
        if (!isnan(rms[i]))
            h->some[n++] = rms[i];
    return n ? weir_median(h->some, n) : NAN;
}

/* Row i of the window in a line: how far is it above the window's median? */
static void compare(weir_health *h, int line, int64_t i)
{
    weir_health_line *l = &h->line[line];
    const double rms = h->w.rms[line * h->s.ctx + i];
    if (!(rms > h->a->norm_ratio * l->median)) /* NaN is not */
        return;
    const int64_t group = 2 * (int64_t)h->w.place[i].id + h->w.first[i];
    weir_health_token *t = &h->token[group];
    l->massive_rows++;
    h->w.massive[i]++;
    h->token_line[group * h->n_lines + line] = 1;
    if (rms / l->median > t->ratio) {
        t->ratio = rms / l->median;
        t->line = line;
        t->at = h->w.place[i];
    }
}

void weir_health_end(weir_health *h)
{
    if (h->w.n == 0)
        return;
    for (int64_t i = 0; i < h->w.n; i++)
        h->w.massive[i] = 0;
    for (int line = 0; line < h->n_lines; line++) {
        h->line[line].median = window_median(h, line);
        for (int64_t i = 0; i < h->w.n; i++)
            compare(h, line, i);
    }
    for (int64_t i = 0; i < h->w.n; i++) {
        weir_health_token *t = &h->token[2 * (int64_t)h->w.place[i].id + h->w.first[i]];
        t->rows++;
        t->massive += h->w.massive[i] > 0;
    }
    if (h->a->per == WEIR_HEALTH_POSITION)
        weir_health_put_window(h);
    h->windows++;
    h->w.n = 0;
}

void weir_health_add(weir_health *h, const weir_health_place *at, bool first)
{
    h->w.place[h->w.n] = *at;
    h->w.first[h->w.n++] = first;
    h->rows++;
}

static void add_row(weir_health *h, const weir_batch *b, int64_t kept, int64_t doc)
{
    const int64_t i = h->w.n, batch = h->a->session.run.batch;
    const weir_health_place at = {.doc = doc, .pos = b->kept.pos[kept], .id = b->kept.id[kept]};
    weir_health_add(h, &at, b->kept.ctx_pos[kept] == 0);
    for (int line = 0; line < h->n_lines; line++)
        h->w.rms[line * h->s.ctx + i] = h->batch[line * batch + kept];
}

void weir_health_take(weir_health *h, const weir_batch *b)
{
    int64_t seq = 0, end = b->n_seq ? b->seq[0].n : 0;
    if (!b->continues)
        weir_health_end(h);
    for (int64_t i = 0; i < b->kept.n; i++) {
        for (; b->kept_row[i] >= end; end += b->seq[++seq].n)
            weir_health_end(h);
        add_row(h, b, i, b->seq[seq].tag);
    }
}

double weir_health_median(const weir_health *h, int line)
{
    return h->windows == 1 ? h->line[line].median : weir_bins_median(&h->line[line].bins);
}
