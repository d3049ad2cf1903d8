/* survey/collapse_draw.h: directions at random. */
#ifndef WEIR_COLLAPSE_DRAW_H
#define WEIR_COLLAPSE_DRAW_H

#include <math.h>

#include "../base/rng.h"

/* A unit vector, every direction as likely as any other: numbers of the normal distribution, divided by their length.
 */
static inline void weir_collapse_direction(uint64_t *state, int64_t n, double *to)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++) {
        const double length = sqrt(-2 * log(1 - weir_rng_unit(weir_rng_next(state))));
        to[i] = length * cos(6.283185307179586 * weir_rng_unit(weir_rng_next(state)));
        square += to[i] * to[i];
    }
    for (int64_t i = 0; i < n; i++)
        to[i] /= sqrt(square);
}

#endif
