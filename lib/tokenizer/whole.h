/* tokenizer/whole.h: which tokens does BPE make of their own text? */
#ifndef WEIR_TOK_WHOLE_H
#define WEIR_TOK_WHOLE_H

#include "tok.h"

typedef struct weir_tok_tree weir_tok_tree;

/* For one tokenizer whose merges are complete. */
WEIR_CHECKED weir_status weir_tok_tree_new(weir_tok_tree **out, const weir_tokenizer *t);
void weir_tok_tree_free(weir_tok_tree *tree);
/* Whether BPE turns `text`, which the token spells, into exactly the token. */
WEIR_CHECKED weir_status weir_tok_is_whole(weir_tok_tree *tree, int32_t id, weir_str text, bool *whole);

#endif
