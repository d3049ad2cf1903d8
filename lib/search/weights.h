/* search/weights.h: tokens read from the weights, as a search keeps them (weir/neurons.h says what they are).
 *
 * weights.c has them, weights_find.c finds them in a model, files write and fill them:
 *
 *     weir_weights_new(&w, s, n, &err);                        // no table has lists yet
 *     weir_weights_room(w, t, side, &err);                     // both ends of one side of table t
 *     weir_weight_token *list = weir_weights_list(w, t, side, positive);   // [neurons of t, n] to fill or to write
 *     weir_weights_check(w, vocabulary, &err);                 // what came from a file
 *     s->weights = w;
 */
#ifndef WEIR_SEARCH_WEIGHTS_H
#define WEIR_SEARCH_WEIGHTS_H

#include "search/impl.h"

enum { WEIR_WEIGHTS_MOST = 100 }; /* tokens at an end */

typedef struct weir_weights_table {
    int64_t neurons;
    weir_weight_token *list[WEIR_SIDES][2]; /* [neurons, n]; NULL: no such side. [0]: the lowest, [1]: the highest */
} weir_weights_table;

struct weir_weights {
    int64_t n; /* tokens at each end */
    int n_tables;
    weir_weights_table *table;
};

/* Empty, for the tables of s. n outside 1 .. WEIR_WEIGHTS_MOST: WEIR_E_ARG. */
WEIR_CHECKED weir_status weir_weights_new(weir_weights **out, const weir_neurons *s, int64_t n, weir_err *err);
/* Lists of one side of table t, all ids -1 and scores NaN. */
WEIR_CHECKED weir_status weir_weights_room(weir_weights *w, int t, weir_weight_side side, weir_err *err);
/* [neurons of t, w->n], or NULL. */
weir_weight_token *weir_weights_list(const weir_weights *w, int t, weir_weight_side side, bool positive);
/* WEIR_E_FORMAT unless every list is what a search can have made: ids below most_id, -1 behind the last; in order. */
WEIR_CHECKED weir_status weir_weights_check(const weir_weights *w, int64_t most_id, weir_err *err);
/* Merging: what only `from` has is copied, what both have must be the same bits (WEIR_E_ARG). */
WEIR_CHECKED weir_status weir_weights_merge(weir_neurons *to, const weir_neurons *from, weir_err *err);

#endif
