/* nfc.c: Unicode normalisation form C with the origin of each byte kept (UAX #15).
 *
 * The text is taken in clusters: a character that NFC can neither change nor move nor join to what precedes it, and the
 * characters up to the next such one. Clusters do not influence each other, and most are one character, which is
 * copied. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "normalize.h"
#include "unicode.h"

/* A code point of a decomposed cluster, and where in the input its character began. */
typedef struct mark {
    uint32_t cp;
    uint8_t class;
    size_t from;
} mark;

typedef struct cluster {
    mark *m;
    size_t n, cap;
    mark *sorted; /* scratch of the reordering, as large */
} cluster;

static weir_status add(cluster *c, mark m)
{
    if (c->n == c->cap) {
        size_t cap = c->cap * 2 + 16;
        mark *bigger = weir_realloc(c->m, cap, sizeof *bigger);
        if (!bigger)
            return WEIR_E_NOMEM;
        c->m = bigger;
        bigger = weir_realloc(c->sorted, cap, sizeof *bigger);
        if (!bigger)
            return WEIR_E_NOMEM;
        c->sorted = bigger;
        c->cap = cap;
    }
    c->m[c->n++] = m;
    return WEIR_OK;
}

static weir_status decompose(cluster *c, const weir_tok_view *v, size_t from, size_t to)
{
    c->n = 0;
    for (size_t i = from; i < to;) {
        int len;
        uint32_t part[4], cp = weir_cp_at(v->p + i, to - i, &len);
        int n = cp == WEIR_CP_INVALID ? 1 : weir_cp_decompose(cp, part);
        if (cp == WEIR_CP_INVALID)
            part[0] = WEIR_CP_INVALID + v->p[i];
        for (int k = 0; k < n; k++)
            WEIR_TRY(add(c, (mark){part[k], weir_cp_combining(part[k]), i}));
        i += (size_t)len;
    }
    return WEIR_OK;
}

/* Sorts the marks m[from, to) by class, keeping the order of equals: a counting sort, since a cluster may be a whole
 * file of marks. */
static void sort_marks(cluster *c, size_t from, size_t to)
{
    size_t start[257] = {0};
    for (size_t i = from; i < to; i++)
        start[c->m[i].class + 1]++;
    for (int k = 1; k < 257; k++)
        start[k] += start[k - 1];
    for (size_t i = from; i < to; i++)
        c->sorted[start[c->m[i].class]++] = c->m[i];
    memcpy(c->m + from, c->sorted, (to - from) * sizeof *c->m);
}

static void reorder(cluster *c)
{
    for (size_t i = 0; i < c->n;) {
        if (!c->m[i].class) {
            i++;
            continue;
        }
        size_t end = i + 1;
        bool in_order = true;
        for (; end < c->n && c->m[end].class; end++)
            in_order = in_order && c->m[end - 1].class <= c->m[end].class;
        if (!in_order)
            sort_marks(c, i, end);
        i = end;
    }
}

/* Joins each code point to the last starter where a primary composite exists and nothing between them blocks it. */
static void compose(cluster *c)
{
    size_t out = 0, starter = SIZE_MAX;
    int last = -1; /* class of the last kept code point behind the starter; -1: none */
    for (size_t i = 0; i < c->n; i++) {
        mark m = c->m[i];
        uint32_t joined = 0;
        if (starter != SIZE_MAX && last < (int)m.class)
            joined = weir_cp_compose(c->m[starter].cp, m.cp);
        if (joined) {
            c->m[starter].cp = joined;
            continue;
        }
        if (!m.class) {
            starter = out;
            last = -1;
        } else {
            last = m.class;
        }
        c->m[out++] = m;
    }
    c->n = out;
}

/* Writes the cluster. A code point's place is where its character stood, but never behind that of a later one, and
 * reaches to the next one's. */
static weir_status write(cluster *c, const weir_tok_view *v, size_t to, weir_tok_text *out)
{
    for (size_t i = c->n - 1; i > 0; i--)
        if (c->m[i - 1].from > c->m[i].from)
            c->m[i - 1].from = c->m[i].from;
    for (size_t i = 0; i < c->n; i++) {
        char bytes[4];
        int len = 1;
        if (c->m[i].cp >= WEIR_CP_INVALID)
            bytes[0] = (char)(c->m[i].cp - WEIR_CP_INVALID);
        else
            len = weir_utf8_put(bytes, c->m[i].cp);
        size_t end = i + 1 < c->n ? c->m[i + 1].from : to;
        WEIR_TRY(weir_tok_text_put(out, bytes, (size_t)len, v, c->m[i].from, end));
    }
    return WEIR_OK;
}

/* The end of the stretch from i on whose characters NFC leaves alone, less its last one (which a mark behind it may
 * join). */
static size_t skip_plain(const weir_tok_view *v, size_t i, size_t *last)
{
    *last = i;
    while (i < v->n) {
        int len;
        if (weir_cp_class_at(v->p + i, v->n - i, &len) & WEIR_CP_NFC_CHECK)
            return i;
        *last = i;
        i += (size_t)len;
    }
    return i;
}

static size_t cluster_end(const weir_tok_view *v, size_t i)
{
    int len;
    while (i < v->n && weir_cp_class_at(v->p + i, v->n - i, &len) & WEIR_CP_NFC_CHECK)
        i += (size_t)len;
    return i;
}

weir_status weir_tok_nfc(const weir_tok_view *v, weir_tok_text *out)
{
    cluster c = {0};
    weir_status s = WEIR_OK;
    for (size_t i = 0; i < v->n && s == WEIR_OK;) {
        size_t last, checked = skip_plain(v, i, &last);
        size_t plain = checked == v->n ? checked : last;
        s = weir_tok_text_put(out, v->p + i, plain - i, v, i, plain);
        i = checked == v->n ? checked : cluster_end(v, checked);
        if (s == WEIR_OK && plain < i && (s = decompose(&c, v, plain, i)) == WEIR_OK) {
            reorder(&c);
            compose(&c);
            s = write(&c, v, i, out);
        }
    }
    weir_free(c.m);
    weir_free(c.sorted);
    return s;
}

bool weir_tok_is_nfc(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        int len = 1;
        if (p[i] >= 0x80 && weir_cp_class_at(p + i, n - i, &len) & WEIR_CP_NFC_CHECK)
            return false;
        i += (size_t)len;
    }
    return true;
}
