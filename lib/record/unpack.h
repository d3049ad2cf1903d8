/* record/unpack.h: elements of an inflated chunk put together. */
#ifndef WEIR_UNPACK_H
#define WEIR_UNPACK_H

#include <weir/base.h>

/* A chunk in memory. Shuffled, byte k of element i stands at src[k * count + i], else at src[i * elem + k]. */
typedef struct weir_unpack {
    const uint8_t *src;
    size_t count, elem; /* elements of the chunk, bytes of each: 1, 2, 4 or 8 */
    bool shuffled;
    bool half; /* float16, which becomes float32 */
} weir_unpack;

/* n elements that lie together, from element `at` on. */
void weir_unpack_run(const weir_unpack *u, size_t at, size_t n, void *out);
/* n elements that are `step` apart, to places `out_step` elements apart: a column. */
void weir_unpack_column(const weir_unpack *u, size_t at, size_t step, size_t n, void *out, size_t out_step);

#endif
