#include "printable.h"

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

/* What acts on a terminal, breaks a line, turns text around, or cannot be seen. The joiners U+200C and U+200D stay:
 * scripts and emoji need them. */
static const range unprintable[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e}, {0x200b, 0x200b},
    {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0001, 0xe007f},
};

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

bool weir_utf8_locale(void)
{
    const char *const name[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(name[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

/* --- printable */

static void add_escaped(weir_text *t, const char *p, size_t n)
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
        else if (len == 0 || IN(unprintable, cp))
            add_escaped(t, p + i, len ? (size_t)len : 1);
        else
            weir_text_add(t, p + i, (size_t)len);
        i += len ? (size_t)len : 1;
    }
}

static void add_id(weir_text *t, int32_t id)
{
    char name[24];
    weir_text_add(t, name, (size_t)snprintf(name, sizeof name, "<#%d>", id));
}

void weir_text_token(weir_text *t, const weir_neurons *s, int32_t id)
{
    weir_str bytes = weir_neurons_token(s, id);
    if (bytes.n)
        weir_text_printable(t, bytes.p, bytes.n);
    else
        add_id(t, id);
}

/* --- pieces */

void weir_pieces_free(weir_pieces *p)
{
    free(p->piece);
    free(p->token_at);
    weir_text_free(&p->text);
    weir_text_free(&p->raw);
    *p = (weir_pieces){0};
}

static bool pieces_room(weir_pieces *p, int64_t tokens)
{
    if (tokens <= p->room)
        return true;
    weir_piece *piece = realloc(p->piece, sizeof *piece * (size_t)tokens);
    p->piece = piece ? piece : p->piece;
    size_t *at = realloc(p->token_at, sizeof *at * ((size_t)tokens + 1));
    p->token_at = at ? at : p->token_at;
    if (piece && at)
        p->room = tokens;
    return piece && at;
}

/* Bytes of all kept tokens, one after the other. */
static void gather(weir_pieces *p, const weir_neurons *s, const weir_neurons_context *c)
{
    p->raw.n = 0;
    for (int64_t i = 0; i < c->n; i++) {
        weir_str bytes = weir_neurons_token(s, c->id[i]);
        p->token_at[i] = p->raw.n;
        weir_text_add(&p->raw, bytes.p, bytes.n);
    }
    p->token_at[c->n] = p->raw.n;
}

/* The last token from i on before a special one: characters end there. */
static int64_t run_end(const weir_neurons *s, const weir_neurons_context *c, int64_t i)
{
    while (i + 1 < c->n && !weir_neurons_token_special(s, c->id[i + 1]))
        i++;
    return i;
}

/* Are the n bytes the beginning of a character, but not all of it? */
static bool is_begun(const char *p, size_t n)
{
    char whole[4];
    uint32_t cp;
    uint8_t c = n ? (uint8_t)p[0] : 0;
    size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
    if (n == 0 || n >= len)
        return false;
    for (size_t i = 0; i < len; i++)
        whole[i] = i < n ? p[i] : (char)(i == 1 && (c == 0xe0 || c == 0xf0) ? 0xbf : 0x80);
    return weir_utf8_at(whole, len, &cp) > 0;
}

/* Tokens from i on that share characters: how many. *cut: a character that begins in them is not kept whole. */
static int64_t joined(const weir_pieces *p, const weir_neurons *s, const weir_neurons_context *c, int64_t i, bool *cut)
{
    int64_t last = i;
    uint32_t cp;
    *cut = false;
    if (weir_neurons_token_special(s, c->id[i]))
        return 1;
    int64_t run = run_end(s, c, i);
    size_t end = p->token_at[run + 1];
    for (size_t at = p->token_at[i]; at < p->token_at[last + 1];) {
        int len = weir_utf8_at(p->raw.p + at, end - at, &cp);
        if (len == 0 && run == c->n - 1 && !c->ends && is_begun(p->raw.p + at, end - at)) {
            *cut = true;
            return c->n - i;
        }
        at += len ? (size_t)len : 1;
        while (at > p->token_at[last + 1])
            last++;
    }
    return last - i + 1;
}

/* Bytes at the beginning of what is kept that belong to a character before it. */
static size_t leading(const weir_pieces *p, const weir_neurons_context *c)
{
    size_t n = 0;
    while (!c->begins && n < p->raw.n && n < 3 && ((uint8_t)p->raw.p[n] & 0xc0) == 0x80)
        n++;
    return n;
}

static void draw(weir_pieces *p, const weir_neurons *s, const weir_neurons_context *c, weir_piece *piece)
{
    size_t from = p->token_at[piece->first], to = p->token_at[piece->first + piece->n];
    piece->special = weir_neurons_token_special(s, c->id[piece->first]);
    piece->at = p->text.n;
    if (to == from)
        add_id(&p->text, c->id[piece->first]);
    else
        weir_text_printable(&p->text, p->raw.p + from, to - from);
    piece->len = p->text.n - piece->at;
    piece->columns = p->text.failed ? 0 : weir_text_columns(p->text.p + piece->at, piece->len);
    bool hit = c->hit >= piece->first && c->hit < piece->first + piece->n;
    if (hit && piece->columns == 0 && to > from) { /* a joiner or a mark of its own cannot be seen */
        p->text.n = piece->at;
        add_escaped(&p->text, p->raw.p + from, to - from);
        piece->len = p->text.n - piece->at;
        piece->columns = (int64_t)piece->len;
    }
    piece->cut = piece->cut || from < leading(p, c);
}

bool weir_pieces_make(weir_pieces *p, const weir_neurons *s, const weir_neurons_context *c, int64_t first, int64_t end)
{
    p->n = p->text.n = 0;
    if (!pieces_room(p, c->n))
        return false;
    bool cut;
    gather(p, s, c);
    for (int64_t i = 0, n; i < end && !p->raw.failed; i += n) {
        n = joined(p, s, c, i, &cut);
        if (i + n <= first)
            continue;
        weir_piece *piece = &p->piece[p->n];
        *piece = (weir_piece){.first = i, .n = n, .cut = cut};
        if (c->hit >= i && c->hit < i + n) {
            p->hit = p->n;
            p->part = c->hit - i + 1;
            p->parts = n;
        }
        draw(p, s, c, piece);
        p->n++;
    }
    return !p->raw.failed && !p->text.failed;
}
