/* record/dset.h: a dataset that is read: its shape, its type, and how its chunks are stored.
 *
 * A file may be anything, so kind, type, rank and sizes are checked when a dataset is opened. Every dataset of ours is
 * a matrix of rows: rank 1 is [rows, 1, 1], rank 2 [rows, 1, inner], rank 3 [rows, outer, inner]; a column is a number
 * below width = outer * inner.
 */
#ifndef WEIR_DSET_H
#define WEIR_DSET_H

#include "infile.h"
#include "tiled.h"

typedef struct weir_dset {
    weir_infile *file; /* borrowed */
    char *name;        /* of the dataset in its file */
    hid_t id;          /* 0: not open */
    weir_elem as;      /* type of what is read */
    int rank;
    int64_t rows, outer, inner, width;
    bool is_virtual; /* its rows are in other files */
    /* Chunks that can be read without HDF5. */
    bool direct;      /* false: another layout, filter or type: HDF5 reads it */
    bool half;        /* float16 in the file (as is F32) */
    size_t elem;      /* bytes of an element in the file */
    int64_t chunk[3]; /* rows, outer, inner */
    size_t chunk_bytes;
    uint32_t shuffle, deflate; /* its bit in weir_chunk_place.skipped; 0: no such filter */
    uint8_t fill[8];           /* one element of type `as` */
} weir_dset;

/* Opens loc/name, whose elements must be integers or floats as `as` is, rank 1 to 3. f is borrowed. Zero d before;
 * close in every case. */
WEIR_CHECKED weir_status weir_dset_open(weir_dset *d, weir_infile *f, hid_t loc, const char *name, weir_elem as,
                                        weir_err *err);
void weir_dset_close(weir_dset *d);
/* Whole rows [row, row + n) into out [n, width] of type `as`, read by HDF5. */
WEIR_CHECKED weir_status weir_dset_read_plain(const weir_dset *d, int64_t row, int64_t n, void *out, weir_err *err);

#endif
