/* edit/merge.h: what merge.c (rows of matrices with their updates) and the writers of directories share. */
#ifndef WEIR_EDIT_MERGE_H
#define WEIR_EDIT_MERGE_H

#include <weir/edit.h>

#include "../base/mem.h"
#include "../io/outdir.h"
#include "../model/modules.h"

typedef struct weir_merging {
    const weir_model *m;
    const weir_edit *const *edit;
    int n_edits, threads;
    const weir_edit_merge_options *o;
} weir_merging;

/* Is the matrix updated by any of the edits? */
bool weir_merge_touches(const weir_merging *g, int64_t layer, weir_matrix which);

/* A tensor of a module as it is to be written, without its updates. */
typedef struct weir_merge_tensor {
    const weir_module *module;
    const char *file, *name; /* for errors */
    int64_t offset;
    weir_dtype dtype;
    int64_t rows, width;
    /* The row (where k_major: the column) with output i of a matrix. */
    int64_t (*row_of)(const weir_model *m, weir_matrix which, int64_t i);
    /* n rows as they are stored, valid until the next call. */
    const void *(*read)(void *ctx, int64_t row, int64_t n);
    void *ctx;
} weir_merge_tensor;

/* Rows that are read and handed over at a time; `row` is always a multiple. */
enum { WEIR_MERGE_ROWS = 256 };

/* Makes the tensor anew and hands it over, some rows at a time: first row, number of rows, their bytes. Tells the
 * caller (o->merged) of each matrix that is updated. */
typedef weir_status (*weir_merge_put)(void *ctx, int64_t row, int64_t n, const void *bytes, size_t size, weir_err *err);
WEIR_CHECKED weir_status weir_merge_rows(const weir_merging *g, const weir_merge_tensor *t, weir_merge_put put,
                                         void *ctx, weir_err *err);

/* merge_gguf.c: the model of a GGUF file, whose edits (none: its weights as they are) belong to it, as a directory. */
WEIR_CHECKED weir_status weir_merge_gguf(const weir_merging *g, const char *dir, weir_err *err);

#endif
