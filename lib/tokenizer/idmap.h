/* tokenizer/idmap.h: from a piece to its id. The pieces stay where they are, so that a slot takes eight bytes. */
#ifndef WEIR_TOK_IDMAP_H
#define WEIR_TOK_IDMAP_H

#include <stddef.h>
#include <stdint.h>

#include <weir/base.h>

/* Open addressing; at most three quarters full. Zero it before use. */
typedef struct weir_tok_idmap {
    struct weir_tok_idmap_slot *slot;
    size_t cap, n;
} weir_tok_idmap;

/* piece: the array that ids index. Growing looks nothing up in it. */
WEIR_CHECKED weir_status weir_tok_idmap_reserve(weir_tok_idmap *m, size_t n);
/* Adds piece[id], which must not be there yet; or gives the id that it has in *old and adds nothing. */
WEIR_CHECKED weir_status weir_tok_idmap_add(weir_tok_idmap *m, const weir_str *piece, int32_t id, int32_t *old);
/* -1: not there. */
int32_t weir_tok_idmap_find(const weir_tok_idmap *m, const weir_str *piece, const char *p, size_t n);
void weir_tok_idmap_free(weir_tok_idmap *m);

#endif
