/* io/npy.h: one array in numpy's format (numpy.lib.format, versions 1.0 to 3.0), as a view of a map. */
#ifndef WEIR_NPY_H
#define WEIR_NPY_H

#include <weir/base.h>

#include "filemap.h"

enum { WEIR_NPY_RANK = 32 }; /* numpy's own limit */

typedef struct weir_npy {
    char kind;    /* 'f', 'i' or 'u' */
    int size;     /* bytes of an element: 2, 4, 8 (f); 1, 2, 4, 8 */
    bool big;     /* stored big-endian */
    bool fortran; /* first axis fastest */
    int rank;     /* 0: a single number */
    int64_t shape[WEIR_NPY_RANK];
    int64_t n; /* elements */
    const uint8_t *data;
} weir_npy;

bool weir_npy_is(const weir_filemap *m);
/* Every error names the file, and the offset where it can. */
WEIR_CHECKED weir_status weir_npy_parse(weir_npy *a, const weir_filemap *m, weir_err *err);
/* The i-th element in C order, whatever the order in the file; 0 <= i < n. */
double weir_npy_element(const weir_npy *a, int64_t i);

#endif
