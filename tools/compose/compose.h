/* compose/compose.h: what `weir compose` computes and shows. The map of this directory:
 *
 *   take.c   pairs of layers, one after the other: scores, means, the best pairs
 *   show.c   text and JSON; lines of TSV and NDJSON
 */
#ifndef WEIR_TOOLS_COMPOSE_H
#define WEIR_TOOLS_COMPOSE_H

#include "cli/common.h"
#include "cli/edits.h"
#include "cli/progress.h"
#include "neurons/ask.h"

enum { WEIR_COMPOSE_TEXT, WEIR_COMPOSE_TSV, WEIR_COMPOSE_NDJSON };
enum { WEIR_COMPOSE_INPUTS = WEIR_COMPOSE_UP + 1, WEIR_COMPOSE_PARTS = 2 };
#define WEIR_COMPOSE_KIND_WORDS "all|q|k|v|key|up"

typedef struct weir_compose_args {
    weir_model_args model;
    weir_edit_args edit;
    weir_run_args run;
    weir_out_args out;
    weir_opt_list layers, neurons;
    int kind; /* 0: all, else 1 + a weir_compose_input */
    int weights, format;
    int64_t k, width; /* width 0: as the terminal's */
    const char *path;
    bool force;
} weir_compose_args;

/* A head, or a neuron. */
typedef struct weir_compose_unit {
    weir_compose_part part;
    int64_t layer, unit;
} weir_compose_unit;

typedef struct weir_compose_pair {
    weir_compose_unit from, to;
    double score;
} weir_compose_pair;

/* All pairs of which the same is said: heads, or neurons, into an input. */
typedef struct weir_compose_group {
    weir_compose_part from;
    weir_compose_input input;
    int64_t pairs;     /* that have a score */
    double sum;        /* of magnitudes */
    double *layer_sum; /* [L,L] from, to */
    int64_t *layer_pairs;
    weir_compose_pair *top; /* [k] the largest magnitudes first; equal ones in the order of layers and units */
    int64_t n_top;
} weir_compose_group;

typedef struct weir_composing {
    weir_cli *cli;
    const weir_compose_args *a;
    weir_model *model;
    const weir_model_info *info;
    weir_compose *c;
    weir_edits edits;
    bool *layer; /* [L] chosen */
    weir_asks asks;
    int64_t **unit; /* [L] the neurons of a layer that are asked for, ascending; NULL: none are */
    int64_t *units; /* [L] how many */
    weir_compose_group group[WEIR_COMPOSE_PARTS][WEIR_COMPOSE_INPUTS];
    int64_t scored; /* pairs so far, of all groups, also those whose score is NaN */
    FILE *out;
} weir_composing;

extern const char *const weir_compose_input_name[WEIR_COMPOSE_INPUTS];

/* take.c. Room for the groups; all scores, each handed to weir_compose_put_pair. */
bool weir_composing_room(weir_composing *t);
WEIR_CHECKED weir_status weir_composing_take(weir_composing *t, weir_progress *bar, weir_err *err);
void weir_composing_free(weir_composing *t);

/* show.c. TSV's first line; a line of TSV or NDJSON, nothing in the other forms; the result of text or --json. */
void weir_compose_put_head(const weir_composing *t);
void weir_compose_put_pair(const weir_composing *t, const weir_compose_group *g, const weir_compose_pair *p);
void weir_compose_put(const weir_composing *t);

#endif
