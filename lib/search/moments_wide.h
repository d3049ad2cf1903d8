/* search/moments_wide.h: adding to wide numbers (moments.h); and more exact integers, for what is made of sums. */
#ifndef WEIR_SEARCH_MOMENTS_WIDE_H
#define WEIR_SEARCH_MOMENTS_WIDE_H

#include <string.h>

#include "search/moments.h"

/* A float taken apart: |x| = m 2^e. */
typedef struct weir_float_parts {
    uint32_t m;
    int e;
    bool negative, finite, beyond; /* beyond: 2^24 <= |x| < infinity */
} weir_float_parts;

static inline weir_float_parts weir_float_take(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t field = bits >> 23 & 255;
    return (weir_float_parts){
        .m = (bits & 0x7fffff) | (field ? 0x800000 : 0),
        .e = (int)(field ? field : 1) - 150,
        .negative = bits >> 31,
        .finite = field != 255,
        .beyond = field >= 127 + 24 && field != 255,
    };
}

/* *w += v + carry; returns what is carried on. */
static inline unsigned weir_add_carry(uint64_t *w, uint64_t v, unsigned carry)
{
    const bool over = __builtin_add_overflow(*w, v, w);
    return __builtin_add_overflow(*w, carry, w) | over;
}

/* Adds m 2^e, or takes it away; rounded as moments.h says. m < 2^127, m 2^e < 2^128. */
static inline void weir_wide_add_scaled(weir_wide *a, unsigned __int128 m, int e, bool negative)
{
    int at = e + WEIR_SUM_FRACTION;
    if (at < 0) {
        m = at < -127 ? 0 : ((m >> (-at - 1)) + 1) >> 1;
        at = 0;
    }
    const int from = at / 64, up = at % 64;
    const uint64_t low = (uint64_t)m, high = (uint64_t)(m >> 64), sign = negative ? ~UINT64_C(0) : 0;
    const uint64_t part[3] = {low << up, high << up | (low >> 1) >> (63 - up), (high >> 1) >> (63 - up)};
    unsigned carry = negative; /* -v = ~v + 1 */
    for (int i = from; i < WEIR_SUM_WORDS; i++)
        carry = weir_add_carry(&a->w[i], (i - from < 3 ? part[i - from] : 0) ^ sign, carry);
}

/* Adds v 2^(at - WEIR_SUM_FRACTION). */
static inline void weir_wide_add_limb(weir_wide *a, int64_t v, int at)
{
    const int from = at / 64, up = at % 64;
    const uint64_t sign = v < 0 ? ~UINT64_C(0) : 0;
    const uint64_t part[2] = {(uint64_t)v << up, (uint64_t)(v >> 1 >> (63 - up))};
    unsigned carry = 0;
#pragma GCC unroll 6
    for (int i = 0; i < WEIR_SUM_WORDS; i++)
        if (i >= from)
            carry = weir_add_carry(&a->w[i], i - from < 2 ? part[i - from] : sign, carry);
}

static inline void weir_wide_add_square(weir_wide *a, weir_float_parts p)
{
    weir_wide_add_scaled(a, (uint64_t)p.m * p.m, 2 * p.e, false);
}

static inline void weir_wide_add_product(weir_wide *a, weir_float_parts p, weir_float_parts q)
{
    weir_wide_add_scaled(a, (uint64_t)p.m * q.m, p.e + q.e, p.negative != q.negative);
}

/* All powers of one value. */
static inline void weir_sums_add(weir_sums *s, float x)
{
    const weir_float_parts p = weir_float_take(x);
    if (!p.finite)
        return;
    if (p.beyond) {
        s->beyond++;
        return;
    }
    const uint64_t m2 = (uint64_t)p.m * p.m;
    weir_wide_add_scaled(&s->power[0], p.m, p.e, p.negative);
    weir_wide_add_scaled(&s->power[1], m2, 2 * p.e, false);
    weir_wide_add_scaled(&s->power[2], (unsigned __int128)m2 * p.m, 3 * p.e, p.negative);
    weir_wide_add_scaled(&s->power[3], (unsigned __int128)m2 * m2, 4 * p.e, false);
}

/* The sums of one value of unit j (moments.h, weir_pairs). */
static inline void weir_pairs_unit(const weir_pairs *p, int64_t j, float x)
{
    const weir_float_parts a = weir_float_take(x);
    p->count[3 * j + WEIR_NOT_FINITE] += !a.finite;
    p->count[3 * j + WEIR_BEYOND] += a.beyond;
    if (!a.finite || a.beyond)
        return;
    weir_wide_add_scaled(&p->sum[j], a.m, a.e, a.negative);
    weir_wide_add_square(&p->square[j], a);
}

/* The product of column k and unit j in one row. */
static inline void weir_pairs_product(const weir_pairs *p, int k, int64_t j, float y, float x)
{
    const weir_float_parts a = weir_float_take(x), b = weir_float_take(y);
    if (a.finite && b.finite && !a.beyond && !b.beyond)
        weir_wide_add_product(&p->product[k * p->width + j], a, b);
}

/* Finite and > 0. */
static inline bool weir_fires(float x)
{
    return x > 0 && x < __builtin_inff();
}

/* --- integers of 1152 bits, modulo 2^1152: room for the numerator of the fourth central moment of 2^62 values */
enum { WEIR_BIG_WORDS = 18 };
typedef struct weir_big {
    uint64_t w[WEIR_BIG_WORDS];
} weir_big;

weir_big weir_big_of(const weir_wide *a);
weir_big weir_big_add(const weir_big *a, const weir_big *b);
weir_big weir_big_sub(const weir_big *a, const weir_big *b);
weir_big weir_big_mul(const weir_big *a, const weir_big *b);
weir_big weir_big_times(const weir_big *a, uint64_t b);
weir_big weir_big_shift(const weir_big *a, int words); /* a 2^(64 words) */
/* a 2^e, rounded to nearest, ties to even. */
double weir_big_to_double(const weir_big *a, int e);

/* n sum(xy) - sum(x) sum(y) in units of 1, rounded once: n^2 times the covariance. */
double weir_wide_covariance(const weir_wide *xy, const weir_wide *x, const weir_wide *y, int64_t n);

#endif
