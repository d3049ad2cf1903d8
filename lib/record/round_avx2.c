/* record/round_avx2.c: the AVX2 table (with F16C, which converts halves). */
#if defined(__x86_64__)
#include <immintrin.h>

#include "round_impl.h"

static void to_f16(uint16_t *dst, const float *src, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(dst + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
    to_f16_plain(dst + i, src + i, n - i);
}

static void from_f16(float *dst, const uint16_t *src, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(src + i))));
    from_f16_plain(dst + i, src + i, n - i);
}

const weir_round_kern weir_round_avx2 = {"avx2", mantissa, to_f16, from_f16};
#endif
