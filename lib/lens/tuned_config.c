/* What the JSON files of a tuned lens say: config.json as tuned-lens 0.2.0 has it, and fit.json of weir's own. */
#include "tuned_config.h"

#include <string.h>

#include "../base/log.h"
#include "../io/filemap.h"
#include "../model/object.h"

/* An open file, read as one object. */
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

/* Absent or null: *out stays as it is. */
static weir_status read_string(const source *s, const char *key, const char **out, weir_err *err)
{
    const weir_pair *p = weir_object_find(&s->o, key);
    return !p || weir_pair_is_null(p) ? WEIR_OK : weir_pair_string(&s->o, p, s->arena, out, err);
}

/* A size, which must be the model's. */
static weir_status check_size(const source *s, const char *key, int64_t model, const char *what, weir_err *err)
{
    const weir_pair *p = weir_object_find(&s->o, key);
    int64_t v;
    if (!p) {
        weir_fail(err, WEIR_E_FORMAT, "%s is missing: this is not the configuration of a tuned lens", key);
        weir_err_where(err, s->o.file, NULL, -1);
        return WEIR_E_FORMAT;
    }
    WEIR_TRY(weir_pair_int(&s->o, p, &v, err));
    if (v == model)
        return WEIR_OK;
    return weir_pair_fail(&s->o, p, err, WEIR_E_SHAPE, "the lens is for %lld %s, the model has %lld", (long long)v,
                          what, (long long)model);
}

static weir_status check_type(const source *s, weir_err *err)
{
    const weir_pair *p = weir_object_find(&s->o, "lens_type");
    const char *type = WEIR_TUNED_TYPE; /* tuned-lens' own default */
    WEIR_TRY(read_string(s, "lens_type", &type, err));
    if (strcmp(type, WEIR_TUNED_TYPE) == 0)
        return WEIR_OK;
    return weir_pair_fail(&s->o, p, err, WEIR_E_UNSUPPORTED, "\"%.64s\" is not supported; weir reads \"%s\"", type,
                          WEIR_TUNED_TYPE);
}

static void tell_unknown(const source *s, const weir_log *log)
{
    static const char *const known[] = {
        "base_model_name_or_path", "base_model_revision", "bias", "d_model", "lens_type",
        "num_hidden_layers",       "unembed_hash"};
    for (int64_t i = 0; i < s->o.n; i++) {
        const weir_str key = s->o.pair[i].key;
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found = found || weir_str_eq(key, known[k]);
        if (!found)
            weir_logf(log, WEIR_LOG_WARN, "%s: \"%.*s\" is not known and ignored", s->o.file,
                      key.n > 64 ? 64 : (int)key.n, key.p);
    }
}

static weir_status read_config(weir_tuned_info *out, const source *s, const weir_model_info *model, const weir_log *log,
                               weir_err *err)
{
    const weir_pair *bias = weir_object_find(&s->o, "bias");
    out->L = model->L;
    out->C = model->C;
    out->bias = true;
    WEIR_TRY(check_type(s, err));
    WEIR_TRY(check_size(s, "d_model", model->C, "units of the stream", err));
    WEIR_TRY(check_size(s, "num_hidden_layers", model->L, "layers", err));
    if (bias)
        WEIR_TRY(weir_pair_bool(&s->o, bias, &out->bias, err));
    WEIR_TRY(read_string(s, "base_model_name_or_path", &out->base_model, err));
    WEIR_TRY(read_string(s, "base_model_revision", &out->revision, err));
    tell_unknown(s, log);
    return WEIR_OK;
}

weir_status weir_tuned_config_read(weir_tuned_info *out, weir_arena *arena, const char *path, const weir_model *m,
                                   const weir_log *log, weir_err *err)
{
    source s;
    WEIR_TRY(open_source(&s, arena, path, err));
    const weir_status st = read_config(out, &s, weir_model_info_of(m), log, err);
    weir_filemap_close(&s.map);
    return st;
}

/* --- fit.json */

static weir_status compare_params(const source *s, const char *own, const weir_log *log, weir_err *err)
{
    const char *wanted = NULL;
    WEIR_TRY(read_string(s, "params_sha256", &wanted, err));
    if (wanted && strcmp(own, wanted) != 0)
        weir_logf(log, WEIR_LOG_WARN, "%s: " WEIR_TUNED_PARAMS " has other bytes than were fitted: changed, or damaged",
                  s->o.file);
    return WEIR_OK;
}

static weir_status compare_model(const source *s, const weir_model *m, const weir_log *log, weir_err *err)
{
    const char *wanted = NULL, *name = "another model";
    char own[65];
    WEIR_TRY(read_string(s, "fingerprint", &wanted, err));
    WEIR_TRY(read_string(s, "model", &name, err));
    if (!wanted)
        return WEIR_OK;
    WEIR_TRY(weir_model_fingerprint(m, false, own, err));
    if (strcmp(own, wanted) != 0)
        weir_logf(log, WEIR_LOG_WARN, "%s: the lens was fitted to %.100s, which has other bytes than this model",
                  s->o.file, name);
    return WEIR_OK;
}

weir_status weir_tuned_fit_check(const char *path, const weir_model *m, const char *params, const weir_log *log,
                                 weir_err *err)
{
    weir_arena arena = {0};
    source s;
    if (!weir_path_is_file(path))
        return WEIR_OK;
    weir_status st = open_source(&s, &arena, path, err);
    if (st == WEIR_OK) {
        st = compare_model(&s, m, log, err);
        if (st == WEIR_OK)
            st = compare_params(&s, params, log, err);
        weir_filemap_close(&s.map);
    }
    weir_arena_free(&arena);
    return st;
}

weir_status weir_tuned_is_ours(bool *ours, const char *path, weir_err *err)
{
    weir_arena arena = {0};
    weir_err why = {0};
    const char *format = "";
    source s;
    weir_status st = open_source(&s, &arena, path, &why);
    if (st == WEIR_OK) {
        st = read_string(&s, "format", &format, &why);
        weir_filemap_close(&s.map);
    }
    *ours = st == WEIR_OK && strcmp(format, WEIR_TUNED_FORMAT) == 0;
    weir_arena_free(&arena);
    return st == WEIR_E_NOMEM ? weir_fail(err, st, "%s", why.msg) : WEIR_OK;
}
