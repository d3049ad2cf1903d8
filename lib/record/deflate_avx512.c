/* record/deflate_avx512.c: the AVX-512 table (F, BW, DQ, VL). */
#if defined(__x86_64__)
#include <immintrin.h>

#include "deflate_impl.h"

static inline __m512i load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

static void shuffle2(uint8_t *dst, const weir_tile *t)
{
    const size_t plane = t->tile_rows * t->tile_cols;
    for (size_t r = 0; r < t->rows; r++) {
        const uint8_t *src = t->src + r * t->stride;
        uint8_t *low = dst + r * t->tile_cols, *high = low + plane;
        for (size_t j = 0; j < t->cols; j += 32) {
            const size_t left = t->cols - j;
            const __mmask32 k = left >= 32 ? ~0u : (1u << left) - 1;
            const __m512i x = _mm512_maskz_loadu_epi16(k, src + 2 * j);
            _mm512_mask_cvtepi16_storeu_epi8(low + j, k, x);
            _mm512_mask_cvtepi16_storeu_epi8(high + j, k, _mm512_srli_epi16(x, 8));
        }
    }
}

/* Sixteen elements to sixteen bytes of each plane. */
static inline __m512i quarters(__m512i x)
{
    const __m512i part = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m512i lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(lanes, _mm512_shuffle_epi8(x, part));
}

static inline void split64(uint8_t *row, size_t plane, const uint8_t *src)
{
    const __m512i a = quarters(load(src)), b = quarters(load(src + 64));
    const __m512i c = quarters(load(src + 128)), d = quarters(load(src + 192));
    const __m512i ab01 = _mm512_shuffle_i32x4(a, b, 0x44), ab23 = _mm512_shuffle_i32x4(a, b, 0xee);
    const __m512i cd01 = _mm512_shuffle_i32x4(c, d, 0x44), cd23 = _mm512_shuffle_i32x4(c, d, 0xee);
    _mm512_storeu_si512(row, _mm512_shuffle_i32x4(ab01, cd01, 0x88));
    _mm512_storeu_si512(row + plane, _mm512_shuffle_i32x4(ab01, cd01, 0xdd));
    _mm512_storeu_si512(row + 2 * plane, _mm512_shuffle_i32x4(ab23, cd23, 0x88));
    _mm512_storeu_si512(row + 3 * plane, _mm512_shuffle_i32x4(ab23, cd23, 0xdd));
}

static void shuffle4(uint8_t *dst, const weir_tile *t)
{
    const size_t plane = t->tile_rows * t->tile_cols;
    for (size_t r = 0; r < t->rows; r++) {
        const uint8_t *src = t->src + r * t->stride;
        uint8_t *row = dst + r * t->tile_cols;
        size_t j = 0;
        for (; j + 64 <= t->cols; j += 64)
            split64(row + j, plane, src + 4 * j);
        for (; j < t->cols; j += 16) {
            const size_t left = t->cols - j;
            const __mmask16 m = (__mmask16)(left >= 16 ? 0xffff : (1u << left) - 1);
            __m512i x = _mm512_maskz_loadu_epi32(m, src + 4 * j);
            for (size_t k = 0; k < 4; k++, x = _mm512_srli_epi32(x, 8))
                _mm512_mask_cvtepi32_storeu_epi8(row + k * plane + j, m, x);
        }
    }
}

/* As in deflate_avx2.c. */
static uint32_t adler(const uint8_t *p, size_t n)
{
    enum { BLOCK = 64, MOST = 4096 };
    const __m512i up = _mm512_set_epi64(0x0102030405060708, 0x090a0b0c0d0e0f10, 0x1112131415161718, 0x191a1b1c1d1e1f20,
                                        0x2122232425262728, 0x292a2b2c2d2e2f30, 0x3132333435363738, 0x393a3b3c3d3e3f40);
    const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi16(1);
    uint64_t a = 1, b = 0;
    while (n >= BLOCK) {
        const size_t blocks = n / BLOCK < MOST ? n / BLOCK : MOST;
        __m512i sum = zero, before = zero, weighted = zero;
        for (size_t i = 0; i < blocks; i++, p += BLOCK) {
            const __m512i x = load(p);
            before = _mm512_add_epi64(before, sum);
            sum = _mm512_add_epi64(sum, _mm512_sad_epu8(x, zero));
            weighted = _mm512_add_epi32(weighted, _mm512_madd_epi16(_mm512_maddubs_epi16(x, up), one));
        }
        b += a * BLOCK * blocks + (uint64_t)_mm512_reduce_add_epi64(before) * BLOCK;
        b = (b + (uint64_t)_mm512_reduce_add_epi64(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(weighted))) +
             (uint64_t)_mm512_reduce_add_epi64(_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(weighted, 1)))) %
            ADLER_MOD;
        a = (a + (uint64_t)_mm512_reduce_add_epi64(sum)) % ADLER_MOD;
        n -= blocks * BLOCK;
    }
    return adler_bytes((uint32_t)a, (uint32_t)b, p, n);
}

static void repeats(uint64_t *bits, const uint8_t *p, size_t n)
{
    size_t w = 0;
    if (n >= 64)
        bits[w++] = repeats_bytes(p, 1, 64);
    for (; w * 64 + 64 <= n; w++)
        bits[w] = _mm512_cmpeq_epi8_mask(load(p + w * 64), load(p + w * 64 - 1));
    bits[w] = repeats_bytes(p, w > 0 ? w * 64 : 1, n);
    bits[n / 64 + 1] = 0;
}

static void range(const uint8_t *p, size_t n, uint8_t *lo, uint8_t *hi)
{
    range_plain(p, n, lo, hi);
}

/* --- literals: 32 at a time */

/* The codes of 32 bytes: 256 entries of 16 bits lie in eight registers. */
static inline __m512i look_up(const __m512i table[8], __m256i bytes)
{
    const __m512i s = _mm512_cvtepu8_epi16(bytes);
    const __mmask32 in2 = _mm512_test_epi16_mask(s, _mm512_set1_epi16(64));
    const __mmask32 in4 = _mm512_test_epi16_mask(s, _mm512_set1_epi16(128));
    const __m512i q0 = _mm512_permutex2var_epi16(table[0], s, table[1]);
    const __m512i q1 = _mm512_permutex2var_epi16(table[2], s, table[3]);
    const __m512i q2 = _mm512_permutex2var_epi16(table[4], s, table[5]);
    const __m512i q3 = _mm512_permutex2var_epi16(table[6], s, table[7]);
    return _mm512_mask_blend_epi16(in4, _mm512_mask_blend_epi16(in2, q0, q1), _mm512_mask_blend_epi16(in2, q2, q3));
}

/* Four neighbouring codes, at most 48 bits, in each 64-bit lane; *len: their length. */
static inline __m512i join4(__m512i entry, __m512i *len)
{
    const __m512i len16 = _mm512_srli_epi16(entry, 12), code16 = _mm512_and_si512(entry, _mm512_set1_epi16(0xfff));
    const __m512i low32 = _mm512_set1_epi32(0xffff), low64 = _mm512_set1_epi64(0xffffffff);
    const __m512i first32 = _mm512_and_si512(len16, low32);
    const __m512i code32 =
        _mm512_or_si512(_mm512_and_si512(code16, low32), _mm512_sllv_epi32(_mm512_srli_epi32(code16, 16), first32));
    const __m512i len32 = _mm512_add_epi32(first32, _mm512_srli_epi32(len16, 16));
    const __m512i first64 = _mm512_and_si512(len32, low64);
    *len = _mm512_add_epi64(first64, _mm512_srli_epi64(len32, 32));
    return _mm512_or_si512(_mm512_and_si512(code32, low64), _mm512_sllv_epi64(_mm512_srli_epi64(code32, 32), first64));
}

/* The stream while it is held in registers. */
typedef struct writer {
    uint8_t *q;
    uint64_t acc;
    unsigned held;
} writer;

/* Appends words[i] at byte at[i] from w->q, i = 0, step, .. < 8; bits of theirs below the stream's end are zero. */
static inline void put_words(writer *w, const uint64_t words[8], const uint64_t at[9], int step)
{
    for (int i = 0; i < 8; i += step) {
        w->acc |= words[i];
        store64(w->q + at[i], w->acc);
        w->acc >>= 8 * (at[i + step] - at[i]);
    }
    w->q += at[8];
}

static inline void put32(writer *w, __m512i entry)
{
    const __m512i zero = _mm512_setzero_si512(), seven = _mm512_set1_epi64(7);
    __m512i len, code = join4(entry, &len);
    const __m512i below = _mm512_unpacklo_epi64(zero, len); /* length of the lower lane of each pair */
    const __m512i by2 = _mm512_add_epi64(len, below);
    const __m512i by4 = _mm512_add_epi64(by2, _mm512_maskz_permutex_epi64(0xcc, by2, 0x50));
    const __m512i by8 =
        _mm512_add_epi64(by4, _mm512_maskz_permutexvar_epi64(0xf0, _mm512_setr_epi64(0, 0, 0, 0, 3, 3, 3, 3), by4));
    const __m512i begin = _mm512_add_epi64(_mm512_sub_epi64(by8, len), _mm512_set1_epi64(w->held));
    const unsigned end = w->held + (unsigned)_mm_extract_epi64(_mm512_extracti64x2_epi64(by8, 3), 1);
    uint64_t words[8] __attribute__((aligned(64))), at[9] __attribute__((aligned(64)));
    _mm512_store_si512(at, _mm512_srli_epi64(begin, 3));
    at[8] = end >> 3;
    if (_mm512_cmpgt_epu64_mask(by2, _mm512_set1_epi64(56)) & 0xaa) {
        _mm512_store_si512(words, _mm512_sllv_epi64(code, _mm512_and_si512(begin, seven)));
        put_words(w, words, at, 1);
    } else {
        code = _mm512_sllv_epi64(code, below);
        code = _mm512_or_si512(code, _mm512_unpackhi_epi64(code, code));
        _mm512_store_si512(words, _mm512_sllv_epi64(code, _mm512_and_si512(begin, seven)));
        put_words(w, words, at, 2);
    }
    w->held = end & 7;
}

static void literals(weir_bits *out, const weir_code *code, const uint8_t *p, size_t n)
{
    writer w = {out->p, out->acc, out->n};
    size_t i = 0;
    if (n >= 128) {
        __m512i table[8];
        for (int t = 0; t < 8; t++)
            table[t] = _mm512_loadu_si512(code + 32 * t);
        for (; i + 32 <= n; i += 32)
            put32(&w, look_up(table, _mm256_loadu_si256((const __m256i *)(const void *)(p + i))));
    }
    *out = (weir_bits){w.q, w.acc, w.held};
    literals_plain(out, code, p + i, n - i);
}

const weir_deflate_kern weir_deflate_avx512 = {"avx512", shuffle2, shuffle4, adler, repeats, range, literals};
#endif
