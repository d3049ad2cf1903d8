/* search/moments_avx512.c: the kernels with registers of 8 doubles. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

enum { LANES = 8, PACK = 16 };
typedef __m512d vd;
typedef __m512i vi;

static inline vd vd_set(double x)
{
    return _mm512_set1_pd(x);
}
static inline vd vd_of_floats(const float *p)
{
    return _mm512_cvtps_pd(_mm256_load_ps(p));
}
static inline vd vd_add(vd x, vd y)
{
    return _mm512_add_pd(x, y);
}
static inline vd vd_sub(vd x, vd y)
{
    return _mm512_sub_pd(x, y);
}
static inline vd vd_fma(vd x, vd y, vd z)
{
    return _mm512_fmadd_pd(x, y, z);
}
static inline vd vd_fms(vd x, vd y, vd z)
{
    return _mm512_fmsub_pd(x, y, z);
}
static inline vi vi_load(const uint64_t *p)
{
    return _mm512_load_si512(p);
}
static inline void vi_store(uint64_t *p, vi x)
{
    _mm512_store_si512(p, x);
}
/* Adds the bits of doubles. */
static inline vi vi_add(vi a, vd t)
{
    return _mm512_add_epi64(a, _mm512_castpd_si512(t));
}

typedef struct pack_bits {
    uint32_t odd, fire;
} pack_bits;

/* Copies n <= PACK floats, 0 for those that are not usual and behind them. */
static inline pack_bits pack_lanes(float *to, const float *from, int n)
{
    const __m512 x = _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
    const __m512i size = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    /* 2^-20 has the bits 107 << 23, 2^8 135 << 23. */
    const __m512i above = _mm512_sub_epi32(size, _mm512_set1_epi32(107 << 23));
    const __mmask16 some = _mm512_test_epi32_mask(size, size);
    const __mmask16 odd = _mm512_mask_cmpge_epu32_mask(some, above, _mm512_set1_epi32((135 - 107) << 23));
    const __mmask16 below = _mm512_cmplt_epi32_mask(_mm512_castps_si512(x), _mm512_set1_epi32(0x7f800000));
    const __mmask16 fire = _mm512_mask_cmpgt_epi32_mask(below, _mm512_castps_si512(x), _mm512_setzero_si512());
    _mm512_store_ps(to, _mm512_maskz_mov_ps((__mmask16)~odd, x));
    return (pack_bits){odd, fire};
}

#include "search/moments_lanes.h"

void weir_moments_avx512(weir_sums *sums, const float *x, int64_t stride, const int32_t *row, int64_t m, int64_t nb)
{
    moments(sums, x, stride, row, m, nb);
}

void weir_pairs_avx512(const weir_pairs *p, const float *x, int64_t stride, const int32_t *row, int64_t m, int64_t nb)
{
    pairs(p, x, stride, row, m, nb);
}
#endif
