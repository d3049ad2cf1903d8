#include "corpus.h"

#include <stdlib.h>
#include <string.h>

#include "cli/signals.h"

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory (here: the tokens of the text; --max-tokens bounds them)");
}

/* --- random numbers: splitmix64 (Steele, Lea and Flood 2014) */

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t next_random(uint64_t *state)
{
    return mix(*state += 0x9e3779b97f4a7c15u);
}

/* --- reading */

/* The document whose windows are coming in. */
typedef struct document {
    int64_t number; /* -1: none */
    int64_t first;  /* its first window */
    int64_t rows;
    uint64_t hash; /* FNV-1a over its kept ids */
} document;

enum { AT_FIRST = 1024 };

/* Room for n more behind the `used` of an array that has doubled since AT_FIRST; NULL when there is none. */
static void *grow(void *p, int64_t used, int64_t n, size_t size)
{
    int64_t room = AT_FIRST, want;
    while (room < used)
        room *= 2;
    for (want = room; want < used + n;)
        want *= 2;
    return p && want == room ? p : realloc(p, (size_t)want * size);
}

static weir_status make_room(weir_corpus *c, int64_t tokens, weir_err *err)
{
    int32_t *id = grow(c->id, c->tokens, tokens, sizeof *id);
    c->id = id ? id : c->id;
    uint8_t *keep = grow(c->keep, c->tokens, tokens, 1);
    c->keep = keep ? keep : c->keep;
    weir_corpus_window *w = grow(c->window, c->windows, 1, sizeof *w);
    c->window = w ? w : c->window;
    return id && keep && w ? WEIR_OK : no_memory(err);
}

/* All windows of a document go to one side. */
static weir_status put_document(weir_corpus *c, const document *d, weir_err *err)
{
    if (d->number < 0 || d->rows == 0)
        return WEIR_OK;
    const double draw = (double)(mix(d->hash ^ mix(c->seed)) >> 11) * 0x1p-53;
    weir_corpus_side *s = &c->side[draw < c->held_out ? WEIR_CORPUS_HELD_OUT : WEIR_CORPUS_TRAINING];
    int64_t *window = grow(s->window, s->n, c->windows - d->first, sizeof *window);
    if (!window)
        return no_memory(err);
    s->window = window;
    for (int64_t w = d->first; w < c->windows; w++)
        s->window[s->n++] = w;
    s->docs++;
    s->rows += d->rows;
    return WEIR_OK;
}

static void begin_window(weir_corpus *c, const weir_seq *s)
{
    c->window[c->windows++] = (weir_corpus_window){.first = c->tokens,
                                                   .doc = s->tag,
                                                   .total = s->total,
                                                   .place = s->place ? s->place[0] : 0,
                                                   .place_1 = s->place && s->n > 1 ? s->place[1] : 1};
}

/* more: the sequence goes on with the last window. */
static weir_status put_sequence(weir_corpus *c, document *d, const weir_seq *s, bool more, weir_err *err)
{
    WEIR_TRY(make_room(c, s->n, err));
    if (!more)
        begin_window(c, s);
    for (int64_t i = 0; i < s->n; i++) {
        const bool kept = !s->keep || s->keep[i];
        c->id[c->tokens] = s->ids[i];
        c->keep[c->tokens++] = kept;
        d->rows += kept;
        d->hash = kept ? (d->hash ^ (uint32_t)s->ids[i]) * 0x100000001b3u : d->hash;
    }
    c->window[c->windows - 1].n += s->n;
    return WEIR_OK;
}

/* Has each side the rows that it should have? */
static bool has_enough(const weir_corpus *c)
{
    const double held = (double)c->rows * c->held_out / (1 - c->held_out);
    return c->side[WEIR_CORPUS_TRAINING].rows >= c->rows && (double)c->side[WEIR_CORPUS_HELD_OUT].rows >= held;
}

/* *enough: the documents before the one that begins here have the rows that are asked for. Looked at between documents
 * alone, so that what is read does not depend on how the text comes in batches. */
static weir_status put_batch(weir_corpus *c, document *d, const weir_batch *b, bool *enough, weir_err *err)
{
    for (int64_t i = 0; i < b->n_seq; i++) {
        const weir_seq *s = &b->seq[i];
        if (s->tag != d->number) {
            WEIR_TRY(put_document(c, d, err));
            *d = (document){.number = s->tag, .first = c->windows, .hash = 0xcbf29ce484222325u};
            *enough = has_enough(c);
        }
        if (*enough)
            return WEIR_OK;
        WEIR_TRY(put_sequence(c, d, s, i == 0 && b->continues, err));
    }
    return WEIR_OK;
}

weir_status weir_corpus_read(weir_corpus *c, weir_feed *feed, weir_err *err)
{
    document d = {.number = -1};
    const weir_batch *b = NULL;
    bool enough = false;
    while (!enough && !weir_signals_seen()) {
        WEIR_TRY(weir_feed_next(feed, &b, err));
        if (!b)
            break;
        WEIR_TRY(put_batch(c, &d, b, &enough, err));
    }
    c->whole = !enough;
    return enough ? WEIR_OK : put_document(c, &d, err);
}

void weir_corpus_free(weir_corpus *c)
{
    for (int i = 0; i < WEIR_CORPUS_SIDES; i++)
        free(c->side[i].window);
    free(c->id);
    free(c->keep);
    free(c->window);
}

/* --- passes */

/* Fisher and Yates. The remainder favours low numbers by less than n / 2^64. */
static void shuffle(int64_t *order, int64_t n, uint64_t seed, int64_t epoch)
{
    uint64_t state = mix(seed) + (uint64_t)epoch;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t k = (int64_t)(next_random(&state) % (uint64_t)(i + 1)), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
}

weir_status weir_corpus_pass_begin(weir_corpus_pass *p, const weir_corpus *c, int side, int64_t epoch, int64_t batch,
                                   weir_err *err)
{
    const weir_corpus_side *s = &c->side[side];
    *p = (weir_corpus_pass){.c = c, .n = s->n, .batch = batch};
    p->order = malloc(((size_t)s->n + 1) * sizeof *p->order);
    p->seq = calloc((size_t)batch, sizeof *p->seq);
    p->place = calloc((size_t)batch, sizeof *p->place);
    if (!p->order || !p->seq || !p->place) {
        weir_corpus_pass_end(p);
        return no_memory(err);
    }
    memcpy(p->order, s->window, (size_t)s->n * sizeof *p->order);
    if (epoch >= 0)
        shuffle(p->order, s->n, c->seed, epoch);
    return WEIR_OK;
}

/* Tokens [from, from + n) of a window as the batch's next sequence. */
static void put_piece(weir_corpus_pass *p, const weir_corpus_window *w, int64_t from, int64_t n, int slot)
{
    int64_t *place = p->place + p->rows;
    for (int64_t i = 0; i < n; i++)
        place[i] = from + i == 0 ? w->place : w->place_1 + from + i - 1;
    p->seq[p->n_seq++] = (weir_seq){.ids = p->c->id + w->first + from,
                                    .n = n,
                                    .slot = slot,
                                    .keep = p->c->keep + w->first + from,
                                    .tag = w->doc,
                                    .place = place,
                                    .total = w->total};
    p->rows += n;
}

/* A window longer than a batch comes in pieces, each of which has a batch for itself. */
static void put_long(weir_corpus_pass *p, const weir_corpus_window *w)
{
    const int64_t left = w->n - p->within;
    p->restart = p->within == 0;
    put_piece(p, w, p->within, left < p->batch ? left : p->batch, 0);
    p->within += p->batch;
    if (p->within >= w->n) {
        p->within = 0;
        p->at++;
    }
}

bool weir_corpus_pass_next(weir_corpus_pass *p)
{
    p->n_seq = p->rows = 0;
    p->restart = false;
    while (p->at < p->n) {
        const weir_corpus_window *w = &p->c->window[p->order[p->at]];
        if (w->n > p->batch) {
            if (p->rows == 0)
                put_long(p, w);
            break;
        }
        if (p->rows + w->n > p->batch)
            break;
        put_piece(p, w, 0, w->n, -1);
        p->at++;
    }
    return p->n_seq > 0;
}

void weir_corpus_pass_end(weir_corpus_pass *p)
{
    free(p->order);
    free(p->seq);
    free(p->place);
    p->order = NULL;
    p->seq = NULL;
    p->place = NULL;
}
