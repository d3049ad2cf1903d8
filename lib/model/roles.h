/* model/roles.h: what a tensor is for, and the shape that this implies. */
#ifndef WEIR_ROLES_H
#define WEIR_ROLES_H

#include "arch.h"

/* One for each layer, or one for the model. */
static inline bool weir_role_in_layer(weir_role r)
{
    return r >= WEIR_ROLE_LN1_W;
}

typedef struct weir_shape {
    int rank;
    int64_t n[2];           /* [out, in], or [in, out] where k_major */
    const char *letters[2]; /* "H*D", "C" */
} weir_shape;

/* The gain of a norm: stored as it is, or less 1 (weir_layout.norm_offset). */
bool weir_role_is_gain(weir_role r);

weir_shape weir_role_shape(weir_role r, const weir_spec *s, bool k_major);

#endif
