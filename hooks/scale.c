/* scale: multiplies selected values by a number.
 *
 *   scale:L6N421=10                       neuron 421 of layer 6, ten times as strong
 *   scale:blocks.3.attn.hook_z[:,2]=0.5   head 2 of layer 3, half
 *
 * Each product is rounded once, to float32. Masked attention scores (-inf) stay as they are. */
#include <math.h>
#include <stdlib.h>

#include <weir/values.h>

#define GRAMMAR "SEL[,SEL...]=FACTOR"

typedef struct state {
    weir_target target; /* first: weir_target_wants and its like take the state for it */
    float factor;
} state;

static void destroy(void *self)
{
    weir_target_close(self);
    free(self);
}

static weir_status take_factor(state *s, const char *value, weir_err *err)
{
    char *end = NULL;
    s->factor = value ? strtof(value, &end) : 0;
    if (!value || end == value || *end || !isfinite(s->factor))
        return weir_fail(err, WEIR_E_ARG, "\"%s\": a number was expected, " GRAMMAR, value ? value : "");
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    const char *value;
    state *s = calloc(1, sizeof *s);
    *self = NULL;
    if (!s)
        return weir_fail(err, WEIR_E_NOMEM, "hook scale: out of memory");
    weir_status st = weir_target_open(&s->target, m, "scale", "scale:" GRAMMAR, args, &value, err);
    if (!st)
        st = take_factor(s, value, err);
    if (st) {
        destroy(s);
        return st;
    }
    *self = s;
    return WEIR_OK;
}

static void multiply(const state *s, weir_target_row r)
{
    while (weir_target_next(&r))
        for (int64_t i = 0; i < r.n; i++)
            if (r.x[r.column[i]] != -INFINITY)
                r.x[r.column[i]] *= s->factor;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    (void)err;
    multiply(self, weir_target_rows(self, v));
    return WEIR_OK;
}

static weir_status on_grad(void *self, const weir_value *v, weir_err *err)
{
    (void)err;
    multiply(self, weir_target_rows_again(self, v));
    return WEIR_OK;
}

extern const weir_hook_class weir_hook_scale;
const weir_hook_class weir_hook_scale = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER | WEIR_HOOK_GRADIENTS,
    .name = "scale",
    .help = "multiply values by a number",
    .args = GRAMMAR,
    .create = create,
    .wants = weir_target_wants,
    .on_value = on_value,
    .on_grad = on_grad,
    .finish = weir_target_finish,
    .changed = weir_target_changed,
    .destroy = destroy,
};
