/* Keys and residuals to updates, second moments, and their files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <weir/moments.h>

#include "edit/solve.h"

enum { F = 12, C = 5, N = 3, KEYS = 40 };

typedef struct world {
    float x[KEYS * F];         /* other keys */
    double k[N * F], r[N * C]; /* requests */
    double c[F * F];           /* C in full, with the ridge */
    weir_covariance *cov;
    float u[N * F], v[N * C];
    double k_u[N];
} world;

static double uniform(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (double)(*s >> 33) / (double)(1u << 31) * 2 - 1;
}

static void ok(weir_status st, const weir_err *err)
{
    if (st)
        fail_msg("status %d: %s", st, err->msg);
}

static void make(world *w)
{
    uint64_t s = 5;
    weir_err err = {0};
    weir_moments *m;
    for (int i = 0; i < KEYS * F; i++)
        w->x[i] = (float)(uniform(&s) * (1 + i % F));
    for (int i = 0; i < N * F; i++)
        w->k[i] = uniform(&s);
    for (int i = 0; i < N * C; i++)
        w->r[i] = uniform(&s);
    ok(weir_moments_new(&m, F, &err), &err);
    ok(weir_moments_add(m, w->x, KEYS, 1, &err), &err);
    ok(weir_covariance_new(&w->cov, weir_moments_sum(m), F, KEYS, 1e-3, &err), &err);
    weir_moments_free(m);
    double trace = 0;
    memset(w->c, 0, sizeof w->c);
    for (int t = 0; t < KEYS; t++)
        for (int i = 0; i < F; i++)
            for (int j = 0; j < F; j++)
                w->c[i * F + j] += (double)w->x[t * F + i] * (double)w->x[t * F + j] / KEYS;
    for (int i = 0; i < F; i++)
        trace += w->c[i * F + i];
    for (int i = 0; i < F; i++)
        w->c[i * F + i] += 1e-3 * trace / F;
}

static weir_solve solve_of(world *w, int64_t n, double rho)
{
    return (weir_solve){
        .n = n, .f = F, .c = C, .k = w->k, .r = w->r, .rho = rho, .cov = w->cov, .u = w->u, .v = w->v, .k_u = w->k_u};
}

static double dw(const world *w, int64_t n, int i, int j)
{
    double s = 0;
    for (int64_t r = 0; r < n; r++)
        s += (double)w->u[r * F + i] * (double)w->v[r * C + j];
    return s;
}

/* dW k of request i, component j. */
static double written(const world *w, int64_t n, int i, int j)
{
    double s = 0;
    for (int f = 0; f < F; f++)
        s += dw(w, n, f, j) * w->k[i * F + f];
    return s;
}

/* One key: the update gives exactly the residual at it, and its direction is C^-1 k. */
static void one_key_is_met(void **state)
{
    (void)state;
    world w;
    weir_err err = {0};
    int64_t a, b;
    make(&w);
    const weir_solve s = solve_of(&w, 1, 0);
    ok(weir_solve_update(&s, &a, &b, &err), &err);
    for (int j = 0; j < C; j++)
        assert_true(fabs(written(&w, 1, 0, j) - w.r[j]) < 1e-5);
    double length = 0, along[F] = {0};
    for (int i = 0; i < F; i++) {
        length += (double)w.u[i] * (double)w.u[i];
        for (int j = 0; j < F; j++)
            along[i] += w.c[i * F + j] * (double)w.u[j];
    }
    assert_true(fabs(length - 1) < 1e-6);
    for (int i = 1; i < F; i++) /* C u is along k */
        assert_true(fabs(along[i] * w.k[0] - along[0] * w.k[i]) < 1e-4);
    weir_covariance_free(w.cov);
}

/* MEMIT as its code has it: (rho C + K K^T) X = K, dW = X R. */
static void several_keys_are_memit(void **state)
{
    (void)state;
    world w;
    weir_err err = {0};
    int64_t a, b;
    const double rho = 0.7;
    make(&w);
    const weir_solve s = solve_of(&w, N, rho);
    ok(weir_solve_update(&s, &a, &b, &err), &err);
    double left[F];
    for (int j = 0; j < C; j++) {
        double right[F] = {0};
        for (int f = 0; f < F; f++) {
            left[f] = 0;
            for (int g = 0; g < F; g++) {
                double m = rho * w.c[f * F + g];
                for (int i = 0; i < N; i++)
                    m += w.k[i * F + f] * w.k[i * F + g];
                left[f] += m * dw(&w, N, g, j);
            }
            for (int i = 0; i < N; i++)
                right[f] += w.k[i * F + f] * w.r[i * C + j];
            assert_true(fabs(left[f] - right[f]) < 1e-4);
        }
    }
    weir_covariance_free(w.cov);
}

/* AlphaEdit: what is written lies in the null space, and l2 = 0 would meet the keys. */
static void strong_directions_are_left_alone(void **state)
{
    (void)state;
    world w;
    weir_err err = {0};
    int64_t a, b, n;
    double *strong;
    make(&w);
    ok(weir_covariance_strong(w.cov, 10, &strong, &n, &err), &err);
    assert_true(n > 1 && n < F - N);
    weir_solve s = solve_of(&w, N, 0);
    s.strong = strong, s.n_strong = n, s.l2 = 1e-9;
    ok(weir_solve_update(&s, &a, &b, &err), &err);
    for (int64_t q = 0; q < n; q++)
        for (int j = 0; j < C; j++) {
            double along = 0;
            for (int f = 0; f < F; f++)
                along += strong[q * F + f] * dw(&w, N, f, j);
            assert_true(fabs(along) < 1e-4);
        }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < C; j++)
            assert_true(fabs(written(&w, N, i, j) - w.r[i * C + j]) < 1e-3);
    free(strong);
    weir_covariance_free(w.cov);
}

static void equal_keys_are_named(void **state)
{
    (void)state;
    world w;
    weir_err err = {0};
    int64_t a, b;
    make(&w);
    memcpy(w.k + 2 * F, w.k, F * sizeof *w.k);
    const weir_solve s = solve_of(&w, N, 1);
    assert_int_equal(weir_solve_update(&s, &a, &b, &err), WEIR_E_ARG);
    assert_true(a == 0 && b == 2);
    weir_covariance_free(w.cov);
}

static void too_few_keys_are_told(void **state)
{
    (void)state;
    world w;
    weir_err err = {0};
    weir_moments *m;
    weir_covariance *c;
    make(&w);
    ok(weir_moments_new(&m, F, &err), &err);
    ok(weir_moments_add(m, w.x, 3, 1, &err), &err);
    assert_int_equal(weir_covariance_new(&c, weir_moments_sum(m), F, 3, 0, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "24 tokens"));
    w.x[5] = NAN;
    memset(&err, 0, sizeof err);
    assert_int_equal(weir_moments_add(m, w.x, 1, 1, &err), WEIR_E_ARG);
    assert_int_equal(weir_moments_count(m), 3);
    weir_moments_free(m);
    weir_covariance_free(w.cov);
}

/* --- files */

static weir_moments *shard(const world *w, int64_t first, int64_t n, int64_t i, int64_t of)
{
    weir_err err = {0};
    weir_moments *m;
    ok(weir_moments_new(&m, F, &err), &err);
    ok(weir_moments_add(m, w->x + first * F, n, 2, &err), &err);
    const weir_moments_about a = {.model = "m",
                                  .fingerprint = "f",
                                  .source = "{}",
                                  .layer = 3,
                                  .docs = n,
                                  .shard = i,
                                  .shards = of,
                                  .complete = true};
    ok(weir_moments_set_about(m, &a, &err), &err);
    return m;
}

static void files_and_shards(void **state)
{
    (void)state;
    world w;
    weir_err err = {0};
    char path[] = "/tmp/weir-moments-XXXXXX";
    make(&w);
    weir_moments *part[2] = {shard(&w, 0, 25, 0, 2), shard(&w, 25, 15, 1, 2)}, *whole, *read;
    const weir_moments *turned[2] = {part[1], part[0]}, *twice[2] = {part[0], part[0]};
    ok(weir_moments_merge(&whole, turned, 2, &err), &err);
    assert_int_equal(weir_moments_count(whole), KEYS);
    for (int i = 0; i < F; i++)
        for (int j = i; j < F; j++) {
            double sum = 0;
            for (int t = 0; t < KEYS; t++)
                sum += (double)w.x[t * F + i] * (double)w.x[t * F + j];
            assert_true(fabs(weir_moments_sum(whole)[i * F + j] - sum) < 1e-10);
        }
    assert_int_equal(weir_moments_merge(&read, twice, 2, &err), WEIR_E_ARG);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    memset(&err, 0, sizeof err);
    ok(weir_moments_write(whole, path, 1, &err), &err);
    ok(weir_moments_read(&read, path, &err), &err);
    assert_memory_equal(weir_moments_sum(read), weir_moments_sum(whole), F * F * sizeof(double));
    assert_int_equal(weir_moments_about_of(read)->layer, 3);
    assert_string_equal(weir_moments_about_of(read)->fingerprint, "f");
    assert_true(weir_moments_is_file(path));
    unlink(path);
    weir_moments_free(read);
    weir_moments_free(whole);
    weir_moments_free(part[0]);
    weir_moments_free(part[1]);
    weir_covariance_free(w.cov);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_key_is_met),
                                       cmocka_unit_test(several_keys_are_memit),
                                       cmocka_unit_test(strong_directions_are_left_alone),
                                       cmocka_unit_test(equal_keys_are_named),
                                       cmocka_unit_test(too_few_keys_are_told),
                                       cmocka_unit_test(files_and_shards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
