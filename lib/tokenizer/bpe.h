/* tokenizer/bpe.h: byte-pair merging. Symbols are token ids; a table says which neighbours merge, into what, and in
 * which order. */
#ifndef WEIR_TOK_BPE_H
#define WEIR_TOK_BPE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/base.h>

/* Open-addressing map from a pair of symbols to its merge; made == -1 marks an empty slot. */
typedef struct weir_tok_merge {
    int32_t left, right, made;
    uint32_t rank;
} weir_tok_merge;

typedef struct weir_tok_merges {
    weir_tok_merge *slot;
    size_t cap, n;
    int shift;
} weir_tok_merges;

WEIR_CHECKED weir_status weir_tok_merges_reserve(weir_tok_merges *m, size_t n);
/* A pair that is there already gets the new rank. Room must have been reserved. */
void weir_tok_merges_set(weir_tok_merges *m, int32_t left, int32_t right, int32_t made, uint32_t rank);
/* The rank of a pair's merge; false: they do not merge. */
bool weir_tok_merge_rank(const weir_tok_merges *m, int32_t left, int32_t right, uint32_t *rank);
void weir_tok_merges_free(weir_tok_merges *m);

/* The symbols of a piece: id, the byte where each begins, and whether bytes were lost beside it. Zero it before use. */
typedef struct weir_tok_symbols {
    int32_t *id;
    uint32_t *at;
    uint8_t *lost;
    size_t n, cap;
    uint32_t *prev, *next, *rank; /* scratch of long pieces */
    size_t links_cap;
    uint64_t *heap;
    size_t heap_n, heap_cap;
} weir_tok_symbols;

void weir_tok_symbols_free(weir_tok_symbols *s);
WEIR_CHECKED weir_status weir_tok_symbols_reserve(weir_tok_symbols *s, size_t n);
/* Room must have been reserved. */
void weir_tok_symbols_add(weir_tok_symbols *s, int32_t id, size_t at, bool lost);

/* Merges until no neighbours can be: always the pair of lowest rank, of equals the leftmost. Time is n log n for long
 * pieces. */
WEIR_CHECKED weir_status weir_tok_merge_all(const weir_tok_merges *m, weir_tok_symbols *s);

#endif
