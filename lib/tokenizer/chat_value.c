/* Values of a template's run, all in one arena. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "chat_impl.h"

const char *const weir_chat_type_word[] = {[WEIR_CHAT_UNDEFINED] = "something undefined",
                                           [WEIR_CHAT_NONE] = "none",
                                           [WEIR_CHAT_BOOL] = "a truth value",
                                           [WEIR_CHAT_INT] = "a number",
                                           [WEIR_CHAT_STR] = "a string",
                                           [WEIR_CHAT_ARRAY] = "a list",
                                           [WEIR_CHAT_MAP] = "a mapping",
                                           [WEIR_CHAT_SPACE] = "a namespace",
                                           [WEIR_CHAT_FUNCTION] = "a function",
                                           [WEIR_CHAT_METHOD] = "a method"};

bool weir_chat_same(weir_str a, weir_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

weir_chat_value weir_chat_str(weir_str s)
{
    return (weir_chat_value){.type = WEIR_CHAT_STR, .s = s};
}

weir_chat_value weir_chat_bool(bool b)
{
    return (weir_chat_value){.type = WEIR_CHAT_BOOL, .i = b};
}

weir_chat_value weir_chat_int(int64_t i)
{
    return (weir_chat_value){.type = WEIR_CHAT_INT, .i = i};
}

/* --- arrays and maps */

weir_chat_value weir_chat_array(weir_arena *a)
{
    return (weir_chat_value){.type = WEIR_CHAT_ARRAY, .items = weir_arena_alloc(a, 1, sizeof(weir_chat_items))};
}

weir_chat_value weir_chat_map(weir_arena *a)
{
    return (weir_chat_value){.type = WEIR_CHAT_MAP, .items = weir_arena_alloc(a, 1, sizeof(weir_chat_items))};
}

/* Room for one more; what was there before stays in the arena. */
static bool grow(weir_arena *a, weir_chat_items *x, bool keys)
{
    if (x->n < x->cap)
        return true;
    const int64_t cap = x->cap * 2 + 8;
    weir_chat_value *v = weir_arena_alloc(a, (size_t)cap, sizeof *v);
    weir_str *key = keys ? weir_arena_alloc(a, (size_t)cap, sizeof *key) : NULL;
    if (!v || (keys && !key))
        return false;
    if (x->n)
        memcpy(v, x->v, (size_t)x->n * sizeof *v);
    if (x->n && keys)
        memcpy(key, x->key, (size_t)x->n * sizeof *key);
    x->v = v;
    x->key = key;
    x->cap = cap;
    return true;
}

bool weir_chat_push(weir_arena *a, weir_chat_value *array, weir_chat_value v)
{
    weir_chat_items *x = array->items;
    if (!x || !grow(a, x, false))
        return false;
    x->v[x->n++] = v;
    return true;
}

bool weir_chat_put(weir_arena *a, weir_chat_value *map, weir_str key, weir_chat_value v)
{
    weir_chat_items *x = map->items;
    for (int64_t i = 0; x && i < x->n; i++)
        if (weir_chat_same(x->key[i], key)) {
            x->v[i] = v;
            return true;
        }
    if (!x || !grow(a, x, true))
        return false;
    x->key[x->n] = key;
    x->v[x->n++] = v;
    return true;
}

const weir_chat_value *weir_chat_get(const weir_chat_value *map, weir_str key)
{
    const weir_chat_items *x = map->items;
    for (int64_t i = 0; i < x->n; i++)
        if (weir_chat_same(x->key[i], key))
            return &x->v[i];
    return NULL;
}

/* --- questions */

bool weir_chat_truth(const weir_chat_value *v)
{
    switch (v->type) {
    case WEIR_CHAT_UNDEFINED:
    case WEIR_CHAT_NONE:
        return false;
    case WEIR_CHAT_BOOL:
    case WEIR_CHAT_INT:
        return v->i != 0;
    case WEIR_CHAT_STR:
        return v->s.n > 0;
    case WEIR_CHAT_ARRAY:
    case WEIR_CHAT_MAP:
        return v->items->n > 0;
    default:
        return true;
    }
}

static bool is_number(const weir_chat_value *v)
{
    return v->type == WEIR_CHAT_INT || v->type == WEIR_CHAT_BOOL; /* in Python true is 1 */
}

static weir_status equal_items(weir_chat_run *r, int line, const weir_chat_value *a, const weir_chat_value *b,
                               bool *out)
{
    *out = a->items == b->items;
    if (*out || a->items->n != b->items->n)
        return WEIR_OK;
    *out = true;
    for (int64_t i = 0; i < a->items->n && *out; i++) {
        const weir_chat_value *other = a->type == WEIR_CHAT_MAP ? weir_chat_get(b, a->items->key[i]) : &b->items->v[i];
        *out = other != NULL;
        if (other)
            WEIR_TRY(weir_chat_equal(r, line, &a->items->v[i], other, out));
    }
    return WEIR_OK;
}

weir_status weir_chat_equal(weir_chat_run *r, int line, const weir_chat_value *a, const weir_chat_value *b, bool *out)
{
    WEIR_TRY(weir_chat_enter(r, line));
    if (is_number(a) && is_number(b))
        *out = a->i == b->i;
    else if (a->type != b->type)
        *out = false;
    else if (a->type == WEIR_CHAT_UNDEFINED || a->type == WEIR_CHAT_NONE)
        *out = true;
    else if (a->type == WEIR_CHAT_ARRAY || a->type == WEIR_CHAT_MAP)
        WEIR_TRY(equal_items(r, line, a, b, out));
    else
        *out = a->items == b->items && weir_chat_same(a->s, b->s);
    r->depth--;
    return WEIR_OK;
}

/* --- white space: str.isspace of Python 3 */

static bool is_space(uint32_t cp)
{
    return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x1f) || cp == 0x85 || cp == 0xa0 ||
           cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 || cp == 0x202f ||
           cp == 0x205f || cp == 0x3000;
}

size_t weir_chat_space_before(weir_str s)
{
    size_t at = 0;
    for (int len; at < s.n && (len = weir_utf8_len(s.p + at, s.n - at)) > 0 && is_space(weir_utf8_cp(s.p + at, len));)
        at += (size_t)len;
    return at;
}

size_t weir_chat_space_behind(weir_str s)
{
    size_t end = s.n;
    for (;;) {
        size_t from = end;
        while (from > 0 && end - from < 4 && ((unsigned char)s.p[--from] & 0xc0) == 0x80) {
        }
        int len = end > from ? weir_utf8_len(s.p + from, end - from) : 0;
        if (len == 0 || (size_t)len != end - from || !is_space(weir_utf8_cp(s.p + from, len)))
            return s.n - end;
        end = from;
    }
}

/* --- as text */

weir_status weir_chat_text(weir_chat_run *r, int line, const weir_chat_value *v, weir_str *out)
{
    switch (v->type) {
    case WEIR_CHAT_STR:
        *out = v->s;
        return WEIR_OK;
    case WEIR_CHAT_UNDEFINED:
        *out = (weir_str){"", 0};
        return WEIR_OK;
    case WEIR_CHAT_NONE:
        *out = (weir_str){"None", 4};
        return WEIR_OK;
    case WEIR_CHAT_BOOL:
        *out = v->i ? (weir_str){"True", 4} : (weir_str){"False", 5};
        return WEIR_OK;
    case WEIR_CHAT_INT: {
        char digits[24];
        int n = snprintf(digits, sizeof digits, "%lld", (long long)v->i);
        out->p = weir_arena_strndup(r->arena, digits, (size_t)n);
        out->n = (size_t)n;
        return out->p ? WEIR_OK : weir_chat_no_memory(r);
    }
    default:
        return weir_chat_fail(r->src, WEIR_E_UNSUPPORTED, line, "%s as a text is not supported",
                              weir_chat_type_word[v->type]);
    }
}

/* --- as JSON */

static weir_status put_string(weir_buf *b, weir_str s)
{
    static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    WEIR_TRY(weir_buf_add(b, "\"", 1));
    for (size_t i = 0; i < s.n; i++) {
        const char *known = memchr(from, s.p[i], sizeof from - 1);
        if (known)
            WEIR_TRY(weir_buf_printf(b, "\\%c", to[known - from]));
        else if ((unsigned char)s.p[i] < 0x20)
            WEIR_TRY(weir_buf_printf(b, "\\u%04x", (unsigned)(unsigned char)s.p[i]));
        else
            WEIR_TRY(weir_buf_add(b, s.p + i, 1));
    }
    return weir_buf_add(b, "\"", 1);
}

static weir_status put_json(weir_chat_run *r, int line, weir_buf *b, const weir_chat_value *v);

static weir_status put_items(weir_chat_run *r, int line, weir_buf *b, const weir_chat_items *x, bool map)
{
    WEIR_TRY(weir_buf_add(b, map ? "{" : "[", 1));
    for (int64_t i = 0; i < x->n; i++) {
        WEIR_TRY(i ? weir_buf_add(b, ", ", 2) : WEIR_OK);
        if (map) {
            WEIR_TRY(weir_chat_spend(r, line, x->key[i].n / WEIR_CHAT_STEP_BYTES));
            WEIR_TRY(put_string(b, x->key[i]));
            WEIR_TRY(weir_buf_add(b, ": ", 2));
        }
        WEIR_TRY(weir_chat_enter(r, line));
        WEIR_TRY(put_json(r, line, b, &x->v[i]));
        r->depth--;
    }
    return weir_buf_add(b, map ? "}" : "]", 1);
}

static weir_status put_json(weir_chat_run *r, int line, weir_buf *b, const weir_chat_value *v)
{
    switch (v->type) {
    case WEIR_CHAT_NONE:
        return weir_buf_add(b, "null", 4);
    case WEIR_CHAT_BOOL:
        return v->i ? weir_buf_add(b, "true", 4) : weir_buf_add(b, "false", 5);
    case WEIR_CHAT_INT:
        return weir_buf_printf(b, "%lld", (long long)v->i);
    case WEIR_CHAT_STR:
        WEIR_TRY(weir_chat_spend(r, line, v->s.n / WEIR_CHAT_STEP_BYTES));
        return put_string(b, v->s);
    case WEIR_CHAT_ARRAY:
    case WEIR_CHAT_MAP:
        return put_items(r, line, b, v->items, v->type == WEIR_CHAT_MAP);
    default:
        return weir_chat_fail(r->src, WEIR_E_UNSUPPORTED, line, "%s as JSON is not supported",
                              weir_chat_type_word[v->type]);
    }
}

weir_status weir_chat_json(weir_chat_run *r, int line, const weir_chat_value *v, weir_str *out)
{
    weir_buf b = {0};
    weir_status st = put_json(r, line, &b, v);
    if (st == WEIR_OK) {
        out->p = weir_arena_strndup(r->arena, b.p, b.n);
        out->n = b.n;
        st = out->p ? WEIR_OK : weir_chat_no_memory(r);
    }
    weir_buf_free(&b);
    return st == WEIR_E_NOMEM ? weir_chat_no_memory(r) : st;
}
