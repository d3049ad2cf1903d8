/* record/round_impl.h: one table of round.c. Included by a file for each instruction set. */
#ifndef WEIR_ROUND_IMPL_H
#define WEIR_ROUND_IMPL_H

#include <string.h>

#include "round.h"

typedef struct weir_round_kern {
    const char *name; /* as in lib/kernels */
    void (*mantissa)(float *dst, const float *src, int64_t n, int bits);
    void (*to_f16)(uint16_t *dst, const float *src, int64_t n);
    void (*from_f16)(float *dst, const uint16_t *src, int64_t n);
} weir_round_kern;

extern const weir_round_kern weir_round_ref, weir_round_avx2, weir_round_avx512;

/* Adding just under half of the last kept place, and one more where that place is odd, carries into it exactly when it
 * should be rounded up; a carry out of the mantissa goes into the exponent, as it must. No branch: the loops become
 * vectors. */
static inline uint32_t round_bits(uint32_t x, unsigned drop)
{
    const uint32_t keep = ~UINT32_C(0) << drop;
    const uint32_t rounded = (x + (~keep >> 1) + (x >> drop & 1)) & keep;
    return (x & 0x7fffffff) >= 0x7f800000 ? x : rounded;
}

static void mantissa(float *dst, const float *src, int64_t n, int bits)
{
    const unsigned drop = 23 - (unsigned)bits;
    for (int64_t i = 0; i < n; i++) {
        uint32_t x;
        memcpy(&x, &src[i], 4);
        x = round_bits(x, drop);
        memcpy(&dst[i], &x, 4);
    }
}

static inline uint16_t half_bits(uint32_t x)
{
    const uint32_t sign = x >> 16 & 0x8000, a = x & 0x7fffffff;
    if (a > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
    if (a >= 0x47800000) /* 65536 and more */
        return (uint16_t)(sign | 0x7c00);
    if (a >= 0x38800000) /* 2^-14: normal; the exponent's bias goes from 127 to 15 */
        return (uint16_t)(sign | (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13);
    const uint32_t shift = 126 - (a >> 23), m = 0x800000 | (a & 0x7fffff); /* units of 2^-24 */
    if (shift > 24)
        return (uint16_t)sign;
    return (uint16_t)(sign | (m + (UINT32_C(1) << (shift - 1)) - 1 + (m >> shift & 1)) >> shift);
}

static inline uint32_t float_bits(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, m = h & 0x3ff;
    if (exponent == 31)
        return sign | 0x7f800000 | (m ? 0x400000 | m << 13 : 0);
    if (exponent > 0)
        return sign | (exponent + 112) << 23 | m << 13;
    if (m == 0)
        return sign;
    const uint32_t up = (uint32_t)__builtin_clz(m) - 21; /* brings the first bit to 0x400 */
    return sign | (113 - up) << 23 | (m << up & 0x3ff) << 13;
}

static inline void to_f16_plain(uint16_t *dst, const float *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t x;
        memcpy(&x, &src[i], 4);
        dst[i] = half_bits(x);
    }
}

static inline void from_f16_plain(float *dst, const uint16_t *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t x = float_bits(src[i]);
        memcpy(&dst[i], &x, 4);
    }
}

#endif
