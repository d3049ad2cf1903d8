/* cli/from.h: a dump of weir trace instead of a text: --from DUMP.h5, or the operand. */
#ifndef WEIR_CLI_FROM_H
#define WEIR_CLI_FROM_H

#include "tool.h"

/* Which dump the command line names: from (the option's value, or NULL), or the only operand, if it is an HDF5 file.
 * *dump = NULL: none, it is a text. Returns an exit code; an error has been said. */
int weir_from_dump(const weir_cli *cli, const char *from, const char **dump);
/* With a dump: refuses options about a run over text, which it can no longer follow. */
int weir_from_check(const weir_cli *cli, const char *dump);

#endif
