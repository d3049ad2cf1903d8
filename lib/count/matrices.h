/* count/matrices.h: an architecture's matrices, one after another, without memory for a list. */
#ifndef WEIR_COUNT_MATRICES_H
#define WEIR_COUNT_MATRICES_H

#include <weir/roofline.h>

typedef void weir_matmul_reader(void *ctx, const weir_matmul *m);
void weir_matmuls_each(const weir_blueprint *b, weir_matmul_reader *read, void *ctx);

#endif
