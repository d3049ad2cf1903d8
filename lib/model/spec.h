/* model/spec.h: what the one forward interprets: a model's block as data, and its weights on demand. */
#ifndef WEIR_SPEC_H
#define WEIR_SPEC_H

#include <weir/edit.h>
#include <weir/hook.h>

#include "../kernels/kernels.h"

typedef enum weir_positions { WEIR_POS_LEARNED, WEIR_POS_ROPE } weir_positions;

/* The resolved description of an open model: family constants with the checkpoint's numbers filled in. */
typedef struct weir_spec {
    int64_t L, C, F, H, K, D, V, ctx;
    bool rms;               /* norms: RMS, else LayerNorm */
    float eps, norm_offset; /* gain = norm_offset + w */
    bool parallel;          /* attention and MLP both read the block's input; ln2 still has weights of its own */
    bool post_norms;        /* ln1_post, ln2_post (sandwich) */
    bool qk_norms;          /* q_norm, k_norm: of each head, before RoPE */
    weir_positions positions;
    int64_t rot;           /* RoPE: dimensions turned, even, <= D */
    const float *inv_freq; /* [rot/2], scaled */
    float rope_factor;     /* multiplies cos and sin */
    float attn_scale, attn_softcap;
    weir_act act;
    bool gated;
    float embed_scale;   /* 1: none; fp32(sqrt(C)), as Hugging Face has it when it computes in fp32 */
    float logit_softcap; /* 0: none */
} weir_spec;

typedef struct weir_normw {
    const float *w, *b; /* [C] fp32; b NULL where the family has none; w NULL: the norm is absent */
} weir_normw;
typedef struct weir_linear {
    const weir_panels *w; /* NULL: absent */
    const float *bias;    /* [N] fp32 or NULL */
} weir_linear;
typedef struct weir_layer {
    weir_normw ln1, ln1_post, ln2, ln2_post;
    weir_normw q_norm, k_norm; /* [D], one for all heads */
    weir_linear q, k, v, o;    /* C->H*D, C->K*D, C->K*D, H*D->C; rows in the Hugging Face order */
    weir_linear pre, up, down; /* C->F (gate, or the only one), C->F (gated only), F->C */
    int64_t window;            /* 0: none */
} weir_layer;

const weir_spec *weir_model_spec(const weir_model *m);

/* --- weights are leased: what is not packed yet is packed (under a lock) and stays at least until the lease is given
 * back. room: bytes of packed weights (block types: of their pages in the map) that the model may have in memory,
 * INT64_MAX: any number. To keep to it, layers and parts of the head that nobody leases are released first; what others
 * lease may come on top. drop: release it, if nobody else leases it. */
WEIR_CHECKED weir_status weir_model_layer(const weir_model *m, int64_t layer, int64_t room, const weir_layer **out,
                                          weir_err *err);
void weir_model_layer_done(const weir_model *m, int64_t layer, bool drop);

/* Rows [first, first + n) of the unembedding, which is packed in weir_model_head_parts parts. */
typedef struct weir_head {
    const weir_panels *w;
    int64_t first, n;
} weir_head;
int64_t weir_model_head_parts(const weir_model *m);
WEIR_CHECKED weir_status weir_model_head(const weir_model *m, int64_t part, int64_t room, weir_head *out,
                                         weir_err *err);
void weir_model_head_done(const weir_model *m, int64_t part);
/* The same part turned round, for gradients: y[c] = sum over v of x[v] W(first + v, c), v in [0, n), c in [0, C). Made
 * at each call and the caller's: weir_panels_free. */
typedef struct weir_turned {
    weir_panels *w;
    int64_t first, n;
} weir_turned;
WEIR_CHECKED weir_status weir_model_head_turned(const weir_model *m, int64_t part, weir_turned *out, weir_err *err);
int64_t weir_model_head_turned_bytes(const weir_model *m, int64_t part);
/* Matrices of a layer turned round: y[i] = sum over outputs o of x[o] W(i,o), i over the inputs; w[WEIR_MATRIX_Q] and so
 * on, NULL where the model has no such matrix. Made at each call, in the type of the checkpoint, and the caller's, to be
 * freed before the model. Block types stay in the map of the file (weir_panels_drop). _bytes: memory of a layer's panels,
 * of block types what is read of the map, known before; while a matrix is made that is fused head by head or permuted, it
 * is in memory a second time. */
typedef struct weir_turned_layer {
    weir_panels *w[WEIR_MATRIX_COUNT];
} weir_turned_layer;
WEIR_CHECKED weir_status weir_model_layer_turned(const weir_model *m, int64_t layer, weir_turned_layer *out,
                                                 weir_err *err);
void weir_turned_layer_free(weir_turned_layer *t);
int64_t weir_model_turned_bytes(const weir_model *m, int64_t layer);

/* The layer's norms alone, which stay: nothing is packed, nothing leased. */
WEIR_CHECKED weir_status weir_model_norms(const weir_model *m, int64_t layer, const weir_layer **out, weir_err *err);
WEIR_CHECKED weir_status weir_model_final(const weir_model *m, weir_normw *norm, weir_err *err);

/* Bytes of memory of the first `layers` layers and of the head once they are packed: all together; the largest layer or
 * part of the head. */
int64_t weir_model_weight_bytes(const weir_model *m, int64_t layers, bool head);
int64_t weir_model_largest_bytes(const weir_model *m, int64_t layers, bool head);
/* Row of the token table [C], widened to fp32, before embed_scale; id in [0, rows). */
void weir_model_embed_row(const weir_model *m, int32_t id, float *dst);
int64_t weir_model_embed_rows(const weir_model *m);
/* Row of the unembedding [C], widened to fp32; id in [0, V). */
void weir_model_head_row(const weir_model *m, int32_t id, float *dst);
/* Row of the learned position table [C]; pos in [0, ctx). */
void weir_model_pos_row(const weir_model *m, int64_t pos, float *dst);
/* Weights of units of a layer's MLP, widened to fp32, dst [n, C]: their rows of pre (gated: the gate) or up, or their
 * columns of down. unit [n] ascending, in [0, F). Nothing is packed. */
typedef enum weir_mlp_matrix { WEIR_MLP_PRE, WEIR_MLP_UP, WEIR_MLP_DOWN } weir_mlp_matrix;
void weir_model_mlp_units(const weir_model *m, int64_t layer, weir_mlp_matrix which, const int64_t *unit, int64_t n,
                          float *dst);
/* Likewise units [first, first + n) of z [H*D] (head h has D of them, from h*D on): their rows of W_O, dst [n, C]. */
void weir_model_attn_units(const weir_model *m, int64_t layer, int64_t first, int64_t n, float *dst);
/* The bias [C] of the matrix that ends the layer's attention, or its MLP, widened; false: it has none. */
bool weir_model_out_bias(const weir_model *m, int64_t layer, bool mlp, float *dst);
/* Lets go of the pages of both tables that were read. */
void weir_model_tables_drop(const weir_model *m);

/* What another room keeps for a model (its hook points, say): the first call makes it under the model's lock, every
 * call returns the same pointer, and destroy is called with the model. One such thing a model. NULL when make returned
 * NULL (it is tried again). */
void *weir_model_keep(const weir_model *m, void *(*make)(const weir_model *m), void (*destroy)(void *));

#endif
