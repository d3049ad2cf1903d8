/* kernels/tables.h: micro-kernels that live in files of their own, for kern_avx2.c and kern_avx512.c to put into their
 * tables. */
#ifndef WEIR_KERNELS_TABLES_H
#define WEIR_KERNELS_TABLES_H

#include "kernels/kern.h"

void weir_tile_f32_avx2(const weir_tile *t);
void weir_tile_f16_avx2(const weir_tile *t);
void weir_tile_bf16_avx2(const weir_tile *t);
void weir_transpose_avx2(float *dst, int64_t ldd, const weir_f32u *const *row, int rows, int64_t cols);
void weir_transpose16_avx2(uint16_t *dst, int64_t ldd, const weir_u16u *const *row, int rows, int64_t cols);

void weir_tile_f32_avx512(const weir_tile *t);
void weir_tile_f16_avx512(const weir_tile *t);
void weir_tile_bf16_avx512(const weir_tile *t);
void weir_transpose_avx512(float *dst, int64_t ldd, const weir_f32u *const *row, int rows, int64_t cols);

#endif
