/* record/compress.h: one chunk of a dataset, packed as the stock shuffle and deflate filters of HDF5 would have it.
 *
 * This is the one place to swap for another compressor: tiled.c calls weir_packer_pack for every chunk, from several
 * threads, each with a packer of its own.
 */
#ifndef WEIR_COMPRESS_H
#define WEIR_COMPRESS_H

#include <weir/base.h>

/* Gathers a chunk of tile_rows x tile_cols elements of `elem` bytes from rows that lie `stride` bytes apart, of which
 * rows x cols exist (the rest of the chunk becomes zero), with byte k of every element moved to plane k: dst[k *
 * tile_rows * tile_cols + index]. */
typedef struct weir_tile {
    const uint8_t *src;
    size_t stride, elem;
    size_t rows, cols, tile_rows, tile_cols;
} weir_tile;
void weir_tile_shuffle(uint8_t *dst, const weir_tile *t);
/* The same chunk unshuffled. */
void weir_tile_copy(uint8_t *dst, const weir_tile *t);

typedef struct weir_packer weir_packer;
WEIR_CHECKED weir_status weir_packer_new(weir_packer **out, int level, weir_err *err); /* level 1..9 */
void weir_packer_free(weir_packer *p);
/* Bytes that pack may need for n. */
size_t weir_packer_bound(size_t n);
/* src: n shuffled bytes, elem planes. Writes one zlib stream (RFC 1950) and returns its length; 0: failed. The stream
 * depends on src, the level and the deflate library alone. Leading planes that no entropy coder can shorten (the low
 * mantissa bytes of floats) become stored blocks, the rest is deflated. */
size_t weir_packer_pack(weir_packer *p, const uint8_t *src, size_t n, size_t elem, uint8_t *out, size_t cap);

#endif
