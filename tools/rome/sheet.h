/* rome/sheet.h: the report of rome verify while it is written as a file of arrays: columns of rows, each from a
 * function that says what stands in a row. Where an array has two sides, they are its last axis: before the edit, and
 * with it. */
#ifndef WEIR_ROME_SHEET_H
#define WEIR_ROME_SHEET_H

#include "moved.h"
#include "verify.h"

typedef struct weir_sheet {
    weir_arrays_out *w;
    const weir_verified *v;
    const weir_moved *moved;
    const weir_edit_module *module; /* [modules] */
    int64_t modules;
} weir_sheet;

/* What stands in row i, on a side. */
typedef double weir_sheet_real(const weir_sheet *s, int64_t i, int side);
typedef int64_t weir_sheet_int(const weir_sheet *s, int64_t i, int side);
typedef weir_str weir_sheet_text(const weir_sheet *s, int64_t i);

/* An array of a group. */
typedef struct weir_sheet_column {
    const char *name;
    int sides;             /* 1: an array of one axis */
    weir_sheet_real *real; /* one of the three */
    weir_sheet_text *text;
    weir_sheet_int *number;
    weir_array_type type; /* of number: U8, I32 or I64 */
} weir_sheet_column;

#define WEIR_SHEET_COUNT(a) (sizeof(a) / sizeof *(a))

/* Arrays of one group, n rows each. */
WEIR_CHECKED weir_status weir_sheet_columns(const weir_sheet *s, const char *group, const weir_sheet_column *c,
                                            size_t columns, int64_t n, weir_err *err);
WEIR_CHECKED weir_status weir_sheet_texts(const weir_sheet *s, const char *group, int64_t n, weir_sheet_text *of,
                                          weir_err *err);
/* NULL: the empty text. */
weir_str weir_sheet_string(const char *z);
weir_status weir_sheet_no_memory(weir_err *err);

/* --- groups: verify_asked_h5.c, verify_moved_h5.c */

WEIR_CHECKED weir_status weir_sheet_questions(const weir_sheet *s, weir_err *err);
WEIR_CHECKED weir_status weir_sheet_perplexity(const weir_sheet *s, weir_err *err);
WEIR_CHECKED weir_status weir_sheet_stream(const weir_sheet *s, weir_err *err);

#endif
