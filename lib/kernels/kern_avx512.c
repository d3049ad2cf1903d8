/* kernels/kern_avx512.c: the AVX-512 table. */
#if defined(__x86_64__)
#include <math.h>

#include "kernels/tables.h"
#include "kernels/vec_avx512.h"

#include "kernels/back_impl.h"
#include "kernels/dequant_impl.h"
#include "kernels/elem_impl.h"
#include "kernels/outer_impl.h"

const weir_kern weir_kern_avx512 = {
    .name = "avx512",
    .tile = {[WEIR_F32] = weir_tile_f32_avx512, [WEIR_F16] = weir_tile_f16_avx512, [WEIR_BF16] = weir_tile_bf16_avx512},
    .transpose = weir_transpose_avx512,
    .transpose16 = weir_transpose16_avx2,
    .dequant = elem_dequant,
    .outer = outer_tile,
    WEIR_ELEM_KERNELS,
    WEIR_BACK_KERNELS,
};
#endif
