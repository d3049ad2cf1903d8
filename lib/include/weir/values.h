/* weir/values.h: interventions: values from files, and what of a hook's value they act on.
 *
 * The built-in hooks ablate, scale, steer, set, patch and project-out are made of this; a hook of one's own that writes
 * may be, too (hooks/set.c is the shortest one):
 *
 *     struct mine { weir_target target; ... };   // the target comes first: `self` of the functions below points to it
 *     const char *value;
 *     weir_target_open(&s->target, model, "mine", "mine:SEL=VALUE", args, &value, err);
 *     weir_target_vectors(&s->target, value, 1, err);                  // a vector for each point that SEL names
 *     ...
 *     weir_target_row r = weir_target_rows(&s->target, v);
 *     while (weir_target_next(&r))
 *         for (int64_t i = 0; i < r.n; i++)
 *             r.x[r.column[i]] = r.vector[i];
 */
#ifndef WEIR_VALUES_H
#define WEIR_VALUES_H

#include "record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- arrays from files */

typedef struct weir_array {
    int64_t rows, width;
    float *data;    /* [rows, width], finite */
    bool hook;      /* rows of a hook point: the columns are these elements of its whole row: */
    int64_t *units; /* [width], ascending, where selected units were recorded; NULL: all of the row */
} weir_array;
WEIR_API void weir_array_free(weir_array *a);

/* Loads what FILE[::NAME][@ROW][*C] means at a hook point.
 *
 * FILE is one of
 *   .npy          numpy's format, versions 1 to 3: f2 f4 f8, i1 to i8, u1 to u8, either byte order, C or Fortran order
 *   safetensors   F32, F16 or BF16; NAME is a tensor, and can be left out when the file has one only
 *   HDF5          a file of weir's; NAME is a hook point of a dump (its rows) or of a statistics file (its mean), by
 *                 default the point `hook` itself; a NAME with a slash is the path of any dataset of numbers in it
 *
 * which are told apart by their first bytes. The first axis are the rows, the others make up the width; an array of one
 * axis is one row. ROW chooses one row, counted from 0, negative ones from the end; C, a number, multiplies all.
 * Numbers become float32; one that is no finite float32 is an error.
 *
 * The text is read from the right: *C, then @ROW, then ::NAME (from the first `::` with a file before it) are taken
 * off, but only as long as what is left does not name an existing file. So a file called `v@1` is meant by `v@1`, and
 * its row 0 by `v@1@0`.
 *
 * Only what is needed is read. Without ROW an array of more than most_rows rows is refused: the error says to choose
 * one with @ROW. hook may be NULL: then NAME must be given where a file has names. Of several tensors of a safetensors
 * file one that is named like the hook point needs no NAME. */
WEIR_API WEIR_CHECKED weir_status weir_values_load(weir_array *out, const char *text, const char *hook,
                                                   int64_t most_rows, weir_err *err);
/* The mean of hook point `hook`: what a statistics file (`--hook stats:FILE.h5=SEL`) says, or, of a dump, the mean of
 * all its rows, added up in float64 in their order. One row. */
WEIR_API WEIR_CHECKED weir_status weir_values_mean(weir_array *out, const char *path, const char *hook, weir_err *err);
/* The path in FILE[::NAME][@ROW][*C], for provenance: a copy (free); NULL: the text is none, or out of memory. */
WEIR_API char *weir_values_path(const char *text);

/* --- rows of a dump by document and position */

typedef struct weir_places weir_places;

/* points: how many hook points will be read: their caches share 64 MiB. */
WEIR_API WEIR_CHECKED weir_status weir_places_open(weir_places **out, const char *path, int64_t points, weir_err *err);
WEIR_API void weir_places_close(weir_places *p);
/* Prepares reading hook point `hook`: *index is its number here, *info borrowed. Absent: an error that says how to
 * record it. */
WEIR_API WEIR_CHECKED weir_status weir_places_hook(weir_places *p, const char *hook, int *index,
                                                   const weir_dump_hook **info, weir_err *err);
/* The column of the hook's rows that holds this element of the point's whole row; -1: it was not recorded. */
WEIR_API int64_t weir_places_column(const weir_places *p, int index, int64_t element);
/* The row that was recorded of document doc (its number in the whole text, also for a shard) at position pos (as
 * /tokens/pos counts), or -1. */
WEIR_API WEIR_CHECKED weir_status weir_places_find(weir_places *p, int64_t doc, int64_t pos, int64_t *row,
                                                   weir_err *err);
/* That row of the hook; borrowed until the next call about this hook. Rows asked in ascending order are read once. */
WEIR_API WEIR_CHECKED weir_status weir_places_row(weir_places *p, int index, int64_t row, const float **x,
                                                  weir_err *err);

/* --- what an intervention acts on */

/* The first member of a hook's state. Zero it before weir_target_open. */
typedef struct weir_target {
    const char *hook; /* the hook's name, for messages */
    const weir_model *model;
    weir_selector *selector;
    char *args;                    /* as given */
    int64_t changed, missed;       /* what weir_target_changed answers; weir_target_next counts each row as changed */
    struct weir_target_part *part; /* [all points]: see weir_target_part_of */
} weir_target;

/* What is selected of one point. */
typedef struct weir_target_part {
    int64_t n;              /* elements of a row, ascending; 0: the point is not selected */
    const int64_t *element; /* [n] of a row of the point; borrowed from the selector, or NULL: all */
    int64_t *column;        /* [n] the same in the rows of a value: keyed points have as many keys as the pass */
    float *vector;          /* [rows, n], or NULL: none was loaded */
    int64_t rows;
    int64_t group; /* the vector was given for every `group` elements (one head's) and repeats; else group = n */
} weir_target_part;

/* Reads args, "SEL" or "SEL=VALUE" (a selector holds no `=`). value: what stands behind the `=`, borrowed from t, or
 * NULL. grammar: of args, for the error when there are none. */
WEIR_API WEIR_CHECKED weir_status weir_target_open(weir_target *t, const weir_model *m, const char *hook,
                                                   const char *grammar, const char *args, const char **value,
                                                   weir_err *err);
WEIR_API void weir_target_close(weir_target *t);

/* Loads FILE[::NAME][@ROW][*C] for every selected point. Its width must be that of what is selected: the whole row, all
 * selected elements together, or, where whole heads are selected, one head (each then gets the same). A recording of
 * units must have those that are selected. Scores and pattern, whose rows have no fixed width, are refused. */
WEIR_API WEIR_CHECKED weir_status weir_target_vectors(weir_target *t, const char *text, int64_t most_rows,
                                                      weir_err *err);
/* The same with the mean of each point (weir_values_mean). */
WEIR_API WEIR_CHECKED weir_status weir_target_means(weir_target *t, const char *path, weir_err *err);
/* Refuses scores and pattern. */
WEIR_API WEIR_CHECKED weir_status weir_target_no_keys(const weir_target *t, weir_err *err);
/* Of a point of the model; never NULL. */
WEIR_API weir_target_part *weir_target_part_of(const weir_target *t, const weir_point *p);

/* Goes through the selected rows of a value, context rows included: positions are the document's (weir_rows.doc_pos).
 */
typedef struct weir_target_row {
    weir_target *target;
    const weir_value *value;
    int64_t t;             /* row of the value */
    float *x;              /* the whole row */
    int64_t n;             /* elements to act on: x[column[i]] */
    const int64_t *column; /* [n] */
    const float *vector;   /* [n], or [rows, n] */
    int64_t rows, group;   /* as in the part */
    bool again;            /* rows are not counted as changed */
} weir_target_row;
WEIR_API weir_target_row weir_target_rows(weir_target *t, const weir_value *v);
/* For on_grad: the rows that the pass has changed; they are not counted again. */
WEIR_API weir_target_row weir_target_rows_again(weir_target *t, const weir_value *v);
/* The next selected row; false: there is none. */
WEIR_API bool weir_target_next(weir_target_row *r);

/* Members of a weir_hook_class whose self begins with a weir_target. finish fails when nothing was changed: that is a
 * mistake, not a result. */
WEIR_API weir_want weir_target_wants(void *self, const weir_point *p);
/* on_grad of a hook that sets values: no gradient goes on to what stood there. */
WEIR_API weir_status weir_target_set_grad(void *self, const weir_value *v, weir_err *err);
WEIR_API weir_status weir_target_finish(void *self, FILE *out, weir_err *err);
WEIR_API int64_t weir_target_changed(void *self, int64_t *missed);

#ifdef __cplusplus
}
#endif
#endif
