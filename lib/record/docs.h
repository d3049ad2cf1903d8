/* record/docs.h: /docs, /sources and /docs/fields: one entry a document, filled as documents and their rows come. */
#ifndef WEIR_RECORD_DOCS_H
#define WEIR_RECORD_DOCS_H

#include <weir/text.h>

#include "tiled.h"

/* Strings one after the other: bytes, and offsets [n + 1] into them. */
typedef struct weir_strings {
    weir_tiled bytes, offsets;
} weir_strings;
/* Creates NAME/{bytes,offsets} below loc. */
WEIR_CHECKED weir_status weir_strings_create(weir_strings *s, hid_t loc, const char *name, bool filtered,
                                             weir_tile_writer *w, weir_err *err);
WEIR_CHECKED weir_status weir_strings_append(weir_strings *s, weir_tile_writer *w, weir_str text, weir_err *err);
int64_t weir_strings_count(const weir_strings *s);
WEIR_CHECKED weir_status weir_strings_flush(weir_strings *s, weir_tile_writer *w, weir_err *err);
void weir_strings_close(weir_strings *s);

enum { WEIR_DOC_START, WEIR_DOC_COUNT, WEIR_DOC_BYTE_OFF, WEIR_DOC_BYTE_LEN, WEIR_DOC_SOURCE, WEIR_DOC_COLUMNS };

/* A column of /docs/fields; its type is that of the first document. */
typedef struct weir_field_column {
    char *name; /* as in the documents */
    weir_field_type type;
    weir_tiled value;  /* INT, FLOAT, BOOL */
    weir_strings text; /* STRING */
    bool seen;         /* in the present document */
} weir_field_column;

typedef struct weir_doc_span {
    int64_t start, count;
} weir_doc_span;

typedef struct weir_doc_table {
    hid_t group, fields;
    weir_tiled column[WEIR_DOC_COLUMNS];
    weir_field_column *field; /* [n_fields] */
    int n_fields;
    bool typed; /* the first document has come */
    weir_strings sources;
    int32_t *source_of; /* [n_source_of] the reader's source number -> entry of /sources, or -1 */
    int32_t n_source_of;
    /* Documents whose rows may still come: [open_n], the first of them is document number `closed`. */
    weir_doc_span *open;
    int64_t open_n, open_cap, closed;
    int64_t dropped; /* fields that were new or of another type */
} weir_doc_table;

WEIR_CHECKED weir_status weir_doc_table_create(weir_doc_table *t, hid_t file, weir_tile_writer *w, weir_err *err);
/* A document begins. The first one fixes the fields. */
WEIR_CHECKED weir_status weir_doc_table_add(weir_doc_table *t, weir_tile_writer *w, const weir_doc *doc,
                                            const char *source, weir_err *err);
int64_t weir_doc_table_count(const weir_doc_table *t); /* documents begun */
/* n rows from `row` on belong to document doc: no rows of earlier documents can follow. */
WEIR_CHECKED weir_status weir_doc_table_rows(weir_doc_table *t, weir_tile_writer *w, int64_t doc, int64_t row,
                                             int64_t n, weir_err *err);
/* All rows (`rows` in number) have come. */
WEIR_CHECKED weir_status weir_doc_table_end(weir_doc_table *t, weir_tile_writer *w, int64_t rows, weir_err *err);
WEIR_CHECKED weir_status weir_doc_table_flush(weir_doc_table *t, weir_tile_writer *w, weir_err *err);
void weir_doc_table_close(weir_doc_table *t);

#endif
