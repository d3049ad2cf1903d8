/* record/values.h: the three kinds of files that values come from. */
#ifndef WEIR_RECORD_VALUES_H
#define WEIR_RECORD_VALUES_H

#include <weir/values.h>

enum {
    WEIR_VALUES_WIDTH = 1 << 26, /* of a row: more than any hook point has */
    WEIR_VALUES_MOST = 1 << 28   /* numbers that are loaded at once: a damaged file may claim any size */
};

/* FILE[::NAME][@ROW][*C], taken apart. */
typedef struct weir_values_spec {
    char *path, *name; /* name NULL: not given */
    bool one_row;
    int64_t row; /* as given: negative from the end */
    float factor;
} weir_values_spec;
WEIR_CHECKED weir_status weir_values_spec_parse(weir_values_spec *s, const char *text, weir_err *err);
void weir_values_spec_free(weir_values_spec *s);

/* Which rows of `rows` are meant: *first and *n. Refuses a row that is not there, and more than most_rows. */
WEIR_CHECKED weir_status weir_values_rows(const weir_values_spec *s, int64_t rows, int64_t most_rows, int64_t *first,
                                          int64_t *n, weir_err *err);
/* Sizes of an array as rows and width. */
WEIR_CHECKED weir_status weir_values_shape(int rank, const int64_t *shape, int64_t *rows, int64_t *width,
                                           weir_err *err);
/* Room for rows x width. */
WEIR_CHECKED weir_status weir_array_alloc(weir_array *a, int64_t rows, int64_t width, weir_err *err);

/* values_h5.c. Numbers are not yet checked, nor multiplied. */
WEIR_CHECKED weir_status weir_values_h5(weir_array *a, const weir_values_spec *s, const char *hook, int64_t most_rows,
                                        weir_err *err);

#endif
