#include "config.h"

#include <math.h>
#include <string.h>

#include "../io/filemap.h"
#include "../model/object.h"

enum { MOST_ITEMS = 1 << 16 }; /* of a list or pattern table */

typedef struct source {
    weir_filemap map;
    weir_arena *arena;
    weir_object o;
} source;

static weir_status open_source(source *s, weir_arena *arena, const char *path, weir_err *err)
{
    *s = (source){.arena = arena};
    WEIR_TRY(weir_filemap_open(&s->map, path, err));
    const weir_str text = {(const char *)s->map.data, s->map.size};
    const weir_status st = weir_object_read(&s->o, arena, text, path, err);
    if (st != WEIR_OK)
        weir_filemap_close(&s->map);
    return st;
}

/* A key's value; NULL: absent or null. */
static const weir_pair *value_of(const source *s, const char *key)
{
    const weir_pair *p = weir_object_find(&s->o, key);
    return p && !weir_pair_is_null(p) ? p : NULL;
}

static weir_status read_string(const source *s, const char *key, const char **out, weir_err *err)
{
    const weir_pair *p = value_of(s, key);
    return p ? weir_pair_string(&s->o, p, s->arena, out, err) : WEIR_OK;
}

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
static weir_status refuse_extras(const source *s, weir_err *err)
{
    for (int64_t i = 0; i < s->o.n; i++) {
        const weir_pair *p = &s->o.pair[i];
        if (!is_harmless(p->key) && !is_off(p))
            return weir_pair_fail(&s->o, p, err, WEIR_E_UNSUPPORTED,
                                  "weir loads plain LoRA adapters, in which this is off");
    }
    return WEIR_OK;
}

/* A string that must be this one; absent: fine. */
static weir_status check_word(const source *s, const char *key, const char *word, weir_err *err)
{
    const char *text = word;
    WEIR_TRY(read_string(s, key, &text, err));
    if (strcmp(text, word) == 0)
        return WEIR_OK;
    return weir_pair_fail(&s->o, weir_object_find(&s->o, key), err, WEIR_E_UNSUPPORTED,
                          "\"%.64s\" is not supported; weir loads adapters that have \"%s\"", text, word);
}

/* Some ways to begin change the base model's weights, and the adapter is then the difference to those. */
static weir_status check_beginning(const source *s, weir_err *err)
{
    static const char *const moved[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};
    const weir_pair *p = value_of(s, "init_lora_weights");
    const char *text = "";
    if (!p || !begins(p, '"'))
        return WEIR_OK;
    WEIR_TRY(weir_pair_string(&s->o, p, s->arena, &text, err));
    for (size_t i = 0; i < sizeof moved / sizeof *moved; i++)
        if (strncmp(text, moved[i], strlen(moved[i])) == 0)
            return weir_pair_fail(&s->o, p, err, WEIR_E_UNSUPPORTED,
                                  "\"%.64s\" changes the base model's own weights: convert the adapter with PEFT's "
                                  "path_initial_model_for_weight_conversion",
                                  text);
    return WEIR_OK;
}

/* --- lists */

/* Entries of an array or object. */
static weir_status count(const source *s, const weir_pair *p, bool object, int64_t *most, weir_err *err)
{
    weir_json j;
    weir_err local = {0};
    weir_str key;
    *most = 0;
    weir_pair_reader(&s->o, p, &j, &local);
    object ? weir_json_object(&j) : weir_json_array(&j);
    for (; object ? weir_json_key(&j, &key) : weir_json_item(&j); ++*most)
        weir_json_skip(&j);
    WEIR_TRY(weir_pair_done(&s->o, p, &j, &local, err));
    return *most <= MOST_ITEMS ? WEIR_OK
                               : weir_pair_fail(&s->o, p, err, WEIR_E_FORMAT, "more than %d entries", MOST_ITEMS);
}

static weir_status read_targets(weir_adapter *a, const source *s, weir_err *err)
{
    const weir_pair *p = value_of(s, "target_modules");
    weir_json j;
    weir_err local = {0};
    int64_t most, n = 0;
    bool room = true;
    a->n_target = -1;
    if (!p || begins(p, '"'))
        return WEIR_OK;
    WEIR_TRY(count(s, p, false, &most, err));
    const char **name = weir_arena_alloc(s->arena, (size_t)most + 1, sizeof *name);
    if (!name)
        return weir_nomem(err, "an adapter");
    weir_pair_reader(&s->o, p, &j, &local);
    weir_json_array(&j);
    while (weir_json_item(&j)) {
        const weir_str t = weir_json_string(&j);
        name[n] = weir_arena_strndup(s->arena, t.n ? t.p : "", t.n);
        room = room && name[n++];
    }
    WEIR_TRY(weir_pair_done(&s->o, p, &j, &local, err));
    a->target = name;
    a->n_target = n;
    return room ? WEIR_OK : weir_nomem(err, "an adapter");
}

static weir_status read_layers(weir_adapter *a, const source *s, weir_err *err)
{
    const weir_pair *p = value_of(s, "layers_to_transform");
    weir_json j;
    weir_err local = {0};
    int64_t most = 1, n = 0;
    a->n_layers = -1;
    if (!p)
        return WEIR_OK;
    const bool list = begins(p, '[');
    if (list)
        WEIR_TRY(count(s, p, false, &most, err));
    int64_t *layer = weir_arena_alloc(s->arena, (size_t)most + 1, sizeof *layer);
    if (!layer)
        return weir_nomem(err, "an adapter");
    if (!list) {
        WEIR_TRY(weir_pair_int(&s->o, p, layer, err));
        n = 1;
    } else {
        weir_pair_reader(&s->o, p, &j, &local);
        weir_json_array(&j);
        while (weir_json_item(&j))
            layer[n++] = weir_json_int(&j);
        WEIR_TRY(weir_pair_done(&s->o, p, &j, &local, err));
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

static weir_status read_patterns(const source *s, const char *which, const weir_adapter_pattern **out, int64_t *n_out,
                                 weir_err *err)
{
    const weir_pair *p = value_of(s, which);
    weir_json j;
    weir_err local = {0};
    weir_str key;
    int64_t most, n = 0;
    bool names = true, room = true;
    *n_out = 0;
    if (!p)
        return WEIR_OK;
    WEIR_TRY(count(s, p, true, &most, err));
    weir_adapter_pattern *list = weir_arena_alloc(s->arena, (size_t)most + 1, sizeof *list);
    if (!list)
        return weir_nomem(err, "an adapter");
    weir_pair_reader(&s->o, p, &j, &local);
    weir_json_object(&j);
    while (weir_json_key(&j, &key)) {
        names = names && is_name(key);
        list[n].key = plain_name(s->arena, key);
        room = room && list[n].key;
        list[n++].value = weir_json_double(&j);
    }
    WEIR_TRY(weir_pair_done(&s->o, p, &j, &local, err));
    if (!names)
        return weir_pair_fail(&s->o, p, err, WEIR_E_UNSUPPORTED,
                              "a key is a regular expression: weir reads names only");
    *out = list;
    *n_out = n;
    return room ? WEIR_OK : weir_nomem(err, "an adapter");
}

/* --- the numbers */

static weir_status read_numbers(weir_adapter *a, const source *s, weir_err *err)
{
    const weir_pair *r = value_of(s, "r"), *alpha = value_of(s, "lora_alpha"), *rs = value_of(s, "use_rslora");
    const weir_pair *turned = value_of(s, "fan_in_fan_out");
    bool unused;            /* A is [r, in] and B [out, r] whatever way the base weight is stored */
    a->r = 8, a->alpha = 8; /* LoraConfig's defaults */
    if (r)
        WEIR_TRY(weir_pair_int(&s->o, r, &a->r, err));
    if (alpha)
        WEIR_TRY(weir_pair_double(&s->o, alpha, &a->alpha, err));
    if (rs)
        WEIR_TRY(weir_pair_bool(&s->o, rs, &a->rslora, err));
    if (turned)
        WEIR_TRY(weir_pair_bool(&s->o, turned, &unused, err));
    if (a->r < 1)
        return weir_pair_fail(&s->o, r, err, WEIR_E_FORMAT, "%lld: a rank is at least 1", (long long)a->r);
    return WEIR_OK;
}

static weir_status read_config(weir_adapter *a, const source *s, weir_err *err)
{
    if (!value_of(s, "peft_type")) {
        weir_fail(err, WEIR_E_FORMAT, "peft_type is missing: this is not the configuration of an adapter");
        return weir_err_where(err, s->o.file, NULL, -1);
    }
    WEIR_TRY(check_word(s, "peft_type", "LORA", err));
    WEIR_TRY(check_word(s, "bias", "none", err));
    WEIR_TRY(refuse_extras(s, err));
    WEIR_TRY(check_beginning(s, err));
    WEIR_TRY(read_numbers(a, s, err));
    WEIR_TRY(read_patterns(s, "rank_pattern", &a->rank, &a->n_rank, err));
    WEIR_TRY(read_patterns(s, "alpha_pattern", &a->alphas, &a->n_alphas, err));
    WEIR_TRY(read_targets(a, s, err));
    WEIR_TRY(read_layers(a, s, err));
    return read_string(s, "base_model_name_or_path", &a->base_model, err);
}

weir_status weir_adapter_read(weir_adapter *out, weir_arena *arena, const char *path, weir_err *err)
{
    source s;
    *out = (weir_adapter){.file = weir_arena_strndup(arena, path, strlen(path))};
    if (!out->file)
        return weir_nomem(err, "an adapter");
    WEIR_TRY(open_source(&s, arena, path, err));
    const weir_status st = read_config(out, &s, err);
    weir_filemap_close(&s.map);
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

static weir_status read_edit_json(weir_edit_json *out, const source *s, weir_err *err)
{
    static const char *const key[] = {"format", "method", "fingerprint"};
    const char **const to[] = {&out->format, &out->method, &out->fingerprint};
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        WEIR_TRY(read_string(s, key[i], to[i], err));
    out->text = weir_arena_strndup(s->arena, s->o.text.p, s->o.text.n);
    return out->text ? WEIR_OK : weir_nomem(err, "an edit");
}

weir_status weir_edit_json_read(weir_edit_json *out, weir_arena *arena, const char *path, weir_err *err)
{
    source s;
    *out = (weir_edit_json){0};
    if (weir_path_is_absent(path)) /* what lies there and cannot be read is no licence to skip the model's check */
        return WEIR_OK;
    WEIR_TRY(open_source(&s, arena, path, err));
    const weir_status st = read_edit_json(out, &s, err);
    weir_filemap_close(&s.map);
    return st;
}
