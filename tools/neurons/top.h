/* neurons/top.h: one run of neuron-top. Whatever the input is (text, a dump, results), it ends in one finished search,
 * from which every output is made:
 *
 *     options.c                                     the command line, and which input it names
 *     from_text.c, from_dump.c, from_results.c      fill weir_top.s
 *     from_weights.c                                adds the tokens that the weights name
 *     present.c                                     writes what was found
 */
#ifndef WEIR_NEURONS_TOP_H
#define WEIR_NEURONS_TOP_H

#include "choose.h"
#include "kept.h"
#include "live.h"
#include "output.h"

/* The values of the options; tools/neuron-top.c has their table. */
typedef struct weir_top_args {
    weir_session_args session;
    weir_opt_list neurons, layers, sites, thresholds;
    int64_t k, quantiles, random, seed, checkpoint, width, limit;
    int sign, rank, weights, correlated, format, sort, color; /* indices of the options' words */
    const char *dedup, *context, *mask, *search, *from, *spool, *out;
    double max_norm_ratio, min_density, max_density;
    bool merge, resume, force;
} weir_top_args;

/* The words of --weights and --correlated. */
enum { WEIR_TOP_AUTO, WEIR_TOP_YES, WEIR_TOP_NO };
#define WEIR_TOP_WORDS "auto|yes|no"

typedef enum weir_top_input { WEIR_TOP_TEXT, WEIR_TOP_DUMP, WEIR_TOP_RESULTS } weir_top_input;

typedef struct weir_top {
    weir_cli *cli;
    weir_top_args *a;
    /* what was asked */
    char *layers, *sites; /* the lists, joined; NULL: not given */
    weir_asks asks;
    weir_masks masks;
    weir_format format;
    weir_top_input input;
    const char *file; /* dump or (first) result */
    weir_neurons_options o;
    weir_neurons_named named[WEIR_NEURONS_MAX_NAMED];
    /* what it is found in */
    weir_session session;
    bool session_open;
    weir_live live;
    weir_neurons_dump *dump;
    weir_neurons *result; /* --search: the result that the text is compared with, or NULL */
    /* what was found */
    weir_neurons *s;
    weir_neurons_about about;
    weir_kept kept;
    bool finished; /* --resume: nothing is left to do */
    char fingerprint[65], *source, *interventions;
    double start;
} weir_top;

/* All return an exit code; an error has been said. */

/* Reads and checks what needs no file but the input's first bytes. */
int weir_top_options(weir_top *r);
/* The neurons that are named one by one get more: means of tokens below `ids`; correlate: their like in the layer. */
int weir_top_name(weir_top *r, const weir_neurons_table *table, int n_tables, int64_t ids, bool correlate);

/* Fill r->s and r->about; r->s is not finished yet. */
int weir_top_from_text(weir_top *r);
int weir_top_from_dump(weir_top *r);
/* r->s is finished. */
int weir_top_from_results(weir_top *r);

int weir_top_open_model(weir_top *r);
/* The model that made a file, if it is at hand: the one that is named (it must be that one), or brook, if the file is
 * of brook. Else r->session.model stays NULL. */
int weir_top_find_model(weir_top *r, const char *fingerprint, const char *name);
/* r->about.source: text_json (weir_session_identity, or NULL) and how the text was cut. */
int weir_top_describe(weir_top *r, const char *text_json, const char *bos, int64_t ctx, int64_t stride);

int weir_top_weights(weir_top *r);
/* Are the edits of the command line those of the run that made the file? Asked before the work is done. */
int weir_top_check_edits(const weir_top *r);

/* Is the output's place free for us? Asked before the work is done. */
int weir_top_check_output(weir_top *r);
/* Writes r->s in the form that was asked for; WEIR_EXIT_FALSE if it met values that are not finite. */
int weir_top_put(weir_top *r);
/* --search: which neurons fire most on the text that r->s was fed. */
int weir_top_put_search(weir_top *r);

#endif
