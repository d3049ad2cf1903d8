/* cli/spill.h: what a run in the order of layers keeps on disk between two layers: the batches of a corpus, and for
 * each of their rows the residual stream. Everything lies in one directory, FILE.part.stream beside the dump:
 *
 *     batches    sequences, token ids, positions, kept rows: what weir_feed_next gave, without text and documents
 *     even, odd  the stream behind the parts 0, 2, 4, ... and 1, 3, 5, ... (weir_run_part): [rows, C] float32
 *
 * A part reads one file and writes the other, so that what it reads stays whole until the next part begins: a run that
 * is killed goes on in the part where it was. Numbers are the machine's own; the files never leave it. Reading and
 * writing are sequential, and pages are handed back to the system on the way.
 */
#ifndef WEIR_CLI_SPILL_H
#define WEIR_CLI_SPILL_H

#include "feed.h"

typedef struct weir_spill weir_spill;

typedef struct weir_spill_options {
    const char *dump; /* the dump's path; NULL: none, the directory is a temporary one */
    int64_t width;    /* C */
    int64_t batch;    /* rows of a batch at most */
    bool resume;      /* use what is there, if it belongs to this dump's .part (which exists) */
} weir_spill_options;

/* Makes the directory, or finds it. Memory: one batch without its stream. */
WEIR_CHECKED weir_status weir_spill_open(weir_spill **out, const weir_spill_options *o, weir_err *err);
/* keep: for going on later. NULL is fine. */
void weir_spill_close(weir_spill *s, bool keep);
/* Removes what an earlier run may have left beside this dump, which is complete. */
void weir_spill_forget(const char *dump);
/* Kept rows of the corpus before its first batch here: those that the dump had in full when the stream was begun. -1:
 * nothing is there to go on with. */
int64_t weir_spill_base(const weir_spill *s);

/* --- once: all batches, without those that have no rows */
WEIR_CHECKED weir_status weir_spill_put(weir_spill *s, const weir_batch *b, weir_err *err);
typedef struct weir_spill_sum {
    int64_t rows, kept;
} weir_spill_sum;
/* The corpus is whole. base: as above, if there is nothing to go on with. parts: of the run. Fails if the disk has no
 * room for the streams. *part: the first that is not through yet. */
WEIR_CHECKED weir_status weir_spill_fed(weir_spill *s, int64_t base, int64_t parts, int64_t *part, weir_err *err);
weir_spill_sum weir_spill_sum_of(const weir_spill *s);
/* Forgets the streams that are there: part 0 comes next. */
WEIR_CHECKED weir_status weir_spill_restart(weir_spill *s, weir_err *err);

/* --- each part, one after the other. kept: rows of the corpus that need not come again (-1: all have to come).
 * Batches are passed over that have only such rows, and whose stream is there already if the next part needs it, up to
 * the beginning of a window. *first: kept rows of the corpus before the first batch that comes. */
WEIR_CHECKED weir_status weir_spill_begin(weir_spill *s, int64_t part, int64_t kept, int64_t *first, weir_err *err);
/* *b = NULL at the end. Without documents; of `kept` only n. Valid until the next call. */
WEIR_CHECKED weir_status weir_spill_next(weir_spill *s, const weir_batch **b, weir_err *err);
/* The batch's stream: before the part (not for part 0), and behind it (not for the last part: nothing is written). */
WEIR_CHECKED weir_status weir_spill_read(weir_spill *s, float *x, weir_err *err);
WEIR_CHECKED weir_status weir_spill_write(weir_spill *s, const float *x, weir_err *err);
/* The stream behind the part is whole and on disk. */
WEIR_CHECKED weir_status weir_spill_end(weir_spill *s, weir_err *err);

#endif
