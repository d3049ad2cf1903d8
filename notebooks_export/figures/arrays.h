/* figures/arrays.h: files of named arrays (weir/arrays.h) as figures read them: sizes in a file are not trusted. */
#ifndef WEIR_NOTEBOOK_ARRAYS_H
#define WEIR_NOTEBOOK_ARRAYS_H

#include "export/kind.h"

/* An array that must have this type and shape; `at` is the address of the pointer that gets it, to be freed with free.
 */
typedef struct weir_nb_array {
    const char *name;
    weir_array_type type;
    int rank;
    int64_t dim[WEIR_ARRAY_RANK];
    void *at;
} weir_nb_array;

/* After an error those that were taken stay: their owner frees all, whatever was taken. */
WEIR_CHECKED weir_status weir_nb_take(weir_arrays_in *r, const weir_nb_array *a, size_t n, weir_err *err);
#define WEIR_NB_TAKE(r, list, err) weir_nb_take(r, list, sizeof(list) / sizeof *(list), err)
/* The texts of a group, which must be n. */
WEIR_CHECKED weir_status weir_nb_take_texts(weir_arrays_in *r, const char *group, int64_t n, weir_array_texts *t,
                                            weir_err *err);

/* All of them, to be freed; they live as long as t. NULL: out of memory. */
weir_str *weir_nb_names(const weir_array_texts *t);
/* A token's bytes; empty where it has none. */
weir_str weir_nb_token(const weir_array_texts *vocab, int32_t id);
/* weir_nb_tell of an attribute of the root, if it is there and not empty. */
void weir_nb_tell_attribute(weir_nb *nb, weir_arrays_in *r, const char *attribute, const char *name);

#endif
