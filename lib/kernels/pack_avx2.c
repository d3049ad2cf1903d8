/* kernels/pack_avx2.c: transposes in registers, 8 x 8. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/tables.h"

/* Rows r[i] to columns: afterwards r[i] holds element i of each row. */
static inline void transpose_8x8(__m256 r[8])
{
    __m256 t[8];
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        const int q = 4 * i;
        r[q] = _mm256_shuffle_ps(t[q], t[q + 2], 0x44);
        r[q + 1] = _mm256_shuffle_ps(t[q], t[q + 2], 0xee);
        r[q + 2] = _mm256_shuffle_ps(t[q + 1], t[q + 3], 0x44);
        r[q + 3] = _mm256_shuffle_ps(t[q + 1], t[q + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
    for (int i = 0; i < 8; i++)
        r[i] = t[i];
}

/* Eight columns of up to eight rows; a whole block of eight rows is stored without a mask. */
static void eight_rows(float *dst, int64_t ldd, const weir_f32u *const *row, int rows, int64_t cols)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(rows), lanes);
    int64_t c = 0;
    for (; c + 8 <= cols; c += 8) {
        __m256 r[8];
        for (int i = 0; i < 8; i++)
            r[i] = i < rows ? _mm256_loadu_ps((const void *)(row[i] + c)) : _mm256_setzero_ps();
        transpose_8x8(r);
        if (rows == 8) {
            for (int i = 0; i < 8; i++)
                _mm256_storeu_ps(dst + (c + i) * ldd, r[i]);
        } else {
            for (int i = 0; i < 8; i++)
                _mm256_maskstore_ps(dst + (c + i) * ldd, mask, r[i]);
        }
    }
    for (; c < cols; c++)
        for (int i = 0; i < rows; i++)
            dst[c * ldd + i] = row[i][c];
}

void weir_transpose_avx2(float *dst, int64_t ldd, const weir_f32u *const *row, int rows, int64_t cols)
{
    for (int i = 0; i < rows; i += 8)
        eight_rows(dst + i, ldd, row + i, rows - i < 8 ? rows - i : 8, cols);
}

static inline void transpose16_8x8(__m128i r[8])
{
    __m128i t[8];
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        const int q = 4 * i;
        r[q] = _mm_unpacklo_epi32(t[q], t[q + 2]);
        r[q + 1] = _mm_unpackhi_epi32(t[q], t[q + 2]);
        r[q + 2] = _mm_unpacklo_epi32(t[q + 1], t[q + 3]);
        r[q + 3] = _mm_unpackhi_epi32(t[q + 1], t[q + 3]);
    }
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm_unpacklo_epi64(r[i], r[i + 4]);
        t[2 * i + 1] = _mm_unpackhi_epi64(r[i], r[i + 4]);
    }
    for (int i = 0; i < 8; i++)
        r[i] = t[i];
}

static void eight_rows16(uint16_t *dst, int64_t ldd, const weir_u16u *const *row, int64_t cols)
{
    int64_t c = 0;
    for (; c + 8 <= cols; c += 8) {
        __m128i r[8];
        for (int i = 0; i < 8; i++)
            r[i] = _mm_loadu_si128((const __m128i *)(row[i] + c));
        transpose16_8x8(r);
        for (int i = 0; i < 8; i++)
            _mm_storeu_si128((__m128i *)(dst + (c + i) * ldd), r[i]);
    }
    for (; c < cols; c++)
        for (int i = 0; i < 8; i++)
            dst[c * ldd + i] = row[i][c];
}

void weir_transpose16_avx2(uint16_t *dst, int64_t ldd, const weir_u16u *const *row, int rows, int64_t cols)
{
    int i = 0;
    for (; i + 8 <= rows; i += 8)
        eight_rows16(dst + i, ldd, row + i, cols);
    for (; i < rows; i++)
        for (int64_t c = 0; c < cols; c++)
            dst[c * ldd + i] = row[i][c];
}
#endif
