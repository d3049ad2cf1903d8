/* config.json: transformers 4 (rope_theta, rope_scaling) and 5 (rope_parameters), with the defaults of the Hugging Face
 * classes. */
#include <string.h>

#include "../io/object.h"
#include "config.h"

/* --- the family */

static bool has_type(const weir_arch *a, const char *model_type, const weir_type **type)
{
    for (*type = a->type; (*type)->model_type; ++*type)
        if (!strcmp((*type)->model_type, model_type))
            return true;
    return false;
}

static void list_types(char *buf, size_t n)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < weir_n_archs; i++)
        for (const weir_type *t = weir_arch_table[i]->type; t->model_type && used < n; t++)
            used += (size_t)snprintf(buf + used, n - used, "%s%s", used ? ", " : "", t->model_type);
}

static weir_status find_family(weir_config *cfg, const weir_type **type, const weir_object *o, weir_err *err)
{
    const weir_pair *p = weir_object_find(o, "model_type");
    if (!p) {
        weir_fail(err, WEIR_E_FORMAT, "no model_type: this is not the configuration of a Hugging Face model");
        weir_err_where(err, o->file, NULL, -1);
        return WEIR_E_FORMAT;
    }
    WEIR_TRY(weir_pair_string(o, p, &cfg->model_type, err));
    for (int i = 0; i < weir_n_archs; i++)
        if (has_type(weir_arch_table[i], cfg->model_type, type)) {
            cfg->arch = weir_arch_table[i];
            return WEIR_OK;
        }
    char known[256];
    list_types(known, sizeof known);
    return weir_pair_fail(o, p, err, WEIR_E_UNSUPPORTED, "\"%.64s\" is not supported; weir runs %s", cfg->model_type,
                          known);
}

/* --- numbers */

static weir_status read_activation(const weir_object *o, const weir_pair *p, double *v, weir_err *err)
{
    const char *name;
    weir_act act;
    WEIR_TRY(weir_pair_string(o, p, &name, err));
    if (!weir_act_find(name, &act))
        return weir_pair_fail(
            o, p, err, WEIR_E_UNSUPPORTED,
            "activation \"%.64s\" is not supported; weir has gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, silu, "
            "relu, relu2, quick_gelu",
            name);
    *v = act;
    return WEIR_OK;
}

static weir_status read_number(weir_cfg c, const weir_object *o, const weir_pair *p, double *v, weir_err *err)
{
    const weir_cfg_info *info = weir_cfg_info_of(c);
    int64_t i = 0;
    bool b = false;
    *v = 0;
    if (weir_pair_is_null(p) && info->nullable)
        return WEIR_OK;
    switch (info->kind) {
    case WEIR_CFG_ACTIVATION:
        return read_activation(o, p, v, err);
    case WEIR_CFG_BOOL:
        WEIR_TRY(weir_pair_bool(o, p, &b, err));
        *v = b;
        return WEIR_OK;
    case WEIR_CFG_INT:
        WEIR_TRY(weir_pair_int(o, p, &i, err));
        *v = (double)i;
        break;
    case WEIR_CFG_REAL:
        WEIR_TRY(weir_pair_double(o, p, v, err));
    }
    return weir_cfg_check(c, *v, p->key.p, o->file, p->raw.p - o->text.p, err);
}

static weir_status read_keys(weir_config *cfg, const weir_key *k, const weir_object *o, weir_err *err)
{
    for (; k->cfg != WEIR_CFG_END; k++) {
        const weir_pair *p = NULL;
        for (size_t i = 0; i < sizeof k->hf / sizeof *k->hf && k->hf[i] && !p; i++)
            p = weir_object_find(o, k->hf[i]);
        cfg->v[k->cfg] = k->absent;
        cfg->key[k->cfg] = NULL;
        if (!p)
            continue;
        WEIR_TRY(read_number(k->cfg, o, p, &cfg->v[k->cfg], err));
        cfg->key[k->cfg] = p->key.p;
    }
    return WEIR_OK;
}

/* --- what weir does only in one way */

static const weir_only EVERY_FAMILY[] = {
    {"quantization_config", NULL},
    {"is_encoder_decoder", "false"},
    {NULL, NULL},
};

static weir_status check_only(const weir_only *only, const weir_object *o, weir_err *err)
{
    for (; only && only->key; only++) {
        const weir_pair *p = weir_object_find(o, only->key);
        if (!p || weir_pair_is_null(p) || (only->value && weir_str_eq(p->raw, only->value)))
            continue;
        if (!only->value)
            return weir_pair_fail(o, p, err, WEIR_E_UNSUPPORTED,
                                  "not supported: take a checkpoint without it, or a GGUF file");
        return weir_pair_fail(o, p, err, WEIR_E_UNSUPPORTED, "%.*s is not supported, only %s",
                              p->raw.n > 32 ? 32 : (int)p->raw.n, p->raw.p, only->value);
    }
    return WEIR_OK;
}

/* --- layer types */

static weir_status read_layer_types(weir_config *cfg, const weir_object *o, weir_err *err)
{
    const weir_pair *p = weir_object_value(o, "layer_types");
    if (!p)
        return WEIR_OK;
    int64_t layers = (int64_t)cfg->v[WEIR_CFG_L], n = 0, windowed = 0;
    bool *list = weir_arena_alloc(o->arena, (size_t)layers, sizeof *list);
    if (!list)
        return weir_nomem(err, "the list of layers");
    weir_json j;
    weir_err local;
    weir_pair_reader(o, p, &j, &local);
    weir_json_array(&j);
    for (; weir_json_item(&j); n++) {
        weir_str s = weir_json_string(&j);
        bool sliding = weir_str_eq(s, "sliding_attention");
        if (!sliding && !weir_str_eq(s, "full_attention"))
            weir_json_fail(
                &j, "layer %lld is \"%.*s\", which is not supported; weir has full_attention and sliding_attention",
                (long long)n, s.n > 40 ? 40 : (int)s.n, s.p);
        else if (n < layers)
            windowed += list[n] = sliding;
    }
    WEIR_TRY(weir_pair_done(o, p, &j, &local, err));
    if (n != layers)
        return weir_pair_fail(o, p, err, WEIR_E_FORMAT, "%lld entries for %lld layers", (long long)n,
                              (long long)layers);
    if (cfg->arch->layer_types)
        cfg->windowed = list;
    else if (windowed && windowed != n)
        return weir_pair_fail(o, p, err, WEIR_E_UNSUPPORTED,
                              "windows in some layers only are not what model_type %s does", cfg->model_type);
    return WEIR_OK;
}

/* --- RoPE */

static weir_status rope_number(const weir_object *o, const char *key, double absent, double *v, weir_err *err)
{
    const weir_pair *p = weir_object_value(o, key);
    *v = absent;
    if (!p) {
        if (absent > 0)
            return WEIR_OK;
        weir_fail(err, WEIR_E_FORMAT, "the RoPE scaling has no %s", key);
        weir_err_where(err, o->file, NULL, -1);
        return WEIR_E_FORMAT;
    }
    WEIR_TRY(weir_pair_double(o, p, v, err));
    return *v > 0 && *v < 1e30 ? WEIR_OK
                               : weir_pair_fail(o, p, err, WEIR_E_FORMAT, "%.9g is not a positive number", *v);
}

/* The kind of scaling and its numbers. */
static weir_status read_scaling(weir_config *cfg, const weir_object *o, weir_err *err)
{
    weir_rope *r = &cfg->rope;
    const char *kind = "default";
    const weir_pair *p = weir_object_find(o, "rope_type");
    p = p ? p : weir_object_find(o, "type");
    if (p && !weir_pair_is_null(p))
        WEIR_TRY(weir_pair_string(o, p, &kind, err));
    if (!strcmp(kind, "default"))
        return WEIR_OK;
    bool llama3 = !strcmp(kind, "llama3");
    if (!llama3 && strcmp(kind, "linear") != 0)
        return weir_pair_fail(o, p, err, WEIR_E_UNSUPPORTED,
                              "RoPE of type \"%.40s\" is not supported; weir has default, linear, llama3", kind);
    r->kind = llama3 ? WEIR_ROPE_LLAMA3 : WEIR_ROPE_LINEAR;
    WEIR_TRY(rope_number(o, "factor", 0, &r->factor, err));
    if (!llama3)
        return WEIR_OK;
    WEIR_TRY(rope_number(o, "low_freq_factor", 0, &r->low, err));
    WEIR_TRY(rope_number(o, "high_freq_factor", 0, &r->high, err));
    WEIR_TRY(rope_number(o, "original_max_position_embeddings", cfg->v[WEIR_CFG_CTX], &r->original, err));
    if (r->high != r->low)
        return WEIR_OK;
    return weir_pair_fail(o, p, err, WEIR_E_FORMAT, "low_freq_factor and high_freq_factor are equal");
}

/* rope_parameters nested by layer type: the entries in use must agree, since weir has one RoPE for a model. */
static weir_status unnest(weir_object *o, weir_err *err)
{
    static const char *const LAYER_TYPE[] = {"full_attention", "sliding_attention"};
    const weir_pair *first = NULL;
    for (size_t i = 0; i < 2; i++) {
        const weir_pair *p = weir_object_value(o, LAYER_TYPE[i]);
        if (!p)
            continue;
        if (first && (first->raw.n != p->raw.n || memcmp(first->raw.p, p->raw.p, p->raw.n) != 0))
            return weir_pair_fail(o, p, err, WEIR_E_UNSUPPORTED,
                                  "a RoPE of its own for this layer type is not supported");
        first = first ? first : p;
    }
    weir_object inner;
    if (!first)
        return WEIR_OK;
    WEIR_TRY(weir_object_enter(&inner, o, first, err));
    *o = inner;
    return WEIR_OK;
}

/* As transformers does it: rope_scaling if there is one, else rope_parameters; what they lack stands at the top level.
 */
static weir_status read_rope(weir_config *cfg, const weir_object *top, weir_err *err)
{
    static const char *const PLACE[] = {"rope_scaling", "rope_parameters"};
    const weir_pair *p = NULL;
    for (size_t i = 0; i < 2 && !p; i++)
        p = weir_object_value(top, PLACE[i]);
    if (!p)
        return WEIR_OK;
    static const struct {
        const char *key;
        weir_cfg cfg;
    } INSIDE[] = {{"rope_theta", WEIR_CFG_ROPE_THETA}, {"partial_rotary_factor", WEIR_CFG_ROPE_PART}};
    weir_object o;
    WEIR_TRY(weir_object_enter(&o, top, p, err));
    WEIR_TRY(unnest(&o, err));
    for (size_t i = 0; i < 2; i++) {
        p = weir_object_value(&o, INSIDE[i].key);
        if (!p)
            continue;
        WEIR_TRY(read_number(INSIDE[i].cfg, &o, p, &cfg->v[INSIDE[i].cfg], err));
        cfg->key[INSIDE[i].cfg] = p->key.p;
    }
    return read_scaling(cfg, &o, err);
}

/* The key in which a number would stand; NULL: the class does not read it from the file. */
static const char *key_of(const weir_type *type, const weir_key *family)
{
    for (const weir_key *k = type->key; k && k->cfg != WEIR_CFG_END; k++)
        if (k->cfg == family->cfg)
            return k->hf[0];
    return family->hf[0];
}

/* One remark with every number that config.json leaves to the class. */
static void log_defaults(const weir_config *cfg, const weir_type *type, const weir_log *log)
{
    char line[800];
    size_t used = 0;
    for (const weir_key *k = cfg->arch->key; k->cfg != WEIR_CFG_END && used < sizeof line; k++) {
        double v = cfg->v[k->cfg];
        const char *key = key_of(type, k);
        bool whole_head = k->cfg == WEIR_CFG_ROPE_PART && !cfg->arch->partial_rope; /* no choice, no remark */
        bool no_window = (k->cfg == WEIR_CFG_WINDOW || k->cfg == WEIR_CFG_WINDOW_FROM) &&
                         cfg->arch->windows == WEIR_WINDOWS_FROM && !(cfg->v[WEIR_CFG_WINDOWED] > 0);
        if (!key || cfg->key[k->cfg] || v <= 0 || whole_head || no_window)
            continue;
        const char *comma = used ? ", " : "";
        if (k->cfg == WEIR_CFG_ACT)
            used +=
                (size_t)snprintf(line + used, sizeof line - used, "%s%s %s", comma, key, weir_act_name((weir_act)v));
        else
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %.9g", comma, key, v);
    }
    if (used)
        weir_logf(log, WEIR_LOG_INFO, "not in config.json, so the defaults of %s hold: %s", cfg->model_type, line);
}

weir_status weir_config_read_hf(weir_config *out, weir_arena *arena, const weir_filemap *file, const weir_log *log,
                                weir_err *err)
{
    weir_object o;
    const weir_type *type = NULL;
    *out = (weir_config){.file = file->path};
    WEIR_TRY(weir_object_read(&o, arena, (weir_str){(const char *)file->data, file->size}, file->path, err));
    WEIR_TRY(find_family(out, &type, &o, err));
    WEIR_TRY(check_only(EVERY_FAMILY, &o, err));
    WEIR_TRY(check_only(out->arch->only, &o, err));
    WEIR_TRY(read_keys(out, out->arch->key, &o, err));
    if (type->key)
        WEIR_TRY(read_keys(out, type->key, &o, err));
    WEIR_TRY(read_layer_types(out, &o, err));
    if (out->arch->positions == WEIR_POS_ROPE)
        WEIR_TRY(read_rope(out, &o, err));
    log_defaults(out, type, log);
    return WEIR_OK;
}
