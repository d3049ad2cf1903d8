/* lens/measure_avx512.c: the loops with registers of 16 floats. */
#if defined(__x86_64__)
#include "kernels/vec_avx512.h"

#include "lens/measure_lanes.h"

const weir_lens_lanes weir_lens_avx512 = {.name = "avx512", WEIR_LENS_LANES};
#endif
