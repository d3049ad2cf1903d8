/* cli/positions.h: --positions: which rows of a document are kept. */
#ifndef WEIR_CLI_POSITIONS_H
#define WEIR_CLI_POSITIONS_H

#include <weir/text.h>
#include <weir/tokenizer.h>

typedef struct weir_positions {
    const char *field; /* @FIELD: its name */
    bool all;
    int64_t (*range)[2]; /* half open; negatives count from the end; INT64_MAX: to the end */
    int n;
} weir_positions;

/* "all", "last", "-4:", "0:8", "3", several joined by commas, or "@FIELD". */
WEIR_CHECKED weir_status weir_positions_parse(weir_positions *p, const char *text, weir_err *err);
void weir_positions_free(weir_positions *p);

/* WEIR_E_FORMAT with the document's place, FILE:LINE, as weir_docs_next words it. */
weir_status weir_doc_fail(weir_err *err, const weir_doc *doc, const char *source, const char *fmt, ...)
    WEIR_PRINTF(4, 5);

/* Sets keep[len] for a document of len rows. first_text: rows before the first token of text (1 with BOS). For @FIELD,
 * t has the tokens of the document's text, which `doc` still holds; a token is kept when it shares a byte with a span.
 * Ranges are cut to the document. */
WEIR_CHECKED weir_status weir_positions_keep(const weir_positions *p, const weir_doc *doc, const char *source,
                                             const weir_tokens *t, int64_t first_text, int64_t len, uint8_t *keep,
                                             weir_err *err);

#endif
