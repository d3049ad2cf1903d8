/* edit/covariance.h: second moments of keys as the solver needs them. */
#ifndef WEIR_COVARIANCE_H
#define WEIR_COVARIANCE_H

#include <weir/rome.h>

struct weir_covariance {
    int64_t f;
    double *c;      /* [F,F] upper triangle, with the ridge; NULL: the identity */
    double *factor; /* Cholesky's */
};

/* k [n,F], in place: C^-1 k. */
WEIR_CHECKED weir_status weir_covariance_solve(const weir_covariance *c, double *k, int64_t n, weir_err *err);
/* The directions of C with eigenvalues of at least `below`: *q [*k,F], to be freed; what is orthogonal to them all is
 * the null space of AlphaEdit. */
WEIR_CHECKED weir_status weir_covariance_strong(const weir_covariance *c, double below, double **q, int64_t *k,
                                                weir_err *err);

#endif
