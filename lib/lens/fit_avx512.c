/* lens/fit_avx512.c: rows of logits with AVX-512. */
#if defined(__x86_64__)
#include <math.h>

#include "kernels/vec_avx512.h"

#include "lens/fit_lanes.h"

const weir_fit_kern weir_fit_kern_avx512 = {.name = "avx512", WEIR_FIT_KERNELS};
#endif
