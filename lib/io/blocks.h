/* io/blocks.h: cuts a text into blocks of documents for runs that share it (weir/text.h, weir_docs_block). */
#ifndef WEIR_BLOCKS_H
#define WEIR_BLOCKS_H

#include <weir/text.h>

#include "../base/mem.h"

/* A block, and what its run must know of the whole text. Zero it before; free in every case. */
typedef struct weir_blocks {
    weir_docs_block block;
    weir_doc first; /* of the whole text: its fields, copied */
    weir_arena own;
} weir_blocks;

/* Reads the text that `o` names, whole, and finds block o->shard of o->shards. */
WEIR_CHECKED weir_status weir_blocks_find(weir_blocks *b, const weir_docs_options *o, weir_err *err);
void weir_blocks_free(weir_blocks *b);

/* Bytes of text or ids: what blocks are balanced by. */
int64_t weir_doc_size(const weir_doc *doc);

#endif
