/* rome/made.h: what edit.json says of an edit that weir made. */
#ifndef WEIR_ROME_MADE_H
#define WEIR_ROME_MADE_H

#include "cli/tool.h"
#include "numbers.h"

/* A request and what became of it. */
typedef struct weir_made_request {
    char *prompt, *subject, *target;
    weir_rome_numbers numbers;
    weir_rome_step *step; /* [steps] passes of the search */
    int64_t steps;
} weir_made_request;

typedef struct weir_made {
    weir_made_request *request; /* [n] */
    int64_t n;
    char **prefix; /* [n_prefixes] */
    int64_t n_prefixes;
    int64_t *layer; /* [n_layers] that it was made at, where edit.json says so */
    int64_t n_layers;
    bool bos; /* rows began with BOS */
} weir_made;

/* json: of weir_edit_about, of the directory dir. Returns an exit code; an error has been said: no edit.json, or one
 * without requests. weir_made_free in every case. */
int weir_made_read(weir_made *m, const weir_cli *cli, const char *dir, const char *json);
void weir_made_free(weir_made *m);

#endif
