/* unit/moments_kit.h: kernels of this machine, floats from everywhere, and sums by long multiplication, bit for bit. */
#ifndef WEIR_TEST_MOMENTS_KIT_H
#define WEIR_TEST_MOMENTS_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "search/moments.h"

typedef struct kit_table {
    const char *name;
    weir_moments_fn *moments;
    weir_pairs_fn *pairs;
} kit_table;

/* Those that this machine can run; returns how many. */
static inline int kit_tables(kit_table out[3])
{
    static const kit_table known[] = {
        {"ref", weir_moments_ref, weir_pairs_ref},
#if defined(__x86_64__)
        {"avx2", weir_moments_avx2, weir_pairs_avx2},
        {"avx512", weir_moments_avx512, weir_pairs_avx512},
#endif
    };
    const weir_kern *all[3];
    const int have = weir_kern_available(all, 3);
    int n = 0;
    for (int i = 0; i < have; i++)
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            if (!strcmp(weir_kern_name(all[i]), known[k].name))
                out[n++] = known[k];
    assert_int_equal(n, have);
    return n;
}

static inline uint32_t kit_next(uint32_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    return *s ^= *s << 5;
}

static inline float kit_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* Roughly normal. */
static inline float kit_gauss(uint32_t *s)
{
    float sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (float)(kit_next(s) >> 8) * 0x1p-24f;
    return sum - 6;
}

/* Mostly usual values, and all that is not: zeros, the very small and large, edges, what is not finite. */
static inline float kit_wild(uint32_t *s)
{
    static const float edge[] = {0,         0x1p-20f,  0x1p-25f, 0x1p-41f,        0x1p-73f, 0x1p8f, 0x1p24f,
                                 0x1p-149f, 0x1p-126f, 0x1p127f, 0x1.fffffep127f, INFINITY, NAN,    1};
    enum { EDGES = sizeof edge / sizeof edge[0] };
    const uint32_t r = kit_next(s), sign = (r & 1) << 31;
    uint32_t bits;
    switch (r >> 8 & 15) {
    case 0:
        return kit_float(kit_next(s)); /* any bits at all */
    case 1:
        memcpy(&bits, &edge[kit_next(s) % EDGES], 4);
        return kit_float((bits + kit_next(s) % 3 - (bits > 0)) ^ sign); /* beside an edge */
    case 2:
        return kit_float(kit_next(s) % 0x800000 | sign); /* subnormal */
    case 3:
        return 0;
    default:
        return ldexpf(kit_gauss(s), (int)(kit_next(s) % 20) - 14);
    }
}

/* --- the definition: x^p in digits of 16 bits, written down by school arithmetic, rounded, added digit by digit */
enum { KIT_BELOW = 34, KIT_DIGITS = WEIR_SUM_WORDS * 4 }; /* digits below the unit, and above */
typedef struct kit_sum {
    int64_t digit[KIT_DIGITS];
} kit_sum;

static inline void kit_times(uint32_t *d, int n, uint32_t by)
{
    uint64_t carry = 0;
    for (int i = 0; i < n; i++, carry >>= 16) {
        carry += (uint64_t)d[i] * by;
        d[i] = carry & 0xffff;
    }
    assert_true(carry == 0);
}

static inline void kit_add(kit_sum *s, float x, int power)
{
    enum { N = KIT_BELOW + KIT_DIGITS };
    if (!isfinite(x) || x == 0)
        return;
    int e;
    const uint32_t m = (uint32_t)ldexp(frexp(fabs((double)x), &e), 24);
    int at = power * (e - 24) + 16 * KIT_BELOW + WEIR_SUM_FRACTION;
    assert_true(at >= 0);
    uint32_t d[N] = {0};
    d[at / 16] = 1;
    for (at %= 16; at > 0; at--)
        kit_times(d, N, 2);
    for (int i = 0; i < power; i++)
        kit_times(d, N, m);
    d[KIT_BELOW - 1] += 0x8000; /* half a unit: away from zero, because the sign is put on afterwards */
    const uint32_t carry = d[KIT_BELOW - 1] >> 16;
    const int sign = x < 0 && power % 2 ? -1 : 1;
    for (int i = 0; i < KIT_DIGITS; i++)
        s->digit[i] += sign * (int64_t)(d[KIT_BELOW + i] + (i == 0 ? carry : 0));
}

static inline weir_wide kit_wide(const kit_sum *s)
{
    weir_wide w = {{0}};
    int64_t carry = 0;
    for (int i = 0; i < KIT_DIGITS; i++) {
        carry += s->digit[i];
        w.w[i / 4] |= ((uint64_t)carry & 0xffff) << 16 * (i % 4);
        carry >>= 16;
    }
    return w;
}

#endif
