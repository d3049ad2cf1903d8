/* neurons/dump.h: a search that is fed from a dump of `weir trace` instead of a run: the same rows give the same bytes.
 *
 *     weir_neurons_dump *d;
 *     int code = weir_neurons_dump_open(&d, cli, &o);            // which hook points and units
 *     weir_neurons_new(&s, &options, weir_neurons_dump_tables(d, &n), n, &err);
 *     weir_neurons_dump_vocab(d, s, &err);
 *     weir_neurons_dump_feed(d, s, progress, &err);              // WEIR_STOP: a signal
 *     weir_neurons_dump_about(d, &about); ... weir_neurons_finish, weir_neurons_write ...
 *     weir_neurons_dump_close(d);
 *
 * Memory: one block of rows and one of the reader's tiles, however long the dump is. Where few units are asked for only
 * their tiles are read; else each hook is streamed once, one after the other. An unfinished dump (NAME.part) is read as
 * far as all its hooks have rows, with a remark.
 */
#ifndef WEIR_NEURONS_DUMP_H
#define WEIR_NEURONS_DUMP_H

#include "cli/progress.h"

/* A neuron by number. */
typedef struct weir_neuron_ask {
    int layer; /* -1: in every layer that is chosen */
    int64_t unit;
} weir_neuron_ask;

typedef struct weir_neurons_dump_options {
    const char *path;
    const char *sites;          /* "post", "gate-act,resid_post", or names of hook points; NULL: post */
    const char *layers;         /* "6", "0-3,7", "all"; NULL: all that are recorded */
    const weir_neuron_ask *ask; /* [n_ask]; n_ask 0: every recorded unit */
    int64_t n_ask;
    const weir_model *model;   /* gate-act applies its activation; NULL: there is none */
    const weir_tokenizer *tok; /* knows BOS and special tokens that the dump's rows do not show; NULL: there is none */
    bool mask_bos, mask_special;
    const int32_t *mask_id; /* [n_mask_ids] */
    int n_mask_ids;
    double max_norm_ratio; /* rows are left out whose hook_resid_pre of the layer has a norm above so many times the
                              median of their window's recorded rows; 0: none are. That point must have been recorded */
    bool whole;            /* whole rows are needed (correlations): units that were not recorded become NaN */
    int threads;           /* 0: all processors */
    const char *kernel;
} weir_neurons_dump_options;

typedef struct weir_neurons_dump weir_neurons_dump;

/* Returns an exit code; an error has been said, in one line that names the file. What o points to must outlive *out. */
int weir_neurons_dump_open(weir_neurons_dump **out, const weir_cli *cli, const weir_neurons_dump_options *o);
void weir_neurons_dump_close(weir_neurons_dump *d); /* NULL is fine */
/* In the order of sites asked for, then of layers. Borrowed. */
const weir_neurons_table *weir_neurons_dump_tables(const weir_neurons_dump *d, int *n);
/* Tokens of the vocabulary; 0 for a dump of bare ids. */
int64_t weir_neurons_dump_vocabulary(const weir_neurons_dump *d);
/* An HDF5 file that is no result of a search: what is wrong with it weir_neurons_dump_open says. */
bool weir_neurons_is_dump(const char *path);

/* The dump's own vocabulary. */
WEIR_CHECKED weir_status weir_neurons_dump_vocab(weir_neurons_dump *d, weir_neurons *s, weir_err *err);
/* All rows. p may be NULL. WEIR_STOP: a signal came; what was fed is whole hook by hook, not row by row: no result. */
WEIR_CHECKED weir_status weir_neurons_dump_feed(weir_neurons_dump *d, weir_neurons *s, weir_progress *p, weir_err *err);
/* What the dump says of its model and interventions; source: how its text was chosen and cut (weir_session_identity),
 * "" if the file does not say. Borrowed from d. */
void weir_neurons_dump_about(weir_neurons_dump *d, weir_neurons_about *about);

#endif
