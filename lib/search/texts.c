/* search/texts.c: the tokens around what a search has found.
 *
 * Each place that a list or a sample holds asks for a range of its document: the tokens of context that were asked for,
 * and MARGIN more at both ends: a character of four bytes that is split at the edge can be drawn whole, and what came
 * next is known also where no context was asked for. At least CLUSTERED tokens ahead are kept, so that the number of
 * things that a neuron stands for (cluster.c) does not depend on how much is shown. The union of the ranges is read in
 * one ascending sweep over two sources, both ascending: the spool of what was fed, and the tokens that the search has
 * of files. What no place needs any more is not taken over, so that the texts are a function of the lists and of the
 * documents, never of the way there. Lists count with the place that just missed them, because files keep it.
 */
#include <math.h>
#include <string.h>

#include "search/impl.h"
#include "search/wanted.h"

/* --- ranges of keys, both ends included */

typedef struct range {
    uint64_t first, last;
} range;

enum { MARGIN = 3, CLUSTERED = 5 };

static range range_of(const weir_neurons_options *o, uint64_t key)
{
    weir_place at = weir_place_of(key), first = at, last = at;
    int64_t before = o->before + MARGIN > CLUSTERED ? o->before + MARGIN : CLUSTERED, after = o->after + MARGIN;
    bool from_the_start = o->before >= INT32_MAX || before >= at.pos;
    bool to_the_end = o->after >= INT32_MAX || after >= (int64_t)UINT32_MAX - at.pos;
    first.pos = from_the_start ? 0 : at.pos - (uint32_t)before;
    last.pos = to_the_end ? UINT32_MAX : at.pos + (uint32_t)after;
    return (range){weir_place_key(first), weir_place_key(last)};
}

/* The range of place *i and of those behind it that it touches; *i moves behind them. */
static range next_range(const weir_neurons_options *o, const weir_wanted *p, int64_t *i)
{
    range r = range_of(o, p->key[(*i)++]);
    while (*i < p->n) {
        range more = range_of(o, p->key[*i]);
        if (more.first > r.last)
            break;
        r.last = more.last; /* ranges of ascending places end in ascending order */
        ++*i;
    }
    return r;
}

/* --- reading a spool in ascending order: a window of records, which moves on by itself and jumps over what nobody
 * needs */

enum { WINDOW = 4096 };

typedef struct sweep {
    weir_spool *spool; /* NULL: it has no records */
    int64_t count, at; /* records in all; the window's first */
    int64_t n, i;      /* records of the window, and the one that is next */
    weir_spool_record r[WINDOW];
} sweep;

static uint64_t key_of_record(const weir_spool_record *r)
{
    return weir_place_key((weir_place){r->doc, r->pos});
}

static weir_status sweep_read(sweep *w, int64_t at, weir_err *err)
{
    w->at = at;
    w->i = 0;
    w->n = w->count - at < WINDOW ? w->count - at : WINDOW;
    return w->n > 0 ? weir_spool_read(w->spool, at, w->n, w->r, err) : WEIR_OK;
}

static weir_status sweep_start(sweep **out, weir_spool *spool, weir_err *err)
{
    sweep *w = *out = weir_calloc(1, sizeof *w);
    if (!w)
        return weir_nomem(err, "the tokens around a search's places");
    w->spool = spool;
    w->count = spool ? weir_spool_count(spool) : 0;
    return sweep_read(w, 0, err);
}

/* The next record, or NULL behind the last. */
static const weir_spool_record *sweep_peek(const sweep *w)
{
    return w->i < w->n ? &w->r[w->i] : NULL;
}

static weir_status sweep_step(sweep *w, weir_err *err)
{
    w->i++;
    return w->i < w->n ? WEIR_OK : sweep_read(w, w->at + w->n, err);
}

/* Moves on to the first record that is not before key. */
static weir_status sweep_to(sweep *w, uint64_t key, weir_err *err)
{
    if (w->n > 0 && key_of_record(&w->r[w->n - 1]) < key) { /* not in this window: the next, or far away */
        WEIR_TRY(sweep_read(w, w->at + w->n, err));
        if (w->n > 0 && key_of_record(&w->r[w->n - 1]) < key) {
            int64_t at;
            WEIR_TRY(weir_spool_find(w->spool, (uint32_t)(key >> 32), (uint32_t)key, &at, err));
            return sweep_read(w, at, err);
        }
    }
    int64_t low = w->i, high = w->n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (key_of_record(&w->r[middle]) < key)
            low = middle + 1;
        else
            high = middle;
    }
    w->i = low;
    return WEIR_OK;
}

/* --- building texts */

typedef struct build {
    weir_texts t; /* without values */
    int64_t room;
} build;

void weir_texts_free(weir_texts *t, int n_named)
{
    weir_free(t->at);
    weir_free(t->id);
    weir_free(t->edge);
    for (int j = 0; t->value && j < n_named; j++)
        weir_free(t->value[j]);
    weir_free(t->value);
    *t = (weir_texts){0};
}

static weir_status resize(weir_texts *t, int64_t room, weir_err *err)
{
    weir_place *at = weir_realloc(t->at, (size_t)room, sizeof *at);
    if (at)
        t->at = at;
    int32_t *id = weir_realloc(t->id, (size_t)room, sizeof *id);
    if (id)
        t->id = id;
    uint8_t *edge = weir_realloc(t->edge, (size_t)room, sizeof *edge);
    if (edge)
        t->edge = edge;
    return at && id && edge ? WEIR_OK : weir_nomem(err, "the tokens around a search's places");
}

static weir_status push(build *b, weir_place at, int32_t id, uint8_t edge, weir_err *err)
{
    if (b->t.n == b->room) {
        int64_t room = b->room ? b->room * 2 : 1024;
        WEIR_TRY(resize(&b->t, room, err));
        b->room = room;
    }
    b->t.at[b->t.n] = at;
    b->t.id[b->t.n] = id;
    b->t.edge[b->t.n++] = edge;
    return WEIR_OK;
}

enum { EDGE_FIRST = 1, EDGE_LAST = 2 };

/* The record that stands next in the sweep, which moves on: what follows it tells whether its document goes on. */
static weir_status push_record(build *b, sweep *w, weir_err *err)
{
    weir_spool_record r = *sweep_peek(w);
    WEIR_TRY(sweep_step(w, err));
    const weir_spool_record *next = sweep_peek(w);
    uint8_t edge = (r.pos == 0 ? EDGE_FIRST : 0) | (!next || next->doc != r.doc ? EDGE_LAST : 0);
    return push(b, (weir_place){r.doc, r.pos}, (int32_t)r.payload, edge, err);
}

/* The index of the first place of t, from i on, that is not before key. */
static int64_t seek(const weir_texts *t, int64_t i, uint64_t key)
{
    int64_t high = t->n;
    while (i < high) {
        int64_t middle = i + (high - i) / 2;
        if (weir_place_key(t->at[middle]) < key)
            i = middle + 1;
        else
            high = middle;
    }
    return i;
}

/* The tokens of one range, of the spool and of what was there; where both have one, the spool's: it knows whether the
 * document went on. */
static weir_status take_range(build *b, range r, const weir_texts *old, int64_t *i, sweep *w, weir_err *err)
{
    *i = seek(old, *i, r.first);
    WEIR_TRY(sweep_to(w, r.first, err));
    for (;;) {
        const weir_spool_record *next = sweep_peek(w);
        bool fed = next && key_of_record(next) <= r.last, had = *i < old->n && weir_place_key(old->at[*i]) <= r.last;
        if (!fed && !had)
            return WEIR_OK;
        uint64_t a = fed ? key_of_record(next) : UINT64_MAX, c = had ? weir_place_key(old->at[*i]) : UINT64_MAX;
        if (fed && a <= c) {
            *i += had && a == c;
            WEIR_TRY(push_record(b, w, err));
        } else {
            WEIR_TRY(push(b, old->at[*i], old->id[*i], old->edge[*i], err));
            ++*i;
        }
    }
}

static weir_status take_tokens(build *b, const weir_neurons *s, const weir_wanted *p, sweep *w, weir_err *err)
{
    int64_t i = 0, old = 0;
    while (i < p->n)
        WEIR_TRY(take_range(b, next_range(&s->o, p, &i), &s->texts, &old, w, err));
    return WEIR_OK;
}

/* --- values of named neurons: of the old texts, and then of the spool */

/* Room for the values of n tokens, all unknown. */
static weir_status new_values(weir_texts *t, int n_named, weir_err *err)
{
    t->value = weir_calloc((size_t)n_named, sizeof *t->value);
    for (int j = 0; t->value && j < n_named; j++) {
        t->value[j] = weir_calloc((size_t)t->n, sizeof **t->value);
        if (!t->value[j])
            break;
        for (int64_t i = 0; i < t->n; i++)
            t->value[j][i] = NAN;
    }
    if (!t->value || (n_named > 0 && !t->value[n_named - 1]))
        return weir_nomem(err, "the values around a search's places");
    return WEIR_OK;
}

/* Values of named neuron j of the places that t and from share. */
static void copy_values(weir_texts *t, const weir_texts *from, int j)
{
    int64_t i = 0;
    for (int64_t f = 0; from->value && f < from->n; f++) {
        i = seek(t, i, weir_place_key(from->at[f]));
        if (i == t->n)
            return;
        if (weir_place_key(t->at[i]) == weir_place_key(from->at[f]))
            t->value[j][i] = from->value[j][f];
    }
}

static weir_status sweep_values(weir_texts *t, int j, weir_spool *heat, weir_err *err)
{
    sweep *w;
    weir_status st = sweep_start(&w, heat, err);
    for (int64_t i = 0; i < t->n && st == WEIR_OK; i++) {
        st = sweep_to(w, weir_place_key(t->at[i]), err);
        const weir_spool_record *r = st == WEIR_OK ? sweep_peek(w) : NULL;
        if (r && key_of_record(r) == weir_place_key(t->at[i]))
            memcpy(&t->value[j][i], &r->payload, sizeof t->value[j][i]);
    }
    weir_free(w);
    return st;
}

static weir_status take_values(const weir_neurons *s, weir_texts *t, weir_err *err)
{
    if (s->o.n_named == 0)
        return WEIR_OK;
    WEIR_TRY(new_values(t, s->o.n_named, err));
    for (int j = 0; j < s->o.n_named; j++) {
        copy_values(t, &s->texts, j);
        if (s->heat && s->heat[j])
            WEIR_TRY(sweep_values(t, j, s->heat[j], err));
    }
    return WEIR_OK;
}

static weir_status gather(const weir_neurons *s, build *b, weir_err *err)
{
    weir_wanted p = {0};
    sweep *w = NULL;
    weir_status st = weir_wanted_find(&p, s, err);
    if (st == WEIR_OK)
        st = sweep_start(&w, s->tokens, err);
    if (st == WEIR_OK)
        st = take_tokens(b, s, &p, w, err);
    weir_free(w);
    weir_wanted_free(&p);
    if (st == WEIR_OK)
        st = take_values(s, &b->t, err);
    return st;
}

/* Gives back what growing took too much. */
static weir_status trim(build *b, weir_err *err)
{
    return b->t.n > 0 && b->t.n < b->room ? resize(&b->t, b->t.n, err) : WEIR_OK;
}

weir_status weir_texts_gather(weir_neurons *s, weir_err *err)
{
    build b = {0};
    weir_status st = gather(s, &b, err);
    if (st == WEIR_OK)
        st = trim(&b, err);
    if (st != WEIR_OK) {
        weir_texts_free(&b.t, s->o.n_named);
        return st;
    }
    weir_texts_free(&s->texts, s->o.n_named);
    s->texts = b.t;
    return WEIR_OK;
}

/* --- texts of files that are read or merged */

static weir_status unite(build *b, const weir_texts *x, const weir_texts *y, weir_err *err)
{
    int64_t i = 0, j = 0;
    while (i < x->n || j < y->n) {
        uint64_t a = i < x->n ? weir_place_key(x->at[i]) : UINT64_MAX,
                 c = j < y->n ? weir_place_key(y->at[j]) : UINT64_MAX;
        bool first = j == y->n || (i < x->n && a <= c);
        const weir_texts *from = first ? x : y;
        int64_t at = first ? i : j;
        j += !first || (j < y->n && a == c);
        i += first;
        WEIR_TRY(push(b, from->at[at], from->id[at], from->edge[at], err));
    }
    return WEIR_OK;
}

/* A token that another of its document follows directly is not the last one. */
static void settle_edges(weir_texts *t)
{
    for (int64_t i = 0; i + 1 < t->n; i++)
        if (t->at[i].doc == t->at[i + 1].doc)
            t->edge[i] &= (uint8_t)~EDGE_LAST;
}

weir_status weir_texts_join(weir_neurons *s, const weir_texts *more, weir_err *err)
{
    build b = {0};
    int n_named = s->o.n_named;
    weir_status st = unite(&b, &s->texts, more, err);
    settle_edges(&b.t);
    if (st == WEIR_OK)
        st = trim(&b, err);
    if (st == WEIR_OK && n_named > 0)
        st = new_values(&b.t, n_named, err);
    if (st != WEIR_OK) {
        weir_texts_free(&b.t, n_named);
        return st;
    }
    for (int j = 0; j < n_named; j++) {
        copy_values(&b.t, more, j);
        copy_values(&b.t, &s->texts, j);
    }
    weir_texts_free(&s->texts, n_named);
    s->texts = b.t;
    return WEIR_OK;
}

/* --- questions */

int64_t weir_texts_find(const weir_texts *t, weir_place at)
{
    int64_t i = seek(t, 0, weir_place_key(at));
    return i < t->n && weir_place_key(t->at[i]) == weir_place_key(at) ? i : -1;
}

/* Do i and i + 1 hold tokens of consecutive positions? */
static bool joined(const weir_texts *t, int64_t i)
{
    return i >= 0 && i + 1 < t->n && t->at[i].doc == t->at[i + 1].doc && t->at[i].pos + 1 == t->at[i + 1].pos;
}

weir_neurons_context weir_neurons_context_of(const weir_neurons *s, int64_t doc, int64_t pos, int named)
{
    const weir_texts *t = &s->texts;
    weir_neurons_context c = {0};
    if (doc < 0 || doc > UINT32_MAX || pos < 0 || pos > UINT32_MAX)
        return c;
    weir_place at = {(uint32_t)doc, (uint32_t)pos};
    int64_t hit = weir_texts_find(t, at);
    if (hit < 0)
        return c;
    range r = range_of(&s->o, weir_place_key(at));
    int64_t first = hit, last = hit;
    while (joined(t, first - 1) && weir_place_key(t->at[first - 1]) >= r.first)
        first--;
    while (joined(t, last) && weir_place_key(t->at[last + 1]) <= r.last)
        last++;
    bool values = named >= 0 && named < s->o.n_named && t->value;
    return (weir_neurons_context){.id = t->id + first,
                                  .n = last - first + 1,
                                  .hit = hit - first,
                                  .pos = t->at[first].pos,
                                  .value = values ? t->value[named] + first : NULL,
                                  .begins = t->edge[first] & EDGE_FIRST,
                                  .ends = t->edge[last] & EDGE_LAST};
}
