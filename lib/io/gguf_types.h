/* io/gguf_types.h: the tensor types that GGUF files name by number. */
#ifndef WEIR_GGUF_TYPES_H
#define WEIR_GGUF_TYPES_H

#include <weir/tensor.h>

/* The dtype of a type id. What weir lacks, what was removed from the format and what nobody knows is refused by name.
 */
WEIR_CHECKED weir_status weir_gguf_dtype(uint32_t id, weir_dtype *out, weir_err *err);

#endif
