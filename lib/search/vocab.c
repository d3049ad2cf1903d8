/* search/vocab.c: the bytes of every token, so that results can be read without a model. */
#include <string.h>

#include "search/impl.h"

static void forget(weir_neurons *s)
{
    weir_free(s->vocab);
    weir_free(s->vocab_at);
    weir_free(s->special);
    s->n_vocab = 0;
    s->vocab = NULL;
    s->vocab_at = NULL;
    s->special = NULL;
}

/* Room for n tokens with so many bytes in all. */
static weir_status make_room(weir_neurons *s, int64_t n, int64_t bytes, bool special, weir_err *err)
{
    forget(s);
    s->vocab = weir_calloc((size_t)bytes, 1);
    s->vocab_at = weir_calloc((size_t)n + 1, sizeof *s->vocab_at);
    s->special = special ? weir_calloc((size_t)n, 1) : NULL;
    if (!s->vocab || !s->vocab_at || (special && !s->special)) {
        forget(s);
        return weir_nomem(err, "the vocabulary of a search");
    }
    s->n_vocab = n;
    return WEIR_OK;
}

weir_status weir_neurons_vocab(weir_neurons *s, const weir_tokenizer *tok, weir_err *err)
{
    const int64_t n = weir_tokenizer_size(tok);
    int64_t bytes = 0;
    for (int64_t i = 0; i < n; i++)
        bytes += (int64_t)weir_tokenizer_bytes(tok, (int32_t)i).n;
    WEIR_TRY(make_room(s, n, bytes, true, err));
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const weir_str token = weir_tokenizer_bytes(tok, (int32_t)i);
        if (token.n)
            memcpy(s->vocab + at, token.p, token.n);
        at += (int64_t)token.n;
        s->vocab_at[i + 1] = at;
        s->special[i] = weir_tokenizer_is_special(tok, (int32_t)i);
    }
    return WEIR_OK;
}

static bool ascending(const int64_t *offset, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (offset[i + 1] < offset[i])
            return false;
    return offset[0] >= 0;
}

weir_status weir_neurons_vocab_bytes(weir_neurons *s, int64_t n, const uint8_t *bytes, const int64_t *offset,
                                     const uint8_t *special, weir_err *err)
{
    if (n < 0 || n > INT32_MAX || (n > 0 && !ascending(offset, n)))
        return weir_fail(err, WEIR_E_ARG, "a vocabulary whose offsets are not in order");
    const int64_t first = n > 0 ? offset[0] : 0, all = n > 0 ? offset[n] - first : 0;
    WEIR_TRY(make_room(s, n, all, special != NULL, err));
    if (all > 0)
        memcpy(s->vocab, bytes + first, (size_t)all);
    for (int64_t i = 1; i <= n; i++)
        s->vocab_at[i] = offset[i] - first;
    if (special && n > 0)
        memcpy(s->special, special, (size_t)n);
    return WEIR_OK;
}

int64_t weir_neurons_vocab_size(const weir_neurons *s)
{
    return s->n_vocab;
}

weir_str weir_neurons_token(const weir_neurons *s, int32_t id)
{
    if (id < 0 || id >= s->n_vocab)
        return (weir_str){"", 0};
    return (weir_str){(const char *)s->vocab + s->vocab_at[id], (size_t)(s->vocab_at[id + 1] - s->vocab_at[id])};
}

bool weir_neurons_token_special(const weir_neurons *s, int32_t id)
{
    return s->special && id >= 0 && id < s->n_vocab && s->special[id];
}
