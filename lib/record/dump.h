/* record/dump.h: the writer behind weir_dump. */
#ifndef WEIR_DUMP_H
#define WEIR_DUMP_H

#include <sys/types.h>

#include "act.h"
#include "base/strmap.h"
#include "docs.h"
#include "own.h"
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

/* A dataset that has one entry a row, and the entry of /progress that counts it. */
typedef struct weir_counted {
    weir_tiled *rows;
    int group;
} weir_counted;

struct weir_dump {
    char *path, *part;
    const weir_model *model; /* for weir_dump_select; NULL in tests */
    weir_log log;
    hid_t file, activations, tokens;
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
    bool resumed;    /* goes on with a file that was there */
    bool trimmed;    /* ... which was cut to whole tiles */
    bool begun;      /* all objects exist: rows may come */
    bool live;       /* SWMR: what is flushed can be followed, and survives a kill */
    bool no_locks;   /* the file system has none: never live */
    int64_t flushed; /* writer.bands at the last flush */
    bool completed;  /* renamed to its final name */
    bool part_taken; /* this run created PATH.part, or took it over, as this file: */
    dev_t part_dev;
    ino_t part_ino;
    bool part_whole;    /* PATH.part is closed and says complete */
    bool part_saved;    /* a write failed, and PATH.part holds the rows that were whole */
    weir_status failed; /* an earlier write failed: nothing more is accepted */
    int64_t last_tag;   /* from_passes: tag of the last sequence seen */
};

/* part.c: may PATH be replaced in the end? Only if it is free or a file of ours. */
WEIR_CHECKED weir_status weir_dump_check_target(const char *path, weir_err *err);
/* Creates PATH.part, empty. One that exists is removed with force, unless another run writes it or it is not a file. */
WEIR_CHECKED weir_status weir_dump_take_part(weir_dump *d, bool force, weir_err *err);
/* Takes over the PATH.part that exists, for going on with it. *there = false: there is none. */
WEIR_CHECKED weir_status weir_dump_adopt_part(weir_dump *d, bool *there, weir_err *err);
/* Is PATH.part still the file that this run writes? */
WEIR_CHECKED weir_status weir_dump_check_part(const weir_dump *d, weir_err *err);
/* Gives the closed PATH.part its final name. */
WEIR_CHECKED weir_status weir_dump_publish_part(weir_dump *d, weir_err *err);
/* Removes PATH.part if it is still the file that this run created. */
void weir_dump_drop_part(weir_dump *d);

/* header.c: the root attributes. */
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

/* repair.c: weir_dump_repair; apart as in weir_h5_open_file. */
WEIR_CHECKED weir_status weir_dump_repair_file(const char *path, bool apart, weir_dump_report *report, weir_err *err);

#endif
