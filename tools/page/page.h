/* page/page.h: pages of one file that need no network: the lines of a page.html (with what it includes, strings in this
 * program), and in their midst, in the place of the line "@data", the data: a head of JSON, and blocks of base64 that
 * bytes.js reads. Nothing in the data can end its element: base64 has no '<', and in the head it is written as \u003c.
 */
#ifndef WEIR_TOOLS_PAGE_PAGE_H
#define WEIR_TOOLS_PAGE_PAGE_H

#include <weir/weir.h>

#include "base64.h"

/* Writes the lines before "@data", or the end; returns the line behind it. */
const char *const *weir_page_lines(FILE *out, const char *const *line);
/* The element "head": what put writes. False: out of memory. */
bool weir_page_head(FILE *out, void (*put)(weir_jsonw *w, const void *ctx), const void *ctx);
/* An element of base64 with these attributes; *b takes its bytes. */
void weir_page_block(FILE *out, weir_base64 *b, const char *attributes);
/* Ends a part of the block; a space stands between parts, each of which can be read alone. */
void weir_page_part(weir_base64 *b);
void weir_page_block_end(weir_base64 *b);

/* The tokens that a page names, each once, in the order in which they were first named. */
typedef struct weir_page_tokens {
    int32_t *index; /* [V] 1 + place in id; 0: not named yet */
    int32_t *id;    /* [n] */
    int64_t n, V;
} weir_page_tokens;
/* False: out of memory. */
bool weir_page_tokens_init(weir_page_tokens *t, int64_t V);
/* What stands for a token in the data: 1 + its index; 0: it is none (negative, or outside the vocabulary). */
int64_t weir_page_token(weir_page_tokens *t, int32_t id);
/* The block "tokens" (text.js reads it). tok NULL: tokens have no text. */
void weir_page_tokens_put(const weir_page_tokens *t, const weir_tokenizer *tok, FILE *out);
void weir_page_tokens_free(weir_page_tokens *t);

#endif
