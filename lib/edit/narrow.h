/* edit/narrow.h: numbers as a checkpoint stores them: rounded once, to nearest even. */
#ifndef WEIR_EDIT_NARROW_H
#define WEIR_EDIT_NARROW_H

#include <weir/tensor.h>

/* Stores x (finite) at dst as F32, F16 or BF16, and returns the number that is stored then: infinite where x is too
 * large. */
double weir_narrow(weir_dtype t, double x, void *dst);

#endif
