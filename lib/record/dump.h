/* record/dump.h: the writer behind weir_dump. */
#ifndef WEIR_DUMP_H
#define WEIR_DUMP_H

#include "act.h"
#include "base/strmap.h"
#include "docs.h"
#include "own.h"
#include "part.h"
#include "progress.h"
#include "source.h"

enum {
    WEIR_TOK_ID,
    WEIR_TOK_DOC,
    WEIR_TOK_POS,
    WEIR_TOK_CTX_POS,
    WEIR_TOK_BYTE_OFF,
    WEIR_TOK_BYTE_LEN,
    WEIR_TOK_FLAGS,
    WEIR_TOK_LOGPROB, /* only if asked */
    WEIR_TOK_COLUMNS
};
extern const weir_schema_column weir_token_schema[WEIR_TOK_COLUMNS]; /* tokens.c */

/* A dataset that has one entry a row, and the entry of /progress that counts it. */
typedef struct weir_counted {
    weir_tiled *rows;
    int group;
} weir_counted;

struct weir_dump {
    weir_partfile out;
    const weir_model *model; /* for weir_dump_select; NULL in tests */
    weir_log log;
    hid_t file, activations;
    weir_tile_writer writer;
    weir_tiled token[WEIR_TOK_COLUMNS], row;
    weir_doc_table docs;
    weir_act *act; /* [n_acts] in the order of declaration */
    int n_acts;
    weir_strmap act_index; /* name -> index */
    weir_own *own;         /* [n_own] what hooks declared for themselves */
    int n_own;
    weir_scales scales;
    weir_progress progress;
    weir_counted *column; /* [n_columns] everything but /docs and /sources; set when begun */
    int n_columns;
    int64_t ctx;
    weir_storage storage;
    bool logprob, logprob_late, from_passes;
    bool resumed;       /* goes on with a file that was there */
    bool trimmed;       /* ... which was cut to whole tiles */
    bool begun;         /* all objects exist: rows may come */
    bool live;          /* SWMR: what is flushed can be followed, and survives a kill */
    bool no_locks;      /* the file system has none: never live */
    int64_t flushed;    /* writer.bands at the last flush */
    bool completed;     /* renamed to its final name */
    bool part_whole;    /* PATH.part is closed and says complete */
    bool part_saved;    /* a write failed, and PATH.part holds the rows that were whole */
    weir_status failed; /* an earlier write failed: nothing more is accepted */
    int64_t last_tag;   /* from_passes: tag of the last sequence seen */
};

/* header.c: now, as attribute time_utc has it. */
void weir_dump_time_utc(char out[32]);
/* The root attributes. */
WEIR_CHECKED weir_status weir_dump_put_header(weir_dump *d, const weir_dump_header *h, const weir_dump_options *o,
                                              weir_err *err);
/* Are those that decide what the rows hold the same in the file? */
WEIR_CHECKED weir_status weir_dump_check_header(weir_dump *d, const weir_dump_header *h, const weir_dump_options *o,
                                                weir_err *err);

/* open.c */
int weir_dump_find_act(const weir_dump *d, const char *name); /* -1: not declared */
/* /tokens and /row, created or, if resumed, opened. */
WEIR_CHECKED weir_status weir_dump_open_tokens(weir_dump *d, weir_err *err);

/* resume.c: opens PATH.part, if it exists and has rows, up to where hook points are declared; else d->resumed stays
 * false. */
WEIR_CHECKED weir_status weir_dump_resume(weir_dump *d, const weir_dump_header *h, const weir_dump_options *o,
                                          weir_err *err);
/* The first row or document comes: goes on behind the rows that are there. */
WEIR_CHECKED weir_status weir_dump_go_on(weir_dump *d, weir_err *err);
/* Something new will be written: what is in bands is taken off the file. Does nothing but once, when resumed. */
WEIR_CHECKED weir_status weir_dump_trim(weir_dump *d, weir_err *err);

/* begin.c: the first row comes: what is still missing of the file is made, so that afterwards datasets only grow. */
WEIR_CHECKED weir_status weir_dump_begin(weir_dump *d, weir_err *err);
/* Rows of an entry of /progress that have come. */
int64_t weir_dump_group_rows(const weir_dump *d, int group);

/* dump.c. Every call goes through enter and leave: silence, and no writing after a failure. */
WEIR_CHECKED weir_status weir_dump_enter(weir_dump *d, weir_h5_quiet *q, weir_err *err);
WEIR_CHECKED weir_status weir_dump_leave(weir_dump *d, const weir_h5_quiet *q, weir_status st, weir_err *err);
/* Tail, complete = 1, close, rename. After it d holds no file, whatever happened. */
WEIR_CHECKED weir_status weir_dump_complete(weir_dump *d, weir_dump_summary *summary, weir_err *err);
/* Closes every HDF5 object; false when the file did not close well (its last bytes may be missing). */
bool weir_dump_close_file(weir_dump *d);
void weir_dump_free(weir_dump *d);

/* tokens.c */
WEIR_CHECKED weir_status weir_dump_append_tokens(weir_dump *d, const weir_token_rows *t, weir_err *err);

/* live.c: does the file system of the open file know locks? */
bool weir_dump_has_locks(const weir_dump *d);
/* What is whole goes into the file, then /progress; tails: all that is in memory. */
WEIR_CHECKED weir_status weir_dump_put(weir_dump *d, bool tails, weir_err *err);
WEIR_CHECKED weir_status weir_dump_flush_bands(weir_dump *d, weir_err *err);
/* After a write that failed: gives the file up without closing it, and makes what is in it readable. The error is
 * completed. */
void weir_dump_salvage(weir_dump *d, weir_err *err);
/* Words behind those of an error that has happened. err may be NULL. */
void weir_dump_add_words(weir_err *err, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* repair.c: weir_dump_repair; apart as in weir_h5_open_file. */
WEIR_CHECKED weir_status weir_dump_repair_file(const char *path, bool apart, weir_dump_report *report, weir_err *err);

#endif
