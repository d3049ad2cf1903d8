/* neurons/kept.h: a result file and what an interrupted run leaves: NAME.h5, and NAME.h5.part between checkpoints. */
#ifndef WEIR_NEURONS_KEPT_H
#define WEIR_NEURONS_KEPT_H

#include "cli/tool.h"

typedef struct weir_kept {
    const weir_cli *cli;
    const char *path; /* of the result */
    char part[4200];  /* path.part */
    bool resume, force;
    double every; /* seconds between checkpoints */
    double last;  /* when the last one was made */
    int64_t rows; /* kept rows that the last checkpoint has; 0: none was made */
} weir_kept;

/* Is the place of the result free for us? Asked before anything else. A .part in the way is an error unless it is to be
 * gone on with (resume) or replaced (force). */
int weir_kept_check(weir_kept *k);
/* Before the run. *s is fresh and about is what the result will say; with --resume *s is replaced by what was left, and
 * rows says how much that is. *finished: the result is there and whole, nothing is left to do. Both return an
 * exit code; an error has been said. */
int weir_kept_begin(weir_kept *k, weir_neurons **s, const weir_neurons_about *about, bool *finished);
/* Between documents: writes what there is, if it is time (or now). kept: rows fed so far. */
WEIR_CHECKED weir_status weir_kept_checkpoint(weir_kept *k, weir_neurons *s, const weir_neurons_about *about,
                                              int64_t kept, bool now, weir_err *err);
/* The end: writes the result and removes the .part. */
WEIR_CHECKED weir_status weir_kept_commit(weir_kept *k, weir_neurons *s, const weir_neurons_about *about,
                                          weir_err *err);

#endif
