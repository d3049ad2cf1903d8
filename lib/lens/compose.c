/* lens/compose.c: composition scores (weir/compose.h): checks, and products of factors. */
#include <math.h>

#include "../base/mem.h"
#include "../base/parallel.h"
#include "lens/compose.h"
#include "lens/parts.h"

/* --- a compose */

static weir_status init(weir_compose *c, const char *kernel, weir_err *err)
{
    const weir_spec *s = c->spec;
    const int64_t threads = c->threads, inner = s->D * s->C;
    WEIR_TRY(weir_kern_pick(&c->kern, kernel, err));
    c->tiles = weir_compose_kern_of(c->kern);
    c->padded = (s->D + WEIR_COMPOSE_PAD - 1) / WEIR_COMPOSE_PAD * WEIR_COMPOSE_PAD;
    c->reads = (weir_factors){.layer = -1, .n = 3 * s->H, .width = c->tiles->rows};
    c->writes = (weir_factors){.layer = -1, .n = s->H, .width = c->tiles->cols};
    c->rows = weir_calloc((size_t)(threads * inner), sizeof *c->rows);
    c->wide = weir_calloc((size_t)(threads * 2 * inner), sizeof *c->wide);
    c->square = weir_calloc((size_t)(threads * (c->padded * c->padded + s->D * s->D)), sizeof *c->square);
    return c->rows && c->wide && c->square ? WEIR_OK : weir_nomem(err, "factors of heads");
}

weir_status weir_compose_new(weir_compose **out, const weir_model *m, weir_compose_weights weights, const char *kernel,
                             int threads, weir_err *err)
{
    *out = NULL;
    if (threads < 0)
        return weir_fail(err, WEIR_E_ARG, "threads is %d: it cannot be negative", threads);
    weir_compose *c = weir_calloc(1, sizeof *c);
    if (!c)
        return weir_nomem(err, "factors of heads");
    *c = (weir_compose){.m = m, .spec = weir_model_spec(m), .weights = weights, .threads = weir_threads(threads)};
    const weir_status st = init(c, kernel, err);
    if (st == WEIR_OK)
        *out = c;
    else
        weir_compose_free(c);
    return st;
}

void weir_compose_free(weir_compose *c)
{
    if (!c)
        return;
    weir_compose_factors_free(&c->reads);
    weir_compose_factors_free(&c->writes);
    weir_free(c->rows);
    weir_free(c->wide);
    weir_free(c->square);
    weir_free(c);
}

void weir_compose_with(weir_compose *c, const weir_edit *const *edits, int n)
{
    c->edits = edits;
    c->n_edits = n;
}

bool weir_compose_reads(const weir_model *m, weir_compose_part from, int64_t from_layer, weir_compose_part to,
                        int64_t to_layer)
{
    const bool within = from == WEIR_COMPOSE_HEADS && to == WEIR_COMPOSE_NEURONS && !weir_model_spec(m)->parallel;
    return from_layer < to_layer || (from_layer == to_layer && within);
}

double weir_compose_chance(const weir_model *m)
{
    return 1 / sqrt((double)weir_model_spec(m)->C);
}

static weir_status check(const weir_compose *c, weir_compose_part from, int64_t from_layer, weir_compose_part to,
                         int64_t to_layer, weir_err *err)
{
    const int64_t layer[] = {from_layer, to_layer};
    for (int i = 0; i < 2; i++)
        if (layer[i] < 0 || layer[i] >= c->spec->L)
            return weir_fail(err, WEIR_E_ARG, "layer %lld: the model has layers 0 to %lld", (long long)layer[i],
                             (long long)(c->spec->L - 1));
    if (!weir_compose_reads(c->m, from, from_layer, to, to_layer))
        return weir_fail(err, WEIR_E_ARG, "layer %lld does not read what layer %lld writes there", (long long)to_layer,
                         (long long)from_layer);
    return WEIR_OK;
}

/* --- heads into heads */

typedef struct pairs {
    weir_compose *c;
    double *out; /* [3,H,H] */
} pairs;

/* Sum of the squares of the product of two packed factors. */
static double product_square(const weir_compose *c, const weir_factor *reads, const weir_factor *writes, double *room)
{
    const int64_t d = c->padded, n = c->spec->C, rows = c->tiles->rows, cols = c->tiles->cols;
    for (int64_t j = 0; j < d; j += cols)
        for (int64_t i = 0; i < d; i += rows)
            c->tiles->tile(reads->strip + i * n, writes->strip + j * n, n, room + i * d + j, d);
    return weir_parts_dot(room, room, d * d);
}

/* Task i of H H: head i / H of `to` and head i % H of `from`. */
static void take_pair(void *ctx, int64_t i, int thread)
{
    const pairs *p = ctx;
    const weir_compose *c = p->c;
    const int64_t h = c->spec->H, to = i / h, from = i % h;
    double *room = c->square + thread * (c->padded * c->padded + c->spec->D * c->spec->D);
    for (int64_t input = 0; input < 3; input++) {
        const weir_factor *r = &c->reads.factor[input * h + to], *w = &c->writes.factor[from];
        p->out[(input * h + from) * h + to] = sqrt(product_square(c, r, w, room)) / (r->norm * w->norm);
    }
}

weir_status weir_compose_heads(weir_compose *c, int64_t from, int64_t to, double *out, weir_err *err)
{
    pairs p = {c, out};
    WEIR_TRY(check(c, WEIR_COMPOSE_HEADS, from, WEIR_COMPOSE_HEADS, to, err));
    WEIR_TRY(weir_compose_read_by(c, to, err));
    WEIR_TRY(weir_compose_written_by(c, from, err));
    weir_parallel_for(c->threads, c->spec->H * c->spec->H, 1, take_pair, &p);
    return WEIR_OK;
}

/* --- neurons */

static const weir_neuron_matrix matrix_of[] = {
    [WEIR_COMPOSE_KEY] = WEIR_WEIGHTS_KEY, [WEIR_COMPOSE_UP] = WEIR_WEIGHTS_UP};

typedef struct vectors {
    float *stored; /* [n,C] */
    double *x;     /* [n,C] as meant */
} vectors;

static void vectors_free(vectors *v)
{
    weir_free(v->stored);
    weir_free(v->x);
}

/* Vectors of neurons; free in every case. */
static weir_status vectors_read(vectors *v, const weir_compose *c, int64_t layer, weir_neuron_matrix which,
                                const int64_t *unit, int64_t n, weir_err *err)
{
    const weir_layer *norms;
    int64_t size;
    *v = (vectors){NULL, NULL};
    if (!weir_mul64(n, c->spec->C, &size))
        return weir_nomem(err, "vectors of neurons");
    v->stored = weir_calloc((size_t)size, sizeof *v->stored);
    v->x = weir_calloc((size_t)size, sizeof *v->x);
    if (!v->stored || !v->x)
        return weir_nomem(err, "vectors of neurons");
    WEIR_TRY(weir_model_norms(c->m, layer, &norms, err));
    WEIR_TRY(weir_weights_neurons(c->m, layer, which, unit, n, v->stored, err));
    weir_edit_add_neurons(c->edits, c->n_edits, layer, which, unit, n, v->stored);
    weir_compose_as_meant(c, norms, true, which == WEIR_WEIGHTS_VALUE, v->stored, n, v->x);
    return WEIR_OK;
}

static weir_status keys_read(vectors *v, const weir_compose *c, int64_t layer, weir_compose_input input,
                             const int64_t *unit, int64_t n, weir_err *err)
{
    *v = (vectors){NULL, NULL};
    if (input != WEIR_COMPOSE_KEY && input != WEIR_COMPOSE_UP)
        return weir_fail(err, WEIR_E_ARG, "a neuron reads with its key, or with its up projection");
    return vectors_read(v, c, layer, matrix_of[input], unit, n, err);
}

static double norm_of(const double *x, int64_t n)
{
    return sqrt(weir_parts_dot(x, x, n));
}

/* A packed factor and a vector in place of the other one. */
static double vector_score(const weir_compose *c, const weir_factors *f, const weir_factor *of, const double *x)
{
    const int64_t n = c->spec->C, width = f->width;
    double square = 0;
    for (int64_t first = 0; first < c->padded; first += width) {
        double sum[WEIR_COMPOSE_PAD] = {0};
        for (int64_t i = 0; i < n; i++)
            for (int64_t r = 0; r < width; r++)
                sum[r] += of->strip[first * n + i * width + r] * x[i];
        for (int64_t r = 0; r < width; r++)
            square += sum[r] * sum[r];
    }
    return sqrt(square) / (of->norm * norm_of(x, n));
}

/* Each of n vectors with each of a layer's factors. */
typedef struct crossing {
    const weir_compose *c;
    const weir_factors *f;
    const double *x; /* [n,C] */
    int64_t n;
    double *out;
} crossing;

/* Task i of 3 H: out [3,n,H] */
static void take_read(void *ctx, int64_t i, int thread)
{
    const crossing *x = ctx;
    const int64_t h = x->c->spec->H, input = i / h, head = i % h;
    (void)thread;
    for (int64_t k = 0; k < x->n; k++)
        x->out[(input * x->n + k) * h + head] = vector_score(x->c, x->f, &x->f->factor[i], x->x + k * x->c->spec->C);
}

/* Task i of H: out [H,n] */
static void take_written(void *ctx, int64_t i, int thread)
{
    const crossing *x = ctx;
    (void)thread;
    for (int64_t k = 0; k < x->n; k++)
        x->out[i * x->n + k] = vector_score(x->c, x->f, &x->f->factor[i], x->x + k * x->c->spec->C);
}

weir_status weir_compose_neurons_heads(weir_compose *c, int64_t from, const int64_t *unit, int64_t n, int64_t to,
                                       double *out, weir_err *err)
{
    vectors v;
    WEIR_TRY(check(c, WEIR_COMPOSE_NEURONS, from, WEIR_COMPOSE_HEADS, to, err));
    WEIR_TRY(weir_compose_read_by(c, to, err));
    const weir_status st = vectors_read(&v, c, from, WEIR_WEIGHTS_VALUE, unit, n, err);
    if (st == WEIR_OK) {
        crossing x = {c, &c->reads, v.x, n, out};
        weir_parallel_for(c->threads, 3 * c->spec->H, 1, take_read, &x);
    }
    vectors_free(&v);
    return st;
}

weir_status weir_compose_heads_neurons(weir_compose *c, int64_t from, int64_t to, weir_compose_input input,
                                       const int64_t *unit, int64_t n, double *out, weir_err *err)
{
    vectors v;
    WEIR_TRY(check(c, WEIR_COMPOSE_HEADS, from, WEIR_COMPOSE_NEURONS, to, err));
    WEIR_TRY(weir_compose_written_by(c, from, err));
    const weir_status st = keys_read(&v, c, to, input, unit, n, err);
    if (st == WEIR_OK) {
        crossing x = {c, &c->writes, v.x, n, out};
        weir_parallel_for(c->threads, c->spec->H, 1, take_written, &x);
    }
    vectors_free(&v);
    return st;
}

weir_status weir_compose_neurons(weir_compose *c, int64_t from, const int64_t *from_unit, int64_t n_from, int64_t to,
                                 weir_compose_input input, const int64_t *to_unit, int64_t n_to, double *out,
                                 weir_err *err)
{
    const int64_t n = c->spec->C;
    vectors v, k = {NULL, NULL};
    WEIR_TRY(check(c, WEIR_COMPOSE_NEURONS, from, WEIR_COMPOSE_NEURONS, to, err));
    weir_status st = vectors_read(&v, c, from, WEIR_WEIGHTS_VALUE, from_unit, n_from, err);
    if (st == WEIR_OK)
        st = keys_read(&k, c, to, input, to_unit, n_to, err);
    for (int64_t i = 0; st == WEIR_OK && i < n_from; i++) {
        const double *x = v.x + i * n, norm = norm_of(x, n);
        for (int64_t j = 0; j < n_to; j++) {
            const double *y = k.x + j * n;
            out[i * n_to + j] = weir_parts_dot(x, y, n) / (norm * norm_of(y, n));
        }
    }
    vectors_free(&v);
    vectors_free(&k);
    return st;
}
