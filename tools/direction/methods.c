/* Difference of means, and principal components. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "direction.h"

enum { BLOCK = 64 }; /* examples that are added to a covariance at a time */

static weir_status no_memory(const weir_direction *d, weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory (a matrix of %lld x %lld doubles is needed)", (long long)d->n,
                     (long long)d->n);
}

void weir_direction_put(weir_direction *d, int64_t i, const double *x)
{
    for (int64_t c = 0; c < d->n; c++)
        d->vector[i * d->n + c] = (float)x[c];
}

double weir_direction_dot(const weir_direction *d, const double *x)
{
    double sum = 0;
    for (int64_t c = 0; c < d->n; c++)
        sum += (double)d->vector[c] * x[c];
    return sum;
}

/* --- means */

static weir_status add_to_mean(void *ctx, const weir_example *e, weir_err *err)
{
    weir_direction *d = ctx;
    double *mean = d->mean + e->class * d->n;
    (void)err;
    for (int64_t c = 0; c < d->n; c++)
        mean[c] += e->x[c];
    return WEIR_OK;
}

weir_status weir_direction_means(weir_direction *d, weir_err *err)
{
    d->mean = calloc((size_t)(WEIR_CLASSES * d->n), sizeof *d->mean);
    if (!d->mean)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    WEIR_TRY(weir_examples_each(d, WEIR_TRAINING, add_to_mean, d, err));
    for (int class = 0; class < WEIR_CLASSES; class ++)
        for (int64_t c = 0; c < d->n && d->rows[class][WEIR_TRAINING]; c++)
            d->mean[class * d->n + c] /= (double)d->rows[class][WEIR_TRAINING];
    return WEIR_OK;
}

/* Halfway between the classes along the direction. */
static void set_midpoint(weir_direction *d)
{
    d->threshold = (weir_direction_dot(d, d->mean) + weir_direction_dot(d, d->mean + d->n)) / 2;
}

weir_status weir_direction_mean(weir_direction *d, weir_err *err)
{
    double *difference = malloc((size_t)d->n * sizeof *difference);
    d->k = 1;
    d->vector = malloc((size_t)d->n * sizeof *d->vector);
    if (!difference || !d->vector) {
        free(difference);
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    }
    for (int64_t c = 0; c < d->n; c++)
        difference[c] = d->mean[WEIR_POSITIVE * d->n + c] - d->mean[WEIR_NEGATIVE * d->n + c];
    weir_direction_put(d, 0, difference);
    free(difference);
    set_midpoint(d);
    return WEIR_OK;
}

/* --- principal components */

typedef struct spread {
    const weir_direction *d;
    double *center; /* [n] */
    double *sum;    /* [n, n] of outer products of examples, less the centre */
    double *block;  /* [BLOCK, n] examples that wait */
    int64_t waiting, n;
} spread;

static void add_block(spread *s)
{
    weir_linalg_outer_add(s->sum, s->d->n, s->block, s->waiting, NULL);
    s->n += s->waiting;
    s->waiting = 0;
}

static weir_status add_to_spread(void *ctx, const weir_example *e, weir_err *err)
{
    spread *s = ctx;
    double *x = s->block + s->waiting++ * s->d->n;
    (void)err;
    for (int64_t c = 0; c < s->d->n; c++)
        x[c] = e->x[c] - s->center[c];
    if (s->waiting == BLOCK)
        add_block(s);
    return WEIR_OK;
}

/* The mean of all training examples. A pair counts in both orders, so the mean of the differences is 0. */
static void set_center(spread *s)
{
    const weir_direction *d = s->d;
    const double a = (double)d->rows[WEIR_NEGATIVE][WEIR_TRAINING], b = (double)d->rows[WEIR_POSITIVE][WEIR_TRAINING];
    for (int64_t c = 0; c < d->n && !d->pairs; c++)
        s->center[c] = (d->mean[c] * a + d->mean[d->n + c] * b) / (a + b);
}

static weir_status add_all(weir_direction *d, spread *s, weir_err *err)
{
    set_center(s);
    WEIR_TRY(d->pairs ? weir_pairs_each(d, add_to_spread, s, err)
                      : weir_examples_each(d, WEIR_TRAINING, add_to_spread, s, err));
    add_block(s);
    const double degrees = d->pairs ? (double)s->n : (double)s->n - 1;
    if (degrees < 1)
        return weir_fail(err, WEIR_E_ARG, "one row has no covariance: more documents, or --rows all");
    for (int64_t i = 0; i < d->n; i++)
        for (int64_t j = i; j < d->n; j++)
            s->sum[i * d->n + j] /= degrees;
    for (int64_t i = 0; i < d->n; i++)
        d->total += s->sum[i * d->n + i];
    return WEIR_OK;
}

/* The sign with which the positive class lies higher. */
static void turn(const weir_direction *d, double *x)
{
    double gain = 0;
    for (int64_t c = 0; c < d->n && d->classes; c++)
        gain += x[c] * (d->mean[WEIR_POSITIVE * d->n + c] - d->mean[WEIR_NEGATIVE * d->n + c]);
    for (int64_t c = 0; c < d->n && gain < 0; c++)
        x[c] = -x[c];
}

static weir_status find_components(weir_direction *d, double *matrix, double *vector, weir_err *err)
{
    WEIR_TRY(weir_linalg_eigen(matrix, d->n, d->k, d->variance, vector, err));
    if (!(d->variance[0] > 0))
        return weir_fail(err, WEIR_E_ARG, "%s: there is no direction in them",
                         d->pairs ? "both rows of every pair are the same" : "all rows are the same");
    for (int64_t i = 0; i < d->k; i++)
        if (!(d->variance[i] > 1e-12 * d->variance[0]))
            return weir_fail(err, WEIR_E_ARG, "the rows vary in %lld directions only: fewer --components",
                             (long long)i);
    for (int64_t i = 0; i < d->k; i++) {
        turn(d, vector + i * d->n);
        weir_direction_put(d, i, vector + i * d->n);
    }
    return WEIR_OK;
}

weir_status weir_direction_pca(weir_direction *d, weir_err *err)
{
    const size_t n = (size_t)d->n, k = (size_t)d->a->components;
    if (d->a->components > d->n)
        return weir_fail(err, WEIR_E_ARG, "%lld components of rows of %lld numbers", (long long)k, (long long)n);
    spread s = {.d = d,
                .center = calloc(n, sizeof(double)),
                .sum = calloc(n * n, sizeof(double)),
                .block = malloc(BLOCK * n * sizeof(double))};
    double *vector = malloc(k * n * sizeof *vector);
    d->k = (int64_t)k;
    d->vector = malloc(k * n * sizeof *d->vector);
    d->variance = malloc(k * sizeof *d->variance);
    weir_status st = s.center && s.sum && s.block && vector && d->vector && d->variance ? WEIR_OK : no_memory(d, err);
    if (st == WEIR_OK)
        st = add_all(d, &s, err);
    if (st == WEIR_OK)
        st = find_components(d, s.sum, vector, err);
    if (st == WEIR_OK && d->classes)
        set_midpoint(d);
    free(s.center);
    free(s.sum);
    free(s.block);
    free(vector);
    return st;
}
