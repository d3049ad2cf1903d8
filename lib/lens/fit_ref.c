/* lens/fit_ref.c: rows of logits in plain C, and which table goes with which. */
#include <math.h>
#include <string.h>

#include "lens/fit_kern.h"

#include "kernels/vec_ref.h"

#include "lens/fit_lanes.h"

const weir_fit_kern weir_fit_kern_ref = {.name = "ref", WEIR_FIT_KERNELS};

const weir_fit_kern *weir_fit_kern_of(const weir_kern *k)
{
#if defined(__x86_64__)
    static const weir_fit_kern *const fast[] = {&weir_fit_kern_avx2, &weir_fit_kern_avx512};
    for (int i = 0; i < 2; i++)
        if (strcmp(fast[i]->name, weir_kern_name(k)) == 0)
            return fast[i];
#else
    (void)k;
#endif
    return &weir_fit_kern_ref;
}
