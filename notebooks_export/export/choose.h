/* export/choose.h: which kind of notebook shows a file. */
#ifndef WEIR_NOTEBOOK_CHOOSE_H
#define WEIR_NOTEBOOK_CHOOSE_H

#include "kind.h"

/* The kind of this name, or where it is NULL the one that suits the file best. Returns an exit code; an error has been
 * said. */
int weir_nb_choose(const weir_nb_kind **kind, const weir_cli *cli, const char *path, const char *name);

#endif
