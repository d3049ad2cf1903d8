/* neurons/diff.h: `weir diff` of two results of neuron-top. */
#ifndef WEIR_NEURONS_DIFF_H
#define WEIR_NEURONS_DIFF_H

#include "cli/tool.h"

/* Prints where the results differ, as text or as one JSON object. WEIR_EXIT_OK: nowhere; WEIR_EXIT_FALSE: somewhere;
 * WEIR_EXIT_FAILED: a file cannot be read, which has been said. */
int weir_results_diff(const weir_cli *cli, const char *const path[2], bool json);

#endif
