/* weir/edit.h: edits: low-rank updates of a model's matrices, kept apart from its weights.
 *
 *     weir_edit *e;
 *     weir_edit_open(&e, model, "paris-rome", NULL, &err);          // a PEFT LoRA directory
 *     const weir_edit *stack[] = {e};
 *     weir_run_options o; weir_run_options_init(&o);
 *     o.edits = stack, o.n_edits = 1;                               // y = x W + b, then y += (x U^T) V
 *     weir_run_new(&run, model, &o, &err);
 *
 * An edit is immutable and belongs to one model; runs share it freely. The model's weights are never written: a run
 * without the edit gives the bits that it gave before. Several edits of one matrix add up in the order of the stack.
 *
 * Arithmetic: s = x U^T (one chain over the input for each of r), d = s V (one chain over r for each output, from 0),
 * y = y + d, edit after edit; y is the product with its bias. The same bits from every kernel table.
 */
#ifndef WEIR_EDIT_H
#define WEIR_EDIT_H

#include "weights.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_edit weir_edit;

/* Matrices of a block, by what they give. Shapes [in, out]. */
typedef enum weir_matrix {
    WEIR_MATRIX_Q,    /* C, H*D: heads in Hugging Face's order */
    WEIR_MATRIX_K,    /* C, K*D */
    WEIR_MATRIX_V,    /* C, K*D */
    WEIR_MATRIX_O,    /* H*D, C */
    WEIR_MATRIX_PRE,  /* C, F: gated models: the gate */
    WEIR_MATRIX_UP,   /* C, F: gated models only */
    WEIR_MATRIX_DOWN, /* F, C: what rank-one edits change */
    WEIR_MATRIX_COUNT
} weir_matrix;
WEIR_API const char *weir_matrix_name(weir_matrix m); /* "q" ... "down" */
/* Sizes of a matrix of a model. */
WEIR_API void weir_matrix_shape(const weir_model *model, weir_matrix m, int64_t *in, int64_t *out);

/* The tensor of the checkpoint that holds a matrix: q, k and v may lie in one. NULL: the model has none. */
WEIR_API const weir_tensor *weir_matrix_tensor(const weir_model *model, int64_t layer, weir_matrix m);
/* The whole matrix as fp32: dst [out,in], a row for each output, in Hugging Face's order. Errors: a layer or matrix
 * that the model lacks (WEIR_E_ARG); WEIR_E_NOMEM. */
WEIR_API WEIR_CHECKED weir_status weir_matrix_read(const weir_model *model, int64_t layer, weir_matrix m, float *dst,
                                                   weir_err *err);

/* W' = W + sum over i < r of u[i] (of the input) outer v[i] (of the output). */
typedef struct weir_update {
    int64_t layer;
    weir_matrix matrix;
    int64_t r;
    const float *u; /* [r, in] */
    const float *v; /* [r, out], scaling included */
} weir_update;

/* Copies the updates. Errors (WEIR_E_ARG): a layer or matrix that the model lacks, r < 1, an element that is not
 * finite, the same matrix twice. */
WEIR_API WEIR_CHECKED weir_status weir_edit_new(weir_edit **out, const weir_model *m, const weir_update *update,
                                                int64_t n, weir_err *err);
WEIR_API void weir_edit_free(weir_edit *e);
WEIR_API int64_t weir_edit_n(const weir_edit *e);
WEIR_API const weir_update *weir_edit_update(const weir_edit *e, int64_t i); /* borrowed */
WEIR_API const weir_model *weir_edit_model(const weir_edit *e);

/* --- directories: PEFT's LoRA layout (huggingface/peft 0.17, `LoraConfig.save_pretrained`): adapter_config.json and
 * adapter_model.safetensors; ours have edit.json besides: where they come from. delta W = (alpha / r) B A, with
 * use_rslora (alpha / sqrt r) B A (Kalajdzievski, arXiv 2312.03732). */

typedef struct weir_edit_about {
    const char *dir;
    const char *base_model;  /* adapter_config.json's base_model_name_or_path, or NULL */
    const char *json;        /* edit.json, whole, or NULL: made elsewhere */
    const char *method;      /* edit.json: "r-rome", "memit", ...; NULL */
    const char *fingerprint; /* edit.json: of the model that it was made for; NULL: unknown */
    const char *sha256;      /* of adapter_model.safetensors, 64 hex digits */
} weir_edit_about;

typedef struct weir_edit_options {
    weir_log log; /* remarks: made elsewhere, targets that were regrouped */
    bool force;   /* also of another model, if the shapes fit */
} weir_edit_options;

/* Opens a directory. Targets of q, k, v, o, gate, up, down (fused and permuted ones too) are put into the order of this
 * model's matrices; a target that is no matrix of a block (embeddings, the head, norms), modules_to_save, biases, DoRA,
 * rank patterns that do not fit the tensors: refused by name (WEIR_E_UNSUPPORTED). Errors otherwise: WEIR_E_FORMAT with
 * file and place, WEIR_E_ARG for an edit of another model (o->force). */
WEIR_API WEIR_CHECKED weir_status weir_edit_open(weir_edit **out, const weir_model *m, const char *dir,
                                                 const weir_edit_options *o, weir_err *err);
/* Of an edit that weir_edit_open made; all NULL otherwise. */
WEIR_API const weir_edit_about *weir_edit_about_of(const weir_edit *e);

/* Writes e as the directory `dir`, whole or not at all (made as DIR.part, renamed). json: the text of edit.json.
 * A directory that is there is replaced if it holds an edit.json of ours and nothing foreign, else refused
 * (WEIR_E_ARG). Module names are those of the Hugging Face class of the model's family, fan_in_fan_out where it stores
 * Conv1D. */
WEIR_API WEIR_CHECKED weir_status weir_edit_save(const weir_edit *e, const char *dir, const char *json, weir_err *err);
/* The same question, asked before the work. */
WEIR_API WEIR_CHECKED weir_status weir_edit_may_save(const char *dir, weir_err *err);

/* --- merging: the checkpoint anew, with the updates in its weights. */

/* One matrix that was rewritten. The type that it is stored in cannot hold every sum: what the rounding did to dW. */
typedef struct weir_edit_merged {
    int64_t layer;
    weir_matrix matrix;
    weir_dtype dtype;
    double weight; /* |W| (norms are Frobenius's) */
    double wanted; /* |dW| */
    double got;    /* |W' - W|, W' as it is stored */
    double lost;   /* |W' - (W + dW)| */
} weir_edit_merged;
typedef struct weir_edit_merge_options {
    int threads;                                           /* 0: all processors; the bytes are the same */
    void (*merged)(void *user, const weir_edit_merged *m); /* after each matrix, in the order of layers; may be NULL */
    bool (*stop)(void *user); /* asked on the way: true gives it up (WEIR_STOP); may be NULL */
    void *user;
    weir_log log; /* remarks: a GGUF file without a tokenizer, ... */
} weir_edit_merge_options;

/* Writes the model with the edits, one after the other, as the Hugging Face directory `dir`, whole or not at all. What
 * is there must be an empty directory, or nothing (WEIR_E_ARG).
 *
 * A Hugging Face directory: its files are copied (configuration, tokenizer, texts; no subdirectories, no other forms of
 * the weights), and the changed elements are written over, in the type that they have: W' = W + dW in double, rounded
 * once, to nearest even. Other bytes stay as they are. WEIR_E_FORMAT: an element that is too large for its type.
 *
 * A GGUF file: all tensors are written in F32 (block types dequantised, W' rounded once) under the names and in the
 * layout of the family's Hugging Face class, with its config.json, and the file's tokenizer as tokenizer.json and
 * tokenizer_config.json, with the chat template; n_edits 0 converts the file. What no class of the family has, and a
 * tokenizer that a tokenizer.json cannot hold, is refused by name before anything is written (WEIR_E_UNSUPPORTED).
 * Memory: some rows of a tensor. */
WEIR_API WEIR_CHECKED weir_status weir_edit_merge(const weir_model *m, const weir_edit *const *edits, int n_edits,
                                                  const char *dir, const weir_edit_merge_options *o, weir_err *err);

/* --- What a directory holds, without a model: its modules by name, in the order of the file. */
typedef struct weir_edit_module {
    const char *name;
    int64_t r, in, out;
    double norm; /* of its delta W (Frobenius's), scaled */
} weir_edit_module;
typedef struct weir_edit_look weir_edit_look;
/* Errors as of weir_edit_open, as far as they can be seen without a model. */
WEIR_API WEIR_CHECKED weir_status weir_edit_look_at(weir_edit_look **out, const char *dir, weir_err *err);
WEIR_API void weir_edit_look_free(weir_edit_look *l);
WEIR_API const weir_edit_about *weir_edit_look_about(const weir_edit_look *l);
WEIR_API int64_t weir_edit_look_modules(const weir_edit_look *l, const weir_edit_module **module);

/* --- What edits add to the vectors that weir/weights.h gives, so that programs which read weights can honour them:
 *
 *     weir_weights_neurons(model, 6, WEIR_WEIGHTS_VALUE, &unit, 1, v, &err);
 *     weir_edit_add_neurons(stack, n_edits, 6, WEIR_WEIGHTS_VALUE, &unit, 1, v);
 *
 * Arguments as there, and checked there: dst += the updates' share of each edit, one after the other; each element's
 * is one chain of fused multiply-adds over the rows of u and v, from 0. */
WEIR_API void weir_edit_add_neurons(const weir_edit *const *edits, int n_edits, int64_t layer, weir_neuron_matrix which,
                                    const int64_t *unit, int64_t n, float *dst);
WEIR_API void weir_edit_add_head(const weir_edit *const *edits, int n_edits, int64_t layer, weir_head_matrix which,
                                 int64_t head, float *dst);

#ifdef __cplusplus
}
#endif
#endif
