#include "pieces.h"

#include <stdlib.h>

void weir_pieces_free(weir_pieces *p)
{
    free(p->piece);
    free(p->token_at);
    weir_text_free(&p->text);
    weir_text_free(&p->raw);
    *p = (weir_pieces){0};
}

static bool pieces_room(weir_pieces *p, int64_t tokens)
{
    if (tokens <= p->room)
        return true;
    weir_piece *piece = realloc(p->piece, sizeof *piece * (size_t)tokens);
    p->piece = piece ? piece : p->piece;
    size_t *at = realloc(p->token_at, sizeof *at * ((size_t)tokens + 1));
    p->token_at = at ? at : p->token_at;
    if (piece && at)
        p->room = tokens;
    return piece && at;
}

/* Bytes of all kept tokens, one after the other. */
static void gather(weir_pieces *p, const weir_neurons *s, const weir_neurons_context *c)
{
    p->raw.n = 0;
    for (int64_t i = 0; i < c->n; i++) {
        weir_str bytes = weir_neurons_token(s, c->id[i]);
        p->token_at[i] = p->raw.n;
        weir_text_add(&p->raw, bytes.p, bytes.n);
    }
    p->token_at[c->n] = p->raw.n;
}

/* The last token from i on before a special one: characters end there. */
static int64_t run_end(const weir_neurons *s, const weir_neurons_context *c, int64_t i)
{
    while (i + 1 < c->n && !weir_neurons_token_special(s, c->id[i + 1]))
        i++;
    return i;
}

/* Are the n bytes the beginning of a character, but not all of it? */
static bool is_begun(const char *p, size_t n)
{
    char whole[4];
    uint32_t cp;
    uint8_t c = n ? (uint8_t)p[0] : 0;
    size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
    if (n == 0 || n >= len)
        return false;
    for (size_t i = 0; i < len; i++)
        whole[i] = i < n ? p[i] : (char)(i == 1 && (c == 0xe0 || c == 0xf0) ? 0xbf : 0x80);
    return weir_utf8_at(whole, len, &cp) > 0;
}

/* Tokens from i on that share characters: how many. *cut: a character that begins in them is not kept whole. */
static int64_t joined(const weir_pieces *p, const weir_neurons *s, const weir_neurons_context *c, int64_t i, bool *cut)
{
    int64_t last = i;
    uint32_t cp;
    *cut = false;
    if (weir_neurons_token_special(s, c->id[i]))
        return 1;
    int64_t run = run_end(s, c, i);
    size_t end = p->token_at[run + 1];
    for (size_t at = p->token_at[i]; at < p->token_at[last + 1];) {
        int len = weir_utf8_at(p->raw.p + at, end - at, &cp);
        if (len == 0 && run == c->n - 1 && !c->ends && is_begun(p->raw.p + at, end - at)) {
            *cut = true;
            return c->n - i;
        }
        at += len ? (size_t)len : 1;
        while (at > p->token_at[last + 1])
            last++;
    }
    return last - i + 1;
}

/* Bytes at the beginning of what is kept that belong to a character before it. */
static size_t leading(const weir_pieces *p, const weir_neurons_context *c)
{
    size_t n = 0;
    while (!c->begins && n < p->raw.n && n < 3 && ((uint8_t)p->raw.p[n] & 0xc0) == 0x80)
        n++;
    return n;
}

static void draw(weir_pieces *p, const weir_neurons *s, const weir_neurons_context *c, weir_piece *piece)
{
    size_t from = p->token_at[piece->first], to = p->token_at[piece->first + piece->n];
    piece->special = weir_neurons_token_special(s, c->id[piece->first]);
    piece->at = p->text.n;
    weir_text_token(&p->text, (weir_str){to > from ? p->raw.p + from : NULL, to - from}, c->id[piece->first]);
    piece->len = p->text.n - piece->at;
    piece->columns = p->text.failed ? 0 : weir_text_columns(p->text.p + piece->at, piece->len);
    bool hit = c->hit >= piece->first && c->hit < piece->first + piece->n;
    if (hit && piece->columns == 0 && to > from) { /* a joiner or a mark of its own cannot be seen */
        p->text.n = piece->at;
        weir_text_escaped(&p->text, p->raw.p + from, to - from);
        piece->len = p->text.n - piece->at;
        piece->columns = (int64_t)piece->len;
    }
    piece->cut = piece->cut || from < leading(p, c);
}

bool weir_pieces_make(weir_pieces *p, const weir_neurons *s, const weir_neurons_context *c, int64_t first, int64_t end)
{
    p->n = p->text.n = 0;
    if (!pieces_room(p, c->n))
        return false;
    bool cut;
    gather(p, s, c);
    for (int64_t i = 0, n; i < end && !p->raw.failed; i += n) {
        n = joined(p, s, c, i, &cut);
        if (i + n <= first)
            continue;
        weir_piece *piece = &p->piece[p->n];
        *piece = (weir_piece){.first = i, .n = n, .cut = cut};
        if (c->hit >= i && c->hit < i + n) {
            p->hit = p->n;
            p->part = c->hit - i + 1;
            p->parts = n;
        }
        draw(p, s, c, piece);
        p->n++;
    }
    return !p->raw.failed && !p->text.failed;
}
