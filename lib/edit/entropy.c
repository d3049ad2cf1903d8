/* Entropy of n-grams: a model that an edit broke says the same words again and again. */
#include "entropy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"

typedef struct word {
    const char *p;
    size_t n;
} word;

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Punctuation of ASCII, but for what stands within words. */
static bool is_mark(char c)
{
    return c > ' ' && c < 127 && c != '\'' && c != '-' && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
           !(c >= 'a' && c <= 'z');
}

static size_t next_word(const char *text, size_t len, size_t at, word *w)
{
    while (at < len && is_space(text[at]))
        at++;
    const size_t first = at;
    while (at < len && !is_space(text[at]) && !is_mark(text[at]))
        at++;
    if (at == first && at < len)
        at++; /* a mark */
    *w = (word){text + first, at - first};
    return at;
}

static int64_t split(const char *text, size_t len, word *out)
{
    int64_t n = 0;
    for (size_t at = 0; at < len;) {
        at = next_word(text, len, at, &out[n]);
        n += out[n].n > 0;
    }
    return n;
}

/* --- counting n-grams by sorting them */

typedef struct gram {
    const word *w;
    int n;
} gram;

static int compare_words(const word *a, const word *b)
{
    const int c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);
    return c ? c : (a->n > b->n) - (a->n < b->n);
}

static int compare(const void *x, const void *y)
{
    const gram *a = x, *b = y;
    for (int i = 0; i < a->n; i++) {
        const int c = compare_words(&a->w[i], &b->w[i]);
        if (c)
            return c;
    }
    return 0;
}

static double entropy_of(const word *w, int64_t words, int n, gram *room)
{
    const int64_t grams = words - n + 1;
    double h = 0;
    for (int64_t i = 0; i < grams; i++)
        room[i] = (gram){w + i, n};
    if (grams > 0)
        qsort(room, (size_t)grams, sizeof *room, compare);
    for (int64_t i = 0, same; i < grams; i += same) {
        for (same = 1; i + same < grams && compare(&room[i], &room[i + same]) == 0; same++)
            ;
        const double p = (double)same / (double)grams;
        h -= p * log2(p);
    }
    return h;
}

static weir_status entropy_of_text(const char *text, size_t len, double *out, weir_err *err)
{
    word *w = weir_calloc(len + 1, sizeof *w);
    gram *room = weir_calloc(len + 1, sizeof *room);
    if (w && room) {
        const int64_t n = split(text, len, w);
        *out = (2.0 / 3 * entropy_of(w, n, 2, room) + 4.0 / 3 * entropy_of(w, n, 3, room)) / 2;
    }
    const bool ok = w && room;
    weir_free(w);
    weir_free(room);
    return ok ? WEIR_OK : weir_nomem(err, "the words of a text");
}

static weir_status one(weir_asker *a, const weir_tokenizer *tok, const char *prompt, int64_t tokens, int32_t *id,
                       double *out, weir_err *err)
{
    weir_buf text = {0};
    int64_t made;
    WEIR_TRY(weir_asker_continue(a, prompt, tokens, id, &made, err));
    weir_status s = weir_buf_add(&text, prompt, strlen(prompt));
    for (int64_t i = 0; i < made && s == WEIR_OK; i++) {
        const weir_str bytes = weir_tokenizer_bytes(tok, id[i]);
        s = weir_buf_add(&text, bytes.p, bytes.n);
    }
    s = s == WEIR_OK ? entropy_of_text(text.p, text.n, out, err) : weir_nomem(err, "a generated text");
    weir_buf_free(&text);
    return s;
}

weir_status weir_entropy(weir_asker *a, const weir_tokenizer *tok, const weir_fact *f, int64_t tokens, double *out,
                         weir_err *err)
{
    int32_t *id = weir_calloc((size_t)tokens + 1, sizeof *id);
    weir_status s = id ? WEIR_OK : weir_nomem(err, "a generated text");
    double sum = 0;
    for (int64_t i = 0; i < f->n_generation && s == WEIR_OK; i++) {
        double h = 0;
        s = one(a, tok, f->generation[i], tokens, id, &h, err);
        sum += h;
    }
    weir_free(id);
    *out = f->n_generation ? sum / (double)f->n_generation : (double)NAN;
    return s;
}
