/* rome/lines.h: results as lines of JSON in a file that grows: PATH.part until all are there, so that an interrupted
 * run can go on. Its first line says what decides the others. */
#ifndef WEIR_ROME_LINES_H
#define WEIR_ROME_LINES_H

#include "cli/tool.h"

typedef struct weir_lines_how {
    const char *path;
    const char *begin; /* of the first line, of every file of this kind */
    const char *head;  /* the first line */
    const char *const
        *read; /* [n_read] what the command reads and must not be written over; NULL ones are passed over */
    int n_read;
    bool resumable, resume, force;
    /* Each line of an earlier run, with resume. Returns an exit code; an error has been said. */
    int (*take)(void *user, const char *line, size_t n, const char *file);
    void *user;
} weir_lines_how;

typedef struct weir_lines {
    const weir_cli *cli;
    const char *path;
    char part[4200];
    FILE *f;   /* of part, locked; NULL: nothing is written */
    int64_t n; /* lines behind the first; an earlier run's are among them */
} weir_lines;

/* These return exit codes; an error has been said. Without open, put and keep do nothing. */
int weir_lines_open(weir_lines *l, const weir_cli *cli, const weir_lines_how *how);
int weir_lines_put(weir_lines *l, const char *line);
/* All lines are there: PATH.part becomes PATH. */
int weir_lines_keep(weir_lines *l);
/* In every case. PATH.part stays if it was not kept and has lines. */
void weir_lines_close(weir_lines *l);

#endif
