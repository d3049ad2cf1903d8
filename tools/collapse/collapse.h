/* collapse/collapse.h: what `weir collapse` measures and shows. The map of this directory:
 *
 *   grid.c     a run for each cell of the grid, and the numbers of its matrices
 *   random.c   the model with random weights
 *   probe.c    hulls and stretches of the whole models
 *   show.c     text and TSV
 *   json.c     JSON
 *
 * A matrix is a window of the text: a row for each token that --positions chose, at one place of the stream.
 */
#ifndef WEIR_TOOLS_COLLAPSE_H
#define WEIR_TOOLS_COLLAPSE_H

#include "cli/session.h"

enum { WEIR_COLLAPSE_TRAINED, WEIR_COLLAPSE_RANDOM, WEIR_COLLAPSE_KINDS };
enum { WEIR_COLLAPSE_BARE, WEIR_COLLAPSE_SKIP, WEIR_COLLAPSE_MLP, WEIR_COLLAPSE_WHOLE, WEIR_COLLAPSE_CELLS };
extern const char *const weir_collapse_kinds[WEIR_COLLAPSE_KINDS], *const weir_collapse_cells[WEIR_COLLAPSE_CELLS];
enum { WEIR_COLLAPSE_TEXT, WEIR_COLLAPSE_TSV };
enum { WEIR_COLLAPSE_ALL, WEIR_COLLAPSE_GRID, WEIR_COLLAPSE_HULL, WEIR_COLLAPSE_STRETCH };
#define WEIR_COLLAPSE_WHAT_WORDS "all|grid|hull|lipschitz"
enum { WEIR_COLLAPSE_BOTH_KINDS = 2 };

typedef struct weir_collapse_args {
    weir_session_args session;
    int what, weights, format;
    bool no_norms, force;
    int64_t seed, singular, directions, tokens, iterations;
    double deviation;
    const char *save, *out;
} weir_collapse_args;

/* Sums over the windows at one place of the stream. */
typedef struct weir_collapse_line {
    int64_t windows, lost; /* lost: their numbers are not finite, or the matrix is 0 */
    double composite, composite_rest, composite_share;
    double frobenius, frobenius_rest, frobenius_share;
    double cosine;
    double *value, *rest; /* [singular] singular values of the matrix and of its rest */
} weir_collapse_line;

typedef struct weir_collapse weir_collapse;

/* A token of the text. */
typedef struct weir_collapse_place {
    int64_t doc, pos;
    int32_t id;
} weir_collapse_place;

/* What is asked of a whole model besides. */
typedef struct weir_collapse_probe {
    weir_collapse *c;
    weir_hull *hull;
    /* tokens drawn from the text, each as likely as any other */
    int64_t seen, n;
    uint64_t state;
    int64_t *slot;           /* [batch] where a row of the pass goes; -1: nowhere */
    weir_collapse_place *at; /* [tokens] */
    float *x;                /* [L, tokens, C] what the MLPs read there */
    weir_lipschitz *stretch; /* [L, tokens] */
} weir_collapse_probe;

typedef struct weir_collapse_cell {
    weir_collapse *c;
    weir_run *run; /* NULL: not asked for */
    weir_attach attach;
    weir_collapse_line *line; /* [L + 1] the stream before the first block, and behind each */
    double *sums;             /* store of the lines' singular values */
} weir_collapse_cell;

struct weir_collapse {
    weir_cli *cli;
    const weir_collapse_args *a;
    weir_session_args session; /* those of the command line, with a run's share of --memory */
    weir_session s;
    weir_model *random; /* NULL: not asked for */
    weir_collapse_cell cell[WEIR_COLLAPSE_KINDS][WEIR_COLLAPSE_CELLS];
    weir_collapse_probe probe[WEIR_COLLAPSE_KINDS];
    float *rows;                 /* [batch, C] the kept rows of a window */
    double *singular;            /* [singular] for work */
    int64_t windows, short_ones; /* short: of a single row, which says nothing */
    int64_t rows_seen;
    FILE *out;
    double start;
};

/* --- random.c: opens c->random. An exit code; an error has been said. */
int weir_collapse_random(weir_collapse *c);

/* --- grid.c */
int weir_collapse_runs(const weir_collapse *c); /* how many are asked for */
/* An exit code; an error has been said. */
int weir_collapse_open(weir_collapse *c);
weir_status weir_collapse_forward(weir_collapse *c, const weir_batch *b, weir_err *err);
/* Ends the hooks of all runs; what those of the main one have to tell goes to out (NULL: nowhere). */
weir_status weir_collapse_finish(weir_collapse *c, FILE *out, weir_err *err);
void weir_collapse_close(weir_collapse *c);
/* The whole model: with its own weights, or what there is. */
const weir_collapse_cell *weir_collapse_main(const weir_collapse *c);
/* Mean over the windows that count; NaN: there are none. */
double weir_collapse_mean(const weir_collapse_line *l, double sum);
/* The order in which the rest vanishes at a line: ln(e[l + 1] / e[l]) / ln(e[l] / e[l - 1]) of the mean relative rests
 * e; 1 is a rate, 3 the paper's. NaN: there is none. */
double weir_collapse_order(const weir_collapse *c, const weir_collapse_cell *cell, int64_t line);

/* --- probe.c: before the run is prepared; behind the last pass. An exit code; an error has been said. */
int weir_collapse_probe_open(weir_collapse *c, int kind, weir_run *run);
int weir_collapse_probe_end(weir_collapse *c, int kind);
void weir_collapse_probe_close(weir_collapse_probe *p);
/* Of a layer's tokens the one with the largest factor; NULL: there is none. */
const weir_lipschitz *weir_collapse_widest(const weir_collapse *c, int kind, int64_t layer, double *mean);
/* Does what a softmax mixed lie in its hull everywhere? WEIR_EXIT_FALSE if not, and it has been said where. */
int weir_collapse_check(const weir_collapse *c);

/* --- show.c, json.c */
void weir_collapse_put(const weir_collapse *c);
void weir_collapse_put_json(const weir_collapse *c);

#endif
