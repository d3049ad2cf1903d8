/* lens/compose_avx2.c: tiles with AVX2. */
#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 4
#define ROWS 4
#define COLS 8
#define MULTIPLY_ADD(a, b, c) (lanes) _mm256_fmadd_pd(_mm256_set1_pd(a), (__m256d)(b), (__m256d)(c))
#include "lens/compose_lanes.h"

const weir_compose_kern weir_compose_kern_avx2 = {.name = "avx2", WEIR_COMPOSE_TILE};
#endif
