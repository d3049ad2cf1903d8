#include "target.h"

#include <stdlib.h>
#include <string.h>

#include "say.h"

static int numbered(const weir_cli *cli, const char *option, int64_t vocab, const char *text, size_t n, int32_t *id)
{
    int64_t v = -1;
    char digits[24] = "";
    if (n - 1 < sizeof digits)
        memcpy(digits, text + 1, n - 1);
    if (!weir_parse_int(digits, &v) || v < 0 || v >= vocab)
        return weir_cli_usage(cli, "%s %.*s: the model has %lld tokens, #0 to #%lld", option, (int)n, text,
                              (long long)vocab, (long long)vocab - 1);
    *id = (int32_t)v;
    return WEIR_EXIT_OK;
}

/* Is the text one token with a space before it? */
static bool with_space(const weir_tokenizer *tok, const char *text, size_t n)
{
    weir_tokens t = {0};
    char *spaced = malloc(n + 1);
    if (!spaced)
        return false;
    spaced[0] = ' ';
    memcpy(spaced + 1, text, n);
    bool one = weir_tokenizer_encode(tok, spaced, n + 1, &t, NULL) == WEIR_OK && t.n == 1 && t.lost_bytes == 0;
    weir_tokens_free(&t);
    free(spaced);
    return one;
}

/* A word that is asked for without the space that stands before it in running text is another token, and seldom meant. */
static void note_space(const weir_cli *cli, const char *option, const weir_tokenizer *tok, const char *text, size_t n)
{
    const bool word = (text[0] >= 'A' && text[0] <= 'Z') || (text[0] >= 'a' && text[0] <= 'z');
    if (word && with_space(tok, text, n))
        weir_cli_note(cli, "%s: \"%.*s\" begins a text or goes on in a word; behind a space the token is \" %.*s\"",
                      option, (int)n, text, (int)n, text);
}

/* What a text is that is not one token. */
static int several(const weir_cli *cli, const char *option, const weir_tokenizer *tok, const weir_tokens *t,
                   const char *text, size_t n)
{
    enum { SHOWN = 4 };
    char pieces[200] = "";
    size_t at = 0;
    for (int64_t i = 0; i < t->n && i < SHOWN && at < sizeof pieces; i++) {
        const weir_str piece = weir_tokenizer_bytes(tok, t->id[i]);
        at += (size_t)snprintf(pieces + at, sizeof pieces - at, "%s\"%.*s\"", i ? ", " : "", (int)piece.n, piece.p);
    }
    const char *more = t->n > SHOWN ? ", ..." : "";
    if (with_space(tok, text, n))
        return weir_cli_usage(cli, "%s \"%.*s\" is %lld tokens (%s%s), but \" %.*s\", with a space before it, is one",
                              option, (int)n, text, (long long)t->n, pieces, more, (int)n, text);
    return weir_cli_usage(cli, "%s \"%.*s\" is %lld tokens (%s%s): name one (white space counts), or its number as #ID",
                          option, (int)n, text, (long long)t->n, pieces, more);
}

int weir_token_named(const weir_cli *cli, const char *option, const weir_tokenizer *tok, int64_t vocab,
                     const char *text, size_t n, int32_t *id)
{
    weir_err err = {0};
    weir_tokens t = {0};
    if (n > 1 && text[0] == '#' && strspn(text + 1, "0123456789") >= n - 1)
        return numbered(cli, option, vocab, text, n, id);
    if (!tok)
        return weir_cli_usage(cli, "%s \"%.*s\": there is no tokenizer, name tokens by number: #1234", option, (int)n,
                              text);
    int code = WEIR_EXIT_OK;
    const int32_t spelt = weir_tokenizer_find(tok, (weir_str){text, n});
    if (weir_tokenizer_encode(tok, text, n, &t, &err) != WEIR_OK)
        code = weir_cli_fail(cli, &err);
    else if (t.n == 1 && t.lost_bytes == 0) {
        *id = t.id[0];
        note_space(cli, option, tok, text, n);
    }
    else if (spelt >= 0)
        *id = spelt;
    else
        code = several(cli, option, tok, &t, text, n);
    weir_tokens_free(&t);
    if (code == WEIR_EXIT_OK && *id >= vocab)
        return weir_cli_usage(cli, "%s \"%.*s\" is token %d, but the model has %lld", option, (int)n, text, (int)*id,
                              (long long)vocab);
    return code;
}

int weir_target_parse(const weir_cli *cli, const char *option, const weir_tokenizer *tok, int64_t vocab,
                      const char *text, int32_t *id)
{
    const bool next = strcmp(text, "next") == 0;
    if (!next && strcmp(text, "final") != 0)
        return weir_token_named(cli, option, tok, vocab, text, strlen(text), id);
    *id = next ? WEIR_TARGET_NEXT : WEIR_TARGET_FINAL;
    return WEIR_EXIT_OK;
}

int weir_contrast_parse(const weir_cli *cli, const char *option, const weir_tokenizer *tok, int64_t vocab,
                        const char *text, int32_t id[2])
{
    const char *comma = *text ? strchr(text + 1, ',') : NULL;
    if (!comma || !comma[1])
        return weir_cli_usage(cli, "%s \"%s\": two tokens with a comma between: \" Paris, Rome\"", option, text);
    int code = weir_token_named(cli, option, tok, vocab, text, (size_t)(comma - text), &id[0]);
    if (code == WEIR_EXIT_OK)
        code = weir_token_named(cli, option, tok, vocab, comma + 1, strlen(comma + 1), &id[1]);
    return code;
}
