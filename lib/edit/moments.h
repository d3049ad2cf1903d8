/* edit/moments.h: the inside of weir_moments. */
#ifndef WEIR_MOMENTS_IMPL_H
#define WEIR_MOMENTS_IMPL_H

#include <weir/moments.h>

enum { WEIR_MOMENTS_MOST = 1 << 15 }; /* width: a matrix of 8 GiB */

struct weir_moments {
    int64_t f, count;
    double *sum;
    weir_moments_about about;
    char *text[3]; /* store of its texts */
};

#endif
