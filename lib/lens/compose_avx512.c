/* lens/compose_avx512.c: tiles with AVX-512. */
#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 8
#define ROWS 8
#define COLS 16
#define MULTIPLY_ADD(a, b, c) (lanes) _mm512_fmadd_pd(_mm512_set1_pd(a), (__m512d)(b), (__m512d)(c))
#include "lens/compose_lanes.h"

const weir_compose_kern weir_compose_kern_avx512 = {.name = "avx512", WEIR_COMPOSE_TILE};
#endif
