/* record/deflate_ref.c: the portable table; loops of fixed length, so that compilers find what vectors there are. */
#include "deflate_impl.h"

static void shuffle2(uint8_t *dst, const weir_tile *t)
{
    const size_t plane = t->tile_rows * t->tile_cols;
    for (size_t r = 0; r < t->rows; r++) {
        const uint8_t *restrict src = t->src + r * t->stride;
        uint8_t *restrict low = dst + r * t->tile_cols, *restrict high = low + plane;
        for (size_t j = 0; j < t->cols; j++) {
            low[j] = src[2 * j];
            high[j] = src[2 * j + 1];
        }
    }
}

static inline void split4(uint8_t *restrict dst, size_t plane, const uint8_t *restrict src, size_t n)
{
    for (size_t k = 0; k < 4; k++)
        for (size_t j = 0; j < n; j++)
            dst[k * plane + j] = src[4 * j + k];
}

static void shuffle4(uint8_t *dst, const weir_tile *t)
{
    const size_t plane = t->tile_rows * t->tile_cols;
    for (size_t r = 0; r < t->rows; r++) {
        const uint8_t *src = t->src + r * t->stride;
        uint8_t *row = dst + r * t->tile_cols;
        size_t j = 0;
        for (; j + 64 <= t->cols; j += 64)
            split4(row + j, plane, src + 4 * j, 64);
        split4(row + j, plane, src + 4 * j, t->cols - j);
    }
}

/* The sums of 64 bytes at a time; a < 65521 and 84 blocks keep b in 32 bits. */
static uint32_t adler(const uint8_t *p, size_t n)
{
    enum { BLOCK = 64, MOST = 84 };
    uint32_t a = 1, b = 0;
    while (n >= BLOCK) {
        size_t blocks = n / BLOCK < MOST ? n / BLOCK : MOST;
        n -= blocks * BLOCK;
        for (; blocks > 0; blocks--, p += BLOCK) {
            uint32_t sum = 0, weighted = 0;
            for (int i = 0; i < BLOCK; i++)
                sum += p[i];
            for (int i = 0; i < BLOCK; i++)
                weighted += (uint16_t)((BLOCK - i) * p[i]);
            b += BLOCK * a + weighted;
            a += sum;
        }
        a %= ADLER_MOD;
        b %= ADLER_MOD;
    }
    return adler_bytes(a, b, p, n);
}

/* Bit i: byte i of x is zero. */
static uint64_t zero_bytes(uint64_t x)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    const uint64_t zero = ~(((x & low) + low) | x | low); /* 0x80 in each zero byte */
    return (zero >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

static void repeats(uint64_t *bits, const uint8_t *p, size_t n)
{
    size_t w = 0;
    for (; w * 64 + 64 <= n; w++) {
        uint64_t word = 0;
        for (size_t i = w > 0 ? 0 : 8; i < 64; i += 8)
            word |= zero_bytes(load64(p + w * 64 + i) ^ load64(p + w * 64 + i - 1)) << i;
        bits[w] = w > 0 ? word : word | repeats_bytes(p, 1, 8);
    }
    bits[w] = repeats_bytes(p, w > 0 ? w * 64 : 1, n);
    bits[n / 64 + 1] = 0;
}

static void range(const uint8_t *p, size_t n, uint8_t *lo, uint8_t *hi)
{
    range_plain(p, n, lo, hi);
}

static void literals(weir_bits *w, const weir_code *code, const uint8_t *p, size_t n)
{
    literals_plain(w, code, p, n);
}

const weir_deflate_kern weir_deflate_ref = {"ref", shuffle2, shuffle4, adler, repeats, range, literals};
