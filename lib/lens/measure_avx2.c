/* lens/measure_avx2.c: the loops with registers of 8 floats. */
#if defined(__x86_64__)
#include "kernels/vec_avx2.h"

#include "lens/measure_lanes.h"

const weir_lens_lanes weir_lens_avx2 = {.name = "avx2", WEIR_LENS_LANES};
#endif
