/* cli/feed.h: documents -> tokens -> windows -> batches of rows, as every tool that runs a model on text needs them.
 *
 *     weir_feed *feed;
 *     weir_feed_new(&feed, tok, docs, &o, &err);
 *     const weir_batch *b;
 *     while (weir_feed_next(feed, &b, &err) == WEIR_OK && b) {
 *         if (b->restart) weir_run_slot_reset(run, 0);
 *         if (b->n_seq) weir_run_forward(run, b->seq, b->n_seq, flags, &err);
 *         ... b->doc, b->kept ...
 *     }
 *     weir_feed_free(feed);
 *
 * A document is cut into windows of at most ctx rows (BOS counted); the next window begins `stride` tokens of text
 * later. Windows of many documents are packed into one batch, whole and in document order. A window longer than a batch
 * is fed in pieces that follow one another in slot 0; then it has the batch for itself. Windows and ends of windows
 * that no kept row depends on are left out. Memory: one document (text and tokens) and one batch.
 */
#ifndef WEIR_CLI_FEED_H
#define WEIR_CLI_FEED_H

#include "common.h"

typedef struct weir_feed weir_feed;

typedef struct weir_feed_options {
    const weir_row_args *rows; /* borrowed: positions point into it */
    int64_t ctx;               /* tokens of a window at most: --ctx, or the model's context */
    int64_t batch;             /* rows of a batch at most */
    int64_t vocab;             /* ids are below this */
    weir_chat *chat;           /* documents are conversations; NULL: they are text. Borrowed */
    const char *system;        /* of a chat: the message of the system; NULL: none */
    bool whole;                /* a window with a kept row is run to its end, in one batch; a longer one is an error */
} weir_feed_options;

/* A document whose first kept row is `first` of this batch's (the same as the next document's: it has none here). Its
 * text is gone. */
typedef struct weir_batch_doc {
    weir_doc doc;
    const char *source;
    int64_t first;
    void *own;
} weir_batch_doc;

typedef struct weir_batch {
    const weir_seq *seq; /* [n_seq]; tag: number of the document in the whole text (it matters with --shard) */
    int64_t n_seq, rows;
    bool restart;          /* seq[0] begins a window in slot 0 */
    bool continues;        /* seq[0] goes on with the window of the last batch */
    const int32_t *target; /* [rows] token that follows in the window, -1 behind its last row */
    const weir_batch_doc
        *doc; /* documents that begin here, in order; rows before doc[0].first go on with the last document */
    int64_t n_docs;
    weir_token_rows kept;    /* the rows that were asked for; without logprob. doc: documents are counted from the first
                                one that was fed, whatever its number in the whole text */
    const int64_t *kept_row; /* [kept.n] their rows in the batch */
    const int32_t *kept_next; /* [kept.n] token that follows in the document, whether or not it is run; -1 at its end */
} weir_batch;

/* The stride in tokens of text that `rows` and ctx come to. Fails when tokens would be left out or a window has no room
 * for text. */
WEIR_CHECKED weir_status weir_feed_stride(const weir_row_args *rows, int64_t ctx, bool bos, int64_t *stride,
                                          weir_err *err);
/* Does the policy, for this tokenizer (NULL: there is none), put BOS before a document? Fails when it must and there is
 * none. */
WEIR_CHECKED weir_status weir_feed_bos(const weir_row_args *rows, const weir_tokenizer *tok, bool *bos, weir_err *err);

/* A copy of doc without its text and ids, which lasts until its `own` is freed. False: out of memory. */
bool weir_batch_doc_take(weir_batch_doc *to, const weir_doc *from, const char *source);

/* tok and docs are borrowed; tok may be NULL when the documents are token ids. */
WEIR_CHECKED weir_status weir_feed_new(weir_feed **out, const weir_tokenizer *tok, weir_docs *docs,
                                       const weir_feed_options *o, weir_err *err);
void weir_feed_free(weir_feed *f);
/* The tokens of a document, as the feed has them, without BOS, into out (weir_tokens_free). For tools that read the
 * documents themselves. */
WEIR_CHECKED weir_status weir_feed_tokens(weir_feed *f, const weir_doc *doc, const char *source, weir_tokens *out,
                                          weir_err *err);
/* Before the first batch: the first `rows` kept rows are passed over, as if nobody had asked for them; their documents
 * are announced all the same. What a resumed run does. */
void weir_feed_skip(weir_feed *f, int64_t rows);
/* *b = NULL at the end. Valid until the next call. A batch may have documents and no rows. */
WEIR_CHECKED weir_status weir_feed_next(weir_feed *f, const weir_batch **b, weir_err *err);

typedef struct weir_feed_counts {
    int64_t docs;
    int64_t tokens;     /* of the documents, BOS once each */
    int64_t lost_bytes; /* bytes of text that the vocabulary cannot hold */
    int64_t lost_docs;  /* documents with such bytes */
} weir_feed_counts;
weir_feed_counts weir_feed_counts_of(const weir_feed *f);
/* Share of the work done in [0, 1], or -1 when unknown. */
double weir_feed_progress(const weir_feed *f);

#endif
