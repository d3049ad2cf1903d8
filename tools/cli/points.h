/* cli/points.h: a model's hook points as a table or as JSON. */
#ifndef WEIR_CLI_POINTS_H
#define WEIR_CLI_POINTS_H

#include "tool.h"

/* The points that sel matches: name, letters, shape of one row in numbers, in firing order. */
void weir_points_print(const weir_model *m, const weir_selector *sel, bool json, FILE *out);

#endif
