/* lens/fit_avx2.c: rows of logits with AVX2. */
#if defined(__x86_64__)
#include <math.h>

#include "kernels/vec_avx2.h"

#include "lens/fit_lanes.h"

const weir_fit_kern weir_fit_kern_avx2 = {.name = "avx2", WEIR_FIT_KERNELS};
#endif
