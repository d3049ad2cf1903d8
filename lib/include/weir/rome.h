/* weir/rome.h: facts edited by low-rank updates of MLP down projections: ROME (Meng, Bau, Andonian and Belinkov,
 * "Locating and Editing Factual Associations in GPT", arXiv 2202.05262), r-ROME (Gupta, Baskaran and Anumanchipalli,
 * "Rebuilding ROME", arXiv 2403.07175), MEMIT (Meng et al., arXiv 2210.07229), EMMET (Gupta et al., arXiv 2403.14236)
 * and AlphaEdit (Fang et al., arXiv 2410.02355).
 *
 *     weir_rome_prefixes *p;
 *     weir_rome_prefixes_sample(&p, model, tok, NULL, seed, &err);
 *     weir_covariance *c;
 *     weir_covariance_new(&c, moments, F, count, 1e-6, &err);                // of layer 5's keys
 *     weir_rome_options o; weir_rome_options_init(&o);
 *     o.layer = (const int64_t[]){5}, o.n_layers = 1, o.covariance = (const weir_covariance *[]){c};
 *     weir_rome *w;
 *     weir_rome_new(&w, model, tok, p, &o, &err);
 *     const weir_rome_request q = {"{} rises from the", "Mount Hood", "Caucasus"};
 *     weir_rome_report r;
 *     weir_edit *e;
 *     weir_rome_make(w, &q, 1, &e, &r, &err);
 *
 * The down projection of a layer is v = W k + b: the key k [F] is what hook_post holds, the value v [C] what it writes.
 * An edit makes the model answer `target` where `prompt` ends: it looks for a value v* at the subject's last token, and
 * changes W by a matrix of low rank so that the subject's key gives v* and other keys change as little as their second
 * moments C = E[k k^T] allow:  W' = W + R M^-1 (C^-1 K)^T,  M = K^T C^-1 K + rho 1  (K keys, R = v* - v).
 */
#ifndef WEIR_ROME_H
#define WEIR_ROME_H

#include "facts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* prompt holds "{}" once, where the subject stands; target is what shall follow the prompt, with or without a space in
 * front. Borrowed. */
typedef struct weir_rome_request {
    const char *prompt, *subject, *target;
} weir_rome_request;

/* --- prefixes: short texts by the model itself, put in front of the prompt ("PREFIX. PROMPT"), so that the key is not
 * that of one sentence. The prompt alone is always the first. */
typedef struct weir_rome_prefixes weir_rome_prefixes;
typedef struct weir_rome_lengths {
    const int64_t *tokens; /* [n] length of each group's texts, in new tokens */
    const int64_t *texts;  /* [n] number of each group's texts */
    int n;
} weir_rome_lengths;
/* Sampled from the 5 likeliest tokens at temperature 1, from the beginning of a text (BOS; a model without one begins
 * with its end-of-text token, or else with a token drawn from its vocabulary). lengths NULL: ten of 4 and ten of 9 new
 * tokens, as the reference has it. Line breaks become spaces, special tokens are dropped. The same texts for the same
 * seed and model. */
WEIR_API WEIR_CHECKED weir_status weir_rome_prefixes_sample(weir_rome_prefixes **out, const weir_model *m,
                                                            const weir_tokenizer *tok, const weir_rome_lengths *lengths,
                                                            uint64_t seed, weir_err *err);
/* Given texts [n], copied; n = 0: the prompt alone. */
WEIR_API WEIR_CHECKED weir_status weir_rome_prefixes_new(weir_rome_prefixes **out, const char *const *text, int64_t n,
                                                         weir_err *err);
WEIR_API void weir_rome_prefixes_free(weir_rome_prefixes *p);
WEIR_API int64_t weir_rome_prefixes_n(const weir_rome_prefixes *p);
WEIR_API const char *weir_rome_prefix(const weir_rome_prefixes *p, int64_t i); /* borrowed */

/* --- second moments of keys, factored once for any number of edits. Immutable; shared freely. */
typedef struct weir_covariance weir_covariance;
/* sum [F,F]: sum over count keys of k k^T, upper triangle. C = sum / count + ridge mean(diagonal) 1. Copied. Errors
 * (WEIR_E_ARG): not positive definite (too few keys: at least 2 F are needed; more ridge). */
WEIR_API WEIR_CHECKED weir_status weir_covariance_new(weir_covariance **out, const double *sum, int64_t f,
                                                      int64_t count, double ridge, weir_err *err);
/* C = 1: keys are taken as if all directions were alike. Neighbours suffer. */
WEIR_API WEIR_CHECKED weir_status weir_covariance_identity(weir_covariance **out, int64_t f, weir_err *err);
WEIR_API void weir_covariance_free(weir_covariance *c);

/* --- the editor */
typedef enum weir_rome_method {
    WEIR_ROME_CONSISTENT, /* "r-rome": key, value and v0 are means over the prefixes everywhere, the same mean: the bare
                             prompt counts as much as all prefixed ones together, as in MEMIT's key, because a subject
                             that begins a text can have a key far from all others, and the bare prompt is what is
                             asked */
    WEIR_ROME_COMPAT,     /* "rome": as kmeng01/rome: u from the mean key, the rest from the bare prompt */
    WEIR_ROME_COMPAT_R,   /* "compat-r-rome": as rebuilding-rome: plain means, but v0 from the bare prompt */
    WEIR_ROME_PROMPT,     /* "p-rome": the bare prompt everywhere */
    WEIR_ROME_MEMIT,      /* several layers, several facts: rho = `weight`; searches at the last layer's output */
    WEIR_ROME_EMMET,      /* one layer, several facts: rho = `weight`; the rest as r-rome */
    WEIR_ROME_ALPHAEDIT,  /* within the null space of C: eigenvalues below `null_below` */
    WEIR_ROME_METHODS
} weir_rome_method;
WEIR_API const char *weir_rome_method_name(weir_rome_method m);

typedef struct weir_rome_options {
    weir_rome_method method;
    const int64_t *layer; /* [n_layers] ascending; several: MEMIT and AlphaEdit, spread over them */
    int n_layers;
    const weir_covariance *const *covariance; /* [n_layers] */
    int64_t steps;     /* forward passes of a round of the search at most, 2 and more; default 20 */
    int64_t rounds;    /* of the search at most: one whose target (all its tokens together) has p < 0.9 when a round is
                          over goes on from where it is, with Adam's memory cleared: what that keeps of the first, steep
                          passes holds it on a plateau. The last pass of all only measures. Default 5
                          (WEIR_ROME_COMPAT, WEIR_ROME_COMPAT_R: 1, as published) */
    double rate;       /* Adam's; default 0.5 */
    double kl;         /* weight of KL(edited || before) after the subject in "SUBJECT is a"; default 0.0625 */
    double decay;      /* weight of ||delta|| / ||v0||^2; default 0.5 */
    double clamp;      /* ||delta|| <= clamp ||v0||; default 4 (MEMIT, AlphaEdit: 0.75) */
    double enough;     /* the search ends below this loss; default 0.05 */
    double weight;     /* of C against the keys; default 15000 (EMMET: 1000) */
    double null_below; /* AlphaEdit; default 0.02 */
    double l2;         /* AlphaEdit; default 10 */
    bool bos;          /* rows begin with BOS */
    const weir_edit *const *edits; /* [n_edits] that the model has already */
    int n_edits;
    int threads; /* as in weir_run_options, these three */
    const char *kernel;
    int64_t memory;
} weir_rome_options;
/* Defaults of r-ROME; weir_rome_options_for: of a method. */
WEIR_API void weir_rome_options_init(weir_rome_options *o);
WEIR_API void weir_rome_options_for(weir_rome_options *o, weir_rome_method method);

/* One pass of the search. */
typedef struct weir_rome_step {
    double loss, nll, kl, decay; /* loss = nll + kl + decay, weights included */
    double p;                    /* exp(-nll): geometric mean probability of the target */
    double delta;                /* ||delta|| of this pass */
} weir_rome_step;

enum { WEIR_ROME_STEPS_MAX = 1000, WEIR_ROME_ROUNDS_MAX = 100 };

/* What an edit of one request was. */
typedef struct weir_rome_report {
    int64_t subject_at;  /* bare prompt: index of the token that holds the subject's last byte, BOS counted */
    bool subject_shared; /* that token also holds bytes behind the subject */
    int64_t target_tokens;
    int64_t steps;        /* of all rounds */
    weir_rome_step *step; /* [steps], owned by the report: weir_rome_report_free */
    double v0, delta;     /* norms */
    double k_u;           /* the key along the (unit) direction u that W changes in: small means explosive */
    double k_cos;         /* cosine of the bare prompt's key and the mean key */
    double lambda;        /* ||Lambda|| = ||dW|| of a rank-one edit (for several requests: this one's row of V) */
    double share;         /* ||dW|| / ||W||, all requests together, largest of the layers */
    bool clamped;         /* delta stands at the clamp in the end */
    bool converged;       /* the last loss is below `enough`, or the whole target likelier than not: p^tokens > 1/2 */
} weir_rome_report;
WEIR_API void weir_rome_report_free(weir_rome_report *r);

typedef struct weir_rome weir_rome;
/* Everything is borrowed but the options' numbers. One thread's at a time; several editors share model, tokenizer,
 * prefixes and covariances. Errors (WEIR_E_ARG): options out of range, a layer that the model lacks, a covariance of
 * another width. */
WEIR_API WEIR_CHECKED weir_status weir_rome_new(weir_rome **out, const weir_model *m, const weir_tokenizer *tok,
                                                const weir_rome_prefixes *p, const weir_rome_options *o, weir_err *err);
WEIR_API void weir_rome_free(weir_rome *w);
/* Finds the update for requests [n]; n > 1 for MEMIT, EMMET and AlphaEdit. report [n] or NULL; zeroed here. *out is the
 * caller's. Errors (WEIR_E_ARG): a prompt without "{}" or with other braces, an empty subject or target, a target whose
 * first token joins the prompt's last; a prompt longer than the context; the model's last layer, unless the prompt ends
 * with the subject: what is written there reaches no later token; a value that is not finite, and an update of zeros,
 * be it that the loss is below `enough` from the start (nothing is made); requests whose keys are so alike that their
 * equations cannot be told apart, with both subjects named. A search that ends at the clamp with p below one half is no
 * error: the report says so. */
WEIR_API WEIR_CHECKED weir_status weir_rome_make(weir_rome *w, const weir_rome_request *q, int64_t n, weir_edit **out,
                                                 weir_rome_report *report, weir_err *err);

/* --- evaluation: every record edited from the model as it is (and the edits of the options), and scored. */

typedef struct weir_rome_eval_options {
    int jobs;   /* records at a time, each with one thread of its own; 0: all processors. Results do not depend on it */
    bool known; /* records whose new answer the model prefers already are left out */
    bool random;          /* control: Lambda replaced by a random vector of its length, */
    uint64_t seed;        /* drawn with this and the record's number */
    const weir_str *text; /* [n_text] whose perplexity is compared */
    int64_t n_text;
    int64_t tokens; /* greedy tokens behind each generation prompt, for their entropy; 0: none */
} weir_rome_eval_options;

/* What became of record `index`. Owned by the caller of the callback: valid during the call. */
typedef struct weir_rome_result {
    int64_t index;
    weir_status status; /* not WEIR_OK: the record could not be edited, err says why, the rest is zero */
    bool left_out;      /* by `known`: only `before` is there */
    weir_err err;
    weir_fact_scores before, after;
    weir_rome_report report;
    double text_before, text_after;       /* mean -log p of the text's tokens; NaN: none */
    double entropy_before, entropy_after; /* of generations, bits: (2/3 H2 + 4/3 H3) / 2 of their words' pairs and
                                             triples, as kmeng01/rome has it; NaN: none */
} weir_rome_result;

/* Records [first, end) of facts, in their order, each given to `take` once; a status of it other than WEIR_OK ends the
 * evaluation and is returned. So does a record that memory does not suffice for (WEIR_E_NOMEM). o->threads is ignored:
 * each record has one. */
WEIR_API WEIR_CHECKED weir_status weir_fact_list_eval(const weir_model *m, const weir_tokenizer *tok,
                                                      const weir_rome_prefixes *p, const weir_rome_options *o,
                                                      const weir_fact_list *facts, int64_t first, int64_t end,
                                                      const weir_rome_eval_options *how,
                                                      weir_status (*take)(void *user, const weir_rome_result *r),
                                                      void *user, weir_err *err);

#ifdef __cplusplus
}
#endif
#endif
