/* survey/sparsity_cett.c: which rows are sampled, and what an MLP's output loses without its small neurons. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "model/spec.h"
#include "survey/sparsity.h"

enum { TILE = 256 }; /* neurons whose weights are widened together */

/* --- the sample */

/* A number that has nothing to do with the text (the finaliser of MurmurHash3). */
static uint64_t mixed(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

static bool before(const weir_sparsity_sample *a, const weir_sparsity_sample *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    return a->tag != b->tag ? a->tag < b->tag : a->pos < b->pos;
}

/* The kept rows stand in the order of their keys. */
weir_status weir_sparsity_keep(const weir_sparsity *s, weir_sparsity_count *c, const float *x, int64_t tag, int64_t pos,
                               weir_err *err)
{
    const size_t bytes = (size_t)c->point->width * sizeof *x;
    weir_sparsity_sample own = {.key = mixed(mixed((uint64_t)tag) + (uint64_t)pos), .tag = tag, .pos = pos};
    int64_t last = c->n_sample;
    if (last == s->sample) {
        if (!before(&own, &c->sample[--last]))
            return WEIR_OK;
        own.x = c->sample[last].x;
    } else if (!(own.x = weir_calloc(1, bytes))) {
        return weir_nomem(err, "a sample of rows");
    } else {
        c->n_sample++;
    }
    memcpy(own.x, x, bytes);
    for (; last > 0 && before(&own, &c->sample[last - 1]); last--)
        c->sample[last] = c->sample[last - 1];
    c->sample[last] = own;
    return WEIR_OK;
}

/* --- the curve */

typedef struct ranked {
    float norm; /* of the neuron's share of the output */
    int32_t unit;
} ranked;

typedef struct taking {
    const weir_sparsity_count *c;
    int64_t width;      /* of the output */
    const float *w;     /* [F, width] what each neuron writes at 1 */
    const double *norm; /* [F] of it */
    ranked *ranked;     /* [threads, F] */
    double *sum;        /* [threads, width] */
    double *lost;       /* [sample, WEIR_CETT_BINS] |what is left out below the bin's upper edge| / |all| */
    int64_t *out;       /* [sample, WEIR_CETT_BINS] neurons that are */
} taking;

static int by_norm(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->norm != y->norm ? (x->norm > y->norm) - (x->norm < y->norm) : (x->unit > y->unit) - (x->unit < y->unit);
}

static double length(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* Adds a row's neurons from the smallest on, and looks at the sum at every edge. */
static void take_row(void *ctx, int64_t row, int thread)
{
    const taking *t = ctx;
    const int64_t f = t->c->point->width;
    const float *x = t->c->sample[row].x;
    ranked *r = t->ranked + thread * f;
    double *sum = t->sum + thread * t->width, *lost = t->lost + row * WEIR_CETT_BINS;
    int64_t *out = t->out + row * WEIR_CETT_BINS, at = 0;
    for (int64_t i = 0; i < f; i++) {
        const double norm = fabs((double)x[i]) * t->norm[i];
        r[i] = (ranked){norm < (double)HUGE_VALF ? (float)norm : HUGE_VALF, (int32_t)i};
    }
    qsort(r, (size_t)f, sizeof *r, by_norm);
    memset(sum, 0, (size_t)t->width * sizeof *sum);
    for (uint32_t bin = 0; bin < WEIR_CETT_BINS; bin++) {
        const int64_t from = at;
        for (; at < f && weir_sparsity_bits(r[at].norm) >> WEIR_CETT_SHIFT <= bin; at++)
            for (int64_t b = 0; b < t->width; b++)
                sum[b] += (double)x[r[at].unit] * (double)t->w[r[at].unit * t->width + b];
        lost[bin] = at > from || bin == 0 ? length(sum, t->width) : lost[bin - 1];
        out[bin] = at;
    }
    const double all = lost[WEIR_CETT_BINS - 1];
    for (int bin = 0; bin < WEIR_CETT_BINS; bin++)
        lost[bin] = all > 0 ? lost[bin] / all : 0;
}

static void read_weights(const weir_sparsity *s, const taking *t, float *w, double *norm)
{
    const int layer = t->c->point->layer;
    const int64_t f = t->c->point->width;
    for (int64_t first = 0; first < f; first += TILE) {
        const int64_t n = f - first < TILE ? f - first : TILE;
        int64_t unit[TILE] = {0};
        for (int64_t k = 0; k < n; k++)
            unit[k] = first + k;
        float *own = w + first * t->width;
        weir_model_mlp_units(s->model, layer, WEIR_MLP_DOWN, unit, n, own);
        weir_edit_add_neurons(s->edits, s->n_edits, layer, WEIR_WEIGHTS_VALUE, unit, n, own);
    }
    for (int64_t i = 0; i < f; i++) {
        double sum = 0;
        for (int64_t b = 0; b < t->width; b++)
            sum += (double)w[i * t->width + b] * (double)w[i * t->width + b];
        norm[i] = sqrt(sum);
    }
}

/* Means over the rows, at the edges where something begins to be left out to that where all is. */
static weir_status put_curve(weir_sparsity_count *c, const taking *t, weir_err *err)
{
    const int64_t rows = c->n_sample, f = c->point->width;
    c->curve = weir_calloc(WEIR_CETT_BINS, sizeof *c->curve);
    if (!c->curve)
        return weir_nomem(err, "the curve of a layer");
    for (uint32_t bin = 0; bin < WEIR_CETT_BINS; bin++) {
        int64_t out = 0;
        double lost = 0;
        for (int64_t i = 0; i < rows; i++) {
            out += t->out[i * WEIR_CETT_BINS + bin];
            lost += t->lost[i * WEIR_CETT_BINS + bin];
        }
        if (!out)
            continue;
        c->curve[c->n_curve++] =
            (weir_sparsity_point){.edge = (double)weir_sparsity_float((bin + 1) << WEIR_CETT_SHIFT),
                                  .share = (double)out / ((double)rows * (double)f),
                                  .cett = lost / (double)rows};
        if (out == rows * f)
            break;
    }
    return WEIR_OK;
}

weir_status weir_sparsity_make_curve(const weir_sparsity *s, weir_sparsity_count *c, int threads, weir_err *err)
{
    const size_t f = (size_t)c->point->width, width = (size_t)weir_model_info_of(s->model)->C, n = (size_t)c->n_sample;
    threads = weir_threads(threads);
    float *w = weir_calloc(f, width * sizeof *w);
    double *norm = weir_calloc(f, sizeof *norm);
    taking t = {.c = c,
                .width = (int64_t)width,
                .w = w,
                .norm = norm,
                .ranked = weir_calloc((size_t)threads, f * sizeof *t.ranked),
                .sum = weir_calloc((size_t)threads, width * sizeof *t.sum),
                .lost = weir_calloc(n, WEIR_CETT_BINS * sizeof *t.lost),
                .out = weir_calloc(n, WEIR_CETT_BINS * sizeof *t.out)};
    weir_status st = WEIR_OK;
    if (!w || !norm || !t.ranked || !t.sum || !t.lost || !t.out)
        st = weir_nomem(err, "the curve of a layer");
    if (!st) {
        read_weights(s, &t, w, norm);
        weir_parallel_for(threads, c->n_sample, 1, take_row, &t);
        st = put_curve(c, &t, err);
    }
    void *const own[] = {w, norm, t.ranked, t.sum, t.lost, t.out};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        weir_free(own[i]);
    return st;
}
