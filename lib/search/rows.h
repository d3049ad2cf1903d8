/* search/rows.h: what is remembered of the text that was fed. */
#ifndef WEIR_SEARCH_ROWS_H
#define WEIR_SEARCH_ROWS_H

#include "search/impl.h"

/* The key of a document that has been fed: what WEIR_RANK_MEAN takes as the same. */
WEIR_CHECKED weir_status weir_document_key(weir_neurons *s, uint32_t doc, uint64_t *key, weir_err *err);
/* Room for n rows of a pass. */
WEIR_CHECKED weir_status weir_pass_room(weir_pass *p, int64_t n, weir_err *err);
void weir_pass_free(weir_pass *p);
WEIR_CHECKED weir_status weir_history_new(weir_neurons *s, weir_err *err);
void weir_history_free(weir_neurons *s);

#endif
