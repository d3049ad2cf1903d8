/* record/docs.h: /docs, /sources and /docs/fields: one entry a document, filled as documents and their rows come.
 *
 * Nothing here goes through a filter: it is small, and its last chunks are written again and again, in place, while the
 * run goes on, so that every row in the file finds its document.
 */
#ifndef WEIR_RECORD_DOCS_H
#define WEIR_RECORD_DOCS_H

#include "fields.h"

enum { WEIR_DOC_START, WEIR_DOC_COUNT, WEIR_DOC_BYTE_OFF, WEIR_DOC_BYTE_LEN, WEIR_DOC_SOURCE, WEIR_DOC_COLUMNS };
extern const weir_schema_column weir_doc_schema[WEIR_DOC_COLUMNS];

typedef struct weir_doc_span {
    int64_t start, count;
} weir_doc_span;

/* What the file knows of documents that are declared once more (see docs_resume.c). */
typedef struct weir_docs_there {
    int64_t n, next; /* documents, and how many of them have come again */
    int64_t *byte_off, *byte_len;
    int32_t *source;
    int64_t n_sources; /* entries of /sources */
    int64_t sources;   /* those that have come again */
} weir_docs_there;

typedef struct weir_doc_table {
    hid_t group;
    weir_tiled column[WEIR_DOC_COLUMNS];
    weir_field_table fields;
    weir_strings sources;
    int32_t *source_of; /* [n_source_of] the reader's source number -> entry of /sources, or -1 */
    int32_t n_source_of;
    /* Documents whose rows may still come: [open_n], the first of them is document number `closed`. Only the first has
     * rows already. */
    weir_doc_span *open;
    int64_t open_n, open_cap, closed;
    weir_docs_there there;
} weir_doc_table;

WEIR_CHECKED weir_status weir_doc_table_create(weir_doc_table *t, hid_t file, weir_tile_writer *w, weir_err *err);
/* Opens what is there, for reading or going on: weir_doc_table_resume has to follow. */
WEIR_CHECKED weir_status weir_doc_table_open(weir_doc_table *t, hid_t file, const weir_tile_writer *w, weir_err *err);
/* Goes on behind the first n documents, which have `rows` rows: the last of them may get more. Nothing is written. */
WEIR_CHECKED weir_status weir_doc_table_resume(weir_doc_table *t, int64_t n, int64_t rows, weir_err *err);
/* Cuts all datasets to the documents that weir_doc_table_resume kept. */
WEIR_CHECKED weir_status weir_doc_table_cut(weir_doc_table *t, weir_tile_writer *w, weir_err *err);

/* Fixes names and types of the fields by this document, which is not added, unless they are fixed already. */
WEIR_CHECKED weir_status weir_doc_table_declare(weir_doc_table *t, weir_tile_writer *w, const weir_doc *doc,
                                                weir_err *err);
/* A document begins. The first one fixes the fields. One that is there is compared (WEIR_E_ARG if it differs). */
WEIR_CHECKED weir_status weir_doc_table_add(weir_doc_table *t, weir_tile_writer *w, const weir_doc *doc,
                                            const char *source, weir_err *err);
int64_t weir_doc_table_count(const weir_doc_table *t); /* documents begun, those that were there included */
/* n rows from `row` on belong to document doc: no rows of earlier documents can follow. */
WEIR_CHECKED weir_status weir_doc_table_rows(weir_doc_table *t, weir_tile_writer *w, int64_t doc, int64_t row,
                                             int64_t n, weir_err *err);
/* All rows (`rows` in number) have come. */
WEIR_CHECKED weir_status weir_doc_table_end(weir_doc_table *t, weir_tile_writer *w, int64_t rows, weir_err *err);
/* Writes what is in memory, the document whose rows come now with those it has. */
WEIR_CHECKED weir_status weir_doc_table_flush(weir_doc_table *t, weir_tile_writer *w, weir_err *err);
/* HDF5 puts it into the file. */
WEIR_CHECKED weir_status weir_doc_table_sync(weir_doc_table *t, weir_err *err);
/* Documents that were flushed. */
int64_t weir_doc_table_written(const weir_doc_table *t);
/* HDF5's objects are given up, not closed. */
void weir_doc_table_forget(weir_doc_table *t);
void weir_doc_table_close(weir_doc_table *t);

/* docs_resume.c: does the next document that was there equal this one? */
WEIR_CHECKED weir_status weir_doc_table_same(weir_doc_table *t, const weir_doc *doc, const char *source, weir_err *err);
/* docs.c: where the entry of /sources for the reader's source number is kept; -1: not known yet. */
WEIR_CHECKED weir_status weir_doc_table_source_of(weir_doc_table *t, int32_t source, int32_t **entry, weir_err *err);

#endif
