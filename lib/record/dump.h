/* record/dump.h: the writer behind weir_dump. */
#ifndef WEIR_DUMP_H
#define WEIR_DUMP_H

#include <sys/types.h>

#include "act.h"
#include "docs.h"
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

/* One entry of /progress: the rows of these datasets that are whole on disk. */
typedef struct weir_progress_group {
    char name[24];
} weir_progress_group;

struct weir_dump {
    char *path, *part;
    const weir_model *model; /* for weir_dump_select; NULL in tests */
    hid_t file, activations, tokens;
    weir_tile_writer writer;
    weir_tiled token[WEIR_TOK_COLUMNS], row;
    weir_doc_table docs;
    weir_act *act; /* [n_acts] in the order of declaration */
    int n_acts;
    weir_scales scales;
    hid_t progress;             /* /progress/rows_complete */
    weir_progress_group *group; /* [n_groups] */
    int n_groups;
    int64_t ctx;
    bool logprob, from_passes;
    bool begun;      /* all objects exist: rows may come */
    bool completed;  /* renamed to its final name */
    bool part_taken; /* this run created PATH.part, as this file: */
    dev_t part_dev;
    ino_t part_ino;
    bool part_whole;    /* PATH.part is closed and says complete */
    weir_status failed; /* an earlier write failed: nothing more is accepted */
    int64_t last_tag;   /* from_passes: tag of the last sequence seen */
};

/* part.c: may PATH be replaced in the end? Only if it is free or a file of ours. */
WEIR_CHECKED weir_status weir_dump_check_target(const char *path, weir_err *err);
/* Creates PATH.part, empty. One that exists is removed with force, unless another run writes it or it is not a file. */
WEIR_CHECKED weir_status weir_dump_take_part(weir_dump *d, bool force, weir_err *err);
/* Gives the closed PATH.part its final name. */
WEIR_CHECKED weir_status weir_dump_publish_part(weir_dump *d, weir_err *err);
/* After a failure to complete: a file that could not be written is removed, because HDF5 does not open it; any other
 * has all rows and stays, and the error says so. */
void weir_dump_settle_part(weir_dump *d, weir_status st, weir_err *err);
/* Removes PATH.part if it is still the file that this run created. */
void weir_dump_drop_part(weir_dump *d);
int weir_dump_find_act(const weir_dump *d, const char *name); /* -1: not declared */

/* dump.c. Every call goes through enter and leave: silence, and no writing after a failure. */
WEIR_CHECKED weir_status weir_dump_enter(weir_dump *d, weir_h5_quiet *q, weir_err *err);
WEIR_CHECKED weir_status weir_dump_leave(weir_dump *d, const weir_h5_quiet *q, weir_status st, weir_err *err);
/* The first row comes: what is still missing of the file is made, so that afterwards datasets only grow. */
WEIR_CHECKED weir_status weir_dump_begin(weir_dump *d, weir_err *err);
WEIR_CHECKED weir_status weir_dump_append_tokens(weir_dump *d, const weir_token_rows *t, weir_err *err);
/* Tail, complete = 1, close, rename. After it d holds no file, whatever happened. */
WEIR_CHECKED weir_status weir_dump_complete(weir_dump *d, weir_dump_summary *summary, weir_err *err);
/* Closes every HDF5 object; false when the file did not close well (its last bytes may be missing). */
bool weir_dump_close_file(weir_dump *d);
void weir_dump_free(weir_dump *d);

/* progress.c */
WEIR_CHECKED weir_status weir_progress_create(weir_dump *d, weir_err *err);
WEIR_CHECKED weir_status weir_progress_write(weir_dump *d, weir_err *err);
/* The entry that hook points of this site and layer belong to: "embed", "L6", "final". */
void weir_progress_name(char out[24], weir_site site, int layer);

#endif
