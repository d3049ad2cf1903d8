/* GGUF metadata: keys "ARCH.KEY", of which none has a class default. */
#include <string.h>

#include <weir/json.h>

#include "config.h"

#define KEY_MAX 128

static weir_status fail(const weir_gguf *g, weir_err *err, weir_status code, const weir_gguf_kv *kv, const char *msg)
{
    weir_fail(err, code, "%s", msg);
    weir_err_where(err, g->map.path, NULL, kv ? kv->offset : -1);
    return code;
}

/* --- the family */

static const char *copy(weir_arena *arena, weir_str s)
{
    return weir_arena_strndup(arena, s.p, s.n);
}

static void list_archs(char *buf, size_t n)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < weir_n_archs; i++)
        for (const char *const *a = weir_arch_table[i]->gguf; *a && used < n; a++)
            used += (size_t)snprintf(buf + used, n - used, "%s%s", used ? ", " : "", *a);
}

static weir_status find_family(weir_config *cfg, weir_arena *arena, const weir_gguf *g, weir_err *err)
{
    weir_str name;
    WEIR_TRY(weir_gguf_str(g, "general.architecture", &name, NULL, err));
    if (!(cfg->model_type = copy(arena, name)))
        return weir_nomem(err, "the configuration");
    for (int i = 0; i < weir_n_archs; i++)
        for (const char *const *a = weir_arch_table[i]->gguf; *a; a++)
            if (!strcmp(*a, cfg->model_type)) {
                cfg->arch = weir_arch_table[i];
                return WEIR_OK;
            }
    char known[256], msg[400];
    list_archs(known, sizeof known);
    snprintf(msg, sizeof msg, "general.architecture: \"%.64s\" is not supported; weir runs %s", cfg->model_type, known);
    return fail(g, err, WEIR_E_UNSUPPORTED, weir_gguf_find(g, "general.architecture"), msg);
}

static const char *full_key(char buf[KEY_MAX], const weir_config *cfg, const char *key)
{
    snprintf(buf, KEY_MAX, "%s.%s", cfg->model_type, key);
    return buf;
}

/* --- numbers */

static weir_status read_number(weir_config *cfg, const weir_key *k, weir_arena *arena, const weir_gguf *g,
                               weir_err *err)
{
    char key[KEY_MAX];
    full_key(key, cfg, k->gguf);
    const weir_gguf_kv *kv = weir_gguf_find(g, key);
    bool found = false, b = false;
    double v = k->absent;
    if (!kv) {
        char msg[200];
        cfg->v[k->cfg] = v;
        snprintf(msg, sizeof msg, "no %s in the metadata", key);
        return k->gguf_required ? fail(g, err, WEIR_E_FORMAT, NULL, msg) : WEIR_OK;
    }
    switch (weir_cfg_info_of(k->cfg)->kind) {
    case WEIR_CFG_BOOL:
        WEIR_TRY(weir_gguf_bool(g, key, &b, &found, err));
        v = b;
        break;
    case WEIR_CFG_INT: {
        int64_t i = 0;
        WEIR_TRY(weir_gguf_int(g, key, &i, &found, err));
        v = (double)i;
        break;
    }
    default:
        WEIR_TRY(weir_gguf_double(g, key, &v, &found, err));
    }
    WEIR_TRY(weir_cfg_check(k->cfg, v, key, g->map.path, kv->offset, err));
    cfg->v[k->cfg] = v;
    if (!(cfg->key[k->cfg] = weir_arena_strndup(arena, key, strlen(key))))
        return weir_nomem(err, "the configuration");
    return WEIR_OK;
}

/* --- what weir does not do: keys that must be absent or have one value */

static const struct {
    const char *key;
    double value;
    const char *what;
} ONLY[] = {
    {"expert_count", 0, "a mixture of experts"},
    {"attention.max_alibi_bias", 0, "ALiBi"},
    {"attention.clamp_kqv", 0, "clamped q, k and v"},
    {"attention.scale", 0, "a scale of scores of its own"},
    {"residual_scale", 0, "a scale of the sublayers"},
    {"embedding_scale", 0, "a scale of the embeddings"},
    {"logit_scale", 0, "a scale of the logits"},
    {"rope.scale_linear", 1, "RoPE scaling of the first GGUF files"},
    {"rope.scaling.attn_factor", 1, "a RoPE attention factor"},
};

static weir_status check_only(const weir_config *cfg, const weir_gguf *g, weir_err *err)
{
    char key[KEY_MAX], msg[240];
    for (size_t i = 0; i < sizeof ONLY / sizeof *ONLY; i++) {
        double v = ONLY[i].value;
        bool found;
        WEIR_TRY(weir_gguf_double(g, full_key(key, cfg, ONLY[i].key), &v, &found, err));
        if (v == ONLY[i].value)
            continue;
        snprintf(msg, sizeof msg, "%s = %.9g: %s is not supported", key, v, ONLY[i].what);
        return fail(g, err, WEIR_E_UNSUPPORTED, weir_gguf_find(g, key), msg);
    }
    bool found;
    int64_t d = (int64_t)cfg->v[WEIR_CFG_D];
    WEIR_TRY(weir_gguf_int(g, full_key(key, cfg, "attention.value_length"), &d, &found, err));
    if (found && d != (int64_t)cfg->v[WEIR_CFG_D] && cfg->v[WEIR_CFG_D] > 0)
        return fail(g, err, WEIR_E_UNSUPPORTED, weir_gguf_find(g, key),
                    "values of another size than keys are not supported");
    return WEIR_OK;
}

/* --- windows by layer: a list of booleans, or n: every n-th layer is full. Absent: the family's rule. */

static weir_status read_windows(weir_config *cfg, weir_arena *arena, const weir_gguf *g, weir_err *err)
{
    char key[KEY_MAX];
    const weir_gguf_kv *kv = weir_gguf_find(g, full_key(key, cfg, "attention.sliding_window_pattern"));
    if (!kv || !cfg->arch->layer_types)
        return WEIR_OK;
    int64_t layers = (int64_t)cfg->v[WEIR_CFG_L], period = 0;
    bool *list = weir_arena_alloc(arena, (size_t)layers, sizeof *list), found;
    if (!list)
        return weir_nomem(err, "the list of layers");
    if (kv->type != WEIR_GGUF_ARRAY) {
        WEIR_TRY(weir_gguf_int(g, key, &period, &found, err));
        if (period < 1)
            return fail(g, err, WEIR_E_FORMAT, kv, "attention.sliding_window_pattern is below 1");
        for (int64_t l = 0; l < layers; l++)
            list[l] = l % period < period - 1;
    } else {
        if (kv->elem == WEIR_GGUF_STRING || kv->elem == WEIR_GGUF_F32 || kv->elem == WEIR_GGUF_F64 ||
            kv->n != (uint64_t)layers)
            return fail(g, err, WEIR_E_FORMAT, kv,
                        "attention.sliding_window_pattern is no list of one boolean for each layer");
        for (int64_t l = 0; l < layers; l++)
            list[l] = weir_gguf_elem_int(kv, (uint64_t)l) != 0;
    }
    cfg->windowed = list;
    return WEIR_OK;
}

static weir_status read_rope(weir_config *cfg, const weir_gguf *g, weir_err *err)
{
    char key[KEY_MAX], msg[200];
    weir_str kind = {"none", 4};
    bool found;
    WEIR_TRY(weir_gguf_str(g, full_key(key, cfg, "rope.scaling.type"), &kind, &found, err));
    if (weir_str_eq(kind, "none"))
        return WEIR_OK;
    if (!weir_str_eq(kind, "linear")) {
        snprintf(msg, sizeof msg, "%s: RoPE of type \"%.*s\" is not supported; weir has none, linear", key,
                 kind.n > 40 ? 40 : (int)kind.n, kind.p);
        return fail(g, err, WEIR_E_UNSUPPORTED, weir_gguf_find(g, key), msg);
    }
    cfg->rope.kind = WEIR_ROPE_LINEAR;
    WEIR_TRY(weir_gguf_double(g, full_key(key, cfg, "rope.scaling.factor"), &cfg->rope.factor, NULL, err));
    if (cfg->rope.factor > 0 && cfg->rope.factor < 1e30)
        return WEIR_OK;
    return fail(g, err, WEIR_E_FORMAT, weir_gguf_find(g, key), "rope.scaling.factor is not a positive number");
}

weir_status weir_config_read_gguf(weir_config *out, weir_arena *arena, const weir_gguf *g, weir_err *err)
{
    *out = (weir_config){.file = g->map.path};
    WEIR_TRY(find_family(out, arena, g, err));
    for (const weir_key *k = out->arch->key; k->cfg != WEIR_CFG_END; k++) {
        out->v[k->cfg] = k->absent;
        if (k->gguf)
            WEIR_TRY(read_number(out, k, arena, g, err));
    }
    out->v[WEIR_CFG_V] = 0; /* the token table says it */
    out->v[WEIR_CFG_ACT] = out->arch->gguf_act;
    out->v[WEIR_CFG_QUERY_SCALAR] = 0;
    weir_str name = {"", 0};
    bool found;
    WEIR_TRY(weir_gguf_str(g, "general.name", &name, &found, err));
    if (name.n && !(out->name = copy(arena, name)))
        return weir_nomem(err, "the configuration");
    WEIR_TRY(check_only(out, g, err));
    WEIR_TRY(read_windows(out, arena, g, err));
    return out->arch->positions == WEIR_POS_ROPE ? read_rope(out, g, err) : WEIR_OK;
}
