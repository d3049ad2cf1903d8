/* steer: adds a vector from a file to selected values (--add).
 *
 *   steer:blocks.6.hook_resid_post=love.npy*4              everywhere, four times
 *   steer:blocks.6.hook_resid_post[-1]=dirs.safetensors::layer6@2
 *
 * C times the vector is rounded to float32 once, when it is loaded; then x + v. Where v is zero x keeps its bits (-0 +
 * 0 would be +0). weir/values.h says which files, and which widths fit. */
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
        return weir_fail(err, WEIR_E_NOMEM, "hook steer: out of memory");
    weir_status st = weir_target_open(t, m, "steer", "steer:" GRAMMAR, args, &value, err);
    if (!st && !(value && *value))
        st = weir_fail(err, WEIR_E_ARG, "what to add is missing: " GRAMMAR);
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
            if (r.vector[i] != 0)
                r.x[r.column[i]] += r.vector[i];
    return WEIR_OK;
}

/* What is added does not depend on what stood there. */
static weir_status on_grad(void *self, const weir_value *v, weir_err *err)
{
    (void)self, (void)v, (void)err;
    return WEIR_OK;
}

extern const weir_hook_class weir_hook_steer;
const weir_hook_class weir_hook_steer = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER | WEIR_HOOK_GRADIENTS,
    .name = "steer",
    .help = "add a vector from FILE to values (--add)",
    .args = GRAMMAR,
    .create = create,
    .wants = weir_target_wants,
    .on_value = on_value,
    .on_grad = on_grad,
    .finish = weir_target_finish,
    .changed = weir_target_changed,
    .destroy = destroy,
};
