/* A layer's keys and residuals to its update. */
#include <math.h>

#include "rome.h"
#include "solve.h"

weir_status weir_rome_layer_make(weir_rome_layer *l, const weir_rome *w, int at, int64_t n, weir_err *err)
{
    const size_t f = (size_t)w->spec->F, c = (size_t)w->spec->C, rows = (size_t)n;
    *l = (weir_rome_layer){.at = at, .n = n};
    l->k = weir_calloc(rows, f * sizeof *l->k);
    l->r = weir_calloc(rows, c * sizeof *l->r);
    l->key_at = weir_calloc(f, sizeof *l->key_at);
    l->u = weir_calloc(rows, f * sizeof *l->u);
    l->v = weir_calloc(rows, c * sizeof *l->v);
    l->k_u = weir_calloc(rows, sizeof *l->k_u);
    if (l->k && l->r && l->key_at && l->u && l->v && l->k_u)
        return WEIR_OK;
    weir_rome_layer_free(l);
    return weir_nomem(err, "the update of a layer");
}

void weir_rome_layer_free(weir_rome_layer *l)
{
    weir_free(l->k);
    weir_free(l->r);
    weir_free(l->key_at);
    weir_free(l->u);
    weir_free(l->v);
    weir_free(l->k_u);
    *l = (weir_rome_layer){0};
}

static weir_status conflict(const weir_rome_request *q, int64_t a, int64_t b, weir_err *err)
{
    return weir_fail(
        err, WEIR_E_ARG,
        "requests %lld (\"%.80s\", %.60s) and %lld (\"%.80s\", %.60s) have the same key, so that one value "
        "cannot serve both: leave one out, or edit them one after the other",
        (long long)(a + 1), q[a].prompt, q[a].subject, (long long)(b + 1), q[b].prompt, q[b].subject);
}

weir_status weir_rome_layer_solve(weir_rome *w, weir_rome_layer *l, const weir_rome_request *q, weir_err *err)
{
    const weir_covariance *cov = w->o.covariance[l->at];
    const weir_rome_method m = w->o.method;
    if (m == WEIR_ROME_ALPHAEDIT && !w->strong[l->at])
        WEIR_TRY(weir_covariance_strong(cov, w->o.null_below, &w->strong[l->at], &w->n_strong[l->at], err));
    const weir_solve s = {.n = l->n,
                          .f = w->spec->F,
                          .c = w->spec->C,
                          .k = l->k,
                          .at = m == WEIR_ROME_COMPAT ? l->key_at : NULL,
                          .r = l->r,
                          .rho = m == WEIR_ROME_MEMIT || m == WEIR_ROME_EMMET ? w->o.weight : 0,
                          .cov = cov,
                          .strong = w->strong[l->at],
                          .n_strong = w->n_strong[l->at],
                          .l2 = w->o.l2,
                          .u = l->u,
                          .v = l->v,
                          .k_u = l->k_u};
    int64_t a, b;
    weir_err why = {0};
    const weir_status st = weir_solve_update(&s, &a, &b, &why);
    if (st == WEIR_OK)
        return WEIR_OK;
    return a >= 0 ? conflict(q, a, b, err) : weir_fail(err, st, "%s", why.msg);
}

weir_update weir_rome_layer_update(const weir_rome *w, const weir_rome_layer *l)
{
    return (weir_update){.layer = w->o.layer[l->at], .matrix = WEIR_MATRIX_DOWN, .r = l->n, .u = l->u, .v = l->v};
}

/* ||W|| of the layer's down projection, read from the checkpoint unit by unit. */
static weir_status weight_norm(const weir_rome *w, int64_t layer, double *norm, weir_err *err)
{
    enum { BLOCK = 16 };
    const int64_t c = w->spec->C, f = w->spec->F;
    float *row = weir_calloc(BLOCK, (size_t)c * sizeof *row);
    double square = 0;
    if (!row)
        return weir_nomem(err, "the length of a matrix");
    for (int64_t i = 0; i < f; i += BLOCK) {
        int64_t unit[BLOCK], n = f - i < BLOCK ? f - i : BLOCK;
        for (int64_t j = 0; j < n; j++)
            unit[j] = i + j;
        weir_model_mlp_units(w->model, layer, WEIR_MLP_DOWN, unit, n, row);
        for (int64_t j = 0; j < n * c; j++)
            square += (double)row[j] * (double)row[j];
    }
    weir_free(row);
    *norm = sqrt(square);
    return WEIR_OK;
}

weir_status weir_rome_layer_share(const weir_rome *w, const weir_rome_layer *l, double *share, weir_err *err)
{
    double norm = 0;
    WEIR_TRY(weight_norm(w, w->o.layer[l->at], &norm, err));
    *share = weir_solve_norm(l->u, l->v, l->n, w->spec->F, w->spec->C) / norm;
    return WEIR_OK;
}

void weir_rome_mean(double *dst, const float *x, int64_t texts, int64_t width, bool halves)
{
    for (int64_t j = 0; j < width; j++) {
        double sum = 0;
        for (int64_t i = 1; i < texts; i++)
            sum += (double)x[i * width + j];
        const double bare = (double)x[j];
        if (texts == 1)
            dst[j] = bare;
        else
            dst[j] = halves ? (bare + sum / (double)(texts - 1)) / 2 : (bare + sum) / (double)texts;
    }
}

double weir_rome_length(const double *x, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += x[i] * x[i];
    return sqrt(s);
}
