/* Chunks: the shuffle against its definition, and packed streams against zlib's own inflate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "record/compress.h"

enum { CHUNK = 1024 * 64 * 4 };

static uint32_t next(uint32_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    return *s ^= *s << 5;
}

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

static void shuffle_is_its_definition(void **state)
{
    (void)state;
    static const struct {
        size_t elem, rows, cols, tile_rows, tile_cols, pad;
    } cases[] = {{4, 1024, 64, 1024, 64, 0}, {4, 1024, 64, 1024, 64, 12}, {4, 7, 64, 1024, 64, 4},
                 {4, 1024, 36, 1024, 64, 0}, {4, 1, 1, 1024, 1, 0},       {8, 1024, 1, 1024, 1, 0},
                 {8, 3, 1, 1024, 1, 0},      {1, 100, 1, 1024, 1, 0},     {4, 64, 64, 64, 64, 8},
                 {4, 1024, 33, 1024, 33, 0}, {8, 5, 5, 16, 5, 8}};
    uint8_t *src = malloc(2 * CHUNK), *dst = malloc(2 * CHUNK);
    uint32_t seed = 7;
    for (int i = 0; i < 2 * CHUNK; i++)
        src[i] = (uint8_t)next(&seed);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        weir_tile t = {src,
                       cases[c].cols * cases[c].elem + cases[c].pad,
                       cases[c].elem,
                       cases[c].rows,
                       cases[c].cols,
                       cases[c].tile_rows,
                       cases[c].tile_cols};
        memset(dst, 0xa5, 2 * CHUNK);
        weir_tile_shuffle(dst, &t);
        assert_true(shuffled_right(dst, &t));
        dst[(t.rows - 1) * t.tile_cols] ^= 1;
        assert_false(shuffled_right(dst, &t)); /* the check can fail */
    }
    free(src);
    free(dst);
}

/* Inflates with plain zlib, as HDF5's deflate filter does; the length that came out, or -1. */
static long inflated(const uint8_t *z, size_t n, uint8_t *out, size_t cap)
{
    uLongf len = cap;
    return uncompress(out, &len, z, n) == Z_OK ? (long)len : -1;
}

static void fill(uint8_t *p, size_t n, int kind, uint32_t seed)
{
    for (size_t i = 0; i + 4 <= n; i += 4) {
        uint32_t r = next(&seed);
        float f = sinf((float)r) * expf((float)(r % 13) - 6);
        if (kind == 0)
            memcpy(p + i, &r, 4);
        else if (kind == 1)
            memcpy(p + i, &f, 4);
        else if (kind == 2)
            memset(p + i, 0, 4);
        else
            memset(p + i, (int)(i / 512), 4);
    }
}

static void any_zlib_inflates_it(void **state)
{
    (void)state;
    static const size_t sizes[] = {4, 8, 64, 4096, 16384, 65536, CHUNK};
    uint8_t *src = calloc(CHUNK, 1), *plane = calloc(CHUNK, 1), *back = calloc(CHUNK, 1),
            *z = malloc(weir_packer_bound(CHUNK));
    for (int level = 1; level <= 9; level += 4) {
        weir_packer *p = NULL;
        assert_int_equal(weir_packer_new(&p, level, NULL), WEIR_OK);
        for (int kind = 0; kind < 4; kind++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                size_t n = sizes[s];
                fill(src, n, kind, 99);
                weir_tile t = {src, 4, 4, n / 4, 1, n / 4, 1};
                weir_tile_shuffle(plane, &t);
                size_t used = weir_packer_pack(p, plane, n, 4, z, weir_packer_bound(n));
                assert_true(used > 0 && used <= weir_packer_bound(n));
                assert_int_equal(inflated(z, used, back, CHUNK), (long)n);
                assert_memory_equal(back, plane, n);
                z[used - 1] ^= 1;
                assert_int_equal(inflated(z, used, back, CHUNK), -1); /* the checksum is checked */
            }
        weir_packer_free(p);
    }
    free(src);
    free(plane);
    free(back);
    free(z);
}

static void floats_shrink_and_constants_vanish(void **state)
{
    (void)state;
    weir_packer *p = NULL;
    uint8_t *src = calloc(CHUNK, 1), *plane = calloc(CHUNK, 1), *z = malloc(weir_packer_bound(CHUNK));
    assert_int_equal(weir_packer_new(&p, 1, NULL), WEIR_OK);
    weir_tile t = {src, 256, 4, 1024, 64, 1024, 64};
    fill(src, CHUNK, 1, 5);
    weir_tile_shuffle(plane, &t);
    size_t floats = weir_packer_pack(p, plane, CHUNK, 4, z, weir_packer_bound(CHUNK));
    assert_true(floats > CHUNK / 2 && floats < CHUNK * 9 / 10);
    memset(plane, 0, CHUNK);
    assert_true(weir_packer_pack(p, plane, CHUNK, 4, z, weir_packer_bound(CHUNK)) < CHUNK / 100);
    assert_int_equal(weir_packer_pack(p, plane, CHUNK, 4, z, 100), 0); /* no room */
    weir_packer_free(p);
    free(src);
    free(plane);
    free(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffle_is_its_definition),
        cmocka_unit_test(any_zlib_inflates_it),
        cmocka_unit_test(floats_shrink_and_constants_vanish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
