/* kernels/vec_avx512.h: vec_ref.h's 16 lanes as one AVX-512 register. */
#ifndef WEIR_VEC_AVX512_H
#define WEIR_VEC_AVX512_H

#include <immintrin.h>
#include <stdint.h>

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

static inline vf v_set(float x)
{
    return _mm512_set1_ps(x);
}
static inline vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline vm v_range(int lo, int hi)
{
    return (vm)(((1u << hi) - 1) & ~((1u << lo) - 1));
}
static inline vf v_load_n(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(v_range(0, n), p);
}
static inline void v_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}
static inline void v_store_n(float *p, vf x, int n)
{
    _mm512_mask_storeu_ps(p, v_range(0, n), x);
}
static inline vf v_add(vf x, vf y)
{
    return _mm512_add_ps(x, y);
}
static inline vf v_sub(vf x, vf y)
{
    return _mm512_sub_ps(x, y);
}
static inline vf v_mul(vf x, vf y)
{
    return _mm512_mul_ps(x, y);
}
static inline vf v_div(vf x, vf y)
{
    return _mm512_div_ps(x, y);
}
static inline vf v_fma(vf x, vf y, vf z)
{
    return _mm512_fmadd_ps(x, y, z);
}
static inline vf v_fms(vf x, vf y, vf z)
{
    return _mm512_fmsub_ps(x, y, z);
}
static inline vf v_fnma(vf x, vf y, vf z)
{
    return _mm512_fnmadd_ps(x, y, z);
}
static inline vf v_max(vf x, vf y)
{
    return _mm512_max_ps(x, y);
}
static inline vf v_min(vf x, vf y)
{
    return _mm512_min_ps(x, y);
}
static inline vm v_less(vf x, vf y)
{
    return _mm512_cmp_ps_mask(x, y, _CMP_LT_OQ);
}
static inline vm v_isnan(vf x)
{
    return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
}
static inline uint32_t vm_bits(vm m)
{
    return m;
}
static inline vf v_select(vm m, vf yes, vf no)
{
    return _mm512_mask_blend_ps(m, no, yes);
}
static inline vi v_bits(vf x)
{
    return _mm512_castps_si512(x);
}
static inline vf v_float(vi x)
{
    return _mm512_castsi512_ps(x);
}
static inline vi vi_set(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}
static inline vi vi_and(vi x, vi y)
{
    return _mm512_and_si512(x, y);
}
static inline vi vi_or(vi x, vi y)
{
    return _mm512_or_si512(x, y);
}
static inline vi vi_add(vi x, vi y)
{
    return _mm512_add_epi32(x, y);
}
static inline vi vi_shl(vi x, int by)
{
    return _mm512_sll_epi32(x, _mm_cvtsi32_si128(by));
}
static inline vi vi_shr(vi x, int by)
{
    return _mm512_srl_epi32(x, _mm_cvtsi32_si128(by));
}
static inline vi vi_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
static inline vi vi_i8(const uint8_t *p)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
}
static inline vi vi_pick(uint16_t bits, uint32_t x)
{
    return _mm512_maskz_set1_epi32(bits, (int)x);
}
static inline vf v_int(vi x)
{
    return _mm512_cvtepi32_ps(x);
}
static inline vf v_entry(vf entries, vi x)
{
    return _mm512_permutexvar_ps(x, entries);
}
static inline float v_half(uint16_t h)
{
    return _cvtsh_ss(h);
}
static inline vf v_scale2(vf y, vf n)
{
    return _mm512_scalef_ps(y, n);
}
static inline float v_fold_add(vf x)
{
    const __m256 w8 = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 w4 = _mm_add_ps(_mm256_castps256_ps128(w8), _mm256_extractf128_ps(w8, 1));
    const __m128 w2 = _mm_add_ps(w4, _mm_movehl_ps(w4, w4));
    return _mm_cvtss_f32(_mm_add_ss(w2, _mm_movehdup_ps(w2)));
}
static inline float v_fold_max(vf x)
{
    const __m256 w8 = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 w4 = _mm_max_ps(_mm256_castps256_ps128(w8), _mm256_extractf128_ps(w8, 1));
    const __m128 w2 = _mm_max_ps(w4, _mm_movehl_ps(w4, w4));
    return _mm_cvtss_f32(_mm_max_ss(w2, _mm_movehdup_ps(w2)));
}

#endif
