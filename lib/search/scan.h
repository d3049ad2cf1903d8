/* search/scan.h: the kernels that look at every value. Each table gives the same results.
 *
 * Values come packed: rows of WEIR_NEURONS_BLOCK floats, 64-byte aligned, one behind the other, those of neurons that a
 * block does not have 0. A row has a bit for each neuron, the first in the lowest place.
 */
#ifndef WEIR_SEARCH_SCAN_H
#define WEIR_SEARCH_SCAN_H

#include "search/impl.h"

/* Counts of nb neurons, to which those of m rows are added. */
typedef struct weir_scan_counts {
    int64_t nb;
    uint32_t *hist; /* [nb, WEIR_NEURONS_BINS] */
    float *min, *max;
    int64_t *nonfinite;
    int64_t *above; /* [nb, n_thresholds] */
    const float *threshold;
    int n_thresholds;
} weir_scan_counts;

typedef struct weir_scan_kernels {
    const char *name; /* as in lib/kernels: ref, avx2, avx512 */
    weir_moments_fn *moments;
    void (*count)(const weir_scan_counts *c, const float *x, int64_t m);
    /* Bits of row r, in mask[r]: finite values beyond gate[WEIR_NEURONS_BLOCK]: above it, below it, of larger magnitude
     * (by list). */
    void (*beyond[WEIR_NEURONS_LISTS])(uint64_t *mask, const float *x, int64_t m, const float *gate);
    /* weir_lists_put, of places that come in order: it leaves weir_lists.mixed alone. */
    void (*put)(weir_lists *l, weir_neurons_list which, int64_t i, const weir_entry *e);
} weir_scan_kernels;

extern const weir_scan_kernels weir_scan_ref, weir_scan_avx2, weir_scan_avx512;

/* The table that goes with the kernel table of this name (NULL: as weir_kern_pick chooses). */
WEIR_CHECKED weir_status weir_scan_pick(const weir_scan_kernels **out, const char *name, weir_err *err);

#endif
