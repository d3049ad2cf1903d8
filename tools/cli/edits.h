/* cli/edits.h: --edit DIR: edits of a model's weights on the command line, the same in every tool that runs a model. */
#ifndef WEIR_CLI_EDITS_H
#define WEIR_CLI_EDITS_H

#include "tool.h"

/* --edit */
typedef struct weir_edit_args {
    weir_opt_list dir;
} weir_edit_args;
extern const weir_opt_group weir_opts_edit;

/* The edits of one command line, in its order, which is the order in which they are applied. */
typedef struct weir_edits {
    weir_edit **edit; /* [n] */
    int n;
} weir_edits;

/* Opens them for the model. Returns an exit code; an error has been said. An edit of another model is refused, unless
 * the tool has --force and it is given. */
int weir_edits_open(weir_edits *e, const weir_cli *cli, const weir_edit_args *args, const weir_model *m);
/* Says why weir_edit_open failed, and that --force would help where the edit is of another model. Returns its code. */
int weir_edits_fail(const weir_cli *cli, const weir_err *err);
void weir_edits_free(weir_edits *e);

/* One object {kind "edit", dir, sha256, method, fingerprint} for each edit, within an array; of a directory's path its
 * last part. e may be NULL. */
void weir_edits_write(const weir_edits *e, weir_jsonw *w);
/* All as a JSON array, as dumps keep it (lib/record/README.md, `edits`). To be freed; NULL: out of memory. */
char *weir_edits_json(const weir_edits *e);
/* Are they those that a run's changes name (weir_attach_json, weir_from_changes), by contents and in this order? */
bool weir_edits_are(const weir_edits *e, const char *json);

#endif
