/* decode.c: ids back to bytes, and what is known of each id. */
#include <string.h>

#include "tok.h"

static bool known(const weir_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->vocab.n && t->vocab.piece[id].p;
}

weir_str weir_tokenizer_bytes(const weir_tokenizer *tok, int32_t id)
{
    return known(tok, id) ? tok->vocab.bytes[id] : (weir_str){"", 0};
}

weir_str weir_tokenizer_piece(const weir_tokenizer *tok, int32_t id)
{
    return known(tok, id) ? tok->vocab.piece[id] : (weir_str){"", 0};
}

bool weir_tokenizer_is_special(const weir_tokenizer *tok, int32_t id)
{
    return known(tok, id) && tok->vocab.flags[id] & WEIR_ID_SPECIAL;
}

int32_t weir_tokenizer_find(const weir_tokenizer *tok, weir_str piece)
{
    return weir_tok_find(tok, piece.p, piece.n);
}

int64_t weir_tokenizer_size(const weir_tokenizer *tok)
{
    return tok->vocab.n;
}

int32_t weir_tokenizer_bos(const weir_tokenizer *tok)
{
    return tok->bos;
}

int32_t weir_tokenizer_eos(const weir_tokenizer *tok)
{
    return tok->eos;
}

int64_t weir_tokenizer_ends(const weir_tokenizer *tok, const int32_t **ids)
{
    *ids = tok->end;
    return tok->n_ends;
}

void weir_tok_add_end(weir_tokenizer *t, int64_t id)
{
    bool there = id < 0 || id > INT32_MAX || !known(t, (int32_t)id) || t->n_ends == WEIR_TOK_MAX_ENDS;
    for (int i = 0; i < t->n_ends; i++)
        there = there || t->end[i] == id;
    if (!there)
        t->end[t->n_ends++] = (int32_t)id;
}

bool weir_tokenizer_adds_bos(const weir_tokenizer *tok)
{
    return tok->adds_bos;
}

const char *weir_tokenizer_kind(const weir_tokenizer *tok)
{
    return tok->kind == WEIR_TOK_BYTES ? "bpe" : "spm";
}

const char *weir_tokenizer_pattern(const weir_tokenizer *tok)
{
    return tok->pattern;
}

const char *weir_tokenizer_fingerprint(const weir_tokenizer *tok)
{
    return tok->fingerprint;
}

/* Where the bytes go: counted in full, kept as far as there is room. */
typedef struct sink {
    char *buf;
    size_t cap, n;
} sink;

static void put(sink *s, const char *p, size_t n)
{
    if (s->n < s->cap && n)
        memcpy(s->buf + s->n, p, n < s->cap - s->n ? n : s->cap - s->n);
    s->n += n;
}

/* The first token under a Metaspace decoder: its spaces that stand for U+2581 are dropped. */
static void put_without_meta(sink *s, weir_str piece)
{
    for (size_t i = 0; i < piece.n;) {
        if (piece.n - i >= 3 && memcmp(piece.p + i, "\xe2\x96\x81", 3) == 0) {
            i += 3;
            continue;
        }
        put(s, piece.p + i, 1);
        i++;
    }
}

weir_status weir_tokenizer_decode(const weir_tokenizer *tok, const int32_t *ids, int64_t n, bool keep_special,
                                  char *buf, size_t cap, size_t *len, weir_err *err)
{
    sink s = {buf, cap, 0};
    bool first = true;
    *len = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!known(tok, ids[i]))
            return weir_fail(err, WEIR_E_ARG, "token id %d (the %lldth of the list) is not in this vocabulary of %d",
                             ids[i], (long long)i + 1, tok->vocab.n);
        if (!keep_special && tok->vocab.flags[ids[i]] & WEIR_ID_SPECIAL)
            continue;
        weir_str bytes = tok->vocab.bytes[ids[i]];
        if (first && tok->strip_meta && !(tok->vocab.flags[ids[i]] & WEIR_ID_BYTE)) {
            put_without_meta(&s, tok->vocab.piece[ids[i]]);
        } else {
            size_t strip = first && tok->strip_space && bytes.n && bytes.p[0] == ' ';
            put(&s, bytes.p + strip, bytes.n - strip);
        }
        first = false;
    }
    *len = s.n;
    return WEIR_OK;
}

void weir_tokenizer_free(weir_tokenizer *tok)
{
    if (!tok)
        return;
    weir_free(tok->vocab.piece);
    weir_free(tok->vocab.bytes);
    weir_free(tok->vocab.flags);
    weir_tok_idmap_free(&tok->vocab.ids);
    weir_tok_merges_free(&tok->merges);
    weir_tok_words_free(&tok->words);
    weir_free(tok->added);
    weir_tok_finder_free(&tok->raw);
    weir_tok_finder_free(&tok->normalized);
    weir_arena_free(&tok->arena);
    weir_free(tok);
}
