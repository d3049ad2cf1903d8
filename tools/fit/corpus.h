/* fit/corpus.h: a text that is run several times: its windows as token ids in memory (about 5 bytes a token), parted
 * into what a lens is trained on and what is held out.
 *
 *     weir_corpus c = {.rows = 300 * 512, .held_out = 0.1, .seed = 1};
 *     weir_corpus_read(&c, feed, &err);
 *     weir_corpus_pass p;
 *     weir_corpus_pass_begin(&p, &c, WEIR_CORPUS_TRAINING, epoch, batch, &err);
 *     while (weir_corpus_pass_next(&p)) {
 *         if (p.restart) weir_run_slot_reset(run, 0);
 *         weir_run_forward(run, p.seq, p.n_seq, flags, &err);
 *     }
 *     weir_corpus_pass_end(&p);
 *
 * A document is held out by a hash of its tokens and the seed, so that a text that comes twice is on one side only. Of
 * the text no more is read than gives the training rows that are asked for, and as many held-out rows in proportion. */
#ifndef WEIR_FIT_CORPUS_H
#define WEIR_FIT_CORPUS_H

#include "cli/feed.h"

enum { WEIR_CORPUS_TRAINING, WEIR_CORPUS_HELD_OUT, WEIR_CORPUS_SIDES };

/* Tokens that are run together. */
typedef struct weir_corpus_window {
    int64_t first, n;       /* in `id` */
    int64_t doc, total;     /* number of the document; its tokens */
    int64_t place, place_1; /* position in the document of its first token (-1: a BOS again) and of its second */
} weir_corpus_window;

typedef struct weir_corpus_side {
    int64_t *window; /* [n] in the order of the text */
    int64_t n, docs, rows; /* rows: kept ones */
} weir_corpus_side;

typedef struct weir_corpus {
    int64_t rows;    /* training rows that are needed */
    double held_out; /* share of the documents, in (0, 1) */
    uint64_t seed;
    /* what was read */
    int32_t *id;   /* [tokens] */
    uint8_t *keep; /* [tokens] */
    int64_t tokens;
    weir_corpus_window *window; /* [windows] */
    int64_t windows;
    weir_corpus_side side[WEIR_CORPUS_SIDES];
    bool whole; /* the text was read to its end */
} weir_corpus;

/* Ends early, with what was read so far, when a signal comes. */
WEIR_CHECKED weir_status weir_corpus_read(weir_corpus *c, weir_feed *feed, weir_err *err);
void weir_corpus_free(weir_corpus *c);

/* One pass over a side. */
typedef struct weir_corpus_pass {
    weir_seq *seq; /* [n_seq] of this batch */
    int64_t n_seq, rows;
    bool restart; /* seq[0] begins a window in slot 0 */
    /* inside */
    const weir_corpus *c;
    int64_t *order, n;  /* windows, in the order in which they come */
    int64_t at, within; /* the window that comes next, and its tokens that were given already */
    int64_t batch;
    int64_t *place; /* [batch] */
} weir_corpus_pass;

/* epoch < 0: in the order of the text; else shuffled, each epoch in its own way. batch: rows at most. */
WEIR_CHECKED weir_status weir_corpus_pass_begin(weir_corpus_pass *p, const weir_corpus *c, int side, int64_t epoch,
                                                int64_t batch, weir_err *err);
/* False: the pass is over. */
bool weir_corpus_pass_next(weir_corpus_pass *p);
void weir_corpus_pass_end(weir_corpus_pass *p);

#endif
