/* record/arrays_impl.h: what the arrays*.c share. */
#ifndef WEIR_ARRAYS_IMPL_H
#define WEIR_ARRAYS_IMPL_H

#include <weir/arrays.h>

#include "compress.h"
#include "infile.h"
#include "inflate.h"
#include "part.h"

hid_t weir_array_h5_type(weir_array_type t); /* HDF5's own id: not to be closed */
H5T_class_t weir_array_h5_class(weir_array_type t);

/* --- writing */

struct weir_arrays_out {
    weir_partfile out;
    hid_t file;
    int threads;
    /* room to pack chunks, made by the first array that has elements */
    weir_packer **packer; /* [threads] */
    uint8_t *plain;       /* [threads] a shuffled chunk */
    uint8_t *packed;      /* [slots, bound] */
    size_t *packed_bytes; /* [slots] */
    int slots;
    size_t bound;
};

WEIR_CHECKED weir_status weir_arrays_check_name(const char *name, weir_err *err);
/* The group that name's last part lies in: open, to be closed; *last: that part. -1: it cannot be had. */
hid_t weir_arrays_parent(hid_t file, const char *name, const char **last);

/* --- reading */

struct weir_arrays_in {
    weir_infile file;
    unsigned long fileno;
    /* room for a chunk, made by the first that is read, and grown */
    weir_inflater *inflater;
    uint8_t *packed, *shuffled, *plain;
    size_t packed_bytes, chunk_bytes;
};

/* What lies at a path, open, to be closed; -1: it is not there. */
hid_t weir_arrays_object(const weir_arrays_in *r, const char *name);

#endif
