/* kernels/outer_impl.h: sums of outer products in double. One source for every table (plain vectors of four or eight,
 * as the instruction set has them).
 *
 * Both factors were single precision, so that their product is exact in double: each element is one chain of sums over
 * t ascending, however the products are rounded, fused or not. */
#ifndef WEIR_OUTER_IMPL_H
#define WEIR_OUTER_IMPL_H

#include <string.h>

#include "kernels/kern.h"

typedef double outer_strip __attribute__((vector_size(WEIR_OUTER_COLUMNS * sizeof(double))));

static void outer_tile(double *sum, int64_t ld, const double *a, const double *b, int64_t rows)
{
    outer_strip acc[WEIR_OUTER_ROWS];
    for (int r = 0; r < WEIR_OUTER_ROWS; r++)
        memcpy(&acc[r], sum + r * ld, sizeof *acc);
    for (int64_t t = 0; t < rows; t++, a += WEIR_OUTER_COLUMNS, b += WEIR_OUTER_COLUMNS) {
        outer_strip xj;
        memcpy(&xj, b, sizeof xj);
        for (int r = 0; r < WEIR_OUTER_ROWS; r++)
            acc[r] += a[r] * xj;
    }
    for (int r = 0; r < WEIR_OUTER_ROWS; r++)
        memcpy(sum + r * ld, &acc[r], sizeof *acc);
}

#endif
