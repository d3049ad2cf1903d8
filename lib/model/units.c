/* Weights of single units, straight from the map: for those who ask about a neuron or a head. Nothing is packed. */
#include <weir/weights.h>

#include "impl.h"

enum { SOME = 64, MOST = 256 }; /* elements that are widened at a time: at least a block */

static const weir_tensor *matrix(const weir_model *m, int64_t layer, weir_mlp_matrix which)
{
    static const weir_role role[] = {
        [WEIR_MLP_PRE] = WEIR_ROLE_PRE_W, [WEIR_MLP_UP] = WEIR_ROLE_UP_W, [WEIR_MLP_DOWN] = WEIR_ROLE_DOWN_W};
    return weir_slot(m, layer, role[which]);
}

static void widen(const weir_tensor *t, int64_t row, int64_t first, int64_t n, float *dst)
{
    const int64_t block = weir_dtype_block(t->dtype), bytes = weir_dtype_bytes(t->dtype);
    const char *p = (const char *)t->data + (row * t->shape[1] + first) / block * bytes;
    weir_dequantize(t->dtype, p, n, dst);
}

/* Units are columns: each row is widened where units are. dst [n, rows]. */
static void columns(const weir_tensor *t, const int64_t *unit, int64_t n, float *dst)
{
    const int64_t block = weir_dtype_block(t->dtype), step = block > SOME ? block : SOME, c = t->shape[0];
    float some[MOST];
    for (int64_t row = 0; row < c; row++)
        for (int64_t i = 0, first = -step; i < n; i++) {
            if (unit[i] >= first + step) {
                first = unit[i] / step * step;
                widen(t, row, first, t->shape[1] - first < step ? t->shape[1] - first : step, some);
            }
            dst[i * c + row] = some[unit[i] - first];
        }
}

/* Units, ascending, of a block's matrix: outputs of it, or inputs. dst [n, the other axis]. */
static void units(const weir_model *m, const weir_tensor *t, bool inputs, const int64_t *unit, int64_t n, float *dst)
{
    if (inputs != m->layout->k_major) {
        columns(t, unit, n, dst);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        widen(t, unit[i], 0, t->shape[1], dst + i * t->shape[1]);
}

void weir_model_mlp_units(const weir_model *m, int64_t layer, weir_mlp_matrix which, const int64_t *unit, int64_t n,
                          float *dst)
{
    units(m, matrix(m, layer, which), which == WEIR_MLP_DOWN, unit, n, dst);
}

void weir_model_attn_units(const weir_model *m, int64_t layer, int64_t first, int64_t n, float *dst)
{
    const weir_tensor *t = weir_slot(m, layer, WEIR_ROLE_O_W);
    int64_t unit[SOME];
    for (int64_t at = 0; at < n; at += SOME) {
        const int64_t some = n - at < SOME ? n - at : SOME;
        for (int64_t i = 0; i < some; i++)
            unit[i] = first + at + i;
        units(m, t, true, unit, some, dst + at * m->spec.C);
    }
}

bool weir_model_out_bias(const weir_model *m, int64_t layer, bool mlp, float *dst)
{
    const weir_tensor *t = weir_slot(m, layer, mlp ? WEIR_ROLE_DOWN_B : WEIR_ROLE_O_B);
    if (t)
        weir_vector_read(t, dst, t->shape[0]);
    return t != NULL;
}

/* --- the public face */

static weir_status check_layer(const weir_model *m, int64_t layer, weir_err *err)
{
    if (layer >= 0 && layer < m->spec.L)
        return WEIR_OK;
    return weir_fail(err, WEIR_E_ARG, "layer %lld: the model has layers 0 to %lld", (long long)layer,
                     (long long)(m->spec.L - 1));
}

weir_status weir_weights_head(const weir_model *m, int64_t layer, weir_head_matrix which, int64_t head, float *dst,
                              weir_err *err)
{
    const weir_spec *s = &m->spec;
    const bool shared = which == WEIR_WEIGHTS_K || which == WEIR_WEIGHTS_V;
    const int64_t heads = shared ? s->K : s->H;
    WEIR_TRY(check_layer(m, layer, err));
    if (head < 0 || head >= heads)
        return weir_fail(err, WEIR_E_ARG, "head %lld: the model has %s 0 to %lld", (long long)head,
                         shared ? "key-value heads" : "heads", (long long)(heads - 1));
    if (which == WEIR_WEIGHTS_O) {
        weir_model_attn_units(m, layer, head * s->D, s->D, dst);
        return WEIR_OK;
    }
    const weir_qkv_which w = which == WEIR_WEIGHTS_Q ? WEIR_QKV_Q : which == WEIR_WEIGHTS_K ? WEIR_QKV_K : WEIR_QKV_V;
    const weir_tensor *t = weir_slot(m, layer, weir_qkv_role(m, w, false));
    int64_t row[SOME];
    for (int64_t at = 0; at < s->D; at += SOME) { /* ascending where units are columns: such layouts permute nothing */
        const int64_t some = s->D - at < SOME ? s->D - at : SOME;
        for (int64_t i = 0; i < some; i++)
            row[i] = weir_qkv_row(m, w, head * s->D + at + i);
        units(m, t, false, row, some, dst + at * s->C);
    }
    return WEIR_OK;
}

weir_status weir_weights_neurons(const weir_model *m, int64_t layer, weir_neuron_matrix which, const int64_t *unit,
                                 int64_t n, float *dst, weir_err *err)
{
    static const weir_mlp_matrix matrix_of[] = {WEIR_MLP_PRE, WEIR_MLP_UP, WEIR_MLP_DOWN};
    WEIR_TRY(check_layer(m, layer, err));
    if (which == WEIR_WEIGHTS_UP && !m->spec.gated)
        return weir_fail(err, WEIR_E_ARG, "the MLPs of this model are not gated: there is no up projection");
    for (int64_t i = 0; i < n; i++)
        if (unit[i] < 0 || unit[i] >= m->spec.F || (i && unit[i] <= unit[i - 1]))
            return weir_fail(err, WEIR_E_ARG, "neuron %lld: they are 0 to %lld, in ascending order", (long long)unit[i],
                             (long long)(m->spec.F - 1));
    weir_model_mlp_units(m, layer, matrix_of[which], unit, n, dst);
    return WEIR_OK;
}
