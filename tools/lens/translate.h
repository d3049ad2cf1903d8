/* lens/translate.h: --tuned: lines whose rows pass through a translator first (weir/tuned.h). */
#ifndef WEIR_TOOLS_LENS_TRANSLATE_H
#define WEIR_TOOLS_LENS_TRANSLATE_H

#include "lines.h"

typedef struct weir_lens_translate {
    weir_tuned *lens; /* owned; NULL: the plain lens, and nothing below is there */
    char *title;      /* "tuned lens of DIR (how its SHA-256 begins)" */
    float **row;      /* [lines][room,C] translated rows; NULL where a line has no translator: the final row */
} weir_lens_translate;

/* Opens the lens in dir, which must have a translator for every line but the final row. Returns an exit code; an error
 * has been said. */
int weir_lens_translate_open(weir_lens_translate *t, const weir_cli *cli, const char *dir, const weir_model *m,
                             const weir_lens_stack *s, const weir_tuned_options *o);
/* Memory for batches of `room` positions. */
WEIR_CHECKED weir_status weir_lens_translate_room(weir_lens_translate *t, const weir_lens_stack *s, int64_t room,
                                                  weir_err *err);
/* The rows [n,C] of a line as the lens reads them: x itself, or x translated. */
WEIR_CHECKED weir_status weir_lens_translate_rows(weir_lens_translate *t, const weir_lens_stack *s, int line,
                                                  const float **x, int64_t n, weir_err *err);
void weir_lens_translate_close(weir_lens_translate *t, const weir_lens_stack *s);

#endif
