/* vocab.c: tokens, their spelling and their merges, as the readers hand them in. */
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"
#include "tok.h"
#include "unicode.h"

enum { STRING_BLOCK = 1 << 16 };

weir_str weir_tok_keep(weir_tokenizer *t, weir_str s)
{
    weir_tok_vocab *v = &t->vocab;
    if (s.n > STRING_BLOCK / 4)
        return (weir_str){weir_arena_strndup(&t->arena, s.p, s.n), s.n};
    if (v->block_left < s.n + 1) {
        v->block = weir_arena_alloc(&t->arena, STRING_BLOCK, 1);
        v->block_left = v->block ? STRING_BLOCK : 0;
        if (!v->block)
            return (weir_str){NULL, 0};
    }
    char *p = v->block;
    if (s.n)
        memcpy(p, s.p, s.n);
    v->block += s.n + 1;
    v->block_left -= s.n + 1;
    return (weir_str){p, s.n};
}

static weir_status grow(weir_tok_vocab *v, int64_t id, weir_err *err)
{
    if (id < v->cap)
        return WEIR_OK;
    int64_t cap = id + id / 4 + 256;
    weir_str *piece = weir_realloc(v->piece, (size_t)cap, sizeof *piece);
    if (piece)
        v->piece = piece;
    weir_str *bytes = weir_realloc(v->bytes, (size_t)cap, sizeof *bytes);
    if (bytes)
        v->bytes = bytes;
    uint8_t *flags = weir_realloc(v->flags, (size_t)cap, 1);
    if (flags)
        v->flags = flags;
    if (!piece || !bytes || !flags)
        return weir_nomem(err, "the vocabulary");
    memset(piece + v->cap, 0, (size_t)(cap - v->cap) * sizeof *piece);
    memset(bytes + v->cap, 0, (size_t)(cap - v->cap) * sizeof *bytes);
    memset(flags + v->cap, 0, (size_t)(cap - v->cap));
    v->cap = (int32_t)cap;
    return WEIR_OK;
}

weir_status weir_tok_vocab_reserve(weir_tokenizer *t, size_t n, weir_err *err)
{
    int64_t last = n && (int64_t)n < t->vocab.limit ? (int64_t)n - 1 : 0;
    WEIR_TRY(grow(&t->vocab, last, err));
    return weir_tok_idmap_reserve(&t->vocab.ids, (size_t)last) ? weir_nomem(err, "the vocabulary") : WEIR_OK;
}

weir_status weir_tok_vocab_add(weir_tokenizer *t, weir_str piece, int64_t id, uint8_t flags, weir_err *err)
{
    weir_tok_vocab *v = &t->vocab;
    int show = piece.n < 60 ? (int)piece.n : 60;
    if (id < 0 || id >= v->limit)
        return weir_fail(err, WEIR_E_FORMAT, "token \"%.*s\" has id %lld, which no vocabulary of this size can have",
                         show, piece.p, (long long)id);
    WEIR_TRY(grow(v, id, err));
    if (v->piece[id].p)
        return weir_fail(err, WEIR_E_FORMAT, "id %lld belongs to two tokens, \"%.*s\" and \"%.*s\"", (long long)id,
                         (int)(v->piece[id].n < 60 ? v->piece[id].n : 60), v->piece[id].p, show, piece.p);
    weir_str kept = weir_tok_keep(t, piece);
    if (!kept.p)
        return weir_nomem(err, "the vocabulary");
    int32_t old;
    v->piece[id] = kept;
    if (weir_tok_idmap_add(&v->ids, v->piece, (int32_t)id, &old))
        return weir_nomem(err, "the vocabulary");
    if (old >= 0)
        return weir_fail(err, WEIR_E_FORMAT, "token \"%.*s\" has two ids, %d and %lld", show, piece.p, old,
                         (long long)id);
    v->flags[id] = flags;
    v->entries += (flags & WEIR_ID_MODEL) != 0;
    if (id >= v->n)
        v->n = (int32_t)id + 1;
    return WEIR_OK;
}

int32_t weir_tok_find(const weir_tokenizer *t, const char *p, size_t n)
{
    return weir_tok_idmap_find(&t->vocab.ids, t->vocab.piece, p, n);
}

int32_t weir_tok_find_model(const weir_tokenizer *t, const char *p, size_t n)
{
    int32_t id = weir_tok_find(t, p, n);
    return id >= 0 && t->vocab.flags[id] & WEIR_ID_MODEL ? id : -1;
}

static weir_status no_token(weir_str s, uint32_t rank, weir_err *err)
{
    return weir_fail(err, WEIR_E_FORMAT, "merge %u needs the token \"%.*s\", which the vocabulary lacks", rank,
                     (int)(s.n < 60 ? s.n : 60), s.p);
}

/* The token that a merge makes. Most vocabularies number them in the order of the merges, so the next id is tried
 * before the map. */
static int32_t find_made(weir_tokenizer *t, const char *p, size_t n)
{
    weir_tok_vocab *v = &t->vocab;
    int32_t next = v->last_made + 1;
    bool guessed =
        next < v->n && v->piece[next].n == n && v->flags[next] & WEIR_ID_MODEL && memcmp(v->piece[next].p, p, n) == 0;
    v->last_made = guessed ? next : weir_tok_find_model(t, p, n);
    return v->last_made;
}

weir_status weir_tok_add_merge(weir_tokenizer *t, weir_str left, weir_str right, uint32_t rank, weir_err *err)
{
    char small[256], *joined = small;
    size_t n = left.n + right.n;
    if (!left.n || !right.n) /* it would make a token of itself */
        return weir_fail(err, WEIR_E_FORMAT, "merge %u has an empty side: expected two tokens", rank);
    if (n > sizeof small && !(joined = weir_realloc(NULL, n, 1)))
        return weir_nomem(err, "a merge");
    if (left.n)
        memcpy(joined, left.p, left.n);
    if (right.n)
        memcpy(joined + left.n, right.p, right.n);
    int32_t a = weir_tok_find_model(t, left.p, left.n), b = weir_tok_find_model(t, right.p, right.n);
    int32_t made = find_made(t, joined, n);
    weir_status s = WEIR_OK;
    if (a < 0 || b < 0 || made < 0)
        s = no_token(a < 0 ? left : b < 0 ? right : (weir_str){joined, n}, rank, err);
    else if (weir_tok_merges_reserve(&t->merges, t->merges.n + 1))
        s = weir_nomem(err, "the merges");
    else
        weir_tok_merges_set(&t->merges, a, b, made, rank);
    if (joined != small)
        weir_free(joined);
    return s;
}

weir_status weir_tok_add_merge_line(weir_tokenizer *t, weir_str line, uint32_t rank, weir_err *err)
{
    const char *space = line.n ? memchr(line.p, ' ', line.n) : NULL;
    if (!space || memchr(space + 1, ' ', line.n - (size_t)(space + 1 - line.p)))
        return weir_fail(err, WEIR_E_FORMAT, "merge %u is \"%.*s\": expected two tokens with one space between them",
                         rank, (int)(line.n < 60 ? line.n : 60), line.p ? line.p : "");
    size_t n = (size_t)(space - line.p);
    return weir_tok_add_merge(t, (weir_str){line.p, n}, (weir_str){space + 1, line.n - n - 1}, rank, err);
}

static weir_status new_id(weir_tokenizer *t, weir_str content, uint8_t flags, int32_t *id, weir_err *err)
{
    int64_t next = t->vocab.entries > t->added_end ? t->vocab.entries : t->added_end;
    *id = (int32_t)next;
    return weir_tok_vocab_add(t, content, next, flags, err);
}

weir_status weir_tok_add_token(weir_tokenizer *t, const weir_tok_added *token, int64_t want, const weir_log *log,
                               weir_err *err)
{
    weir_tok_added a = *token;
    if (!a.content.n)
        return WEIR_OK;
    if (a.content.n > WEIR_TOK_ADDED_MAX)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "the added token \"%.60s...\" has %zu bytes: the limit is %d",
                         a.content.p, a.content.n, WEIR_TOK_ADDED_MAX);
    a.content = weir_tok_keep(t, a.content);
    if (!a.content.p)
        return weir_nomem(err, "the added tokens");
    if (a.id < 0)
        a.id = weir_tok_find(t, a.content.p, a.content.n);
    if (a.id < 0)
        WEIR_TRY(new_id(t, a.content, 0, &a.id, err));
    t->vocab.flags[a.id] |= (uint8_t)(WEIR_ID_ADDED | (a.special ? WEIR_ID_SPECIAL : 0));
    if (want >= 0 && want != a.id)
        weir_logf(log, WEIR_LOG_WARN,
                  "added token \"%.*s\" has id %d, not %lld as its file says (Hugging Face counts so, too)",
                  (int)(a.content.n < 60 ? a.content.n : 60), a.content.p, a.id, (long long)want);
    if (t->n_added == t->added_cap) {
        size_t cap = t->added_cap * 2 + 16;
        weir_tok_added *bigger = weir_realloc(t->added, cap, sizeof *bigger);
        if (!bigger)
            return weir_nomem(err, "the added tokens");
        t->added = bigger;
        t->added_cap = cap;
    }
    t->added[t->n_added++] = a;
    if (a.id >= t->added_end)
        t->added_end = (int64_t)a.id + 1;
    return WEIR_OK;
}

uint32_t weir_tok_alphabet(uint8_t b)
{
    if ((b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b != 0xad))
        return b;
    /* The other 68 bytes, in order, are U+0100, U+0101, ... */
    if (b <= 0x20)
        return 0x100u + b;
    return b == 0xad ? 0x143 : 0x100u + 0x21 + (b - 0x7fu);
}

int64_t weir_tok_spelled(weir_str piece, uint8_t *out)
{
    int64_t n = 0;
    for (size_t i = 0; i < piece.n;) {
        int len;
        uint32_t cp = weir_cp_at((const uint8_t *)piece.p + i, piece.n - i, &len);
        if (cp >= 0x100 && cp <= 0x120)
            out[n++] = (uint8_t)(cp - 0x100);
        else if (cp > 0x120 && cp < 0x143)
            out[n++] = (uint8_t)(0x7f + (cp - 0x121));
        else if (cp == 0x143)
            out[n++] = 0xad;
        else if (cp < 0x100 && weir_tok_alphabet((uint8_t)cp) == cp)
            out[n++] = (uint8_t)cp;
        else
            return -1;
        i += (size_t)len;
    }
    return n;
}

size_t weir_tok_length(weir_str piece)
{
    size_t n = 0;
    for (size_t i = 0; i < piece.n; i++)
        n += ((uint8_t)piece.p[i] & 0xc0) != 0x80;
    return n;
}
