/* weir/sparsity.h: how sparse the values of a model are over a text: exact zeros, values below thresholds, the neurons
 * that fire never, always or most, what two consecutive tokens share, the thresholds that make a wanted part of the
 * values small, and what an MLP's output loses without its small neurons. One pass over the text, in memory that
 * depends on the model alone.
 *
 *     weir_sparsity_options o; weir_sparsity_options_init(&o);
 *     weir_sparsity *s;
 *     weir_sparsity_new(&s, model, &o, &err);             // a line for each layer's mlp.hook_post
 *     weir_sparsity_attach(s, run, &err);                 // behind the hooks that change values
 *     ... weir_run_forward(run, ...) for the text ...
 *     weir_sparsity_finish(s, threads, &err);             // the curves
 *     for (int i = 0; i < weir_sparsity_lines(s); i++)
 *         ... weir_sparsity_line_of(s, i), weir_sparsity_active_of(s, i, t), ... ;
 *     weir_sparsity_free(s);
 *
 * Counts are whole numbers. Sums are in double precision, each a chain in the order of the neurons and then of the
 * rows, so that no result depends on batches, threads or the kernel table. Rows with a NaN or an infinity are left out
 * and counted. One thread at a time; the run must not outlive the object.
 */
#ifndef WEIR_SPARSITY_H
#define WEIR_SPARSITY_H

#include "run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_sparsity weir_sparsity;

enum { WEIR_SPARSITY_THRESHOLDS = 16, WEIR_SPARSITY_SAMPLE = 4096 };

typedef struct weir_sparsity_options {
    const char *layers;  /* as in weir_selector_build; NULL: all */
    const char *sites;   /* NULL: "post". Points of rank 2 */
    const double *below; /* [n_below] thresholds t >= 0, ascending. A value is small where |x| < t, for t = 0 where it
                            is 0; else its neuron is active in the row. Default: 0, 0.01, 0.1, 1 */
    int n_below;
    int64_t sample; /* rows that an MLP's output is taken apart in, for the curve of mlp.hook_post; 0: no curve */
    const weir_activation *act;    /* of the run; NULL: the model's */
    const weir_edit *const *edits; /* [n_edits] of the run: what they do to the down projection counts. Borrowed */
    int n_edits;
} weir_sparsity_options;
WEIR_API void weir_sparsity_options_init(weir_sparsity_options *o);

/* Errors: a selector that matches nothing, scores or other points with heads, thresholds that do not ascend. */
WEIR_API WEIR_CHECKED weir_status weir_sparsity_new(weir_sparsity **out, const weir_model *m,
                                                    const weir_sparsity_options *o, weir_err *err);
WEIR_API void weir_sparsity_free(weir_sparsity *s);
/* It reads what the hooks before it left; rows that are context only (weir_rows.keep) are not counted. */
WEIR_API WEIR_CHECKED weir_status weir_sparsity_attach(weir_sparsity *s, weir_run *r, weir_err *err);
/* Behind the last pass, once: the curves, from the weights and the sample. Memory: one layer's down projection in fp32.
 */
WEIR_API WEIR_CHECKED weir_status weir_sparsity_finish(weir_sparsity *s, int threads, weir_err *err);

WEIR_API int weir_sparsity_lines(const weir_sparsity *s);

/* A hook point, over all rows. Means are NaN where nothing was counted. */
typedef struct weir_sparsity_line {
    const weir_point *point;
    int64_t rows, lost; /* rows that count; rows with a value that is not finite */
    int64_t zeros;      /* values that are exactly 0 */
    double mean, sd;    /* of all values */
    double kurtosis;    /* of all values: m4 / m2^2 (3: a normal distribution) */
    double hoyer;       /* mean over rows of (sqrt n - |x|_1 / |x|_2) / (sqrt n - 1): 0 all equal, 1 one alone. Rows of
                           zeros are left out */
} weir_sparsity_line;
WEIR_API weir_sparsity_line weir_sparsity_line_of(const weir_sparsity *s, int line);

/* The active neurons of a line at threshold t of the options. */
enum { WEIR_SPARSITY_QUANTILES = 7 }; /* 0 .05 .25 .5 .75 .95 1 */
typedef struct weir_sparsity_active {
    double below;
    int64_t small;        /* values below it */
    int64_t dead, always; /* neurons that are active in no row; in every row */
    int64_t
        l0[WEIR_SPARSITY_QUANTILES]; /* active neurons of a row: the ceil(q rows)-th smallest (at least the first) */
    int64_t pairs;                   /* consecutive rows of a document that have an active neuron in either */
    double jaccard;                  /* mean over them of |both| / |either| */
} weir_sparsity_active;
WEIR_API weir_sparsity_active weir_sparsity_active_of(const weir_sparsity *s, int line, int t);
/* [width] rows in which each neuron is active: borrowed. */
WEIR_API const int64_t *weir_sparsity_counts(const weir_sparsity *s, int line, int t);
/* Share of all firings that the ceil(share * width) most active neurons have; NaN: nothing fired. */
WEIR_API WEIR_CHECKED weir_status weir_sparsity_hot(const weir_sparsity *s, int line, int t, double share, double *out,
                                                    weir_err *err);

/* The smallest edge of the histogram of |x| below which at least `share` of the values lie, and how many do: exact, as
 * edges are floats with nine bits behind the leading one (so at most 0.2 % above the quantile). TEAL (Liu et al. 2024)
 * cuts x there. gate: of |act(gate)| in place of |x|, where CATS (Lee et al. 2024) cuts; lines of mlp.hook_post of
 * gated models only. The edge is 0, and small counts the zeros, where that many values are 0; NaN where nothing was
 * counted, or there is no gate. */
typedef struct weir_sparsity_cut {
    double edge;
    int64_t small, values;
} weir_sparsity_cut;
WEIR_API weir_sparsity_cut weir_sparsity_cut_of(const weir_sparsity *s, int line, double share, bool gate);

/* The curve of CETT, cumulative errors of tail truncation (Zhang et al. 2024, "ReLU2 wins"), of a line of
 * mlp.hook_post: without the neurons whose share of the output, |x_f| |W_down,f|, is below an edge, the MLP's output
 * (without its bias) is off by `cett` of its norm, in the mean over the sampled rows, and `share` of the neurons are
 * left out. Ascending, eight edges an octave, from the first that leaves something out to the first that leaves out
 * all. *n = 0: no curve. The sample: the rows with the smallest hash of document and position, the same for every line.
 */
typedef struct weir_sparsity_point {
    double edge, share, cett;
} weir_sparsity_point;
WEIR_API int64_t weir_sparsity_sampled(const weir_sparsity *s, int line);
WEIR_API const weir_sparsity_point *weir_sparsity_curve(const weir_sparsity *s, int line, int64_t *n);
/* Of sampled row i: its document's tag and its position. */
WEIR_API void weir_sparsity_sample_at(const weir_sparsity *s, int line, int64_t i, int64_t *tag, int64_t *pos);

#ifdef __cplusplus
}
#endif
#endif
