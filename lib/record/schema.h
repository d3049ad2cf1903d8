/* record/schema.h: names and sizes of format_version 1 that more than one file needs. README.md beside this file has it
 * all. */
#ifndef WEIR_SCHEMA_H
#define WEIR_SCHEMA_H

#define WEIR_DUMP_FORMAT "weir-dump"
#define WEIR_DUMP_VERSION 1
#define WEIR_STATS_FORMAT "weir-stats"
#define WEIR_STATS_VERSION 1
#define WEIR_FORMAT_PREFIX "weir-" /* root attribute `format` of every file of ours begins with it */

enum {
    WEIR_TILE_ROWS = 1024,  /* rows of a chunk, everywhere but below */
    WEIR_TILE_COLS = 64,    /* columns of a chunk, less where the dataset is narrower */
    WEIR_TILE_ROWS_3D = 64, /* rank 3: chunks are [64, 1, 64] */
    WEIR_TILE_BYTES = 65536 /* columns of bytes (strings one after the other) */
};

#endif
