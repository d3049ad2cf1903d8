#include <weir/json.h>

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

void weir_jsonw_init(weir_jsonw *w, FILE *f)
{
    *w = (weir_jsonw){.f = f};
}

/* The comma before a value; in an object the key wrote it. */
static void before_value(weir_jsonw *w)
{
    if (w->in_object[w->depth])
        return;
    if (w->comma[w->depth])
        fputc(',', w->f);
    w->comma[w->depth] = w->depth > 0;
}

static void enter(weir_jsonw *w, bool object)
{
    before_value(w);
    assert(w->depth + 1 < (int)(sizeof w->comma / sizeof *w->comma));
    w->depth++;
    w->comma[w->depth] = false;
    w->in_object[w->depth] = object;
    fputc(object ? '{' : '[', w->f);
}

void weir_jsonw_object(weir_jsonw *w)
{
    enter(w, true);
}

void weir_jsonw_array(weir_jsonw *w)
{
    enter(w, false);
}

void weir_jsonw_end(weir_jsonw *w)
{
    assert(w->depth > 0);
    fputc(w->in_object[w->depth] ? '}' : ']', w->f);
    w->depth--;
}

static void write_escape(FILE *f, uint32_t cp)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = cp && cp < 0x80 ? strchr(from, (int)cp) : NULL;
    if (at)
        fprintf(f, "\\%c", to[at - from]);
    else if (cp < 0x10000)
        fprintf(f, "\\u%04x", cp);
    else
        fprintf(f, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10), 0xdc00 + (cp & 0x3ff));
}

/* The character at p[0], *len bytes long, must not stand as it is: JSON forbids it, or a terminal would act on it. A
 * byte that belongs to no character neither. */
static bool needs_escape(const char *p, size_t n, int *len)
{
    *len = weir_utf8_len(p, n);
    return *len == 0 || *p == '"' || *p == '\\' || weir_unprintable(weir_utf8_cp(p, *len));
}

/* p may be NULL where there is nothing. */
static void write_plain(FILE *f, const char *p, size_t from, size_t end)
{
    if (end > from)
        fwrite(p + from, 1, end - from, f);
}

static void write_string(FILE *f, const char *p, size_t n)
{
    size_t from = 0, i = 0; /* [from, i): plain bytes not written yet */
    fputc('"', f);
    while (i < n) {
        int len;
        if (!needs_escape(p + i, n - i, &len)) {
            i += (size_t)len;
            continue;
        }
        write_plain(f, p, from, i);
        if (len)
            write_escape(f, weir_utf8_cp(p + i, len));
        else
            fputs("\xef\xbf\xbd", f);
        from = i += len ? (size_t)len : 1;
    }
    write_plain(f, p, from, i);
    fputc('"', f);
}

void weir_jsonw_key(weir_jsonw *w, const char *key)
{
    if (w->comma[w->depth])
        fputc(',', w->f);
    w->comma[w->depth] = true;
    write_string(w->f, key, strlen(key));
    fputc(':', w->f);
}

void weir_jsonw_str(weir_jsonw *w, const char *p, size_t n)
{
    before_value(w);
    write_string(w->f, p, n);
}

void weir_jsonw_cstr(weir_jsonw *w, const char *z)
{
    weir_jsonw_str(w, z, strlen(z));
}

void weir_jsonw_int(weir_jsonw *w, int64_t v)
{
    before_value(w);
    fprintf(w->f, "%lld", (long long)v);
}

/* Does v, written with `digits` digits, read back as the same number? The text is left in buf. */
static bool round_trips(char buf[40], double v, bool single, int digits)
{
    snprintf(buf, 40, "%.*g", digits, v);
    return single ? strtof(buf, NULL) == (float)v : strtod(buf, NULL) == v;
}

/* The fewest digits that round-trip; 9 and 17 always do. Most numbers need nearly all of them, so the search begins
 * high. */
static void write_number(weir_jsonw *w, double v, bool single)
{
    char buf[40];
    before_value(w);
    if (!isfinite(v)) {
        fputs("null", w->f);
        return;
    }
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0),
             old = uselocale(c); /* printf and strtod of this thread only */
    int digits = single ? 6 : 15;
    if (round_trips(buf, v, single, digits)) {
        while (digits > 1 && round_trips(buf, v, single, digits - 1))
            digits--;
    } else {
        while (!round_trips(buf, v, single, ++digits))
            ;
    }
    snprintf(buf, sizeof buf, "%.*g", digits, v);
    uselocale(old);
    if (c)
        freelocale(c);
    fputs(buf, w->f);
}

void weir_jsonw_double(weir_jsonw *w, double v)
{
    write_number(w, v, false);
}

void weir_jsonw_float(weir_jsonw *w, float v)
{
    write_number(w, (double)v, true);
}

void weir_jsonw_real(weir_jsonw *w, double v)
{
    if (!(fabs(v) < 1e15) || v != floor(v)) {
        weir_jsonw_double(w, v);
        return;
    }
    before_value(w);
    fprintf(w->f, "%s%lld.0", signbit(v) ? "-" : "", (long long)fabs(v));
}

void weir_jsonw_bool(weir_jsonw *w, bool v)
{
    before_value(w);
    fputs(v ? "true" : "false", w->f);
}

void weir_jsonw_null(weir_jsonw *w)
{
    before_value(w);
    fputs("null", w->f);
}

static bool is_json(const char *text)
{
    weir_json j;
    weir_json_init(&j, text, strlen(text), NULL, NULL);
    weir_json_skip(&j);
    weir_json_end(&j);
    return weir_json_done(&j) == WEIR_OK;
}

void weir_jsonw_json(weir_jsonw *w, const char *text)
{
    if (!text || !is_json(text)) {
        weir_jsonw_null(w);
        return;
    }
    before_value(w);
    for (size_t n = strlen(text), len; n > 0; text += len, n -= len) {
        len = (size_t)weir_utf8_len(text, n); /* never 0: that would be no JSON */
        const uint32_t cp = weir_utf8_cp(text, (int)len);
        if (cp < 0x20) /* white space: there is no other outside of strings, and none in them */
            fputc(' ', w->f);
        else if (weir_unprintable(cp)) /* in a string */
            write_escape(w->f, cp);
        else
            fwrite(text, 1, len, w->f);
    }
}

void weir_jsonw_key_cstr(weir_jsonw *w, const char *key, const char *z)
{
    weir_jsonw_key(w, key);
    z ? weir_jsonw_cstr(w, z) : weir_jsonw_null(w);
}

void weir_jsonw_key_int(weir_jsonw *w, const char *key, int64_t v)
{
    weir_jsonw_key(w, key);
    weir_jsonw_int(w, v);
}

void weir_jsonw_key_double(weir_jsonw *w, const char *key, double v)
{
    weir_jsonw_key(w, key);
    weir_jsonw_double(w, v);
}

void weir_jsonw_key_bool(weir_jsonw *w, const char *key, bool v)
{
    weir_jsonw_key(w, key);
    weir_jsonw_bool(w, v);
}
