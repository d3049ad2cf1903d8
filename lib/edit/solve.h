/* edit/solve.h: from keys and residuals to an update: one kernel for every method (weir/rome.h has the formula).
 *
 * ROME is rho = 0 with one key; MEMIT and EMMET are rho > 0; AlphaEdit works within the null space of C instead:
 * X = P K^T (K P K^T + l2 1)^-1 R, with P the projection onto it. */
#ifndef WEIR_SOLVE_H
#define WEIR_SOLVE_H

#include "covariance.h"

typedef struct weir_solve {
    int64_t n, f, c;
    const double *k;  /* [n,F] keys that the update acts along */
    const double *at; /* [n,F] keys at which it has to give r; NULL: k. Another one only for n = 1 */
    const double *r;  /* [n,C] */
    double rho;       /* ignored with `strong` */
    const weir_covariance *cov;
    const double *strong; /* AlphaEdit: [n_strong,F] directions that must not be touched; else NULL */
    int64_t n_strong;
    double l2;
    /* results: dW = sum over i of u[i] outer v[i], u[i] of length 1 */
    float *u, *v; /* [n,F], [n,C] */
    double *k_u;  /* [n] at[i] . u[i] */
} weir_solve;

/* Two keys that are the same direction and shall give different values: their indices in *a and *b (-1: no such pair),
 * with WEIR_E_ARG. */
WEIR_CHECKED weir_status weir_solve_update(const weir_solve *s, int64_t *a, int64_t *b, weir_err *err);
/* ||dW|| of u [n,F], v [n,C]. */
double weir_solve_norm(const float *u, const float *v, int64_t n, int64_t f, int64_t c);

#endif
