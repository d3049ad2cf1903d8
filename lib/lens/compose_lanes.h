/* lens/compose_lanes.h: a tile of a product of two packed factors. Before it is included: LANES, doubles of a register;
 * ROWS and COLS, of a tile (COLS a multiple of LANES); MULTIPLY_ADD(a, b, c). */
#ifndef WEIR_LENS_COMPOSE_LANES_H
#define WEIR_LENS_COMPOSE_LANES_H

#include "lens/compose.h"

enum { VECTORS = COLS / LANES };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef lanes lanes_at __attribute__((aligned(sizeof(double)), may_alias)); /* anywhere in an array of doubles */

static void tile(const double *a, const double *b, int64_t n, double *out, int64_t ld)
{
    lanes sum[ROWS][VECTORS] = {0};
    for (int64_t i = 0; i < n; i++, a += ROWS, b += COLS) {
        lanes right[VECTORS];
#pragma GCC unroll 16
        for (int v = 0; v < VECTORS; v++)
            right[v] = *(const lanes_at *)(b + v * LANES);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
            for (int v = 0; v < VECTORS; v++)
                sum[r][v] = MULTIPLY_ADD(a[r], right[v], sum[r][v]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
        for (int v = 0; v < VECTORS; v++)
            *(lanes_at *)(out + r * ld + v * LANES) = sum[r][v];
}

#define WEIR_COMPOSE_TILE .rows = ROWS, .cols = COLS, .tile = tile

#endif
