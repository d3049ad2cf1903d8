/* search/spool.h: a temporary file of (place, 32 bits) that grows with the text, so that memory need not. It has no
 * name and is gone with the process. Records are appended in ascending order of place, each place once. */
#ifndef WEIR_SEARCH_SPOOL_H
#define WEIR_SEARCH_SPOOL_H

#include <weir/base.h>

typedef struct weir_spool weir_spool;

/* dir NULL: $TMPDIR, else /tmp. */
WEIR_CHECKED weir_status weir_spool_new(weir_spool **out, const char *dir, weir_err *err);
void weir_spool_free(weir_spool *s);
/* Buffered. WEIR_E_IO names the directory and says what to do when it is full; the spool is as before, and the record
 * may be added again. WEIR_E_ARG: the place is not behind the last one. */
WEIR_CHECKED weir_status weir_spool_add(weir_spool *s, uint32_t doc, uint32_t pos, uint32_t payload, weir_err *err);
int64_t weir_spool_count(const weir_spool *s);

typedef struct weir_spool_record {
    uint32_t doc, pos, payload;
} weir_spool_record;
/* Records [at, at + n). WEIR_E_ARG: there are fewer. */
WEIR_CHECKED weir_status weir_spool_read(weir_spool *s, int64_t at, int64_t n, weir_spool_record *out, weir_err *err);
/* The first record whose place is not before (doc, pos): its index, or the count. Reads little. */
WEIR_CHECKED weir_status weir_spool_find(weir_spool *s, uint32_t doc, uint32_t pos, int64_t *at, weir_err *err);

#endif
