/* kernels/pack_avx512.c: transposes in registers, 16 x 16 or 8 x 16. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/tables.h"

/* Rows r[i] to columns: afterwards r[i] holds element i of each row. */
static inline __attribute__((always_inline)) void transpose_16x16(__m512 r[16])
{
    __m512 t[16];
    for (int i = 0; i < 8; i++) { /* pairs of rows */
        t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) { /* fours */
        const int q = 4 * i;
        r[q] = _mm512_shuffle_ps(t[q], t[q + 2], 0x44);
        r[q + 1] = _mm512_shuffle_ps(t[q], t[q + 2], 0xee);
        r[q + 2] = _mm512_shuffle_ps(t[q + 1], t[q + 3], 0x44);
        r[q + 3] = _mm512_shuffle_ps(t[q + 1], t[q + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) { /* eights: quarters of registers */
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

/* Up to eight rows: half the work, and each column is stored with one half of a register. */
static void eight_rows(float *dst, int64_t ldd, const weir_f32u *const *row, int rows, int64_t cols)
{
    const __mmask8 lanes = (__mmask8)((1u << rows) - 1);
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                  second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    for (int64_t c = 0; c < cols; c += 16) {
        const int n = cols - c < 16 ? (int)(cols - c) : 16;
        const __mmask16 part = (__mmask16)((1u << n) - 1);
        __m512 r[8], t[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            r[i] = i < rows ? _mm512_maskz_loadu_ps(part, row[i] + c) : _mm512_setzero_ps();
        for (int i = 0; i < 4; i++) {
            t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
            t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
        }
        for (int i = 0; i < 2; i++) { /* r[q + j]: rows q..q+3 of columns j, j + 4, j + 8, j + 12 */
            const int q = 4 * i;
            r[q] = _mm512_shuffle_ps(t[q], t[q + 2], 0x44);
            r[q + 1] = _mm512_shuffle_ps(t[q], t[q + 2], 0xee);
            r[q + 2] = _mm512_shuffle_ps(t[q + 1], t[q + 3], 0x44);
            r[q + 3] = _mm512_shuffle_ps(t[q + 1], t[q + 3], 0xee);
        }
        float *out = dst + c * ldd;
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            const __m512d lo = _mm512_castps_pd(r[j]), hi = _mm512_castps_pd(r[j + 4]);
            const __m512 a = _mm512_castpd_ps(_mm512_permutex2var_pd(lo, first, hi));
            const __m512 b = _mm512_castpd_ps(_mm512_permutex2var_pd(lo, second, hi));
            if (j < n)
                _mm256_mask_storeu_ps(out + j * ldd, lanes, _mm512_castps512_ps256(a));
            if (j + 4 < n)
                _mm256_mask_storeu_ps(out + (j + 4) * ldd, lanes, _mm512_extractf32x8_ps(a, 1));
            if (j + 8 < n)
                _mm256_mask_storeu_ps(out + (j + 8) * ldd, lanes, _mm512_castps512_ps256(b));
            if (j + 12 < n)
                _mm256_mask_storeu_ps(out + (j + 12) * ldd, lanes, _mm512_extractf32x8_ps(b, 1));
        }
    }
}

void weir_transpose_avx512(float *dst, int64_t ldd, const weir_f32u *const *row, int rows, int64_t cols)
{
    if (rows <= 8) {
        eight_rows(dst, ldd, row, rows, cols);
        return;
    }
    const __mmask16 lanes = (__mmask16)((1u << rows) - 1);
    for (int64_t c = 0; c < cols; c += 16) {
        const int n = cols - c < 16 ? (int)(cols - c) : 16;
        const __mmask16 part = (__mmask16)((1u << n) - 1);
        __m512 r[16];
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            r[i] = i < rows ? _mm512_maskz_loadu_ps(part, row[i] + c) : _mm512_setzero_ps();
        transpose_16x16(r);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            if (i < n)
                _mm512_mask_storeu_ps(dst + (c + i) * ldd, lanes, r[i]);
    }
}
#endif
