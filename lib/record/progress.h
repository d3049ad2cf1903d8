/* record/progress.h: /progress: how many rows of each part of the file are whole on disk. */
#ifndef WEIR_PROGRESS_H
#define WEIR_PROGRESS_H

#include <weir/hook.h>

#include "h5.h"

enum { WEIR_PROGRESS_NAME = 24 }; /* bytes of an entry's name, with its NUL */

typedef struct weir_progress_group {
    char name[WEIR_PROGRESS_NAME];
} weir_progress_group;

/* Zero it before; close in every case. */
typedef struct weir_progress {
    hid_t rows_complete;        /* the dataset; 0: none */
    weir_progress_group *group; /* [n] */
    int64_t *rows;              /* [n] what the file says */
    int n;
} weir_progress;

/* The entry that hook points of this site and layer belong to: "embed", "L6", "final". */
void weir_progress_name(char out[WEIR_PROGRESS_NAME], weir_site site, int layer);
/* Index of an entry; -1: there is none. */
int weir_progress_find(const weir_progress *p, const char *name);
/* The same; a new one is added. */
WEIR_CHECKED weir_status weir_progress_entry(weir_progress *p, const char *name, int *index, weir_err *err);
/* Makes /progress with all entries. */
WEIR_CHECKED weir_status weir_progress_create(weir_progress *p, hid_t file, weir_err *err);
/* Reads /progress. Fails if there is none. */
WEIR_CHECKED weir_status weir_progress_open(weir_progress *p, hid_t file, weir_err *err);
/* Writes p->rows; HDF5 has put them into the file when this returns. */
WEIR_CHECKED weir_status weir_progress_write(weir_progress *p, weir_err *err);
/* The least of all entries but `docs`. */
int64_t weir_progress_least(const weir_progress *p);
void weir_progress_close(weir_progress *p);

#endif
