/* tokenizer/unicode.h: what the tokenizers ask of a code point. Tables: unicode/generate.py, which says whose Unicode
 * version each property follows. */
#ifndef WEIR_TOK_UNICODE_H
#define WEIR_TOK_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Properties, as bits. */
enum {
    WEIR_CP_LETTER = 1,    /* \p{L} */
    WEIR_CP_NUMBER = 2,    /* \p{N} */
    WEIR_CP_SPACE = 4,     /* White_Space, the \s of the patterns */
    WEIR_CP_WORD = 8,      /* \w */
    WEIR_CP_DIGITS = 16,   /* what the pre-tokenizer Digits takes for a number */
    WEIR_CP_NFC_CHECK = 32 /* may change, move or combine with what stands before it under NFC */
};

uint8_t weir_cp_class(uint32_t cp);
/* [128] The same for ASCII, without a call. */
extern const uint8_t *const weir_cp_ascii;
/* Canonical combining class. */
uint8_t weir_cp_combining(uint32_t cp);
/* The full canonical decomposition into out (at most 4 code points): their number, 1 with cp itself when it has none.
 */
int weir_cp_decompose(uint32_t cp, uint32_t out[4]);
/* The primary composite of two code points, or 0. */
uint32_t weir_cp_compose(uint32_t first, uint32_t second);

/* The character at p[0], n > 0: its length in bytes in *len. A byte that begins no valid sequence is a character of its
 * own, of one byte and value WEIR_CP_INVALID, which has no property. */
#define WEIR_CP_INVALID 0x110000u
uint32_t weir_cp_at(const uint8_t *p, size_t n, int *len);
/* The class of the character at p[0]. */
uint8_t weir_cp_class_at(const uint8_t *p, size_t n, int *len);
/* The start of the character that ends at p[end - 1], end > 0. */
size_t weir_cp_before(const uint8_t *p, size_t end);

#endif
