/* search/gate.c: the activation of a gate, which the forward pass multiplies with `up` before anybody sees it
 * (run/mlp.c). The kernel is the pass's own: it rounds the activation first and the product after it, so that
 * this * hook_pre_linear is hook_post to the bit. */
#include <weir/neurons.h>

#include "model/spec.h"

weir_status weir_gate_act(const weir_model *m, const char *kernel, const float *x, int64_t n, float *out, weir_err *err)
{
    const weir_spec *s = weir_model_spec(m);
    const weir_kern *kern;
    if (!s->gated)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "%s has no gate: its MLP is act(pre), which is what hook_post is",
                         weir_model_info_of(m)->name);
    WEIR_TRY(weir_kern_pick(&kern, kernel, err));
    weir_op_act(kern, 1, s->act, out, x, NULL, n);
    return WEIR_OK;
}
