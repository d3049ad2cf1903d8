/* direction/direction.h: what `weir direction` is made of. The map of this directory:
 *
 *   source.c   dumps, their hook, the class of each document, which documents are held out
 *   rows.c     the examples: one pass over the dumps, or over the pairs of two
 *   massive.c  a first row that drowns the others: a remark
 *   methods.c  mean, pca
 *   probe.c    the logistic probe
 *   score.c    accuracy and AUC of a direction
 *   output.c   the safetensors file
 *   show.c     text, JSON
 *
 * An example is a row of the hook (or the mean of a document's rows), its document's class, and its side: training or
 * held out. Passes go over the dumps in their order, and sums are made in double in that order, so results do not
 * depend on threads. Nothing is kept of the examples but, for AUC, a number each.
 */
#ifndef WEIR_DIRECTION_H
#define WEIR_DIRECTION_H

#include "cli/common.h"

enum { WEIR_DIRECTION_MEAN, WEIR_DIRECTION_PCA, WEIR_DIRECTION_PROBE };
#define WEIR_DIRECTION_METHODS "mean|pca|probe"
enum { WEIR_DIRECTION_LAST, WEIR_DIRECTION_ALL, WEIR_DIRECTION_ROWS_MEAN };
#define WEIR_DIRECTION_ROWS "last|all|mean"
enum { WEIR_DIRECTION_AUTO, WEIR_DIRECTION_YES, WEIR_DIRECTION_NO };

typedef struct weir_direction_args {
    weir_out_args out;
    int method, rows, pairs;
    const char *hook, *label, *path;
    int64_t components, seed, threads;
    double held_out, l2;
    bool force;
} weir_direction_args;

enum { WEIR_NEGATIVE, WEIR_POSITIVE, WEIR_CLASSES };
enum { WEIR_TRAINING, WEIR_HELD_OUT, WEIR_BOTH_SIDES };

typedef struct weir_direction_dump {
    const char *path;
    weir_dump_reader *r;
    int hook;
    int64_t first_doc; /* number of document 0 in the whole text */
    int8_t *class;     /* [documents] by --label; -1: the document lacks the field. NULL: all are of class `only` */
    int8_t only;
} weir_direction_dump;

/* How well a direction tells the classes apart on one side. */
typedef struct weir_direction_score {
    double accuracy, auc; /* NaN where a class has no example */
} weir_direction_score;

/* What a linear rule needs besides the direction: positive where direction . x > threshold. */
typedef struct weir_direction {
    weir_cli *cli;
    const weir_direction_args *a;
    weir_direction_dump dump[2];
    int n_dumps;
    const weir_dump_hook *hook; /* of the first dump */
    const char *model, *fingerprint;
    int64_t n;    /* its width */
    bool classes; /* there are two */
    bool pairs;   /* the examples of pca are differences of paired rows */
    int64_t docs[WEIR_CLASSES][WEIR_BOTH_SIDES], rows[WEIR_CLASSES][WEIR_BOTH_SIDES]; /* documents; examples */
    int64_t unlabelled, empty; /* documents that lack the field; that have no row */
    double *mean;              /* [classes, n] of training examples */
    int64_t k;                 /* directions */
    float *vector;             /* [k, n] the result */
    double norm;               /* of the first one */
    double threshold;          /* NaN: no classes */
    double *variance;          /* pca: [k] along each; */
    double total;              /* their sum over all directions */
    int64_t steps;             /* probe: of Newton's method */
    double loss;               /* probe: what was minimised, at its minimum */
    weir_direction_score score[WEIR_BOTH_SIDES];
    char *command_line;
} weir_direction;

/* --- source.c: each returns an exit code; an error has been said */
int weir_direction_open(weir_direction *d);
void weir_direction_close(weir_direction *d);
/* Class and side of a document; class -1: it is left out. */
int weir_direction_class(const weir_direction_dump *u, int64_t doc);
int weir_direction_side(const weir_direction *d, const weir_direction_dump *u, int64_t doc);

/* --- rows.c */

typedef struct weir_example {
    const double *x; /* [n] valid during the call */
    int class, side;
} weir_example;
typedef weir_status weir_example_take(void *ctx, const weir_example *e, weir_err *err);
/* Each example of that side (-1: of both). WEIR_STOP after a signal. */
WEIR_CHECKED weir_status weir_examples_each(const weir_direction *d, int side, weir_example_take *take, void *ctx,
                                            weir_err *err);
/* Each training pair's difference, positive minus negative. */
WEIR_CHECKED weir_status weir_pairs_each(const weir_direction *d, weir_example_take *take, void *ctx, weir_err *err);

/* --- massive.c: says so where the first rows of documents are much longer than the others, and count with them. */
WEIR_CHECKED weir_status weir_direction_note_massive(const weir_direction *d, weir_err *err);

/* --- methods.c, probe.c: vector, threshold and what the method has besides */
WEIR_CHECKED weir_status weir_direction_means(weir_direction *d, weir_err *err);
WEIR_CHECKED weir_status weir_direction_mean(weir_direction *d, weir_err *err);
WEIR_CHECKED weir_status weir_direction_pca(weir_direction *d, weir_err *err);
WEIR_CHECKED weir_status weir_direction_probe(weir_direction *d, weir_err *err);
/* Rounds direction i, x [n], to float32 into d->vector. */
void weir_direction_put(weir_direction *d, int64_t i, const double *x);
/* direction . x, in double. */
double weir_direction_dot(const weir_direction *d, const double *x);

/* --- score.c, output.c, show.c */
WEIR_CHECKED weir_status weir_direction_measure(weir_direction *d, weir_err *err);
int weir_direction_may_save(const weir_direction *d);
int weir_direction_save(const weir_direction *d);
/* All that is known about the direction: keys and values of an open object, as numbers or (`text`) all as strings. */
void weir_direction_facts(const weir_direction *d, weir_jsonw *w, bool text);
void weir_direction_show(const weir_direction *d);

#endif
