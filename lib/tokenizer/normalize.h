/* tokenizer/normalize.h: the steps that change a text before it is cut into pieces. */
#ifndef WEIR_TOK_NORMALIZE_H
#define WEIR_TOK_NORMALIZE_H

#include "view.h"

typedef enum weir_tok_op_kind {
    WEIR_TOK_NFC,
    WEIR_TOK_REPLACE,     /* every `from` by `to` */
    WEIR_TOK_PREPEND,     /* `to` before a text that is not empty */
    WEIR_TOK_PREFIX,      /* the same, unless the text begins with `to` */
    WEIR_TOK_PREFIX_FIRST /* the same, and only at the start of the whole text */
} weir_tok_op_kind;

/* Strings are borrowed from the tokenizer. */
typedef struct weir_tok_op {
    weir_tok_op_kind kind;
    weir_str from, to;
} weir_tok_op;

/* All steps together may not make a text more than WEIR_TOK_MAX_GROWTH times as long: a few replacements of "a" by a
 * thousand of it would fill any memory. */
enum { WEIR_TOK_MAX_OPS = 8, WEIR_TOK_MAX_GROWTH = 256 };
typedef struct weir_tok_ops {
    weir_tok_op op[WEIR_TOK_MAX_OPS];
    int n;
} weir_tok_ops;

/* Applies the steps in order. *v is replaced by the result, which lives in one of the two scratch texts (or is *v
 * itself when nothing changed). */
WEIR_CHECKED weir_status weir_tok_apply(const weir_tok_ops *ops, weir_tok_view *v, weir_tok_text scratch[2]);

/* Appends the NFC of v to out. Bytes that are not UTF-8 stay as they are. */
WEIR_CHECKED weir_status weir_tok_nfc(const weir_tok_view *v, weir_tok_text *out);
bool weir_tok_is_nfc(const uint8_t *p, size_t n); /* true: surely; false: perhaps not */

#endif
