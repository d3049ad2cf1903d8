/* neurons/search.h: --search TEXT: which neurons fire most on this text.
 *
 * The text is a search of its own, over all neurons, with lists of one place and no collapsing (weir_neurons_options: k
 * = 1, dedup none, rank max): fed like any other. What is shown are the neurons, ranked by that place's value; with a
 * result of a larger text beside it by how unusual the value is there: z = (value - mean) / sd.
 */
#ifndef WEIR_NEURONS_SEARCH_H
#define WEIR_NEURONS_SEARCH_H

#include "view.h"

typedef struct weir_search_view {
    const weir_cli *cli;
    const weir_neurons *text;   /* finished; lists of at least one place for each of `lists` */
    const weir_neurons *result; /* finished, or NULL. A neuron that it does not have, or whose sd is 0 or unknown, has
                                   no z and is listed behind all that have */
    const char *asked;          /* the text itself */
    const char *beside;         /* the result's name, or NULL */
    unsigned lists;             /* bit set of 1u << weir_neurons_list: a section each */
    int64_t k;                  /* neurons of a section */
    weir_colour colour;         /* text only */
    int width;                  /* columns of the terminal; text only */
    FILE *out;
} weir_search_view;

/* Return WEIR_EXIT_OK, or WEIR_EXIT_FAILED with *err set (memory). */
int weir_search_text(const weir_search_view *v, weir_err *err);
int weir_search_tsv(const weir_search_view *v, weir_err *err);
int weir_search_ndjson(const weir_search_view *v, weir_err *err);

#endif
