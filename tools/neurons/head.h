/* neurons/head.h: what views begin with: which model was run on which text, and how much of it counts. */
#ifndef WEIR_NEURONS_HEAD_H
#define WEIR_NEURONS_HEAD_H

#include "cli/printable.h"
#include "cli/terminal.h"

typedef struct weir_head {
    const weir_neurons *s; /* finished; about is filled in */
    const char *input;     /* what the text was */
    weir_colour colour;
    FILE *out;
    weir_text *text; /* room to work in */
} weir_head;

/* Model and text; tokens, and how many are masked: two lines. */
void weir_head_run(const weir_head *h);
/* "neuron = post, pre": the sites, each once. The line is not ended. */
void weir_head_sites(const weir_head *h);
/* What else a reader must know: interventions, and a run that did not end. A line each, where it is so. */
void weir_head_remarks(const weir_head *h);

/* The same as keys of an object, from "weir" to "masked"; README.md lists them. */
void weir_head_json_run(weir_jsonw *w, const weir_neurons *s, const char *input);
/* The key "tables". */
void weir_head_json_tables(weir_jsonw *w, const weir_neurons *s);

#endif
