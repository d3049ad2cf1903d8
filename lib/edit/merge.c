/* Matrices with their updates, row by row as they are stored: W' = W + dW in double, rounded once. */
#include "merge.h"

#include <math.h>
#include <string.h>

#include "../base/parallel.h"
#include "../model/overlay.h"
#include "narrow.h"

enum { ROWS = WEIR_MERGE_ROWS };

/* Sums of squares over a row, for each matrix of the module. */
typedef struct sums {
    double weight[3], wanted[3], got[3], lost[3];
    bool overflow;
} sums;

/* The tensor that is being made. */
typedef struct making {
    const weir_merging *g;
    const weir_merge_tensor *t;
    const weir_module *w;
    int8_t *part;     /* [w->out] which matrix of the module an output belongs to */
    int64_t *index;   /* [w->out] which output of it */
    int64_t width;    /* elements of a stored row */
    int64_t row0;     /* of the rows that are made now */
    const char *from; /* as they are stored */
    char *bytes;      /* [ROWS, width] as stored */
    float *old;       /* [threads, width] */
    double *delta;    /* [threads, width] */
    sums *sum;        /* [ROWS] */
} making;

bool weir_merge_touches(const weir_merging *g, int64_t layer, weir_matrix which)
{
    for (int i = 0; i < g->n_edits; i++)
        if (weir_edit_overlay(g->edit[i], layer, which))
            return true;
    return false;
}

/* delta [width] += an edit's share of a stored row: of an output (its weights to all inputs), or, where k_major, of an
 * input. */
static void add_edit(const making *k, const weir_edit *e, int64_t row, double *delta)
{
    const weir_module *w = k->w;
    const weir_overlay *of[3];
    int64_t size[3];
    for (int j = 0; j < w->n; j++) {
        int64_t in;
        of[j] = weir_edit_overlay(e, w->layer, w->matrix[j]);
        weir_matrix_shape(k->g->m, w->matrix[j], &in, &size[j]);
    }
    if (!w->k_major) {
        const int j = k->part[row];
        const weir_update *u = of[j] ? of[j]->update : NULL;
        for (int64_t r = 0; u && r < u->r; r++) {
            const double v = u->v[r * size[j] + k->index[row]];
            for (int64_t i = 0; i < w->in; i++)
                delta[i] += v * u->u[r * w->in + i];
        }
        return;
    }
    for (int64_t o = 0; o < w->out; o++) {
        const int j = k->part[o];
        const weir_update *u = of[j] ? of[j]->update : NULL;
        for (int64_t r = 0; u && r < u->r; r++)
            delta[o] += (double)u->u[r * w->in + row] * u->v[r * size[j] + k->index[o]];
    }
}

static void make_row(void *ctx, int64_t i, int thread)
{
    making *k = ctx;
    const int64_t row = k->row0 + i, n = k->width, size = weir_dtype_bytes(k->t->dtype);
    float *old = k->old + thread * n;
    double *delta = k->delta + thread * n;
    char *to = k->bytes + i * n * size;
    const char *from = k->from + i * n * size;
    sums *s = &k->sum[i];
    *s = (sums){0};
    weir_dequantize(k->t->dtype, from, n, old);
    memset(delta, 0, (size_t)n * sizeof *delta);
    for (int e = 0; e < k->g->n_edits; e++)
        add_edit(k, k->g->edit[e], row, delta);
    for (int64_t c = 0; c < n; c++) {
        const int j = k->part[k->w->k_major ? c : row];
        const double want = old[c] + delta[c];
        double is = old[c];
        if (delta[c] != 0)
            is = weir_narrow(k->t->dtype, want, to + c * size);
        else
            memcpy(to + c * size, from + c * size, (size_t)size);
        s->overflow |= isinf(is) && isfinite(want);
        s->weight[j] += (double)old[c] * old[c];
        s->wanted[j] += delta[c] * delta[c];
        s->got[j] += (is - old[c]) * (is - old[c]);
        s->lost[j] += (is - want) * (is - want);
    }
}

static void map_outputs(making *k)
{
    for (int j = 0; j < k->w->n; j++) {
        int64_t in, size;
        weir_matrix_shape(k->g->m, k->w->matrix[j], &in, &size);
        for (int64_t i = 0; i < size; i++) {
            const int64_t at = k->t->row_of(k->g->m, k->w->matrix[j], i);
            k->part[at] = (int8_t)j;
            k->index[at] = i;
        }
    }
}

static void add_sums(sums *to, const sums *row, int matrices)
{
    for (int j = 0; j < matrices; j++) {
        to->weight[j] += row->weight[j];
        to->wanted[j] += row->wanted[j];
        to->got[j] += row->got[j];
        to->lost[j] += row->lost[j];
    }
}

static void tell(const making *k, const sums *s)
{
    const weir_edit_merge_options *o = k->g->o;
    for (int j = 0; j < k->w->n && o->merged; j++) {
        const weir_edit_merged m = {.layer = k->w->layer,
                                    .matrix = k->w->matrix[j],
                                    .dtype = k->t->dtype,
                                    .weight = sqrt(s->weight[j]),
                                    .wanted = sqrt(s->wanted[j]),
                                    .got = sqrt(s->got[j]),
                                    .lost = sqrt(s->lost[j])};
        if (weir_merge_touches(k->g, m.layer, m.matrix))
            o->merged(o->user, &m);
    }
}

static weir_status make_rows(making *k, weir_merge_put put, void *ctx, weir_err *err)
{
    const int64_t rows = k->t->rows;
    const weir_edit_merge_options *o = k->g->o;
    sums all = {0};
    for (k->row0 = 0; k->row0 < rows; k->row0 += ROWS) {
        const int64_t n = rows - k->row0 < ROWS ? rows - k->row0 : ROWS;
        if (o->stop && o->stop(o->user))
            return WEIR_STOP;
        k->from = k->t->read(k->t->ctx, k->row0, n);
        weir_parallel_for(k->g->threads, n, 1, make_row, k);
        for (int64_t i = 0; i < n; i++) {
            if (k->sum[i].overflow) {
                weir_fail(err, WEIR_E_FORMAT, "an element of row %lld is too large for %s with the edit",
                          (long long)(k->row0 + i), weir_dtype_name(k->t->dtype));
                return weir_err_where(err, k->t->file, k->t->name, k->t->offset);
            }
            add_sums(&all, &k->sum[i], k->w->n);
        }
        WEIR_TRY(put(ctx, k->row0, n, k->bytes, (size_t)(n * k->width * weir_dtype_bytes(k->t->dtype)), err));
    }
    tell(k, &all);
    return WEIR_OK;
}

weir_status weir_merge_rows(const weir_merging *g, const weir_merge_tensor *t, weir_merge_put put, void *ctx,
                            weir_err *err)
{
    const weir_module *w = t->module;
    making k = {.g = g, .t = t, .w = w, .width = t->width};
    const size_t width = (size_t)k.width, threads = (size_t)g->threads;
    k.part = weir_calloc((size_t)w->out, sizeof *k.part);
    k.index = weir_calloc((size_t)w->out, sizeof *k.index);
    k.bytes = weir_calloc(ROWS, width * (size_t)weir_dtype_bytes(t->dtype));
    k.old = weir_calloc(threads, width * sizeof *k.old);
    k.delta = weir_calloc(threads, width * sizeof *k.delta);
    k.sum = weir_calloc(ROWS, sizeof *k.sum);
    weir_status s = WEIR_OK;
    if (!k.part || !k.index || !k.bytes || !k.old || !k.delta || !k.sum)
        s = weir_nomem(err, "a merged matrix");
    if (s == WEIR_OK) {
        map_outputs(&k);
        s = make_rows(&k, put, ctx, err);
    }
    void *const own[] = {k.part, k.index, k.bytes, k.old, k.delta, k.sum};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        weir_free(own[i]);
    return s;
}
