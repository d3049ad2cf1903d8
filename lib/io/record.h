/* io/record.h: what one document holds, beyond plain text: the fields of a JSONL record, or token ids. */
#ifndef WEIR_IO_RECORD_H
#define WEIR_IO_RECORD_H

#include <weir/text.h>

#include "../base/mem.h"

/* Reused from document to document. Zero it before use. What it holds is borrowed until the next call, and from the
 * line. */
typedef struct weir_record {
    weir_str text;
    weir_buf ids;    /* int32_t[] */
    weir_buf fields; /* weir_field[] */
    weir_buf store;  /* strings that had escapes */
} weir_record;

/* What the field of a JSON record holds: a string; an array of token ids; anything, kept as the JSON that it is. */
typedef enum weir_record_kind { WEIR_RECORD_TEXT, WEIR_RECORD_IDS, WEIR_RECORD_JSON } weir_record_kind;
/* Reads one JSON object. err's offset counts from the line's begin. */
WEIR_CHECKED weir_status weir_record_json(weir_record *r, weir_str line, const char *field, weir_record_kind kind,
                                          weir_err *err);
/* Reads token ids with white space or commas between. */
WEIR_CHECKED weir_status weir_record_ids(weir_record *r, weir_str text, weir_err *err);
void weir_record_free(weir_record *r);

#endif
