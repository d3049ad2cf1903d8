/* finish.c: what is derived once the file has been read: symbol tables, the bytes of each token, the search for added
 * tokens, pieces that are one token, the fingerprint. */
#include <stdio.h>
#include <string.h>

#include <weir/json.h>

#include "base/sha256.h"
#include "base/utf8.h"
#include "tok.h"
#include "whole.h"

static const char meta[] = "\xe2\x96\x81"; /* U+2581 */

/* The byte that a piece <0xNN> names, or -1. */
static int byte_of_piece(weir_str s)
{
    static const char digits[] = "0123456789ABCDEF";
    if (s.n != 6 || memcmp(s.p, "<0x", 3) != 0 || s.p[5] != '>' || !s.p[3] || !s.p[4])
        return -1;
    const char *high = strchr(digits, s.p[3]), *low = strchr(digits, s.p[4]);
    return high && low ? (int)(high - digits) * 16 + (int)(low - digits) : -1;
}

static void find_symbols(weir_tokenizer *t)
{
    for (int b = 0; b < 256; b++) {
        char text[8];
        int n = 1;
        text[0] = (char)b;
        if (t->kind == WEIR_TOK_BYTES)
            n = weir_utf8_put(text, weir_tok_alphabet((uint8_t)b));
        bool usable = t->kind == WEIR_TOK_BYTES || b < 0x80;
        t->symbol[b] = usable ? weir_tok_find_model(t, text, (size_t)n) : -1;
        t->byte_token[b] = -1;
        if (t->byte_fallback) {
            snprintf(text, sizeof text, "<0x%02X>", (unsigned)b);
            t->byte_token[b] = weir_tok_find_model(t, text, 6);
        }
    }
    for (int32_t id = 0; id < t->vocab.n && t->byte_fallback; id++) {
        int b = t->vocab.piece[id].p ? byte_of_piece(t->vocab.piece[id]) : -1;
        if (b >= 0 && t->byte_token[b] == id)
            t->vocab.flags[id] |= WEIR_ID_BYTE;
    }
}

/* Whether the pipeline turns spaces into U+2581, so that U+2581 in a piece is a space. */
static bool has_meta(const weir_tokenizer *t)
{
    const weir_tok_ops *all[] = {&t->normalizer, &t->prefix};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < all[k]->n; i++)
            if (all[k]->op[i].kind == WEIR_TOK_REPLACE && weir_str_eq(all[k]->op[i].to, meta) &&
                weir_str_eq(all[k]->op[i].from, " "))
                return true;
    return false;
}

static weir_str bytes_of(weir_tokenizer *t, int32_t id, char *work, bool spaces)
{
    weir_str piece = t->vocab.piece[id];
    size_t n = 0;
    if (t->kind == WEIR_TOK_BYTES) {
        int64_t spelled = t->vocab.flags[id] & WEIR_ID_ADDED ? -1 : weir_tok_spelled(piece, (uint8_t *)work);
        if (spelled < 0)
            return piece;
        n = (size_t)spelled;
    } else if (t->vocab.flags[id] & WEIR_ID_BYTE) {
        work[n++] = (char)byte_of_piece(piece);
    } else {
        if (!spaces || !memmem(piece.p, piece.n, meta, 3))
            return piece;
        for (size_t i = 0; i < piece.n; n++) {
            bool space = piece.n - i >= 3 && memcmp(piece.p + i, meta, 3) == 0;
            work[n] = space ? ' ' : piece.p[i];
            i += space ? 3 : 1;
        }
    }
    return n == piece.n && memcmp(work, piece.p, n) == 0 ? piece : weir_tok_keep(t, (weir_str){work, n});
}

static size_t longest_piece(const weir_tokenizer *t)
{
    size_t longest = 0;
    for (int32_t id = 0; id < t->vocab.n; id++)
        if (t->vocab.piece[id].n > longest)
            longest = t->vocab.piece[id].n;
    return longest;
}

static weir_status find_bytes(weir_tokenizer *t, char *work)
{
    bool spaces = t->kind == WEIR_TOK_CHARS && has_meta(t);
    for (int32_t id = 0; id < t->vocab.n; id++) {
        if (!t->vocab.piece[id].p)
            continue;
        t->vocab.bytes[id] = bytes_of(t, id, work, spaces);
        if (!t->vocab.bytes[id].p)
            return WEIR_E_NOMEM;
    }
    return WEIR_OK;
}

/* The keys of the two searches; a normalised token is looked for in its own normalised form. */
static weir_status find_added_keys(weir_tokenizer *t, weir_err *err)
{
    weir_tok_key *raw = weir_calloc(t->n_added, sizeof *raw), *norm = weir_calloc(t->n_added, sizeof *norm);
    size_t n_raw = 0, n_norm = 0;
    weir_tok_text scratch[2] = {{0}};
    weir_status s = raw && norm ? WEIR_OK : WEIR_E_NOMEM;
    for (size_t i = 0; i < t->n_added && s == WEIR_OK; i++) {
        weir_tok_added *a = &t->added[i];
        if (!a->normalized) {
            raw[n_raw++] = (weir_tok_key){a->content, a};
            continue;
        }
        weir_tok_view v = {(const uint8_t *)a->content.p, NULL, a->content.n, 0};
        s = weir_tok_apply(&t->normalizer, &v, scratch);
        weir_str text = a->content;
        if (s == WEIR_OK && v.org)
            text = weir_tok_keep(t, (weir_str){(const char *)v.p, v.n});
        if (s == WEIR_OK && !text.p)
            s = WEIR_E_NOMEM;
        if (s == WEIR_OK && text.n > WEIR_TOK_ADDED_MAX)
            s = weir_fail(err, WEIR_E_UNSUPPORTED,
                          "the added token \"%.*s\", normalised, has %zu bytes: the limit is %d",
                          (int)(a->content.n < 60 ? a->content.n : 60), a->content.p, text.n, WEIR_TOK_ADDED_MAX);
        if (text.n)
            norm[n_norm++] = (weir_tok_key){text, a};
    }
    weir_tok_text_free(&scratch[0]);
    weir_tok_text_free(&scratch[1]);
    if (s == WEIR_OK) {
        weir_tok_finder_init(&t->raw, raw, n_raw);
        weir_tok_finder_init(&t->normalized, norm, n_norm);
        return WEIR_OK;
    }
    weir_free(raw);
    weir_free(norm);
    return s;
}

/* If no token has U+2581 behind another character, no merge crosses such a place, and the text may be cut there: the
 * pieces stay words, and the ids are those of the uncut text. */
static void cut_at_words(weir_tokenizer *t)
{
    if (t->kind != WEIR_TOK_CHARS || t->n_stages || weir_tok_find_model(t, meta, 3) < 0)
        return;
    for (int32_t id = 0; id < t->vocab.n; id++) {
        weir_str s = t->vocab.piece[id];
        if (!(t->vocab.flags[id] & WEIR_ID_MODEL) || !s.n)
            continue;
        if (weir_split_before_meta((const uint8_t *)s.p, s.n) != s.n)
            return;
    }
    t->stage[t->n_stages++] = weir_split_before_meta;
}

/* The text from which BPE could make the token, as BPE sees it; p == NULL: none, or not worth keeping. */
static weir_str text_of(const weir_tokenizer *t, int32_t id, uint8_t *work)
{
    weir_str piece = t->vocab.piece[id], none = {NULL, 0};
    if (!(t->vocab.flags[id] & WEIR_ID_MODEL) || !piece.n)
        return none;
    int64_t n = (int64_t)piece.n;
    if (t->kind == WEIR_TOK_BYTES && (n = weir_tok_spelled(piece, work)) < 0)
        return none;
    return (weir_str){t->kind == WEIR_TOK_BYTES ? (char *)work : piece.p, (size_t)n};
}

static weir_status find_words(weir_tokenizer *t, uint8_t *work)
{
    weir_tok_tree *tree;
    weir_status s = weir_tok_tree_new(&tree, t);
    if (s == WEIR_OK)
        s = weir_tok_words_init(&t->words, (size_t)t->vocab.entries);
    for (int32_t id = 0; id < t->vocab.n && s == WEIR_OK; id++) {
        weir_str text = text_of(t, id, work);
        bool whole = false;
        if (!text.p || text.n > WEIR_TOK_WORD_MAX)
            continue;
        s = weir_tok_is_whole(tree, id, text, &whole);
        if (whole && weir_tok_words_find(&t->words, (const uint8_t *)text.p, text.n) < 0)
            weir_tok_words_add(&t->words, (const uint8_t *)text.p, text.n, id);
    }
    weir_tok_tree_free(tree);
    return s;
}

/* Each id is its flags, the length of its piece as four bytes, and the piece; an id without a token has length 2^32
 * - 1. */
static void fingerprint(weir_tokenizer *t)
{
    uint8_t block[4096];
    size_t used = 0;
    weir_sha256 s;
    weir_sha256_init(&s);
    const char *kind = weir_tokenizer_kind(t);
    weir_sha256_add(&s, kind, strlen(kind) + 1);
    weir_sha256_add(&s, t->pattern, strlen(t->pattern) + 1);
    for (int32_t id = 0; id < t->vocab.n; id++) {
        weir_str piece = t->vocab.piece[id];
        uint32_t n = piece.p ? (uint32_t)piece.n : UINT32_MAX;
        if (piece.n + 5 > sizeof block - used) {
            weir_sha256_add(&s, block, used);
            used = 0;
        }
        block[used++] = t->vocab.flags[id];
        for (int k = 0; k < 32; k += 8)
            block[used++] = (uint8_t)(n >> k);
        if (piece.n > sizeof block - used) {
            weir_sha256_add(&s, block, used);
            weir_sha256_add(&s, piece.p, piece.n);
            used = 0;
        } else if (piece.n) {
            memcpy(block + used, piece.p, piece.n);
            used += piece.n;
        }
    }
    weir_sha256_add(&s, block, used);
    weir_sha256_hex(&s, t->fingerprint);
}

weir_status weir_tok_finish(weir_tokenizer *t, weir_err *err)
{
    if (!t->vocab.n)
        return weir_fail(err, WEIR_E_FORMAT, "the vocabulary is empty");
    find_symbols(t);
    cut_at_words(t);
    fingerprint(t);
    char *work = weir_calloc(longest_piece(t) + 1, 1);
    weir_status s = work ? find_bytes(t, work) : WEIR_E_NOMEM;
    if (s == WEIR_OK)
        s = find_added_keys(t, err);
    if (s == WEIR_OK)
        s = find_words(t, (uint8_t *)work);
    weir_free(work);
    return s == WEIR_E_NOMEM ? weir_nomem(err, "the tokenizer") : s;
}
