#include "narrow.h"

#include <math.h>
#include <string.h>

/* A floating-point type: bits of the mantissa with the hidden one, the exponent of the smallest unit, the largest
 * number. */
typedef struct form {
    int digits, least;
    double most;
} form;

static const form F16 = {11, -24, 65504}, BF16 = {8, -133, 0x1.fep127};

static double rounded(form f, double x)
{
    int e;
    frexp(x, &e); /* |x| in [2^(e-1), 2^e) */
    const int unit = e - f.digits > f.least ? e - f.digits : f.least;
    const double y = ldexp(rint(ldexp(x, -unit)), unit);
    return fabs(y) > f.most ? copysign(INFINITY, x) : y;
}

/* The bits of a number that F16 holds. */
static uint16_t f16_bits(double y)
{
    const uint16_t sign = signbit(y) ? 0x8000 : 0;
    const double a = fabs(y);
    int e;
    if (isinf(a))
        return sign | 0x7c00;
    if (a < 0x1p-14) /* subnormal, or 0 */
        return sign | (uint16_t)ldexp(a, 24);
    const double m = frexp(a, &e); /* in [0.5, 1) */
    return (uint16_t)(sign | (e + 14) << 10 | ((int)ldexp(m, 11) - 1024));
}

double weir_narrow(weir_dtype t, double x, void *dst)
{
    if (t == WEIR_F32) {
        const float y = (float)x;
        memcpy(dst, &y, sizeof y);
        return y;
    }
    const double y = rounded(t == WEIR_F16 ? F16 : BF16, x);
    const float wide = (float)y;
    uint32_t bits;
    memcpy(&bits, &wide, sizeof bits);
    const uint16_t half = t == WEIR_F16 ? f16_bits(y) : (uint16_t)(bits >> 16);
    memcpy(dst, &half, sizeof half);
    return y;
}
