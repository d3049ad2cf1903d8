/* kernels/dequant_impl.h: stored blocks to fp32, in gguf-py's order of fp32 operations. One source for every table:
 * each .c that includes it compiles it for its instruction set (plain loops; no contraction, so the bits agree).
 *
 * A block is read byte by byte: it may lie anywhere in a file. `d` and `dmin` are binary16 scales, possibly subnormal
 * or infinite.
 */
#ifndef WEIR_DEQUANT_IMPL_H
#define WEIR_DEQUANT_IMPL_H

#include <string.h>

#include "kernels/kern.h"

static inline float f32_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Exact: a subnormal half is a normal float; infinities and NaN stay what they are. */
static inline float f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = (h >> 10) & 31u, frac = h & 1023u;
    if (exp == 31)
        return f32_bits(sign | 0x7f800000u | frac << 13);
    if (exp == 0) {
        const float tiny = (float)frac * 0x1p-24f;
        return sign ? -tiny : tiny;
    }
    return f32_bits(sign | (exp + 112u) << 23 | frac << 13);
}

static inline float f16_at(const uint8_t *p)
{
    return f16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

static void dequant_q4_0(const uint8_t *p, float *y)
{
    const float d = f16_at(p);
    for (int i = 0; i < 16; i++) {
        y[i] = d * (float)((p[2 + i] & 15) - 8);
        y[i + 16] = d * (float)((p[2 + i] >> 4) - 8);
    }
}

static void dequant_q4_1(const uint8_t *p, float *y)
{
    const float d = f16_at(p), m = f16_at(p + 2);
    for (int i = 0; i < 16; i++) {
        y[i] = d * (float)(p[4 + i] & 15) + m;
        y[i + 16] = d * (float)(p[4 + i] >> 4) + m;
    }
}

/* The fifth bits: bit e of a 32-bit word belongs to element e. */
static inline uint32_t fifth_bits(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void dequant_q5_0(const uint8_t *p, float *y)
{
    const float d = f16_at(p);
    const uint32_t h = fifth_bits(p + 2);
    for (int i = 0; i < 16; i++) {
        y[i] = d * (float)((int)((p[6 + i] & 15u) | (h >> i & 1) << 4) - 16);
        y[i + 16] = d * (float)((int)(p[6 + i] >> 4 | (h >> (i + 16) & 1) << 4) - 16);
    }
}

static void dequant_q5_1(const uint8_t *p, float *y)
{
    const float d = f16_at(p), m = f16_at(p + 2);
    const uint32_t h = fifth_bits(p + 4);
    for (int i = 0; i < 16; i++) {
        y[i] = d * (float)(int)((p[8 + i] & 15u) | (h >> i & 1) << 4) + m;
        y[i + 16] = d * (float)(int)(p[8 + i] >> 4 | (h >> (i + 16) & 1) << 4) + m;
    }
}

static void dequant_q8_0(const uint8_t *p, float *y)
{
    const float d = f16_at(p);
    for (int i = 0; i < 32; i++)
        y[i] = (float)(int8_t)p[2 + i] * d;
}

/* Q2_K: scales[16], two bits x 256, d, dmin. Groups of 16; two halves of 128 read 32 bytes at shifts 0, 2, 4, 6. */
static void dequant_q2_k(const uint8_t *p, float *y)
{
    const float d = f16_at(p + 80), dmin = f16_at(p + 82);
    for (int g = 0; g < 16; g++) {
        const float dl = d * (float)(p[g] & 15), ml = dmin * (float)(p[g] >> 4);
        const uint8_t *q = p + 16 + g / 8 * 32 + g % 2 * 16;
        const int shift = g % 8 / 2 * 2;
        for (int i = 0; i < 16; i++)
            y[16 * g + i] = dl * (float)(q[i] >> shift & 3) - ml;
    }
}

/* Q3_K: high bits (clear: subtract 4), two low bits x 256, sixteen 6-bit scales in 12 bytes, d. */
static void dequant_q3_k(const uint8_t *p, float *y)
{
    const uint8_t *sc = p + 96;
    const float d = f16_at(p + 108);
    for (int g = 0; g < 16; g++) {
        const int low = g < 8 ? sc[g] & 15 : sc[g - 8] >> 4;
        const int high = sc[8 + g % 4] >> (g / 4 * 2) & 3;
        const float dl = d * (float)((low | high << 4) - 32);
        const uint8_t *q = p + 32 + g / 8 * 32 + g % 2 * 16, *h = p + g % 2 * 16;
        const int shift = g % 8 / 2 * 2, bit = g / 2;
        for (int i = 0; i < 16; i++)
            y[16 * g + i] = dl * (float)((q[i] >> shift & 3) - (h[i] >> bit & 1 ? 0 : 4));
    }
}

/* The 6-bit scale and minimum of group g of 8 in the 12 bytes of Q4_K and Q5_K. */
static inline void scale_min(const uint8_t *s, int g, int *scale, int *min)
{
    if (g < 4) {
        *scale = s[g] & 63;
        *min = s[g + 4] & 63;
    } else {
        *scale = (s[g + 4] & 15) | (s[g - 4] >> 2 & 48);
        *min = s[g + 4] >> 4 | (s[g] >> 2 & 48);
    }
}

/* Q4_K: d, dmin, scales, four bits x 256; Q5_K has 32 bytes of fifth bits before them. Groups of 32. */
static inline void dequant_q45_k(const uint8_t *p, const uint8_t *high, const uint8_t *qs, float *y)
{
    const float d = f16_at(p), dmin = f16_at(p + 2);
    for (int g = 0; g < 8; g++) {
        int scale, min;
        scale_min(p + 4, g, &scale, &min);
        const float dl = d * (float)scale, ml = dmin * (float)min;
        const uint8_t *q = qs + g / 2 * 32;
        const int shift = g % 2 * 4;
        for (int i = 0; i < 32; i++) {
            const int h = high ? (high[i] >> g & 1) << 4 : 0;
            y[32 * g + i] = dl * (float)((q[i] >> shift & 15) | h) - ml;
        }
    }
}

static void dequant_q4_k(const uint8_t *p, float *y)
{
    dequant_q45_k(p, NULL, p + 16, y);
}

static void dequant_q5_k(const uint8_t *p, float *y)
{
    dequant_q45_k(p, p + 16, p + 48, y);
}

/* Q6_K: four low bits x 256, two high bits x 256, sixteen int8 scales, d. */
static void dequant_q6_k(const uint8_t *p, float *y)
{
    const float d = f16_at(p + 208);
    for (int g = 0; g < 16; g++) {
        const float dl = d * (float)(int8_t)p[192 + g];
        const int half = g / 8, in = g % 8 * 16; /* element of the half */
        const uint8_t *low = p + half * 64 + in % 64, *high = p + 128 + half * 32 + in % 32;
        const int low_shift = in / 64 * 4, high_shift = in / 32 * 2;
        for (int i = 0; i < 16; i++) {
            const int q = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
            y[16 * g + i] = dl * (float)(q - 32);
        }
    }
}

typedef struct dequant_type {
    int elements, bytes;
    void (*block)(const uint8_t *p, float *y);
} dequant_type;

static const dequant_type dequant_types[WEIR_DTYPE_COUNT] = {
    [WEIR_Q4_0] = {32, 18, dequant_q4_0},   [WEIR_Q4_1] = {32, 20, dequant_q4_1},
    [WEIR_Q5_0] = {32, 22, dequant_q5_0},   [WEIR_Q5_1] = {32, 24, dequant_q5_1},
    [WEIR_Q8_0] = {32, 34, dequant_q8_0},   [WEIR_Q2_K] = {256, 84, dequant_q2_k},
    [WEIR_Q3_K] = {256, 110, dequant_q3_k}, [WEIR_Q4_K] = {256, 144, dequant_q4_k},
    [WEIR_Q5_K] = {256, 176, dequant_q5_k}, [WEIR_Q6_K] = {256, 210, dequant_q6_k},
};

static void elem_dequant(weir_dtype type, const void *src, int64_t n, float *dst)
{
    const uint8_t *p = src;
    switch (type) {
    case WEIR_F32:
        memcpy(dst, src, (size_t)n * sizeof *dst);
        return;
    case WEIR_F16:
        for (int64_t i = 0; i < n; i++)
            dst[i] = f16_at(p + 2 * i);
        return;
    case WEIR_BF16:
        for (int64_t i = 0; i < n; i++)
            dst[i] = f32_bits((uint32_t)p[2 * i] << 16 | (uint32_t)p[2 * i + 1] << 24);
        return;
    default:
        break;
    }
    const dequant_type *t = &dequant_types[type];
    for (int64_t i = 0; i < n; i += t->elements, p += t->bytes)
        t->block(p, dst + i);
}

#endif
