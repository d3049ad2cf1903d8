/* Chunks: the shuffle against its definition, packed streams against zlib's own inflate and against each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#ifdef WEIR_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

#include "kernels/kernels.h"
#include "record/compress.h"

enum { CHUNK = 1024 * 64 * 4, TABLES = 3 };

static uint32_t next(uint32_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    return *s ^= *s << 5;
}

/* --- the shuffle */

static bool shuffled_right(const uint8_t *got, const weir_tile *t)
{
    size_t plane = t->tile_rows * t->tile_cols;
    for (size_t r = 0; r < t->tile_rows; r++)
        for (size_t j = 0; j < t->tile_cols; j++)
            for (size_t k = 0; k < t->elem; k++) {
                uint8_t want = r < t->rows && j < t->cols ? t->src[r * t->stride + j * t->elem + k] : 0;
                if (got[k * plane + r * t->tile_cols + j] != want)
                    return false;
            }
    return true;
}

static bool copied_right(const uint8_t *got, const weir_tile *t)
{
    for (size_t r = 0; r < t->tile_rows; r++)
        for (size_t j = 0; j < t->tile_cols * t->elem; j++) {
            uint8_t want = r < t->rows && j < t->cols * t->elem ? t->src[r * t->stride + j] : 0;
            if (got[r * t->tile_cols * t->elem + j] != want)
                return false;
        }
    return true;
}

static int tables(const weir_kern **all)
{
    return weir_kern_available(all, TABLES);
}

static void shuffle_is_its_definition(void **state)
{
    (void)state;
    static const struct {
        size_t elem, rows, cols, tile_rows, tile_cols, pad;
    } cases[] = {{4, 1024, 64, 1024, 64, 0}, {4, 1024, 64, 1024, 64, 12}, {4, 7, 64, 1024, 64, 4},
                 {4, 1024, 36, 1024, 64, 0}, {4, 1, 1, 1024, 1, 0},       {8, 1024, 1, 1024, 1, 0},
                 {8, 3, 1, 1024, 1, 0},      {1, 100, 1, 1024, 1, 0},     {4, 64, 64, 64, 64, 8},
                 {4, 1024, 33, 1024, 33, 0}, {8, 5, 5, 16, 5, 8},         {2, 1024, 64, 1024, 64, 0},
                 {2, 9, 37, 16, 64, 2},      {2, 1024, 1, 1024, 1, 0},    {4, 777, 1, 1024, 1, 0},
                 {1, 3, 50, 7, 64, 5},       {8, 64, 64, 64, 64, 0},      {4, 5, 100, 5, 100, 4}};
    const weir_kern *all[TABLES];
    uint8_t *src = malloc(2 * CHUNK);
    uint32_t seed = 7;
    for (int i = 0; i < 2 * CHUNK; i++)
        src[i] = (uint8_t)next(&seed);
    for (int k = 0, n = tables(all); k < n; k++) {
        setenv("WEIR_KERNEL", weir_kern_name(all[k]), 1);
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            weir_tile t = {src,
                           cases[c].cols * cases[c].elem + cases[c].pad,
                           cases[c].elem,
                           cases[c].rows,
                           cases[c].cols,
                           cases[c].tile_rows,
                           cases[c].tile_cols};
            size_t bytes = t.tile_rows * t.tile_cols * t.elem;
            uint8_t *dst = malloc(bytes); /* no larger: the sanitizer sees a byte too far */
            memset(dst, 0xa5, bytes);
            weir_tile_shuffle(dst, &t);
            assert_true(shuffled_right(dst, &t));
            dst[(t.rows - 1) * t.tile_cols] ^= 1;
            assert_false(shuffled_right(dst, &t)); /* the check can fail */
            weir_tile_copy(dst, &t);
            assert_true(copied_right(dst, &t));
            dst[bytes - 1] ^= 1;
            assert_false(copied_right(dst, &t));
            free(dst);
        }
    }
    unsetenv("WEIR_KERNEL");
    free(src);
}

/* --- streams */

/* Kinds of data, 32 bits at a time. */
enum {
    NOISE,
    RESIDUAL,
    GELU,
    ZEROS,
    STEPS,
    SPARSE,
    PATTERN,
    RELU,
    ONE_BYTE,
    TWO_BYTES,
    FIBONACCI,
    SHORT,
    COUNTING,
    MANTISSA_7,
    TEMPLATE,
    KINDS
};

static float normal(uint32_t *s)
{
    float sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (float)(next(s) >> 8) * 0x1p-24f;
    return sum - 6;
}

static float value(int kind, size_t i, uint32_t *s)
{
    float x = normal(s);
    switch (kind) {
    case RESIDUAL:
        return x * (i % 64 == 17 ? 300 : 1.5f);
    case GELU:
        return 0.5f * x * (1 + tanhf(0.8f * x));
    case SPARSE:
        return next(s) % 50 == 0 ? fabsf(x) : 0;
    case PATTERN:
        return i % 64 > i / 64 % 64 ? 0 : expf(x - 3);
    case RELU:
        return x > 0 ? x : 0;
    case SHORT:
        return i < 100 ? x : 0;
    default:
        return x;
    }
}

/* Numbers of symbols as in the worst Huffman tree: Fibonacci's. */
static uint8_t fibonacci(uint32_t r)
{
    uint8_t b = 0;
    while (r % 1000 < 618 && b < 40) {
        r = r * 1664525u + 1013904223u;
        r ^= r >> 15;
        b++;
    }
    return b;
}

static void fill(uint8_t *p, size_t n, int kind, uint32_t seed)
{
    for (size_t i = 0; i < (n + 3) / 4; i++) {
        const float f = value(kind, i, &seed);
        uint32_t x;
        memcpy(&x, &f, 4);
        if (kind == NOISE)
            x = next(&seed);
        else if (kind == ZEROS)
            x = 0;
        else if (kind == STEPS)
            x = (uint32_t)(i / 128 & 255) * 0x01010101u;
        else if (kind == ONE_BYTE)
            x = 0x5a5a5a5a;
        else if (kind == TWO_BYTES)
            x = next(&seed) & 0x01010101;
        else if (kind == FIBONACCI)
            x = fibonacci(next(&seed)) * 0x01010101u ^ (next(&seed) % 7 == 0);
        else if (kind == COUNTING)
            x = (uint32_t)i;
        else if (kind == MANTISSA_7)
            x &= 0xffff0000;
        if (kind == TEMPLATE && i / 64 % 20 < 9 && i >= 20 * 64) /* documents of 20 rows begin with the same nine */
            memcpy(&x, p + 4 * (i - 20 * 64), 4);
        memcpy(p + 4 * i, &x, n - 4 * i < 4 ? n - 4 * i : 4);
    }
}

/* Do zlib's inflate, as HDF5's deflate filter calls it, and libdeflate's both give src back? */
static bool inflates_to(const uint8_t *z, size_t used, const uint8_t *src, size_t n)
{
    uint8_t *back = malloc(n + 1);
    uLongf len = n + 1;
    bool good = uncompress(back, &len, z, used) == Z_OK && len == n && !memcmp(back, src, n);
#ifdef WEIR_HAVE_LIBDEFLATE
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    size_t out = 0;
    memset(back, 0xa5, n + 1);
    good = good && libdeflate_zlib_decompress(d, z, used, back, n + 1, &out) == LIBDEFLATE_SUCCESS && out == n &&
           !memcmp(back, src, n);
    libdeflate_free_decompressor(d);
#endif
    free(back);
    return good;
}

static weir_packer *packer(const weir_kern *kern, int level)
{
    weir_packer *p = NULL;
    setenv("WEIR_KERNEL", weir_kern_name(kern), 1);
    assert_int_equal(weir_packer_new(&p, level, NULL), WEIR_OK);
    unsetenv("WEIR_KERNEL");
    return p;
}

/* Packs with every table, checks that the streams are the same and inflate; how long they are. */
static size_t checked(weir_packer *const *p, int n_packers, const uint8_t *src, size_t n, size_t elem)
{
    size_t bound = weir_packer_bound(n), used = 0;
    uint8_t *z = malloc(bound), *first = malloc(bound);
    for (int k = 0; k < n_packers; k++) {
        memset(z, 0xa5 + k, bound);
        const size_t got = weir_packer_pack(p[k], src, n, elem, z, bound);
        assert_true(got > 0 && got <= bound);
        if (k == 0) {
            used = got;
            memcpy(first, z, used);
            assert_true(inflates_to(z, used, src, n));
        }
        assert_int_equal(got, used);
        assert_memory_equal(z, first, used);
    }
    free(z);
    free(first);
    return used;
}

static int open_all(weir_packer **p, int level)
{
    const weir_kern *all[TABLES];
    const int n = tables(all);
    for (int k = 0; k < n; k++)
        p[k] = packer(all[k], level);
    return n;
}

static void close_all(weir_packer **p, int n)
{
    for (int k = 0; k < n; k++)
        weir_packer_free(p[k]);
}

static void every_table_writes_the_same_stream(void **state)
{
    (void)state;
    static const size_t sizes[] = {16384, CHUNK, 4096, 8192, 65536 * 3 + 20, 40004, 2052, 1020};
    static const int levels[] = {1, 2, 6, 9};
    uint8_t *raw = malloc(CHUNK);
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            fill(raw, sizes[s], kind, 99 + (uint32_t)s);
            for (size_t elem = 1; elem <= 8; elem *= 2) {
                const size_t n = sizes[s] / elem * elem;
                uint8_t *plane = malloc(n);
                weir_tile t = {raw, elem, elem, n / elem, 1, n / elem, 1};
                weir_tile_shuffle(plane, &t);
                size_t before = SIZE_MAX;
                for (int l = 0; l < 4 && (l == 0 || s % 5 == 0); l++) {
                    weir_packer *p[TABLES];
                    const int k = open_all(p, levels[l]);
                    const size_t used = checked(p, k, plane, n, elem);
                    assert_int_equal(checked(p, k, plane, n, elem), used); /* a packer remembers nothing */
                    assert_true(used <= before);                           /* higher levels are no longer */
                    before = used;
                    close_all(p, k);
                }
                free(plane);
            }
        }
    free(raw);
}

static void small_sizes(void **state)
{
    (void)state;
    uint8_t raw[304];
    for (int level = 1; level <= 9; level += 4) {
        weir_packer *p[TABLES];
        const int k = open_all(p, level);
        for (int kind = 0; kind < KINDS; kind++)
            for (size_t n = 0; n <= 300; n++) {
                uint8_t *exact = malloc(n + !n); /* no larger than n: the sanitizer sees a byte too far */
                fill(raw, n, kind, (uint32_t)n + 1);
                memcpy(exact, raw, n);
                checked(p, k, exact, n, n % 8 + 1);
                free(exact);
            }
        close_all(p, k);
    }
}

/* The groups that level 1 looks at are told apart from the rest: what it sees is a narrow band, all else is noise. */
static void a_sample_that_misleads(void **state)
{
    (void)state;
    enum { N = 65536, GROUP = 64, ONE_IN = 8 };
    weir_packer *p[TABLES];
    uint8_t *src = malloc(N);
    uint32_t seed = 3;
    for (size_t i = 0; i < N; i++)
        src[i] = (uint8_t)next(&seed);
    for (uint32_t g = 0; g < N / GROUP / ONE_IN; g++)
        for (size_t at = (g * ONE_IN + (g * 0x9e3779b1u >> 29)) * GROUP, i = 0; i < GROUP; i++)
            src[at + i] = (uint8_t)(next(&seed) % 3);
    const int k = open_all(p, 1);
    const size_t used = checked(p, k, src, N, 1);
    assert_true(used >= N * 15 / 16 && used <= N + 20); /* stored after all */
    close_all(p, k);
    free(src);
}

static void a_broken_stream_is_noticed(void **state)
{
    (void)state;
    enum { N = 4096 };
    uint8_t src[N], z[2 * N];
    weir_packer *p = NULL;
    uint32_t seed = 5;
    assert_int_equal(weir_packer_new(&p, 1, NULL), WEIR_OK);
    for (int kind = 0; kind < KINDS; kind++) {
        fill(src, N, kind, 1);
        const size_t used = weir_packer_pack(p, src, N, 4, z, sizeof z);
        assert_true(inflates_to(z, used, src, N));
        int noticed = 0;
        for (int i = 0; i < 200; i++) {
            const size_t at = i < 32 ? used - 4 + (size_t)i / 8 : next(&seed) % used;
            const uint8_t bit = (uint8_t)(1u << (i < 32 ? (uint32_t)i : next(&seed)) % 8);
            z[at] ^= bit;
            noticed += !inflates_to(z, used, src, N);
            z[at] ^= bit;
            assert_true(i >= 32 || noticed == i + 1); /* each bit of the checksum counts */
        }
        assert_true(noticed > 180); /* a few bits fill up bytes before stored blocks */
        assert_false(inflates_to(z, used - 1, src, N));
        src[N / 2] ^= 1;
        assert_false(inflates_to(z, used, src, N));
    }
    assert_int_equal(weir_packer_pack(p, src, N, 4, z, weir_packer_bound(N) - 1), 0); /* no room */
    weir_packer_free(p);
}

static size_t level1(const uint8_t *raw, size_t rows, size_t elem)
{
    weir_packer *p[TABLES];
    const int k = open_all(p, 1);
    uint8_t *plane = malloc(1024 * 64 * elem);
    weir_tile t = {raw, 64 * elem, elem, rows, 64, 1024, 64};
    weir_tile_shuffle(plane, &t);
    const size_t used = checked(p, k, plane, 1024 * 64 * elem, elem);
    close_all(p, k);
    free(plane);
    return used;
}

static void sizes_are_as_small_as_they_should_be(void **state)
{
    (void)state;
    uint8_t *raw = malloc(CHUNK);
    fill(raw, CHUNK, NOISE, 1);
    assert_true(level1(raw, 1024, 4) <= CHUNK + 5 * 5 + 6); /* noise: stored */
    assert_true(level1(raw, 1, 4) < 256 + 450);             /* one row: its bytes, 64 bytes of repeats a plane */
    assert_true(level1(raw, 512, 4) < CHUNK / 2 + 1000);
    fill(raw, CHUNK, RESIDUAL, 1);
    assert_in_range(level1(raw, 1024, 4), CHUNK * 7 / 10, CHUNK * 88 / 100);
    fill(raw, CHUNK, ZEROS, 1);
    assert_true(level1(raw, 1024, 4) < 400);
    fill(raw, CHUNK, STEPS, 1);
    assert_true(level1(raw, 1024, 4) < CHUNK / 64);
    fill(raw, CHUNK, SPARSE, 1);
    assert_true(level1(raw, 1024, 4) < CHUNK / 18);
    fill(raw, CHUNK, TWO_BYTES, 1);
    assert_true(level1(raw, 1024, 4) < CHUNK * 3 / 16 + 400); /* two bytes and the end: 1.5 bits each */
    fill(raw, CHUNK, MANTISSA_7, 1);
    assert_true(level1(raw, 1024, 4) < CHUNK * 2 / 5);
    fill(raw, CHUNK, TEMPLATE, 1);
    assert_true(level1(raw, 1024, 4) < CHUNK * 55 / 100); /* nine rows in twenty are matches */
    free(raw);
}

static void an_unknown_table_is_refused(void **state)
{
    (void)state;
    weir_packer *p = NULL;
    weir_err err = {0};
    setenv("WEIR_KERNEL", "abacus", 1);
    assert_int_equal(weir_packer_new(&p, 1, &err), WEIR_E_ARG);
    assert_null(p);
    assert_non_null(strstr(err.msg, "abacus"));
    unsetenv("WEIR_KERNEL");
    weir_packer_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffle_is_its_definition),
        cmocka_unit_test(every_table_writes_the_same_stream),
        cmocka_unit_test(small_sizes),
        cmocka_unit_test(a_sample_that_misleads),
        cmocka_unit_test(a_broken_stream_is_noticed),
        cmocka_unit_test(sizes_are_as_small_as_they_should_be),
        cmocka_unit_test(an_unknown_table_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
