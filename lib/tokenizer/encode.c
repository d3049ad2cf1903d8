/* encode.c: a text through the whole pipeline, in Hugging Face's order: added tokens of the raw text; of what is
 * between them, each stretch by itself: normaliser, added tokens of the normalised text, prefix, splitters, BPE. */
#include <string.h>

#include "tok.h"

enum { MAX_TEXT = 1 << 30 };

/* One call's own state; the tokenizer is shared. */
typedef struct work {
    const weir_tokenizer *t;
    weir_tokens *out;
    weir_tok_symbols symbols;
    weir_tok_text normalized[2], prefixed[2];
    bool lost_first; /* bytes were lost and no token has come yet */
} work;

static bool grow_array(void *array, int64_t cap, size_t size)
{
    void *old;
    memcpy(&old, array, sizeof old);
    void *bigger = weir_realloc(old, (size_t)cap, size);
    if (bigger)
        memcpy(array, &bigger, sizeof bigger);
    return bigger != NULL;
}

static weir_status grow(weir_tokens *o)
{
    int64_t cap = o->cap * 2 + 64;
    if (!grow_array(&o->id, cap, sizeof *o->id) || !grow_array(&o->byte_off, cap, sizeof *o->byte_off) ||
        !grow_array(&o->byte_len, cap, sizeof *o->byte_len) || !grow_array(&o->flags, cap, sizeof *o->flags))
        return WEIR_E_NOMEM;
    o->cap = cap;
    return WEIR_OK;
}

static weir_status push(work *w, int32_t id, size_t off, bool lost)
{
    weir_tokens *o = w->out;
    if (o->n == o->cap)
        WEIR_TRY(grow(o));
    bool special = w->t->vocab.flags[id] & WEIR_ID_SPECIAL;
    /* An added token may lie inside the white space that the one before it swallowed. */
    if (o->n && (int64_t)off < o->byte_off[o->n - 1])
        off = (size_t)o->byte_off[o->n - 1];
    o->id[o->n] = id;
    o->byte_off[o->n] = (int64_t)off;
    o->flags[o->n++] = (uint8_t)((special ? WEIR_TOKEN_SPECIAL : 0) | (lost || w->lost_first ? WEIR_TOKEN_LOST : 0));
    w->lost_first = false;
    return WEIR_OK;
}

static weir_status encode_piece(work *w, const weir_tok_view *v, size_t from, size_t to)
{
    int32_t whole = weir_tok_words_find(&w->t->words, v->p + from, to - from);
    if (whole >= 0)
        return push(w, whole, weir_tok_origin(v, from), false);
    weir_tok_loss loss = {0};
    weir_tok_symbols *s = &w->symbols;
    WEIR_TRY(weir_tok_bpe(w->t, v, from, to, s, &loss));
    w->out->lost_bytes += loss.bytes;
    if (loss.first && w->out->n)
        w->out->flags[w->out->n - 1] |= WEIR_TOKEN_LOST;
    else if (loss.first)
        w->lost_first = true;
    for (size_t i = 0; i < s->n; i++)
        WEIR_TRY(push(w, s->id[i], weir_tok_origin(v, from + s->at[i]), s->lost[i]));
    return WEIR_OK;
}

/* Cuts [from, to) with the splitters from `stage` on: each sees only the piece that the one before it cut. */
static weir_status split(work *w, const weir_tok_view *v, size_t from, size_t to, int stage)
{
    if (stage == w->t->n_stages)
        return encode_piece(w, v, from, to);
    while (from < to) {
        size_t end = from + w->t->stage[stage](v->p + from, to - from);
        WEIR_TRY(split(w, v, from, end, stage + 1));
        from = end;
    }
    return WEIR_OK;
}

static weir_status encode_plain(work *w, const weir_tok_view *v, size_t from, size_t to)
{
    if (from == to)
        return WEIR_OK;
    if (!w->t->prefix.n)
        return split(w, v, from, to, 0);
    weir_tok_view part = {v->p + from, NULL, to - from, v->base + from};
    if (v->org)
        part.org = v->org + from, part.base = v->base;
    WEIR_TRY(weir_tok_apply(&w->t->prefix, &part, w->prefixed));
    return split(w, &part, 0, part.n, 0);
}

/* The added token of a hit. The white space that it swallows is lost: no token holds it. */
static weir_status push_added(work *w, const weir_tok_view *v, const weir_tok_hit *hit)
{
    size_t swallowed = weir_tok_origin(v, hit->begin) - weir_tok_origin(v, hit->from) + weir_tok_origin(v, hit->to) -
                       weir_tok_origin(v, hit->end);
    w->out->lost_bytes += (int64_t)swallowed;
    return push(w, hit->token->id, weir_tok_origin(v, hit->from), swallowed > 0);
}

typedef weir_status between(work *w, const weir_tok_view *v, size_t from, size_t to);

/* Added tokens of one kind in v; what stands between them goes to `rest`. */
static weir_status find_added(work *w, const weir_tok_view *v, const weir_tok_finder *f, between *rest)
{
    size_t done = 0;
    weir_tok_search search = {0};
    weir_tok_hit hit;
    while (weir_tok_find_next(f, v->p, v->n, &search, &hit)) {
        if (hit.from > done)
            WEIR_TRY(rest(w, v, done, hit.from));
        WEIR_TRY(push_added(w, v, &hit));
        done = hit.to;
    }
    return done < v->n ? rest(w, v, done, v->n) : WEIR_OK;
}

static weir_status encode_stretch(work *w, const weir_tok_view *text, size_t from, size_t to)
{
    weir_tok_view v = {text->p + from, NULL, to - from, text->base + from};
    WEIR_TRY(weir_tok_apply(&w->t->normalizer, &v, w->normalized));
    return find_added(w, &v, &w->t->normalized, encode_plain);
}

/* Lengths from offsets: the tokens tile the text. */
static void tile(weir_tokens *o, int64_t len)
{
    if (o->n)
        o->byte_off[0] = 0;
    for (int64_t i = 0; i < o->n; i++)
        o->byte_len[i] = (i + 1 < o->n ? o->byte_off[i + 1] : len) - o->byte_off[i];
}

weir_status weir_tokenizer_encode(const weir_tokenizer *tok, const void *text, size_t len, weir_tokens *out,
                                  weir_err *err)
{
    out->n = 0;
    out->lost_bytes = 0;
    if (!len)
        return WEIR_OK;
    if (len > MAX_TEXT)
        return weir_fail(err, WEIR_E_ARG,
                         "a text of %zu bytes is too long for one call (at most %d): cut it into documents", len,
                         MAX_TEXT);
    work w = {.t = tok, .out = out};
    weir_tok_view v = {text, NULL, len, 0};
    weir_status s = find_added(&w, &v, &tok->raw, encode_stretch);
    if (s == WEIR_OK)
        tile(out, (int64_t)len);
    weir_tok_symbols_free(&w.symbols);
    for (int i = 0; i < 2; i++) {
        weir_tok_text_free(&w.normalized[i]);
        weir_tok_text_free(&w.prefixed[i]);
    }
    return s == WEIR_E_NOMEM ? weir_nomem(err, "the tokens of a text") : s;
}

void weir_tokens_free(weir_tokens *t)
{
    weir_free(t->id);
    weir_free(t->byte_off);
    weir_free(t->byte_len);
    weir_free(t->flags);
    *t = (weir_tokens){0};
}
