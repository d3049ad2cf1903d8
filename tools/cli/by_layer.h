/* cli/by_layer.h: a corpus through a model layer by layer: all documents through one, then through the next, so that a
 * model larger than memory is read once a corpus and not once a batch (weir_run_part). In between the stream lies on
 * disk (cli/spill.h).
 *
 *     weir_by_layer l = {.run = run, .feed = feed, .dump = dump, ...};
 *     weir_by_layer_run(&l, &err);      // until the end, or a signal (weir_signals_seen)
 *     weir_by_layer_close(&l, keep);    // keep: what is on disk, for going on with the dump's .part
 *
 * First the text is read to its end and cut into batches; then each part of the model runs over all of them. A run that
 * goes on (--resume) reads the text again, but begins in the part, and at the window, where it was interrupted; parts
 * that were through are not run again. Where the stream is missing or another dump's, it begins with the first part,
 * and rows that the dump has are passed over.
 */
#ifndef WEIR_CLI_BY_LAYER_H
#define WEIR_CLI_BY_LAYER_H

#include "logprob.h"
#include "progress.h"
#include "spill.h"

typedef struct weir_by_layer {
    weir_cli *cli; /* for remarks */
    weir_run *run; /* by_layer, prepared */
    weir_feed *feed;
    weir_dump *dump;        /* NULL: nothing is recorded */
    const char *dump_path;  /* of --dump; NULL: likewise */
    int64_t batch;          /* rows of a batch at most */
    bool resume;            /* the dump goes on with a .part */
    weir_logprobs *logprob; /* NULL: not wanted. The dump is made with logprob_late */
    weir_progress *progress;
    /* Each batch of the text in order, before anything is run: its documents and tokens go to the dump. */
    weir_status (*fed)(void *ctx, const weir_batch *b, weir_err *err);
    void *ctx;
    /* what it came to */
    int64_t rows, kept; /* of the text as it was run: all rows; those that were asked for */
    int64_t base;       /* kept rows before those, which the dump had in full */
    /* inside */
    weir_spill *spill;
    int64_t parts, part;
} weir_by_layer;

/* A hook that stops the run (weir_run_enough, or WEIR_STOP from a value) is an error here: documents behind it would
 * have some layers and not others. */
WEIR_CHECKED weir_status weir_by_layer_run(weir_by_layer *l, weir_err *err);
void weir_by_layer_close(weir_by_layer *l, bool keep);

#endif
