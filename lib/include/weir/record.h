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
 *     ... weir_dump_doc, weir_dump_tokens for the kept rows of each pass, then weir_run_forward ...
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
    bool force;          /* replace an existing PATH.part (an existing PATH is replaced only if it is ours) */
    bool logprob;        /* write /tokens/logprob */
    int64_t ctx, stride; /* recorded as attributes */
    const char *bos;     /* "yes" or "no" */
    const char *command_line;
    const char *interventions; /* JSON text: an array of what changes values in the run; NULL: "[]" */
    const char *kernel;        /* table in use */
    int run_threads;
    bool hash_full;   /* fingerprint over all bytes */
    bool from_passes; /* documents and tokens come from the passes themselves: see weir_dump_pass */
} weir_dump_options;
WEIR_API void weir_dump_options_init(weir_dump_options *o);

/* tok may be NULL: an empty /vocab. m is borrowed until weir_dump_select has been called, tok not at all. Refused
 * (WEIR_E_ARG): a PATH that exists and is no file of ours; a PATH.part that exists, without force. */
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

typedef struct weir_dump_summary {
    int64_t rows, docs, datasets;
    int64_t raw_bytes; /* fp32 activations */
    int64_t file_bytes;
    int64_t dropped_fields; /* fields of documents that were new or of another type than in the first document */
} weir_dump_summary;
/* Checks that every dataset has the same number of rows, writes the tail, sets complete = 1, renames. Frees d in every
 * case. A .part that could not be written is removed; after any other failure it stays, readable, and the error says so.
 * summary may be NULL. */
WEIR_API WEIR_CHECKED weir_status weir_dump_commit(weir_dump *d, weir_dump_summary *summary, weir_err *err);
/* Closes without completing (complete stays 0, the .part stays if keep, with all rows written, else it is removed).
 * Frees d. NULL is fine, and so is a dump that weir_dump_finish completed. */
WEIR_API void weir_dump_abort(weir_dump *d, bool keep);

/* --- reading */
typedef struct weir_dump_reader weir_dump_reader;

typedef struct weir_dump_hook {
    const char *name;
    int64_t rows, width; /* width: elements of one row */
    int64_t heads, size; /* heads * size = width; q, k, v, z, result: as in the model; else 1, width */
    const char *letters; /* "T C", "T H D", "T H S", ...; "T U": selected units; "" if the file does not say */
} weir_dump_hook;

/* Reads files of format "weir-dump", also unfinished ones (PATH.part). Files that are not ours, or not whole, are
 * refused with one line. */

WEIR_API WEIR_CHECKED weir_status weir_dump_open(weir_dump_reader **out, const char *path, weir_err *err);
WEIR_API void weir_dump_close(weir_dump_reader *r);
WEIR_API int64_t weir_dump_rows(const weir_dump_reader *r); /* rows that tokens and every hook have */
WEIR_API int weir_dump_n_hooks(const weir_dump_reader *r);
WEIR_API const weir_dump_hook *weir_dump_hook_at(const weir_dump_reader *r, int i);
WEIR_API int weir_dump_find(const weir_dump_reader *r, const char *name); /* -1: absent */
/* Rows [row, row+n) of hook i into out [n, width]. Fastest in steps of 1024 rows, one hook after the other. */
WEIR_API WEIR_CHECKED weir_status weir_dump_read(weir_dump_reader *r, int i, int64_t row, int64_t n, float *out,
                                                 weir_err *err);
/* /tokens/id of rows [row, row+n). */
WEIR_API WEIR_CHECKED weir_status weir_dump_read_ids(weir_dump_reader *r, int64_t row, int64_t n, int32_t *out,
                                                     weir_err *err);
/* A root attribute as text (numbers formatted); borrowed; NULL when absent. */
WEIR_API const char *weir_dump_attr(weir_dump_reader *r, const char *name);

#ifdef __cplusplus
}
#endif
#endif
