/* search/mean.h: WEIR_RANK_MEAN: what lists rank is the mean of a document. */
#ifndef WEIR_SEARCH_MEAN_H
#define WEIR_SEARCH_MEAN_H

#include "search/impl.h"

WEIR_CHECKED weir_status weir_mean_new(weir_mean *m, int64_t n, weir_err *err);
void weir_mean_free(weir_mean *m);

/* Before a table's rows are looked at: which of them (of s->pass.taken[m]) begin a document, and the keys of those that
 * end there, in s->pass.ended. */
WEIR_CHECKED weir_status weir_mean_ends(weir_neurons *s, const weir_ntable *t, int64_t m, weir_err *err);
/* Values of neurons [first, first + nb) in the taken rows [r, r + m): x [m, WEIR_NEURONS_BLOCK]. */
void weir_mean_add(const weir_neurons *s, weir_ntable *t, int64_t first, int64_t nb, const float *x, int64_t r,
                   int64_t m);
/* After that, for all neurons: the document of the last of the m taken rows is under way. */
void weir_mean_go_on(const weir_neurons *s, weir_ntable *t, int64_t m);
/* Ends the document that is under way. */
WEIR_CHECKED weir_status weir_mean_settle(weir_neurons *s, weir_ntable *t, weir_err *err);

#endif
