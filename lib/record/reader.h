/* record/reader.h: the reader behind weir_dump_reader.
 *
 * reader.c opens a file, read_list.c lists its hooks, read_rows.c reads them, read_tokens.c tokens and the vocabulary,
 * read_docs.c documents and their fields. Every public call that touches HDF5 runs between weir_h5_quiet_begin and
 * weir_h5_quiet_end.
 */
#ifndef WEIR_READER_H
#define WEIR_READER_H

#include <weir/record.h>

#include "base/mem.h"
#include "dump.h"
#include "schema.h"
#include "virtual.h"

/* The dataset of a hook; opened when it is first read. */
typedef struct weir_read_hook {
    weir_dset dset;
    weir_virtual_parts parts; /* of a virtual dataset */
    bool resolved;    /* its parts are read by ourselves */
} weir_read_hook;

/* Strings one after the other: bytes, and offsets [n + 1] into them. */
typedef struct weir_read_strings {
    weir_dset bytes, offsets;
} weir_read_strings;

typedef struct weir_read_field {
    weir_dump_field pub;
    char *path;             /* in the file */
    weir_dset value;        /* INT, FLOAT, BOOL */
    weir_read_strings text; /* STRING */
} weir_read_field;

/* Whole rows of a hook that were read last, so that small steps inflate each chunk once. */
typedef struct weir_row_cache {
    int hook; /* -1: nothing */
    int64_t row, n;
    float *data; /* [n, width] */
    size_t bytes;
} weir_row_cache;

struct weir_dump_reader {
    char *path;
    weir_infile file;
    hid_t group;           /* /activations; 0: not open */
    weir_dump_hook *hook;  /* [n_hooks] */
    weir_read_hook *store; /* [n_hooks] */
    int n_hooks;
    int64_t rows, token_rows; /* of tokens and every hook; of tokens */
    bool complete;
    weir_fetcher fetcher;
    weir_sources sources;
    weir_row_cache cache;
    struct { /* attributes that were asked for: their text is borrowed by the caller */
        char *name, *text;
    } * attr;
    int n_attrs;
    weir_progress progress; /* of a file that is not complete */
    /* read_docs.c */
    weir_dset token[WEIR_TOK_COLUMNS], doc[WEIR_DOC_COLUMNS];
    weir_read_strings source;
    int64_t n_docs;
    bool has_logprob;
    weir_read_field *field; /* [n_fields] */
    int n_fields;
    weir_buf name, text, value; /* borrowed by the caller: a source's name, a text, a field's string */
    struct {                    /* /vocab, once it has been asked for */
        bool loaded;
        char *bytes;
        int64_t *offset; /* [n + 1] */
        int64_t n;
    } vocab;
};

/* reader.c */
WEIR_CHECKED weir_status weir_read_check_range(int64_t row, int64_t n, int64_t rows, weir_err *err);
/* Everything is read by HDF5 from now on: what tests compare with. */
void weir_dump_read_plainly(weir_dump_reader *r, bool plainly);

/* The end of a public call: errors get the file's name. */
weir_status weir_read_leave(const weir_dump_reader *r, const weir_h5_quiet *q, weir_status st, weir_err *err);

/* read_list.c: complete, or /progress; then hooks */
WEIR_CHECKED weir_status weir_read_progress(weir_dump_reader *r, weir_err *err);
/* Rows that are whole of a part of the file ("tokens", "docs", "L6") whose datasets have `rows`; all in a complete
 * file. */
int64_t weir_read_limit(const weir_dump_reader *r, const char *stage, int64_t rows);
WEIR_CHECKED weir_status weir_read_open_group(weir_dump_reader *r, weir_err *err);
WEIR_CHECKED weir_status weir_read_hooks(weir_dump_reader *r, weir_err *err);
/* The file was opened again: how many rows has the hook by now? */
WEIR_CHECKED weir_status weir_read_recount(weir_dump_reader *r, weir_dump_hook *h, weir_err *err);

/* read_columns.c: datasets are opened when they are first read, and stay open. Errors name the dataset. */
enum { WEIR_READ_BYTES_MAX = 1 << 30 }; /* of a string: more than any text has */
/* Rows [row, row + n) of a dataset of one value a row. */
WEIR_CHECKED weir_status weir_read_column(weir_dump_reader *r, weir_dset *d, const char *name, weir_elem as,
                                          int64_t row, int64_t n, void *out, weir_err *err);
WEIR_CHECKED weir_status weir_read_strings_open(weir_dump_reader *r, weir_read_strings *s, const char *name,
                                                weir_err *err);
void weir_read_strings_close(weir_read_strings *s);
/* String i of `name` into buf; *out borrows it. */
WEIR_CHECKED weir_status weir_read_string(weir_dump_reader *r, weir_read_strings *s, const char *name, int64_t i,
                                          weir_buf *buf, weir_str *out, weir_err *err);

/* read_tokens.c */
bool weir_read_has_logprob(const weir_dump_reader *r);

/* read_docs.c */
WEIR_CHECKED weir_status weir_read_docs_open(weir_dump_reader *r, weir_err *err);
/* What is open of the file is closed; what was listed stays. */
void weir_read_docs_close(weir_dump_reader *r);
/* The file was opened again: how many documents are there by now? */
WEIR_CHECKED weir_status weir_read_docs_refresh(weir_dump_reader *r, weir_err *err);
void weir_read_docs_free(weir_dump_reader *r);

/* read_rows.c */
void weir_read_rows_close(weir_dump_reader *r);
void weir_read_rows_free(weir_dump_reader *r);

#endif
