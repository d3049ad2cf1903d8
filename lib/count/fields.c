/* One field of a configuration under any of its names. What is there must be sound: a size that is a string, negative,
 * broken or beyond any model is an error that names the field and the byte. */
#include <stdarg.h>
#include <string.h>

#include "reading.h"

#define LARGEST ((int64_t)1 << 40)

static bool same(weir_str a, weir_str b)
{
    return a.n == b.n && !memcmp(a.p, b.p, a.n);
}

weir_status weir_field(const weir_reading *r, const char *const *keys, const weir_pair **p, weir_err *err)
{
    *p = NULL;
    for (; *keys; keys++) {
        const weir_pair *q = weir_object_value(&r->o, *keys);
        if (q && *p && !same(q->raw, (*p)->raw))
            return weir_pair_fail(&r->o, q, err, WEIR_E_FORMAT, "is %.*s, but %.64s is %.*s: one of them must go",
                                  q->raw.n > 40 ? 40 : (int)q->raw.n, q->raw.p, (*p)->key.p,
                                  (*p)->raw.n > 40 ? 40 : (int)(*p)->raw.n, (*p)->raw.p);
        if (q && !*p)
            *p = q;
    }
    return WEIR_OK;
}

weir_status weir_field_size(const weir_reading *r, const char *const *keys, int64_t least, int64_t *out, bool *found,
                            weir_err *err)
{
    const weir_pair *p;
    WEIR_TRY(weir_field(r, keys, &p, err));
    if (found)
        *found = p != NULL;
    if (!p)
        return WEIR_OK;
    int64_t v = 0;
    WEIR_TRY(weir_pair_int(&r->o, p, &v, err));
    if (v < least || v > LARGEST)
        return weir_pair_fail(&r->o, p, err, WEIR_E_FORMAT, "%lld is not a size (%lld to %lld)", (long long)v,
                              (long long)least, (long long)LARGEST);
    *out = v;
    return WEIR_OK;
}

weir_status weir_field_need(const weir_reading *r, const char *const *keys, int64_t *out, weir_err *err)
{
    bool found;
    WEIR_TRY(weir_field_size(r, keys, 1, out, &found, err));
    if (found)
        return WEIR_OK;
    if (r->known)
        weir_fail(err, WEIR_E_FORMAT, "there is no %s", *keys);
    else
        weir_fail(err, WEIR_E_UNSUPPORTED,
                  "model_type \"%.64s\" is not known, and without %s it cannot be read by its fields either",
                  r->b->model_type, *keys);
    weir_err_where(err, r->o.file, NULL, -1);
    return r->known ? WEIR_E_FORMAT : WEIR_E_UNSUPPORTED;
}

weir_status weir_field_bool(const weir_reading *r, const char *key, bool *out, weir_err *err)
{
    const weir_pair *p = key ? weir_object_value(&r->o, key) : NULL;
    return p ? weir_pair_bool(&r->o, p, out, err) : WEIR_OK;
}

weir_status weir_field_string(const weir_reading *r, const char *const *keys, const char **out, weir_err *err)
{
    const weir_pair *p = NULL;
    for (; *keys && !p; keys++)
        p = weir_object_value(&r->o, *keys);
    return p ? weir_pair_string(&r->o, p, out, err) : WEIR_OK;
}

weir_status weir_field_list(weir_reading *r, const char *key, weir_field_each each, void *ctx, int64_t *n,
                            weir_err *err)
{
    const weir_pair *p = weir_object_value(&r->o, key);
    *n = -1;
    if (!p)
        return WEIR_OK;
    weir_json j;
    weir_err local;
    weir_pair_reader(&r->o, p, &j, &local);
    weir_json_array(&j);
    for (*n = 0; weir_json_item(&j); ++*n)
        each(r, ctx, *n, &j);
    return weir_pair_done(&r->o, p, &j, &local, err);
}

weir_status weir_field_fail(const weir_reading *r, const char *key, weir_err *err, weir_status code, const char *fmt,
                            ...)
{
    char msg[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    return weir_pair_fail(&r->o, weir_object_find(&r->o, key), err, code, "%s", msg);
}

weir_status weir_remark(weir_reading *r, weir_err *err, const char *fmt, ...)
{
    char line[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    weir_make_printable(line);
    if (r->b->n_remarks == WEIR_COUNT_REMARKS)
        return WEIR_OK;
    if (!(r->remark[r->b->n_remarks] = weir_arena_strndup(r->arena, line, strlen(line))))
        return weir_nomem(err, "a remark");
    r->b->n_remarks++;
    return WEIR_OK;
}
