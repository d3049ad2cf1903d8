/* export/execute.h: running a notebook with Jupyter. */
#ifndef WEIR_NOTEBOOK_EXECUTE_H
#define WEIR_NOTEBOOK_EXECUTE_H

#include "cli/tool.h"

/* Runs the cells of the notebook at `path` with jupyter-nbconvert, found in PATH, in the notebook's directory, and puts
 * the notebook with its outputs in its place, also if a cell failed: then the exit code is WEIR_EXIT_FAILED. Without
 * Jupyter the notebook stays as it is. An error has been said. timeout: seconds for each cell. */
int weir_nb_execute(const weir_cli *cli, const char *path, int64_t timeout);

#endif
