/* lens/ramp.h: values of a statistic as strengths of a colour, the same in every picture (page-scale.js does likewise).
 *
 *   prob                    0 .. 1
 *   rank                    logarithm of 1 .. the 95th percentile, at least 10; 1 is strongest
 *   logit                   5th .. 95th percentile
 *   contrast                minus .. plus the larger magnitude of the 5th and 95th percentile; both signs have a colour
 *   the others, in nats     0 .. 95th percentile
 *
 * Values beyond an end have its colour. Percentiles are those of a document without its first position and the stream
 * before the first block, whose values are often far from all others (where there are no others: with them).
 */
#ifndef WEIR_TOOLS_LENS_RAMP_H
#define WEIR_TOOLS_LENS_RAMP_H

#include "view.h"

typedef struct weir_lens_ramp {
    weir_lens_stat stat;
    double low, high;
} weir_lens_ramp;

/* x [n]: the values that make the scale; NaN, and rank 0, may be among them. x is sorted. */
weir_lens_ramp weir_lens_ramp_of(weir_lens_stat stat, float *x, int64_t n);
/* 0 .. 1, contrast: -1 .. 1; NaN where there is no value. */
double weir_lens_ramp_at(const weir_lens_ramp *r, double x);
/* The value at a share of the way from low to high. */
double weir_lens_ramp_value(const weir_lens_ramp *r, double share);
/* "KL(final row || this row), in nats" */
const char *weir_lens_stat_long(weir_lens_stat stat);

#endif
