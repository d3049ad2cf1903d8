/* lens/parts_units.c: attn_out as heads, mlp_out as neurons (weir/parts.h). Weights are widened straight from the map,
 * some units at a time; each meets all positions that are looked at. */
#include <string.h>

#include "parts.h"

enum { TILE = 128 }; /* neurons whose values are widened together */

/* A norm behind the sublayer, as it acts on parts of the output: y goes to gain * (y - mean y) / scale, its bias is a
 * part of its own. */
typedef struct norm_behind {
    bool there;
    const float *w, *b; /* [C] */
    const float *scale; /* [n] */
} norm_behind;

typedef struct asking {
    const weir_parts *p;
    int64_t layer, n_units;
    const int64_t *unit; /* [n_units]; NULL: all */
    norm_behind norm;
    float *rows;          /* [threads, rows of a unit or tile, C] */
    double *wide;         /* [threads, C] */
    weir_part_value *out; /* [n, n_units + 1] */
} asking;

static int64_t unit_at(const asking *a, int64_t i)
{
    return a->unit ? a->unit[i] : i;
}

/* Through the norm, but for its scale and bias. */
static void through(const asking *a, double *y)
{
    const weir_spec *s = a->p->spec;
    if (!a->norm.there)
        return;
    double sum = 0;
    if (!s->rms)
        for (int64_t c = 0; c < s->C; c++)
            sum += y[c];
    const double mean = sum / (double)s->C;
    for (int64_t c = 0; c < s->C; c++)
        y[c] = (y[c] - mean) * (s->norm_offset + a->norm.w[c]);
}

static double scale_at(const asking *a, int64_t i)
{
    return a->norm.there ? a->norm.scale[i] : 1;
}

/* --- heads */

static void take_head(void *ctx, int64_t k, int thread)
{
    const asking *a = ctx;
    const weir_parts *p = a->p;
    const int64_t d = p->spec->D, c = p->spec->C, head = unit_at(a, k);
    float *w = a->rows + thread * d * c;
    double *y = a->wide + thread * c;
    weir_model_attn_units(p->m, a->layer, head * d, d, w);
    weir_edit_add_head(p->r.edits, p->r.n_edits, a->layer, WEIR_WEIGHTS_O, head, w);
    for (int64_t i = 0; i < p->r.n; i++) {
        const float *z = p->r.z[a->layer] + (i * p->spec->H + head) * d;
        memset(y, 0, (size_t)c * sizeof *y);
        for (int64_t j = 0; j < d; j++)
            for (int64_t b = 0; b < c; b++)
                y[b] += (double)z[j] * w[j * c + b];
        through(a, y);
        for (int64_t b = 0; b < c; b++)
            y[b] /= scale_at(a, i);
        a->out[i * (a->n_units + 1) + k] = weir_parts_measure(p, i, y);
    }
}

/* --- neurons: a part is the value vector times a number, so that its dot products are those of the vector */

static void take_neuron(const asking *a, int64_t k, const double *v)
{
    const weir_parts *p = a->p;
    const int64_t c = p->spec->C;
    const double self = weir_parts_dot(v, v, c);
    for (int64_t i = 0; i < p->r.n; i++) {
        const double by = p->r.post[a->layer][i * p->spec->F + unit_at(a, k)] / scale_at(a, i);
        a->out[i * (a->n_units + 1) + k] = weir_parts_value_of(
            p, i, by * by * self, by * weir_parts_dot(v, p->x + i * c, c), by * weir_parts_dot(v, p->dir + i * c, c));
    }
}

static void take_tile(void *ctx, int64_t tile, int thread)
{
    const asking *a = ctx;
    const int64_t c = a->p->spec->C, first = tile * TILE, left = a->n_units - first, n = left < TILE ? left : TILE;
    float *w = a->rows + thread * TILE * c;
    double *v = a->wide + thread * c;
    int64_t unit[TILE] = {0};
    for (int64_t k = 0; k < n; k++)
        unit[k] = unit_at(a, first + k);
    weir_model_mlp_units(a->p->m, a->layer, WEIR_MLP_DOWN, unit, n, w);
    weir_edit_add_neurons(a->p->r.edits, a->p->r.n_edits, a->layer, WEIR_WEIGHTS_VALUE, unit, n, w);
    for (int64_t k = 0; k < n; k++) {
        for (int64_t b = 0; b < c; b++)
            v[b] = w[k * c + b];
        through(a, v);
        take_neuron(a, first + k, v);
    }
}

/* --- biases */

static void take_bias(const asking *a, bool mlp)
{
    const weir_parts *p = a->p;
    const int64_t c = p->spec->C;
    float *b = a->rows;
    double *stored = a->wide, *y = a->wide + c;
    const bool there = weir_model_out_bias(p->m, a->layer, mlp, b);
    for (int64_t j = 0; j < c; j++)
        stored[j] = there ? b[j] : 0;
    through(a, stored);
    for (int64_t i = 0; i < p->r.n; i++) {
        for (int64_t j = 0; j < c; j++)
            y[j] = stored[j] / scale_at(a, i) + (a->norm.b ? a->norm.b[j] : 0);
        a->out[i * (a->n_units + 1) + a->n_units] = weir_parts_measure(p, i, y);
    }
}

/* --- both */

static weir_status check(const asking *a, bool mlp, int64_t width, weir_err *err)
{
    const weir_parts *p = a->p;
    const char *what = mlp ? "neuron" : "head";
    if (p->r.n < 1)
        return weir_fail(err, WEIR_E_ARG, "parts of a stream: no positions are looked at (weir_parts_begin)");
    if (a->layer < 0 || a->layer >= p->spec->L)
        return weir_fail(err, WEIR_E_ARG, "layer %lld: the model has %lld, from 0", (long long)a->layer,
                         (long long)p->spec->L);
    const float *const *of = mlp ? p->r.post : p->r.z;
    if (!of || !of[a->layer])
        return weir_fail(err, WEIR_E_ARG, "%ss of layer %lld: %s is missing", what, (long long)a->layer,
                         mlp ? "mlp.hook_post" : "attn.hook_z");
    for (int64_t i = 0; a->unit && i < a->n_units; i++)
        if (a->unit[i] < 0 || a->unit[i] >= width || (mlp && i && a->unit[i] <= a->unit[i - 1]))
            return weir_fail(err, WEIR_E_ARG, "%s %lld of layer %lld: it has %lld, from 0%s", what,
                             (long long)a->unit[i], (long long)a->layer, (long long)width,
                             mlp ? ", and they are named in ascending order" : "");
    return WEIR_OK;
}

static weir_status find_norm(asking *a, bool mlp, weir_err *err)
{
    const weir_parts *p = a->p;
    const weir_layer *w;
    if (!p->spec->post_norms)
        return WEIR_OK;
    WEIR_TRY(weir_model_norms(p->m, a->layer, &w, err));
    const weir_normw *n = mlp ? &w->ln2_post : &w->ln1_post;
    a->norm = (norm_behind){true, n->w, n->b, (mlp ? p->r.mlp_scale : p->r.attn_scale)[a->layer]};
    return WEIR_OK;
}

static weir_status take_units(asking *a, bool mlp, weir_err *err)
{
    const weir_parts *p = a->p;
    const int64_t width = mlp ? p->spec->F : p->spec->H, rows = mlp ? TILE : p->spec->D;
    a->n_units = a->unit ? a->n_units : width;
    WEIR_TRY(check(a, mlp, width, err));
    WEIR_TRY(find_norm(a, mlp, err));
    int64_t n, tiles = (a->n_units + TILE - 1) / TILE;
    a->rows = weir_mul64(p->threads * rows, p->spec->C, &n) ? weir_calloc((size_t)n, sizeof *a->rows) : NULL;
    a->wide = weir_calloc((size_t)p->threads + 1, (size_t)p->spec->C * sizeof *a->wide);
    weir_status st = a->rows && a->wide ? WEIR_OK : weir_nomem(err, "weights of heads and neurons");
    if (st == WEIR_OK) {
        weir_parallel_for(p->threads, mlp ? tiles : a->n_units, 1, mlp ? take_tile : take_head, a);
        take_bias(a, mlp);
    }
    weir_free(a->rows);
    weir_free(a->wide);
    return st;
}

weir_status weir_parts_heads(const weir_parts *p, int64_t layer, const int64_t *head, int64_t n_heads,
                             weir_part_value *out, weir_err *err)
{
    asking a = {.p = p, .layer = layer, .unit = head, .n_units = n_heads, .out = out};
    return take_units(&a, false, err);
}

weir_status weir_parts_neurons(const weir_parts *p, int64_t layer, const int64_t *unit, int64_t n_units,
                               weir_part_value *out, weir_err *err)
{
    asking a = {.p = p, .layer = layer, .unit = unit, .n_units = n_units, .out = out};
    return take_units(&a, true, err);
}
