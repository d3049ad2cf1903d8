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

/* Reads one JSON object. `field` holds the text, or with ids: an array of token ids. err's offset counts from the
 * line's begin. */
WEIR_CHECKED weir_status weir_record_json(weir_record *r, weir_str line, const char *field, bool ids, weir_err *err);
/* Reads token ids with white space or commas between. */
WEIR_CHECKED weir_status weir_record_ids(weir_record *r, weir_str text, weir_err *err);
void weir_record_free(weir_record *r);

#endif
