/* record/compress.h: one chunk of a dataset, packed as the stock shuffle and deflate filters of HDF5 would have it.
 *
 * tiled.c calls weir_packer_pack for every chunk, from several threads, each with a packer of its own. The encoder is
 * our own and knows what the planes of activations look like (README.md, "The compressor"); what it writes is an
 * ordinary zlib stream.
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

/* About 240 KB, for one thread at a time. */
typedef struct weir_packer weir_packer;
/* Level 1 to 9: 1 is made for speed, the others look for the smallest blocks and are never longer. The instructions are
 * those of the kernel table in use: fails where WEIR_KERNEL does. */
WEIR_CHECKED weir_status weir_packer_new(weir_packer **out, int level, weir_err *err);
void weir_packer_free(weir_packer *p);
/* Bytes that pack may need for n, at every level and for 1 to 8 planes. */
size_t weir_packer_bound(size_t n);
/* src: n shuffled bytes, elem (1 to 8) planes. Writes one zlib stream (RFC 1950) and returns its length, at most
 * weir_packer_bound(n); 0: cap is below that. The stream depends on src, n, elem and the level alone: not on the
 * processor, nor on what the packer did before. */
size_t weir_packer_pack(weir_packer *p, const uint8_t *src, size_t n, size_t elem, uint8_t *out, size_t cap);

#endif
