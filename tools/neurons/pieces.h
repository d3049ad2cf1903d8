/* neurons/pieces.h: a context as pieces that are drawn. A character that is split over tokens is drawn once: those
 * tokens make up one piece. */
#ifndef WEIR_NEURONS_PIECES_H
#define WEIR_NEURONS_PIECES_H

#include "cli/printable.h"

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
