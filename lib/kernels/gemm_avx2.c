/* kernels/gemm_avx2.c: tiles of 4 x 24 in 12 accumulators of 8 lanes, over the same panels as AVX-512: a tile of 8 x 48
 * is four of them. One or two rows take all 48 columns at once, so that a decode reads each weight once. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/tables.h"

#define INLINE static inline __attribute__((always_inline))

typedef __m256 load_fn(const void *b, int64_t i);

INLINE __m256 load_f32(const void *b, int64_t i)
{
    return _mm256_loadu_ps((const float *)b + i);
}
INLINE __m256 load_f16(const void *b, int64_t i)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)((const uint16_t *)b + i)));
}
INLINE __m256 load_bf16(const void *b, int64_t i)
{
    const __m128i h = _mm_loadu_si128((const __m128i *)((const uint16_t *)b + i));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

INLINE __m256 canon(__m256 x)
{
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/* One step of k. 12 accumulators leave four registers: three weights and one x at a time, or (up to two rows) all x and
 * one weight at a time. */
INLINE void step_rows(__m256 c[4][6], int mr, int nv, const float *a, const void *b, int64_t at, load_fn *load)
{
    __m256 w[6];
#pragma GCC unroll 3
    for (int j = 0; j < nv; j++)
        w[j] = load(b, at + 8 * j);
#pragma GCC unroll 4
    for (int i = 0; i < mr; i++) {
        const __m256 x = _mm256_broadcast_ss(a + i);
#pragma GCC unroll 3
        for (int j = 0; j < nv; j++)
            c[i][j] = _mm256_fmadd_ps(x, w[j], c[i][j]);
    }
}

INLINE void step_columns(__m256 c[4][6], int mr, int nv, const float *a, const void *b, int64_t at, load_fn *load)
{
    __m256 x[4];
#pragma GCC unroll 2
    for (int i = 0; i < mr; i++)
        x[i] = _mm256_broadcast_ss(a + i);
#pragma GCC unroll 6
    for (int j = 0; j < nv; j++) {
        const __m256 w = load(b, at + 8 * j);
#pragma GCC unroll 2
        for (int i = 0; i < mr; i++)
            c[i][j] = _mm256_fmadd_ps(x[i], w, c[i][j]);
    }
}

/* Rows [i0, i0 + mr) and columns [n0, n0 + 8 nv) of the tile; mr, nv and load are constants at every call. */
INLINE void part(const weir_tile *t, int i0, int mr, int n0, int nv, load_fn *load)
{
    __m256 c[4][6];
    const float *a = t->a + i0;
    const int64_t lda = t->lda, ldb = t->ldb, n = t->k;
    float *out = t->c + i0 * t->ldc + n0;
#pragma GCC unroll 4
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 6
        for (int j = 0; j < nv; j++)
            c[i][j] = t->flags & WEIR_TILE_ADD ? _mm256_loadu_ps(out + i * t->ldc + 8 * j) : _mm256_setzero_ps();
#pragma GCC unroll 1
    for (int64_t k = 0, at = n0; k < n; k++, at += ldb, a += lda)
        if (nv <= 3)
            step_rows(c, mr, nv, a, t->b, at, load);
        else
            step_columns(c, mr, nv, a, t->b, at, load);
    for (int64_t k = n; t->flags & WEIR_TILE_STAIRS && k < n + i0 + mr - 1; k++, a += lda)
#pragma GCC unroll 4
        for (int i = 0; i < mr; i++)
#pragma GCC unroll 6
            for (int j = 0; j < nv; j++)
                if (i0 + i > k - n)
                    c[i][j] = _mm256_fmadd_ps(_mm256_set1_ps(a[i]), load(t->b, k * ldb + n0 + 8 * j), c[i][j]);
#pragma GCC unroll 4
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 6
        for (int j = 0; j < nv; j++) {
            if (t->flags & WEIR_TILE_END) {
                if (t->bias)
                    c[i][j] = _mm256_add_ps(c[i][j], _mm256_loadu_ps(t->bias + n0 + 8 * j));
                c[i][j] = canon(c[i][j]);
            }
            _mm256_storeu_ps(out + i * t->ldc + 8 * j, c[i][j]);
        }
}

/* All rows of 8 nv columns from n0 on, four rows at a time. */
INLINE void columns(const weir_tile *t, int n0, int nv, load_fn *load)
{
    int i = 0;
    for (; i + 4 <= t->mr; i += 4)
        part(t, i, 4, n0, nv, load);
    switch (t->mr - i) {
    case 3:
        part(t, i, 3, n0, nv, load);
        break;
    case 2:
        part(t, i, 2, n0, nv, load);
        break;
    case 1:
        part(t, i, 1, n0, nv, load);
        break;
    default:
        break;
    }
}

/* A tile of more than four rows reads its weights twice: in pieces of k that the first-level cache keeps in between. */
#define PIECE_K 96

INLINE void panel_pieces(const weir_tile *t, load_fn *load, int64_t size)
{
    weir_tile piece = *t;
    for (int64_t k = 0; k < t->k; k += PIECE_K) {
        const bool last = k + PIECE_K >= t->k;
        piece.k = last ? t->k - k : PIECE_K;
        piece.flags = (k ? WEIR_TILE_ADD : t->flags & WEIR_TILE_ADD) | (last ? t->flags & ~WEIR_TILE_ADD : 0);
        piece.a = t->a + k * t->lda;
        piece.b = (const char *)t->b + k * t->ldb * size;
        columns(&piece, 0, 3, load);
        columns(&piece, 24, 3, load);
    }
}

INLINE void panel(const weir_tile *t, load_fn *load, int64_t size)
{
    if (t->mr == 1) {
        part(t, 0, 1, 0, 6, load);
    } else if (t->mr == 2) {
        part(t, 0, 2, 0, 6, load);
    } else if (t->mr <= 4) {
        columns(t, 0, 3, load);
        columns(t, 24, 3, load);
    } else {
        panel_pieces(t, load, size);
    }
}

void weir_tile_f32_avx2(const weir_tile *t)
{
    if (t->nv == 3) {
        panel(t, load_f32, 4);
        return;
    }
    columns(t, 0, 2, load_f32);
    if (t->nv == 2)
        columns(t, 16, 2, load_f32);
}

void weir_tile_f16_avx2(const weir_tile *t)
{
    panel(t, load_f16, 2);
}

void weir_tile_bf16_avx2(const weir_tile *t)
{
    panel(t, load_bf16, 2);
}
#endif
