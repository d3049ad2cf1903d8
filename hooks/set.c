/* set: writes a vector from a file over selected values.
 *
 *   set:blocks.6.hook_resid_post[3]=other.h5@17     the row 17 that a dump has of the same point
 *   set:L6N421=high.npy                             one number
 *
 * weir/values.h says which files, and which widths fit. */
#include <stdlib.h>

#include <weir/values.h>

#define GRAMMAR "SEL[,SEL...]=FILE[::NAME][@ROW][*C]"

static void destroy(void *self)
{
    weir_target_close(self);
    free(self);
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    const char *value;
    weir_target *t = calloc(1, sizeof *t);
    *self = NULL;
    if (!t)
        return weir_fail(err, WEIR_E_NOMEM, "hook set: out of memory");
    weir_status st = weir_target_open(t, m, "set", "set:" GRAMMAR, args, &value, err);
    if (!st && !(value && *value))
        st = weir_fail(err, WEIR_E_ARG, "what to set is missing: " GRAMMAR);
    if (!st)
        st = weir_target_vectors(t, value, 1, err);
    if (st) {
        destroy(t);
        return st;
    }
    *self = t;
    return WEIR_OK;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    weir_target_row r = weir_target_rows(self, v);
    (void)err;
    while (weir_target_next(&r))
        for (int64_t i = 0; i < r.n; i++)
            r.x[r.column[i]] = r.vector[i];
    return WEIR_OK;
}

extern const weir_hook_class weir_hook_set;
const weir_hook_class weir_hook_set = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER | WEIR_HOOK_GRADIENTS,
    .name = "set",
    .help = "write a vector from FILE over values",
    .args = GRAMMAR,
    .create = create,
    .wants = weir_target_wants,
    .on_value = on_value,
    .on_grad = weir_target_set_grad,
    .finish = weir_target_finish,
    .changed = weir_target_changed,
    .destroy = destroy,
};
