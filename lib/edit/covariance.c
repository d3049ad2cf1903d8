/* Second moments of keys: factored once, used by every edit of a layer. */
#include "covariance.h"

#include <string.h>

#include <weir/linalg.h>

#include "../base/mem.h"

static weir_status allocate(weir_covariance **out, int64_t f, bool matrix, weir_err *err)
{
    *out = NULL;
    if (f < 1)
        return weir_fail(err, WEIR_E_ARG, "second moments of %lld neurons", (long long)f);
    int64_t n;
    weir_covariance *c = weir_calloc(1, sizeof *c);
    if (c && matrix && weir_mul64(f, f, &n)) {
        c->c = weir_calloc((size_t)n, sizeof *c->c);
        c->factor = weir_calloc((size_t)n, sizeof *c->factor);
    }
    if (!c || (matrix && !(c->c && c->factor))) {
        weir_covariance_free(c);
        return weir_nomem(err, "second moments");
    }
    c->f = f;
    *out = c;
    return WEIR_OK;
}

static void fill(weir_covariance *c, const double *sum, int64_t count, double ridge)
{
    const int64_t f = c->f;
    double trace = 0;
    for (int64_t i = 0; i < f; i++) {
        for (int64_t j = i; j < f; j++)
            c->c[i * f + j] = sum[i * f + j] / (double)count;
        trace += c->c[i * f + i];
    }
    for (int64_t i = 0; i < f; i++)
        c->c[i * f + i] += ridge * trace / (double)f;
    memcpy(c->factor, c->c, (size_t)(f * f) * sizeof *c->c);
}

weir_status weir_covariance_new(weir_covariance **out, const double *sum, int64_t f, int64_t count, double ridge,
                                weir_err *err)
{
    *out = NULL;
    if (count < 1 || !(ridge >= 0))
        return weir_fail(err, WEIR_E_ARG, "second moments of %lld keys with ridge %g", (long long)count, ridge);
    weir_covariance *c;
    WEIR_TRY(allocate(&c, f, true, err));
    fill(c, sum, count, ridge);
    weir_err why = {0};
    if (weir_linalg_factor(c->factor, f, &why) != WEIR_OK) {
        weir_covariance_free(c);
        return weir_fail(err, WEIR_E_ARG,
                         "the second moments of %lld keys of %lld neurons cannot be inverted (%s): use more text (at "
                         "least %lld tokens), or a larger ridge than %g",
                         (long long)count, (long long)f, why.msg, (long long)(2 * f), ridge);
    }
    *out = c;
    return WEIR_OK;
}

weir_status weir_covariance_identity(weir_covariance **out, int64_t f, weir_err *err)
{
    return allocate(out, f, false, err);
}

void weir_covariance_free(weir_covariance *c)
{
    if (!c)
        return;
    weir_free(c->c);
    weir_free(c->factor);
    weir_free(c);
}

weir_status weir_covariance_solve(const weir_covariance *c, double *k, int64_t n, weir_err *err)
{
    return c->c ? weir_linalg_factored(c->factor, c->f, k, n, err) : WEIR_OK;
}

weir_status weir_covariance_strong(const weir_covariance *c, double below, double **q, int64_t *k, weir_err *err)
{
    const size_t f = (size_t)c->f;
    *q = NULL, *k = 0;
    if (!c->c)
        return weir_fail(err, WEIR_E_ARG, "AlphaEdit needs second moments: the identity has no null space");
    double *a = weir_calloc(f * f, sizeof *a), *value = weir_calloc(f, sizeof *value);
    double *vector = weir_calloc(f * f, sizeof *vector);
    weir_status s = WEIR_OK;
    if (a && value && vector) {
        memcpy(a, c->c, f * f * sizeof *a);
        s = weir_linalg_eigen(a, c->f, c->f, value, vector, err);
    } else {
        s = weir_nomem(err, "the null space of second moments");
    }
    while (s == WEIR_OK && *k < c->f && value[*k] >= below)
        ++*k;
    weir_free(a);
    weir_free(value);
    if (s != WEIR_OK)
        weir_free(vector);
    else
        *q = vector;
    return s;
}
