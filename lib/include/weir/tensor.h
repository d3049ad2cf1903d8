/* weir/tensor.h: element types and tensor views.
 *
 * Letters of shapes, in every header: T tokens (rows), L layers, C width of the residual stream, F width of the MLP's
 * hidden layer, H query heads, K key-value heads, D head size, V rows of the vocabulary, S keys. Row-major, last axis
 * fastest.
 */
#ifndef WEIR_TENSOR_H
#define WEIR_TENSOR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Types that checkpoints store. Block types hold `block` elements in `bytes` bytes (weir_dtype_block,
 * weir_dtype_bytes): their layout is ggml's (reference: ggml-common.h and gguf-py/gguf/quants.py). */
typedef enum weir_dtype {
    WEIR_F32 = 0,
    WEIR_F16,
    WEIR_BF16,
    WEIR_Q4_0,
    WEIR_Q4_1,
    WEIR_Q5_0,
    WEIR_Q5_1,
    WEIR_Q8_0,
    WEIR_Q2_K,
    WEIR_Q3_K,
    WEIR_Q4_K,
    WEIR_Q5_K,
    WEIR_Q6_K,
    WEIR_DTYPE_COUNT,
    /* a known type that weir cannot compute with (BOOL, I64, ...): buffers that are ignored */
    WEIR_OTHER = WEIR_DTYPE_COUNT
} weir_dtype;

WEIR_API const char *weir_dtype_name(weir_dtype t); /* "F32", "BF16", "Q4_K", ... */
WEIR_API int64_t weir_dtype_block(weir_dtype t);    /* elements in a block: 1, 32 or 256 */
WEIR_API int64_t weir_dtype_bytes(weir_dtype t);    /* bytes of a block */

#define WEIR_MAX_RANK 4

/* A view of a stored tensor: borrowed from the checkpoint that it lies in. data may be unaligned. */
typedef struct weir_tensor {
    const char *name;
    weir_dtype dtype;
    int rank;
    int64_t shape[WEIR_MAX_RANK]; /* slowest axis first, also for GGUF; unused axes are 1 */
    const void *data;
    size_t bytes;
    const char *file; /* path of the file that holds it */
    int64_t offset;   /* byte offset of data in that file */
} weir_tensor;

/* n elements of src (n a multiple of the block) as fp32: widened exactly (F16, BF16) or dequantised as gguf-py does. */
WEIR_API void weir_dequantize(weir_dtype t, const void *src, int64_t n, float *dst);

#ifdef __cplusplus
}
#endif
#endif
