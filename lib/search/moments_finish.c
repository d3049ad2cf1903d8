/* search/moments_finish.c: what becomes of sums: central moments and covariances, by integers that lose nothing. */
#include <math.h>

#include "search/moments_wide.h"

weir_big weir_big_of(const weir_wide *a)
{
    weir_big b;
    memcpy(b.w, a->w, sizeof a->w);
    const int sign = a->w[WEIR_SUM_WORDS - 1] >> 63 ? 0xff : 0;
    memset(b.w + WEIR_SUM_WORDS, sign, sizeof b.w - sizeof a->w);
    return b;
}

weir_big weir_big_add(const weir_big *a, const weir_big *b)
{
    weir_big out;
    unsigned __int128 t = 0;
    for (int i = 0; i < WEIR_BIG_WORDS; i++, t >>= 64)
        out.w[i] = (uint64_t)(t += (unsigned __int128)a->w[i] + b->w[i]);
    return out;
}

weir_big weir_big_sub(const weir_big *a, const weir_big *b)
{
    weir_big out;
    unsigned __int128 t = 1; /* a - b = a + ~b + 1 */
    for (int i = 0; i < WEIR_BIG_WORDS; i++, t >>= 64)
        out.w[i] = (uint64_t)(t += (unsigned __int128)a->w[i] + ~b->w[i]);
    return out;
}

/* Modulo 2^1152 the product of two's complement numbers is that of their bits. */
weir_big weir_big_mul(const weir_big *a, const weir_big *b)
{
    weir_big out = {{0}};
    for (int i = 0; i < WEIR_BIG_WORDS; i++) {
        unsigned __int128 t = 0;
        for (int j = 0; a->w[i] && i + j < WEIR_BIG_WORDS; j++, t >>= 64)
            out.w[i + j] = (uint64_t)(t += (unsigned __int128)a->w[i] * b->w[j] + out.w[i + j]);
    }
    return out;
}

weir_big weir_big_times(const weir_big *a, uint64_t b)
{
    weir_big out;
    unsigned __int128 t = 0;
    for (int i = 0; i < WEIR_BIG_WORDS; i++, t >>= 64)
        out.w[i] = (uint64_t)(t += (unsigned __int128)a->w[i] * b);
    return out;
}

weir_big weir_big_shift(const weir_big *a, int words)
{
    weir_big out = {{0}};
    memcpy(out.w + words, a->w, sizeof(uint64_t) * (size_t)(WEIR_BIG_WORDS - words));
    return out;
}

double weir_big_to_double(const weir_big *a, int e)
{
    const bool negative = a->w[WEIR_BIG_WORDS - 1] >> 63;
    const weir_big zero = {{0}}, m = negative ? weir_big_sub(&zero, a) : *a;
    int top = WEIR_BIG_WORDS - 1;
    while (top > 0 && !m.w[top])
        top--;
    uint64_t v = m.w[top];
    if (top > 0) {
        /* The highest 64 bits; the lowest of them also stands for all below: it is far from those that are kept. */
        const int up = __builtin_clzll(v);
        uint64_t rest = up ? m.w[top - 1] << up : m.w[top - 1];
        v = up ? v << up | m.w[top - 1] >> (64 - up) : v;
        for (int i = top - 2; i >= 0; i--)
            rest |= m.w[i];
        v |= rest != 0;
        e += 64 * top - up;
    }
    const double x = ldexp((double)v, e);
    return negative ? -x : x;
}

double weir_wide_covariance(const weir_wide *xy, const weir_wide *x, const weir_wide *y, int64_t n)
{
    const weir_big a = weir_big_of(x), b = weir_big_of(y), c = weir_big_of(xy);
    const weir_big square = weir_big_mul(&a, &b), whole = weir_big_times(&c, (uint64_t)n);
    const weir_big aligned = weir_big_shift(&whole, WEIR_SUM_FRACTION / 64);
    const weir_big d = weir_big_sub(&aligned, &square);
    return weir_big_to_double(&d, -2 * WEIR_SUM_FRACTION);
}

/* n^2 S3 - 3 n S1 S2 + 2 S1^3 = n^3 m3. */
static double third(const weir_big s[3], int64_t n)
{
    const int step = WEIR_SUM_FRACTION / 64;
    weir_big a = weir_big_times(&s[2], (uint64_t)n), b = weir_big_times(&s[1], 3 * (uint64_t)n), c;
    a = weir_big_times(&a, (uint64_t)n);
    a = weir_big_shift(&a, 2 * step);
    b = weir_big_mul(&b, &s[0]);
    b = weir_big_shift(&b, step);
    c = weir_big_mul(&s[0], &s[0]);
    c = weir_big_mul(&c, &s[0]);
    c = weir_big_times(&c, 2);
    a = weir_big_sub(&a, &b);
    a = weir_big_add(&a, &c);
    return weir_big_to_double(&a, -3 * WEIR_SUM_FRACTION);
}

/* n^3 S4 - 4 n^2 S1 S3 + 6 n S1^2 S2 - 3 S1^4 = n^4 m4. */
static double fourth(const weir_big s[4], int64_t n)
{
    const int step = WEIR_SUM_FRACTION / 64;
    const weir_big square = weir_big_mul(&s[0], &s[0]);
    weir_big a = s[3], b = weir_big_mul(&s[2], &s[0]), c = weir_big_mul(&s[1], &square), d;
    for (int i = 0; i < 3; i++)
        a = weir_big_times(&a, (uint64_t)n);
    a = weir_big_shift(&a, 3 * step);
    for (int i = 0; i < 2; i++)
        b = weir_big_times(&b, (uint64_t)n);
    b = weir_big_times(&b, 4);
    b = weir_big_shift(&b, 2 * step);
    c = weir_big_times(&c, (uint64_t)n);
    c = weir_big_times(&c, 6);
    c = weir_big_shift(&c, step);
    d = weir_big_mul(&square, &square);
    d = weir_big_times(&d, 3);
    a = weir_big_sub(&a, &b);
    a = weir_big_add(&a, &c);
    a = weir_big_sub(&a, &d);
    return weir_big_to_double(&a, -4 * WEIR_SUM_FRACTION);
}

void weir_sums_finish(const weir_sums *s, int64_t n, double *mean, double *sd, double *skew, double *kurtosis)
{
    *mean = *sd = *skew = *kurtosis = (double)NAN;
    if (n <= 0 || s->beyond > 0)
        return;
    *mean = weir_wide_to_double(&s->power[0]) / (double)n;
    const double second = weir_wide_covariance(&s->power[1], &s->power[0], &s->power[0], n);
    *sd = sqrt(second) / (double)n;
    if (!(*sd >= 0x1p-38))
        return;
    weir_big power[4];
    for (int p = 0; p < 4; p++)
        power[p] = weir_big_of(&s->power[p]);
    /* The powers of n fall out of the quotients. */
    *skew = third(power, n) / (second * sqrt(second));
    *kurtosis = fourth(power, n) / (second * second);
}
