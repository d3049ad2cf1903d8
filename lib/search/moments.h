/* search/moments.h: sums of x, x^2, x^3, x^4 that do not depend on the order of the values.
 *
 * Each power of each value is rounded to a fixed-point number, once and always alike, and fixed-point numbers are added
 * as integers. A sum is a two's complement number of 320 bits in units of 2^-160.
 */
#ifndef WEIR_SEARCH_MOMENTS_H
#define WEIR_SEARCH_MOMENTS_H

#include <weir/base.h>

enum { WEIR_SUM_WORDS = 5, WEIR_SUM_FRACTION = 160 };

/* A number: w[0] the lowest word. */
typedef struct weir_wide {
    uint64_t w[WEIR_SUM_WORDS];
} weir_wide;

typedef struct weir_sums {
    weir_wide power[4]; /* of x, x^2, x^3, x^4 */
    int64_t beyond;     /* finite values with |x| >= 2^24: counted, in no sum */
} weir_sums;

/* Adds m values of each of nb <= 64 neurons: neuron j's value of row r is x[row[r] * stride + j]. Values that are not
 * finite are left out. One table (weir_kern_name) or another: the same sums. */
typedef void weir_moments_fn(weir_sums *sums, const float *x, int64_t stride, const int32_t *row, int64_t m, int64_t nb);
weir_moments_fn weir_moments_ref, weir_moments_avx2, weir_moments_avx512;

void weir_wide_add(weir_wide *a, const weir_wide *b);
void weir_sums_merge(weir_sums *a, const weir_sums *b);
/* x (finite, |x| < 2^100) to the nearest multiple of 2^-160, ties to even; exact for every float of 2^-137 or more. */
void weir_wide_add_double(weir_wide *a, double x);
double weir_wide_to_double(const weir_wide *a); /* rounded to nearest */

/* Moments of n values whose sums these are; see weir_neuron_stats. Correctly rounded but for the last bits of the square
 * roots. */
void weir_sums_finish(const weir_sums *s, int64_t n, double *mean, double *sd, double *skew, double *kurtosis);

#endif
