/* weir/keyvalue.h: an MLP as a memory of keys and values (Geva, Schuster, Berant and Levy 2021, "Transformer
 * feed-forward layers are key-value memories", arXiv 2012.14913).
 *
 * Neuron i of a layer is a memory: its key k_i (a row of the first projection; gated models have two, gate and up)
 * meets what the MLP reads, which gives its coefficient m_i (hook_post: gated, act(gate) * up), and its value v_i (its
 * column of the down projection) is added to the stream so many times: mlp_out = sum m_i v_i (and a bias). How the
 * checkpoint stores the matrices, [out, in] or [in, out], does not show.
 *
 *     weir_memory_values(lens, &ask, side, &err);                // what values and their negatives promote
 *     weir_keyvalue_new(&kv, n_layers, F, V, &err);              // where a layer's prediction comes from
 *     weir_keyvalue_memories(kv, i, top, bottom, &err);
 *     for each pass, for each layer: weir_keyvalue_add(kv, i, &rows, &err);
 *     weir_keyvalue_counts_of(kv, i);
 *     weir_keyvalue_free(kv);
 *     weir_keyvalue_agree(&keys, &figures, &err);                // do keys and values mean the same?
 *
 * What triggers a key comes from a search (weir/neurons.h). Results do not depend on threads, batches or the kernel
 * table.
 */
#ifndef WEIR_KEYVALUE_H
#define WEIR_KEYVALUE_H

#include "edit.h"
#include "lens.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- values as distributions over the vocabulary
 *
 * How a vector x becomes logits, by weir_lens_norm:
 *   WEIR_LENS_NONE       U x: the paper's way. Its "by construction" holds: where two parts of a sum have one likeliest
 *                        token, the sum has it too
 *   WEIR_LENS_GAIN       through the final norm's gain (LayerNorm: without x's mean), as if the scale were 1
 *   WEIR_LENS_RECOMPUTE  through the whole final norm, with x's own statistics, and a soft cap: the logit lens
 * WEIR_LENS_CACHED is an error. Where a norm stands behind the MLP (Gemma 2), a value goes through its gain first, as
 * in the stream; its scale depends on the text and is left out. */

/* What is asked of values, or of their negatives, and where it goes; pointers may be NULL. */
typedef struct weir_memory_side {
    const int32_t *target; /* [n, n_targets] tokens that are ranked; -1: none */
    int64_t n_targets;
    int32_t *top_id;    /* [n, k] the likeliest tokens, best first; of equal ones the lower id. -1: none is left */
    float *top_logprob; /* [n, k] of the softmax over `vocab` tokens; NaN with -1 */
    int32_t *rank;  /* [n, n_targets]: 1 + how many tokens are likelier; of equal ones the lower id is. 0: no target,
                       or a logit that is not finite */
    float *logprob; /* [n, n_targets]; NaN: no target */
} weir_memory_side;

typedef struct weir_memory_ask {
    int64_t layer;
    const int64_t *unit; /* [n] ascending; NULL: all, n = F */
    int64_t n;
    weir_lens_norm norm;
    int64_t k;                     /* 0 .. vocab */
    int64_t vocab;                 /* ids from here on are padding and left out; 0: all V count */
    const weir_edit *const *edits; /* [n_edits] the values are meant with these */
    int n_edits;
} weir_memory_ask;

/* side[0] is about the values, side[1] about their negatives (what a memory does whose coefficient is below 0); a side
 * that asks for nothing costs nothing. Memory: that of weir_lens_top. */
WEIR_API WEIR_CHECKED weir_status weir_memory_values(weir_lens *l, const weir_memory_ask *ask,
                                                     const weir_memory_side side[2], weir_err *err);
/* The likeliest token of n rows x [n,C] of the stream, or of parts of it, read in that way: id [n]; -1: all are NaN. */
WEIR_API WEIR_CHECKED weir_status weir_memory_predict(weir_lens *l, weir_lens_norm norm, int64_t vocab, const float *x,
                                                      int64_t n, int32_t *id, weir_err *err);

/* --- do keys and values mean the same? (section 4 of the paper) */

/* n keys with their k best trigger examples each, best first. */
typedef struct weir_keyvalue_keys {
    int64_t n, k;
    const int32_t *top;  /* [n] the value's likeliest token; -1: none */
    const int32_t *next; /* [n, k] the token behind each trigger; -1: no trigger, or the text ends with it */
    const int32_t *rank; /* [n, k] of that token in the value's distribution; NULL: not known */
} weir_keyvalue_keys;

typedef struct weir_keyvalue_figures {
    int64_t keys;            /* whose best trigger has a next token, and whose value has a likeliest one. Of these: */
    int64_t agree;           /* the two are the same: agreement rate = agree / keys */
    int64_t any;             /* the same for at least one of the k triggers */
    int64_t places, matches; /* triggers with a next token; those where it is the value's likeliest */
    double chance; /* the agreement rate that a random pairing of these keys' triggers and values would have */
    double rank;   /* median rank of the next token of the best trigger; NaN without keys or ranks */
} weir_keyvalue_figures;
WEIR_API WEIR_CHECKED weir_status weir_keyvalue_agree(const weir_keyvalue_keys *keys, weir_keyvalue_figures *out,
                                                      weir_err *err);

/* --- where a layer's prediction comes from (section 5 of the paper): whole numbers, one layer at a time */

typedef struct weir_keyvalue weir_keyvalue;

/* F memories in each of n_layers layers, tokens below V. */
WEIR_API WEIR_CHECKED weir_status weir_keyvalue_new(weir_keyvalue **out, int n_layers, int64_t F, int64_t V,
                                                    weir_err *err);
WEIR_API void weir_keyvalue_free(weir_keyvalue *kv);
/* The likeliest token of each value, top [F], and of its negative, bottom [F]; -1: none. Copied. */
WEIR_API WEIR_CHECKED weir_status weir_keyvalue_memories(weir_keyvalue *kv, int layer, const int32_t *top,
                                                         const int32_t *bottom, weir_err *err);

/* Positions. Likeliest tokens: of the stream before the MLP (in parallel blocks: resid_pre + attn_out), of mlp_out, and
 * of their sum, hook_resid_post; -1: none. */
typedef struct weir_keyvalue_rows {
    int64_t n;
    const int32_t *residual, *mlp, *layer; /* [n] */
    const float *coefficient;              /* [n, F] hook_post */
} weir_keyvalue_rows;

typedef struct weir_keyvalue_counts {
    int64_t rows; /* that have all three predictions; `lost` ones are in nothing else */
    int64_t lost;
    /* The four-way split; the four add up to rows. */
    int64_t residual;    /* the layer predicts what the residual does, and the MLP something else */
    int64_t mlp;         /* what the MLP does, and the residual something else */
    int64_t agreement;   /* what both do */
    int64_t composition; /* what neither does. Of these: */
    int64_t apart;       /* residual and MLP agree with one another (never, but for rounding, where no bias is read) */
    /* Rows in which the MLP predicts what no memory does: */
    int64_t unlike_acting;      /* none as it acts: its value's likeliest token where its coefficient is above 0, its
                                   negative's where it is below; memories of coefficient 0 do not act */
    int64_t unlike_values;      /* none of all values, whatever their coefficients */
    int64_t positive, negative; /* coefficients above and below 0, of rows * F */
    int64_t compared;           /* rows given to weir_keyvalue_add_final. Of these: */
    int64_t residual_final;     /* the residual already predicts what the model does in the end */
    int64_t layer_final;        /* the layer's output does */
} weir_keyvalue_counts;

/* Errors (WEIR_E_ARG): a layer or token that is not there. */
WEIR_API WEIR_CHECKED weir_status weir_keyvalue_add(weir_keyvalue *kv, int layer, const weir_keyvalue_rows *rows,
                                                    weir_err *err);
/* Predictions again, beside those of the model itself; pairs with a -1 are left out. */
WEIR_API WEIR_CHECKED weir_status weir_keyvalue_add_final(weir_keyvalue *kv, int layer, int64_t n,
                                                          const int32_t *residual, const int32_t *layer_top,
                                                          const int32_t *final, weir_err *err);
WEIR_API weir_keyvalue_counts weir_keyvalue_counts_of(const weir_keyvalue *kv, int layer);

#ifdef __cplusplus
}
#endif
#endif
