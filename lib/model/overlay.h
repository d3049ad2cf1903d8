/* model/overlay.h: the updates of an edit (weir/edit.h) as the forward pass and its backward apply them. */
#ifndef WEIR_OVERLAY_H
#define WEIR_OVERLAY_H

#include <weir/edit.h>

#include "../kernels/kernels.h"

/* One update, packed: y += (x U^T) V. */
typedef struct weir_overlay {
    const weir_update *update;
    weir_panels *u; /* in -> r */
    weir_panels *v; /* r -> out */
} weir_overlay;

/* x [r,width] as panels: from its width to r, or (turned) from r to it. */
WEIR_CHECKED weir_status weir_overlay_pack(weir_panels **out, const float *x, int64_t r, int64_t width, bool turned,
                                           weir_err *err);
/* What the edit does to a matrix of a layer; NULL: nothing. */
const weir_overlay *weir_edit_overlay(const weir_edit *e, int64_t layer, weir_matrix m);
/* The largest r of its updates, and the most outputs that a matrix has which it changes. */
int64_t weir_edit_rank(const weir_edit *e);
int64_t weir_edit_width(const weir_edit *e);
/* What weir_edit_about_of returns from now on: a copy. */
WEIR_CHECKED weir_status weir_edit_set_about(weir_edit *e, const weir_edit_about *about, weir_err *err);

#endif
