/* kernels/gemm_avx512.c: tiles of up to 8 x 48 in 24 accumulators of 16 lanes. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/tables.h"

#define INLINE static inline __attribute__((always_inline))

INLINE __m512 load_f32(const void *b, int64_t i)
{
    return _mm512_loadu_ps((const float *)b + i);
}
INLINE __m512 load_f16(const void *b, int64_t i)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)((const uint16_t *)b + i)));
}
INLINE __m512 load_bf16(const void *b, int64_t i)
{
    const __m256i h = _mm256_loadu_si256((const __m256i *)((const uint16_t *)b + i));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

INLINE __m512 canon(__m512 x)
{
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
}

/* mr, nv, stairs and load are constants at every call: the loops over them unroll and c stays in registers. */
INLINE void tile(const weir_tile *t, int mr, int nv, bool stairs, __m512 (*load)(const void *, int64_t))
{
    __m512 c[8][3];
    const float *a = t->a;
    const void *b = t->b;
    const int64_t lda = t->lda, ldb = t->ldb, n = t->k;
#pragma GCC unroll 8
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 3
        for (int j = 0; j < nv; j++)
            c[i][j] = t->flags & WEIR_TILE_ADD ? _mm512_loadu_ps(t->c + i * t->ldc + 16 * j) : _mm512_setzero_ps();
#pragma GCC unroll 1
    for (int64_t k = 0, at = 0; k < n; k++, at += ldb, a += lda) {
        __m512 w[3];
#pragma GCC unroll 3
        for (int j = 0; j < nv; j++)
            w[j] = load(b, at + 16 * j);
#pragma GCC unroll 8
        for (int i = 0; i < mr; i++) {
            const __m512 x = _mm512_set1_ps(a[i]);
#pragma GCC unroll 3
            for (int j = 0; j < nv; j++)
                c[i][j] = _mm512_fmadd_ps(x, w[j], c[i][j]);
        }
    }
    if (stairs) {
#pragma GCC unroll 7
        for (int k = 0; k < mr - 1; k++, a += lda) {
#pragma GCC unroll 3
            for (int j = 0; j < nv; j++) {
                const __m512 w = load(b, (n + k) * ldb + 16 * j);
#pragma GCC unroll 8
                for (int i = k + 1; i < mr; i++)
                    c[i][j] = _mm512_fmadd_ps(_mm512_set1_ps(a[i]), w, c[i][j]);
            }
        }
    }
    if (t->flags & WEIR_TILE_END) {
#pragma GCC unroll 8
        for (int i = 0; i < mr; i++)
#pragma GCC unroll 3
            for (int j = 0; j < nv; j++) {
                if (t->bias)
                    c[i][j] = _mm512_add_ps(c[i][j], _mm512_loadu_ps(t->bias + 16 * j));
                c[i][j] = canon(c[i][j]);
            }
    }
#pragma GCC unroll 8
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 3
        for (int j = 0; j < nv; j++)
            _mm512_storeu_ps(t->c + i * t->ldc + 16 * j, c[i][j]);
}

#define ROWS(nv, stairs, load)                                                                                         \
    switch (t->mr) {                                                                                                   \
    case 1:                                                                                                            \
        tile(t, 1, nv, false, load);                                                                                   \
        break;                                                                                                         \
    case 2:                                                                                                            \
        tile(t, 2, nv, stairs, load);                                                                                  \
        break;                                                                                                         \
    case 3:                                                                                                            \
        tile(t, 3, nv, stairs, load);                                                                                  \
        break;                                                                                                         \
    case 4:                                                                                                            \
        tile(t, 4, nv, stairs, load);                                                                                  \
        break;                                                                                                         \
    case 5:                                                                                                            \
        tile(t, 5, nv, stairs, load);                                                                                  \
        break;                                                                                                         \
    case 6:                                                                                                            \
        tile(t, 6, nv, stairs, load);                                                                                  \
        break;                                                                                                         \
    case 7:                                                                                                            \
        tile(t, 7, nv, stairs, load);                                                                                  \
        break;                                                                                                         \
    default:                                                                                                           \
        tile(t, 8, nv, stairs, load);                                                                                  \
        break;                                                                                                         \
    }

static void tile_1(const weir_tile *t)
{
    if (t->flags & WEIR_TILE_STAIRS)
        ROWS(1, true, load_f32)
    else
        ROWS(1, false, load_f32)
}
static void tile_2(const weir_tile *t)
{
    if (t->flags & WEIR_TILE_STAIRS)
        ROWS(2, true, load_f32)
    else
        ROWS(2, false, load_f32)
}
static void tile_3(const weir_tile *t)
{
    if (t->flags & WEIR_TILE_STAIRS)
        ROWS(3, true, load_f32)
    else
        ROWS(3, false, load_f32)
}

void weir_tile_f32_avx512(const weir_tile *t)
{
    if (t->nv == 3)
        tile_3(t);
    else if (t->nv == 2)
        tile_2(t);
    else
        tile_1(t);
}

void weir_tile_f16_avx512(const weir_tile *t)
{
    ROWS(3, false, load_f16)
}

void weir_tile_bf16_avx512(const weir_tile *t)
{
    ROWS(3, false, load_bf16)
}
#endif
