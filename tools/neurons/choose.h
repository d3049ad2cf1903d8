/* neurons/choose.h: which neurons of a finished search are shown, and in which order. */
#ifndef WEIR_NEURONS_CHOOSE_H
#define WEIR_NEURONS_CHOOSE_H

#include "ask.h"
#include "view.h"

/* In the order of the words of --sort. Highest first, but for MIN (lowest first) and ORDER (as the search has them). */
typedef enum weir_sort {
    WEIR_SORT_ORDER,
    WEIR_SORT_MAX,
    WEIR_SORT_MIN,
    WEIR_SORT_MEAN,
    WEIR_SORT_SD,
    WEIR_SORT_SKEW,
    WEIR_SORT_KURTOSIS,
    WEIR_SORT_DENSITY,
    WEIR_SORT_CLUSTERS
} weir_sort;
#define WEIR_SORT_WORDS "order|max|min|mean|sd|skew|kurtosis|density|clusters"

typedef struct weir_choice {
    const weir_asks *asks; /* n 0: all */
    const char *layers;    /* NULL: all */
    weir_sort sort;
    int64_t limit;                   /* 0: no limit */
    double min_density, max_density; /* share of values above 0 */
} weir_choice;

/* The share of a neuron's values that lie above 0; 0 where it has none. */
double weir_density(const weir_neuron_stats *st);

/* *shown is to be freed. Neurons without the figure that is sorted by (NaN) come last; ties in the search's order. A
 * neuron or a layer that is asked for and not there is WEIR_E_ARG. */
WEIR_CHECKED weir_status weir_choose(const weir_neurons *s, const weir_choice *c, weir_shown **shown, int64_t *n,
                                     weir_err *err);

#endif
