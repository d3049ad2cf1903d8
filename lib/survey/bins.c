/* survey/bins.c: bins of values: those of a float's own sign, exponent and highest bits of the mantissa. */
#include <math.h>
#include <string.h>

#include "survey/impl.h"

enum { LOW = 127 - 30, HIGH = 127 + 20, BITS = 7, REST = 23 - BITS };

int weir_survey_bin(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude >= (uint32_t)HIGH << 23)
        return -1;
    if (magnitude < (uint32_t)LOW << 23)
        return WEIR_SURVEY_BIN_SIDE;
    const int from_zero = (int)((magnitude - ((uint32_t)LOW << 23)) >> REST);
    return bits >> 31 ? WEIR_SURVEY_BIN_SIDE - 1 - from_zero : WEIR_SURVEY_BIN_SIDE + 1 + from_zero;
}

/* Of the i-th edge from 2^-30 upwards. */
static double magnitude(int i)
{
    return ldexp(1 + (i & ((1 << BITS) - 1)) * 0x1p-7, (i >> BITS) - 30);
}

double weir_survey_edge(int bin)
{
    return bin <= WEIR_SURVEY_BIN_SIDE ? -magnitude(WEIR_SURVEY_BIN_SIDE - bin)
                                       : magnitude(bin - WEIR_SURVEY_BIN_SIDE - 1);
}
