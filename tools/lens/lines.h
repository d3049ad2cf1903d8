/* lens/lines.h: which places of the stream are shown, and in which order: the lines of a table, from the first layer to
 * the final row.
 *
 *   resid_post (without --site)   embed, L0, L1, ..., and out: the stream behind the last block, which is the final row
 *   other sites                   L0 mid, L1 mid, ...; the final row comes behind them all the same
 *
 * Several sites stand in the order of a block: pre, attn, mid, mlp, post. Where --layers names layers, embed is not
 * among them. A line that meets the norm in another way than the final row is a line of its own also in the last layer.
 */
#ifndef WEIR_TOOLS_LENS_LINES_H
#define WEIR_TOOLS_LENS_LINES_H

#include "cli/tool.h"
#include "view.h"

typedef struct weir_lens_choice {
    const char *sites;   /* "resid_post,attn_out"; hyphens are underscores */
    const char *layers;  /* "6", "0-3,7", "all"; NULL: all, as far as they are there */
    int64_t step;        /* every so many of these layers, and the last one */
    weir_lens_norm norm; /* of all lines but the final row */
    /* Are rows of this point there? NULL: they all are. */
    bool (*there)(void *ctx, const weir_point *p);
    void *ctx;
} weir_lens_choice;

typedef struct weir_lens_stack {
    weir_lens_line *line; /* [n] as view.h has them */
    int *source, *prev;   /* [n] index in point; index of the line that kl_prev compares with, or -1 */
    int n;
    const weir_point **point; /* [n_points] each once: whose rows are needed */
    int n_points;
    char (*name)[24]; /* [n] backing store */
} weir_lens_stack;

/* Returns an exit code; an error has been said. A named layer that is not there is left to the caller: it stands in
 * `point`. */
int weir_lens_stack_make(weir_lens_stack *s, const weir_cli *cli, const weir_model *m, const weir_lens_choice *c);
void weir_lens_stack_free(weir_lens_stack *s);
/* The stream behind the last block. */
const weir_point *weir_lens_last_point(const weir_model *m);

#endif
