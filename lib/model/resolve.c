/* From the numbers of a configuration to the description that the forward pass interprets. */
#include <math.h>

#include "config.h"

static weir_status fail(const weir_config *cfg, weir_err *err, weir_status code, const char *msg)
{
    weir_fail(err, code, "%s", msg);
    weir_err_where(err, cfg->file, NULL, -1);
    return code;
}

/* The key under which a number stands in the file, or what it is. */
static const char *name_of(const weir_config *cfg, weir_cfg c)
{
    return cfg->key[c] ? cfg->key[c] : weir_cfg_info_of(c)->what;
}

static weir_status sizes(const weir_config *cfg, weir_spec *s, weir_err *err)
{
    const double *v = cfg->v;
    char msg[256];
    s->L = (int64_t)v[WEIR_CFG_L];
    s->C = (int64_t)v[WEIR_CFG_C];
    s->H = (int64_t)v[WEIR_CFG_H];
    s->F = v[WEIR_CFG_F] > 0 ? (int64_t)v[WEIR_CFG_F] : 4 * s->C;
    s->K = v[WEIR_CFG_K] > 0 ? (int64_t)v[WEIR_CFG_K] : s->H;
    s->D = v[WEIR_CFG_D] > 0 ? (int64_t)v[WEIR_CFG_D] : s->C / s->H;
    s->V = (int64_t)v[WEIR_CFG_V];
    s->ctx = (int64_t)v[WEIR_CFG_CTX];
    if (!(v[WEIR_CFG_D] > 0) && s->C % s->H) {
        snprintf(msg, sizeof msg, "%s %lld does not divide %s %lld", name_of(cfg, WEIR_CFG_H), (long long)s->H,
                 name_of(cfg, WEIR_CFG_C), (long long)s->C);
        return fail(cfg, err, WEIR_E_SHAPE, msg);
    }
    if (s->H % s->K) {
        snprintf(msg, sizeof msg, "%s %lld does not divide %s %lld", name_of(cfg, WEIR_CFG_K), (long long)s->K,
                 name_of(cfg, WEIR_CFG_H), (long long)s->H);
        return fail(cfg, err, WEIR_E_SHAPE, msg);
    }
    return WEIR_OK;
}

/* Dimensions that RoPE turns. */
static weir_status rope_size(const weir_config *cfg, weir_spec *s, weir_err *err)
{
    char msg[256];
    double part = cfg->v[WEIR_CFG_ROPE_PART], dim = cfg->v[WEIR_CFG_ROPE_DIM];
    part = part > 0 ? part : 1;
    s->rot = dim > 0 ? (int64_t)dim : (int64_t)((double)s->D * part);
    if (s->rot != s->D && !cfg->arch->partial_rope) {
        snprintf(msg, sizeof msg, "RoPE on %lld of the head's %lld dimensions is not what %s does", (long long)s->rot,
                 (long long)s->D, cfg->model_type);
        return fail(cfg, err, WEIR_E_UNSUPPORTED, msg);
    }
    if (s->rot >= 2 && s->rot <= s->D && s->rot % 2 == 0)
        return WEIR_OK;
    snprintf(msg, sizeof msg, "RoPE cannot turn %lld of the head's %lld dimensions: an even number is needed",
             (long long)s->rot, (long long)s->D);
    return fail(cfg, err, WEIR_E_SHAPE, msg);
}

/* The family's rule, where the file does not list the layers. */
static bool has_window(const weir_config *cfg, int64_t layer)
{
    switch (cfg->arch->windows) {
    case WEIR_WINDOWS_ALL:
        return true;
    case WEIR_WINDOWS_EVEN:
        return layer % 2 == 0;
    case WEIR_WINDOWS_FROM:
        break;
    }
    return cfg->v[WEIR_CFG_WINDOWED] > 0 && cfg->v[WEIR_CFG_WINDOW] > 0 &&
           layer >= (int64_t)cfg->v[WEIR_CFG_WINDOW_FROM];
}

static weir_status windows(const weir_config *cfg, const weir_spec *s, weir_arena *arena, const int64_t **out,
                           weir_err *err)
{
    int64_t *w = weir_arena_alloc(arena, (size_t)s->L, sizeof *w);
    if (!w)
        return weir_nomem(err, "the list of windows");
    for (int64_t l = 0; l < s->L; l++) {
        bool has = cfg->windowed ? cfg->windowed[l] : has_window(cfg, l);
        w[l] = has ? (int64_t)cfg->v[WEIR_CFG_WINDOW] : 0;
        if (has && cfg->arch->windows == WEIR_WINDOWS_FROM && !(w[l] > 0 && cfg->v[WEIR_CFG_WINDOWED] > 0))
            return fail(cfg, err, WEIR_E_FORMAT,
                        "layer_types has sliding_attention, but use_sliding_window and sliding_window say that there "
                        "are no windows");
    }
    *out = w;
    return WEIR_OK;
}

double weir_config_query_scalar(const weir_config *cfg, const weir_spec *s, bool gguf)
{
    if (cfg->v[WEIR_CFG_QUERY_SCALAR] > 0)
        return cfg->v[WEIR_CFG_QUERY_SCALAR];
    if (gguf && cfg->arch->gguf_wide_layers == s->L)
        return (double)s->C / (double)s->H;
    return (double)s->D;
}

weir_status weir_config_resolve(const weir_config *cfg, bool gguf, weir_arena *arena, weir_spec *s,
                                const int64_t **window, weir_err *err)
{
    const weir_arch *a = cfg->arch;
    const double *v = cfg->v;
    *s = (weir_spec){
        .rms = a->rms,
        .eps = (float)v[WEIR_CFG_EPS],
        .norm_offset = (gguf ? &a->gguf_tensors : &a->hf_tensors)->norm_offset,
        .parallel = v[WEIR_CFG_PARALLEL] > 0,
        .post_norms = a->post_norms,
        .qk_norms = a->qk_norms,
        .positions = a->positions,
        .rope_factor = 1,
        .attn_softcap = (float)v[WEIR_CFG_SCORE_CAP],
        .act = (weir_act)v[WEIR_CFG_ACT],
        .gated = a->gated,
        .embed_scale = a->scaled_embedding ? (float)sqrt(v[WEIR_CFG_C]) : 1,
        .logit_softcap = (float)v[WEIR_CFG_LOGIT_CAP],
    };
    WEIR_TRY(sizes(cfg, s, err));
    s->attn_scale = (float)(1 / sqrt(weir_config_query_scalar(cfg, s, gguf)));
    if (s->positions == WEIR_POS_ROPE)
        WEIR_TRY(rope_size(cfg, s, err));
    return windows(cfg, s, arena, window, err);
}
