/* export/nb.h: a notebook while it is made: the template's cells, the parameters, what the file is. */
#ifndef WEIR_NOTEBOOK_NB_H
#define WEIR_NOTEBOOK_NB_H

#include "cli/opt.h"
#include "kind.h"
#include "value.h"

typedef struct weir_nb_cell {
    bool code;
    char *id, *source;
    char *metadata; /* JSON */
} weir_nb_cell;

/* A line of the parameters cell. */
typedef struct weir_nb_line {
    char *name; /* NULL: a comment, or nothing: */
    char *text; /* what stands behind the value, with its '#', or the whole line; "": nothing */
    weir_nb_value value;
    bool given; /* by the user */
} weir_nb_line;

typedef struct weir_nb_told {
    char *name, *text;
} weir_nb_told;

struct weir_nb {
    const weir_cli *cli;
    const weir_nb_kind *kind;
    const char *path; /* the file as it is opened */
    weir_nb_cell *cell;
    int n_cells;
    int parameters; /* which cell */
    weir_nb_line *line;
    int n_lines;
    weir_nb_told *told;
    int n_told;
    weir_err err; /* what went wrong in a function that returns nothing */
};

/* --- template.c. Functions that return an exit code have said the error. */

/* Reads the template of a kind. nb is freed with weir_nb_free in every case. */
int weir_nb_begin(weir_nb *nb, const weir_cli *cli, const weir_nb_kind *kind, const char *path);
void weir_nb_free(weir_nb *nb);
/* A cell's source, a text or its lines: to be freed; NULL: j has failed. */
char *weir_nb_read_source(weir_json *j, size_t *n);
/* The first line of the first cell, without its '#': to be freed; NULL: out of memory. */
char *weir_nb_title(const weir_nb *nb);
/* Says what nb->err holds. */
int weir_nb_check(const weir_nb *nb);

/* --- params.c */

/* The lines of the parameters cell. */
WEIR_CHECKED weir_status weir_nb_lines_read(weir_nb *nb, const char *source, weir_err *err);
void weir_nb_lines_free(weir_nb *nb);
/* -p NAME=VALUE, each. */
int weir_nb_give(weir_nb *nb, const weir_opt_list *list);
/* The parameters cell with the values of now; file: the value of `file`. */
void weir_nb_put_parameters(const weir_nb *nb, const char *file, FILE *out);

/* --- notebook.c */

/* file: how the notebook names the file. False: out of memory. */
bool weir_nb_put_notebook(const weir_nb *nb, const char *file, FILE *out);

/* --- page.c */

/* The page of the kind's figures. Returns an exit code; an error has been said. */
int weir_nb_put_page(weir_nb *nb, void *data, FILE *out);

#endif
