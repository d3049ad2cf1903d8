/* Singular values by way of eigenvalues. */
#include <math.h>

#include <weir/linalg.h>

#include "../base/mem.h"

/* to [n,rows] */
static double *turned(const double *x, int64_t rows, int64_t n)
{
    int64_t size;
    double *to = weir_mul64(rows, n, &size) ? weir_calloc((size_t)size, sizeof *to) : NULL;
    for (int64_t i = 0; to && i < rows; i++)
        for (int64_t j = 0; j < n; j++)
            to[j * rows + i] = x[i * n + j];
    return to;
}

/* rows >= n: by the [n,n] matrix x^T x; left = x right / value. */
static weir_status tall(const double *x, int64_t rows, int64_t n, int64_t k, double *value, double *left, double *right,
                        weir_err *err)
{
    int64_t size;
    double *a = weir_mul64(n, n, &size) ? weir_calloc((size_t)size, sizeof *a) : NULL;
    if (!a)
        return weir_nomem(err, "singular values");
    weir_linalg_outer_add(a, n, x, rows, NULL);
    const weir_status s = weir_linalg_eigen(a, n, k, value, right, err);
    weir_free(a);
    for (int64_t i = 0; i < k && s == WEIR_OK; i++) {
        value[i] = value[i] > 0 ? sqrt(value[i]) : 0;
        for (int64_t r = 0; r < rows; r++) {
            double sum = 0;
            for (int64_t j = 0; j < n; j++)
                sum += x[r * n + j] * right[i * n + j];
            left[i * rows + r] = value[i] > 0 ? sum / value[i] : 0;
        }
    }
    return s;
}

weir_status weir_linalg_singular(const double *x, int64_t rows, int64_t n, int64_t k, double *value, double *left,
                                 double *right, weir_err *err)
{
    if (rows < 1 || n < 1 || k < 1 || k > (rows < n ? rows : n))
        return weir_fail(err, WEIR_E_ARG, "%lld singular values of a matrix of %lld rows and %lld columns",
                         (long long)k, (long long)rows, (long long)n);
    if (rows >= n)
        return tall(x, rows, n, k, value, left, right, err);
    double *t = turned(x, rows, n);
    if (!t)
        return weir_nomem(err, "singular values");
    const weir_status s = tall(t, n, rows, k, value, right, left, err);
    weir_free(t);
    return s;
}
