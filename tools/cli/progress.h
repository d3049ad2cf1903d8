/* cli/progress.h: one line on the terminal that says how far a run is, how fast, and how long it still takes. Nothing
 * is drawn when stderr is no terminal. */
#ifndef WEIR_CLI_PROGRESS_H
#define WEIR_CLI_PROGRESS_H

#include "tool.h"

typedef struct weir_progress {
    bool shown; /* may be drawn at all */
    bool drawn; /* stands on the terminal now */
    double start, last;
} weir_progress;

/* Seconds of a clock that never goes back. */
double weir_now(void);

/* Becomes cli->progress, so that messages take it off the line first. */
void weir_progress_start(weir_progress *p, weir_cli *cli);
/* share of the work done in [0, 1], or -1 when unknown; tokens: run so far, -1 where none are run. Draws at most ten times a second. */
void weir_progress_update(weir_progress *p, double share, int64_t tokens);
/* NULL is fine. */
void weir_progress_clear(weir_progress *p);
/* Clears, and leaves cli. */
void weir_progress_stop(weir_progress *p, weir_cli *cli);

/* n with commas between thousands, into buf; returns buf. */
const char *weir_commas(int64_t n, char buf[32]);
/* x with that many significant digits, zeros at its end included, so that columns of numbers line up; into buf; returns
 * buf. sign: also a plus. */
const char *weir_rounded(double x, int digits, bool sign, char buf[32]);

#endif
