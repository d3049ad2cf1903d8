/* weir/compose.h: how much of what an earlier head or neuron writes into the stream a later one reads, from the weights
 * alone: composition scores (Elhage et al. 2021, "A mathematical framework for transformer circuits", the section on
 * two-layer models).
 *
 *     weir_compose *c;
 *     weir_compose_new(&c, model, WEIR_COMPOSE_RAW, NULL, 0, &err);
 *     if (weir_compose_reads(model, WEIR_COMPOSE_HEADS, 1, WEIR_COMPOSE_HEADS, 4))
 *         weir_compose_heads(c, 1, 4, score, &err);               // [3,H,H]: Q, K, V; heads of layer 1 into those of 4
 *     weir_compose_free(c);
 *
 * With vectors as columns, a head h has two matrices [C,C] of rank D:
 *     W_QK = W_Q^T W_K      score(t, s) = x_t^T W_QK x_s
 *     W_OV = W_O W_V        what position s adds to the stream at t, times the attention that t pays to s
 * and the scores of head 1 into head 2 are, with the Frobenius norm |.|,
 *     Q: |W_QK2^T W_OV1| / (|W_QK2| |W_OV1|)     K: |W_QK2 W_OV1| / (...)     V: |W_OV2 W_OV1| / (|W_OV2| |W_OV1|)
 * They lie in [0, 1]. A neuron has a value v (what it writes) and a key k (what it reads; gated models have another
 * one, of the up projection); they take the places of the matrices:
 *     neuron into head: |W_QK2^T v| / (|W_QK2| |v|), ...     head into neuron: |W_OV1^T k| / (|W_OV1| |k|)
 *     neuron into neuron: k . v / (|k| |v|), the cosine, in [-1, 1]
 * These are the numbers of TransformerLens's all_composition_scores, for the same weights.
 *
 * For matrices and vectors that lie in random directions to one another the mean of the squared score is 1 / C exactly,
 * whatever their singular values (the mean of |A R B|^2 over rotations R is |A|^2 |B|^2 / C): chance is 1 / sqrt(C).
 *
 * Biases have no part in this, and RoPE is left out: W_QK is that of a query and a key at the same position. Key-value
 * heads that are shared by query heads stand for each of them.
 *
 * Where each head of q and k has a norm (Qwen 3), the score is no longer that product: both sides are divided by
 * lengths that differ by token, which these numbers leave out, as they do what the norm before the block divides by,
 * and multiplied by gains, row by row of W_Q and W_K. Raw weights are without these gains, WEIR_COMPOSE_GAIN and
 * WEIR_COMPOSE_FOLDED with them (TransformerLens folds none of them).
 *
 * Sums are in double and in one fixed order: results do not depend on threads or on the kernel table. An object belongs
 * to one thread at a time; threads are used inside.
 */
#ifndef WEIR_COMPOSE_H
#define WEIR_COMPOSE_H

#include "edit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which weights are meant. */
typedef enum weir_compose_weights {
    WEIR_COMPOSE_RAW,   /* as the checkpoint has them */
    WEIR_COMPOSE_GAIN,  /* what reads is multiplied by the gain of the norm before it; what writes, by that of a norm
                           behind the sublayer, where there is one (Gemma 2) */
    WEIR_COMPOSE_FOLDED /* besides, where norms take the mean away (LayerNorm), what reads and what writes lose theirs:
                           the model that TransformerLens makes by default, whose norms have no gain */
} weir_compose_weights;

typedef struct weir_compose weir_compose;

/* m is borrowed. kernel and threads as in weir_run_options. Memory: factors of the two layers that were asked for last:
 * 4 H D C doubles, D rounded up to 16. */
WEIR_API WEIR_CHECKED weir_status weir_compose_new(weir_compose **out, const weir_model *m,
                                                   weir_compose_weights weights, const char *kernel, int threads,
                                                   weir_err *err);
WEIR_API void weir_compose_free(weir_compose *c);
/* From now on the weights are meant with these edits [n] of the model, which are borrowed until c is freed. Before
 * anything is asked. */
WEIR_API void weir_compose_with(weir_compose *c, const weir_edit *const *edits, int n);

typedef enum weir_compose_part { WEIR_COMPOSE_HEADS, WEIR_COMPOSE_NEURONS } weir_compose_part;
/* Does the stream that the part `to` of layer to_layer reads hold what the part `from` of from_layer writes? Of one
 * layer: its neurons read its heads, unless the block is parallel. */
WEIR_API bool weir_compose_reads(const weir_model *m, weir_compose_part from, int64_t from_layer, weir_compose_part to,
                                 int64_t to_layer);
/* Chance: 1 / sqrt(C). */
WEIR_API double weir_compose_chance(const weir_model *m);

/* What of a head, or of a neuron, reads. */
typedef enum weir_compose_input {
    WEIR_COMPOSE_Q,
    WEIR_COMPOSE_K,
    WEIR_COMPOSE_V,
    WEIR_COMPOSE_KEY, /* hook_pre; gated models: the gate */
    WEIR_COMPOSE_UP   /* gated models: hook_pre_linear */
} weir_compose_input;

/* Scores of all heads of a layer into all heads of a later one: out [3,H,H]: input Q, K, V; head of `from`; head of
 * `to`. Fastest when `to` stays the same from call to call. Where a matrix is 0, NaN. Errors (WEIR_E_ARG), here and
 * below: a layer or neuron that the model lacks, neurons that do not ascend, WEIR_COMPOSE_UP of a model that is not
 * gated, parts that are not read (weir_compose_reads). */
WEIR_API WEIR_CHECKED weir_status weir_compose_heads(weir_compose *c, int64_t from, int64_t to, double *out,
                                                     weir_err *err);
/* n neurons of layer `from` into the heads of `to`: unit [n] ascending, out [3,n,H]. */
WEIR_API WEIR_CHECKED weir_status weir_compose_neurons_heads(weir_compose *c, int64_t from, const int64_t *unit,
                                                             int64_t n, int64_t to, double *out, weir_err *err);
/* Heads of layer `from` into n neurons of `to`, whose key or up projection is meant: out [H,n]. */
WEIR_API WEIR_CHECKED weir_status weir_compose_heads_neurons(weir_compose *c, int64_t from, int64_t to,
                                                             weir_compose_input input, const int64_t *unit, int64_t n,
                                                             double *out, weir_err *err);
/* Neurons into neurons: out [n_from,n_to]. */
WEIR_API WEIR_CHECKED weir_status weir_compose_neurons(weir_compose *c, int64_t from, const int64_t *from_unit,
                                                       int64_t n_from, int64_t to, weir_compose_input input,
                                                       const int64_t *to_unit, int64_t n_to, double *out,
                                                       weir_err *err);

#ifdef __cplusplus
}
#endif
#endif
