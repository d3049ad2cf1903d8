#include <string.h>

#include "cursor.h"
#include "gguf.h"

static weir_status fail_at(const weir_gguf *g, const weir_gguf_kv *kv, weir_err *err, const char *key, const char *what)
{
    weir_fail(err, WEIR_E_FORMAT, "metadata key %s %s", key, what);
    weir_err_where(err, g->map.path, NULL, kv ? kv->offset : -1);
    return WEIR_E_FORMAT;
}

/* The scalar under key; *kv NULL when it is absent and may be. */
static weir_status scalar(const weir_gguf *g, const char *key, const weir_gguf_kv **kv, bool *found, weir_err *err)
{
    *kv = weir_gguf_find(g, key);
    if (found)
        *found = *kv != NULL;
    else if (!*kv)
        return fail_at(g, NULL, err, key, "is missing");
    if (*kv && (*kv)->type == WEIR_GGUF_ARRAY)
        return fail_at(g, *kv, err, key, "is an array where one value is expected");
    return WEIR_OK;
}

static bool is_float(weir_gguf_type t)
{
    return t == WEIR_GGUF_F32 || t == WEIR_GGUF_F64;
}

static bool is_int(weir_gguf_type t)
{
    return !is_float(t) && t != WEIR_GGUF_BOOL && t != WEIR_GGUF_STRING && t != WEIR_GGUF_ARRAY;
}

/* The i-th element's bytes as a little-endian number. */
static uint64_t bits_of(const weir_gguf_kv *kv, uint64_t i, int size)
{
    uint64_t v = 0;
    for (int b = 0; b < size; b++)
        v |= (uint64_t)kv->data[i * (uint64_t)size + (uint64_t)b] << (8 * b);
    return v;
}

int64_t weir_gguf_elem_int(const weir_gguf_kv *kv, uint64_t i)
{
    switch (kv->elem) {
    case WEIR_GGUF_I8:
        return (int8_t)bits_of(kv, i, 1);
    case WEIR_GGUF_U8:
    case WEIR_GGUF_BOOL:
        return (int64_t)bits_of(kv, i, 1);
    case WEIR_GGUF_I16:
        return (int16_t)bits_of(kv, i, 2);
    case WEIR_GGUF_U16:
        return (int64_t)bits_of(kv, i, 2);
    case WEIR_GGUF_I32:
        return (int32_t)bits_of(kv, i, 4);
    case WEIR_GGUF_U32:
        return (int64_t)bits_of(kv, i, 4);
    default:
        return (int64_t)bits_of(kv, i, 8);
    }
}

double weir_gguf_elem_double(const weir_gguf_kv *kv, uint64_t i)
{
    if (kv->elem == WEIR_GGUF_F32) {
        uint32_t bits = (uint32_t)bits_of(kv, i, 4);
        float f;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
    uint64_t bits = bits_of(kv, i, 8);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

weir_status weir_gguf_int(const weir_gguf *g, const char *key, int64_t *out, bool *found, weir_err *err)
{
    const weir_gguf_kv *kv;
    WEIR_TRY(scalar(g, key, &kv, found, err));
    if (!kv)
        return WEIR_OK;
    if (!is_int(kv->type))
        return fail_at(g, kv, err, key, "is not an integer");
    int64_t v = weir_gguf_elem_int(kv, 0);
    if (kv->type == WEIR_GGUF_U64 && v < 0)
        return fail_at(g, kv, err, key, "is too large");
    *out = v;
    return WEIR_OK;
}

weir_status weir_gguf_double(const weir_gguf *g, const char *key, double *out, bool *found, weir_err *err)
{
    const weir_gguf_kv *kv;
    WEIR_TRY(scalar(g, key, &kv, found, err));
    if (!kv)
        return WEIR_OK;
    if (is_float(kv->type))
        *out = weir_gguf_elem_double(kv, 0);
    else if (kv->type == WEIR_GGUF_U64)
        *out = (double)bits_of(kv, 0, 8);
    else if (is_int(kv->type))
        *out = (double)weir_gguf_elem_int(kv, 0);
    else
        return fail_at(g, kv, err, key, "is not a number");
    return WEIR_OK;
}

weir_status weir_gguf_bool(const weir_gguf *g, const char *key, bool *out, bool *found, weir_err *err)
{
    const weir_gguf_kv *kv;
    WEIR_TRY(scalar(g, key, &kv, found, err));
    if (!kv)
        return WEIR_OK;
    if (kv->type != WEIR_GGUF_BOOL)
        return fail_at(g, kv, err, key, "is not a boolean");
    *out = kv->data[0] != 0;
    return WEIR_OK;
}

/* The string whose length stands at *pos behind data; checked again, so that a caller who walks too far gets an error.
 */
static weir_status string_at(const weir_gguf *g, const weir_gguf_kv *kv, size_t *pos, weir_str *out, weir_err *err)
{
    weir_cursor c;
    weir_cursor_init(&c, g->map.data, g->meta_bytes ? g->meta_bytes : g->map.size, g->map.path, err);
    c.pos = (size_t)kv->offset + *pos;
    uint64_t n = weir_cursor_u64(&c);
    const uint8_t *p = weir_cursor_bytes(&c, n);
    *out = p ? (weir_str){(const char *)p, (size_t)n} : (weir_str){"", 0};
    *pos = c.pos - (size_t)kv->offset;
    return c.status;
}

weir_status weir_gguf_str(const weir_gguf *g, const char *key, weir_str *out, bool *found, weir_err *err)
{
    const weir_gguf_kv *kv;
    size_t pos = 0;
    WEIR_TRY(scalar(g, key, &kv, found, err));
    if (!kv)
        return WEIR_OK;
    if (kv->type != WEIR_GGUF_STRING)
        return fail_at(g, kv, err, key, "is not a string");
    return string_at(g, kv, &pos, out, err);
}

weir_status weir_gguf_next_str(const weir_gguf *g, const weir_gguf_kv *kv, size_t *pos, weir_str *out, weir_err *err)
{
    if (kv->elem != WEIR_GGUF_STRING) {
        *out = (weir_str){"", 0};
        weir_fail(err, WEIR_E_FORMAT, "metadata key %.*s is not an array of strings",
                  kv->key.n > 100 ? 100 : (int)kv->key.n, kv->key.p);
        weir_err_where(err, g->map.path, NULL, kv->offset);
        return WEIR_E_FORMAT;
    }
    return string_at(g, kv, pos, out, err);
}
