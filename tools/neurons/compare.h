/* neurons/compare.h: two results of neuron-top side by side, for `weir diff`:
 *
 *     compare_about.c    what they say of themselves: model, text, options, counts
 *     compare.c          what they say of each neuron that both have
 *     diff.c             the two results' files, and what is printed
 */
#ifndef WEIR_NEURONS_COMPARE_H
#define WEIR_NEURONS_COMPARE_H

#include <weir/weir.h>

/* In what two results can differ about a neuron. */
typedef enum weir_aspect {
    WEIR_ASPECT_LISTS,     /* places of a list: value, document, position, count, and the tokens around them */
    WEIR_ASPECT_COUNTS,    /* values that are finite, that are not, that are above each threshold */
    WEIR_ASPECT_MOMENTS,   /* mean, sd, skew, kurtosis, min, max */
    WEIR_ASPECT_HISTOGRAM, /* values by bin */
    WEIR_ASPECT_SAMPLES,   /* places of the bands and of the random sample */
    WEIR_ASPECT_WEIGHTS,   /* tokens read from the weights */
    WEIR_ASPECT_NAMED,     /* means by token, correlated neurons, values around places */
    WEIR_ASPECTS
} weir_aspect;
const char *weir_aspect_name(int aspect);

/* A hook point that both results have. */
typedef struct weir_table_diff {
    int table[2];
    int64_t n, only[2];               /* neurons that both have; that one of them has alone */
    int64_t *unit;                    /* [n] */
    uint8_t *differ;                  /* [n] bit set of 1u << weir_aspect; 0: the same */
    int64_t count[WEIR_ASPECTS], any; /* neurons that differ: in each, and in anything */
    double
        largest; /* |a - b| of values at the same rank of a list, of mean, sd, min or max; infinite: one is no number */
    int64_t largest_unit;
    const char *largest_in; /* "top", "mean", ...; NULL: there is no such difference */
} weir_table_diff;

/* The two tables, table[0] of s[0] and table[1] of s[1]. Bits are compared; NaN equals NaN. What only one result has
 * the room for (longer lists, other samples) is not compared: the options differ then, and weir_results_said says it.
 */
WEIR_CHECKED weir_status weir_compare_tables(const weir_neurons *const s[2], weir_table_diff *d, weir_err *err);
void weir_table_diff_free(weir_table_diff *d);

/* Calls `put` for each thing that the results say differently of themselves: what it is, and both values as text. */
typedef void weir_said_fn(void *user, const char *what, const char *a, const char *b);
void weir_results_said(const weir_neurons *const s[2], weir_said_fn *put, void *user);

#endif
