/* base/utf8.h: UTF-8, strictly (no overlong forms, no surrogates, nothing above U+10FFFF). */
#ifndef WEIR_UTF8_H
#define WEIR_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes (1 to 4) of the valid sequence that begins at p[0], or 0 when there is none within n bytes. */
int weir_utf8_len(const char *p, size_t n);
/* The code point of a valid sequence of len bytes. */
uint32_t weir_utf8_cp(const char *p, int len);
/* Writes code point cp (at most 0x10ffff) and returns its length, 1 to 4. */
int weir_utf8_put(char out[4], uint32_t cp);

#endif
