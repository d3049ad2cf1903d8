/* record/act.h: /activations/HOOK NAME: the rows of one hook point. */
#ifndef WEIR_ACT_H
#define WEIR_ACT_H

#include <weir/hook.h>

#include "scale.h"
#include "tiled.h"

/* What is stored of a value. */
typedef struct weir_storage {
    int mantissa; /* bits that are kept; 0: all */
    bool f16;
} weir_storage;

typedef struct weir_act {
    char *name;
    weir_site site;
    int layer;
    int64_t heads,
        size; /* of a row as it is stored, before units are chosen; scores and pattern: size = the dump's ctx */
    int64_t point_size; /* the point's own size: what unit indices count in */
    bool keyed;         /* scores, pattern: the last axis is the key position, as long as the pass needs */
    bool rank3;
    int64_t *units; /* [n_units] or NULL: all */
    int64_t n_units;
    float fill;
    weir_storage storage;
    float *wide; /* f16: room for one row, where rows are put together first */
    int group;   /* entry of /progress */
    weir_tiled rows;
} weir_act;

/* What is recorded of a point: units [n] ascending, or n = -1: all. ctx: keys of scores and pattern. Zero a before;
 * close in every case. */
WEIR_CHECKED weir_status weir_act_init(weir_act *a, const weir_point *p, const int64_t *units, int64_t n, int64_t ctx,
                                       const weir_storage *storage, weir_err *err);
/* Creates the dataset in `group` with its attributes. */
WEIR_CHECKED weir_status weir_act_create(weir_act *a, hid_t group, const weir_point *p, const weir_tile_writer *w,
                                         weir_err *err);
/* Opens the one that is there; it has to be of the same shape and units. */
WEIR_CHECKED weir_status weir_act_open(weir_act *a, hid_t group, const weir_tile_writer *w, weir_err *err);
WEIR_CHECKED weir_status weir_act_scales(const weir_act *a, weir_scales *s, int row_scale, weir_err *err);
/* Appends the rows whose keep is set. */
WEIR_CHECKED weir_status weir_act_append(weir_act *a, weir_tile_writer *w, const weir_value *v, weir_err *err);
void weir_act_close(weir_act *a);

#endif
