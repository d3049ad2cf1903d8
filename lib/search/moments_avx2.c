/* search/moments_avx2.c: the kernels with registers of 4 doubles. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

enum { LANES = 4, PACK = 8 };
typedef __m256d vd;
typedef __m256i vi;

static inline vd vd_set(double x)
{
    return _mm256_set1_pd(x);
}
static inline vd vd_of_floats(const float *p)
{
    return _mm256_cvtps_pd(_mm_load_ps(p));
}
static inline vd vd_add(vd x, vd y)
{
    return _mm256_add_pd(x, y);
}
static inline vd vd_sub(vd x, vd y)
{
    return _mm256_sub_pd(x, y);
}
static inline vd vd_fma(vd x, vd y, vd z)
{
    return _mm256_fmadd_pd(x, y, z);
}
static inline vd vd_fms(vd x, vd y, vd z)
{
    return _mm256_fmsub_pd(x, y, z);
}
static inline vi vi_load(const uint64_t *p)
{
    return _mm256_load_si256((const __m256i *)(const void *)p);
}
static inline void vi_store(uint64_t *p, vi x)
{
    _mm256_store_si256((__m256i *)(void *)p, x);
}
/* Adds the bits of doubles. */
static inline vi vi_add(vi a, vd t)
{
    return _mm256_add_epi64(a, _mm256_castpd_si256(t));
}

typedef struct pack_bits {
    uint32_t odd, fire;
} pack_bits;

static inline uint32_t bits_of(__m256i mask)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(mask));
}

/* Copies n <= PACK floats, 0 for those that are not usual and behind them. */
static inline pack_bits pack_lanes(float *to, const float *from, int n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), zero = _mm256_setzero_si256();
    const __m256i x = _mm256_castps_si256(_mm256_maskload_ps(from, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane)));
    const __m256i size = _mm256_and_si256(x, _mm256_set1_epi32(0x7fffffff));
    /* 2^-20 has the bits 107 << 23, 2^8 135 << 23. */
    const __m256i low = _mm256_cmpgt_epi32(_mm256_set1_epi32(107 << 23), size);
    const __m256i high = _mm256_cmpgt_epi32(size, _mm256_set1_epi32((135 << 23) - 1));
    const __m256i odd = _mm256_andnot_si256(_mm256_cmpeq_epi32(size, zero), _mm256_or_si256(low, high));
    const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x7f800000), x);
    const __m256i fire = _mm256_and_si256(below, _mm256_cmpgt_epi32(x, zero));
    _mm256_store_si256((__m256i *)(void *)to, _mm256_andnot_si256(odd, x));
    return (pack_bits){bits_of(odd), bits_of(fire)};
}

#include "search/moments_lanes.h"

void weir_moments_avx2(weir_sums *sums, const float *x, int64_t stride, const int32_t *row, int64_t m, int64_t nb)
{
    moments(sums, x, stride, row, m, nb);
}

void weir_pairs_avx2(const weir_pairs *p, const float *x, int64_t stride, const int32_t *row, int64_t m, int64_t nb)
{
    pairs(p, x, stride, row, m, nb);
}
#endif
