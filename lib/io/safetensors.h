/* io/safetensors.h: the header of one safetensors file (format: huggingface/safetensors README). */
#ifndef WEIR_SAFETENSORS_H
#define WEIR_SAFETENSORS_H

#include <weir/tensor.h>

#include "../base/mem.h"
#include "filemap.h"

/* Tensors of a mapped file, in order of offset; names and array live in the arena. */
WEIR_CHECKED weir_status weir_safetensors_parse(const weir_filemap *m, weir_arena *arena, weir_tensor **tensor,
                                                int64_t *n, weir_err *err);

#endif
