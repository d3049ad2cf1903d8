/* words.c: the table of pieces that are one token. */
#include "words.h"

#include <string.h>

#include "base/mem.h"

static uint64_t load(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return v;
}

/* n <= 8 bytes as a number, by loads of fixed size that may overlap. */
static uint64_t load_short(const uint8_t *p, size_t n)
{
    if (n == 8)
        return load(p, 8);
    if (n >= 4)
        return load(p, 4) | load(p + n - 4, 4) << 8 * (n - 4);
    return n ? p[0] | (uint64_t)p[n / 2] << 8 * (n / 2) | (uint64_t)p[n - 1] << 8 * (n - 1) : 0;
}

static weir_tok_word key_of(const uint8_t *p, size_t n)
{
    uint64_t length = (uint64_t)n << 56;
    if (n <= 8)
        return (weir_tok_word){load_short(p, n), length, -1};
    return (weir_tok_word){load(p, 8), load(p + n - 8, 8) >> 8 * (16 - n) | length, -1};
}

static size_t home(const weir_tok_words *w, const weir_tok_word *key)
{
    uint64_t h = (key->first ^ key->last * 0xbf58476d1ce4e5b9u) * 0x9e3779b97f4a7c15u;
    return (size_t)((h ^ h >> 29) * 0x94d049bb133111ebu >> w->shift);
}

weir_status weir_tok_words_init(weir_tok_words *w, size_t n)
{
    int bits = 4;
    while (bits < 40 && (size_t)1 << bits < n + n / 4)
        bits++;
    *w = (weir_tok_words){weir_calloc((size_t)1 << bits, sizeof *w->slot), (size_t)1 << bits, 64 - bits};
    return w->slot ? WEIR_OK : WEIR_E_NOMEM;
}

void weir_tok_words_free(weir_tok_words *w)
{
    weir_free(w->slot);
    *w = (weir_tok_words){0};
}

void weir_tok_words_add(weir_tok_words *w, const uint8_t *p, size_t n, int32_t id)
{
    weir_tok_word key = key_of(p, n);
    key.id = id;
    size_t i = home(w, &key);
    while (w->slot[i].last)
        i = (i + 1) & (w->cap - 1);
    w->slot[i] = key;
}

int32_t weir_tok_words_find(const weir_tok_words *w, const uint8_t *p, size_t n)
{
    if (n > WEIR_TOK_WORD_MAX)
        return -1;
    weir_tok_word key = key_of(p, n);
    for (size_t i = home(w, &key); w->slot[i].last; i = (i + 1) & (w->cap - 1))
        if (w->slot[i].first == key.first && w->slot[i].last == key.last)
            return w->slot[i].id;
    return -1;
}
