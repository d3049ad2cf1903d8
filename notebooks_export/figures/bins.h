/* figures/bins.h: how values lie: quantiles and histograms, to the bit as numpy has them in the templates' cells. */
#ifndef WEIR_NOTEBOOK_BINS_H
#define WEIR_NOTEBOOK_BINS_H

#include "export/kind.h"
#include "page/chart.h"

void weir_nb_sort(double *v, int64_t n);
/* Between the two values around it; NaN: there is none. sorted [n]. */
double weir_nb_quantile(const double *sorted, int64_t n, double share);

/* Edges [n + 1] of equal bins, as numpy.linspace has them. low == high: half a unit to both sides. low > high: 0 to 1.
 */
void weir_nb_edges(double low, double high, int64_t n, double *edge);
/* The bin of a finite value: one at an edge belongs to the bin behind it, the greatest to the last. */
int64_t weir_nb_bin_of(const double *edge, int64_t n, double v);

/* Narrow bins of a file, joined until they are wide enough to be seen. */
typedef struct weir_nb_bins {
    int64_t n;
    double *edge;   /* [n + 1] exact edges, but for the least and the greatest value at the ends */
    int64_t *count; /* [n] */
    double *height; /* [n] share of all values, per unit */
} weir_nb_bins;

/* Of `fine` bins with these counts and edges: bins that are a `bars`-th of the range wide or wider. low and high: the
 * least and the greatest value; no value: n is 0, and edge[0] low. False: out of memory. Freed in every case. */
bool weir_nb_bins_join(weir_nb_bins *b, int fine, const int64_t *count, double (*edge)(int bin), double low,
                       double high, int64_t bars);
void weir_nb_bins_free(weir_nb_bins *b);
/* An axis from end to end of the bins, with a little room. */
void weir_nb_bins_hold(const weir_nb_bins *b, weir_chart_axis *across);
/* bin_edges, bin_counts, bin_height */
void weir_nb_bins_put(const weir_nb_bins *b, weir_jsonw *numbers);

#endif
