/* record/merge_dump.h: the datasets of dumps, joined. See merge.h.
 *
 * What a dataset is follows from its path (a table in merge_dump.c). merge_objects.c makes the datasets of the result
 * like those of the first part, merge_rows.c fills them.
 */
#ifndef WEIR_MERGE_DUMP_H
#define WEIR_MERGE_DUMP_H

#include "fetch.h"
#include "merge.h"

typedef enum weir_column_kind {
    WEIR_COLUMN_JOIN,     /* one behind the other */
    WEIR_COLUMN_VALUES,   /* the same; with as_virtual they stay where they are */
    WEIR_COLUMN_ROWS,     /* and shifted by the rows before */
    WEIR_COLUMN_DOCS,     /* and shifted by the documents before */
    WEIR_COLUMN_SOURCES,  /* entries of /sources, which are numbered anew */
    WEIR_COLUMN_OFFSETS,  /* of strings: [documents + 1], and shifted by the bytes before */
    WEIR_COLUMN_FIRST,    /* as in the first part */
    WEIR_COLUMN_GROUP,    /* made empty */
    WEIR_COLUMN_PROGRESS, /* the group /progress */
    WEIR_COLUMN_ELSEWHERE /* made by other means: /sources, dimension scales */
} weir_column_kind;

typedef enum weir_column_length { WEIR_PER_ROW, WEIR_PER_DOC, WEIR_PER_OFFSET, WEIR_ANY_LENGTH } weir_column_length;

typedef struct weir_column {
    const char *path; /* the facts' */
    weir_column_kind kind;
    weir_column_length length;
    weir_elem elem; /* as it is read: float16 becomes float32 */
    weir_tiled out; /* not made where the dataset is virtual */
    hid_t id;       /* of the result's dataset; out.id, or the virtual one */
    int64_t end;    /* WEIR_COLUMN_OFFSETS: the last one so far */
} weir_column;

typedef struct weir_join {
    weir_merge *m;
    weir_facts facts; /* of the first part */
    weir_infile first;
    weir_column *column; /* [n] */
    int n;
    weir_scales scales;
    weir_tile_writer writer;
    weir_fetcher fetcher;
    weir_source_map *map; /* [m->n] */
    uint8_t *band;        /* rows that were read */
} weir_join;

/* merge_objects.c: all groups and datasets, empty, with their attributes and dimension scales. */
WEIR_CHECKED weir_status weir_join_objects(weir_join *j, weir_err *err);
/* merge_rows.c: what they hold. Columns are copied in passes: as many at a time as their bands of rows fit into
 * options.memory, and in each pass one part after the other, so that one file is open at a time and memory is bounded
 * whatever the number of files, hooks and rows. */
WEIR_CHECKED weir_status weir_join_rows(weir_join *j, weir_err *err);
/* /progress: what is complete in all parts together. */
WEIR_CHECKED weir_status weir_join_progress(weir_join *j, weir_err *err);

#endif
