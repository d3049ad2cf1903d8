/* weir/text.h: documents out of text, JSONL and gzip files, one at a time, in bounded memory.
 *
 *     weir_docs *docs;
 *     weir_docs_options o; weir_docs_options_init(&o);
 *     o.paths = paths; o.n_paths = 2;
 *     weir_docs_open(&docs, &o, &err);
 *     weir_doc d; bool more;
 *     while (weir_docs_next(docs, &d, &more, &err) == WEIR_OK && more) use(d.text);
 *     weir_docs_free(docs);
 *
 * gzip is recognised by content (members may follow each other; damaged or cut data are an error). A UTF-8 byte order
 * mark at the begin of a source is dropped (offsets count it). Other bytes are kept as they are in text, NUL and
 * invalid UTF-8 too; JSONL is strict. A document may have up to 1 GiB. JSONL is recognised by the name (.jsonl,
 * .ndjson, with or without .gz) or `format`.
 */
#ifndef WEIR_TEXT_H
#define WEIR_TEXT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_docs weir_docs;

typedef enum weir_docs_split {
    WEIR_DOCS_LINE = 0, /* a line is a document; \n or \r\n ends it */
    WEIR_DOCS_BLANK,    /* documents are separated by blank lines */
    WEIR_DOCS_FILE,     /* a file is a document */
    WEIR_DOCS_SEP       /* documents are separated by a line equal to `sep` */
} weir_docs_split;

typedef enum weir_docs_format { WEIR_DOCS_AUTO = 0, WEIR_DOCS_TEXT, WEIR_DOCS_JSONL } weir_docs_format;

typedef struct weir_docs_options {
    const char *const *paths; /* [n_paths] read in order; "-" is standard input */
    int n_paths;
    const char *const *texts; /* [n_texts] or: each string is one document (source "arg") */
    int n_texts;
    weir_docs_split split;
    const char *sep; /* WEIR_DOCS_SEP: the line, without its end */
    weir_docs_format format;
    const char *field; /* JSONL: the field that holds the text; NULL: "text" */
    bool json_value; /* JSONL: the field holds any JSON, and that is the document's text, as it stands there */
    bool ids; /* documents are lists of token ids (text: white space or commas between; JSONL: an array in `field`,
                 NULL: "ids"); weir_doc.ids is set instead of text */
    bool (*stop)(void *user); /* asked when a signal interrupts the wait for bytes: true ends it, with WEIR_E_IO. NULL:
                                 it goes on */
    void *stop_user;
    int64_t shard, shards; /* shards > 0: only block `shard` of that many, numbered from 0. See weir_docs_block */
} weir_docs_options;
WEIR_API void weir_docs_options_init(weir_docs_options *o);

typedef enum weir_field_type {
    WEIR_FIELD_INT,
    WEIR_FIELD_FLOAT,
    WEIR_FIELD_BOOL,
    WEIR_FIELD_STRING,
    WEIR_FIELD_OTHER
} weir_field_type;

/* A field of a JSONL record other than the text. OTHER (null, array, object) keeps its raw JSON in `str`. */
typedef struct weir_field {
    weir_str name;
    weir_field_type type;
    int64_t i; /* INT, and BOOL as 0 or 1 */
    double f;
    weir_str str;
} weir_field;

/* Borrowed until the next call on the same reader. */
typedef struct weir_doc {
    weir_str text;
    const int32_t *ids; /* [n_ids], only with options.ids */
    bool json;          /* text is JSON (options.json_value, in a source of JSONL) */
    int64_t n_ids;
    int64_t index;              /* number of the document, from 0, empty ones not counted */
    int32_t source;             /* index for weir_docs_source */
    int64_t line;               /* 1-based line where it begins; 0 where that has no meaning */
    int64_t byte_off, byte_len; /* its place in the (decompressed) source: of the text itself, or of the JSON record */
    const weir_field *fields;   /* [n_fields] */
    int n_fields;
} weir_doc;

/* What the options point to must outlive the reader. Every path is looked at: a missing file is reported here. Texts
 * come before paths when both are given. */
WEIR_API WEIR_CHECKED weir_status weir_docs_open(weir_docs **out, const weir_docs_options *o, weir_err *err);
/* *more = false at the end. Empty documents (no byte; no id) are skipped and counted. A broken record is an error with
 * file and line
 * ("PATH:LINE" in err->file). */
WEIR_API WEIR_CHECKED weir_status weir_docs_next(weir_docs *d, weir_doc *out, bool *more, weir_err *err);
WEIR_API void weir_docs_free(weir_docs *d);

WEIR_API int weir_docs_n_sources(const weir_docs *d);                      /* sources seen so far */
WEIR_API const char *weir_docs_source(const weir_docs *d, int32_t source); /* path, "stdin" or "arg" */
WEIR_API int64_t weir_docs_skipped(const weir_docs *d);                    /* empty documents */
/* Share of the input (or of the block) consumed, in [0, 1], by bytes as stored; -1 when unknown (a pipe). */
WEIR_API double weir_docs_progress(const weir_docs *d);

/* A text can be cut into blocks of documents that follow one another, so that several runs (shards) share it without
 * speaking to each other: each cuts alone, and all cut alike. Opening then reads the text once to measure it, so pipes
 * are refused. Every document is in one block; blocks differ in size by about one document (in texts of millions of
 * documents: one in 2^19 of them) and may be empty. Documents keep their numbers and sources in the whole text. */
typedef struct weir_docs_block {
    int64_t shard, shards;
    int64_t first, end;               /* documents [first, end) of the text */
    int64_t docs;                     /* of the whole text */
    int64_t size, text_size;          /* bytes of text, or ids, of the block and of the whole text */
    int32_t first_source, last_source; /* of the block's first and last document; -1, -1 without documents */
} weir_docs_block;
/* NULL: the reader gives the whole text. Both live as long as the reader. */
WEIR_API const weir_docs_block *weir_docs_block_of(const weir_docs *d);
/* The first document of the whole text, of which only the fields are kept; NULL where weir_docs_block_of is, and when
 * there is none. */
WEIR_API const weir_doc *weir_docs_first(const weir_docs *d);

#ifdef __cplusplus
}
#endif
#endif
