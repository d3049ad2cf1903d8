/* weir/linalg.h: dense symmetric matrices in double: eigenvectors, linear equations, sums of outer products. LAPACK
 * (Anderson et al., "LAPACK Users' Guide", 3rd edition, 1999) does the work and is reached through this header alone.
 *
 *     double *a = calloc(n * n, sizeof *a);
 *     weir_linalg_outer_add(a, n, x, rows, NULL);                       // a = x^T x
 *     weir_linalg_eigen(a, n, 3, value, vector, &err);                  // its three largest eigenvalues
 *
 * A matrix is [n,n], row after row. It is symmetric, so only its upper triangle (element [i,j] with j >= i) is read and
 * written; what stands below is left alone, unless a function says that it destroys the matrix.
 *
 * Nothing here starts threads. A LAPACK that starts its own (OpenBLAS: OPENBLAS_NUM_THREADS=1 forbids it) may give
 * other last bits with another number of them; with Debian's liblapack3 the same numbers always give the same bits.
 * Errors: WEIR_E_ARG with what is wrong with the numbers, WEIR_E_NOMEM.
 */
#ifndef WEIR_LINALG_H
#define WEIR_LINALG_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a += sum over rows r of weight[r] x[r]^T x[r]: a [n,n], x [rows,n], weight [rows] or NULL (all 1). Each element is
 * added up in the order of the rows, with (weight[r] x[r,i]) x[r,j], whatever way they are split over several calls. */
WEIR_API void weir_linalg_outer_add(double *a, int64_t n, const double *x, int64_t rows, const double *weight);

/* The k largest eigenvalues of a [n,n] and their eigenvectors (dsyevr). value [k], the largest first; vector [k,n], a
 * row each, of length 1 and orthogonal to one another. An eigenvector's sign is arbitrary: here its element of the
 * largest magnitude (the first of equals) is positive. Of an eigenvalue that comes more than once the vectors are some
 * basis of its space. Destroys a. Memory: 45 n doubles. Errors: 1 <= k <= n does not hold; an element is not finite. */
WEIR_API WEIR_CHECKED weir_status weir_linalg_eigen(double *a, int64_t n, int64_t k, double *value, double *vector,
                                                    weir_err *err);

/* The k largest singular values of x [rows,n] and their vectors, x = sum over i of value[i] left[i] outer right[i]: by
 * the eigenvectors of x^T x or x x^T, whichever is smaller. value [k], the largest first; left [k,rows] and right [k,n],
 * a row each. Of the smaller side's vectors the sign is as in weir_linalg_eigen. Values below about 1e-8 of the largest
 * cannot be told from 0 (the squares are what is computed), and where a value is 0 the larger side's vector is 0 too.
 * Memory: min(rows, n)^2 doubles, and a copy of x where rows < n. Errors as of weir_linalg_eigen; 1 <= k <= min(rows, n)
 * does not hold. */
WEIR_API WEIR_CHECKED weir_status weir_linalg_singular(const double *x, int64_t rows, int64_t n, int64_t k,
                                                       double *value, double *left, double *right, weir_err *err);

/* Solves a x = b for m right sides: a [n,n] positive definite, b [m,n], a right side each row, becomes x (dposv:
 * Cholesky's factors). Destroys a. Errors: an element is not finite; a is not positive definite to working precision
 * (b is left as it was). */
WEIR_API WEIR_CHECKED weir_status weir_linalg_solve(double *a, int64_t n, double *b, int64_t m, weir_err *err);

/* The same in two steps, for many right sides: a becomes its factor (dpotrf), and every call solves m right sides with it
 * (dpotrs). A factor may be used from several threads. Errors as above; in the second only of the right sides. */
WEIR_API WEIR_CHECKED weir_status weir_linalg_factor(double *a, int64_t n, weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_linalg_factored(const double *factor, int64_t n, double *b, int64_t m,
                                                       weir_err *err);

#ifdef __cplusplus
}
#endif
#endif
