/* figures/activations/activ.h: what the figures of the kind `activations` share: the dump, the parameters, the sample
 * of rows for statistics. Sums are in float64, as in the template's cells. */
#ifndef WEIR_NOTEBOOK_ACTIV_H
#define WEIR_NOTEBOOK_ACTIV_H

#include "export/kind.h"
#include "page/chart.h"

typedef struct weir_activ {
    weir_nb *nb;
    weir_dump_reader *r;
    int hook; /* that is looked at */
    int64_t rows, width;
    bool has_unit; /* false: the norm of each row is looked at */
    int64_t unit, column;
    int64_t document, max_tokens, max_rows, bins, top, context;
    bool skip_first;
    int64_t block, step; /* the sample: rows [k * step, k * step + block) */
    char label[400];     /* what is looked at, in words */
} weir_activ;

/* Moments of each column of the hook that is looked at, over the sample: of the values that are finite. */
typedef struct weir_activ_moments {
    double *mean, *sd, *kurtosis, *low, *high; /* [width] sd 0: all alike, then kurtosis is NaN; n 0: mean, sd NaN */
    int64_t *n, *highest;                      /* [width] values, and the row of the highest (-1: none) */
    void *room;
} weir_activ_moments;

/* --- values.c. Functions that return int: an exit code; an error has been said. */

int weir_activ_fail(const weir_activ *a, weir_err *err);
/* Is it rows of units, not of heads by keys? */
bool weir_activ_flat(const weir_dump_hook *h);
/* Rows that are read at once, of a hook of this width. */
int64_t weir_activ_block(int64_t width);
/* Which of the rows [row, row + n) do statistics count? */
int weir_activ_counted(const weir_activ *a, int64_t row, int64_t n, bool *counted);
/* What is looked at of these rows: the unit or the norm. */
int weir_activ_values(const weir_activ *a, int64_t row, int64_t n, double *out);
/* The norms of these rows of a hook. */
int weir_activ_norms(const weir_activ *a, int hook, int64_t row, int64_t n, double *out);
/* Hands each block of the sample to `each`, with the rows that count; stops at what is not OK. */
int weir_activ_sample(const weir_activ *a, int hook,
                      int (*each)(void *ctx, int64_t row, int64_t n, const float *x, const bool *counted), void *ctx);
int weir_activ_moments_of(const weir_activ *a, weir_activ_moments *m);
void weir_activ_moments_free(weir_activ_moments *m);

/* --- text.c: tokens */

/* The rows of the document that are drawn: n may be 0. */
int weir_activ_document(const weir_activ *a, int64_t *row, int64_t *n);
/* Tokens of rows, to be freed with weir_activ_words_free: bytes without any are those of an id without a token. */
typedef struct weir_activ_words {
    int32_t *id;
    weir_str *text;
    int64_t n;
} weir_activ_words;
int weir_activ_words_of(const weir_activ *a, int64_t row, int64_t n, weir_activ_words *w);
void weir_activ_words_free(weir_activ_words *w);
/* A scale that holds the values of rows that count; the others may lie beyond its end. */
weir_chart_scale weir_activ_scale(const double *v, const bool *counted, int64_t rows, int64_t columns);

int weir_activ_draw_open(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_activ_draw_strip(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_activ_draw_surprise(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_activ_draw_top(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);       /* top.c */
int weir_activ_draw_units(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);     /* units.c */
int weir_activ_draw_histogram(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers); /* histogram.c */
int weir_activ_draw_map(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);       /* stream.c */
int weir_activ_draw_norms(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);

#endif
