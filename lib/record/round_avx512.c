/* record/round_avx512.c: the AVX-512 table. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "round_impl.h"

static void to_f16(uint16_t *dst, const float *src, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(dst + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    to_f16_plain(dst + i, src + i, n - i);
}

static void from_f16(float *dst, const uint16_t *src, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(dst + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(src + i))));
    from_f16_plain(dst + i, src + i, n - i);
}

const weir_round_kern weir_round_avx512 = {"avx512", mantissa, to_f16, from_f16};
#endif
