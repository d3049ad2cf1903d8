/* search/scan_avx2.c: the kernels with registers of 8 floats. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

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

static inline int64_t count_better(const float *value, int64_t n, weir_neurons_list which, float f)
{
    const vf wanted = vf_set(f);
    const vi lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    int64_t r = 0;
    for (int64_t i = 0; i < n; i += 8) {
        const vi there = vi_less(lane, vi_set(n - i < 8 ? (int)(n - i) : 8));
        vf v = _mm256_maskload_ps(value + i, there);
        if (which == WEIR_NEURONS_BOTTOM)
            v = _mm256_xor_ps(v, vf_of(vi_set(INT32_MIN)));
        if (which == WEIR_NEURONS_ABS)
            v = _mm256_and_ps(v, vf_of(vi_set(INT32_MAX)));
        r += __builtin_popcount(vm_bits(vm_and(there, _mm256_castps_si256(_mm256_cmp_ps(v, wanted, _CMP_GE_OQ)))));
    }
    return r;
}

static inline void make_room(float *value, uint16_t *slot, int64_t r, int64_t hole)
{
    memmove(value + r + 1, value + r, (size_t)(hole - r) * sizeof *value);
    memmove(slot + r + 1, slot + r, (size_t)(hole - r) * sizeof *slot);
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
