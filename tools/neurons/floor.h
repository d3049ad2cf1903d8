/* neurons/floor.h: lists of lowest values that tell nothing. GELU and its like have a minimum (GELU: -0.17, where its
 * input is -0.75): wherever a neuron does not fire, values lie close to it, and the lowest ones are those that lie
 * there by chance.
 *
 * Which function a result's model has, the result does not say; values do: none lies below the minimum of the function,
 * and more than half of the lists lie within 0.001 of it. */
#ifndef WEIR_NEURONS_FLOOR_H
#define WEIR_NEURONS_FLOOR_H

#include "view.h"

enum { WEIR_FLOORS = 4 }; /* functions that are known */

/* Zero it. */
typedef struct weir_floor {
    int64_t lists, at[WEIR_FLOORS]; /* lists seen; those that lie at each function's minimum */
    bool below[WEIR_FLOORS];        /* some value is lower than that */
} weir_floor;

/* A list of lowest values of a neuron of this hook point: its first and its last one. */
void weir_floor_add(weir_floor *f, const weir_neurons_table *table, double lowest, double last);
/* Says, if it is so, that these lists lie at the minimum of a function. */
void weir_floor_say(const weir_floor *f, const weir_cli *cli);

#endif
