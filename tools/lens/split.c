#include "split.h"

/* Do tokens i - 1 and i belong to one stretch of text? */
static bool follows(const weir_tokenizer *tok, const int32_t *id, const int64_t *pos, int64_t i)
{
    return pos[i] == pos[i - 1] + 1 && !weir_tokenizer_is_special(tok, id[i]) &&
           !weir_tokenizer_is_special(tok, id[i - 1]);
}

/* Appends the bytes of a token; returns where they end. */
static size_t add(weir_text *raw, const weir_tokenizer *tok, int32_t id)
{
    weir_str bytes = weir_tokenizer_bytes(tok, id);
    weir_text_add(raw, bytes.p, bytes.n);
    return raw->n;
}

/* How many tokens from i on share characters; those before `end` belong to one stretch. raw is used up. */
static int64_t shared(const weir_tokenizer *tok, const int32_t *id, int64_t i, int64_t end, weir_text *raw)
{
    enum { LONGEST = 4 }; /* bytes of a character: more of the text is not needed to see where one ends */
    int64_t last = i, read = i + 1;
    raw->n = 0;
    size_t last_end = add(raw, tok, id[i]), at = 0;
    uint32_t cp;
    while (at < last_end && !raw->failed) {
        while (read < end && raw->n < at + LONGEST)
            add(raw, tok, id[read++]);
        int len = weir_utf8_at(raw->p + at, raw->n - at, &cp);
        at += len ? (size_t)len : 1;
        while (at > last_end && last + 1 < end)
            last_end += weir_tokenizer_bytes(tok, id[++last]).n;
    }
    return last - i + 1;
}

void weir_lens_split_of(weir_lens_split *out, const weir_tokenizer *tok, const int32_t *id, const int64_t *pos,
                        int64_t n, weir_text *raw)
{
    int64_t end = 0;
    for (int64_t i = 0, step; i < n; i += step) {
        for (end = end > i ? end : i + 1; tok && end < n && follows(tok, id, pos, end);)
            end++;
        step = tok ? shared(tok, id, i, end, raw) : 1;
        for (int64_t k = i; k < i + step; k++)
            out[k] = (weir_lens_split){i, step};
    }
}
