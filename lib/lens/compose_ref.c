/* lens/compose_ref.c: tiles in plain C, and which table goes with which. */
#include <string.h>

#define LANES 2
#define ROWS 4
#define COLS 4
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#include "lens/compose_lanes.h"

const weir_compose_kern weir_compose_kern_ref = {.name = "ref", WEIR_COMPOSE_TILE};

const weir_compose_kern *weir_compose_kern_of(const weir_kern *k)
{
#if defined(__x86_64__)
    static const weir_compose_kern *const fast[] = {&weir_compose_kern_avx2, &weir_compose_kern_avx512};
    for (int i = 0; i < 2; i++)
        if (strcmp(fast[i]->name, weir_kern_name(k)) == 0)
            return fast[i];
#else
    (void)k;
#endif
    return &weir_compose_kern_ref;
}
