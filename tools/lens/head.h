/* lens/head.h: what an output is about, as one line of JSON: README.md lists the keys. */
#ifndef WEIR_TOOLS_LENS_HEAD_H
#define WEIR_TOOLS_LENS_HEAD_H

#include "view.h"

/* One object and a line break; schema: "weir-lens/1". */
void weir_lens_head(FILE *out, const char *schema, const weir_lens_about *a);

/* Two of its keys: "stats", the names of those that were computed; "lines", an object each, in which `name` is the key
 * of the line's name. */
void weir_lens_put_stats(weir_jsonw *w, const weir_lens_about *a);
void weir_lens_put_lines(weir_jsonw *w, const char *name, const weir_lens_about *a);

#endif
