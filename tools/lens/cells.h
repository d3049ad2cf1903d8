/* lens/cells.h: from rows of the stream to what the sinks show: a batch of positions is measured at once, and handed
 * over document by document.
 *
 *     weir_lens_cells c = {.stack = &stack, .about = &about, ...};
 *     weir_lens_cells_open(&c, model, kernel, threads, &err);
 *     ... copy rows of point i to c.row[i]; fill c.doc, c.pos, c.id, c.next; c.n positions, at most c.room ...
 *     weir_lens_cells_put(&c, document_ends, &err);
 *     weir_lens_cells_close(&c);
 *
 * Memory: about 64 MiB for rows and results, however long the text is, and what weir_lens_measure takes.
 */
#ifndef WEIR_TOOLS_LENS_CELLS_H
#define WEIR_TOOLS_LENS_CELLS_H

#include "cli/target.h"
#include "lines.h"
#include "translate.h"

/* Which of the targets that are measured a statistic reads. */
enum { WEIR_ASK_OWN, WEIR_ASK_RANK, WEIR_ASK_CE, WEIR_ASK_A, WEIR_ASK_B, WEIR_ASKS };

typedef struct weir_lens_cells {
    /* what is asked for; borrowed */
    const weir_lens_stack *stack;
    const weir_lens_about *about;  /* k, has, padding */
    weir_lens_norm norm;           /* of all lines but the final row */
    weir_lens_translate translate; /* what rows pass through first; opened by the caller, closed here */
    int32_t target, contrast[2];   /* as cli/target.h has them; WEIR_TARGET_NONE: none */
    weir_lens_sink *const *sink;   /* [n_sinks] */
    int n_sinks;
    /* a batch, filled in by the caller */
    int64_t room, n;
    float **row;   /* [n_points][room, C] */
    int64_t *doc;  /* [room] ascending */
    int64_t *pos;  /* [room] */
    int32_t *id;   /* [room] */
    int32_t *next; /* [room] -1: none */
    /* what it came to */
    int64_t cells, lost; /* in all; those whose logits are not finite */
    /* inside */
    weir_lens *lens;
    int64_t C, vocab;
    int32_t ask[WEIR_ASKS]; /* what each is */
    int column[WEIR_ASKS];  /* its place among the targets */
    int n_targets;
    weir_lens_row *what;                        /* [lines] */
    int32_t *asked;                             /* [room, n_targets] */
    weir_lens_out out;                          /* [lines, room, ...] */
    int32_t *shown;                             /* [room] weir_lens_piece.target */
    float *stat[WEIR_STAT_COUNT], *top_logprob; /* of one piece */
    int32_t *top_id;
    bool begun;
    int64_t last_doc; /* -1: there was none */
} weir_lens_cells;

/* Positions of a batch that fit into the bound; at least 1. tuned: lines have rows of their own. */
int64_t weir_lens_cells_room(const weir_lens_stack *s, const weir_model *m, int64_t k, bool tuned);
/* Allocates a batch of c->room positions. Close in every case. */
WEIR_CHECKED weir_status weir_lens_cells_open(weir_lens_cells *c, const weir_model *m, const char *kernel, int threads,
                                              weir_err *err);
/* Measures the batch, hands it over, and empties it. ends: no more rows come of the last document. */
WEIR_CHECKED weir_status weir_lens_cells_put(weir_lens_cells *c, bool ends, weir_err *err);
/* Begins the sinks, unless that is done: what the first rows do, so that a run that has none writes nothing. */
WEIR_CHECKED weir_status weir_lens_cells_begin(weir_lens_cells *c, weir_err *err);
/* Can an output not be written any more? More rows would be in vain. */
bool weir_lens_cells_vain(const weir_lens_cells *c);
void weir_lens_cells_close(weir_lens_cells *c);

#endif
