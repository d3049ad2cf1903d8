/* cli/printable.h: tokens as text that a terminal, a table and a reader can take.
 *
 * Tokens are bytes. What is printable here is valid UTF-8 without control characters, and can be undone:
 *     \n \t \r \\     newline, tab, carriage return, backslash
 *     \xNN            a byte that belongs to no character, to one of weir_unprintable, or to one that looks like a
 *                     space or like nothing (no-break space, wide space, Hangul fillers ...)
 *
 * Everything else stands as it is, the plain space too. A token without bytes, or one that the vocabulary does not
 * have, is <#ID>.
 */
#ifndef WEIR_CLI_PRINTABLE_H
#define WEIR_CLI_PRINTABLE_H

#include <weir/weir.h>

/* Text that grows. Zero it; free with weir_text_free. Running out of memory is noted (failed) and told by the caller.
 */
typedef struct weir_text {
    char *p; /* not ended by NUL */
    size_t n, room;
    bool failed;
} weir_text;
void weir_text_free(weir_text *t);
void weir_text_add(weir_text *t, const void *p, size_t n);
/* Appends n bytes in printable form. */
void weir_text_printable(weir_text *t, const void *p, size_t n);
/* Writes a name in printable form, and blanks up to so many columns. */
void weir_put_printable(FILE *out, const char *z, int columns);
/* Appends n bytes as \xNN. */
void weir_text_escaped(weir_text *t, const char *p, size_t n);
/* Appends a token's bytes in printable form, or <#ID> where it has none. */
void weir_text_token(weir_text *t, weir_str bytes, int32_t id);
/* Writes that between quotes, and blanks up to so many columns. */
void weir_put_token(FILE *out, weir_str bytes, int32_t id, int columns);

/* Columns that n bytes of valid UTF-8 take on a terminal: wide characters two, combining ones none. */
int64_t weir_text_columns(const char *p, size_t n);
/* Length of the valid UTF-8 sequence at p (n bytes are there), its code point in *cp; 0: there is none. */
int weir_utf8_at(const char *p, size_t n, uint32_t *cp);
/* Bytes of the first n that are whole characters of valid UTF-8; all of them: n. */
size_t weir_utf8_valid(const char *p, size_t n);

/* Words of a file, without what could act on a terminal. z may be NULL; text: room to work in. */
void weir_put_safe(FILE *out, weir_text *text, const char *z);

/* x in the fewest digits that read back as the same float; "nan", "inf", "-inf". Returns buf. */
const char *weir_float_text(char buf[32], float x);

/* The key "hex" of an object: bytes that are no UTF-8 text, as pairs of hexadecimal digits; null where the text says it
 * all. */
void weir_put_hex(weir_jsonw *w, const char *p, size_t n);

#endif
