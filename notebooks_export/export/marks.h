/* export/marks.h: is a notebook as weir wrote it? Its metadata has a hash over its cells. */
#ifndef WEIR_NOTEBOOK_MARKS_H
#define WEIR_NOTEBOOK_MARKS_H

#include "cli/tool.h"

/* What the hash is over: whatever else a program adds to a cell, this is what its reader wrote. type: "code". */
void weir_nb_put_hashed(FILE *out, const char *type, const char *source, size_t n);
/* May `out` become a notebook? What is there must be a notebook of weir's, with its cells as weir wrote them. Returns
 * an exit code; an error has been said. */
int weir_nb_notebook_free(const weir_cli *cli, const char *out);

#endif
