/* record/own.h: /hooks/HOOK/NAME: datasets that hooks declare for themselves. */
#ifndef WEIR_RECORD_OWN_H
#define WEIR_RECORD_OWN_H

#include <weir/record.h>

#include "progress.h"
#include "scale.h"
#include "tiled.h"

typedef struct weir_own {
    const weir_point *point; /* borrowed from the model; NULL: none */
    char *name;              /* "HOOK/NAME" */
    weir_tiled rows;
} weir_own;

/* The entry of /progress that counts rows of a dataset declared with this point (or NULL). */
void weir_own_entry(char out[WEIR_PROGRESS_NAME], const weir_point *point);

/* A row's axis and the columns' axis get their scales. */
WEIR_CHECKED weir_status weir_own_scales(const weir_own *o, weir_scales *s, int row_scale, weir_err *err);
void weir_own_close(weir_own *o);

#endif
