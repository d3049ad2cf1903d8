/* kernels/vec_avx2.h: vec_ref.h's 16 lanes as two AVX2 registers. */
#ifndef WEIR_VEC_AVX2_H
#define WEIR_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>

typedef struct vf {
    __m256 a, b;
} vf;
typedef struct vi {
    __m256i a, b;
} vi;
typedef struct vm {
    __m256 a, b;
} vm;

static inline vf v_set(float x)
{
    return (vf){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
static inline vf v_load(const float *p)
{
    return (vf){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
static inline void v_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
static inline __m256i v_lanes(int from)
{
    return _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(from));
}
static inline vm v_range(int lo, int hi)
{
    const __m256i l = _mm256_set1_epi32(lo - 1), h = _mm256_set1_epi32(hi), i0 = v_lanes(0), i1 = v_lanes(8);
    return (vm){_mm256_castsi256_ps(_mm256_and_si256(_mm256_cmpgt_epi32(i0, l), _mm256_cmpgt_epi32(h, i0))),
                _mm256_castsi256_ps(_mm256_and_si256(_mm256_cmpgt_epi32(i1, l), _mm256_cmpgt_epi32(h, i1)))};
}
static inline vf v_load_n(const float *p, int n)
{
    const vm m = v_range(0, n);
    return (vf){_mm256_maskload_ps(p, _mm256_castps_si256(m.a)), _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.b))};
}
static inline void v_store_n(float *p, vf x, int n)
{
    const vm m = v_range(0, n);
    _mm256_maskstore_ps(p, _mm256_castps_si256(m.a), x.a);
    _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.b), x.b);
}
static inline vf v_add(vf x, vf y)
{
    return (vf){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
static inline vf v_sub(vf x, vf y)
{
    return (vf){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
static inline vf v_mul(vf x, vf y)
{
    return (vf){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
static inline vf v_div(vf x, vf y)
{
    return (vf){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
static inline vf v_fma(vf x, vf y, vf z)
{
    return (vf){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
static inline vf v_fms(vf x, vf y, vf z)
{
    return (vf){_mm256_fmsub_ps(x.a, y.a, z.a), _mm256_fmsub_ps(x.b, y.b, z.b)};
}
static inline vf v_fnma(vf x, vf y, vf z)
{
    return (vf){_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)};
}
static inline vf v_max(vf x, vf y)
{
    return (vf){_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
static inline vf v_min(vf x, vf y)
{
    return (vf){_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
static inline vm v_less(vf x, vf y)
{
    return (vm){_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)};
}
static inline vm v_isnan(vf x)
{
    return (vm){_mm256_cmp_ps(x.a, x.a, _CMP_UNORD_Q), _mm256_cmp_ps(x.b, x.b, _CMP_UNORD_Q)};
}
static inline uint32_t vm_bits(vm m)
{
    return (uint32_t)_mm256_movemask_ps(m.a) | (uint32_t)_mm256_movemask_ps(m.b) << 8;
}
static inline vf v_select(vm m, vf yes, vf no)
{
    return (vf){_mm256_blendv_ps(no.a, yes.a, m.a), _mm256_blendv_ps(no.b, yes.b, m.b)};
}
static inline vi v_bits(vf x)
{
    return (vi){_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)};
}
static inline vf v_float(vi x)
{
    return (vf){_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)};
}
static inline vi vi_set(uint32_t x)
{
    return (vi){_mm256_set1_epi32((int)x), _mm256_set1_epi32((int)x)};
}
static inline vi vi_and(vi x, vi y)
{
    return (vi){_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)};
}
static inline vi vi_or(vi x, vi y)
{
    return (vi){_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}
static inline vi vi_add(vi x, vi y)
{
    return (vi){_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
static inline vi vi_shl(vi x, int by)
{
    const __m128i n = _mm_cvtsi32_si128(by);
    return (vi){_mm256_sll_epi32(x.a, n), _mm256_sll_epi32(x.b, n)};
}
static inline vi vi_shr(vi x, int by)
{
    const __m128i n = _mm_cvtsi32_si128(by);
    return (vi){_mm256_srl_epi32(x.a, n), _mm256_srl_epi32(x.b, n)};
}
static inline vi vi_u8(const uint8_t *p)
{
    return (vi){_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)),
                _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8)))};
}
static inline vi vi_i8(const uint8_t *p)
{
    return (vi){_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)),
                _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8)))};
}
static inline vi vi_pick(uint16_t bits, uint32_t x)
{
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), v = _mm256_set1_epi32((int)x);
    const __m256i lo = _mm256_and_si256(_mm256_set1_epi32(bits), bit);
    const __m256i hi = _mm256_and_si256(_mm256_set1_epi32(bits >> 8), bit);
    return (vi){_mm256_and_si256(_mm256_cmpeq_epi32(lo, bit), v), _mm256_and_si256(_mm256_cmpeq_epi32(hi, bit), v)};
}
static inline vf v_int(vi x)
{
    return (vf){_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}
/* The halves of the table are looked up both; bit 3 of the index chooses. */
static inline __m256 v_entry_half(vf table, __m256i x)
{
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(table.a, x), _mm256_permutevar8x32_ps(table.b, x),
                            _mm256_castsi256_ps(_mm256_slli_epi32(x, 28)));
}
static inline vf v_entry(vf entries, vi x)
{
    return (vf){v_entry_half(entries, x.a), v_entry_half(entries, x.b)};
}
static inline float v_half(uint16_t h)
{
    return _cvtsh_ss(h);
}
/* A NaN gives some integer, and some power of two to multiply a NaN with. */
static inline __m256 v_scale2_half(__m256 y, __m256 n)
{
    const __m256i e = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(e, 1), bias = _mm256_set1_epi32(127);
    const __m256i a = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(e, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(y, _mm256_castsi256_ps(a)), _mm256_castsi256_ps(b));
}
static inline vf v_scale2(vf y, vf n)
{
    return (vf){v_scale2_half(y.a, n.a), v_scale2_half(y.b, n.b)};
}
static inline float v_fold_add(vf x)
{
    const __m256 w8 = _mm256_add_ps(x.a, x.b);
    const __m128 w4 = _mm_add_ps(_mm256_castps256_ps128(w8), _mm256_extractf128_ps(w8, 1));
    const __m128 w2 = _mm_add_ps(w4, _mm_movehl_ps(w4, w4));
    return _mm_cvtss_f32(_mm_add_ss(w2, _mm_movehdup_ps(w2)));
}
static inline float v_fold_max(vf x)
{
    const __m256 w8 = _mm256_max_ps(x.a, x.b);
    const __m128 w4 = _mm_max_ps(_mm256_castps256_ps128(w8), _mm256_extractf128_ps(w8, 1));
    const __m128 w2 = _mm_max_ps(w4, _mm_movehl_ps(w4, w4));
    return _mm_cvtss_f32(_mm_max_ss(w2, _mm_movehdup_ps(w2)));
}

#endif
