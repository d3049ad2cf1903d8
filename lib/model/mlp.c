/* Weights of single units of an MLP's hidden layer, straight from the map: for those who ask about a neuron. */
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

/* Units are columns: each row is widened where units are. */
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

void weir_model_mlp_units(const weir_model *m, int64_t layer, weir_mlp_matrix which, const int64_t *unit, int64_t n,
                          float *dst)
{
    const weir_tensor *t = matrix(m, layer, which);
    if ((which == WEIR_MLP_DOWN) != m->layout->k_major) {
        columns(t, unit, n, dst);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        widen(t, unit[i], 0, t->shape[1], dst + i * t->shape[1]);
}
