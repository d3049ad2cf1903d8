/* weir/linalg.h: matrices whose eigenvectors and factors are known, residuals of others, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/linalg.h>

#include "support/said.h"

/* Numbers in [-1, 1), the same ones every time. */
static double draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)*state / 0x1p63;
}

static double *make(int64_t n)
{
    double *p = calloc((size_t)n, sizeof *p);
    assert_non_null(p);
    return p;
}

static double *random_rows(int64_t rows, int64_t n, uint64_t seed)
{
    double *x = make(rows * n);
    for (int64_t i = 0; i < rows * n; i++)
        x[i] = draw(&seed);
    return x;
}

static double *copy_of(const double *x, int64_t n)
{
    double *y = make(n);
    memcpy(y, x, (size_t)n * sizeof *y);
    return y;
}

static double dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Element [i,j] of a matrix that has its upper triangle only. */
static double element(const double *a, int64_t n, int64_t i, int64_t j)
{
    return i <= j ? a[i * n + j] : a[j * n + i];
}

/* The largest element of a x - lambda x, or of a x - b. */
static double residual(const double *a, int64_t n, const double *x, double lambda, const double *b)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += element(a, n, i, j) * x[j];
        worst = fmax(worst, fabs(sum - (b ? b[i] : lambda * x[i])));
    }
    return worst;
}

/* What stands below the diagonal must not matter. */
static void spoil_below(double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            a[i * n + j] = NAN;
}

/* --- sums of outer products */

static void check_outer(int64_t rows, int64_t n, bool weighted)
{
    double *x = random_rows(rows, n, 7), *weight = random_rows(rows, 1, 8), *a = make(n * n), *b = make(n * n);
    weir_linalg_outer_add(a, n, x, rows, weighted ? weight : NULL);
    for (int64_t r = 0; r < rows; r++) /* one row at a time: the same bits */
        weir_linalg_outer_add(b, n, x + r * n, 1, weighted ? weight + r : NULL);
    assert_memory_equal(a, b, (size_t)(n * n) * sizeof *a);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t r = 0; r < rows && j >= i; r++)
                sum += (weighted ? weight[r] * x[r * n + i] : x[r * n + i]) * x[r * n + j];
            assert_true(a[i * n + j] == sum); /* to the bit; below the diagonal nothing is written */
        }
    free(x);
    free(weight);
    free(a);
    free(b);
}

static void test_outer(void **state)
{
    static const int64_t rows[] = {0, 1, 63, 64, 65, 200}, widths[] = {1, 2, 7, 8, 9, 16, 33};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < sizeof widths / sizeof *widths; j++) {
            check_outer(rows[i], widths[j], false);
            check_outer(rows[i], widths[j], true);
        }
}

/* --- eigenvectors */

static void test_eigen_by_hand(void **state)
{
    /* 2 1 0; 1 2 0; 0 0 1: 3 (1,1,0), 1 twice */
    double a[] = {2, 1, 0, NAN, 2, 0, NAN, NAN, 1}, value[3], vector[9];
    weir_err err = {0};
    const double half = sqrt(0.5);
    (void)state;
    assert_int_equal(weir_linalg_eigen(a, 3, 3, value, vector, &err), WEIR_OK);
    assert_true(fabs(value[0] - 3) < 1e-14 && fabs(value[1] - 1) < 1e-14 && fabs(value[2] - 1) < 1e-14);
    assert_true(fabs(vector[0] - half) < 1e-14 && fabs(vector[1] - half) < 1e-14 && fabs(vector[2]) < 1e-14);
    double b[] = {-5, 0, 0, 4};
    assert_int_equal(weir_linalg_eigen(b, 2, 1, value, vector, &err), WEIR_OK);
    assert_true(value[0] == 4 && vector[0] == 0 && vector[1] == 1);
    double one[] = {-7};
    assert_int_equal(weir_linalg_eigen(one, 1, 1, value, vector, &err), WEIR_OK);
    assert_true(value[0] == -7 && vector[0] == 1);
    double none[] = {0, 0, 0, 0};
    assert_int_equal(weir_linalg_eigen(none, 2, 2, value, vector, &err), WEIR_OK);
    assert_true(value[0] == 0 && value[1] == 0);
}

static void check_vectors(const double *a, int64_t n, int64_t k, const double *value, const double *vector)
{
    for (int64_t i = 0; i < k; i++) {
        const double *x = vector + i * n;
        int64_t most = 0;
        assert_true(residual(a, n, x, value[i], NULL) < 1e-12 * (double)n);
        assert_true(i == 0 || value[i] <= value[i - 1]);
        for (int64_t j = 0; j < k; j++)
            assert_true(fabs(dot(x, vector + j * n, n) - (i == j)) < 1e-12);
        for (int64_t c = 1; c < n; c++)
            most = fabs(x[c]) > fabs(x[most]) ? c : most;
        assert_true(x[most] > 0);
    }
}

static void test_eigen_of_any_matrix(void **state)
{
    static const int64_t sizes[][2] = {{2, 1}, {5, 2}, {5, 5}, {33, 32}, {64, 3}, {70, 70}};
    weir_err err = {0};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t n = sizes[s][0], k = sizes[s][1];
        double *a = random_rows(n, n, 3 + s), *all = copy_of(a, n * n), *some = copy_of(a, n * n);
        double *value = make(2 * n), *vector = make(2 * n * n), trace = 0, sum = 0;
        spoil_below(all, n);
        assert_int_equal(weir_linalg_eigen(all, n, n, value, vector, &err), WEIR_OK);
        check_vectors(a, n, n, value, vector);
        for (int64_t i = 0; i < n; i++) {
            trace += a[i * n + i];
            sum += value[i];
        }
        assert_true(fabs(trace - sum) < 1e-12 * (double)n);
        assert_int_equal(weir_linalg_eigen(some, n, k, value + n, vector + n * n, &err), WEIR_OK);
        check_vectors(a, n, k, value + n, vector + n * n);
        for (int64_t i = 0; i < k; i++) /* the largest ones */
            assert_true(fabs(value[n + i] - value[i]) < 1e-12 * (double)n);
        free(a);
        free(all);
        free(some);
        free(value);
        free(vector);
    }
}

static void test_residual_can_be_large(void **state)
{
    const double a[] = {2, 1, 0, 2}, right[] = {1, 1}, wrong[] = {1, -1};
    (void)state;
    assert_true(residual(a, 2, right, 3, NULL) == 0);
    assert_true(residual(a, 2, wrong, 3, NULL) == 2);
    assert_true(residual(a, 2, right, 0, wrong) == 4);
}

/* --- linear equations */

static void test_solve_by_hand(void **state)
{
    /* 4 2; 2 3 times (1.5, 2) and (1, 0) */
    double a[] = {4, 2, NAN, 3}, b[] = {10, 9, 4, 2};
    weir_err err = {0};
    (void)state;
    assert_int_equal(weir_linalg_solve(a, 2, b, 2, &err), WEIR_OK);
    static const double want[] = {1.5, 2, 1, 0};
    for (int i = 0; i < 4; i++)
        assert_true(fabs(b[i] - want[i]) < 1e-15);
}

static void test_solve_any(void **state)
{
    static const int64_t sizes[] = {1, 2, 17, 80};
    enum { M = 3 };
    weir_err err = {0};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t n = sizes[s];
        double *x = random_rows(2 * n, n, 11), *a = make(n * n), *right = random_rows(M, n, 12);
        weir_linalg_outer_add(a, n, x, 2 * n, NULL);
        double *scratch = copy_of(a, n * n), *b = copy_of(right, M * n);
        spoil_below(scratch, n);
        assert_int_equal(weir_linalg_solve(scratch, n, b, M, &err), WEIR_OK);
        for (int m = 0; m < M; m++)
            assert_true(residual(a, n, b + m * n, 0, right + m * n) < 1e-12 * (double)n);
        free(x);
        free(a);
        free(right);
        free(scratch);
        free(b);
    }
}

/* --- what is refused */

static void check_refused(weir_status st, weir_err *err, const char *words)
{
    assert_int_equal(st, WEIR_E_ARG);
    assert_true(said(err, WEIR_E_ARG, words));
    *err = (weir_err){0};
}

static void test_refused(void **state)
{
    double value[2], vector[4], b[] = {1, NAN}, good[] = {1, 1};
    double indefinite[] = {1, 2, 2, 1}, singular[] = {1, 1, 1, 1}, negative[] = {-1}, fine[] = {1, 0, 0, 1};
    double nan[] = {1, NAN, 0, 1}, inf[] = {1, 0, 0, INFINITY};
    weir_err err = {0};
    (void)state;
    check_refused(weir_linalg_solve(indefinite, 2, good, 1, &err), &err, "not positive definite: its first 2 rows");
    check_refused(weir_linalg_solve(singular, 2, good, 1, &err), &err, "not positive definite");
    check_refused(weir_linalg_solve(negative, 1, good, 1, &err), &err, "its first 1 rows");
    assert_true(good[0] == 1 && good[1] == 1);
    check_refused(weir_linalg_solve(nan, 2, good, 1, &err), &err, "element [0,1] of the matrix is nan");
    check_refused(weir_linalg_solve(fine, 2, b, 1, &err), &err, "element [0,1] of the right sides is nan");
    check_refused(weir_linalg_solve(fine, 2, good, 0, &err), &err, "0 right sides");
    check_refused(weir_linalg_solve(fine, 0, good, 1, &err), &err, "a matrix of 0 rows");
    check_refused(weir_linalg_eigen(nan, 2, 1, value, vector, &err), &err, "element [0,1] of the matrix is nan");
    check_refused(weir_linalg_eigen(inf, 2, 1, value, vector, &err), &err, "element [1,1] of the matrix is inf");
    check_refused(weir_linalg_eigen(fine, 2, 3, value, vector, &err), &err, "3 eigenvectors of a matrix of 2 rows");
    check_refused(weir_linalg_eigen(fine, 2, 0, value, vector, &err), &err, "0 eigenvectors");
    check_refused(weir_linalg_eigen(fine, INT32_MAX, 1, value, vector, &err), &err, "a matrix of 2147483647 rows");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outer),
        cmocka_unit_test(test_eigen_by_hand),
        cmocka_unit_test(test_eigen_of_any_matrix),
        cmocka_unit_test(test_residual_can_be_large),
        cmocka_unit_test(test_solve_by_hand),
        cmocka_unit_test(test_solve_any),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
