/* health/health.h: what `weir health` measures and shows. The map of this directory:
 *
 *   dump.c     rows of the stream out of a dump
 *   measure.c  rows of the stream to RMS, massive dimensions, massive positions, values that are not finite
 *   median.c   medians, exact and of any number of values
 *   show.c     text, TSV, NDJSON, JSON
 *
 * Massive activations are those of Sun et al. 2024, "Massive activations in large language models": a few dimensions,
 * at a few positions (the first one, a first full stop or newline), that are a thousand times larger than the others.
 */
#ifndef WEIR_HEALTH_H
#define WEIR_HEALTH_H

#include "cli/session.h"
#include "median.h"

enum { WEIR_HEALTH_LAYER, WEIR_HEALTH_POSITION, WEIR_HEALTH_DIM, WEIR_HEALTH_TOKEN };
#define WEIR_HEALTH_PER_WORDS "layer|position|dim|token"
enum { WEIR_HEALTH_TEXT, WEIR_HEALTH_TSV, WEIR_HEALTH_NDJSON };

typedef struct weir_health_args {
    weir_session_args session;
    weir_opt_list layers;
    double dim_ratio, norm_ratio;
    int64_t k, width; /* width 0: as the terminal's */
    int per, format;
    const char *from, *out;
    bool force;
} weir_health_args;

/* A row of the text. */
typedef struct weir_health_place {
    int64_t doc, pos;
    int32_t id;
} weir_health_place;

/* The stream before a layer, or behind the last one. */
typedef struct weir_health_line {
    char name[24]; /* "L3", "out" */
    const weir_point *point;
    int64_t rows; /* that are finite */
    double sum, max;
    weir_health_place max_at;
    weir_bins bins; /* of RMS */
    double median;  /* of the window that ended last */
    int64_t nan, inf;
    weir_health_place first; /* element that is not finite, if there is one: */
    int64_t first_dim;
    int64_t massive_dims, massive_rows; /* dimensions that are massive at some position; rows that are massive */
} weir_health_line;

/* A dimension of a line. */
typedef struct weir_health_dim {
    int64_t rows, first; /* in which it is massive; how many of them begin a window */
    float value;         /* the largest of them in magnitude, */
    double ratio;        /* as so many times its row's median magnitude */
    weir_health_place at;
} weir_health_dim;

/* A token, where it begins a window or where it does not. */
typedef struct weir_health_token {
    int64_t rows, massive; /* in the text; massive in some line */
    double ratio;          /* the largest norm, as so many times its window's median, */
    int line;              /* and where that was */
    weir_health_place at;
} weir_health_token;

/* Rows of the window that is being read. */
typedef struct weir_health_window {
    int64_t n;
    weir_health_place *place; /* [ctx] */
    bool *first;              /* [ctx] begins the window */
    double *rms;              /* [lines, ctx]; NaN: not finite */
    int64_t *massive;         /* [ctx] lines in which the row is massive; once the window has ended */
} weir_health_window;

typedef struct weir_health {
    weir_cli *cli;
    const weir_health_args *a;
    weir_session s;
    const char *dump; /* NULL: a text is run */
    struct weir_health_dump *from;
    const char *interventions; /* of the dump: JSON */
    weir_selector *sel; /* the layers */
    weir_health_line *line;
    int n_lines;
    weir_health_dim *dim;     /* [lines, C] */
    weir_health_token *token; /* [V, 2]: later in a window, and as its first */
    uint8_t *token_line;      /* [V, 2, lines] the token is massive there */
    double *batch;            /* [lines, batch] RMS of the kept rows of the pass */
    double *some;             /* [max(C, ctx)] for medians */
    weir_health_window w;
    int64_t rows, windows;
    FILE *out;
    double start;
} weir_health;

/* Sets the lines that --layer asks for; returns an exit code; an error has been said. */
int weir_health_choose_lines(weir_health *h);

/* dump.c: opens h->dump and its model; reads it all. They return an exit code; an error has been said. */
int weir_health_open_dump(weir_health *h);
int weir_health_read_dump(weir_health *h);
void weir_health_close_dump(weir_health *h);

/* The next row of the window; its RMS in each line is then set in h->w.rms, by weir_health_value. */
void weir_health_add(weir_health *h, const weir_health_place *at, bool first);
/* Counts a line's row; returns its RMS. NaN: it is not finite. */
double weir_health_value(weir_health *h, int line, const float *x, bool first, const weir_health_place *at);
/* The run's hook that reads the lines. */
extern const weir_hook_class weir_health_reader;
/* After a pass: its kept rows. Windows that end in it are finished, and their positions shown if that was asked for. */
void weir_health_take(weir_health *h, const weir_batch *b);
/* Ends the window, if one is open. */
void weir_health_end(weir_health *h);
/* The median RMS of a line: exact if the text was one window, else within 0.2 %. NaN: no row is finite. */
double weir_health_median(const weir_health *h, int line);

/* --per position: the window that ends. Text that is too wide for the terminal has a page for some of the lines, then
 * one for the next. */
void weir_health_put_window(const weir_health *h);
/* Everything else, in the form that was asked for. False: out of memory. */
bool weir_health_put(const weir_health *h);

#endif
