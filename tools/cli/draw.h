/* cli/draw.h: tokens drawn at random, the same ones for the same seed everywhere. */
#ifndef WEIR_CLI_DRAW_H
#define WEIR_CLI_DRAW_H

#include "tool.h"

/* The next of a stream of random numbers; *state begins as the seed: splitmix64 (Steele, Lea and Flood 2014, "Fast
 * splittable pseudorandom number generators"). */
uint64_t weir_draw(uint64_t *state);
/* A token of text: not special, and with bytes where there is a tokenizer (NULL: any id). vocab: ids are below this. */
int32_t weir_draw_token(uint64_t *state, const weir_tokenizer *tok, int64_t vocab);

#endif
