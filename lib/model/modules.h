/* model/modules.h: the modules of the Hugging Face class of a model's family, by name: what adapters are written for.
 * The same for a GGUF file of the family, whose tensors are called otherwise. */
#ifndef WEIR_MODULES_H
#define WEIR_MODULES_H

#include <weir/edit.h>

/* A module with a weight that holds one matrix of a block, or q, k and v in one. */
typedef struct weir_module {
    char name[128]; /* "model.layers.3.self_attn.q_proj" */
    int64_t layer;
    int64_t in, out; /* of the whole module */
    bool k_major;    /* it stores [in, out] (Conv1D) */
    int n;
    weir_matrix matrix[3];
} weir_module;

/* The module of this name (n bytes), with or without the class's prefix. False: the family has none that holds a matrix
 * of a block. The layer may be one that the model lacks. */
bool weir_module_find(weir_module *out, const weir_model *m, const char *name, size_t n);
/* The module that holds a matrix; name is empty if the model has no such matrix. */
void weir_module_of(weir_module *out, const weir_model *m, int64_t layer, weir_matrix which);
/* Which output of its module is output i of the matrix. */
int64_t weir_module_row(const weir_model *m, weir_matrix which, int64_t i);

/* The tensor of the checkpoint that holds a matrix, NULL if there is none; out: it as the module of its layout (name is
 * empty), whose outputs are rows of the tensor, or columns where k_major. */
const weir_tensor *weir_stored_of(weir_module *out, const weir_model *m, int64_t layer, weir_matrix which);
int64_t weir_stored_row(const weir_model *m, weir_matrix which, int64_t i);

#endif
