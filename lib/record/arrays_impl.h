/* record/arrays_impl.h: what arrays.c and arrays_read.c share. */
#ifndef WEIR_ARRAYS_IMPL_H
#define WEIR_ARRAYS_IMPL_H

#include "arrays.h"
#include "h5.h"

hid_t weir_array_h5_type(weir_array_type t); /* HDF5's own id: not to be closed */
H5T_class_t weir_array_h5_class(weir_array_type t);

#endif
