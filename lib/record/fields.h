/* record/fields.h: /docs/fields: the scalar fields of JSONL input, one entry a document. The first document fixes names
 * and types. */
#ifndef WEIR_RECORD_FIELDS_H
#define WEIR_RECORD_FIELDS_H

#include <weir/record.h>
#include <weir/text.h>

#include "base/strmap.h"
#include "strtable.h"

typedef struct weir_field_column {
    char *name; /* as in the documents */
    weir_field_type type;
    weir_tiled value;  /* INT, FLOAT, BOOL */
    weir_strings text; /* STRING */
    bool seen;         /* in the present document */
} weir_field_column;

/* Zero it before; close in every case. */
typedef struct weir_field_table {
    hid_t group;
    weir_field_column *column; /* [n] */
    int n;
    weir_strmap index; /* name -> column */
    bool typed;        /* names and types are fixed */
    int64_t dropped;   /* fields that were new or of another type; their first names as in weir_dump_summary */
    char dropped_name[WEIR_DROPPED_NAMES][sizeof ((weir_dump_summary *)NULL)->dropped_name[0]];
} weir_field_table;

/* What stands where a document lacks a field, also the fill value of its dataset: NaN among floats, an empty string. */
#define WEIR_FIELD_NO_INT INT64_MIN
enum { WEIR_FIELD_NO_BOOL = 255 };
/* A field's link is its name, with %2F for '/', %25 for '%', %2E for the name "." and % for the empty one. Turns a link
 * into the name, in place; returns its bytes. */
size_t weir_field_name(char *link);
/* The type of what is stored at loc/link; OTHER: it is no field. */
weir_field_type weir_field_stored_type(hid_t loc, const char *link);

WEIR_CHECKED weir_status weir_fields_create(weir_field_table *t, hid_t docs, weir_err *err);
/* Opens what is there. typed: a document has come before. */
WEIR_CHECKED weir_status weir_fields_open(weir_field_table *t, hid_t docs, bool typed, const weir_tile_writer *w,
                                          weir_err *err);
/* Goes on behind the first n documents. */
WEIR_CHECKED weir_status weir_fields_resume(weir_field_table *t, int64_t n, weir_err *err);
WEIR_CHECKED weir_status weir_fields_cut(weir_field_table *t, weir_err *err);
/* Fixes names and types by this document, unless they are fixed already. */
WEIR_CHECKED weir_status weir_fields_declare(weir_field_table *t, weir_tile_writer *w, const weir_doc *doc,
                                             weir_err *err);
/* Appends the document's fields; there: they are in the file already, and only counted. */
WEIR_CHECKED weir_status weir_fields_add(weir_field_table *t, weir_tile_writer *w, const weir_doc *doc, bool there,
                                         weir_err *err);
WEIR_CHECKED weir_status weir_fields_flush(weir_field_table *t, weir_tile_writer *w, weir_err *err);
WEIR_CHECKED weir_status weir_fields_sync(weir_field_table *t, weir_err *err);
void weir_fields_close(weir_field_table *t);

#endif
