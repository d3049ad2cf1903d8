/* test_gemm: y = x W + bias is one chain of fused multiply-adds per output, whatever the table, threads, rows, blocks
 * or storage. */
#include "check.h"

/* A weight matrix in its stored form, and what it means in fp32. */
typedef struct weights {
    weir_dtype type;
    int64_t n, k;
    bool k_major;
    uint8_t *stored;
    float *value; /* [n][k] */
    weir_panels *p;
} weights;

static int64_t size_of(weir_dtype t)
{
    return t == WEIR_F32 ? 4 : 2;
}

/* rare: see trouble(). Stored one byte off alignment. Rows map to `order` if not NULL. */
static weights weights_new(weir_dtype type, int64_t n, int64_t k, bool k_major, int rare, const int64_t *order)
{
    weights w = {.type = type, .n = n, .k = k, .k_major = k_major};
    const int64_t size = size_of(type);
    w.stored = malloc((size_t)(n * k * size + 1));
    w.value = malloc((size_t)(n * k) * sizeof(float));
    assert_true(w.stored && w.value);
    float *all = malloc((size_t)(n * k) * sizeof(float));
    for (int64_t i = 0; i < n * k; i++) {
        const float f = rare ? trouble(rare) : normal();
        uint32_t u = to_bits(f);
        if (type == WEIR_F16)
            u = (rng() % 50 ? 0x2000 + rng() % 0x1800 : rng() % 0x8000) | (rng() & 0x8000);
        else if (type == WEIR_BF16)
            u >>= 16;
        memcpy(w.stored + 1 + i * size, &u, (size_t)size); /* little endian */
        weir_dequantize(type, w.stored + 1 + i * size, 1, &all[i]);
    }
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < k; c++) {
            const int64_t s = order ? order[r] : r;
            w.value[r * k + c] = all[k_major ? c * n + s : s * k + c];
        }
    free(all);
    const weir_tensor t = {
        .name = "w", .dtype = type, .rank = 2, .data = w.stored + 1, .bytes = (size_t)(n * k * size)};
    const weir_wview v = {.t = &t, .n = n, .k = k, .k_major = k_major, .stride = k_major ? n : k, .row = order};
    weir_err err = {0};
    assert_int_equal(weir_panels_new(&w.p, &v, (int)pick(1, 3), &err), WEIR_OK);
    return w;
}

static void weights_free(weights *w)
{
    weir_panels_free(w->p);
    free(w->stored);
    free(w->value);
}

/* The contract, written down: [m][n] */
static void expected(float *y, const float *x, int64_t ldx, int64_t m, const weights *w, int64_t k0, int64_t kn,
                     const float *bias)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t n = 0; n < w->n; n++) {
            float acc = 0.0f;
            for (int64_t k = 0; k < kn; k++)
                acc = fmaf(x[i * ldx + k], w->value[n * w->k + k0 + k], acc);
            if (bias)
                acc = acc + bias[n];
            y[i * w->n + n] = isnan(acc) ? from_bits(0x7fc00000u) : acc;
        }
}

typedef struct call {
    int64_t m, ldx, ldy, k0, kn;
    const float *x, *bias;
} call;

/* Runs one call and checks it against `want` [m][n], and that nothing else was written. */
static void run_one(const weir_kern *k, int threads, const weights *w, const call *c, const float *want,
                    const char *what)
{
    guarded y = guarded_new(c->m * c->ldy, (int)rng() & 15);
    void *scratch = weir_alloc_aligned(weir_gemm_scratch(c->m, c->kn, threads));
    const weir_gemm g = {.m = c->m,
                         .x = c->x,
                         .ldx = c->ldx,
                         .k0 = c->k0,
                         .kn = c->kn,
                         .n_out = 1,
                         .out = {{w->p, c->bias, y.p, c->ldy}},
                         .scratch = scratch};
    weir_gemm_run(k, threads, &g);
    for (int64_t i = 0; i < c->m; i++) {
        SAME(y.p + i * c->ldy, want + i * w->n, w->n, "%s %s, %d threads, row %lld of %lld, N %lld, K %lld+%lld", what,
             weir_kern_name(k), threads, (long long)i, (long long)c->m, (long long)w->n, (long long)c->k0,
             (long long)c->kn);
        for (int64_t n = w->n; n < c->ldy; n++)
            assert_int_equal(to_bits(y.p[i * c->ldy + n]), GUARD_BITS);
    }
    weir_free_aligned(scratch);
    guarded_free(&y);
}

static void run_case(weir_dtype type, int64_t m, int64_t n, int64_t k, int rare)
{
    const bool mapped = pick(0, 3) == 0;
    int64_t *order = malloc((size_t)n * sizeof *order);
    for (int64_t i = 0; i < n; i++)
        order[i] = (i * 7 + 3) % n;
    weights w = weights_new(type, n, k, pick(0, 1), rare, mapped ? order : NULL);
    call c = {.m = m, .ldx = k + pick(0, 5), .ldy = n + pick(0, 3), .kn = k};
    if (pick(0, 2) == 0) {
        c.k0 = pick(0, k - 1);
        c.kn = pick(1, k - c.k0);
    }
    guarded x = guarded_new(m * c.ldx, (int)rng() & 15), bias = guarded_new(n, (int)rng() & 15);
    fill(x.p, m * c.ldx, rare);
    fill(bias.p, n, rare);
    c.x = x.p;
    c.bias = pick(0, 2) ? bias.p : NULL;
    float *want = malloc((size_t)(m * n) * sizeof *want);
    expected(want, c.x, c.ldx, m, &w, c.k0, c.kn, c.bias);
    for (const weir_kern *t = NULL; next_table(&t);)
        for (int i = 0; i < 3; i++)
            run_one(t, thread_counts[i], &w, &c, want, "gemm");
    /* any grouping of the rows */
    for (const weir_kern *t = NULL; next_table(&t);)
        for (int64_t r = 0; r < m;) {
            const int64_t rows = pick(1, m - r);
            call part = c;
            part.m = rows;
            part.x = c.x + r * c.ldx;
            run_one(t, 2, &w, &part, want + r * n, "rows");
            r += rows;
        }
    free(want);
    free(order);
    guarded_free(&x);
    guarded_free(&bias);
    weights_free(&w);
}

static const weir_dtype types[3] = {WEIR_F32, WEIR_F16, WEIR_BF16};

static void odd_sizes(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 67; n++)
        run_case(types[n % 3], pick(1, 20), n, pick(1, 67), 0);
    static const int64_t more[] = {95, 96, 97, 143, 144, 145};
    for (int i = 0; i < 6; i++)
        for (int t = 0; t < 3; t++)
            run_case(types[t], pick(1, 19), more[i], more[5 - i], 0);
    for (int64_t m = 1; m <= 40; m++)
        run_case(types[m % 3], m, pick(1, 100), pick(1, 40), 0);
}

static void several_blocks_of_k(void **state)
{
    (void)state;
    static const int64_t k[] = {767, 768, 769, 1537, 1700};
    for (int i = 0; i < 5; i++)
        run_case(types[i % 3], 13, 49, k[i], 0);
    run_case(WEIR_F32, 130, 50, 800, 0);
}

static void trouble_in_numbers(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++)
        run_case(types[i % 3], pick(1, 17), pick(1, 100), pick(1, 60), (int)pick(20, 400));
}

static void several_outputs(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        const int64_t m = pick(1, 30), k = pick(1, 90);
        const int n_out = (int)pick(2, 4);
        weights w[4];
        float *x = malloc((size_t)(m * k) * sizeof *x), *want[4];
        fill(x, m * k, 0);
        for (int o = 0; o < n_out; o++) {
            w[o] = weights_new(types[pick(0, 2)], pick(1, 110), k, pick(0, 1), 0, NULL);
            want[o] = malloc((size_t)(m * w[o].n) * sizeof(float));
            expected(want[o], x, k, m, &w[o], 0, k, NULL);
        }
        for (const weir_kern *t = NULL; next_table(&t);)
            for (int i = 0; i < 3; i++) {
                weir_gemm g = {.m = m, .x = x, .ldx = k, .kn = k, .n_out = n_out};
                guarded y[4];
                g.scratch = weir_alloc_aligned(weir_gemm_scratch(m, k, thread_counts[i]));
                for (int o = 0; o < n_out; o++) {
                    y[o] = guarded_new(m * w[o].n, o);
                    g.out[o] = (weir_gemm_out){w[o].p, NULL, y[o].p, w[o].n};
                }
                weir_gemm_run(t, thread_counts[i], &g);
                for (int o = 0; o < n_out; o++) {
                    SAME(y[o].p, want[o], m * w[o].n, "output %d of %d, %s", o, n_out, weir_kern_name(t));
                    guarded_free(&y[o]);
                }
                weir_free_aligned(g.scratch);
            }
        for (int o = 0; o < n_out; o++) {
            weights_free(&w[o]);
            free(want[o]);
        }
        free(x);
    }
}

/* The chain is as good as a chain of K roundings can be: |error| <= K 2^-24 sum |x w|. */
static void accuracy(void **state)
{
    (void)state;
    const int64_t m = 5, n = 60, k = 700;
    weights w = weights_new(WEIR_F32, n, k, false, 0, NULL);
    float x[5 * 700], y[5 * 60];
    fill(x, m * k, 0);
    void *scratch = weir_alloc_aligned(weir_gemm_scratch(m, k, 1));
    for (const weir_kern *t = NULL; next_table(&t);) {
        const weir_gemm g = {
            .m = m, .x = x, .ldx = k, .kn = k, .n_out = 1, .out = {{w.p, NULL, y, n}}, .scratch = scratch};
        weir_gemm_run(t, 1, &g);
        for (int64_t i = 0; i < m * n; i++) {
            double exact = 0, size = 0;
            for (int64_t c = 0; c < k; c++) {
                const double v = (double)x[i / n * k + c] * (double)w.value[i % n * k + c];
                exact += v;
                size += fabs(v);
            }
            assert_true(fabs((double)y[i] - exact) <= (double)k * 0x1p-24 * size);
        }
    }
    weir_free_aligned(scratch);
    weights_free(&w);
}

static weir_status try_view(const weir_tensor *t, weir_wview v, weir_err *err)
{
    weir_panels *p;
    v.t = t;
    *err = (weir_err){0};
    const weir_status s = weir_panels_new(&p, &v, 1, err);
    weir_panels_free(p);
    return s;
}

static void views_that_do_not_fit(void **state)
{
    (void)state;
    static const float data[12 * 5];
    weir_tensor t = {.name = "w", .dtype = WEIR_F32, .rank = 2, .data = data, .bytes = sizeof data};
    weir_err err;
    const int64_t rows[3] = {0, 11, 12}, negative[3] = {0, -1, 2};
    assert_int_equal(try_view(&t, (weir_wview){.n = 12, .k = 5, .stride = 5}, &err), WEIR_OK);
    assert_int_equal(try_view(&t, (weir_wview){.n = 2, .k = 5, .stride = 5, .first = 10}, &err), WEIR_OK);
    assert_int_equal(try_view(&t, (weir_wview){.n = 13, .k = 5, .stride = 5}, &err), WEIR_E_SHAPE);
    assert_int_equal(try_view(&t, (weir_wview){.n = 3, .k = 5, .stride = 5, .first = 10}, &err), WEIR_E_SHAPE);
    assert_int_equal(try_view(&t, (weir_wview){.n = 2, .k = 5, .stride = 5, .row = rows}, &err), WEIR_OK);
    assert_int_equal(try_view(&t, (weir_wview){.n = 3, .k = 5, .stride = 5, .row = rows}, &err), WEIR_E_SHAPE);
    assert_int_equal(try_view(&t, (weir_wview){.n = 3, .k = 5, .stride = 5, .row = negative}, &err), WEIR_E_SHAPE);
    assert_int_equal(try_view(&t, (weir_wview){.n = 12, .k = 6, .stride = 5}, &err), WEIR_E_SHAPE);
    assert_int_equal(try_view(&t, (weir_wview){.n = 12, .k = 5, .stride = INT64_MAX / 2}, &err), WEIR_E_SHAPE);
    assert_int_equal(try_view(&t, (weir_wview){.n = 0, .k = 5, .stride = 5}, &err), WEIR_E_SHAPE);
    assert_int_equal(try_view(&t, (weir_wview){.n = 5, .k = 12, .stride = 5, .k_major = true}, &err), WEIR_OK);
    assert_int_equal(try_view(&t, (weir_wview){.n = 5, .k = 13, .stride = 5, .k_major = true}, &err), WEIR_E_SHAPE);
    t.dtype = WEIR_OTHER;
    assert_int_equal(try_view(&t, (weir_wview){.n = 12, .k = 5, .stride = 5}, &err), WEIR_E_UNSUPPORTED);
    t.dtype = WEIR_Q8_0;
    assert_int_equal(try_view(&t, (weir_wview){.n = 1, .k = 32, .stride = 32, .k_major = true}, &err), WEIR_E_SHAPE);
    assert_int_equal(try_view(&t, (weir_wview){.n = 32, .k = 7, .stride = 32, .k_major = true}, &err), WEIR_OK);
    assert_int_equal(try_view(&t, (weir_wview){.n = 32, .k = 8, .stride = 32, .k_major = true}, &err), WEIR_E_SHAPE);
    assert_int_equal(try_view(&t, (weir_wview){.n = 32, .k = 2, .stride = 32, .first = 6, .k_major = true}, &err),
                     WEIR_E_SHAPE);
    assert_int_equal(try_view(&t, (weir_wview){.n = 1, .k = 32, .stride = 32}, &err), WEIR_OK);
    assert_int_equal(try_view(&t, (weir_wview){.n = 1, .k = 31, .stride = 32}, &err), WEIR_E_SHAPE);
}

/* Panels in a pool: pieces that do not overlap, large ones too, and those that are given back and taken again; the same
 * results. */
static void panels_in_a_pool(void **state)
{
    (void)state;
    enum { COUNT = 40, K = 700 };
    weir_panel_pool *pool;
    weir_panels *p[COUNT];
    float *w = malloc(COUNT * 100 * K * sizeof *w), x[K], got[100], want[100];
    assert_int_equal(weir_panel_pool_new(&pool, NULL), WEIR_OK);
    fill(w, COUNT * 100 * K, 0);
    fill(x, K, 0);
    const weir_tensor t = {.name = "w", .dtype = WEIR_F32, .rank = 2, .data = w, .bytes = COUNT * 100 * K * sizeof *w};
    for (int i = 0; i < COUNT; i++) {
        const weir_wview v = {.t = &t, .n = 60 + i, .k = K, .stride = K, .first = 100 * i, .pool = pool};
        assert_int_equal(weir_panels_new(&p[i], &v, 2, NULL), WEIR_OK);
        assert_true(weir_panels_bytes(p[i]) > (60 + i) * K * 4);
    }
    for (int i = 0; i < COUNT; i += 3)
        weir_panels_free(p[i]);
    for (int i = 0; i < COUNT; i += 3) {
        const weir_wview v = {.t = &t, .n = 60 + i, .k = K, .stride = K, .first = 100 * i, .pool = pool};
        assert_int_equal(weir_panels_new(&p[i], &v, 2, NULL), WEIR_OK);
    }
    void *scratch = weir_alloc_aligned(weir_gemm_scratch(1, K, 1));
    for (int i = 0; i < COUNT; i++) {
        for (int n = 0; n < 60 + i; n++) {
            want[n] = 0;
            for (int k = 0; k < K; k++)
                want[n] = fmaf(x[k], w[(100 * i + n) * K + k], want[n]);
        }
        const weir_gemm g = {
            .m = 1, .x = x, .ldx = K, .kn = K, .n_out = 1, .out = {{p[i], NULL, got, 100}}, .scratch = scratch};
        weir_gemm_run(table[tables - 1], 1, &g);
        SAME(got, want, 60 + i, "panels %d of a pool", i);
    }
    for (int i = 0; i < COUNT; i++)
        weir_panels_free(p[i]);
    weir_panel_pool_free(pool);
    weir_panel_pool_free(NULL);
    weir_free_aligned(scratch);
    free(w);
}

static void choice_of_tables(void **state)
{
    (void)state;
    const weir_kern *k;
    weir_err err = {0};
    for (int i = 0; i < tables; i++) {
        assert_int_equal(weir_kern_pick(&k, weir_kern_name(table[i]), &err), WEIR_OK);
        assert_ptr_equal(k, table[i]);
    }
    assert_int_equal(weir_kern_pick(&k, "sse9", &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "sse9"));
    setenv("WEIR_KERNEL", "ref", 1);
    assert_int_equal(weir_kern_pick(&k, NULL, &err), WEIR_OK);
    assert_string_equal(weir_kern_name(k), "ref");
    setenv("WEIR_KERNEL", "nonsense", 1);
    assert_int_equal(weir_kern_pick(&k, NULL, NULL), WEIR_E_ARG);
    unsetenv("WEIR_KERNEL");
    assert_int_equal(weir_kern_pick(&k, NULL, NULL), WEIR_OK);
    assert_ptr_equal(k, table[tables - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_sizes),
        cmocka_unit_test(several_blocks_of_k),
        cmocka_unit_test(trouble_in_numbers),
        cmocka_unit_test(several_outputs),
        cmocka_unit_test(accuracy),
        cmocka_unit_test(views_that_do_not_fit),
        cmocka_unit_test(panels_in_a_pool),
        cmocka_unit_test(choice_of_tables),
        CHECK_TESTS,
    };
    return cmocka_run_group_tests(tests, find_tables, NULL);
}
