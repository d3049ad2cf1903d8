/* record/inflate_quick.h: the streams that our own compressor writes, inflated several times as fast as general ones.
 *
 * Planes of activations hold no repeats: compress.c writes stored blocks, and blocks of literals, with runs of one
 * byte, in codes of at most 12 bits. A table of 4096 entries then gives up to three literals a look. Whatever else a
 * stream holds is left to a general inflater.
 */
#ifndef WEIR_INFLATE_QUICK_H
#define WEIR_INFLATE_QUICK_H

#include "inflate.h"

enum { WEIR_QUICK_BITS = 12 };

typedef struct weir_quick {
    uint32_t many[1 << WEIR_QUICK_BITS];  /* by the next bits of the stream: literals, or one other symbol */
    uint16_t one[1 << WEIR_QUICK_BITS];   /* a single symbol and its length */
    const struct weir_deflate_kern *kern; /* weir_deflate_pick(), set by the owner */
} weir_quick;

/* Inflates n streams, 1 or 2, with a table for each. Two are decoded in turn: each look into a table waits for the one
 * before it, and meanwhile there is time for the other stream's. Reads and writes behind the ends as weir_inflate_some
 * does. good = true: out[out_n] is what the stream holds, its checksum is right. Else it is damaged, or not of this
 * kind; out is undefined. */
void weir_quick_inflate(weir_quick *q, weir_zlib *stream, int n);

#endif
