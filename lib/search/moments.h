/* search/moments.h: sums of x, x^2, x^3, x^4 that do not depend on the order of the values.
 *
 * A sum is a two's complement number of 384 bits in units of 2^-192. A power of a float is added as it is, nothing is
 * rounded, wherever it is a whole number of units: x always, x^2 for |x| >= 2^-73, x^3 for |x| >= 2^-41, x^4 for
 * |x| >= 2^-25. Below that the power is rounded to the nearest whole number of units, half away from zero: once, and by
 * the value alone. So a sum is a function of the set of values, and sums over parts add up to the sum over the whole.
 *
 * How the fast kernels come to the same bits: moments_lanes.h.
 */
#ifndef WEIR_SEARCH_MOMENTS_H
#define WEIR_SEARCH_MOMENTS_H

#include <weir/base.h>

enum { WEIR_SUM_WORDS = 6, WEIR_SUM_FRACTION = 192 };

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
typedef void weir_moments_fn(weir_sums *sums, const float *x, int64_t stride, const int32_t *row, int64_t m,
                             int64_t nb);
weir_moments_fn weir_moments_ref, weir_moments_avx2, weir_moments_avx512;

/* Sums for correlations, of nb <= 64 units (j) and of n other columns (k) of the same rows. Finite values of 2^24 and
 * more are in no sum; where they or the other one are not, the product is left out. */
typedef struct weir_pairs {
    weir_wide *sum, *square; /* [nb] */
    int64_t *count;          /* [nb, 3] by WEIR_FIRING, ... */
    int n;
    const float *y;     /* [n, m] */
    weir_wide *product; /* [k * width + j] */
    int64_t *both;      /* [k * width + j] rows where both fire */
    int64_t width;
} weir_pairs;
enum { WEIR_FIRING, WEIR_NOT_FINITE, WEIR_BEYOND }; /* firing: finite and > 0 */
typedef void weir_pairs_fn(const weir_pairs *p, const float *x, int64_t stride, const int32_t *row, int64_t m,
                           int64_t nb);
weir_pairs_fn weir_pairs_ref, weir_pairs_avx2, weir_pairs_avx512;

void weir_wide_add(weir_wide *a, const weir_wide *b);
void weir_wide_sub(weir_wide *a, const weir_wide *b);
void weir_sums_merge(weir_sums *a, const weir_sums *b);
/* x is finite, |x| < 2^128: exact for every float; a double's bits below 2^-192 are rounded as above. */
void weir_wide_add_double(weir_wide *a, double x);
double weir_wide_to_double(const weir_wide *a); /* rounded to nearest, ties to even */

/* Moments of n values whose sums these are; see weir_neuron_stats. The numerators of the central moments (n S2 - S1^2
 * and so on) are exact integers, each rounded to double once; what follows is a few operations in double. NaN: n = 0; a
 * value beyond; skew and kurtosis where the values are all equal or sd < 2^-38, where x^4 has too few units. */
void weir_sums_finish(const weir_sums *s, int64_t n, double *mean, double *sd, double *skew, double *kurtosis);

#endif
