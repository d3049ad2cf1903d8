/* export/value.h: values of parameters: what JSON and Python have in common, and True, False, None. */
#ifndef WEIR_NOTEBOOK_VALUE_H
#define WEIR_NOTEBOOK_VALUE_H

#include <weir/weir.h>

typedef enum weir_nb_type {
    WEIR_NB_NONE,
    WEIR_NB_BOOL,
    WEIR_NB_INT,
    WEIR_NB_REAL,
    WEIR_NB_TEXT,
    WEIR_NB_LIST
} weir_nb_type;

typedef struct weir_nb_value {
    weir_nb_type type;
    bool yes;                   /* BOOL */
    int64_t i;                  /* INT */
    double r;                   /* REAL, and INT */
    char *text;                 /* TEXT; without NUL inside */
    struct weir_nb_value *item; /* LIST; no lists among them */
    int64_t *ints;              /* [n] LIST of whole numbers; NULL: of others, or empty */
    int64_t n;
} weir_nb_value;

/* "a whole number", for messages. */
const char *weir_nb_type_words(weir_nb_type type);
void weir_nb_value_free(weir_nb_value *v);
WEIR_CHECKED weir_status weir_nb_value_of_text(weir_nb_value *v, const char *text, weir_err *err);

/* Reads the value at the beginning of a template's text; *used: its bytes. */
WEIR_CHECKED weir_status weir_nb_value_read(weir_nb_value *v, const char *text, size_t *used, weir_err *err);
/* Reads what a user typed for a parameter whose value has been `was`, and has its type: texts stand as they are, or in
 * quotes with JSON's escapes; of a list, the brackets may be left out. A parameter that was None takes anything. None
 * is taken by all. */
WEIR_CHECKED weir_status weir_nb_value_typed(weir_nb_value *v, const weir_nb_value *was, const char *typed,
                                             weir_err *err);
/* As Python reads it, in one line whatever it holds. */
void weir_nb_value_python(const weir_nb_value *v, FILE *out);
/* Bytes of a text as Python reads them between quotes, in one line; those that belong to no character as Python's file
 * names have them (surrogates). */
void weir_nb_put_python(FILE *out, const char *text);

#endif
