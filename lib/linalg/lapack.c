/* The only door to LAPACK. Its matrices are stored column after column, so the upper triangle of ours is the lower one
 * of its, and vectors that are its columns are our rows: nothing is copied. Its "_work" functions allocate nothing. */
#include <lapacke.h>
#include <math.h>

#include <weir/linalg.h>

#include "../base/mem.h"

enum {
    LWORK = 38, /* doubles for each row of the matrix: 26 at least, and 12 for blocks of 32 columns */
    LIWORK = 10,
    MOST = INT32_MAX / 64 /* rows: sizes are 32-bit numbers there */
};

static weir_status check(const double *a, int64_t n, weir_err *err)
{
    if (n < 1 || n > MOST)
        return weir_fail(err, WEIR_E_ARG, "a matrix of %lld rows: 1 to %d can be", (long long)n, MOST);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++)
            if (!isfinite(a[i * n + j]))
                return weir_fail(err, WEIR_E_ARG, "element [%lld,%lld] of the matrix is %f", (long long)i, (long long)j,
                                 a[i * n + j]);
    return WEIR_OK;
}

/* --- eigenvectors */

static void swap(double *a, double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

static void fix_sign(double *x, int64_t n)
{
    int64_t most = 0;
    for (int64_t i = 1; i < n; i++)
        if (fabs(x[i]) > fabs(x[most]))
            most = i;
    if (x[most] < 0)
        for (int64_t i = 0; i < n; i++)
            x[i] = -x[i];
}

/* LAPACK gives the smallest first. */
static void put_in_order(int64_t n, int64_t k, const double *ascending, double *value, double *vector)
{
    for (int64_t i = 0; i < k; i++)
        value[i] = ascending[k - 1 - i];
    for (int64_t i = 0; i < k / 2; i++)
        swap(vector + i * n, vector + (k - 1 - i) * n, n);
    for (int64_t i = 0; i < k; i++)
        fix_sign(vector + i * n, n);
}

/* What dsyevr works with. */
typedef struct space {
    double *value, *work;        /* [n], [LWORK n] */
    lapack_int *support, *iwork; /* [2n], [LIWORK n] */
} space;

static void free_space(space *s)
{
    weir_free(s->value);
    weir_free(s->work);
    weir_free(s->support);
    weir_free(s->iwork);
}

static bool make_space(space *s, size_t n)
{
    s->value = weir_calloc(n, sizeof *s->value);
    s->work = weir_calloc(LWORK * n, sizeof *s->work);
    s->support = weir_calloc(2 * n, sizeof *s->support);
    s->iwork = weir_calloc(LIWORK * n, sizeof *s->iwork);
    return s->value && s->work && s->support && s->iwork;
}

weir_status weir_linalg_eigen(double *a, int64_t n, int64_t k, double *value, double *vector, weir_err *err)
{
    WEIR_TRY(check(a, n, err));
    if (k < 1 || k > n)
        return weir_fail(err, WEIR_E_ARG, "%lld eigenvectors of a matrix of %lld rows", (long long)k, (long long)n);
    space s = {0};
    if (!make_space(&s, (size_t)n)) {
        free_space(&s);
        return weir_nomem(err, "eigenvectors");
    }
    const lapack_int N = (lapack_int)n, first = N - (lapack_int)k + 1;
    lapack_int found = 0;
    const lapack_int info =
        LAPACKE_dsyevr_work(LAPACK_COL_MAJOR, 'V', first == 1 ? 'A' : 'I', 'L', N, a, N, 0, 0, first, N, 0, &found,
                            s.value, vector, N, s.support, s.work, LWORK * N, s.iwork, LIWORK * N);
    if (info == 0 && found == k)
        put_in_order(n, k, s.value, value, vector);
    free_space(&s);
    if (info != 0 || found != k)
        return weir_fail(err, WEIR_E_ARG, "the eigenvectors of the matrix were not found (dsyevr: %d)", (int)info);
    return WEIR_OK;
}

/* --- linear equations */

static weir_status check_sides(const double *b, int64_t n, int64_t m, weir_err *err)
{
    if (m < 1 || m > MOST)
        return weir_fail(err, WEIR_E_ARG, "%lld right sides: 1 to %d can be", (long long)m, MOST);
    for (int64_t i = 0; i < m * n; i++)
        if (!isfinite(b[i]))
            return weir_fail(err, WEIR_E_ARG, "element [%lld,%lld] of the right sides is %f", (long long)(i / n),
                             (long long)(i % n), b[i]);
    return WEIR_OK;
}

static weir_status not_definite(lapack_int info, weir_err *err)
{
    return weir_fail(err, WEIR_E_ARG, "the matrix is not positive definite: its first %d rows and columns are not",
                     (int)info);
}

weir_status weir_linalg_solve(double *a, int64_t n, double *b, int64_t m, weir_err *err)
{
    WEIR_TRY(check(a, n, err));
    WEIR_TRY(check_sides(b, n, m, err));
    const lapack_int N = (lapack_int)n;
    const lapack_int info = LAPACKE_dposv_work(LAPACK_COL_MAJOR, 'L', N, (lapack_int)m, a, N, b, N);
    return info == 0 ? WEIR_OK : not_definite(info, err);
}

weir_status weir_linalg_factor(double *a, int64_t n, weir_err *err)
{
    WEIR_TRY(check(a, n, err));
    const lapack_int info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, a, (lapack_int)n);
    return info == 0 ? WEIR_OK : not_definite(info, err);
}

weir_status weir_linalg_factored(const double *factor, int64_t n, double *b, int64_t m, weir_err *err)
{
    WEIR_TRY(check_sides(b, n, m, err));
    const lapack_int N = (lapack_int)n;
    LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'L', N, (lapack_int)m, factor, N, b, N);
    return WEIR_OK;
}
