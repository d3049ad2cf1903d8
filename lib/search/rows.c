/* search/rows.c: the rows of a pass. Every token is counted and kept in the spool once; the rows whose values count are
 * packed for weir_neurons_add, with their keys and hashes. */
#include "search/rows.h"

#include <string.h>

struct weir_history {
    bool any; /* rows were fed, up to this place: */
    weir_place last;
    bool again; /* the pass before repeated rows */
    /* The last tokens of the document under way, for WEIR_DEDUP_TEXT. */
    bool open;
    uint32_t doc;
    int32_t *token; /* [2 * dedup_n]: the newest lie last of `n` */
    int64_t n;
    /* The document whose key was asked for last, if it was over. */
    bool known;
    uint32_t known_doc;
    uint64_t known_key;
};

weir_status weir_history_new(weir_neurons *s, weir_err *err)
{
    s->history = weir_calloc(1, sizeof *s->history);
    if (!s->history)
        return weir_nomem(err, "a search");
    s->history->token = weir_calloc((size_t)s->o.dedup_n, 2 * sizeof *s->history->token);
    return s->history->token ? WEIR_OK : weir_nomem(err, "a search");
}

void weir_history_free(weir_neurons *s)
{
    if (s->history)
        weir_free(s->history->token);
    weir_free(s->history);
}

static weir_status grow(void *array, int64_t n, size_t size, weir_err *err)
{
    void *p, *grown;
    memcpy(&p, array, sizeof p);
    grown = weir_realloc(p, (size_t)n, size);
    if (!grown)
        return weir_nomem(err, "the rows of a pass");
    memcpy(array, &grown, sizeof grown);
    return WEIR_OK;
}

weir_status weir_pass_room(weir_pass *p, int64_t n, weir_err *err)
{
    if (n <= p->room)
        return WEIR_OK;
    WEIR_TRY(grow(&p->row, n, sizeof *p->row, err));
    WEIR_TRY(grow(&p->at, n, sizeof *p->at, err));
    WEIR_TRY(grow(&p->key, n, sizeof *p->key, err));
    WEIR_TRY(grow(&p->hash, n, sizeof *p->hash, err));
    WEIR_TRY(grow(&p->id, n, sizeof *p->id, err));
    WEIR_TRY(grow(&p->taken, n, sizeof *p->taken, err));
    WEIR_TRY(grow(&p->ended, n, sizeof *p->ended, err));
    p->room = n;
    return WEIR_OK;
}

void weir_pass_free(weir_pass *p)
{
    weir_free(p->row);
    weir_free(p->at);
    weir_free(p->key);
    weir_free(p->hash);
    weir_free(p->id);
    weir_free(p->taken);
    weir_free(p->ended);
}

/* --- keys of duplicates */

static uint64_t mix_in(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return h ^ h >> 29;
}

/* Texts that reach back to the document's begin are unlike those that do not. Any two numbers of 64 bits without a
 * pattern: small ones would be taken for token ids. */
static const uint64_t within = 0x2545f4914f6cdd1du, from_begin = 0x6a09e667f3bcc908u;

static uint64_t text_key(const int32_t *token, int64_t n, uint64_t kind)
{
    uint64_t h = kind;
    for (int64_t i = 0; i < n; i++)
        h = mix_in(h, (uint32_t)token[i]);
    return h;
}

static void remember(struct weir_history *h, int64_t most, uint32_t doc, int32_t id)
{
    if (!h->open || h->doc != doc)
        h->n = 0;
    h->open = true;
    h->doc = doc;
    if (h->n == 2 * most) {
        memmove(h->token, h->token + most, (size_t)most * sizeof *h->token);
        h->n = most;
    }
    h->token[h->n++] = id;
}

/* What came before a place, from the spool: a pass that repeats rows begins anywhere. */
static weir_status recall(weir_neurons *s, weir_place at, weir_err *err)
{
    struct weir_history *h = s->history;
    int64_t begin, end;
    h->open = false;
    WEIR_TRY(weir_spool_find(s->tokens, at.doc, 0, &begin, err));
    WEIR_TRY(weir_spool_find(s->tokens, at.doc, at.pos, &end, err));
    for (begin = end - begin > s->o.dedup_n ? end - s->o.dedup_n : begin; begin < end; begin++) {
        weir_spool_record r;
        WEIR_TRY(weir_spool_read(s->tokens, begin, 1, &r, err));
        remember(h, s->o.dedup_n, r.doc, (int32_t)r.payload);
    }
    return WEIR_OK;
}

static uint64_t key_of_row(const weir_neurons *s, weir_place at, int64_t ctx_pos)
{
    const struct weir_history *h = s->history;
    const int64_t n = h->n < s->o.dedup_n ? h->n : s->o.dedup_n;
    switch (s->o.dedup) {
    case WEIR_DEDUP_TEXT:
        return text_key(h->token + h->n - n, n, n < s->o.dedup_n ? from_begin : within);
    case WEIR_DEDUP_WINDOW:
        return (uint64_t)at.doc << 32 | (uint32_t)(at.pos - ctx_pos);
    case WEIR_DEDUP_DOC:
        return at.doc;
    default:
        return 0;
    }
}

/* Of all its tokens in the spool. */
static weir_status key_of_text(weir_neurons *s, uint32_t doc, uint64_t *key, weir_err *err)
{
    enum { SOME = 256 };
    weir_spool_record r[SOME];
    int64_t at;
    uint64_t h = from_begin;
    WEIR_TRY(weir_spool_find(s->tokens, doc, 0, &at, err));
    for (const int64_t all = weir_spool_count(s->tokens); at < all; at += SOME) {
        const int64_t n = all - at < SOME ? all - at : SOME;
        WEIR_TRY(weir_spool_read(s->tokens, at, n, r, err));
        for (int64_t i = 0; i < n; i++) {
            if (r[i].doc != doc) {
                *key = h;
                return WEIR_OK;
            }
            h = mix_in(h, r[i].payload);
        }
    }
    *key = h;
    return WEIR_OK;
}

weir_status weir_document_key(weir_neurons *s, uint32_t doc, uint64_t *key, weir_err *err)
{
    struct weir_history *h = s->history;
    *key = doc;
    if (s->o.dedup != WEIR_DEDUP_TEXT)
        return WEIR_OK;
    if (h->known && h->known_doc == doc) {
        *key = h->known_key;
        return WEIR_OK;
    }
    WEIR_TRY(key_of_text(s, doc, key, err));
    if (h->last.doc != doc) {
        h->known = true;
        h->known_doc = doc;
        h->known_key = *key;
    }
    return WEIR_OK;
}

/* --- what a pass may be */

static weir_status check_row(const weir_neurons_rows_of *rows, int64_t r, weir_err *err)
{
    const int64_t doc = rows->doc[r], pos = rows->pos[r];
    if (doc < 0 || doc > UINT32_MAX || pos < -1 || pos > UINT32_MAX)
        return weir_fail(err, WEIR_E_ARG, "row %lld is document %lld, position %lld: both must be below 2^32",
                         (long long)r, (long long)doc, (long long)pos);
    if (rows->mask && rows->mask[r] >= WEIR_MASK_KINDS)
        return weir_fail(err, WEIR_E_ARG, "row %lld is masked for reason %d, which there is not", (long long)r,
                         rows->mask[r]);
    return WEIR_OK;
}

static weir_place place_of(const weir_neurons_rows_of *rows, int64_t r)
{
    return (weir_place){(uint32_t)rows->doc[r], (uint32_t)rows->pos[r]};
}

/* Documents ascend within a pass, and from pass to pass; a pass that repeats rows has none that are new. */
static weir_status check_rows(const weir_neurons *s, const weir_neurons_rows_of *rows, bool again, weir_err *err)
{
    const struct weir_history *h = s->history;
    if (rows->n < 0 || rows->n > INT32_MAX)
        return weir_fail(err, WEIR_E_ARG, "a pass of %lld rows", (long long)rows->n);
    int64_t doc = h->any && !again ? h->last.doc : 0;
    for (int64_t r = 0; r < rows->n; r++) {
        WEIR_TRY(check_row(rows, r, err));
        if (rows->pos[r] < 0)
            continue;
        if (rows->doc[r] < doc)
            return weir_fail(err, WEIR_E_ARG, "document %lld comes after document %lld: they must ascend",
                             (long long)rows->doc[r], (long long)doc);
        doc = rows->doc[r];
        if (again && (!h->any || weir_place_before(h->last, place_of(rows, r))))
            return weir_fail(err, WEIR_E_ARG, "document %lld, position %lld has not been given before", (long long)doc,
                             (long long)rows->pos[r]);
    }
    return WEIR_OK;
}

/* --- taking it */

/* Temporary files are made when something is fed: results of files need none. */
static weir_status open_spools(weir_neurons *s, weir_err *err)
{
    if (!s->tokens)
        WEIR_TRY(weir_spool_new(&s->tokens, s->o.spool, err));
    if (!s->heat && s->o.n_named > 0) {
        s->heat = weir_calloc((size_t)s->o.n_named, sizeof *s->heat);
        if (!s->heat)
            return weir_nomem(err, "named neurons");
    }
    for (int j = 0; j < s->o.n_named; j++)
        if (!s->heat[j])
            WEIR_TRY(weir_spool_new(&s->heat[j], s->o.spool, err));
    return WEIR_OK;
}

/* A row that is new: counted, and kept. */
static weir_status count_row(weir_neurons *s, weir_place at, int32_t id, bool keep, int mask, weir_err *err)
{
    struct weir_history *h = s->history;
    WEIR_TRY(weir_spool_add(s->tokens, at.doc, at.pos, (uint32_t)id, err));
    s->counts.docs += !h->any || h->last.doc != at.doc;
    s->counts.rows++;
    if (keep)
        s->counts.masked[mask]++;
    else
        s->counts.context++;
    h->any = true;
    h->last = at;
    return WEIR_OK;
}

static void pack_row(weir_neurons *s, weir_place at, const weir_neurons_rows_of *rows, int64_t r)
{
    weir_pass *p = &s->pass;
    const int64_t c = p->counted++;
    p->row[c] = (int32_t)r;
    p->at[c] = at;
    p->id[c] = rows->id[r];
    p->key[c] = key_of_row(s, at, rows->ctx_pos[r]);
    p->hash[c] = weir_place_hash(s->o.seed, at);
}

static weir_status take_rows(weir_neurons *s, const weir_neurons_rows_of *rows, bool again, weir_err *err)
{
    struct weir_history *h = s->history;
    bool first = again || h->again, any = h->any && !again;
    weir_place before = h->last; /* rows of places up to this one have been seen */
    for (int64_t r = 0; r < rows->n; r++) {
        if (rows->pos[r] < 0)
            continue;
        const weir_place at = place_of(rows, r);
        if (any && !weir_place_before(before, at))
            continue;
        const bool keep = !rows->keep || rows->keep[r];
        const int mask = rows->mask ? rows->mask[r] : 0;
        if (first)
            WEIR_TRY(recall(s, at, err));
        remember(h, s->o.dedup_n, at.doc, rows->id[r]);
        if (!again)
            WEIR_TRY(count_row(s, at, rows->id[r], keep, mask, err));
        if (keep && !mask)
            pack_row(s, at, rows, r);
        first = false;
        any = true;
        before = at;
    }
    h->again = again;
    return WEIR_OK;
}

weir_status weir_neurons_rows(weir_neurons *s, const weir_neurons_rows_of *rows, bool again, weir_err *err)
{
    s->pass.n = s->pass.counted = 0;
    s->finished = false;
    WEIR_TRY(check_rows(s, rows, again, err));
    WEIR_TRY(weir_pass_room(&s->pass, rows->n, err));
    WEIR_TRY(open_spools(s, err));
    s->pass.n = rows->n;
    return take_rows(s, rows, again, err);
}
