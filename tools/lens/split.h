/* lens/split.h: characters that are split over tokens, which are drawn once. */
#ifndef WEIR_TOOLS_LENS_SPLIT_H
#define WEIR_TOOLS_LENS_SPLIT_H

#include "cli/printable.h"

/* Tokens [first, first + n) of a text share characters; n = 1: a token that stands for itself. */
typedef struct weir_lens_split {
    int64_t first, n;
} weir_lens_split;

/* For each of the tokens id [n], which follow one another where pos [n] does, those that it shares characters with: out
 * [n]. tok NULL: none does. raw: room to work in; its `failed` says that memory is out. */
void weir_lens_split_of(weir_lens_split *out, const weir_tokenizer *tok, const int32_t *id, const int64_t *pos,
                        int64_t n, weir_text *raw);

#endif
