/* lens/compose_factor.c: what of a layer's heads the scores need: factors of W_QK^T, W_QK and W_OV that are as large
 * and lie as they do, packed for the product. */
#include <math.h>
#include <string.h>

#include "../base/mem.h"
#include "../base/parallel.h"
#include "lens/compose.h"
#include "lens/parts.h"

/* --- rows as they are meant */

static void centre(double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    for (int64_t i = 0; i < n; i++)
        x[i] -= sum / (double)n;
}

void weir_compose_as_meant(const weir_compose *c, const weir_layer *norms, bool mlp, bool writes, const float *rows,
                           int64_t n, double *out)
{
    const weir_spec *s = c->spec;
    const weir_normw *before = mlp ? &norms->ln2 : &norms->ln1, *behind = mlp ? &norms->ln2_post : &norms->ln1_post;
    const float *gain = c->weights == WEIR_COMPOSE_RAW ? NULL : writes ? behind->w : before->w;
    for (int64_t i = 0; i < n; i++, rows += s->C, out += s->C) {
        for (int64_t k = 0; k < s->C; k++)
            out[k] = gain ? (double)rows[k] * (double)(s->norm_offset + gain[k]) : (double)rows[k];
        if (c->weights == WEIR_COMPOSE_FOLDED && !s->rms)
            centre(out, s->C);
    }
}

/* --- one factor */

/* The lower triangle l [d,d] with l l^T = g, the rows' products with each other: x [d,C]. Where rows depend on those
 * before them, nothing is left of them, and their column of l is 0. */
static void gram_factor(const double *x, int64_t d, int64_t n, double *g, double *l)
{
    double largest = 0;
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j <= i; j++)
            g[i * d + j] = weir_parts_dot(x + i * n, x + j * n, n);
    for (int64_t i = 0; i < d; i++)
        largest = fmax(largest, g[i * d + i]);
    memset(l, 0, (size_t)(d * d) * sizeof *l);
    for (int64_t j = 0; j < d; j++) {
        double left = g[j * d + j];
        for (int64_t k = 0; k < j; k++)
            left -= l[j * d + k] * l[j * d + k];
        if (!(left > (double)d * 0x1p-52 * largest))
            continue;
        l[j * d + j] = sqrt(left);
        for (int64_t i = j + 1; i < d; i++) {
            double sum = g[i * d + j];
            for (int64_t k = 0; k < j; k++)
                sum -= l[i * d + k] * l[j * d + k];
            l[i * d + j] = sum / l[j * d + j];
        }
    }
}

/* f = l^T x, rounded to float, in strips; row [C] is for a row of it. */
static void pack(const weir_compose *c, const double *l, const double *x, double *row, int64_t width, weir_factor *f)
{
    const int64_t d = c->spec->D, n = c->spec->C;
    double sum = 0;
    for (int64_t j = 0; j < c->padded; j++) {
        memset(row, 0, (size_t)n * sizeof *row);
        for (int64_t i = j; i < d; i++)
            for (int64_t k = 0; k < n; k++)
                row[k] += l[i * d + j] * x[i * n + k];
        double *strip = f->strip + j / width * n * width + j % width;
        for (int64_t k = 0; k < n; k++)
            strip[k * width] = (double)(float)row[k];
        for (int64_t k = 0; k < n; k++)
            row[k] = strip[k * width];
        sum += weir_parts_dot(row, row, n);
    }
    f->norm = sqrt(sum);
}

/* --- a layer's */

/* A thread's room. */
typedef struct work {
    float *rows;           /* [D,C] */
    double *outer, *inner; /* [D,C] each */
    double *gram, *l;      /* [D,D] each */
} work;

static work work_of(const weir_compose *c, int thread)
{
    const int64_t size = c->spec->D * c->spec->C, square = c->spec->D * c->spec->D;
    double *wide = c->wide + thread * 2 * size;
    double *both = c->square + thread * (c->padded * c->padded + square);
    return (work){c->rows + thread * size, wide, wide + size, both, both + square};
}

/* Where each head of q and k has a norm, its gain stands between W_Q and W_K: row i times gain i, unless raw weights
 * are meant. What the norm divides by differs by token, as what ln1 divides by does, and is left out with it. */
static void multiply_gain(const weir_compose *c, weir_head_matrix which, double *x)
{
    const weir_normw *norm = which == WEIR_WEIGHTS_Q ? &c->norms->q_norm : &c->norms->k_norm;
    if ((which != WEIR_WEIGHTS_Q && which != WEIR_WEIGHTS_K) || !norm->w || c->weights == WEIR_COMPOSE_RAW)
        return;
    for (int64_t i = 0; i < c->spec->D; i++)
        for (int64_t k = 0; k < c->spec->C; k++)
            x[i * c->spec->C + k] *= (double)(c->spec->norm_offset + norm->w[i]);
}

static void read_rows(const weir_compose *c, const weir_factors *f, weir_head_matrix which, int64_t head, const work *w,
                      double *out)
{
    const bool shared = which == WEIR_WEIGHTS_K || which == WEIR_WEIGHTS_V;
    const int64_t h = shared ? head / (c->spec->H / c->spec->K) : head;
    if (weir_weights_head(c->m, f->layer, which, h, w->rows, NULL) != WEIR_OK) /* layer and head are there */
        return;
    weir_edit_add_head(c->edits, c->n_edits, f->layer, which, h, w->rows);
    weir_compose_as_meant(c, c->norms, false, which == WEIR_WEIGHTS_O, w->rows, c->spec->D, out);
    multiply_gain(c, which, out);
}

/* |outer^T inner X| = |l^T inner X| */
static void make(const weir_compose *c, weir_factors *f, weir_head_matrix outer, weir_head_matrix inner, int64_t head,
                 int64_t at, int thread)
{
    const work w = work_of(c, thread);
    read_rows(c, f, outer, head, &w, w.outer);
    gram_factor(w.outer, c->spec->D, c->spec->C, w.gram, w.l);
    read_rows(c, f, inner, head, &w, w.inner);
    pack(c, w.l, w.inner, w.outer, f->width, &f->factor[at]);
}

/* Task i of 3 H: an input of a head: W_QK^T = K^T Q, W_QK = Q^T K, W_OV = O^T V. */
static void make_read(void *ctx, int64_t i, int thread)
{
    static const weir_head_matrix outer[] = {WEIR_WEIGHTS_K, WEIR_WEIGHTS_Q, WEIR_WEIGHTS_O};
    static const weir_head_matrix inner[] = {WEIR_WEIGHTS_Q, WEIR_WEIGHTS_K, WEIR_WEIGHTS_V};
    weir_compose *c = ctx;
    const int64_t input = i / c->spec->H;
    make(c, &c->reads, outer[input], inner[input], i % c->spec->H, i, thread);
}

/* Task i of H: |X O^T V| = |X O^T m| = |(m^T O) X^T|, V V^T = m m^T */
static void make_written(void *ctx, int64_t i, int thread)
{
    weir_compose *c = ctx;
    make(c, &c->writes, WEIR_WEIGHTS_V, WEIR_WEIGHTS_O, i, i, thread);
}

static weir_status make_room(weir_compose *c, weir_factors *f, weir_err *err)
{
    const int64_t size = c->padded * c->spec->C;
    int64_t bytes;
    if (f->room)
        return WEIR_OK;
    f->factor = weir_calloc((size_t)f->n, sizeof *f->factor);
    if (weir_mul64(f->n * (int64_t)sizeof(double), size, &bytes))
        f->room = weir_alloc_aligned((size_t)bytes);
    if (!f->factor || !f->room) {
        weir_compose_factors_free(f);
        return weir_nomem(err, "factors of heads");
    }
    for (int64_t i = 0; i < f->n; i++)
        f->factor[i].strip = f->room + i * size;
    return WEIR_OK;
}

static weir_status layer_factors(weir_compose *c, weir_factors *f, int64_t layer,
                                 void (*task)(void *ctx, int64_t i, int thread), weir_err *err)
{
    if (f->layer == layer)
        return WEIR_OK;
    WEIR_TRY(make_room(c, f, err));
    WEIR_TRY(weir_model_norms(c->m, layer, &c->norms, err));
    f->layer = layer;
    weir_parallel_for(c->threads, f->n, 1, task, c);
    return WEIR_OK;
}

weir_status weir_compose_read_by(weir_compose *c, int64_t layer, weir_err *err)
{
    return layer_factors(c, &c->reads, layer, make_read, err);
}

weir_status weir_compose_written_by(weir_compose *c, int64_t layer, weir_err *err)
{
    return layer_factors(c, &c->writes, layer, make_written, err);
}

void weir_compose_factors_free(weir_factors *f)
{
    weir_free_aligned(f->room);
    weir_free(f->factor);
    f->room = NULL;
    f->factor = NULL;
}
