/* search/scan_avx512.c: the kernels with registers of 16 floats. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <stdint.h>

#include "search/impl.h"

enum { LANES = 16 };
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

static inline vi vi_set(int x)
{
    return _mm512_set1_epi32(x);
}
static inline vi vi_load(const float *p)
{
    return _mm512_castps_si512(_mm512_load_ps(p));
}
static inline void vi_store(uint32_t *p, vi x)
{
    _mm512_store_si512(p, x);
}
static inline vi vi_and(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}
static inline vi vi_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}
static inline vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}
static inline vi vi_sub(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}
/* -1 for negative ones, else 0. */
static inline vi vi_sign(vi a)
{
    return _mm512_srai_epi32(a, 31);
}
/* Exponent and three bits of the mantissa. */
static inline vi vi_upper(vi magnitude)
{
    return _mm512_srli_epi32(magnitude, 20);
}
/* Into 0 .. most. */
static inline vi vi_clamp(vi a, vi most)
{
    return _mm512_min_epi32(_mm512_max_epi32(a, _mm512_setzero_si512()), most);
}
static inline vm vi_less(vi a, vi b)
{
    return _mm512_cmplt_epi32_mask(a, b);
}
/* 1 more where yes. */
static inline vi vi_count(vi n, vm yes)
{
    return _mm512_mask_add_epi32(n, yes, n, _mm512_set1_epi32(1));
}
/* j * size + centre in lane j. */
static inline vi vi_centres(int size, int centre)
{
    const vi j = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_add_epi32(_mm512_mullo_epi32(j, vi_set(size)), vi_set(centre));
}
static inline vf vf_set(float x)
{
    return _mm512_set1_ps(x);
}
static inline vf vf_of(vi bits)
{
    return _mm512_castsi512_ps(bits);
}
static inline void vf_store(float *p, vf x)
{
    _mm512_store_ps(p, x);
}
static inline vf vf_min_where(vm yes, vf a, vf b)
{
    return _mm512_mask_min_ps(a, yes, a, b);
}
static inline vf vf_max_where(vm yes, vf a, vf b)
{
    return _mm512_mask_max_ps(a, yes, a, b);
}
static inline vm vf_above(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
static inline vm vm_and(vm a, vm b)
{
    return a & b;
}
static inline uint32_t vm_bits(vm a)
{
    return a;
}

/* --- lists */

static inline uint32_t first_bits(int64_t n, int most)
{
    return (uint32_t)((1ull << (n < most ? n : most)) - 1);
}

static inline int64_t find_key(const uint64_t *key, int64_t n, uint64_t wanted)
{
    const __m512i w = _mm512_set1_epi64((long long)wanted);
    for (int64_t at = 0; at < n; at += 64) {
        const int64_t end = n - at < 64 ? n : at + 64;
        uint64_t found = 0;
        int64_t i = at;
        for (; i + 8 <= end; i += 8)
            found |= (uint64_t)_mm512_cmpeq_epi64_mask(_mm512_loadu_si512(key + i), w) << (i - at);
        if (i < end) {
            const __mmask8 there = (__mmask8)first_bits(end - i, 8);
            const __m512i k = _mm512_maskz_loadu_epi64(there, key + i);
            found |= (uint64_t)_mm512_mask_cmpeq_epi64_mask(there, k, w) << (i - at);
        }
        if (found)
            return at + __builtin_ctzll(found);
    }
    return -1;
}

static inline int64_t count_better(const float *value, int64_t n, weir_neurons_list which, float f)
{
    const vf wanted = vf_set(f);
    int64_t r = 0;
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 there = (__mmask16)first_bits(n - i, 16);
        vf v = _mm512_maskz_loadu_ps(there, value + i);
        if (which == WEIR_NEURONS_BOTTOM)
            v = vf_of(vi_xor(_mm512_castps_si512(v), vi_set(INT32_MIN)));
        if (which == WEIR_NEURONS_ABS)
            v = vf_of(vi_and(_mm512_castps_si512(v), vi_set(INT32_MAX)));
        r += __builtin_popcount(_mm512_mask_cmp_ps_mask(there, v, wanted, _CMP_GE_OQ));
    }
    return r;
}

/* Bits (r, hole] of those that begin at `from`. */
static inline uint32_t bits_between(int64_t r, int64_t hole, int64_t from, int most)
{
    const int64_t low = r + 1 - from, high = hole + 1 - from;
    return high <= 0 || low >= most ? 0 : first_bits(high, most) & ~first_bits(low < 0 ? 0 : low, most);
}

/* Lists of a usual length go the same way whatever r is: a branch that nobody could guess costs more. */
static inline void make_room(float *value, uint16_t *slot, int64_t r, int64_t hole)
{
    const int64_t least = hole < 128 ? 0 : r;
    for (int64_t i = hole & ~15; i >= (least & ~15); i -= 16) {
        const __mmask16 moved = (__mmask16)bits_between(r, hole, i, 16);
        _mm512_mask_storeu_ps(value + i, moved, _mm512_maskz_loadu_ps(moved, value + i - 1));
    }
    for (int64_t i = hole & ~31; i >= (least & ~31); i -= 32) {
        const __mmask32 moved = bits_between(r, hole, i, 32);
        _mm512_mask_storeu_epi16(slot + i, moved, _mm512_maskz_loadu_epi16(moved, slot + i - 1));
    }
}

#include "search/scan_lanes.h"

const weir_scan_kernels weir_scan_avx512 = {
    .name = "avx512",
    .moments = weir_moments_avx512,
    .count = count_values,
    .beyond = {above_gate, below_gate, larger_than_gate},
    .put = put_fast,
};
#endif
