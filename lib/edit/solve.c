/* The solver: N keys cost N triangular solves and one N x N system, whatever the width of the layer. All in double;
 * every sum is taken in ascending order. */
#include "solve.h"

#include <math.h>
#include <string.h>

#include <weir/linalg.h>

#include "../base/mem.h"

/* Cosine above which two keys are one (in the metric of C^-1): they share the token that they were read at. */
#define SAME_KEY 0.9999

static double dot(const double *a, const double *b, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

/* x [n,F] -= its share along the strong directions, which are orthonormal. */
static void project(const weir_solve *s, double *x)
{
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t j = 0; j < s->n_strong; j++) {
            const double *q = s->strong + j * s->f, along = dot(x + i * s->f, q, s->f);
            for (int64_t c = 0; c < s->f; c++)
                x[i * s->f + c] -= along * q[c];
        }
}

/* dir [n,F]: C^-1 K, or P K. */
static weir_status directions(const weir_solve *s, double *dir, weir_err *err)
{
    memcpy(dir, s->k, (size_t)(s->n * s->f) * sizeof *dir);
    if (!s->strong)
        return weir_covariance_solve(s->cov, dir, s->n, err);
    project(s, dir);
    return WEIR_OK;
}

/* m [n,n] = at . dir, of which only the upper triangle is needed: it is symmetric where there is more than one key. */
static void gram(const weir_solve *s, const double *dir, double *m)
{
    const double *at = s->at ? s->at : s->k;
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t j = i; j < s->n; j++)
            m[i * s->n + j] = dot(at + i * s->f, dir + j * s->f, s->f);
}

/* Are two of the keys the same, and which? */
static bool same_keys(const double *m, int64_t n, int64_t *a, int64_t *b)
{
    for (*a = 0; *a < n; ++*a)
        for (*b = *a + 1; *b < n; ++*b) {
            const double x = m[*a * n + *b], y = sqrt(m[*a * n + *a]) * sqrt(m[*b * n + *b]);
            if (x > SAME_KEY * y)
                return true;
        }
    *a = *b = -1;
    return false;
}

/* w [n,C] = M^-1 R. LAPACK's right sides are our rows, so R goes in turned round. */
static weir_status weigh(const weir_solve *s, double *m, double *w, double *turned, weir_err *err)
{
    const int64_t n = s->n, c = s->c;
    if (n == 1) {
        if (!(fabs(m[0]) > 0) || !isfinite(m[0]))
            return weir_fail(err, WEIR_E_ARG,
                             "the key has no length along its own update (%g): nothing can be written there", m[0]);
        for (int64_t j = 0; j < c; j++)
            w[j] = s->r[j] / m[0];
        return WEIR_OK;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < c; j++)
            turned[j * n + i] = s->r[i * c + j];
    WEIR_TRY(weir_linalg_solve(m, n, turned, c, err));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < c; j++)
            w[i * c + j] = turned[j * n + i];
    return WEIR_OK;
}

/* u of length 1; v takes the length, so that their product stays. */
static void store(const weir_solve *s, const double *dir, const double *w)
{
    const double *at = s->at ? s->at : s->k;
    for (int64_t i = 0; i < s->n; i++) {
        const double *d = dir + i * s->f;
        const double length = sqrt(dot(d, d, s->f));
        for (int64_t j = 0; j < s->f; j++)
            s->u[i * s->f + j] = (float)(length > 0 ? d[j] / length : 0);
        for (int64_t j = 0; j < s->c; j++)
            s->v[i * s->c + j] = (float)(w[i * s->c + j] * length);
        s->k_u[i] = length > 0 ? dot(at + i * s->f, d, s->f) / length : 0;
    }
}

static weir_status all_finite(const weir_solve *s, weir_err *err)
{
    for (int64_t i = 0; i < s->n * s->f; i++)
        if (!isfinite(s->u[i]))
            return weir_fail(err, WEIR_E_ARG, "the update is not finite: its direction %lld has %f",
                             (long long)(i / s->f), (double)s->u[i]);
    for (int64_t i = 0; i < s->n * s->c; i++)
        if (!isfinite(s->v[i]))
            return weir_fail(err, WEIR_E_ARG, "the update is not finite: what it writes for request %lld has %f",
                             (long long)(i / s->c), (double)s->v[i]);
    return WEIR_OK;
}

static weir_status solve(const weir_solve *s, double *dir, double *m, double *w, double *turned, int64_t *a, int64_t *b,
                         weir_err *err)
{
    WEIR_TRY(directions(s, dir, err));
    gram(s, dir, m);
    if (same_keys(m, s->n, a, b))
        return weir_fail(err, WEIR_E_ARG, "two requests have the same key and cannot both be written");
    for (int64_t i = 0; i < s->n; i++)
        m[i * s->n + i] += s->strong ? s->l2 : s->rho;
    WEIR_TRY(weigh(s, m, w, turned, err));
    store(s, dir, w);
    return all_finite(s, err);
}

weir_status weir_solve_update(const weir_solve *s, int64_t *a, int64_t *b, weir_err *err)
{
    const size_t n = (size_t)s->n, f = (size_t)s->f, c = (size_t)s->c;
    *a = *b = -1;
    double *dir = weir_calloc(n, f * sizeof *dir), *m = weir_calloc(n, n * sizeof *m);
    double *w = weir_calloc(n, c * sizeof *w), *turned = weir_calloc(n, c * sizeof *turned);
    const weir_status st =
        dir && m && w && turned ? solve(s, dir, m, w, turned, a, b, err) : weir_nomem(err, "the equations of an edit");
    weir_free(dir);
    weir_free(m);
    weir_free(w);
    weir_free(turned);
    return st;
}

static double dot_f(const float *a, const float *b, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += (double)a[i] * (double)b[i];
    return s;
}

double weir_solve_norm(const float *u, const float *v, int64_t n, int64_t f, int64_t c)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            square += dot_f(u + i * f, u + j * f, f) * dot_f(v + i * c, v + j * c, c);
    return sqrt(square > 0 ? square : 0);
}
