/* neurons/heat.h: colours of a terminal. Values: red for positive ones, blue for negative ones, the stronger the larger
 * their magnitude. Foreground and background are always set together, so that text can be read on light and dark
 * terminals. */
#ifndef WEIR_NEURONS_HEAT_H
#define WEIR_NEURONS_HEAT_H

#include "view.h"

/* Begins text of value x, -1 .. 1 (others are cut to that, NaN is 0). False: nothing was begun, because there are no
 * colours, or the value is too near to 0. */
bool weir_heat_begin(FILE *out, weir_colour colour, double x);
/* Begins bold or faint text, where there are colours. */
void weir_bold_begin(FILE *out, weir_colour colour);
void weir_faint_begin(FILE *out, weir_colour colour);
/* Ends whatever was begun. */
void weir_colour_end(FILE *out, weir_colour colour);

#endif
