#include "printable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- text that grows */

void weir_text_free(weir_text *t)
{
    free(t->p);
    *t = (weir_text){0};
}

static bool text_room(weir_text *t, size_t more)
{
    if (t->failed || more > SIZE_MAX / 4 - t->n)
        return !(t->failed = true);
    if (t->n + more <= t->room)
        return true;
    size_t room = 2 * (t->n + more) + 64;
    char *p = realloc(t->p, room);
    if (!p)
        return !(t->failed = true);
    t->p = p;
    t->room = room;
    return true;
}

void weir_text_add(weir_text *t, const void *p, size_t n)
{
    if (n && text_room(t, n)) {
        memcpy(t->p + t->n, p, n);
        t->n += n;
    }
}

/* --- UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF */

int weir_utf8_at(const char *p, size_t n, uint32_t *cp)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (n == 0)
        return 0;
    uint8_t c = (uint8_t)p[0];
    int len = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    if (len == 0 || (size_t)len > n)
        return 0;
    *cp = len == 1 ? c : c & (0x7fu >> len);
    for (int i = 1; i < len; i++) {
        if (((uint8_t)p[i] & 0xc0) != 0x80)
            return 0;
        *cp = *cp << 6 | ((uint8_t)p[i] & 0x3f);
    }
    bool bad = *cp < least[len] || (*cp >= 0xd800 && *cp < 0xe000) || *cp > 0x10ffff;
    return bad ? 0 : len;
}

size_t weir_utf8_valid(const char *p, size_t n)
{
    size_t at = 0;
    uint32_t cp;
    for (int len; at < n && (len = weir_utf8_at(p + at, n - at, &cp)) > 0;)
        at += (size_t)len;
    return at;
}

/* --- classes of characters, as ascending ranges */

typedef struct range {
    uint32_t first, last;
} range;

static bool in_ranges(const range *r, size_t n, uint32_t cp)
{
    for (size_t i = 0; i < n && r[i].first <= cp; i++)
        if (cp <= r[i].last)
            return true;
    return false;
}
#define IN(table, cp) in_ranges(table, sizeof(table) / sizeof *(table), cp)

/* East Asian wide and emoji (Unicode's EastAsianWidth W and F, neighbours joined). */
static const range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},   {0x25fd, 0x25fe},
    {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},
    {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},   {0x274c, 0x274e},   {0x2753, 0x2757},
    {0x2795, 0x2797},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b55},   {0x2e80, 0x303e},   {0x3041, 0x4dbf},
    {0x4e00, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},
    {0xfe30, 0xfe6f},   {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x18cff}, {0x1b000, 0x1b2ff},
    {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f19a}, {0x1f200, 0x1f320}, {0x1f32d, 0x1f64f},
    {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7eb}, {0x1f90c, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};

/* Marks that stand on the character before them, and joiners. */
static const range narrow[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},   {0x64b, 0x65f},     {0x6d6, 0x6dc},
    {0x900, 0x902},   {0x93a, 0x93a},   {0x93c, 0x93c},   {0x941, 0x948},   {0x94d, 0x94d},     {0xe31, 0xe31},
    {0xe34, 0xe3a},   {0xe47, 0xe4e},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},   {0x20d0, 0x20ff},
    {0x302a, 0x302d}, {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
};

int64_t weir_text_columns(const char *p, size_t n)
{
    int64_t columns = 0;
    uint32_t cp;
    for (size_t i = 0; i < n;) {
        int len = weir_utf8_at(p + i, n - i, &cp);
        columns += len == 0 || cp < 0x300 ? 1 : IN(narrow, cp) ? 0 : IN(wide, cp) ? 2 : 1;
        i += len ? (size_t)len : 1;
    }
    return columns;
}

/* --- printable */

/* What looks like a space, or like nothing, and is neither: in a table cell nobody could tell. */
static const range blank[] = {
    {0xa0, 0xa0},     {0x34f, 0x34f},   {0x115f, 0x1160}, {0x1680, 0x1680}, {0x17b4, 0x17b5}, {0x2000, 0x200a},
    {0x202f, 0x202f}, {0x205f, 0x205f}, {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164}, {0xffa0, 0xffa0},
};

void weir_text_escaped(weir_text *t, const char *p, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)p[i];
        char e[4] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
        weir_text_add(t, e, sizeof e);
    }
}

void weir_text_printable(weir_text *t, const void *bytes, size_t n)
{
    const char *p = bytes;
    uint32_t cp = 0;
    for (size_t i = 0; i < n;) {
        int len = weir_utf8_at(p + i, n - i, &cp);
        const char *word = len != 1     ? NULL
                           : cp == '\n' ? "\\n"
                           : cp == '\t' ? "\\t"
                           : cp == '\r' ? "\\r"
                           : cp == '\\' ? "\\\\"
                                        : NULL;
        if (word)
            weir_text_add(t, word, 2);
        else if (len == 0 || weir_unprintable(cp) || IN(blank, cp))
            weir_text_escaped(t, p + i, len ? (size_t)len : 1);
        else
            weir_text_add(t, p + i, (size_t)len);
        i += len ? (size_t)len : 1;
    }
}

void weir_put_printable(FILE *out, const char *z, int columns)
{
    weir_text t = {0};
    weir_text_printable(&t, z, strlen(z));
    const int64_t used = weir_text_columns(t.p, t.n);
    fwrite(t.p ? t.p : "", 1, t.n, out);
    fprintf(out, "%*s", used < columns ? (int)(columns - used) : 0, "");
    weir_text_free(&t);
}

void weir_text_token(weir_text *t, weir_str bytes, int32_t id)
{
    char name[24];
    if (bytes.n)
        weir_text_printable(t, bytes.p, bytes.n);
    else
        weir_text_add(t, name, (size_t)snprintf(name, sizeof name, "<#%d>", id));
}

void weir_put_token(FILE *out, weir_str bytes, int32_t id, int columns)
{
    weir_text t = {0};
    weir_text_token(&t, bytes, id);
    const int64_t used = 2 + weir_text_columns(t.p, t.n);
    fprintf(out, "\"%.*s\"%*s", (int)t.n, t.p ? t.p : "", used < columns ? (int)(columns - used) : 0, "");
    weir_text_free(&t);
}

void weir_put_hex(weir_jsonw *w, const char *p, size_t n)
{
    weir_jsonw_key(w, "hex");
    if (weir_utf8_valid(p, n) == n) {
        weir_jsonw_null(w);
        return;
    }
    fputc('"', w->f);
    for (size_t i = 0; i < n; i++)
        fprintf(w->f, "%02x", (unsigned)(uint8_t)p[i]);
    fputc('"', w->f);
}

void weir_put_safe(FILE *out, weir_text *text, const char *z)
{
    text->n = 0;
    weir_text_printable(text, z ? z : "", z ? strlen(z) : 0);
    if (text->n)
        fwrite(text->p, 1, text->n, out);
}

const char *weir_float_text(char buf[32], float x)
{
    if (!isfinite(x)) {
        snprintf(buf, 32, "%s", isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
        return buf;
    }
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(buf, 32, "%.*g", digits, (double)x);
        if (strtof(buf, NULL) == x)
            break;
    }
    return buf;
}
