/* record/tiled.h: a chunked dataset that grows by rows, and the writer that packs its chunks.
 *
 * Rows are gathered in one buffer of a band (tile_rows rows). A full band is cut into tiles, the tiles are packed in
 * parallel and written as finished chunks (H5Dwrite_chunk) by the calling thread. Memory: the band, whatever the number
 * of rows. A band's pages are touched as rows come, so a short text costs little.
 */
#ifndef WEIR_TILED_H
#define WEIR_TILED_H

#include "behind.h"
#include "compress.h"
#include "h5.h"

/* What packs and writes: shared by all datasets of a file. */
typedef struct weir_tile_writer {
    int level, threads;
    int slots;            /* chunks that are packed before they are written */
    weir_packer **packer; /* [threads]; NULL at level 0 */
    uint8_t **plain;      /* [threads] one shuffled chunk */
    uint8_t **slot;       /* [slots] one finished chunk */
    size_t *slot_bytes;   /* [slots] 0: nothing to write */
    int64_t bands;        /* full bands that were written */
    weir_behind behind;   /* hands written pages back; set once the file is open */
} weir_tile_writer;

/* level 0: no filters. threads 0: all processors. Zero it before; free in every case. */
WEIR_CHECKED weir_status weir_tile_writer_init(weir_tile_writer *w, int level, int threads, weir_err *err);
void weir_tile_writer_free(weir_tile_writer *w);

typedef enum weir_elem {
    WEIR_ELEM_U8,
    WEIR_ELEM_I32,
    WEIR_ELEM_I64,
    WEIR_ELEM_F32,
    WEIR_ELEM_F64,
    WEIR_ELEM_F16 /* IEEE 754 binary16 */
} weir_elem;
size_t weir_elem_bytes(weir_elem e);
hid_t weir_elem_type(weir_elem e); /* HDF5's own id: not to be closed; -1 for F16, which HDF5 1.10 has no id for */

typedef struct weir_tiled_spec {
    weir_elem elem;
    int rank;             /* 1: [rows], 2: [rows, inner], 3: [rows, outer, inner] */
    int64_t outer, inner; /* 1 where the rank has no such axis */
    int64_t tile_rows, tile_cols;
    bool filtered;    /* shuffle + deflate (unless the writer's level is 0); false: the last tile may be written again
                         while a run goes on, which takes no new place in the file */
    bool sparse;      /* chunks that hold only the fill value are not written */
    const void *fill; /* one element, or NULL: zero */
} weir_tiled_spec;

typedef struct weir_tiled {
    hid_t id; /* -1 or 0: not created */
    weir_tiled_spec spec;
    uint8_t fill[8];
    size_t row_bytes;
    uint8_t *band; /* [tile_rows, row_bytes], made by the first row */
    int64_t base;  /* first row of the band; the rows before it are on disk */
    int64_t n;     /* rows in the band */
    int64_t kept;  /* so many rows in the band, and the same, were on disk when it was last written or read; -1: other
                      ones */
    int64_t over;  /* rows that are there already and will come once more: see weir_tiled_pass_over */
    bool grown;    /* written to since HDF5 was last told to flush it */
} weir_tiled;

/* A column of one value a row. */
weir_tiled_spec weir_tiled_column(weir_elem e);
/* Such a dataset of the schema. */
typedef struct weir_schema_column {
    const char *path; /* from the root */
    weir_elem elem;
} weir_schema_column;

/* Zero t before; close in every case. */
WEIR_CHECKED weir_status weir_tiled_create(weir_tiled *t, hid_t loc, const char *name, const weir_tiled_spec *spec,
                                           const weir_tile_writer *w, weir_err *err);
/* Opens one that is there. It must have been created with the same spec and level, else WEIR_E_ARG. It has no rows
 * until weir_tiled_resume. */
WEIR_CHECKED weir_status weir_tiled_open(weir_tiled *t, hid_t loc, const char *name, const weir_tiled_spec *spec,
                                         const weir_tile_writer *w, weir_err *err);
/* Goes on behind the first `rows` rows: those of an unfinished tile are read into the band. Nothing is written. */
WEIR_CHECKED weir_status weir_tiled_resume(weir_tiled *t, int64_t rows, weir_err *err);
/* Makes the dataset as long as what is not in the band, or, if it is not filtered, as long as what it has. */
WEIR_CHECKED weir_status weir_tiled_cut(weir_tiled *t, weir_err *err);
/* Rows [row, row + n), which the file or the band holds. */
WEIR_CHECKED weir_status weir_tiled_read(weir_tiled *t, int64_t row, int64_t n, void *out, weir_err *err);
int64_t weir_tiled_rows(const weir_tiled *t);
/* Of n rows that come now, those that are there already: the caller skips them. */
int64_t weir_tiled_pass_over(weir_tiled *t, int64_t n);
/* Appends n rows that lie one after the other. */
WEIR_CHECKED weir_status weir_tiled_append(weir_tiled *t, weir_tile_writer *w, const void *rows, int64_t n,
                                           weir_err *err);
/* Room for up to `want` rows at *p, at least one; then weir_tiled_added says how many were filled. */
WEIR_CHECKED weir_status weir_tiled_room(weir_tiled *t, int64_t want, void **p, int64_t *n, weir_err *err);
WEIR_CHECKED weir_status weir_tiled_added(weir_tiled *t, weir_tile_writer *w, int64_t n, weir_err *err);
/* Writes the unfinished band too. It stays in memory and may go on growing; its chunks are then written again, in
 * place. */
WEIR_CHECKED weir_status weir_tiled_flush(weir_tiled *t, weir_tile_writer *w, weir_err *err);
/* HDF5 puts everything that was written, and what leads to it, into the file. */
WEIR_CHECKED weir_status weir_tiled_sync(weir_tiled *t, weir_err *err);
/* No row comes any more: the unfinished band is written and leaves memory. */
WEIR_CHECKED weir_status weir_tiled_settle(weir_tiled *t, weir_tile_writer *w, weir_err *err);
void weir_tiled_close(weir_tiled *t);

#endif
