/* record/round.c: see round.h. The portable table, and which table is used. */
#include "kernels/kernels.h"

#include "round_impl.h"

static void to_f16(uint16_t *dst, const float *src, int64_t n)
{
    to_f16_plain(dst, src, n);
}

static void from_f16(float *dst, const uint16_t *src, int64_t n)
{
    from_f16_plain(dst, src, n);
}

const weir_round_kern weir_round_ref = {"ref", mantissa, to_f16, from_f16};

/* The table that goes with the kernel table in use. */
static const weir_round_kern *pick(void)
{
#if defined(__x86_64__)
    static const weir_round_kern *const fast[] = {&weir_round_avx2, &weir_round_avx512};
    const weir_kern *k;
    if (weir_kern_pick(&k, NULL, NULL) == WEIR_OK)
        for (int i = 0; i < 2; i++)
            if (!strcmp(fast[i]->name, weir_kern_name(k)))
                return fast[i];
#endif
    return &weir_round_ref;
}

void weir_round_mantissa(float *dst, const float *src, int64_t n, int bits)
{
    pick()->mantissa(dst, src, n, bits);
}

void weir_to_f16(uint16_t *dst, const float *src, int64_t n)
{
    pick()->to_f16(dst, src, n);
}

void weir_from_f16(float *dst, const uint16_t *src, int64_t n)
{
    pick()->from_f16(dst, src, n);
}
