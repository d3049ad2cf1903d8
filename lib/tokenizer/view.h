/* tokenizer/view.h: a stretch of text on its way through the normaliser: its bytes, and where in the original each came
 * from. */
#ifndef WEIR_TOK_VIEW_H
#define WEIR_TOK_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include <weir/base.h>

/* Bytes p[0, n). Byte i stands at origin org[i] of the stretch (n + 1 entries, never falling; NULL: at i itself), which
 * begins at byte `base` of the text. Bytes without an origin of their own (a prefix, the tail of a longer replacement)
 * have the place where the next original byte stands. */
typedef struct weir_tok_view {
    const uint8_t *p;
    const uint32_t *org;
    size_t n;
    size_t base;
} weir_tok_view;

size_t weir_tok_origin(const weir_tok_view *v, size_t i);

/* A view that is being written. Zero it before use; reused by reset. */
typedef struct weir_tok_text {
    uint8_t *p;
    uint32_t *org;
    size_t n, cap;
} weir_tok_text;

void weir_tok_text_reset(weir_tok_text *t);
void weir_tok_text_free(weir_tok_text *t);
/* Appends len bytes that stand for bytes [from, to) of `in`: byte by byte if the lengths agree, else the first has the
 * place `from` and the others the place `to`. */
WEIR_CHECKED weir_status weir_tok_text_put(weir_tok_text *t, const void *bytes, size_t len, const weir_tok_view *in,
                                           size_t from, size_t to);
/* Ends the text and shows it as a view; t must live as long. */
WEIR_CHECKED weir_status weir_tok_text_end(weir_tok_text *t, const weir_tok_view *in, weir_tok_view *out);

#endif
