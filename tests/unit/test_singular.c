/* Singular values: of matrices whose values are known, and of any: the parts sum to the matrix, vectors are
 * orthonormal. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <weir/linalg.h>

static double number(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*s >> 33) / (1 << 30) - 1;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* k values of x; all must be right to `bound` of the largest if k is the smaller side. */
static void check(const double *x, int64_t rows, int64_t n, int64_t k, double *value)
{
    weir_err err = {0};
    double *left = calloc((size_t)(k * rows), sizeof *left), *right = calloc((size_t)(k * n), sizeof *right);
    assert_int_equal(weir_linalg_singular(x, rows, n, k, value, left, right, &err), WEIR_OK);
    for (int64_t i = 0; i < k; i++) {
        assert_true(i == 0 || value[i] <= value[i - 1] + 1e-12);
        for (int64_t j = 0; j <= i; j++) {
            if (value[i] < 1e-6 * value[0])
                continue;
            assert_true(fabs(dot(left + i * rows, left + j * rows, rows) - (i == j)) < 1e-6);
            assert_true(fabs(dot(right + i * n, right + j * n, n) - (i == j)) < 1e-6);
        }
    }
    for (int64_t r = 0; r < rows && k == (rows < n ? rows : n); r++)
        for (int64_t c = 0; c < n; c++) {
            double sum = 0;
            for (int64_t i = 0; i < k; i++)
                sum += value[i] * left[i * rows + r] * right[i * n + c];
            assert_true(fabs(sum - x[r * n + c]) < 1e-7 * value[0]);
        }
    free(left);
    free(right);
}

static void test_parts_sum_to_the_matrix(void **state)
{
    (void)state;
    static const int64_t shape[][2] = {{1, 1}, {1, 5}, {5, 1}, {7, 4}, {4, 7}, {6, 6}};
    double x[64], value[8];
    uint64_t s = 5;
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        for (int64_t j = 0; j < shape[i][0] * shape[i][1]; j++)
            x[j] = number(&s);
        const int64_t small = shape[i][0] < shape[i][1] ? shape[i][0] : shape[i][1];
        double square = 0;
        check(x, shape[i][0], shape[i][1], small, value);
        for (int64_t j = 0; j < small; j++)
            square += value[j] * value[j];
        assert_true(fabs(square - dot(x, x, shape[i][0] * shape[i][1])) < 1e-12);
        check(x, shape[i][0], shape[i][1], 1, value); /* the largest alone */
    }
}

static void test_known_values(void **state)
{
    (void)state;
    double x[8 * 3], value[3];
    for (int r = 0; r < 8; r++) /* rank one: |u| |v| */
        for (int c = 0; c < 3; c++)
            x[r * 3 + c] = (r + 1) * (c + 1);
    check(x, 8, 3, 3, value);
    assert_true(fabs(value[0] - sqrt(204.0 * 14)) < 1e-9 && value[1] < 1e-6);
    const double diagonal[] = {0, -3, 0, 2, 0, 0};
    check(diagonal, 2, 3, 2, value);
    assert_true(fabs(value[0] - 3) < 1e-12 && fabs(value[1] - 2) < 1e-12);
    const double none[6] = {0};
    double left[6], right[6];
    assert_int_equal(weir_linalg_singular(none, 2, 3, 2, value, left, right, NULL), WEIR_OK);
    assert_true(value[0] == 0 && value[1] == 0);
}

static void test_wrong_arguments(void **state)
{
    (void)state;
    weir_err err = {0};
    double x[4] = {1, 2, 3, NAN}, value[2], left[4], right[4];
    assert_int_equal(weir_linalg_singular(x, 2, 2, 3, value, left, right, &err), WEIR_E_ARG);
    assert_int_equal(weir_linalg_singular(x, 0, 2, 1, value, left, right, NULL), WEIR_E_ARG);
    assert_int_equal(weir_linalg_singular(x, 2, 2, 0, value, left, right, NULL), WEIR_E_ARG);
    assert_int_equal(weir_linalg_singular(x, 2, 2, 1, value, left, right, NULL), WEIR_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts_sum_to_the_matrix),
                                       cmocka_unit_test(test_known_values), cmocka_unit_test(test_wrong_arguments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
