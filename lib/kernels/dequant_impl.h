/* kernels/dequant_impl.h: stored blocks to fp32, in gguf-py's order of fp32 operations. One source for every table,
 * over its vec header.
 *
 * Every type is read 16 elements at a time, and any 16 on their own: *_part widens the groups [g0, g1) of a block, so
 * that a panel of 48 columns costs no more than its own. A block is read byte by byte: it may lie anywhere in a file.
 * `d` and `dmin` are binary16 scales, possibly subnormal or infinite. Where a code has four bits, its 16 values are a
 * table that is made once for a scale.
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

static inline float f16_at(const uint8_t *p)
{
    return v_half((uint16_t)(p[0] | p[1] << 8));
}

/* 0 to 15, and that minus 8. */
static inline vf codes(void)
{
    static const float code[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return v_load(code);
}
static inline vf codes_around_0(void)
{
    static const float code[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    return v_load(code);
}

/* Group g of 32 codes of four bits, as table entries: the low halves of 16 bytes, then the high ones. */
static inline vi nibbles(const uint8_t *p, int g)
{
    return vi_shr(vi_u8(p), 4 * g);
}

static inline vi bits_of(vi x, int shift, uint32_t mask)
{
    return vi_and(vi_shr(x, shift), vi_set(mask));
}

static inline void q4_0_part(const uint8_t *p, int g0, int g1, float *y)
{
    const vf table = v_mul(v_set(f16_at(p)), codes_around_0());
    for (int g = g0; g < g1; g++, y += 16)
        v_store(y, v_entry(table, nibbles(p + 2, g)));
}

static inline void q4_1_part(const uint8_t *p, int g0, int g1, float *y)
{
    const vf table = v_add(v_mul(v_set(f16_at(p)), codes()), v_set(f16_at(p + 2)));
    for (int g = g0; g < g1; g++, y += 16)
        v_store(y, v_entry(table, nibbles(p + 4, g)));
}

/* Five bits: bit e of the 32-bit word h, the fifth ones, belongs to element e. */
static inline vi five_bits(const uint8_t *h, const uint8_t *q, int g)
{
    const uint16_t fifth = (uint16_t)(h[2 * g] | h[2 * g + 1] << 8);
    return vi_or(bits_of(vi_u8(q), 4 * g, 15), vi_pick(fifth, 16));
}

static inline void q5_0_part(const uint8_t *p, int g0, int g1, float *y)
{
    const vf d = v_set(f16_at(p));
    for (int g = g0; g < g1; g++, y += 16)
        v_store(y, v_mul(d, v_int(vi_add(five_bits(p + 2, p + 6, g), vi_set(-16u)))));
}

static inline void q5_1_part(const uint8_t *p, int g0, int g1, float *y)
{
    const vf d = v_set(f16_at(p)), m = v_set(f16_at(p + 2));
    for (int g = g0; g < g1; g++, y += 16)
        v_store(y, v_add(v_mul(d, v_int(five_bits(p + 4, p + 8, g))), m));
}

static inline void q8_0_part(const uint8_t *p, int g0, int g1, float *y)
{
    const vf d = v_set(f16_at(p));
    for (int g = g0; g < g1; g++, y += 16)
        v_store(y, v_mul(v_int(vi_i8(p + 2 + 16 * g)), d));
}

/* Q2_K: scales[16], two bits x 256, d, dmin. Groups of 16; two halves of 128 read 32 bytes at shifts 0, 2, 4, 6. */
static inline void q2_k_part(const uint8_t *p, int g0, int g1, float *y)
{
    const float d = f16_at(p + 80), dmin = f16_at(p + 82);
    for (int g = g0; g < g1; g++, y += 16) {
        const vf dl = v_set(d * (float)(p[g] & 15)), ml = v_set(dmin * (float)(p[g] >> 4));
        const uint8_t *q = p + 16 + g / 8 * 32 + g % 2 * 16;
        v_store(y, v_sub(v_mul(dl, v_int(bits_of(vi_u8(q), g % 8 / 2 * 2, 3))), ml));
    }
}

/* Q3_K: high bits (clear: subtract 4), two low bits x 256, sixteen 6-bit scales in 12 bytes, d. */
static inline void q3_k_part(const uint8_t *p, int g0, int g1, float *y)
{
    const uint8_t *sc = p + 96;
    const float d = f16_at(p + 108);
    for (int g = g0; g < g1; g++, y += 16) {
        const int low = g < 8 ? sc[g] & 15 : sc[g - 8] >> 4;
        const int high = sc[8 + g % 4] >> (g / 4 * 2) & 3;
        const uint8_t *q = p + 32 + g / 8 * 32 + g % 2 * 16, *h = p + g % 2 * 16;
        const vi two = bits_of(vi_u8(q), g % 8 / 2 * 2, 3), third = vi_shl(bits_of(vi_u8(h), g / 2, 1), 2);
        const vf dl = v_set(d * (float)((low | high << 4) - 32));
        v_store(y, v_mul(dl, v_int(vi_add(vi_add(two, third), vi_set(-4u)))));
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

/* Q4_K: d, dmin, scales, four bits x 256; Q5_K has 32 bytes of fifth bits before them. Scales are for 32. */
static inline void q45_k_part(const uint8_t *p, const uint8_t *high, const uint8_t *qs, int g0, int g1, float *y)
{
    const float d = f16_at(p), dmin = f16_at(p + 2);
    for (int g = g0; g < g1; g++, y += 16) {
        int scale, min;
        scale_min(p + 4, g / 2, &scale, &min);
        const vf dl = v_set(d * (float)scale), ml = v_set(dmin * (float)min);
        vi code = bits_of(vi_u8(qs + g / 4 * 32 + g % 2 * 16), g / 2 % 2 * 4, 15);
        if (high)
            code = vi_or(code, vi_shl(bits_of(vi_u8(high + g % 2 * 16), g / 2, 1), 4));
        v_store(y, v_sub(v_mul(dl, v_int(code)), ml));
    }
}

static inline void q4_k_part(const uint8_t *p, int g0, int g1, float *y)
{
    q45_k_part(p, NULL, p + 16, g0, g1, y);
}

static inline void q5_k_part(const uint8_t *p, int g0, int g1, float *y)
{
    q45_k_part(p, p + 16, p + 48, g0, g1, y);
}

/* Q6_K: four low bits x 256, two high bits x 256, sixteen int8 scales, d. */
static inline void q6_k_part(const uint8_t *p, int g0, int g1, float *y)
{
    const float d = f16_at(p + 208);
    for (int g = g0; g < g1; g++, y += 16) {
        const int half = g / 8, in = g % 8 * 16; /* element of the half */
        const uint8_t *low = p + half * 64 + in % 64, *high = p + 128 + half * 32 + in % 32;
        const vi four = bits_of(vi_u8(low), in / 64 * 4, 15), two = bits_of(vi_u8(high), in / 32 * 2, 3);
        const vf dl = v_set(d * (float)(int8_t)p[192 + g]);
        v_store(y, v_mul(dl, v_int(vi_add(vi_or(four, vi_shl(two, 4)), vi_set(-32u)))));
    }
}

/* Elements [from, from + n) of rows of a type whose blocks have `groups` groups in `bytes` bytes. */
static inline __attribute__((always_inline)) void part_rows(const void *const *row, int rows, int64_t from, int64_t n,
                                                            float *dst, int64_t ldd, int groups, int bytes,
                                                            void (*part)(const uint8_t *, int, int, float *))
{
    for (int r = 0; r < rows; r++) {
        float *y = dst + r * ldd;
        for (int64_t g = from / 16, end = (from + n) / 16; g < end;) {
            const int g0 = (int)(g % groups), g1 = end - g < groups - g0 ? g0 + (int)(end - g) : groups;
            part((const uint8_t *)row[r] + g / groups * bytes, g0, g1, y);
            g += g1 - g0;
            y += 16 * (g1 - g0);
        }
    }
}

#define PART_ROWS(type, groups, bytes, part)                                                                           \
    case type:                                                                                                         \
        part_rows(row, rows, from, n, dst, ldd, groups, bytes, part);                                                  \
        break

static void blocks_to_f32(weir_dtype type, const void *const *row, int rows, int64_t from, int64_t n, float *dst,
                          int64_t ldd)
{
    switch (type) {
        PART_ROWS(WEIR_Q4_0, 2, 18, q4_0_part);
        PART_ROWS(WEIR_Q4_1, 2, 20, q4_1_part);
        PART_ROWS(WEIR_Q5_0, 2, 22, q5_0_part);
        PART_ROWS(WEIR_Q5_1, 2, 24, q5_1_part);
        PART_ROWS(WEIR_Q8_0, 2, 34, q8_0_part);
        PART_ROWS(WEIR_Q2_K, 16, 84, q2_k_part);
        PART_ROWS(WEIR_Q3_K, 16, 110, q3_k_part);
        PART_ROWS(WEIR_Q4_K, 16, 144, q4_k_part);
        PART_ROWS(WEIR_Q5_K, 16, 176, q5_k_part);
        PART_ROWS(WEIR_Q6_K, 16, 210, q6_k_part);
    default:
        break;
    }
}

static void elem_dequant(weir_dtype type, const void *const *row, int rows, int64_t from, int64_t n, float *dst,
                         int64_t ldd)
{
    for (int r = 0; r < rows && weir_dtype_block(type) == 1; r++) {
        const uint8_t *p = (const uint8_t *)row[r] + from * weir_dtype_bytes(type);
        float *y = dst + r * ldd;
        if (type == WEIR_F32)
            memcpy(y, p, (size_t)n * sizeof *y);
        else if (type == WEIR_F16)
            for (int64_t i = 0; i < n; i++)
                y[i] = f16_at(p + 2 * i);
        else
            for (int64_t i = 0; i < n; i++)
                y[i] = f32_bits((uint32_t)p[2 * i] << 16 | (uint32_t)p[2 * i + 1] << 24);
    }
    if (weir_dtype_block(type) > 1)
        blocks_to_f32(type, row, rows, from, n, dst, ldd);
}

#endif
