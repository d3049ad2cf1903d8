/* io/outdir.h: a directory of files that appears whole or not at all: made as DIR.part beside its place, renamed. */
#ifndef WEIR_OUTDIR_H
#define WEIR_OUTDIR_H

#include <weir/base.h>

/* What a directory of a kind may hold. */
typedef struct weir_outdir_kind {
    const char *what;        /* "an edit", for messages */
    const char *const *file; /* names, ends with NULL */
} weir_outdir_kind;

/* May `dir` be written? ours: a directory that is there is one of ours, and is replaced if it holds nothing foreign.
 * An empty one, and none, are free. Otherwise WEIR_E_ARG says why. */
WEIR_CHECKED weir_status weir_outdir_may(const char *dir, const weir_outdir_kind *kind, bool ours, weir_err *err);

typedef struct weir_outdir weir_outdir;
/* Makes DIR.part, which must not be there, unless it holds only what a run that was killed left of such a directory. */
WEIR_CHECKED weir_status weir_outdir_open(weir_outdir **out, const char *dir, const weir_outdir_kind *kind,
                                          weir_err *err);
/* Fills the file of this name, and closes it. */
WEIR_CHECKED weir_status weir_outdir_put(weir_outdir *d, const char *name, void (*write)(void *ctx, FILE *out),
                                         void *ctx, weir_err *err);
const char *weir_outdir_part(const weir_outdir *d); /* the path of DIR.part, for files that are made otherwise */
/* From here on the new directory has the name, and one of ours that had it is gone. Frees d in every case. */
WEIR_CHECKED weir_status weir_outdir_commit(weir_outdir *d, weir_err *err);
/* Removes DIR.part and frees d. NULL is fine. */
void weir_outdir_abort(weir_outdir *d);

#endif
