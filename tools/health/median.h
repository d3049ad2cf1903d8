/* health/median.h: medians: of values that are at hand, exactly; of any number of values, from the counts of bins. */
#ifndef WEIR_HEALTH_MEDIAN_H
#define WEIR_HEALTH_MEDIAN_H

#include <stdbool.h>
#include <stdint.h>

/* The median of x[n], n >= 1: of an even number the mean of the two in the middle. x is reordered. */
double weir_median(double *x, int64_t n);

/* Counts of positive floats: a bin has an exponent and the first 8 bits of the mantissa, and is 1/256 of its values
 * wide at most. */
typedef struct weir_bins {
    int64_t *count; /* [1 << 16] */
    int64_t n;
} weir_bins;
/* False: out of memory. */
bool weir_bins_new(weir_bins *b);
void weir_bins_free(weir_bins *b);
/* x: finite, not negative. */
void weir_bins_add(weir_bins *b, double x);
/* The median within 0.2 %: the middle of its bin. NaN: there is no value. */
double weir_bins_median(const weir_bins *b);

#endif
