/* ablate: sets selected values to zero, or to their mean over other text.
 *
 *   ablate:L6N421                                   neuron 421 of layer 6, everywhere
 *   ablate:blocks.3.attn.hook_z[-1,2]               head 2 of layer 3 at the last position
 *   ablate:blocks.*.hook_attn_out=mean:stats.h5     all attention, replaced by its mean
 *
 * The mean comes from a statistics file (`--hook stats:stats.h5=SEL`) or from a dump, under the name of each point;
 * there is no mean of "this batch". Positions are those of the document, negative ones count from its end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/values.h>

#define GRAMMAR "SEL[,SEL...][=zero|mean:FILE]"

static void destroy(void *self)
{
    weir_target_close(self);
    free(self);
}

static weir_status take_value(weir_target *t, const char *value, weir_err *err)
{
    if (!value || strcmp(value, "zero") == 0)
        return WEIR_OK;
    if (strncmp(value, "mean:", 5) == 0 && value[5])
        return weir_target_means(t, value + 5, err);
    return weir_fail(err, WEIR_E_ARG, "\"%s\": zero or mean:FILE was expected", value);
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    const char *value;
    weir_target *t = calloc(1, sizeof *t);
    *self = NULL;
    if (!t)
        return weir_fail(err, WEIR_E_NOMEM, "hook ablate: out of memory");
    weir_status st = weir_target_open(t, m, "ablate", "ablate:" GRAMMAR, args, &value, err);
    if (!st)
        st = take_value(t, value, err);
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
            if (r.x[r.column[i]] != -INFINITY)
                r.x[r.column[i]] = r.vector ? r.vector[i] : 0;
    return WEIR_OK;
}

extern const weir_hook_class weir_hook_ablate;
const weir_hook_class weir_hook_ablate = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER | WEIR_HOOK_GRADIENTS,
    .name = "ablate",
    .help = "set values to zero, or to their mean in FILE",
    .args = GRAMMAR,
    .create = create,
    .wants = weir_target_wants,
    .on_value = on_value,
    .on_grad = weir_target_set_grad,
    .finish = weir_target_finish,
    .changed = weir_target_changed,
    .destroy = destroy,
};
