/* record/fetch.h: rows and columns of a dataset out of its chunks.
 *
 * The calling thread asks HDF5 where the chunks lie; then threads read, inflate and unshuffle them, and of each only
 * the columns that are wanted are put together: four bytes a row for one column of floats. Datasets that are stored in
 * a way that we do not know (weir_dset.direct) are read by HDF5, with the same result.
 */
#ifndef WEIR_FETCH_H
#define WEIR_FETCH_H

#include "dset.h"
#include "inflate.h"

/* What the threads work with; shared by all datasets of a reader. Zero it before use. */
typedef struct weir_fetcher {
    int threads;                      /* 0: not chosen yet: all processors */
    bool plain;                       /* everything is read by HDF5: what tests compare with */
    int n_slots;                      /* threads that have what follows */
    weir_inflater **inflater;         /* [n_slots] */
    uint8_t **packed, **chunk;        /* [2 n_slots] a chunk as in the file, and inflated; two a thread */
    size_t packed_bytes, chunk_bytes; /* their sizes */
} weir_fetcher;
void weir_fetcher_free(weir_fetcher *f);

/* Rows [row, row + n), all of them in the dataset; columns column[0 .. n_columns), in any order, or where column is
 * NULL first .. first + n_columns - 1. out: [n, n_columns] of type d->as. */
typedef struct weir_fetch {
    int64_t row, n;
    const int64_t *column;
    int64_t first, n_columns;
    void *out;
} weir_fetch;
/* Errors name file, dataset, rows and byte. */
WEIR_CHECKED weir_status weir_fetch_run(weir_fetcher *f, const weir_dset *d, const weir_fetch *w, weir_err *err);

#endif
