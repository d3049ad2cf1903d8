/* Selectors: which points, and which positions and elements of them. */
#include <string.h>

#include "selector.h"

/* What is selected of one point. */
typedef struct part {
    uint8_t *mark; /* [width] while building; NULL: all or nothing */
    bool hit, all;
    int64_t *idx;
    int64_t n;
} part;

/* One text between commas. */
typedef struct item {
    const uint8_t *hit; /* [all points] */
    weir_ranges rows;   /* positions */
} item;

struct weir_selector {
    weir_arena arena;
    const weir_model *model;
    weir_point_map map;
    part *part; /* [all points] */
    item *item;
    int n_items;
    bool positions;    /* some item restricts them */
    uint8_t *layer_on; /* [L] or NULL */
};

/* --- elements */

/* The two inner axes of a point's row: [heads, size]; the lists of the brackets for them. */
static weir_status mark_elements(const weir_point *p, const weir_ranges *head, const weir_ranges *unit, uint8_t *mark,
                                 weir_err *err)
{
    uint8_t *heads = weir_calloc((size_t)p->heads, 1), *units = weir_calloc((size_t)p->size, 1);
    weir_status st = heads && units ? WEIR_OK : weir_nomem(err, "a selector");
    if (!st)
        st = weir_ranges_mark(head, p->heads, heads, "head", p->name, err);
    if (!st)
        st = weir_ranges_mark(unit, p->size, units, p->keyed ? "key" : "unit", p->name, err);
    for (int64_t h = 0; !st && h < p->heads; h++)
        for (int64_t u = 0; heads[h] && u < p->size; u++)
            mark[h * p->size + u] |= units[u];
    weir_free(heads);
    weir_free(units);
    return st;
}

/* How many keys there are is known only in a pass: an end to count from is missing. */
static weir_status check_keys(const weir_point *p, const weir_ranges *unit, weir_err *err)
{
    for (int i = 0; p->keyed && i < unit->n; i++)
        if (unit->r[i].from < 0 || unit->r[i].to < 0)
            return weir_fail(err, WEIR_E_ARG, "keys of %s are counted from 0: a negative one has no place", p->name);
    return WEIR_OK;
}

/* Adds what one item selects of one point. */
static weir_status add_part(weir_selector *s, int64_t i, const weir_brackets *b, weir_err *err)
{
    static const weir_ranges all = {0};
    const weir_point *p = &s->map.point[i];
    part *t = &s->part[i];
    if (p->rank == 2 && b->n == 3)
        return weir_fail(err, WEIR_E_ARG, "%s has the axes [position, unit], but the brackets have three entries",
                         p->name);
    const weir_ranges *head = p->rank == 3 && b->n >= 2 ? &b->entry[1] : &all;
    const weir_ranges *unit = p->rank == 2 ? (b->n == 2 ? &b->entry[1] : &all) : b->n == 3 ? &b->entry[2] : &all;
    t->hit = true;
    if (head->n == 0 && unit->n == 0) {
        t->all = true;
        return WEIR_OK;
    }
    WEIR_TRY(check_keys(p, unit, err));
    if (!t->mark)
        t->mark = weir_calloc((size_t)p->width, 1);
    return t->mark ? mark_elements(p, head, unit, t->mark, err) : weir_nomem(err, "a selector");
}

/* Turns marks into ascending lists. */
static weir_status list_elements(weir_selector *s, weir_err *err)
{
    for (int64_t i = 0; i < s->map.all; i++) {
        part *t = &s->part[i];
        int64_t width = s->map.point[i].width, n = 0;
        if (!t->mark || t->all)
            continue;
        for (int64_t e = 0; e < width; e++)
            n += t->mark[e];
        t->idx = weir_arena_alloc(&s->arena, (size_t)n, sizeof *t->idx);
        if (!t->idx)
            return weir_nomem(err, "a selector");
        for (int64_t e = 0; e < width; e++)
            if (t->mark[e])
                t->idx[t->n++] = e;
    }
    return WEIR_OK;
}

/* --- items */

static weir_str trim(weir_str s)
{
    while (s.n && (*s.p == ' ' || *s.p == '\t'))
        s.p++, s.n--;
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* L6N421 is blocks.6.mlp.hook_post[:, 421], L6H3 is blocks.6.attn.hook_z[:, 3]. */
static weir_status add_unit(weir_selector *s, weir_brackets *b, int64_t unit, weir_str text, weir_err *err)
{
    if (b->n > 1)
        return weir_fail(err, WEIR_E_ARG, "\"%.*s\" names its unit already: brackets can only hold positions",
                         (int)text.n, text.p);
    weir_range *r = weir_arena_alloc(&s->arena, 1, sizeof *r);
    if (!r)
        return weir_nomem(err, "a selector");
    *r = (weir_range){.from = unit, .single = true};
    b->entry[1] = (weir_ranges){r, 1};
    b->n = 2;
    return WEIR_OK;
}

static weir_status add_item(weir_selector *s, weir_str text, weir_err *err)
{
    text = trim(text);
    const char *open = memchr(text.p, '[', text.n);
    weir_str name = trim((weir_str){text.p, open ? (size_t)(open - text.p) : text.n});
    const weir_model_info *info = weir_model_info_of(s->model);
    weir_brackets b = {0};
    int64_t unit;
    if (name.n == 0)
        return weir_fail(err, WEIR_E_ARG, "a selector is empty: name a hook point (weir trace --list-hooks shows all)");
    uint8_t *hit = weir_arena_alloc(&s->arena, (size_t)s->map.all, 1);
    if (!hit)
        return weir_nomem(err, "a selector");
    WEIR_TRY(weir_names_find(&s->map, info->L, info->gated, name, s->layer_on, hit, &unit, err));
    if (open)
        WEIR_TRY(weir_brackets_parse(&b, &s->arena, (weir_str){open, text.n - (size_t)(open - text.p)}, err));
    if (unit >= 0)
        WEIR_TRY(add_unit(s, &b, unit, text, err));
    item *more = weir_realloc(s->item, (size_t)s->n_items + 1, sizeof *more);
    if (!more)
        return weir_nomem(err, "a selector");
    s->item = more;
    s->item[s->n_items++] = (item){hit, b.entry[0]};
    s->positions |= b.entry[0].n > 0;
    for (int64_t i = 0; i < s->map.all; i++)
        if (hit[i])
            WEIR_TRY(add_part(s, i, &b, err));
    return WEIR_OK;
}

/* Items between commas; commas in braces and brackets do not separate. */
static weir_status add_items(weir_selector *s, const char *text, weir_err *err)
{
    int depth = 0;
    const char *from = text;
    for (const char *p = text;; p++) {
        depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
        if (*p && (*p != ',' || depth > 0))
            continue;
        WEIR_TRY(add_item(s, (weir_str){from, (size_t)(p - from)}, err));
        if (!*p)
            return WEIR_OK;
        from = p + 1;
    }
}

/* --- layers */

/* "6" or "0-3" of a list of layers. */
static weir_status add_layers(weir_selector *s, weir_str text, int64_t n_layers, weir_err *err)
{
    const char *dash = memchr(text.p, '-', text.n);
    weir_str first = trim((weir_str){text.p, dash ? (size_t)(dash - text.p) : text.n});
    weir_str last = dash ? trim((weir_str){dash + 1, (size_t)(text.p + text.n - dash - 1)}) : first;
    int64_t from, to;
    if (!weir_digits(first, &from) || !weir_digits(last, &to) || to < from)
        return weir_fail(err, WEIR_E_ARG,
                         "layers \"%.*s\": a number, a range such as 0-3 (both ends included), or all was expected",
                         (int)text.n, text.p);
    if (to >= n_layers)
        return weir_no_layer(err, to, n_layers);
    memset(s->layer_on + from, 1, (size_t)(to - from + 1));
    return WEIR_OK;
}

static weir_status set_layers(weir_selector *s, const char *layers, weir_err *err)
{
    int64_t n_layers = weir_model_info_of(s->model)->L;
    s->layer_on = weir_arena_alloc(&s->arena, (size_t)n_layers, 1);
    if (!s->layer_on)
        return weir_nomem(err, "a selector");
    for (const char *from = layers;;) {
        size_t n = strcspn(from, ",");
        weir_str one = trim((weir_str){from, n});
        if (one.n == 3 && memcmp(one.p, "all", 3) == 0)
            memset(s->layer_on, 1, (size_t)n_layers);
        else
            WEIR_TRY(add_layers(s, one, n_layers, err));
        if (!from[n])
            return WEIR_OK;
        from += n + 1;
    }
}

/* What a layer means when nothing else is said: the residual stream, what is added to it, what the sublayers read, the
 * neurons. */
static weir_status add_default_set(weir_selector *s, weir_err *err)
{
    static const weir_site set[] = {WEIR_SITE_RESID_PRE, WEIR_SITE_LN1_OUT,  WEIR_SITE_ATTN_OUT, WEIR_SITE_RESID_MID,
                                    WEIR_SITE_LN2_OUT,   WEIR_SITE_MLP_POST, WEIR_SITE_MLP_OUT,  WEIR_SITE_RESID_POST};
    static const weir_brackets whole = {0};
    for (int64_t i = 0; i < s->map.n; i++) {
        const weir_point *p = &s->map.point[i];
        for (size_t k = 0; k < sizeof set / sizeof *set; k++)
            if (p->site == set[k] && s->layer_on[p->layer])
                WEIR_TRY(add_part(s, i, &whole, err));
    }
    return WEIR_OK;
}

/* --- the public calls */

/* Hands the selector out, or frees it if something failed. */
static weir_status hand_out(weir_selector **out, weir_selector *s, weir_status st)
{
    if (st) {
        weir_selector_free(s);
        s = NULL;
    }
    *out = s;
    return st;
}

static weir_status create(weir_selector **out, const weir_model *m, weir_err *err)
{
    *out = NULL;
    weir_selector *s = weir_calloc(1, sizeof *s);
    if (!s)
        return weir_nomem(err, "a selector");
    s->model = m;
    weir_status st = weir_point_map_init(&s->map, m, err);
    s->part = st ? NULL : weir_calloc((size_t)s->map.all, sizeof *s->part);
    if (!st && !s->part)
        st = weir_nomem(err, "a selector");
    return hand_out(out, s, st);
}

static weir_status fill(weir_selector *s, const char *hooks, const char *layers, const char *sites, weir_err *err)
{
    if (!hooks && !layers && !sites)
        return weir_fail(err, WEIR_E_ARG,
                         "nothing is selected: name hook points (--hooks), sites (--site) or layers (--layer)");
    if (layers)
        WEIR_TRY(set_layers(s, layers, err));
    if (hooks)
        WEIR_TRY(add_items(s, hooks, err));
    if (sites)
        WEIR_TRY(add_items(s, sites, err));
    if (!hooks && !sites)
        WEIR_TRY(add_default_set(s, err));
    return list_elements(s, err);
}

weir_status weir_selector_parse(weir_selector **out, const weir_model *m, const char *text, weir_err *err)
{
    weir_selector *s;
    *out = NULL;
    WEIR_TRY(create(&s, m, err));
    weir_status st = add_item(s, (weir_str){text, strlen(text)}, err);
    return hand_out(out, s, st ? st : list_elements(s, err));
}

weir_status weir_selector_build(weir_selector **out, const weir_model *m, const char *hooks, const char *layers,
                                const char *sites, weir_err *err)
{
    weir_selector *s;
    *out = NULL;
    WEIR_TRY(create(&s, m, err));
    return hand_out(out, s, fill(s, hooks, layers, sites, err));
}

void weir_selector_free(weir_selector *s)
{
    if (!s)
        return;
    for (int64_t i = 0; s->part && i < s->map.all; i++)
        weir_free(s->part[i].mark);
    weir_free(s->part);
    weir_free(s->item);
    weir_arena_free(&s->arena);
    weir_free(s);
}

static const part *part_of(const weir_selector *s, const weir_point *p)
{
    bool mine = p >= s->map.point && p < s->map.point + s->map.all;
    return mine ? &s->part[p - s->map.point] : NULL;
}

bool weir_selector_matches(const weir_selector *s, const weir_point *p)
{
    const part *t = part_of(s, p);
    return t && t->hit;
}

int64_t weir_selector_count(const weir_selector *s)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->map.all; i++)
        n += s->part[i].hit;
    return n;
}

bool weir_selector_has_positions(const weir_selector *s)
{
    return s->positions;
}

bool weir_selector_row_at(const weir_selector *s, const weir_point *p, int64_t pos, int64_t len)
{
    if (!weir_selector_matches(s, p))
        return false;
    for (int i = 0; i < s->n_items; i++)
        if (s->item[i].hit[p - s->map.point] && weir_ranges_have(&s->item[i].rows, pos, len))
            return true;
    return s->n_items == 0;
}

void weir_selector_units(const weir_selector *s, const weir_point *p, const int64_t **idx, int64_t *n)
{
    const part *t = part_of(s, p);
    *idx = t ? t->idx : NULL;
    *n = !t || !t->hit ? 0 : t->all ? -1 : t->n;
}
