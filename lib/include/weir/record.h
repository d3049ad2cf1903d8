/* weir/record.h: dumps: HDF5 files of activations, written row by row and read back. lib/record/README.md has the
 * schema.
 *
 * Writing: create, declare everything, then rows; the file is PATH.part until weir_dump_commit renames it.
 *
 *     weir_dump *d;
 *     weir_dump_options o; weir_dump_options_init(&o);
 *     weir_dump_create(&d, "mlp.h5", model, tok, &o, &err);
 *     weir_dump_select(d, selector, &err);                 // which hook points, which units
 *     weir_run_hook_object(run, weir_hook_class_find("record"), d, &err);
 *     ... for each pass: weir_run_forward, weir_dump_doc, weir_dump_tokens for the kept rows, weir_dump_flush ...
 *     weir_dump_commit(d, &summary, &err);
 *
 * All calls on one dump come from one thread; compression uses threads inside.
 */
#ifndef WEIR_RECORD_H
#define WEIR_RECORD_H

#include "hook.h"
#include "text.h"
#include "tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_dump weir_dump;

typedef struct weir_dump_options {
    int compress;        /* deflate level 0..9; default 1 */
    int threads;         /* 0: all processors */
    bool force;          /* replace an existing PATH.part (an existing PATH is replaced only if it is a dump) */
    bool logprob;        /* write /tokens/logprob */
    bool logprob_late;   /* ... by weir_dump_logprobs, not with the tokens */
    int64_t ctx, stride; /* recorded as attributes */
    const char *bos;     /* "yes" or "no" */
    const char *command_line;
    const char *interventions; /* JSON text: an array of what changes values in the run; NULL: "[]" */
    const char *edits;         /* JSON text: an array of the edits of its weights (weir/edit.h); NULL: "[]" */
    const char *kernel;        /* table in use */
    int run_threads;
    bool hash_full;   /* fingerprint over all bytes */
    bool from_passes; /* documents and tokens come from the passes themselves: see weir_dump_pass */
    int mantissa;     /* bits of the mantissa that are kept of recorded values, rounded to nearest even: 7, 10, or 0: all */
    bool f16;         /* recorded values are stored as 16-bit floats, rounded to nearest even; not with mantissa */
    bool resume;      /* go on with PATH.part, if it exists: see "Going on" below */
    const char *run_options; /* any text of what else decides the rows (sources and their sizes, positions, shard), the
                                caller's own: kept as an attribute, and has to be the same on resume; NULL: "" */
    weir_log log;            /* remarks: that the file system knows no locks, what was repaired */
} weir_dump_options;
WEIR_API void weir_dump_options_init(weir_dump_options *o);

/* tok may be NULL: an empty /vocab. m is borrowed until weir_dump_select has been called, tok not at all. Refused
 * (WEIR_E_ARG): a PATH that exists and is no dump; a PATH.part that exists, without force or resume. */
WEIR_API WEIR_CHECKED weir_status weir_dump_create(weir_dump **out, const char *path, const weir_model *m,
                                                   const weir_tokenizer *tok, const weir_dump_options *o,
                                                   weir_err *err);
/* Declares the datasets, before the first document or row; may be called again with other points. sel is not kept. A
 * position in brackets is refused. */
WEIR_API WEIR_CHECKED weir_status weir_dump_select(weir_dump *d, const weir_selector *sel, weir_err *err);

/* One document begins: its rows follow. source is the name from weir_docs_source. Documents are numbered from 0 in the
 * order of these calls, whatever doc->index says; several may begin before the first one's rows come. The first one
 * fixes names and types of fields. */
WEIR_API WEIR_CHECKED weir_status weir_dump_doc(weir_dump *d, const weir_doc *doc, const char *source, weir_err *err);

/* Columns of /tokens for n rows, [n] each; logprob may be NULL (then NaN). doc: numbers of documents that have begun,
 * never less than in the row before. */
typedef struct weir_token_rows {
    int64_t n;
    const int32_t *id;
    const int64_t *doc, *pos, *ctx_pos, *byte_off, *byte_len;
    const uint8_t *flags;
    const float *logprob;
} weir_token_rows;
WEIR_API WEIR_CHECKED weir_status weir_dump_tokens(weir_dump *d, const weir_token_rows *t, weir_err *err);

/* Log-probabilities of the next n rows, where they become known only after the rows (options.logprob_late). */
WEIR_API WEIR_CHECKED weir_status weir_dump_logprobs(weir_dump *d, const float *logprob, int64_t n, weir_err *err);

/* Datasets of a hook's own: /hooks/HOOK/NAME [rows, width], one row for each row of /tokens; chunked, compressed and
 * resumed like the others. Declared before the first document or row, from the hook's on_dump. point: the rows are
 * complete when those of this hook point are; NULL: at the end of a pass. *id is the number to append with. */
typedef enum { WEIR_DUMP_F32, WEIR_DUMP_I32, WEIR_DUMP_I64, WEIR_DUMP_U8 } weir_dump_type;
WEIR_API WEIR_CHECKED weir_status weir_dump_own_new(weir_dump *d, const char *hook, const char *name,
                                                    const weir_point *point, weir_dump_type type, int64_t width, int *id,
                                                    weir_err *err);
/* n rows [n, width] of the type that was declared, for the next rows that are kept. */
WEIR_API WEIR_CHECKED weir_status weir_dump_own_append(weir_dump *d, int id, const void *rows, int64_t n,
                                                       weir_err *err);

/* Appends the kept rows of a hook's value. What the `record` hook calls. */
WEIR_API WEIR_CHECKED weir_status weir_dump_value(weir_dump *d, const weir_value *v, weir_err *err);
WEIR_API weir_want weir_dump_wants(const weir_dump *d, const weir_point *p);

/* A dump that needs no driver (options.from_passes), for programs that only run passes: at the beginning of each pass
 * the `record` hook hands over the rows, and documents and tokens are made of them: a document for each new
 * weir_seq.tag (its number kept in /docs/fields/tag), pos = ctx_pos = position in the sequence, byte_off -1, byte_len
 * 0. Tags must not fall. Does nothing without from_passes. */
WEIR_API WEIR_CHECKED weir_status weir_dump_pass(weir_dump *d, const weir_rows *rows, weir_err *err);
/* What the hook calls at the end of the run: with from_passes the file is completed as by weir_dump_commit, but d lives
 * on until weir_dump_abort frees it. Does nothing without from_passes. */
WEIR_API WEIR_CHECKED weir_status weir_dump_finish(weir_dump *d, weir_err *err);

/* To be called after every batch: makes what is whole safe against a kill of the process, and visible to programs that
 * follow the file (h5py: File(..., "r", libver="latest", swmr=True), then refresh() of a dataset). Rows are written in
 * tiles of 1024 (64 for scores, pattern and result); where none was filled since the last call this costs nothing. */
WEIR_API WEIR_CHECKED weir_status weir_dump_flush(weir_dump *d, weir_err *err);
/* No row of this point's layer comes any more (p NULL: of /tokens): what is still in memory of it is written and leaves
 * memory, so that no kill loses it. For runs in the order of layers, behind each layer. */
WEIR_API WEIR_CHECKED weir_status weir_dump_settle(weir_dump *d, const weir_point *p, weir_err *err);

/* --- Going on with an unfinished dump (options.resume)
 *
 * weir_dump_create opens PATH.part, repairs it if a kill left it open, and checks that model, tokenizer, options and
 * run_options are the same; weir_dump_select and weir_dump_own_new then check that the hook points are. What differs is
 * named (WEIR_E_ARG). Where PATH.part does not exist a new file is begun. Then
 *   - weir_dump_rows_done says up to where every dataset has its rows. The caller may run rows again that are already
 *     there, such as the beginning of a batch, or all of them;
 *   - weir_dump_seek(d, NULL, row) and weir_dump_seek(d, point, row) say which row comes next for /tokens and for a
 *     point, if it is not weir_dump_rows_done. Rows that are there are passed over;
 *   - weir_dump_doc is called for all documents, from the first one on. Those that are there are compared.
 * An id or a document that differs from what the file holds is an error (WEIR_E_ARG): the text has changed. When the
 * run is through, every dataset equals, byte for byte, that of a run that was not interrupted. */
WEIR_API int64_t weir_dump_rows_done(const weir_dump *d); /* 0 for a new file */
/* Rows that all datasets of this point's layer have; -1: nothing of it is recorded. */
WEIR_API int64_t weir_dump_point_rows(const weir_dump *d, const weir_point *p);
/* p NULL: /tokens and datasets of hooks that were declared without a point; otherwise the dataset of p and those
 * declared with it. Fails if row is beyond the rows that are there. */
WEIR_API WEIR_CHECKED weir_status weir_dump_seek(weir_dump *d, const weir_point *p, int64_t row, weir_err *err);

/* What weir_dump_repair found and did. */
typedef struct weir_dump_report {
    bool complete; /* the run had ended well: nothing to do */
    bool open;     /* a kill had left the file open: it was closed */
    bool blank;    /* with an error: the run was killed while it made the file, before any row */
    int64_t rows;  /* that all datasets have */
    int64_t most;  /* that some of them have */
    int64_t docs;  /* documents */
    int64_t cut;   /* datasets that were longer than what is surely whole */
} weir_dump_report;
/* Makes an unfinished dump that a kill left (PATH.part) readable for every HDF5 program, without losing a row that was
 * flushed: each dataset is cut to what /progress says is whole. `complete` stays 0. Repairing again changes nothing.
 * Refused: files that are not ours, that another process writes, or that cannot be saved. report may be NULL. */
WEIR_API WEIR_CHECKED weir_status weir_dump_repair(const char *path, weir_dump_report *report, weir_err *err);

enum { WEIR_DROPPED_NAMES = 4 };
typedef struct weir_dump_summary {
    int64_t rows, docs, datasets;
    int64_t raw_bytes; /* fp32 activations */
    int64_t file_bytes;
    int64_t dropped_fields; /* fields of documents that were new or of another type than in the first document */
    char dropped_name[WEIR_DROPPED_NAMES][48]; /* the first of their names, cut to fit; "": there are no more */
} weir_dump_summary;
/* Checks that every dataset has the same number of rows, writes the tail, sets complete = 1, renames. Frees d in every
 * case. After a failure the .part stays, with all rows that are whole, and the error says so; one without any row is
 * removed. summary may be NULL. */
WEIR_API WEIR_CHECKED weir_status weir_dump_commit(weir_dump *d, weir_dump_summary *summary, weir_err *err);
/* Closes without completing: complete stays 0. With keep the .part stays, with all rows written. Without, it is removed,
 * unless it was there before (resume) or holds rows that a failed write left. Frees d. NULL is fine, and so is a dump
 * that weir_dump_finish completed. */
WEIR_API void weir_dump_abort(weir_dump *d, bool keep);

/* --- reading
 *
 *     weir_dump_reader *r;
 *     weir_dump_open(&r, "mlp.h5", &err);
 *     int i = weir_dump_find(r, "blocks.6.mlp.hook_post");
 *     float *x = malloc(weir_dump_hook_at(r, i)->rows * sizeof *x);
 *     weir_dump_read_column(r, i, weir_dump_column(r, i, 421), 0, weir_dump_hook_at(r, i)->rows, x, &err);
 *     weir_dump_close(r);
 *
 * Only the tiles that hold what is asked for are read; they are inflated in parallel. So one column costs a 48th of
 * reading all 3072, and so do 64 neighbours, which share their tiles. Files that were stored in another way (by other
 * programs) are read through HDF5, with the same result, more slowly. float16 is widened to float32, exactly.
 *
 * Also read are: NAME.part while a run writes it (weir_dump_refresh follows it) and after a kill, as far as its rows
 * are whole; and files made by `weir merge --virtual`, whose rows are in the shards beside them. What a damaged file
 * may do is fail, with one line that names dataset, rows and byte.
 *
 * Calls on one reader come from one thread; threads are used inside. What is returned borrowed lives as long as the
 * reader unless the call says otherwise. */
typedef struct weir_dump_reader weir_dump_reader;

typedef struct weir_dump_hook {
    const char *name;
    int64_t rows, width;  /* width: elements of one row */
    int64_t heads, size;  /* heads * size = width; q, k, v, z, result: as in the model; else 1, width */
    const char *letters;  /* "T C", "T H D", "T H S", ...; "T U": selected units; "" if the file does not say */
    int layer;            /* -1: outside the blocks */
    const int64_t *units; /* [width] the model's number of each column that was selected; NULL: all, column = unit */
} weir_dump_hook;

/* Reads files of format "weir-dump". Files that are not ours, or not whole, are refused with one line; one that can be
 * mended by `weir repair` says so. */
WEIR_API WEIR_CHECKED weir_status weir_dump_open(weir_dump_reader **out, const char *path, weir_err *err);
WEIR_API void weir_dump_close(weir_dump_reader *r);                    /* NULL is fine */
WEIR_API void weir_dump_set_threads(weir_dump_reader *r, int threads); /* 0, as at first: all processors */
/* Did the run that wrote it reach its end? */
WEIR_API bool weir_dump_is_complete(const weir_dump_reader *r);
/* Looks again at a file that is being written: rows, documents and weir_dump_is_complete are those of now, also when
 * the run has ended and given the file its final name. Pointers that were borrowed stay valid. After a failure the
 * reader can only be refreshed again or closed. */
WEIR_API WEIR_CHECKED weir_status weir_dump_refresh(weir_dump_reader *r, weir_err *err);
/* A root attribute as text (numbers formatted), as it was when first asked for; borrowed; NULL: absent, or out
 * of memory. */
WEIR_API const char *weir_dump_attr(weir_dump_reader *r, const char *name);

/* Rows that tokens and every hook have. In a file that is not complete a hook may have more (weir_dump_hook.rows). */
WEIR_API int64_t weir_dump_rows(const weir_dump_reader *r);
WEIR_API int weir_dump_n_hooks(const weir_dump_reader *r);
WEIR_API const weir_dump_hook *weir_dump_hook_at(const weir_dump_reader *r, int i);
WEIR_API int weir_dump_find(const weir_dump_reader *r, const char *name); /* -1: absent */
/* The column in which hook i stores the model's unit (index in the hook's whole row, heads * size); -1: not stored. */
WEIR_API int64_t weir_dump_column(const weir_dump_reader *r, int i, int64_t unit);

/* Rows [row, row+n) of hook i into out [n, width]. Small steps in ascending order are fine: rows of the tiles read last
 * are kept (up to 64 MB). */
WEIR_API WEIR_CHECKED weir_status weir_dump_read(weir_dump_reader *r, int i, int64_t row, int64_t n, float *out,
                                                 weir_err *err);
/* One column (weir_dump_column) of rows [row, row+n) into out [n]. */
WEIR_API WEIR_CHECKED weir_status weir_dump_read_column(weir_dump_reader *r, int i, int64_t column, int64_t row,
                                                        int64_t n, float *out, weir_err *err);
/* Several columns, in any order, into out [n, n_columns]. Nothing is kept from one call to the next: ask for all
 * columns at once. */
WEIR_API WEIR_CHECKED weir_status weir_dump_read_columns(weir_dump_reader *r, int i, const int64_t *column,
                                                         int64_t n_columns, int64_t row, int64_t n, float *out,
                                                         weir_err *err);

/* A hook from its first row to its last, each tile inflated once, whatever its width in bounded memory (64 MB): blocks
 * come in row order, and within the same rows in column order. A block has whole rows unless 1024 of them exceed the
 * bound (logits do). */
typedef struct weir_dump_block {
    int64_t row, n; /* n = 0: there are no more */
    int64_t column, n_columns;
    const float *data; /* [n, n_columns], valid until the next call on the stream */
} weir_dump_block;
typedef struct weir_dump_stream weir_dump_stream;
/* Rows [row, row+n) of hook i. r must outlive the stream; other calls on r may come between. */
WEIR_API WEIR_CHECKED weir_status weir_dump_stream_open(weir_dump_stream **out, weir_dump_reader *r, int i, int64_t row,
                                                        int64_t n, weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_dump_stream_next(weir_dump_stream *s, weir_dump_block *block, weir_err *err);
WEIR_API void weir_dump_stream_close(weir_dump_stream *s); /* NULL is fine */

/* --- tokens: one entry a row */

/* Columns of /tokens that are wanted, [n] each, NULL where not. logprob is NaN throughout if the file has none. */
typedef struct weir_token_columns {
    int32_t *id;
    int64_t *doc, *pos, *ctx_pos, *byte_off, *byte_len;
    uint8_t *flags; /* 1 BOS, 2 special token, 4 lost bytes */
    float *logprob;
} weir_token_columns;
WEIR_API WEIR_CHECKED weir_status weir_dump_read_tokens(weir_dump_reader *r, int64_t row, int64_t n,
                                                        const weir_token_columns *out, weir_err *err);
/* The same, /tokens/id alone. */
WEIR_API WEIR_CHECKED weir_status weir_dump_read_ids(weir_dump_reader *r, int64_t row, int64_t n, int32_t *out,
                                                     weir_err *err);
WEIR_API bool weir_dump_has_logprob(const weir_dump_reader *r);

/* Bytes of a token (they need not be UTF-8), borrowed. An id that the dump's vocabulary does not have is an error. */
WEIR_API WEIR_CHECKED weir_status weir_dump_token_bytes(weir_dump_reader *r, int32_t id, weir_str *out, weir_err *err);
/* The text of rows [row, row+n): their tokens' bytes one after the other, BOS left out; borrowed until the next call.
 */
WEIR_API WEIR_CHECKED weir_status weir_dump_read_text(weir_dump_reader *r, int64_t row, int64_t n, weir_str *out,
                                                      weir_err *err);

/* --- documents */

typedef struct weir_dump_doc_rows {
    int64_t row, n;             /* its rows; in a file that is not complete those that can be read */
    int64_t byte_off, byte_len; /* its place in the source */
    weir_str source;            /* name of the file it came from; borrowed until the next call */
} weir_dump_doc_rows;
WEIR_API int64_t weir_dump_n_docs(const weir_dump_reader *r);
WEIR_API WEIR_CHECKED weir_status weir_dump_read_doc(weir_dump_reader *r, int64_t doc, weir_dump_doc_rows *out,
                                                     weir_err *err);

/* Fields that came with JSONL documents, in the order of their names. */
typedef struct weir_dump_field {
    const char *name; /* as in the documents */
    weir_field_type type;
} weir_dump_field;
WEIR_API int weir_dump_n_fields(const weir_dump_reader *r);
WEIR_API const weir_dump_field *weir_dump_field_at(const weir_dump_reader *r, int i);
WEIR_API int weir_dump_find_field(const weir_dump_reader *r, const char *name); /* -1: absent */
/* Field i of a document. *there = false: the document lacks it (a string is then empty, like one that is empty).
 * Strings are borrowed until the next call. */
WEIR_API WEIR_CHECKED weir_status weir_dump_read_field(weir_dump_reader *r, int i, int64_t doc, weir_field *out,
                                                       bool *there, weir_err *err);

/* --- statistics files (root attribute format = "weir-stats"): mean and spread of each unit of some hook points. What
 * `--hook stats:FILE.h5=SEL` writes, and what `ablate SEL=mean:FILE` reads. lib/record/stats.md has the schema. */
typedef struct weir_stats weir_stats;

/* One hook point. Sums of float32 values, taken in float64 in the order of the rows. */
typedef struct weir_stats_item {
    const weir_point *point;
    const int64_t *units; /* [n] which elements of a row, ascending; NULL: all, n = the row's width */
    int64_t n;
    const int64_t *count; /* [n] finite values seen */
    const double *mean;   /* [n] NaN where count is 0 */
    const double *m2;     /* [n] sum of squared distances from the mean; variance = m2 / count */
} weir_stats_item;

/* Creates PATH.part, so that a place that cannot be written to shows before the work is done. PATH is replaced in the
 * end only if it is a statistics file; a PATH.part that exists is refused (WEIR_E_ARG). m is not kept. */
WEIR_API WEIR_CHECKED weir_status weir_stats_create(weir_stats **out, const char *path, const weir_model *m,
                                                    weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_stats_add(weir_stats *s, const weir_stats_item *item, weir_err *err);
/* Closes and renames. Frees s in every case; after a failure no file is left. */
WEIR_API WEIR_CHECKED weir_status weir_stats_commit(weir_stats *s, weir_err *err);
/* Removes PATH.part and frees s. NULL is fine. */
WEIR_API void weir_stats_abort(weir_stats *s);

/* --- shards: lib/record/shards.md */

/* Says in the dump which block of the text it holds, for weir_dump_merge, and fixes the fields by the first document of
 * the whole text, so that all shards have the same. After weir_dump_select and before the first document. On resume the
 * block must be the same. Nothing is written if `docs` reads the whole text. */
WEIR_API WEIR_CHECKED weir_status weir_dump_shard(weir_dump *d, const weir_docs *docs, weir_err *err);

typedef struct weir_merge_options {
    bool as_virtual; /* hooks become virtual datasets that point into the files, one mapping a file */
    bool force;      /* replace an existing OUT that is a dump, and an OUT.part */
    int threads;     /* 0: all processors */
    int64_t memory;  /* bytes of rows that are held at a time, a band of one dataset at least; 0: 256 MiB */
    const char *command_line;
    bool (*stop)(void *user); /* asked now and then; true ends the work with WEIR_STOP. NULL: it goes on */
    void (*progress)(void *user, double share); /* share of the rows copied; may be NULL */
    void *user;
} weir_merge_options;
WEIR_API void weir_merge_options_init(weir_merge_options *o);

typedef struct weir_merge_summary {
    int64_t files, docs, rows, datasets; /* datasets: hooks and what hooks wrote */
    int64_t file_bytes;
} weir_merge_summary;

/* Joins complete dumps that belong together into OUT. Shards of one text: all of them, in any order; the datasets then
 * equal those of a run over the whole text. Dumps that are no shards: any, in the order given, as long as model,
 * options, hooks and fields are the same. The first file that does not fit is named, with what differs. Written as
 * OUT.part, which is removed after a failure. summary may be NULL. */
WEIR_API WEIR_CHECKED weir_status weir_dump_merge(const char *out, const char *const *paths, int n,
                                                  const weir_merge_options *o, weir_merge_summary *summary,
                                                  weir_err *err);

#ifdef __cplusplus
}
#endif
#endif
