/* Eigenvectors with every allocation failing once. */
#include "support/oom.h"

#include <weir/linalg.h>

static weir_status eigen(const void *ctx, weir_err *err)
{
    double a[] = {2, 1, 1, 2}, value[1], vector[2];
    (void)ctx;
    return weir_linalg_eigen(a, 2, 1, value, vector, err);
}

static weir_status solve(const void *ctx, weir_err *err)
{
    double a[] = {2, 1, 1, 2}, b[] = {1, 1};
    (void)ctx;
    return weir_linalg_solve(a, 2, b, 1, err);
}

static void every_allocation(void **state)
{
    (void)state;
    assert_int_equal(oom_each(eigen, NULL), 4);
    assert_int_equal(oom_each(solve, NULL), 0); /* LAPACK solves in place */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
