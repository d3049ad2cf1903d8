/* model/export_impl.h: what the files export*.c share. */
#ifndef WEIR_EXPORT_IMPL_H
#define WEIR_EXPORT_IMPL_H

#include "export.h"
#include "impl.h"

struct weir_export {
    const weir_model *m;
    const weir_type *type;
    weir_rope rope;
    bool attn_bias, mlp_bias;
    weir_export_tensor *tensor; /* [n] */
    int64_t n;
};

/* export_config.c: finds the class that has a key for every number of the file. */
WEIR_CHECKED weir_status weir_export_find_class(weir_export *x, weir_err *err);
/* export_rope.c: the RoPE scaling of the file, from its divisors if it has them. */
WEIR_CHECKED weir_status weir_export_find_rope(weir_export *x, weir_err *err);

#endif
