/* record/virtual.h: virtual datasets, whose rows are those of datasets in other files (`weir merge --virtual`).
 *
 * HDF5 reads them too, but in quadratic time where there are thousands of parts, and it gives fill values for a file
 * that is missing. So the parts are looked up once, and rows are read from the files themselves.
 */
#ifndef WEIR_VIRTUAL_H
#define WEIR_VIRTUAL_H

#include "fetch.h"

/* Rows row .. row + n - 1 are rows source_row .. of a dataset of another file, all columns. */
typedef struct weir_part_rows {
    int64_t row, n, source_row;
    char *file, *name; /* as the file has them */
} weir_part_rows;

typedef struct weir_virtual_parts {
    weir_part_rows *part; /* [n] ascending by row; between them are rows of the fill value */
    int64_t n;
} weir_virtual_parts;

/* *p: what the virtual dataset d is made of. *resolved = false: in a way that is not ours (parts that overlap, have
 * other columns, or grow): HDF5 may read it. Refused: a dataset that is made of its own file. */
WEIR_CHECKED weir_status weir_virtual_parts_find(weir_virtual_parts *p, const weir_dset *d, bool *resolved,
                                                 weir_err *err);
void weir_virtual_parts_free(weir_virtual_parts *p);

/* Files that parts are in, a bounded number of them open. Zero it before; free in every case. */
typedef struct weir_sources {
    struct weir_source *source; /* [n] */
    int n;
    int64_t clock;
} weir_sources;
void weir_sources_free(weir_sources *s);
/* The dataset that holds the part's rows, valid until the next call. d: the virtual dataset. */
WEIR_CHECKED weir_status weir_sources_get(weir_sources *s, const weir_dset *d, const weir_part_rows *p,
                                          const weir_dset **out, weir_err *err);

#endif
