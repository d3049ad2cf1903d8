/* test_quants: block types equal gguf-py to the bit (tests/data/quants, written by tests/conformance/make_quants.py),
 * in every table; and a GEMM over stored blocks equals one over the same weights widened to fp32 first. */
#include "check.h"

#include "kernels/kern.h"

typedef struct golden {
    uint8_t *file;
    int32_t blocks;
    const uint8_t *stored;
    float *value; /* [blocks x elements] */
    int64_t n;
} golden;

static golden golden_read(weir_dtype type)
{
    char path[200];
    golden g = {0};
    snprintf(path, sizeof path, "tests/data/quants/%s.bin", weir_dtype_name(type));
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s (run from the root of the tree)", path);
    g.file = malloc(1 << 20);
    const size_t bytes = fread(g.file, 1, 1 << 20, f);
    fclose(f);
    memcpy(&g.blocks, g.file, 4);
    g.stored = g.file + 4;
    g.n = g.blocks * weir_dtype_block(type);
    const size_t stored = (size_t)(g.blocks * weir_dtype_bytes(type));
    assert_int_equal(bytes, 4 + stored + (size_t)g.n * 4);
    g.value = malloc((size_t)g.n * 4);
    memcpy(g.value, g.stored + stored, (size_t)g.n * 4);
    return g;
}

static void golden_free(golden *g)
{
    free(g->file);
    free(g->value);
}

/* Bits, but a NaN is a NaN. */
static int64_t first_other(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (to_bits(a[i]) != to_bits(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            return i;
    return -1;
}

static void equal_gguf(void **state)
{
    (void)state;
    for (weir_dtype t = WEIR_Q4_0; t < WEIR_DTYPE_COUNT; t++) {
        golden g = golden_read(t);
        const void *stored = g.stored;
        float *got = malloc((size_t)g.n * 4);
        weir_dequantize(t, g.stored, g.n, got);
        assert_int_equal(first_other(got, g.value, g.n), -1);
        for (const weir_kern *k = NULL; next_table(&k);) {
            k->dequant(t, &stored, 1, 0, g.n, got, g.n);
            const int64_t at = first_other(got, g.value, g.n);
            if (at >= 0)
                fail_msg("%s, %s: element %lld is %g, not %g", weir_dtype_name(t), weir_kern_name(k), (long long)at,
                         (double)got[at], (double)g.value[at]);
        }
        got[5] = nextafterf(got[5], 1); /* the comparison notices one bit */
        assert_int_equal(first_other(got, g.value, g.n), 5);
        free(got);
        golden_free(&g);
    }
}

/* Every half there is, against the definition. */
static void halves(void **state)
{
    (void)state;
    for (const weir_kern *k = NULL; next_table(&k);)
        for (uint32_t h = 0; h < 65536; h++) {
            const uint16_t u = (uint16_t)h;
            const void *row = &u;
            float f, b;
            k->dequant(WEIR_F16, &row, 1, 0, 1, &f, 1);
            k->dequant(WEIR_BF16, &row, 1, 0, 1, &b, 1);
            assert_int_equal(to_bits(b), h << 16);
            const int e = (int)(h >> 10 & 31), m = (int)(h & 1023);
            const float size = e == 31 ? (m ? NAN : INFINITY)
                               : e     ? ldexpf((float)(1024 + m), e - 25)
                                       : ldexpf((float)m, -24);
            if (e == 31 && m)
                assert_true(isnan(f));
            else
                assert_int_equal(to_bits(f), to_bits(h & 0x8000 ? -size : size));
        }
}

/* A weight matrix of n rows of `per` blocks: random bytes with tame scales. */
static uint8_t *random_blocks(weir_dtype type, int64_t count, bool wild)
{
    const int64_t bytes = weir_dtype_bytes(type);
    static const int scales[WEIR_DTYPE_COUNT][2] = {
        [WEIR_Q4_0] = {0, 0}, [WEIR_Q4_1] = {0, 2},     [WEIR_Q5_0] = {0, 0},     [WEIR_Q5_1] = {0, 2},
        [WEIR_Q8_0] = {0, 0}, [WEIR_Q2_K] = {80, 82},   [WEIR_Q3_K] = {108, 108}, [WEIR_Q4_K] = {0, 2},
        [WEIR_Q5_K] = {0, 2}, [WEIR_Q6_K] = {208, 208},
    };
    uint8_t *p = malloc((size_t)(count * bytes));
    for (int64_t i = 0; i < count * bytes; i++)
        p[i] = (uint8_t)rng();
    for (int64_t b = 0; b < count && !(wild && b % 9 == 0); b++)
        for (int s = 0; s < 2; s++) {
            const uint16_t h = (uint16_t)(0x1800 + rng() % 0x1000);
            memcpy(p + b * bytes + scales[type][s], &h, 2);
        }
    return p;
}

static void run_gemm(const weir_kern *k, int threads, const weir_panels *w, int64_t m, const float *x, int64_t ldx,
                     int64_t k0, int64_t kn, float *y, int64_t n)
{
    weir_gemm g = {.m = m, .x = x, .ldx = ldx, .k0 = k0, .kn = kn, .n_out = 1, .out = {{w, NULL, y, n}}};
    g.scratch = weir_alloc_aligned(weir_gemm_scratch(m, kn, threads));
    weir_gemm_run(k, threads, &g);
    weir_free_aligned(g.scratch);
}

/* `rows` stored rows of `per` blocks: outputs, or, turned, k. */
static void gemm_case(weir_dtype type, int64_t m, int64_t rows, int64_t per, bool mapped, bool turned)
{
    const int64_t cols = per * weir_dtype_block(type), n = turned ? cols : rows, kn = turned ? rows : cols;
    uint8_t *stored = random_blocks(type, rows * per, rows % 2);
    float *wide = malloc((size_t)(n * kn) * 4), *x = malloc((size_t)(m * kn) * 4), *want = malloc((size_t)(m * n) * 4);
    int64_t *order = malloc((size_t)rows * sizeof *order);
    for (int64_t i = 0; i < rows; i++) {
        order[i] = mapped ? rows - 1 - i : i;
        weir_dequantize(type, stored + order[i] * per * weir_dtype_bytes(type), cols, wide + i * cols);
    }
    fill(x, m * kn, 0);
    weir_tensor t = {
        .name = "q", .dtype = type, .rank = 2, .data = stored, .bytes = (size_t)(rows * per * weir_dtype_bytes(type))};
    weir_tensor f = {.name = "f", .dtype = WEIR_F32, .rank = 2, .data = wide, .bytes = (size_t)(n * kn) * 4};
    const weir_wview vt = {
        .t = &t, .n = n, .k = kn, .k_major = turned, .stride = cols, .row = mapped ? order : NULL};
    weir_wview vf32 = vt;
    vf32.t = &f, vf32.row = NULL;
    weir_panels *pt, *pf;
    assert_int_equal(weir_panels_new(&pt, &vt, 2, NULL), WEIR_OK);
    assert_int_equal(weir_panels_new(&pf, &vf32, 2, NULL), WEIR_OK);
    assert_true(weir_panels_bytes(pt) < weir_panels_bytes(pf));
    memset(order, 0x7f, (size_t)rows * sizeof *order); /* the map was copied */
    for (int part = 0; part < 2; part++) {
        const int64_t k0 = part ? pick(0, kn - 1) : 0, len = part ? pick(1, kn - k0) : kn;
        run_gemm(ref(), 1, pf, m, x, kn, k0, len, want, n);
        for (const weir_kern *k = NULL; next_table(&k);)
            for (int i = 0; i < 3; i++) {
                guarded y = guarded_new(m * n, i);
                run_gemm(k, thread_counts[i], pt, m, x, kn, k0, len, y.p, n);
                SAME(y.p, want, m * n, "%s %s, %lld x %lld from %lld", weir_dtype_name(type), weir_kern_name(k),
                     (long long)n, (long long)len, (long long)k0);
                guarded_free(&y);
            }
    }
    weir_panels_free(pt);
    weir_panels_free(pf);
    free(stored);
    free(wide);
    free(x);
    free(want);
    free(order);
}

static void tiles(void **state)
{
    (void)state;
    for (weir_dtype t = WEIR_Q4_0; t < WEIR_DTYPE_COUNT; t++) {
        for (int turned = 0; turned < 2; turned++) {
            gemm_case(t, 1, 50, 3, false, turned);
            gemm_case(t, 11, 97, weir_dtype_block(t) == 32 ? 9 : 2, true, turned);
            gemm_case(t, 3, 5, 1, false, turned);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_gguf),
        cmocka_unit_test(halves),
        cmocka_unit_test(tiles),
        CHECK_TESTS,
    };
    return cmocka_run_group_tests(tests, find_tables, NULL);
}
