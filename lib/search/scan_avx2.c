/* search/scan_avx2.c: the kernels with registers of 8 floats. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <stdint.h>

#include "search/impl.h"

enum { LANES = 8 };
typedef __m256 vf;
typedef __m256i vi;
typedef __m256i vm; /* all bits of a lane, or none */

static inline vi vi_set(int x)
{
    return _mm256_set1_epi32(x);
}
static inline vi vi_load(const float *p)
{
    return _mm256_castps_si256(_mm256_load_ps(p));
}
static inline void vi_store(uint32_t *p, vi x)
{
    _mm256_store_si256((__m256i *)(void *)p, x);
}
static inline vi vi_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}
static inline vi vi_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}
static inline vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}
static inline vi vi_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}
/* -1 for negative ones, else 0. */
static inline vi vi_sign(vi a)
{
    return _mm256_srai_epi32(a, 31);
}
/* Exponent and three bits of the mantissa. */
static inline vi vi_upper(vi magnitude)
{
    return _mm256_srli_epi32(magnitude, 20);
}
/* Into 0 .. most. */
static inline vi vi_clamp(vi a, vi most)
{
    return _mm256_min_epi32(_mm256_max_epi32(a, _mm256_setzero_si256()), most);
}
static inline vm vi_less(vi a, vi b)
{
    return _mm256_cmpgt_epi32(b, a);
}
/* 1 more where yes. */
static inline vi vi_count(vi n, vm yes)
{
    return _mm256_sub_epi32(n, yes);
}
/* j * size + centre in lane j. */
static inline vi vi_centres(int size, int centre)
{
    const vi j = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_add_epi32(_mm256_mullo_epi32(j, vi_set(size)), vi_set(centre));
}
static inline vf vf_set(float x)
{
    return _mm256_set1_ps(x);
}
static inline vf vf_of(vi bits)
{
    return _mm256_castsi256_ps(bits);
}
static inline void vf_store(float *p, vf x)
{
    _mm256_store_ps(p, x);
}
static inline vf vf_min_where(vm yes, vf a, vf b)
{
    return _mm256_blendv_ps(a, _mm256_min_ps(a, b), vf_of(yes));
}
static inline vf vf_max_where(vm yes, vf a, vf b)
{
    return _mm256_blendv_ps(a, _mm256_max_ps(a, b), vf_of(yes));
}
static inline vm vf_above(vf a, vf b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
static inline vm vm_and(vm a, vm b)
{
    return vi_and(a, b);
}
static inline uint32_t vm_bits(vm a)
{
    return (uint32_t)_mm256_movemask_ps(vf_of(a));
}

/* --- lists */

static inline int64_t find_key(const uint64_t *key, int64_t n, uint64_t wanted)
{
    const __m256i w = _mm256_set1_epi64x((long long)wanted);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const __m256i k = _mm256_loadu_si256((const __m256i *)(const void *)(key + i));
        const int found = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(k, w)));
        if (found)
            return i + __builtin_ctz((unsigned)found);
    }
    for (; i < n; i++)
        if (key[i] == wanted)
            return i;
    return -1;
}

/* What a list ranks by, infinite behind the end. */
static inline vf figures(const float *x, int64_t n, weir_neurons_list which)
{
    const vi there = vi_less(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), vi_set(n < 8 ? (int)n : 8));
    vf v = _mm256_maskload_ps(x, there);
    if (which == WEIR_NEURONS_BOTTOM)
        v = _mm256_xor_ps(v, vf_of(vi_set(INT32_MIN)));
    if (which == WEIR_NEURONS_ABS)
        v = _mm256_and_ps(v, vf_of(vi_set(INT32_MAX)));
    return _mm256_blendv_ps(vf_set(INFINITY), v, vf_of(there));
}

static inline float lowest(vf v)
{
    __m128 a = _mm_min_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    a = _mm_min_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_min_ss(a, _mm_movehdup_ps(a)));
}

static inline int64_t find_extreme(const float *x, int64_t n, weir_neurons_list which, bool *once)
{
    vf low = vf_set(INFINITY);
    for (int64_t i = 0; i < n; i += 8)
        low = _mm256_min_ps(low, figures(x + i, n - i, which));
    low = vf_set(lowest(low));
    int64_t first = -1, many = 0;
    for (int64_t i = 0; i < n; i += 8) {
        const vf equal = _mm256_cmp_ps(figures(x + i, n - i, which), low, _CMP_EQ_OQ);
        const unsigned found = (unsigned)_mm256_movemask_ps(equal);
        if (found && first < 0)
            first = i + __builtin_ctz(found);
        many += __builtin_popcount(found);
    }
    *once = many == 1;
    return first;
}

#include "search/scan_lanes.h"

const weir_scan_kernels weir_scan_avx2 = {
    .name = "avx2",
    .moments = weir_moments_avx2,
    .count = count_values,
    .beyond = {above_gate, below_gate, larger_than_gate},
    .put = put_fast,
};
#endif
