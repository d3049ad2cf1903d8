/* edit/rome.h: the inside of the editor.
 *
 *   rome.c            the object: options and checks
 *   rome_edit.c       one request or several to an update of one layer
 *   rome_layer.c      a layer's keys and residuals to its update
 *   rome_prefixes.c   texts in front of the prompt
 *   rome_rows.c       a request as rows of tokens: where the subject ends, where the loss looks
 *   rome_pass.c       the run of a request's rows: what does not depend on delta once, the rest again and again
 *   rome_value.c      the search for v*
 *   rome_spread.c     an update over several layers
 *   solve.c           keys and residuals to an update
 *   covariance.c      second moments
 */
#ifndef WEIR_ROME_IMPL_H
#define WEIR_ROME_IMPL_H

#include <weir/grad.h>
#include <weir/rome.h>

#include "../base/mem.h"
#include "../model/spec.h"
#include "covariance.h"

/* --- rome_rows.c */

/* One text of a request: BOS, prefix, prompt, and all but the last token of the target. Its loss looks at the last
 * n_loss positions: the first of them gives the target's first token. */
typedef struct weir_rome_row {
    int32_t *id; /* [n] */
    int64_t n;
    int64_t subject; /* index of the token that holds the subject's last byte */
    int64_t n_loss;  /* 0: the row of the KL term, whose loss looks at `subject` */
    int64_t at;      /* index of that token among the suffix rows of all */
} weir_rome_row;

typedef struct weir_rome_rows {
    weir_rome_row *row; /* [n]: first the bare prompt, then the prefixed ones, last the KL row */
    int64_t n;
    int32_t *target; /* [n_target] */
    int64_t n_target;
    bool shared;     /* bare prompt: the subject's last token holds bytes behind it too */
    int64_t suffix;  /* tokens from the subjects' last ones on, all rows together */
    int64_t longest; /* tokens of the longest row */
    weir_arena arena;
} weir_rome_rows;
WEIR_CHECKED weir_status weir_rome_rows_make(weir_rome_rows *r, const weir_tokenizer *tok, const weir_rome_prefixes *p,
                                             const weir_rome_request *q, bool bos, weir_err *err);
/* Can what is written at the subject change the answer? Behind the model's last layer no token reads another's stream,
 * so that there the subject has to be the prompt's end: WEIR_E_ARG. */
WEIR_CHECKED weir_status weir_rome_rows_reach(const weir_rome_rows *r, const weir_rome_request *q, int64_t layer,
                                              int64_t n_layers, weir_err *err);
void weir_rome_rows_free(weir_rome_rows *r);

/* --- rome_pass.c */

/* Values of the edit's layer that a pass over the suffix rows leaves. n: rows of the request. */
typedef struct weir_rome_seen {
    float *key;   /* [n,F] hook_post at the subjects */
    float *value; /* [n,C] W key + b, before a norm behind it */
    float *mid;   /* [n,C] the stream that the value is added to; only where a norm stands behind it */
    float *post;  /* [suffix,C] the stream behind the layer, all suffix rows */
} weir_rome_seen;

typedef struct weir_rome_pass weir_rome_pass;
/* layer: where keys are read and, unless `residual`, delta is added to the value. */
WEIR_CHECKED weir_status weir_rome_pass_new(weir_rome_pass **out, const weir_model *m, const weir_rome_options *o,
                                            int64_t layer, bool residual, weir_err *err);
void weir_rome_pass_free(weir_rome_pass *p);
/* Runs the rows up to the layer. What is seen is borrowed until the next call. With gradients = false only this can be
 * asked. */
WEIR_CHECKED weir_status weir_rome_pass_begin(weir_rome_pass *p, const weir_rome_rows *r, bool gradients,
                                              const weir_rome_seen **seen, weir_err *err);
/* C and V of its model. */
int64_t weir_rome_pass_width(const weir_rome_pass *p);
int64_t weir_rome_pass_vocabulary(const weir_rome_pass *p);
/* The rest of the pass with delta [C] added at every row's subject. */
WEIR_CHECKED weir_status weir_rome_pass_try(weir_rome_pass *p, const float *delta, weir_err *err);
/* Log-probabilities [V] behind the KL row's subject, as that pass had them. */
WEIR_CHECKED weir_status weir_rome_pass_log_q(weir_rome_pass *p, float *log_q, weir_err *err);
/* The loss of that pass and d_delta [C], its gradient. log_q: what the KL row is held to; NULL (the pass that gave it):
 * no KL term. */
typedef struct weir_rome_loss {
    double nll, kl; /* means, without weights */
} weir_rome_loss;
WEIR_CHECKED weir_status weir_rome_pass_loss(weir_rome_pass *p, const float *log_q, double kl_weight,
                                             weir_rome_loss *loss, float *d_delta, weir_err *err);

/* --- rome_value.c: delta [C] by Adam; v0: the length that clamp and decay refer to. */
WEIR_CHECKED weir_status weir_rome_search(weir_rome_pass *p, const weir_rome_options *o, double v0, float *delta,
                                          weir_rome_report *report, weir_err *err);

/* --- rome.c */
struct weir_rome {
    const weir_model *model;
    const weir_spec *spec;
    const weir_tokenizer *tok;
    const weir_rome_prefixes *prefixes;
    weir_rome_options o;  /* layer, covariance and edits are copies */
    weir_rome_pass *pass; /* of the last layer of the list */
    double **strong;      /* [n_layers] AlphaEdit's directions, made when first needed */
    int64_t *n_strong;
    weir_arena arena;
};

/* The update of one layer out of its requests. */
typedef struct weir_rome_layer {
    int at;         /* in the list of layers */
    int64_t n;      /* requests */
    double *k, *r;  /* [n,F] keys, [n,C] residuals */
    double *key_at; /* [F] or NULL: weir_solve.at */
    float *u, *v;   /* [n,F], [n,C] */
    double *k_u;    /* [n] */
} weir_rome_layer;
WEIR_CHECKED weir_status weir_rome_layer_make(weir_rome_layer *l, const weir_rome *w, int at, int64_t n, weir_err *err);
void weir_rome_layer_free(weir_rome_layer *l);
/* u, v and k_u from k and r; q names requests in errors. */
WEIR_CHECKED weir_status weir_rome_layer_solve(weir_rome *w, weir_rome_layer *l, const weir_rome_request *q,
                                               weir_err *err);
weir_update weir_rome_layer_update(const weir_rome *w, const weir_rome_layer *l);
/* ||dW|| / ||W|| */
WEIR_CHECKED weir_status weir_rome_layer_share(const weir_rome *w, const weir_rome_layer *l, double *share,
                                               weir_err *err);

/* Does the method search at the block's output and spread the update over its layers? */
static inline bool weir_rome_spreads(weir_rome_method m)
{
    return m == WEIR_ROME_MEMIT || m == WEIR_ROME_ALPHAEDIT;
}
/* dst [width] = mean of the rows of x that are requests' texts: all alike, or (halves) the bare prompt as much as all
 * prefixed ones together. */
void weir_rome_mean(double *dst, const float *x, int64_t texts, int64_t width, bool halves);
double weir_rome_length(const double *x, int64_t n);

/* --- rome_spread.c: z [n,C]: what the stream behind the last layer shall be at each subject. */
WEIR_CHECKED weir_status weir_rome_spread(weir_rome *w, const weir_rome_request *q, const weir_rome_rows *rows,
                                          int64_t n, const double *z, weir_edit **out, weir_rome_report *report,
                                          weir_err *err);

#endif
