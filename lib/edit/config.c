#include "config.h"

#include <math.h>
#include <string.h>

#include "../io/object.h"

enum { MOST_ITEMS = 1 << 16 }; /* of a list or pattern table */

static bool raw_is(const weir_pair *p, const char *text)
{
    return weir_str_eq(p->raw, text);
}

/* Does a value begin with this sign? It is sound JSON: '"' begins a string, '[' a list. */
static bool begins(const weir_pair *p, char sign)
{
    return p->raw.n && p->raw.p[0] == sign;
}

/* --- what is refused */

/* Keys that do not change what a trained adapter computes: how it was made, for whom, how it is stored. */
static const char *const HARMLESS[] = {"alpha_pattern",
                                       "auto_mapping",
                                       "base_model_name_or_path",
                                       "bias",
                                       "corda_config",
                                       "ensure_weight_tying",
                                       "eva_config",
                                       "exclude_modules",
                                       "fan_in_fan_out",
                                       "inference_mode",
                                       "init_lora_weights",
                                       "layers_pattern",
                                       "layers_to_transform",
                                       "loftq_config",
                                       "lora_alpha",
                                       "lora_dropout",
                                       "lora_ga_config",
                                       "megatron_config",
                                       "megatron_core",
                                       "peft_type",
                                       "peft_version",
                                       "qalora_group_size",
                                       "r",
                                       "rank_pattern",
                                       "revision",
                                       "runtime_config",
                                       "target_modules",
                                       "task_type",
                                       "use_rslora",
                                       "velora_config"};

static bool is_harmless(weir_str key)
{
    for (size_t i = 0; i < sizeof HARMLESS / sizeof *HARMLESS; i++)
        if (weir_str_eq(key, HARMLESS[i]))
            return true;
    return false;
}

/* A switch that is off. */
static bool is_off(const weir_pair *p)
{
    static const char *const off[] = {"null", "false", "[]", "{}"};
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (raw_is(p, off[i]))
            return true;
    return false;
}

/* use_dora, modules_to_save, lora_bias, alora_invocation_tokens, ..., and what later versions think of. */
static weir_status refuse_extras(const weir_object *o, weir_err *err)
{
    for (int64_t i = 0; i < o->n; i++) {
        const weir_pair *p = &o->pair[i];
        if (!is_harmless(p->key) && !is_off(p))
            return weir_pair_fail(o, p, err, WEIR_E_UNSUPPORTED,
                                  "weir loads plain LoRA adapters, in which this is off");
    }
    return WEIR_OK;
}

/* A string that must be this one; absent: fine. */
static weir_status check_word(const weir_object *o, const char *key, const char *word, weir_err *err)
{
    const char *text = word;
    WEIR_TRY(weir_object_string(o, key, &text, err));
    if (strcmp(text, word) == 0)
        return WEIR_OK;
    return weir_pair_fail(o, weir_object_find(o, key), err, WEIR_E_UNSUPPORTED,
                          "\"%.64s\" is not supported; weir loads adapters that have \"%s\"", text, word);
}

/* Some ways to begin change the base model's weights, and the adapter is then the difference to those. */
static weir_status check_beginning(const weir_object *o, weir_err *err)
{
    static const char *const moved[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};
    const weir_pair *p = weir_object_value(o, "init_lora_weights");
    const char *text = "";
    if (!p || !begins(p, '"'))
        return WEIR_OK;
    WEIR_TRY(weir_pair_string(o, p, &text, err));
    for (size_t i = 0; i < sizeof moved / sizeof *moved; i++)
        if (strncmp(text, moved[i], strlen(moved[i])) == 0)
            return weir_pair_fail(o, p, err, WEIR_E_UNSUPPORTED,
                                  "\"%.64s\" changes the base model's own weights: convert the adapter with PEFT's "
                                  "path_initial_model_for_weight_conversion",
                                  text);
    return WEIR_OK;
}

/* --- lists */

/* Entries of an array or object. */
static weir_status count(const weir_object *o, const weir_pair *p, bool object, int64_t *most, weir_err *err)
{
    weir_json j;
    weir_err local = {0};
    weir_str key;
    *most = 0;
    weir_pair_reader(o, p, &j, &local);
    object ? weir_json_object(&j) : weir_json_array(&j);
    for (; object ? weir_json_key(&j, &key) : weir_json_item(&j); ++*most)
        weir_json_skip(&j);
    WEIR_TRY(weir_pair_done(o, p, &j, &local, err));
    return *most <= MOST_ITEMS ? WEIR_OK : weir_pair_fail(o, p, err, WEIR_E_FORMAT, "more than %d entries", MOST_ITEMS);
}

static weir_status read_targets(weir_adapter *a, const weir_object *o, weir_err *err)
{
    const weir_pair *p = weir_object_value(o, "target_modules");
    weir_json j;
    weir_err local = {0};
    int64_t most, n = 0;
    bool room = true;
    a->n_target = -1;
    if (!p || begins(p, '"'))
        return WEIR_OK;
    WEIR_TRY(count(o, p, false, &most, err));
    const char **name = weir_arena_alloc(o->arena, (size_t)most + 1, sizeof *name);
    if (!name)
        return weir_nomem(err, "an adapter");
    weir_pair_reader(o, p, &j, &local);
    weir_json_array(&j);
    while (weir_json_item(&j)) {
        const weir_str t = weir_json_string(&j);
        name[n] = weir_arena_strndup(o->arena, t.n ? t.p : "", t.n);
        room = room && name[n++];
    }
    WEIR_TRY(weir_pair_done(o, p, &j, &local, err));
    a->target = name;
    a->n_target = n;
    return room ? WEIR_OK : weir_nomem(err, "an adapter");
}

static weir_status read_layers(weir_adapter *a, const weir_object *o, weir_err *err)
{
    const weir_pair *p = weir_object_value(o, "layers_to_transform");
    weir_json j;
    weir_err local = {0};
    int64_t most = 1, n = 0;
    a->n_layers = -1;
    if (!p)
        return WEIR_OK;
    const bool list = begins(p, '[');
    if (list)
        WEIR_TRY(count(o, p, false, &most, err));
    int64_t *layer = weir_arena_alloc(o->arena, (size_t)most + 1, sizeof *layer);
    if (!layer)
        return weir_nomem(err, "an adapter");
    if (!list) {
        WEIR_TRY(weir_pair_int(o, p, layer, err));
        n = 1;
    } else {
        weir_pair_reader(o, p, &j, &local);
        weir_json_array(&j);
        while (weir_json_item(&j))
            layer[n++] = weir_json_int(&j);
        WEIR_TRY(weir_pair_done(o, p, &j, &local, err));
    }
    a->layer = layer;
    a->n_layers = n;
    return WEIR_OK;
}

/* PEFT reads keys as regular expressions behind any beginning that ends with a dot. Names are those in which only the
 * dot is special, plainly or with a backslash, perhaps behind ^. */
static bool is_name(weir_str key)
{
    for (size_t i = 0; i < key.n; i++) {
        const char c = key.p[i];
        const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        const bool escaped = c == '\\' && i + 1 < key.n && key.p[i + 1] == '.';
        if (!word && c != '.' && !escaped && !(c == '^' && i == 0))
            return false;
    }
    return key.n > 0;
}

/* The key without backslashes. */
static char *plain_name(weir_arena *arena, weir_str key)
{
    char *name = weir_arena_alloc(arena, key.n + 1, 1);
    for (size_t i = 0, n = 0; name && i < key.n; i++)
        if (key.p[i] != '\\')
            name[n++] = key.p[i];
    return name;
}

static weir_status read_patterns(const weir_object *o, const char *which, const weir_adapter_pattern **out,
                                 int64_t *n_out, weir_err *err)
{
    const weir_pair *p = weir_object_value(o, which);
    weir_json j;
    weir_err local = {0};
    weir_str key;
    int64_t most, n = 0;
    bool names = true, room = true;
    *n_out = 0;
    if (!p)
        return WEIR_OK;
    WEIR_TRY(count(o, p, true, &most, err));
    weir_adapter_pattern *list = weir_arena_alloc(o->arena, (size_t)most + 1, sizeof *list);
    if (!list)
        return weir_nomem(err, "an adapter");
    weir_pair_reader(o, p, &j, &local);
    weir_json_object(&j);
    while (weir_json_key(&j, &key)) {
        names = names && is_name(key);
        list[n].key = plain_name(o->arena, key);
        room = room && list[n].key;
        list[n++].value = weir_json_double(&j);
    }
    WEIR_TRY(weir_pair_done(o, p, &j, &local, err));
    if (!names)
        return weir_pair_fail(o, p, err, WEIR_E_UNSUPPORTED, "a key is a regular expression: weir reads names only");
    *out = list;
    *n_out = n;
    return room ? WEIR_OK : weir_nomem(err, "an adapter");
}

/* --- the numbers */

static weir_status read_numbers(weir_adapter *a, const weir_object *o, weir_err *err)
{
    const weir_pair *r = weir_object_value(o, "r"), *alpha = weir_object_value(o, "lora_alpha");
    const weir_pair *rs = weir_object_value(o, "use_rslora"), *turned = weir_object_value(o, "fan_in_fan_out");
    bool unused;            /* A is [r, in] and B [out, r] whatever way the base weight is stored */
    a->r = 8, a->alpha = 8; /* LoraConfig's defaults */
    if (r)
        WEIR_TRY(weir_pair_int(o, r, &a->r, err));
    if (alpha)
        WEIR_TRY(weir_pair_double(o, alpha, &a->alpha, err));
    if (rs)
        WEIR_TRY(weir_pair_bool(o, rs, &a->rslora, err));
    if (turned)
        WEIR_TRY(weir_pair_bool(o, turned, &unused, err));
    if (a->r < 1)
        return weir_pair_fail(o, r, err, WEIR_E_FORMAT, "%lld: a rank is at least 1", (long long)a->r);
    return WEIR_OK;
}

static weir_status read_config(weir_adapter *a, const weir_object *o, weir_err *err)
{
    if (!weir_object_value(o, "peft_type")) {
        weir_fail(err, WEIR_E_FORMAT, "peft_type is missing: this is not the configuration of an adapter");
        return weir_err_where(err, o->file, NULL, -1);
    }
    WEIR_TRY(check_word(o, "peft_type", "LORA", err));
    WEIR_TRY(check_word(o, "bias", "none", err));
    WEIR_TRY(refuse_extras(o, err));
    WEIR_TRY(check_beginning(o, err));
    WEIR_TRY(read_numbers(a, o, err));
    WEIR_TRY(read_patterns(o, "rank_pattern", &a->rank, &a->n_rank, err));
    WEIR_TRY(read_patterns(o, "alpha_pattern", &a->alphas, &a->n_alphas, err));
    WEIR_TRY(read_targets(a, o, err));
    WEIR_TRY(read_layers(a, o, err));
    return weir_object_string(o, "base_model_name_or_path", &a->base_model, err);
}

weir_status weir_adapter_read(weir_adapter *out, weir_arena *arena, const char *path, weir_err *err)
{
    weir_filemap map;
    weir_object o;
    *out = (weir_adapter){.file = weir_arena_strndup(arena, path, strlen(path))};
    if (!out->file)
        return weir_nomem(err, "an adapter");
    WEIR_TRY(weir_object_open(&o, &map, arena, path, err));
    const weir_status st = read_config(out, &o, err);
    weir_filemap_close(&map);
    return st;
}

/* --- questions */

/* Is `name` the module's whole name or its end behind a dot? Behind ^ it is the whole. */
static bool ends_with(const char *module, const char *name)
{
    const bool whole = *name == '^';
    const size_t n = strlen(module), k = strlen(name += whole);
    if (k > n || strcmp(module + n - k, name) != 0)
        return false;
    return k == n || (!whole && module[n - k - 1] == '.');
}

bool weir_adapter_targets(const weir_adapter *a, const char *module, int64_t layer)
{
    bool layer_meant = a->n_layers < 0, meant = a->n_target < 0;
    for (int64_t i = 0; i < a->n_layers && !layer_meant; i++)
        layer_meant = a->layer[i] == layer;
    for (int64_t i = 0; i < a->n_target && !meant; i++)
        meant = ends_with(module, a->target[i]);
    return layer_meant && meant;
}

/* The first pattern that the module follows decides. */
static double pattern_or(const weir_adapter_pattern *p, int64_t n, const char *module, double common)
{
    for (int64_t i = 0; i < n; i++)
        if (ends_with(module, p[i].key))
            return p[i].value;
    return common;
}

weir_status weir_adapter_scale(const weir_adapter *a, const char *module, int64_t r, double *scale, weir_err *err)
{
    const double rank = pattern_or(a->rank, a->n_rank, module, (double)a->r);
    const double alpha = pattern_or(a->alphas, a->n_alphas, module, a->alpha);
    *scale = alpha / (a->rslora ? sqrt((double)r) : (double)r);
    if (rank == (double)r && isfinite((float)*scale))
        return WEIR_OK;
    if (rank != (double)r)
        weir_fail(err, WEIR_E_UNSUPPORTED, "it says rank %g for %.100s, whose tensors have rank %lld", rank, module,
                  (long long)r);
    else
        weir_fail(err, WEIR_E_FORMAT, "the scale of %.100s is %g", module, *scale);
    weir_err_where(err, a->file, NULL, -1);
    return rank == (double)r ? WEIR_E_FORMAT : WEIR_E_UNSUPPORTED;
}

/* --- edit.json */

static weir_status read_edit_json(weir_edit_json *out, const weir_object *o, weir_err *err)
{
    static const char *const key[] = {"format", "method", "fingerprint"};
    const char **const to[] = {&out->format, &out->method, &out->fingerprint};
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        WEIR_TRY(weir_object_string(o, key[i], to[i], err));
    out->text = weir_arena_strndup(o->arena, o->text.p, o->text.n);
    return out->text ? WEIR_OK : weir_nomem(err, "an edit");
}

weir_status weir_edit_json_read(weir_edit_json *out, weir_arena *arena, const char *path, weir_err *err)
{
    weir_filemap map;
    weir_object o;
    *out = (weir_edit_json){0};
    if (weir_path_is_absent(path)) /* what lies there and cannot be read is no licence to skip the model's check */
        return WEIR_OK;
    WEIR_TRY(weir_object_open(&o, &map, arena, path, err));
    const weir_status st = read_edit_json(out, &o, err);
    weir_filemap_close(&map);
    return st;
}
