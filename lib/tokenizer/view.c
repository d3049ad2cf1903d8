/* view.c: text with the origin of each byte. */
#include "view.h"

#include <string.h>

#include "base/mem.h"

size_t weir_tok_origin(const weir_tok_view *v, size_t i)
{
    return v->base + (v->org ? v->org[i] : i);
}

void weir_tok_text_reset(weir_tok_text *t)
{
    t->n = 0;
}

void weir_tok_text_free(weir_tok_text *t)
{
    weir_free(t->p);
    weir_free(t->org);
    *t = (weir_tok_text){0};
}

/* Room for len more bytes and the closing entry of org. */
static weir_status grow(weir_tok_text *t, size_t len)
{
    if (len < t->cap && t->n < t->cap - len)
        return WEIR_OK;
    if (len >= UINT32_MAX - t->n) /* places are 32 bits wide */
        return WEIR_E_NOMEM;
    size_t cap = (t->n + len + 1) * 3 / 2 + 64;
    uint8_t *p = weir_realloc(t->p, cap, 1);
    if (!p)
        return WEIR_E_NOMEM;
    t->p = p;
    uint32_t *org = weir_realloc(t->org, cap, sizeof *org);
    if (!org)
        return WEIR_E_NOMEM;
    t->org = org;
    t->cap = cap;
    return WEIR_OK;
}

static uint32_t origin32(const weir_tok_view *in, size_t i)
{
    return in->org ? in->org[i] : (uint32_t)i;
}

weir_status weir_tok_text_put(weir_tok_text *t, const void *bytes, size_t len, const weir_tok_view *in, size_t from,
                              size_t to)
{
    WEIR_TRY(grow(t, len));
    memcpy(t->p + t->n, bytes, len);
    uint32_t *org = t->org + t->n;
    if (len == to - from) {
        for (size_t i = 0; i < len; i++)
            org[i] = origin32(in, from + i);
    } else {
        for (size_t i = 0; i < len; i++)
            org[i] = origin32(in, i ? to : from);
    }
    t->n += len;
    return WEIR_OK;
}

weir_status weir_tok_text_end(weir_tok_text *t, const weir_tok_view *in, weir_tok_view *out)
{
    WEIR_TRY(grow(t, 0));
    t->org[t->n] = origin32(in, in->n);
    *out = (weir_tok_view){t->p, t->org, t->n, in->base};
    return WEIR_OK;
}
