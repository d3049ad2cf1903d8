/* weir/lens.h: the residual stream read as words: rows of it through the final norm and the unembedding (the logit
 * lens: nostalgebraist, "interpreting GPT: the logit lens", 2020), and what those predictions say, layer by layer.
 *
 *     weir_lens *l;
 *     weir_lens_new(&l, model, NULL, 0, &err);
 *     weir_lens_top(l, x, n, 10, id, logprob, &err);               // the likeliest tokens of any rows [n,C]
 *     weir_lens_measure(l, &what, &out, &err);                     // every statistic of a stack of rows
 *     weir_lens_free(l);
 *
 * The steps and their order of arithmetic are those of the model's own end (contract section 1): statistics of the
 * final norm are taken of the row itself, gain and bias are applied, nothing is folded or centred, a soft cap is
 * applied. So the lens of the last layer's hook_resid_post is the model's logits bit for bit. Results do not depend on
 * threads, on how many rows are asked for at once, or on the kernel table. A lens is independent of any run and belongs
 * to one thread at a time; threads are used inside.
 */
#ifndef WEIR_LENS_H
#define WEIR_LENS_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_lens weir_lens;

/* m is borrowed. kernel and threads as in weir_run_options. Memory: see weir_lens_measure; besides, the unembedding,
 * which is packed for all runs of the model. */
WEIR_API WEIR_CHECKED weir_status weir_lens_new(weir_lens **out, const weir_model *m, const char *kernel, int threads,
                                                weir_err *err);
WEIR_API void weir_lens_free(weir_lens *l);
/* Logits of n rows: x [n,C], out [n,V]. */
WEIR_API WEIR_CHECKED weir_status weir_lens_logits(weir_lens *l, const float *x, int64_t n, float *out, weir_err *err);
/* What each token's logit gains from n directions, x [n,C], written into a stream whose scale is 1: WEIR_LENS_GAIN
 * below, through the unembedding, without a soft cap. out [n,V]. */
WEIR_API WEIR_CHECKED weir_status weir_lens_scores(weir_lens *l, const float *x, int64_t n, float *out, weir_err *err);
/* The k likeliest tokens of each row, best first, and their log-probabilities (of the softmax over all V): id [n,k],
 * logprob [n,k]. 1 <= k <= V. Equal logits: the lower id first. Logits that are NaN are not ranked; places that stay
 * empty have id -1 and NaN. */
WEIR_API WEIR_CHECKED weir_status weir_lens_top(weir_lens *l, const float *x, int64_t n, int64_t k, int32_t *id,
                                                float *logprob, weir_err *err);

/* --- a stack of rows: the same positions at several places of the stream */

/* How a row meets the final norm. */
typedef enum weir_lens_norm {
    WEIR_LENS_RECOMPUTE = 0, /* statistics of the row itself: the lens */
    WEIR_LENS_CACHED,        /* divided by the final row's scale (a LayerNorm still takes the row's own mean away): the
                                row's part in the final logits; never call this a lens of the layer */
    WEIR_LENS_NONE,          /* the row as it is: no norm, no gain, no bias */
    WEIR_LENS_GAIN /* a direction: its own mean taken away (LayerNorm), times the gain; nothing is divided, no bias */
} weir_lens_norm;

typedef struct weir_lens_row {
    const float *x; /* [n,C] */
    int prev;       /* row of the stack, before this one, that kl_prev compares with; -1: none, kl_prev is NaN */
    weir_lens_norm norm;
} weir_lens_row;

/* As a target: the token that the final row finds likeliest; the one that the row itself does. */
enum { WEIR_LENS_FINAL_TOP = -2, WEIR_LENS_ROW_TOP = -4 };

typedef struct weir_lens_what {
    const weir_lens_row *row; /* [n_rows]; the last one is the final row (WEIR_LENS_RECOMPUTE) */
    int n_rows;
    int64_t n;             /* positions of each row */
    const int32_t *target; /* [n, n_targets]: tokens asked about; -1: none (NaN, rank 0); WEIR_LENS_FINAL_TOP,
                              WEIR_LENS_ROW_TOP */
    int n_targets;         /* 0 .. 8 */
    int64_t k;             /* likeliest tokens of each row: 0 .. V */
    int64_t vocab;         /* ids from here on are padding and left out of everything, as if their logits were -inf; 0:
                              all V count, as the model itself has it */
    bool no_softcap;       /* leave out a soft cap: raw logits */
} weir_lens_what;

/* Where results go; each may be NULL: it is then not computed. p is the row's distribution, f the final row's, q that
 * of the row `prev`; logarithms are natural (nats). Accumulated in double over fixed pieces of the vocabulary. A row
 * with a logit that is NaN or +inf (or whose logits are all -inf) has NaN everywhere and rank 0, and so has what is
 * compared with it; its likeliest tokens are those of weir_lens_top. A logit of -inf is a probability of 0; KL is +inf
 * where the second distribution gives 0 to what the first does not. */
typedef struct weir_lens_out {
    float *logit, *logprob; /* [n_rows, n, n_targets] */
    int32_t *rank;   /* [n_rows, n, n_targets]: 1 + how many tokens are likelier; of equal ones the lower id is */
    float *entropy;  /* [n_rows, n]: -sum p ln p */
    float *kl_final; /* [n_rows, n]: KL(f || p) = sum f (ln f - ln p); exactly 0 in the final row */
    float *kl_prev;  /* [n_rows, n]: KL(p || q) = sum p (ln p - ln q) */
    float *jsd;      /* [n_rows, n]: Jensen and Shannon's divergence of p and f: (KL(p || m) + KL(f || m)) / 2, m = (p
                        + f) / 2; in [0, ln 2] (Lin 1991), exactly 0 in the final row */
    float *log_z;    /* [n_rows, n]: ln sum exp logit */
    int32_t *top_id; /* [n_rows, n, k], best first, as weir_lens_top has them */
    float *top_logprob; /* [n_rows, n, k] */
} weir_lens_out;

/* Memory: logits of all n_rows rows for a block of positions, at most 64 MiB together or one position's; and that is
 * all, however large n is. Errors (WEIR_E_ARG): a prev that does not stand before its row, counts out of range, a
 * target outside the vocabulary. */
WEIR_API WEIR_CHECKED weir_status weir_lens_measure(weir_lens *l, const weir_lens_what *what, const weir_lens_out *out,
                                                    weir_err *err);

/* Directions of the unembedding as the final norm's gain leaves them: what a row of the stream is multiplied with, once
 * it is centred (LayerNorm) and divided by its scale, to give the token's logit before a soft cap: dir [n,C], and the
 * constant part bias [n] (the norm's bias through the unembedding, plus the head's own bias). So
 *   logit(token) = dir . (x - mean(x)) / scale + bias
 * in exact arithmetic. id [n], each in [0, V). */
WEIR_API WEIR_CHECKED weir_status weir_lens_directions(const weir_model *m, const int32_t *id, int64_t n, float *dir,
                                                       double *bias, weir_err *err);
/* The final norm's statistics of rows x [n,C]: mean [n] (0 where the norm has none) and scale [n], as
 * ln_final.hook_scale has it; either may be NULL. */
WEIR_API WEIR_CHECKED weir_status weir_lens_scale(weir_lens *l, const float *x, int64_t n, float *mean, float *scale,
                                                  weir_err *err);

#ifdef __cplusplus
}
#endif
#endif
