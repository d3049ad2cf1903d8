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

/* Makes the tensor of a module anew and hands it over, some rows at a time: first row, number of rows, their bytes.
 * Tells the caller (o->merged) of each matrix that is updated. */
typedef weir_status (*weir_merge_put)(void *ctx, int64_t row, int64_t n, const void *bytes, size_t size, weir_err *err);
WEIR_CHECKED weir_status weir_merge_tensor(const weir_merging *g, const weir_tensor *t, const weir_module *w,
                                           weir_merge_put put, void *ctx, weir_err *err);

#endif
