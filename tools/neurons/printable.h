/* neurons/printable.h: tokens as text that a terminal, a table and a reader can take.
 *
 * Tokens are bytes. What is printable here is valid UTF-8 without control characters, and can be undone:
 *     \n \t \r \\     newline, tab, carriage return, backslash
 *     \xNN            a byte that belongs to no character; the bytes of other control characters (ESC, DEL, C1), of
 * line and paragraph separators, of marks that reorder text, and of characters that nobody can see Everything else
 * stands as it is, spaces too. A token without bytes, or one that the vocabulary does not have, is <#ID>.
 *
 * A character that is split over tokens is drawn once: those tokens make up one piece.
 */
#ifndef WEIR_NEURONS_PRINTABLE_H
#define WEIR_NEURONS_PRINTABLE_H

#include <weir/neurons.h>

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
/* Appends a token in printable form, its bytes alone. */
void weir_text_token(weir_text *t, const weir_neurons *s, int32_t id);

/* Does the user's locale say that signs beyond ASCII can be drawn? */
bool weir_utf8_locale(void);
/* Columns that n bytes of valid UTF-8 take on a terminal: wide characters two, combining ones none. */
int64_t weir_text_columns(const char *p, size_t n);
/* Length of the valid UTF-8 sequence at p (n bytes are there), its code point in *cp; 0: there is none. */
int weir_utf8_at(const char *p, size_t n, uint32_t *cp);
/* Bytes of the first n that are whole characters of valid UTF-8; all of them: n. */
size_t weir_utf8_valid(const char *p, size_t n);

/* What is drawn for one token, or for neighbours that share a character. */
typedef struct weir_piece {
    int64_t first, n; /* tokens of the context */
    size_t at, len;   /* bytes in weir_pieces.text */
    int64_t columns;
    bool special; /* a special token: its name is no text */
    bool cut;     /* at the edge of what is kept: a character whose other part is not kept */
} weir_piece;

typedef struct weir_pieces {
    weir_piece *piece; /* [n] */
    int64_t n, room;
    int64_t hit;         /* the piece that holds the place's token */
    int64_t part, parts; /* the place's token is the part-th of `parts`, from 1 */
    weir_text text;
    weir_text raw;    /* bytes of all tokens */
    size_t *token_at; /* [tokens + 1] their places in raw */
} weir_pieces;
/* Zero *p before the first use; it is used again for the next context. False: out of memory. Tokens [first, end) of c,
 * among them c->hit, and as many more as it takes not to cut a character in two where its other part is kept. */
bool weir_pieces_make(weir_pieces *p, const weir_neurons *s, const weir_neurons_context *c, int64_t first, int64_t end);
void weir_pieces_free(weir_pieces *p);

#endif
