/* symbols.c: from the bytes of a piece to its first symbols, which BPE then merges. */
#include "base/utf8.h"
#include "tok.h"
#include "unicode.h"

/* One piece on its way. */
typedef struct piece {
    const weir_tokenizer *t;
    const weir_tok_view *v;
    size_t from;
    weir_tok_symbols *s;
    weir_tok_loss *loss;
    bool after_unknown; /* the last symbol is the unknown token */
} piece;

static void add(piece *p, int32_t id, size_t i)
{
    weir_tok_symbols_add(p->s, id, i - p->from, false);
    p->after_unknown = false;
}

/* Bytes [i, end) have no symbol: the unknown token stands for them if there is one, else they are dropped. */
static void add_unknown(piece *p, size_t i, size_t end)
{
    int64_t bytes = (int64_t)(weir_tok_origin(p->v, end) - weir_tok_origin(p->v, i));
    bool fuse = p->after_unknown && p->t->fuse_unk;
    p->loss->bytes += bytes;
    if (p->t->unk >= 0 && !fuse) {
        weir_tok_symbols_add(p->s, p->t->unk, i - p->from, bytes > 0);
        p->after_unknown = true;
    } else if (bytes > 0 && p->s->n) {
        p->s->lost[p->s->n - 1] = true;
    } else if (bytes > 0) {
        p->loss->first = true;
    }
}

static bool add_byte_tokens(piece *p, size_t i, size_t end)
{
    const int32_t *token = p->t->byte_token;
    for (size_t k = i; k < end; k++)
        if (token[p->v->p[k]] < 0)
            return false;
    for (size_t k = i; k < end; k++)
        add(p, token[p->v->p[k]], k);
    return true;
}

static void spell_bytes(piece *p, size_t to)
{
    for (size_t i = p->from; i < to; i++) {
        int32_t id = p->t->symbol[p->v->p[i]];
        if (id >= 0)
            add(p, id, i);
        else
            add_unknown(p, i, i + 1);
    }
}

static void spell_chars(piece *p, size_t to)
{
    const uint8_t *text = p->v->p;
    for (size_t i = p->from; i < to;) {
        if (text[i] < 0x80 && p->t->symbol[text[i]] >= 0) {
            add(p, p->t->symbol[text[i]], i);
            i++;
            continue;
        }
        int len = weir_utf8_len((const char *)text + i, to - i);
        int32_t id = len > 1 ? weir_tok_find_model(p->t, (const char *)text + i, (size_t)len) : -1;
        size_t end = i + (len ? (size_t)len : 1);
        if (id >= 0)
            add(p, id, i);
        else if (!p->t->byte_fallback || !add_byte_tokens(p, i, end))
            add_unknown(p, i, end);
        i = end;
    }
}

weir_status weir_tok_bpe(const weir_tokenizer *t, const weir_tok_view *v, size_t from, size_t to, weir_tok_symbols *s,
                         weir_tok_loss *loss)
{
    s->n = 0;
    WEIR_TRY(weir_tok_symbols_reserve(s, to - from));
    piece p = {t, v, from, s, loss, false};
    if (t->kind == WEIR_TOK_BYTES)
        spell_bytes(&p, to);
    else
        spell_chars(&p, to);
    return weir_tok_merge_all(&t->merges, s);
}
