/* Edits in memory: copies of their updates, and those packed. */
#include <math.h>
#include <string.h>

#include "../base/mem.h"
#include "overlay.h"
#include "spec.h"

struct weir_edit {
    const weir_model *model;
    int64_t n, rank, width;
    weir_update *update;     /* [n] */
    weir_overlay *overlay;   /* [n] */
    const weir_overlay **at; /* [L,WEIR_MATRIX_COUNT] */
    weir_edit_about about;
    weir_arena numbers, text; /* of the updates; of `about` */
};

const char *weir_matrix_name(weir_matrix m)
{
    static const char *const name[] = {"q", "k", "v", "o", "pre", "up", "down"};
    return name[m];
}

void weir_matrix_shape(const weir_model *model, weir_matrix m, int64_t *in, int64_t *out)
{
    const weir_spec *s = weir_model_spec(model);
    const int64_t q = s->H * s->D, kv = s->K * s->D;
    const int64_t shape[WEIR_MATRIX_COUNT][2] = {
        [WEIR_MATRIX_Q] = {s->C, q},      [WEIR_MATRIX_K] = {s->C, kv},     [WEIR_MATRIX_V] = {s->C, kv},
        [WEIR_MATRIX_O] = {q, s->C},      [WEIR_MATRIX_PRE] = {s->C, s->F}, [WEIR_MATRIX_UP] = {s->C, s->F},
        [WEIR_MATRIX_DOWN] = {s->F, s->C}};
    *in = shape[m][0];
    *out = shape[m][1];
}

/* --- making */

static weir_status check_finite(const weir_update *u, const float *x, int64_t n, const char *which, weir_err *err)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return weir_fail(err, WEIR_E_ARG, "the update of layer %lld's %s matrix: element %lld of its %s is %f",
                             (long long)u->layer, weir_matrix_name(u->matrix), (long long)i, which, (double)x[i]);
    return WEIR_OK;
}

/* Is there such a matrix, free to be updated? */
static weir_status check(const weir_edit *e, const weir_update *u, weir_err *err)
{
    const weir_spec *s = weir_model_spec(e->model);
    if ((unsigned)u->matrix >= WEIR_MATRIX_COUNT)
        return weir_fail(err, WEIR_E_ARG, "an update of matrix %d: there is none", (int)u->matrix);
    const char *name = weir_matrix_name(u->matrix);
    if (u->layer < 0 || u->layer >= s->L)
        return weir_fail(err, WEIR_E_ARG, "an update of layer %lld: the model has layers 0 to %lld",
                         (long long)u->layer, (long long)(s->L - 1));
    if (u->matrix == WEIR_MATRIX_UP && !s->gated)
        return weir_fail(err, WEIR_E_ARG, "an update of an up matrix: the MLPs of this model are not gated");
    if (u->r < 1)
        return weir_fail(err, WEIR_E_ARG, "the update of layer %lld's %s matrix has rank %lld", (long long)u->layer,
                         name, (long long)u->r);
    if (weir_edit_overlay(e, u->layer, u->matrix))
        return weir_fail(err, WEIR_E_ARG, "two updates of layer %lld's %s matrix", (long long)u->layer, name);
    return WEIR_OK;
}

static const float *copy(weir_arena *a, const float *from, int64_t rows, int64_t width)
{
    int64_t n;
    float *to = weir_mul64(rows, width, &n) ? weir_arena_alloc(a, (size_t)n, sizeof *to) : NULL;
    if (to)
        memcpy(to, from, (size_t)n * sizeof *to);
    return to;
}

weir_status weir_overlay_pack(weir_panels **out, const float *x, int64_t r, int64_t width, bool turned, weir_err *err)
{
    const weir_tensor t = {.name = "an update",
                           .dtype = WEIR_F32,
                           .rank = 2,
                           .shape = {r, width, 1, 1},
                           .data = x,
                           .bytes = (size_t)(r * width) * sizeof *x,
                           .offset = -1};
    const weir_wview view = {
        .t = &t, .n = turned ? width : r, .k = turned ? r : width, .k_major = turned, .stride = width};
    return weir_panels_new(out, &view, 1, err);
}

static weir_status add(weir_edit *e, const weir_update *from, weir_err *err)
{
    int64_t in, out;
    WEIR_TRY(check(e, from, err));
    weir_matrix_shape(e->model, from->matrix, &in, &out);
    weir_update *u = &e->update[e->n];
    weir_overlay *o = &e->overlay[e->n];
    *u = *from;
    u->u = copy(&e->numbers, from->u, from->r, in);
    u->v = copy(&e->numbers, from->v, from->r, out);
    if (!u->u || !u->v)
        return weir_nomem(err, "an edit");
    WEIR_TRY(check_finite(u, u->u, u->r * in, "u", err));
    WEIR_TRY(check_finite(u, u->v, u->r * out, "v", err));
    o->update = u;
    e->n++;
    WEIR_TRY(weir_overlay_pack(&o->u, u->u, u->r, in, false, err));
    WEIR_TRY(weir_overlay_pack(&o->v, u->v, u->r, out, true, err));
    e->at[u->layer * WEIR_MATRIX_COUNT + u->matrix] = o;
    e->rank = u->r > e->rank ? u->r : e->rank;
    e->width = out > e->width ? out : e->width;
    return WEIR_OK;
}

static weir_status make(weir_edit *e, const weir_update *update, int64_t n, weir_err *err)
{
    e->update = weir_calloc((size_t)n, sizeof *e->update);
    e->overlay = weir_calloc((size_t)n, sizeof *e->overlay);
    e->at = weir_calloc((size_t)(weir_model_spec(e->model)->L * WEIR_MATRIX_COUNT), sizeof *e->at);
    if (!e->update || !e->overlay || !e->at)
        return weir_nomem(err, "an edit");
    for (int64_t i = 0; i < n; i++)
        WEIR_TRY(add(e, &update[i], err));
    return WEIR_OK;
}

weir_status weir_edit_new(weir_edit **out, const weir_model *m, const weir_update *update, int64_t n, weir_err *err)
{
    *out = NULL;
    if (n < 1)
        return weir_fail(err, WEIR_E_ARG, "an edit of %lld updates: it has at least one", (long long)n);
    weir_edit *e = weir_calloc(1, sizeof *e);
    if (!e)
        return weir_nomem(err, "an edit");
    e->model = m;
    const weir_status s = make(e, update, n, err);
    if (s != WEIR_OK)
        weir_edit_free(e);
    else
        *out = e;
    return s;
}

void weir_edit_free(weir_edit *e)
{
    if (!e)
        return;
    for (int64_t i = 0; i < e->n; i++) {
        weir_panels_free(e->overlay[i].u);
        weir_panels_free(e->overlay[i].v);
    }
    weir_arena_free(&e->numbers);
    weir_arena_free(&e->text);
    weir_free(e->update);
    weir_free(e->overlay);
    weir_free(e->at);
    weir_free(e);
}

/* --- questions */

int64_t weir_edit_n(const weir_edit *e)
{
    return e->n;
}

const weir_update *weir_edit_update(const weir_edit *e, int64_t i)
{
    return i >= 0 && i < e->n ? &e->update[i] : NULL;
}

const weir_model *weir_edit_model(const weir_edit *e)
{
    return e->model;
}

const weir_overlay *weir_edit_overlay(const weir_edit *e, int64_t layer, weir_matrix m)
{
    return e->at[layer * WEIR_MATRIX_COUNT + m];
}

int64_t weir_edit_rank(const weir_edit *e)
{
    return e->rank;
}

int64_t weir_edit_width(const weir_edit *e)
{
    return e->width;
}

const weir_edit_about *weir_edit_about_of(const weir_edit *e)
{
    return &e->about;
}

weir_status weir_edit_set_about(weir_edit *e, const weir_edit_about *about, weir_err *err)
{
    const char *const from[] = {about->dir,    about->base_model,  about->json,
                                about->method, about->fingerprint, about->sha256};
    const char **const to[] = {&e->about.dir,    &e->about.base_model,  &e->about.json,
                               &e->about.method, &e->about.fingerprint, &e->about.sha256};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        *to[i] = from[i] ? weir_arena_strndup(&e->text, from[i], strlen(from[i])) : NULL;
        if (from[i] && !*to[i])
            return weir_nomem(err, "an edit");
    }
    return WEIR_OK;
}

/* --- the updates' share of single rows and columns of a matrix */

/* dst [n] += what an update adds to the weights between one unit of its input, or of its output, and all of the other
 * side. */
static void add_unit(const weir_update *u, bool input, int64_t unit, int64_t in, int64_t out, float *dst)
{
    const int64_t n = input ? out : in;
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int64_t k = 0; k < u->r; k++)
            sum = input ? fmaf(u->u[k * in + unit], u->v[k * out + i], sum)
                        : fmaf(u->u[k * in + i], u->v[k * out + unit], sum);
        dst[i] += sum;
    }
}

/* dst [n,C]; units are first + unit[i], or first + i. */
static void add_units(const weir_edit *const *edits, int n_edits, int64_t layer, weir_matrix m, bool input,
                      int64_t first, const int64_t *unit, int64_t n, float *dst)
{
    for (int e = 0; e < n_edits; e++) {
        const weir_overlay *o = weir_edit_overlay(edits[e], layer, m);
        int64_t in, out;
        weir_matrix_shape(edits[e]->model, m, &in, &out);
        for (int64_t i = 0; o && i < n; i++)
            add_unit(o->update, input, first + (unit ? unit[i] : i), in, out, dst + i * (input ? out : in));
    }
}

void weir_edit_add_neurons(const weir_edit *const *edits, int n_edits, int64_t layer, weir_neuron_matrix which,
                           const int64_t *unit, int64_t n, float *dst)
{
    static const weir_matrix matrix[] = {[WEIR_WEIGHTS_KEY] = WEIR_MATRIX_PRE,
                                         [WEIR_WEIGHTS_UP] = WEIR_MATRIX_UP,
                                         [WEIR_WEIGHTS_VALUE] = WEIR_MATRIX_DOWN};
    add_units(edits, n_edits, layer, matrix[which], which == WEIR_WEIGHTS_VALUE, 0, unit, n, dst);
}

void weir_edit_add_head(const weir_edit *const *edits, int n_edits, int64_t layer, weir_head_matrix which, int64_t head,
                        float *dst)
{
    static const weir_matrix matrix[] = {[WEIR_WEIGHTS_Q] = WEIR_MATRIX_Q,
                                         [WEIR_WEIGHTS_K] = WEIR_MATRIX_K,
                                         [WEIR_WEIGHTS_V] = WEIR_MATRIX_V,
                                         [WEIR_WEIGHTS_O] = WEIR_MATRIX_O};
    if (!n_edits)
        return;
    const int64_t d = weir_model_spec(edits[0]->model)->D;
    add_units(edits, n_edits, layer, matrix[which], which == WEIR_WEIGHTS_O, head * d, NULL, d, dst);
}
