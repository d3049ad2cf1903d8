/* search/list_rank.h: the order of a list's entries. */
#ifndef WEIR_SEARCH_LIST_RANK_H
#define WEIR_SEARCH_LIST_RANK_H

#include <math.h>

#include "search/impl.h"

/* `which` is known where these are called; when all are inline, nothing is left of the questions about it. */
#define WEIR_INLINE __attribute__((always_inline)) static inline

/* What a list ranks by: the higher, the better. */
WEIR_INLINE float figure(weir_neurons_list which, float value)
{
    return which == WEIR_NEURONS_BOTTOM ? -value : which == WEIR_NEURONS_ABS ? fabsf(value) : value;
}

WEIR_INLINE bool better(weir_neurons_list which, float a, weir_place at_a, float b, weir_place at_b)
{
    const float x = figure(which, a), y = figure(which, b);
    return x > y || (x == y && weir_place_before(at_a, at_b));
}

#endif
