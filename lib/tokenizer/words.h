/* tokenizer/words.h: short pieces that are known to come out as one token, for encoding a frequent word with one
 * lookup. */
#ifndef WEIR_TOK_WORDS_H
#define WEIR_TOK_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include <weir/base.h>

/* Longer pieces are not kept. */
enum { WEIR_TOK_WORD_MAX = 15 };

/* A piece's bytes and its length, in the slot itself: a lookup touches one place in memory. last == 0: empty. */
typedef struct weir_tok_word {
    uint64_t first, last; /* bytes 0 to 7; bytes 8 to 14 and, on top, the length */
    int32_t id;
} weir_tok_word;

typedef struct weir_tok_words {
    weir_tok_word *slot;
    size_t cap;
    int shift;
} weir_tok_words;

/* Room for n pieces. */
WEIR_CHECKED weir_status weir_tok_words_init(weir_tok_words *w, size_t n);
void weir_tok_words_free(weir_tok_words *w);
/* 0 < n <= WEIR_TOK_WORD_MAX; the piece must not be there yet. */
void weir_tok_words_add(weir_tok_words *w, const uint8_t *p, size_t n, int32_t id);
/* The token that p[0, n), n > 0, is, or -1. */
int32_t weir_tok_words_find(const weir_tok_words *w, const uint8_t *p, size_t n);

#endif
