#include "html_text.h"

#include <stdlib.h>

#include "sections.h"

void weir_html_text_free(weir_html_text *t)
{
    free(t->places.x);
    free(t->ids.x);
    free(t->stretch);
    free(t->id);
    *t = (weir_html_text){0};
}

/* Room for one more element of `size` bytes. */
static bool grow(weir_html_text *t, void **p, size_t *room, size_t n, size_t size)
{
    if (t->failed || n < *room)
        return !t->failed;
    size_t more = 2 * n + 1024;
    void *q = more > SIZE_MAX / size ? NULL : realloc(*p, more * size);
    if (!q)
        return !(t->failed = true);
    *p = q;
    *room = more;
    return true;
}

/* --- sets of numbers: appended, and settled when the room is used up */

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void settle(weir_number_set *set)
{
    size_t n = 0;
    if (set->n)
        qsort(set->x, set->n, sizeof *set->x, by_number);
    for (size_t i = 0; i < set->n; i++)
        if (n == 0 || set->x[i] != set->x[n - 1])
            set->x[n++] = set->x[i];
    set->n = n;
}

void weir_html_text_want(weir_html_text *t, weir_number_set *set, uint64_t x)
{
    bool ok = true;
    if (set->n == set->room) {
        settle(set);
        if (set->n >= set->room / 2) { /* few were there twice: it would be full again soon */
            void *p = set->x;
            ok = grow(t, &p, &set->room, set->room, sizeof x);
            set->x = p;
        }
    }
    if (ok)
        set->x[set->n++] = x;
}

/* Index of x; -1: it is not there. */
static int64_t find(const weir_number_set *set, uint64_t x)
{
    size_t low = 0, high = set->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (set->x[mid] < x)
            low = mid + 1;
        else
            high = mid;
    }
    return low < set->n && set->x[low] == x ? (int64_t)low : -1;
}

/* --- stretches */

static void add_token(weir_html_text *t, int32_t id)
{
    void *p = t->id;
    if (!grow(t, &p, &t->room, t->n, sizeof *t->id))
        return;
    t->id = p;
    t->id[t->n++] = id;
}

static weir_stretch *new_stretch(weir_html_text *t, int64_t doc, int64_t pos)
{
    void *p = t->stretch;
    if (!grow(t, &p, &t->stretch_room, t->n_stretches, sizeof *t->stretch))
        return NULL;
    t->stretch = p;
    weir_stretch *r = &t->stretch[t->n_stretches++];
    *r = (weir_stretch){.doc = doc, .pos = pos, .at = (int64_t)t->n};
    return r;
}

/* Tokens more than are shown, on either side: what came next, and the rest of a character that the edge would split. */
enum { EDGE = 3 };

/* Tokens around a place; places come in ascending order, so what is new of them stands behind the last stretch, or
 * begins another. */
static void add_place(weir_html_text *t, const weir_view *v, int64_t doc, int64_t pos)
{
    weir_neurons_context c = weir_neurons_context_of(v->s, doc, pos, -1);
    int64_t first, end;
    if (c.n == 0)
        return;
    weir_view_window(v, &c, &first, &end);
    first = first < EDGE ? 0 : first - EDGE;
    end = c.n - end < EDGE ? c.n : end + EDGE;
    weir_stretch *r = t->n_stretches ? &t->stretch[t->n_stretches - 1] : NULL;
    if (!r || r->doc != doc || c.pos + first > r->pos + r->n) {
        r = new_stretch(t, doc, c.pos + first);
        if (!r)
            return;
        r->begins = c.begins && first == 0;
    }
    for (int64_t i = r->pos + r->n - c.pos; i < end; i++, r->n++)
        add_token(t, c.id[i]);
    r->ends = r->ends || (c.ends && end == c.n);
}

bool weir_html_text_gather(weir_html_text *t, const weir_view *v)
{
    settle(&t->places);
    for (size_t i = 0; i < t->places.n && !t->failed; i++)
        add_place(t, v, (int64_t)(t->places.x[i] >> 32), (int64_t)(t->places.x[i] & UINT32_MAX));
    for (size_t i = 0; i < t->n && !t->failed; i++)
        weir_html_text_want(t, &t->ids, (uint32_t)t->id[i]);
    settle(&t->ids);
    return !t->failed;
}

int64_t weir_html_text_at(const weir_html_text *t, int64_t doc, int64_t pos)
{
    size_t low = 0, high = t->n_stretches; /* the last stretch that begins at the place or before it */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const weir_stretch *r = &t->stretch[mid];
        if (r->doc < doc || (r->doc == doc && r->pos <= pos))
            low = mid + 1;
        else
            high = mid;
    }
    const weir_stretch *r = low ? &t->stretch[low - 1] : NULL;
    return r && r->doc == doc && pos - r->pos < r->n ? r->at + pos - r->pos : -1;
}

int64_t weir_html_text_index(const weir_html_text *t, int32_t id)
{
    return find(&t->ids, (uint32_t)id);
}

/* --- blocks */

void weir_html_text_tokens(const weir_html_text *t, const weir_neurons *s, weir_base64 *b)
{
    weir_base64_count(b, (int64_t)t->ids.n);
    for (size_t i = 0; i < t->ids.n; i++) {
        int32_t id = (int32_t)t->ids.x[i];
        weir_str bytes = weir_neurons_token(s, id);
        weir_base64_count(b, id);
        weir_base64_count(b, (int64_t)(2 * bytes.n + weir_neurons_token_special(s, id)));
        weir_base64_put(b, bytes.p, bytes.n);
    }
}

void weir_html_text_stream(const weir_html_text *t, weir_base64 *b)
{
    for (size_t i = 0; i < t->n; i++)
        weir_base64_count(b, weir_html_text_index(t, t->id[i]));
}

void weir_html_text_stretches(const weir_html_text *t, weir_base64 *b)
{
    weir_base64_count(b, (int64_t)t->n_stretches);
    for (size_t i = 0; i < t->n_stretches; i++) {
        const weir_stretch *r = &t->stretch[i];
        weir_base64_count(b, r->doc);
        weir_base64_count(b, r->pos);
        weir_base64_count(b, 4 * r->n + 2 * r->ends + r->begins);
    }
}
