/* record/deflate_avx2.c: the AVX2 table. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "deflate_impl.h"

static inline __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline void store(uint8_t *p, __m256i x)
{
    _mm256_storeu_si256((__m256i *)(void *)p, x);
}

static void shuffle2(uint8_t *dst, const weir_tile *t)
{
    const size_t plane = t->tile_rows * t->tile_cols;
    const __m256i part =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    for (size_t r = 0; r < t->rows; r++) {
        const uint8_t *src = t->src + r * t->stride;
        uint8_t *low = dst + r * t->tile_cols, *high = low + plane;
        size_t j = 0;
        for (; j + 32 <= t->cols; j += 32) {
            const __m256i a = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(load(src + 2 * j), part), 0xd8);
            const __m256i b = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(load(src + 2 * j + 32), part), 0xd8);
            store(low + j, _mm256_permute2x128_si256(a, b, 0x20));
            store(high + j, _mm256_permute2x128_si256(a, b, 0x31));
        }
        for (; j < t->cols; j++) {
            low[j] = src[2 * j];
            high[j] = src[2 * j + 1];
        }
    }
}

/* Eight elements to eight bytes of each plane. */
static inline __m256i quarters(const uint8_t *src)
{
    const __m256i part =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    return _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(load(src), part), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static void shuffle4(uint8_t *dst, const weir_tile *t)
{
    const size_t plane = t->tile_rows * t->tile_cols;
    for (size_t r = 0; r < t->rows; r++) {
        const uint8_t *src = t->src + r * t->stride;
        uint8_t *row = dst + r * t->tile_cols;
        size_t j = 0;
        for (; j + 32 <= t->cols; j += 32) {
            const __m256i a = quarters(src + 4 * j), b = quarters(src + 4 * j + 32);
            const __m256i c = quarters(src + 4 * j + 64), d = quarters(src + 4 * j + 96);
            const __m256i ab02 = _mm256_unpacklo_epi64(a, b), ab13 = _mm256_unpackhi_epi64(a, b);
            const __m256i cd02 = _mm256_unpacklo_epi64(c, d), cd13 = _mm256_unpackhi_epi64(c, d);
            store(row + j, _mm256_permute2x128_si256(ab02, cd02, 0x20));
            store(row + plane + j, _mm256_permute2x128_si256(ab13, cd13, 0x20));
            store(row + 2 * plane + j, _mm256_permute2x128_si256(ab02, cd02, 0x31));
            store(row + 3 * plane + j, _mm256_permute2x128_si256(ab13, cd13, 0x31));
        }
        for (; j < t->cols; j++)
            for (size_t k = 0; k < 4; k++)
                row[k * plane + j] = src[4 * j + k];
    }
}

static inline uint64_t sum64(__m256i x)
{
    const __m128i s = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    return (uint64_t)_mm_cvtsi128_si64(s) + (uint64_t)_mm_extract_epi64(s, 1);
}

/* b grows by 32 times every earlier sum and by each byte times its distance from the end of its block. */
static uint32_t adler(const uint8_t *p, size_t n)
{
    enum { BLOCK = 32, MOST = 4096 }; /* the 32-bit lanes of `weighted` hold that many blocks */
    const __m256i weight = _mm256_setr_epi8(32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14,
                                            13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi16(1);
    uint64_t a = 1, b = 0;
    while (n >= BLOCK) {
        const size_t blocks = n / BLOCK < MOST ? n / BLOCK : MOST;
        __m256i sum = zero, before = zero, weighted = zero;
        for (size_t i = 0; i < blocks; i++, p += BLOCK) {
            const __m256i x = load(p);
            before = _mm256_add_epi64(before, sum);
            sum = _mm256_add_epi64(sum, _mm256_sad_epu8(x, zero));
            weighted = _mm256_add_epi32(weighted, _mm256_madd_epi16(_mm256_maddubs_epi16(x, weight), one));
        }
        const __m256i wide = _mm256_add_epi64(_mm256_srli_epi64(weighted, 32),
                                              _mm256_and_si256(weighted, _mm256_set1_epi64x(0xffffffff)));
        b = (b + a * BLOCK * blocks + sum64(before) * BLOCK + sum64(wide)) % ADLER_MOD;
        a = (a + sum64(sum)) % ADLER_MOD;
        n -= blocks * BLOCK;
    }
    return adler_bytes((uint32_t)a, (uint32_t)b, p, n);
}

static inline uint64_t equal32(const uint8_t *p)
{
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(load(p), load(p - 1)));
}

static void repeats(uint64_t *bits, const uint8_t *p, size_t n)
{
    size_t w = 0;
    if (n >= 64)
        bits[w++] = repeats_bytes(p, 1, 32) | equal32(p + 32) << 32;
    for (; w * 64 + 64 <= n; w++)
        bits[w] = equal32(p + w * 64) | equal32(p + w * 64 + 32) << 32;
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

const weir_deflate_kern weir_deflate_avx2 = {"avx2", shuffle2, shuffle4, adler, repeats, range, literals};
#endif
