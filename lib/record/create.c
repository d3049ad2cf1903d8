/* record/create.c: a dump's header from a model and a tokenizer, its datasets from a selector. */
#include "dump.h"

static weir_str vocab_bytes(const void *user, int32_t id)
{
    return weir_tokenizer_bytes(user, id);
}

weir_status weir_dump_create(weir_dump **out, const char *path, const weir_model *m, const weir_tokenizer *tok,
                             const weir_dump_options *o, weir_err *err)
{
    char fingerprint[65];
    const weir_model_info *info = weir_model_info_of(m);
    *out = NULL;
    WEIR_TRY(weir_model_fingerprint(m, o->hash_full, fingerprint, err));
    weir_dump_header h = {
        .model = info->name,
        .family = info->family,
        .fingerprint = fingerprint,
        .tokenizer_fingerprint = tok ? weir_tokenizer_fingerprint(tok) : "",
        .dtype = info->dtype,
        .ctx = info->ctx,
        .n_vocab = tok ? weir_tokenizer_size(tok) : 0,
        .vocab = vocab_bytes,
        .user = tok,
    };
    WEIR_TRY(weir_dump_new(out, path, &h, o, err));
    (*out)->model = m;
    return WEIR_OK;
}

weir_status weir_dump_select(weir_dump *d, const weir_selector *sel, weir_err *err)
{
    const weir_point *p;
    int64_t n = weir_model_points_all(d->model, &p);
    if (weir_selector_has_positions(sel))
        return weir_fail(err, WEIR_E_ARG, "a position in brackets cannot be recorded: use --positions");
    for (int64_t i = 0; i < n; i++) {
        const int64_t *units;
        int64_t n_units;
        if (!weir_selector_matches(sel, &p[i]))
            continue;
        weir_selector_units(sel, &p[i], &units, &n_units);
        WEIR_TRY(weir_dump_add_point(d, &p[i], units, n_units, err));
    }
    return WEIR_OK;
}
