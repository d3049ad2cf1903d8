/* weir/weights.h: weights of single heads and neurons as fp32, read straight from the checkpoint: nothing is packed, and
 * nothing is folded (no norm's gain, no scale).
 *
 *     float v[C];
 *     weir_weights_neurons(model, 6, WEIR_WEIGHTS_VALUE, &(int64_t){421}, 1, v, &err);   // what L6N421 writes
 *
 * Every vector has the width C of the stream. Heads are in Hugging Face's order, also where a GGUF file permutes them.
 */
#ifndef WEIR_WEIGHTS_H
#define WEIR_WEIGHTS_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_head_matrix {
    WEIR_WEIGHTS_Q, /* q[d] = row d . ln1.hook_out: query heads */
    WEIR_WEIGHTS_K, /* key-value heads: query head h reads key-value head h / (H / K) */
    WEIR_WEIGHTS_V,
    WEIR_WEIGHTS_O /* hook_result = sum over d of z[d] row d */
} weir_head_matrix;
/* The D rows of a head: dst [D,C]. head: in [0, H), or for K and V in [0, K). Errors (WEIR_E_ARG): a layer or head that the
 * model lacks. */
WEIR_API WEIR_CHECKED weir_status weir_weights_head(const weir_model *m, int64_t layer, weir_head_matrix which,
                                                    int64_t head, float *dst, weir_err *err);

typedef enum weir_neuron_matrix {
    WEIR_WEIGHTS_KEY,  /* hook_pre = row . what the MLP reads; gated models: the gate's key */
    WEIR_WEIGHTS_UP,   /* gated models only: hook_pre_linear */
    WEIR_WEIGHTS_VALUE /* mlp_out = sum over neurons of hook_post times row (and a bias) */
} weir_neuron_matrix;
/* Vectors of n neurons: unit [n] ascending, dst [n,C]. Errors (WEIR_E_ARG): a layer or neuron that the model lacks, units
 * that do not ascend, UP of a model that is not gated. */
WEIR_API WEIR_CHECKED weir_status weir_weights_neurons(const weir_model *m, int64_t layer, weir_neuron_matrix which,
                                                       const int64_t *unit, int64_t n, float *dst, weir_err *err);

#ifdef __cplusplus
}
#endif
#endif
