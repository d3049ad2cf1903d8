/* export/kind.h: a kind of notebook: templates/NAME.ipynb, a valid notebook, and figures/NAME.c, which draws for the
 * page of --html what the template's cells draw, with the same numbers. To add a kind, add these two files: the
 * Makefile makes the table of those that exist, and embeds the templates. figures/README.md shows how.
 *
 * A template is read as it is. Its cell of code with the id `parameters` holds lines `name = value  # what it is`, with
 * values that are JSON and Python alike (numbers, "text", lists of these) or True, False, None; `file` is the first.
 * The notebook that is written is the template with these values replaced, and its first cell, a heading, told what the
 * file is. The page has the same cells in the same order: prose, the code folded, and in the place of a cell's output
 * the figure that has the cell's id.
 */
#ifndef WEIR_NOTEBOOK_KIND_H
#define WEIR_NOTEBOOK_KIND_H

#include "cli/tool.h"

typedef struct weir_nb weir_nb;

/* What a cell shows. Writes HTML to out (mostly one <svg>), and to `numbers` members of an object that is open: for
 * each variable that the cell leaves behind and that is worth comparing its name and its value, numbers and arrays of
 * them (tests execute the notebook and compare them). Returns an exit code; an error has been said. */
typedef struct weir_nb_figure {
    const char *cell; /* the cell's id */
    int (*draw)(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
} weir_nb_figure;

typedef struct weir_nb_kind {
    const char *name;   /* "activations": of the template, and of --template */
    const char *format; /* root attribute `format` of the files that it shows */
    /* Of several kinds of one format: how well does this one suit PATH? The highest wins; 0: only when asked for. NULL:
     * 1. */
    int (*suits)(const char *path);
    /* Opens nb's file for the figures, checks what can be checked, says what the file is (weir_nb_tell), and sets
     * parameters that the user left alone and whose value depends on the file (weir_nb_set). Also called for a
     * notebook: what is wrong with a file is said now, not in Jupyter. *data, NULL before, is given to the figures and
     * to close. Returns an exit code; an error has been said. */
    int (*open)(weir_nb *nb, void **data);
    void (*close)(void *data);    /* what open left, also after an error; NULL is fine */
    const weir_nb_figure *figure; /* ends with NULL */
} weir_nb_kind;

/* Generated: kinds, and the text of each one's template as lines that end with NULL, in the same order. */
extern const weir_nb_kind *const weir_nb_kind_table[];
extern const int weir_n_nb_kinds;
extern const char *const *const weir_nb_template_table[];

/* --- what a kind may ask */

const weir_cli *weir_nb_cli(const weir_nb *nb);
const char *weir_nb_path(const weir_nb *nb); /* the file that is shown */

/* What the file is, a line of the first cell and of the page's head behind file and format: weir_nb_tell(nb, "model",
 * "%s", name). Bytes of any kind are fine; they are shown as text. */
void weir_nb_tell(weir_nb *nb, const char *name, const char *fmt, ...) WEIR_PRINTF(3, 4);
/* What changed a run's values, from the JSON array of its file (interventions), in words: nothing is told where nothing
 * did. NULL: there was no memory for it. Returns an exit code; an error has been said. */
int weir_nb_tell_changes(weir_nb *nb, const char *json);
/* What a noun ends with behind n. */
static inline const char *weir_nb_s(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* Opens a dump of weir trace, and tells its model, how much text it holds, what changed its values, and whether it is
 * whole. Returns an exit code; an error has been said. The caller closes *r, also after an error. */
int weir_nb_open_dump(weir_nb *nb, weir_dump_reader **r);

/* Did the user give this parameter (-p NAME=VALUE)? */
bool weir_nb_given(const weir_nb *nb, const char *name);
/* Sets a parameter unless the user gave it. value: as in the template, JSON or True, False, None. A name that is not in
 * the template, a value that is none, no memory: said when the output is written. */
void weir_nb_set(weir_nb *nb, const char *name, const char *value);
void weir_nb_set_int(weir_nb *nb, const char *name, int64_t value);
void weir_nb_set_text(weir_nb *nb, const char *name, const char *value);
/* The value of a parameter. A value of another type is an error of the user (-p), which is said; then the exit code is
 * not WEIR_EXIT_OK. A whole number is a real number too. Texts and lists live as long as the value is not set again.
 * *there (may be NULL, then None is an error): false for None. */
int weir_nb_int(const weir_nb *nb, const char *name, int64_t *out, bool *there);
int weir_nb_real(const weir_nb *nb, const char *name, double *out, bool *there);
/* From low to high; anything else is said in the same way. */
int weir_nb_int_in(const weir_nb *nb, const char *name, int64_t low, int64_t high, int64_t *out);
int weir_nb_bool(const weir_nb *nb, const char *name, bool *out);
int weir_nb_text(const weir_nb *nb, const char *name, const char **out, bool *there);
int weir_nb_ints(const weir_nb *nb, const char *name, const int64_t **out, int64_t *n, bool *there);

/* One line on stderr about a parameter: "-p layer=9: ...". Returns WEIR_EXIT_USAGE. */
int weir_nb_wrong(const weir_nb *nb, const char *name, const char *fmt, ...) WEIR_PRINTF(3, 4);
/* Says that there is no memory. Returns WEIR_EXIT_FAILED. */
int weir_nb_no_memory(const weir_nb *nb);

/* A paragraph in a figure, or in the place of one. What is printed may hold any bytes. */
void weir_nb_say(FILE *out, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* --- numbers: members of the object. What is not finite is written as "nan", "inf" or "-inf". */

void weir_nb_put_real(weir_jsonw *numbers, const char *name, double x);
void weir_nb_put_reals(weir_jsonw *numbers, const char *name, const double *x, int64_t n);
void weir_nb_put_ints(weir_jsonw *numbers, const char *name, const int64_t *x, int64_t n);
/* An array of arrays, row major. */
void weir_nb_put_table(weir_jsonw *numbers, const char *name, const double *x, int64_t rows, int64_t columns);

#endif
