/* weir/parts.h: the final stream taken apart: what each edit of the stream, each head and each neuron adds to it, and
 * how much of a token's logit each of them is (direct logit attribution).
 *
 *     weir_parts *p;
 *     weir_parts_new(&p, model, NULL, 0, &err);
 *     weir_parts_begin(p, &rows, &err);                    // values of a pass at n positions, and a token for each
 *     weir_parts_edits(p);                                 // [n, E]: embedding, attention and MLP of each layer
 *     weir_parts_heads(p, 5, NULL, 0, head, &err);         // [n, H + 1]: heads of layer 5, and its output bias
 *     weir_parts_neurons(p, 5, unit, 2, neuron, &err);     // [n, 3]: two neurons of layer 5, and its output bias
 *     weir_parts_sums(p);                                  // [n]: do they add up?
 *     weir_parts_free(p);
 *
 * The final stream x (the last layer's hook_resid_post) is a sum: the embedding, a learned position embedding, and for
 * each layer attn_out and mlp_out, exactly as they are added to the stream (norms behind a sublayer are part of them).
 * Added in fp32 in the model's own order they give x to the bit (contract section 1):
 *
 *     x = ((embed + pos) + attn_0) + mlp_0 + ...          in parallel blocks (embed + pos) + (attn_0 + mlp_0) + ...
 *
 * attn_out in turn is the sum over heads of z_h W_O[h], and the bias of W_O; mlp_out the sum over neurons of activation
 * times value (the neuron's column of the down projection), and its bias. Behind a norm of the sublayer's output (Gemma
 * 2) the parts go through that norm with its statistics held as they were in the pass: through its gain, divided by its
 * scale.
 *
 * A token's logit before a soft cap is, with the final norm's scale held as it was,
 *
 *     logit = dir . (x - mean(x)) / scale + bias           (weir_lens_directions)
 *
 * and so the sum over the parts of dir . (part - mean(part)) / scale, and a constant; only a LayerNorm has the mean.
 * The gain and the bias of the final norm are applied, nothing is folded (nostalgebraist 2020; Elhage et al. 2021, "A
 * mathematical framework for transformer circuits"; Wang et al. 2022 for attribution of a difference of two logits).
 *
 * Parts are computed in double, from fp32 values and weights, each dot product over 8 lanes that are folded in one
 * fixed order: results do not depend on threads, on how many positions come at once, or on the kernel table. An object
 * belongs to one thread at a time; threads are used inside.
 */
#ifndef WEIR_PARTS_H
#define WEIR_PARTS_H

#include "edit.h"
#include "lens.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_part_kind {
    WEIR_PART_EMBED,
    WEIR_PART_POS_EMBED, /* models with learned positions */
    WEIR_PART_ATTN,
    WEIR_PART_MLP,
    WEIR_PART_REST, /* x minus all of those: 0 to the bit, unless an intervention wrote into the stream itself, or a
                       file kept rounded values */
    WEIR_PART_HEAD, /* unit: the head */
    WEIR_PART_ATTN_BIAS, /* of W_O, with that of a norm behind it */
    WEIR_PART_NEURON,    /* unit: of the MLP's hidden layer */
    WEIR_PART_MLP_BIAS
} weir_part_kind;

typedef struct weir_part {
    weir_part_kind kind;
    int layer;    /* -1: outside the blocks */
    int64_t unit; /* -1: none */
} weir_part;

/* One part at one position. */
typedef struct weir_part_value {
    double norm;   /* |part| */
    double cosine; /* with x; NaN if one of them is 0 */
    double share;  /* part . x / |x|^2: the shares of the edits sum to 1. NaN if x is 0 */
    double logit;  /* of the target, or target minus against; NaN where there is no target */
} weir_part_value;

typedef struct weir_parts weir_parts;

/* m is borrowed. kernel and threads as in weir_run_options. */
WEIR_API WEIR_CHECKED weir_status weir_parts_new(weir_parts **out, const weir_model *m, const char *kernel, int threads,
                                                 weir_err *err);
WEIR_API void weir_parts_free(weir_parts *p);

/* What a pass had at n positions, and what is asked about them. Layers are pointers because they may lie anywhere. */
typedef struct weir_parts_rows {
    int64_t n;
    const float *embed;           /* [n,C] hook_embed */
    const float *pos_embed;       /* [n,C] hook_pos_embed; NULL in models without it */
    const float *const *attn_out; /* [L] of [n,C] */
    const float *const *mlp_out;  /* [L] of [n,C] */
    const float *stream;          /* [n,C] x: the last layer's hook_resid_post */
    /* Of the layers whose heads or neurons are asked about; NULL, or NULL for a layer: none. */
    const float *const *z;          /* [L] of [n,H*D] attn.hook_z */
    const float *const *post;       /* [L] of [n,F] mlp.hook_post */
    const float *const *attn_scale; /* [L] of [n] ln1_post.hook_scale, with z; models that have this norm */
    const float *const *mlp_scale;  /* [L] of [n] ln2_post.hook_scale, with post */
    const int32_t *target;  /* [n] token whose logit is taken apart; -1: none; WEIR_LENS_FINAL_TOP. NULL: none at all */
    const int32_t *against; /* [n] token whose logit is taken away from it; -1: none. NULL: none at all */
    const weir_edit *const *edits; /* [n_edits] with which the pass was made: heads and neurons have their weights */
    int n_edits;
} weir_parts_rows;

/* Looks at n positions: computes their edits and sums. rows is copied; what it points to must live until the next begin
 * or free. Memory: n (2.5 C + 4 E) doubles and a thread 1.5 C, besides that of a lens. Errors (WEIR_E_ARG): a value
 * that is missing, a token outside the vocabulary. */
WEIR_API WEIR_CHECKED weir_status weir_parts_begin(weir_parts *p, const weir_parts_rows *rows, weir_err *err);

/* The edits in the order in which they are added, with WEIR_PART_REST as the last: their number E, the same for all
 * positions of a model; part [E] borrowed from p. */
WEIR_API int64_t weir_parts_list(const weir_parts *p, const weir_part **part);
/* [n, E], borrowed until the next begin or free. */
WEIR_API const weir_part_value *weir_parts_edits(const weir_parts *p);

/* Heads of a layer: head [n_heads] in any order, or NULL with 0 for all H. out [n, n_heads + 1] (or H + 1): the last
 * one is the part of the bias, 0 where there is none. All heads and it sum to attn_out up to the rounding of fp32. Only
 * what is asked is computed; W_O is read from the map, nothing is packed. Memory: a thread D * C floats. Errors
 * (WEIR_E_ARG): a head or layer that the model lacks, a layer without z. */
WEIR_API WEIR_CHECKED weir_status weir_parts_heads(const weir_parts *p, int64_t layer, const int64_t *head,
                                                   int64_t n_heads, weir_part_value *out, weir_err *err);
/* Likewise neurons: unit [n_units] ascending, or NULL with 0 for all F; out [n, n_units + 1] (or F + 1). Memory: a
 * thread 128 * C floats. */
WEIR_API WEIR_CHECKED weir_status weir_parts_neurons(const weir_parts *p, int64_t layer, const int64_t *unit,
                                                     int64_t n_units, weir_part_value *out, weir_err *err);

/* How the parts of one position add up. Logits are the target's, or target minus against; NaN where there is none. */
typedef struct weir_parts_sum {
    bool exact;              /* the edits, added in fp32 in the model's own order, are x to the bit */
    int32_t target, against; /* as asked, WEIR_LENS_FINAL_TOP resolved; -1: none */
    double norm;             /* |x| */
    double scale;            /* of the final norm */
    double share;            /* sum of the shares of the edits, WEIR_PART_REST included: 1 */
    double constant;         /* the final norm's bias through the unembedding, and the head's own bias */
    double parts;            /* constant + the edits' logits, in their order */
    double logit;            /* the model's own, before a soft cap: what the parts must come to */
    double capped;           /* the model's own, after it; = logit where there is no cap */
    double difference;       /* parts - logit */
    double tolerance;        /* 1e-4 of the largest magnitude among the logits and the parts: fp32 differs by less */
    bool holds;              /* |difference| <= tolerance; true where there is no target */
} weir_parts_sum;
/* [n], borrowed until the next begin or free. */
WEIR_API const weir_parts_sum *weir_parts_sums(const weir_parts *p);

#ifdef __cplusplus
}
#endif
#endif
