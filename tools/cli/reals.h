/* cli/reals.h: a list of numbers that is one option's value: "1.5,3,-1". */
#ifndef WEIR_CLI_REALS_H
#define WEIR_CLI_REALS_H

#include "tool.h"

typedef struct weir_reals {
    double *v;
    int64_t n;
} weir_reals;

/* Numbers between commas, at least one. option: for the message, "--gate". Free out->v in every case. Returns an exit
 * code; an error has been said. */
int weir_cli_reals(const weir_cli *cli, const char *option, const char *text, weir_reals *out);
/* The same numbers as floats, *out to be freed in every case. */
int weir_cli_floats(const weir_cli *cli, const char *option, const weir_reals *x, float **out);

#endif
