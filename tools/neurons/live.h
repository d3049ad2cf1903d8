/* neurons/live.h: a search that is fed by a run over text: all neurons of all layers in one pass.
 *
 *     weir_live l = {.session = &session, .sites = "post", ...};
 *     int code = weir_live_tables(&l);                       // behind weir_session_model
 *     weir_neurons_new(&s, &options, l.table, l.n_tables, &err);
 *     code = weir_live_attach(&l, s);                        // behind weir_session_run, before weir_session_prepare
 *     while (... weir_live_next(&l, &more, &err) == WEIR_OK && more) ...
 *     weir_live_free(&l);
 */
#ifndef WEIR_NEURONS_LIVE_H
#define WEIR_NEURONS_LIVE_H

#include "ask.h"
#include "cli/session.h"

/* Where a table's values come from. */
typedef struct weir_live_source {
    const weir_point *point;
    bool gate_act; /* the model's activation is applied to them first */
} weir_live_source;

typedef struct weir_live {
    weir_session *session;
    const char *sites, *layers; /* as on the command line; layers NULL: all */
    const weir_asks *asks;
    const weir_masks *masks;
    double max_norm_ratio; /* a row is left out if its hook_resid_pre of the layer has a norm above so many times the
                              median of the rows of its window; 0: none is */
    /* what it came to */
    weir_neurons_table *table; /* [n_tables] hook points in the order of sites asked for, then of layers */
    int n_tables;
    int64_t rows, kept; /* run, and asked for, so far */
    bool between;       /* no document is under way */
    /* inside */
    weir_neurons *s;
    weir_live_source *source; /* [n_tables] */
    const weir_batch *next;   /* fetched, not run yet */
    bool fetched;
    uint8_t *kind; /* [vocabulary] WEIR_MASK_* */
    uint8_t *mask; /* [rows of a pass] */
    uint8_t *skip; /* [rows of a pass] of the layer that is running, with max_norm_ratio */
    double *norm, *sorted;
    float *acted; /* gate-act: the rows of a pass */
    int64_t room, acted_room;
} weir_live;

/* Which hook points and units; needs the model. Returns an exit code; an error has been said. */
int weir_live_tables(weir_live *l);
/* The rows of a pass must hold whole windows where max_norm_ratio asks for medians: how many that are, at least. */
int64_t weir_live_batch(const weir_live *l, int64_t batch);
int weir_live_attach(weir_live *l, weir_neurons *s);
/* Runs one batch; *more = false: there was none. Afterwards l->between says whether what has been fed are whole
 * documents. */
WEIR_CHECKED weir_status weir_live_next(weir_live *l, bool *more, weir_err *err);
void weir_live_free(weir_live *l);

#endif
