/* neurons/view.h: a finished search as the outputs of neuron-top see it: which neurons are shown, in which order, and how.
 * An output writes to `out` and returns an exit code; a stream that cannot be written is the caller's to notice. */
#ifndef WEIR_NEURONS_VIEW_H
#define WEIR_NEURONS_VIEW_H

#include "cli/terminal.h"
#include "cli/tool.h"

/* One neuron that is shown. */
typedef struct weir_shown {
    int table;
    int64_t neuron; /* index in the table */
} weir_shown;

typedef struct weir_view {
    const weir_cli *cli;
    const weir_neurons *s; /* finished; about is filled in */
    const weir_shown *shown; /* [n] in the order of the output */
    int64_t n;
    unsigned lists;        /* bit set of 1u << weir_neurons_list: those shown, of the ones that are kept */
    int64_t k;             /* places shown of each list; at most options.k */
    int64_t before, after; /* tokens shown around a place; at most the options' */
    bool whole;            /* the whole document, as far as it is kept */
    const char *input;     /* what the text was, for the head: file names, or the dump's name */
    bool clusters;         /* say how many things the top contexts are */
    weir_colour colour;    /* text only */
    int width;             /* columns of the terminal; text only */
    FILE *out;
} weir_view;

int weir_view_text(const weir_view *v);   /* text.c */
int weir_view_tsv(const weir_view *v);    /* tsv.c: a line for each place */
int weir_view_ndjson(const weir_view *v); /* ndjson.c: a head, then an object for each neuron; tools/neurons/README.md has the
                                             schema, "weir-neurons/1" */
int weir_view_html(const weir_view *v);   /* html.c: one file that needs no network */

#endif
