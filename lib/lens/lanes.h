/* lens/lanes.h: the loops over the vocabulary, one table an instruction set; all give the same bits.
 *
 * They work on pieces of the vocabulary. Sums run over 16 lanes (place i in lane i mod 16, ascending) that are folded
 * as in lib/kernels. A piece's probabilities and their logarithms lie in arrays of WEIR_LENS_PIECE floats; places
 * behind its end are 0 in both up to a multiple of 16, so that loops over them take whole steps: n is rounded up.
 */
#ifndef WEIR_LENS_LANES_H
#define WEIR_LENS_LANES_H

#include <weir/base.h>

enum { WEIR_LENS_PIECE = 1024 };

/* The softmax of a row: p = exp(x - max) inv_z, ln p = (x - max) - log_z. */
typedef struct weir_lens_softmax {
    float max, inv_z, log_z;
} weir_lens_softmax;

typedef struct weir_lens_lanes {
    const char *name; /* as in lib/kernels: ref, avx2, avx512 */
    /* Makes p and ln_p of x [n]; sum of p ln p. next [n]: what will be read next (it is fetched meanwhile). */
    float (*softmax)(float *p, float *ln_p, const float *x, int64_t n, const weir_lens_softmax *s, const float *next);
    /* sum of p (ln_p - ln_q); ln_q NULL: of p ln_p */
    float (*kl)(const float *p, const float *ln_p, const float *ln_q, int64_t n);
    /* sum of (p + q) g((p - q) / (p + q)), g(r) = ((1 - r) ln(1 - r) + (1 + r) ln(1 + r)) / 2 */
    float (*jsd)(const float *p, const float *ln_p, const float *q, const float *ln_q, int64_t n);
    /* How many of x [n] are above `than`. NaN is not. */
    int64_t (*count_above)(const float *x, int64_t n, float than);
    /* The first i in [from, n) with x[i] above `than`; n: there is none. */
    int64_t (*find_above)(const float *x, int64_t from, int64_t n, float than);
} weir_lens_lanes;

extern const weir_lens_lanes weir_lens_ref, weir_lens_avx2, weir_lens_avx512;

/* The table that goes with a kernel table of this name. */
const weir_lens_lanes *weir_lens_lanes_of(const char *name);

#endif
