/* cli/attach.h: hooks and interventions on the command line, the same in every tool that runs a model.
 *
 *     weir_attach at = {0};
 *     int code = weir_attach_all(&at, cli, &args->attach, run);     // before the run is prepared
 *     ... weir_attach_json(&at) for a dump; run; weir_run_finish; weir_attach_say(&at, cli) ...
 *     weir_attach_free(&at);
 */
#ifndef WEIR_CLI_ATTACH_H
#define WEIR_CLI_ATTACH_H

#include "edits.h"

/* --hook --ablate --scale --add --set --patch --project-out */
typedef struct weir_attach_args {
    weir_opt_list hook, ablate, scale, add, set, patch, project_out;
} weir_attach_args;
extern const weir_opt_group weir_opts_attach;

/* One hook of the command line. */
typedef struct weir_attached_hook {
    const char *kind; /* the option of an intervention ("add", also where --hook steer was given), or the hook's name */
    const char *args; /* "SEL=VALUE"; NULL: none */
    bool declared;    /* an intervention: args are SEL=VALUE */
    int index;        /* in the run */
} weir_attached_hook;

typedef struct weir_attach {
    const weir_run *run;
    const weir_edits *edits;  /* of the run; NULL: none */
    weir_attached_hook *hook; /* [n] in the order of the command line */
    int n;
} weir_attach;

int weir_attach_count(const weir_attach_args *args);
/* Makes the hooks and attaches them in the order of the command line, whichever options they stand in. Returns an exit
 * code; an error, which names the option as typed, has been said. args and their texts must outlive `a`. */
int weir_attach_all(weir_attach *a, const weir_cli *cli, const weir_attach_args *args, weir_run *run);
void weir_attach_free(weir_attach *a);
/* There are hooks, and all of them change values: nobody listens. */
bool weir_attach_only_writes(const weir_attach *a);
/* What changes values, as the JSON array that a dump keeps (lib/record/README.md, `interventions`). Reads the files
 * that are named, up to 64 MiB each. To be freed; NULL when out of memory. */
char *weir_attach_interventions(const weir_attach *a);
/* That, and before it the edits of the run: all that makes its values others than the model's own. */
char *weir_attach_json(const weir_attach *a);
/* The built-in hooks with their arguments, for --help. */
void weir_attach_help(FILE *out);

/* How many rows each intervention has changed: a line each on stderr, or an array (the edits before them) as the value
 * that comes next. */
void weir_attach_say(const weir_attach *a, const weir_cli *cli);
void weir_attach_write(const weir_attach *a, weir_jsonw *w);

#endif
