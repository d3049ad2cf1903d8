/* record/scale.h: dimension scales (HDF5 Dimension Scale Specification), written by hand: no need of libhdf5_hl.
 *
 * Scales are root datasets: /row, /unit_W, /head_H, /key_N. Declare every axis, then attach once, after all datasets
 * exist.
 */
#ifndef WEIR_SCALE_H
#define WEIR_SCALE_H

#include "h5.h"

typedef struct weir_scales {
    hid_t file;
    struct weir_scale *scale; /* [n] */
    int n;
} weir_scales;

/* A scale that exists already as dataset `id` (/row). Returns its index through *out. */
WEIR_CHECKED weir_status weir_scales_add(weir_scales *s, const char *name, hid_t id, int *out, weir_err *err);
/* The scale PREFIX_LENGTH ("unit_768"), made with values 0 .. length-1 if it is new. */
WEIR_CHECKED weir_status weir_scales_index(weir_scales *s, const char *prefix, int64_t length, int *out, weir_err *err);
/* Axis a of the dataset is measured by scale[a]. The dataset stays open until weir_scales_attach. */
WEIR_CHECKED weir_status weir_scales_use(weir_scales *s, hid_t dataset, int rank, const int *scale, weir_err *err);
/* Writes what ties scales to datasets. */
WEIR_CHECKED weir_status weir_scales_attach(weir_scales *s, weir_err *err);
/* HDF5's objects are given up, not closed. */
void weir_scales_forget(weir_scales *s);
void weir_scales_free(weir_scales *s);

#endif
