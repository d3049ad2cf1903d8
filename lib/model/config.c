/* What the numbers of a configuration are, and the names of activations. */
#include "config.h"

#include <string.h>

/* What no model comes near: products of the sizes below fit in 64 bits. */
#define LIMIT 2147483647.0

static const weir_cfg_info INFO[WEIR_CFG_COUNT] = {
    [WEIR_CFG_L] = {WEIR_CFG_INT, false, 1, 10000, "layers"},
    [WEIR_CFG_C] = {WEIR_CFG_INT, false, 1, 1 << 20, "width of the stream"},
    [WEIR_CFG_F] = {WEIR_CFG_INT, true, 1, 1 << 24, "width of the MLP"},
    [WEIR_CFG_H] = {WEIR_CFG_INT, false, 1, 1 << 16, "heads"},
    [WEIR_CFG_K] = {WEIR_CFG_INT, true, 1, 1 << 16, "key-value heads"},
    [WEIR_CFG_D] = {WEIR_CFG_INT, true, 1, 1 << 16, "head size"},
    [WEIR_CFG_V] = {WEIR_CFG_INT, false, 1, 1 << 30, "vocabulary"},
    [WEIR_CFG_CTX] = {WEIR_CFG_INT, false, 1, LIMIT, "context"},
    [WEIR_CFG_EPS] = {WEIR_CFG_REAL, false, 0, 1, "epsilon of the norms"},
    [WEIR_CFG_ACT] = {WEIR_CFG_ACTIVATION, false, 0, 0, "activation"},
    [WEIR_CFG_TIE] = {WEIR_CFG_BOOL, false, 0, 1, "tied head"},
    [WEIR_CFG_ATTN_BIAS] = {WEIR_CFG_BOOL, false, 0, 1, "attention biases"},
    [WEIR_CFG_MLP_BIAS] = {WEIR_CFG_BOOL, false, 0, 1, "MLP biases"},
    [WEIR_CFG_PARALLEL] = {WEIR_CFG_BOOL, false, 0, 1, "parallel sublayers"},
    [WEIR_CFG_WINDOW] = {WEIR_CFG_INT, true, 0, LIMIT, "window"},
    [WEIR_CFG_ROPE_THETA] = {WEIR_CFG_REAL, false, 1e-6, 1e30, "RoPE base"},
    [WEIR_CFG_ROPE_PART] = {WEIR_CFG_REAL, true, 0, 1, "share of the head that RoPE turns"},
    [WEIR_CFG_ROPE_DIM] = {WEIR_CFG_INT, false, 1, 1 << 16, "dimensions that RoPE turns"},
    [WEIR_CFG_SCORE_CAP] = {WEIR_CFG_REAL, true, 1e-6, 1e30, "cap of scores"},
    [WEIR_CFG_LOGIT_CAP] = {WEIR_CFG_REAL, true, 1e-6, 1e30, "cap of logits"},
    [WEIR_CFG_QUERY_SCALAR] = {WEIR_CFG_REAL, false, 1e-6, 1e30, "query scalar"},
    [WEIR_CFG_WINDOWED] = {WEIR_CFG_BOOL, false, 0, 1, "windows"},
    [WEIR_CFG_WINDOW_FROM] = {WEIR_CFG_INT, false, 0, LIMIT, "first layer that has a window"},
};

const weir_cfg_info *weir_cfg_info_of(weir_cfg c)
{
    return &INFO[c];
}

/* Hugging Face's names; several are one function. */
static const struct {
    const char *name;
    weir_act act;
} ACT[] = {
    {"gelu", WEIR_ACT_GELU_ERF},
    {"gelu_python", WEIR_ACT_GELU_ERF},
    {"gelu_new", WEIR_ACT_GELU_TANH},
    {"gelu_fast", WEIR_ACT_GELU_TANH},
    {"gelu_pytorch_tanh", WEIR_ACT_GELU_TANH},
    {"gelu_accurate", WEIR_ACT_GELU_TANH},
    {"gelu_python_tanh", WEIR_ACT_GELU_TANH},
    {"silu", WEIR_ACT_SILU},
    {"swish", WEIR_ACT_SILU},
    {"relu", WEIR_ACT_RELU},
    {"relu2", WEIR_ACT_RELU2},
    {"quick_gelu", WEIR_ACT_QUICK_GELU},
};

bool weir_act_find(const char *name, weir_act *out)
{
    for (size_t i = 0; i < sizeof ACT / sizeof *ACT; i++)
        if (!strcmp(name, ACT[i].name)) {
            *out = ACT[i].act;
            return true;
        }
    return false;
}

const char *weir_act_name(weir_act act)
{
    for (size_t i = 0; i < sizeof ACT / sizeof *ACT; i++)
        if (ACT[i].act == act)
            return ACT[i].name;
    return "?";
}

weir_status weir_cfg_check(weir_cfg c, double v, const char *key, const char *file, int64_t at, weir_err *err)
{
    const weir_cfg_info *i = &INFO[c];
    if (i->kind == WEIR_CFG_ACTIVATION || (v >= i->min && v <= i->max))
        return WEIR_OK;
    weir_fail(err, WEIR_E_FORMAT, "%s: %.9g is no %s: it must be %.9g to %.9g", key, v, i->what, i->min, i->max);
    weir_err_where(err, file, NULL, at);
    return WEIR_E_FORMAT;
}
