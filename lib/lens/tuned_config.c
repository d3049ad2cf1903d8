/* What the JSON files of a tuned lens say: config.json as tuned-lens 0.2.0 has it, and fit.json of weir's own. */
#include "tuned_config.h"

#include <string.h>

#include "../base/log.h"
#include "../io/object.h"

/* A size, which must be the model's. */
static weir_status check_size(const weir_object *o, const char *key, int64_t model, const char *what, weir_err *err)
{
    const weir_pair *p = weir_object_find(o, key);
    int64_t v;
    if (!p) {
        weir_fail(err, WEIR_E_FORMAT, "%s is missing: this is not the configuration of a tuned lens", key);
        weir_err_where(err, o->file, NULL, -1);
        return WEIR_E_FORMAT;
    }
    WEIR_TRY(weir_pair_int(o, p, &v, err));
    if (v == model)
        return WEIR_OK;
    return weir_pair_fail(o, p, err, WEIR_E_SHAPE, "the lens is for %lld %s, the model has %lld", (long long)v, what,
                          (long long)model);
}

static weir_status check_type(const weir_object *o, weir_err *err)
{
    const weir_pair *p = weir_object_find(o, "lens_type");
    const char *type = WEIR_TUNED_TYPE; /* tuned-lens' own default */
    WEIR_TRY(weir_object_string(o, "lens_type", &type, err));
    if (strcmp(type, WEIR_TUNED_TYPE) == 0)
        return WEIR_OK;
    return weir_pair_fail(o, p, err, WEIR_E_UNSUPPORTED, "\"%.64s\" is not supported; weir reads \"%s\"", type,
                          WEIR_TUNED_TYPE);
}

static void tell_unknown(const weir_object *o, const weir_log *log)
{
    static const char *const known[] = {
        "base_model_name_or_path", "base_model_revision", "bias", "d_model", "lens_type",
        "num_hidden_layers",       "unembed_hash"};
    for (int64_t i = 0; i < o->n; i++) {
        const weir_str key = o->pair[i].key;
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found = found || weir_str_eq(key, known[k]);
        if (!found)
            weir_logf(log, WEIR_LOG_WARN, "%s: \"%.*s\" is not known and ignored", o->file,
                      key.n > 64 ? 64 : (int)key.n, key.p);
    }
}

static weir_status read_config(weir_tuned_info *out, const weir_object *o, const weir_model_info *model,
                               const weir_log *log, weir_err *err)
{
    const weir_pair *bias = weir_object_find(o, "bias");
    out->L = model->L;
    out->C = model->C;
    out->bias = true;
    WEIR_TRY(check_type(o, err));
    WEIR_TRY(check_size(o, "d_model", model->C, "units of the stream", err));
    WEIR_TRY(check_size(o, "num_hidden_layers", model->L, "layers", err));
    if (bias)
        WEIR_TRY(weir_pair_bool(o, bias, &out->bias, err));
    WEIR_TRY(weir_object_string(o, "base_model_name_or_path", &out->base_model, err));
    WEIR_TRY(weir_object_string(o, "base_model_revision", &out->revision, err));
    tell_unknown(o, log);
    return WEIR_OK;
}

weir_status weir_tuned_config_read(weir_tuned_info *out, weir_arena *arena, const char *path, const weir_model *m,
                                   const weir_log *log, weir_err *err)
{
    weir_filemap map;
    weir_object o;
    WEIR_TRY(weir_object_open(&o, &map, arena, path, err));
    const weir_status st = read_config(out, &o, weir_model_info_of(m), log, err);
    weir_filemap_close(&map);
    return st;
}

/* --- fit.json */

static weir_status compare_params(const weir_object *o, const char *own, const weir_log *log, weir_err *err)
{
    const char *wanted = NULL;
    WEIR_TRY(weir_object_string(o, "params_sha256", &wanted, err));
    if (wanted && strcmp(own, wanted) != 0)
        weir_logf(log, WEIR_LOG_WARN, "%s: " WEIR_TUNED_PARAMS " has other bytes than were fitted: changed, or damaged",
                  o->file);
    return WEIR_OK;
}

static weir_status compare_model(const weir_object *o, const weir_model *m, const weir_log *log, weir_err *err)
{
    const char *wanted = NULL, *name = "another model";
    char own[65];
    WEIR_TRY(weir_object_string(o, "fingerprint", &wanted, err));
    WEIR_TRY(weir_object_string(o, "model", &name, err));
    if (!wanted)
        return WEIR_OK;
    WEIR_TRY(weir_model_fingerprint(m, false, own, err));
    if (strcmp(own, wanted) != 0)
        weir_logf(log, WEIR_LOG_WARN, "%s: the lens was fitted to %.100s, which has other bytes than this model",
                  o->file, name);
    return WEIR_OK;
}

weir_status weir_tuned_fit_check(const char *path, const weir_model *m, const char *params, const weir_log *log,
                                 weir_err *err)
{
    weir_arena arena = {0};
    weir_filemap map;
    weir_object o;
    if (!weir_path_is_file(path))
        return WEIR_OK;
    weir_status st = weir_object_open(&o, &map, &arena, path, err);
    if (st == WEIR_OK) {
        st = compare_model(&o, m, log, err);
        if (st == WEIR_OK)
            st = compare_params(&o, params, log, err);
        weir_filemap_close(&map);
    }
    weir_arena_free(&arena);
    return st;
}

weir_status weir_tuned_is_ours(bool *ours, const char *path, weir_err *err)
{
    weir_arena arena = {0};
    weir_err why = {0};
    const char *format = "";
    weir_filemap map;
    weir_object o;
    weir_status st = weir_object_open(&o, &map, &arena, path, &why);
    if (st == WEIR_OK) {
        st = weir_object_string(&o, "format", &format, &why);
        weir_filemap_close(&map);
    }
    *ours = st == WEIR_OK && strcmp(format, WEIR_TUNED_FORMAT) == 0;
    weir_arena_free(&arena);
    return st == WEIR_E_NOMEM ? weir_fail(err, st, "%s", why.msg) : WEIR_OK;
}
