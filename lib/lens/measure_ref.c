/* lens/measure_ref.c: the loops in plain C, the oracle of the others, and which table is used. */
#include <string.h>

#include "kernels/vec_ref.h"

#include "lens/measure_lanes.h"

const weir_lens_lanes weir_lens_ref = {.name = "ref", WEIR_LENS_LANES};

const weir_lens_lanes *weir_lens_lanes_of(const char *name)
{
#if defined(__x86_64__)
    static const weir_lens_lanes *const fast[] = {&weir_lens_avx2, &weir_lens_avx512};
    for (int i = 0; i < 2; i++)
        if (!strcmp(fast[i]->name, name))
            return fast[i];
#endif
    return strcmp(weir_lens_ref.name, name) ? NULL : &weir_lens_ref;
}
