/* cli/finished.h: a run that is asked to go on, and had already come to its end. */
#ifndef WEIR_CLI_FINISHED_H
#define WEIR_CLI_FINISHED_H

#include "tool.h"

/* shard: NULL for a run over the whole text. *done: PATH is there, complete, of this very run, and nothing is left
 * beside it that could be gone on with. A complete PATH of another run is an error, which is said: going on must not
 * replace it. Returns an exit code. */
int weir_dump_finished(bool *done, const weir_cli *cli, const char *path, const weir_model *m, const weir_selector *sel,
                       const weir_dump_options *o, const weir_docs_block *shard);

#endif
