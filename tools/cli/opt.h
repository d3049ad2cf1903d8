/* cli/opt.h: options as data. A table of rows says everything about an option once: parsing, --help, the suggestions
 * for misspelt names, man pages (cli/manual.h) and completion (cli/complete.h) all read it.
 *
 * Options that several tools take stand in shared groups (cli/common.h). A group's rows store their values in a struct
 * of the group; a tool's own struct holds those structs, and its list of weir_opt_use says where.
 */
#ifndef WEIR_CLI_OPT_H
#define WEIR_CLI_OPT_H

#include <weir/base.h>

typedef enum weir_opt_type {
    WEIR_OPT_FLAG,   /* bool */
    WEIR_OPT_INT,    /* int64_t, decimal, in [min, max] */
    WEIR_OPT_REAL,   /* double, finite, >= min */
    WEIR_OPT_BYTES,  /* int64_t, with an optional K, M or G (powers of 1024), >= min */
    WEIR_OPT_STR,    /* const char *, not empty */
    WEIR_OPT_CHOICE, /* int: index of the word among those of `arg`, separated by | */
    WEIR_OPT_LIST    /* weir_opt_list: the option may be repeated; the others may be given once */
} weir_opt_type;

/* The values of a repeatable option in the order given. */
typedef struct weir_opt_list {
    const char **v;
    int *place; /* [n] where on the command line each stands: tells the order among several options */
    int n;
} weir_opt_list;

typedef struct weir_opt {
    const char *name;  /* long name, without dashes */
    char letter;       /* short name, or 0 */
    const char *alias; /* a second long name, or NULL */
    weir_opt_type type;
    const char *arg; /* what --help calls the value; CHOICE: the words, "auto|yes|no"; FLAG: NULL. Completion goes by it:
                        cli/complete.h */
    int64_t min, max;
    const char *def;  /* default, parsed like a value and shown by --help; NULL: zero */
    const char *help; /* one or two phrases, without full stop */
    size_t at;        /* offset of the value in the group's struct */
} weir_opt;

typedef struct weir_opt_group {
    const char *title;
    const weir_opt *opt;
    int n;
} weir_opt_group;

/* A group as a tool includes it: the struct of its values lies `at` bytes into the tool's own. */
typedef struct weir_opt_use {
    const weir_opt_group *group; /* NULL ends the list */
    size_t at;
} weir_opt_use;

/* What must hold between two options of a tool, by name. */
typedef struct weir_opt_rule {
    const char *name; /* NULL ends the list */
    enum { WEIR_OPT_EXCLUDES, WEIR_OPT_NEEDS } kind;
    const char *other; /* NEEDS: "a|b": one of them */
} weir_opt_rule;

/* Does "a|b" name it? */
bool weir_opt_rule_lists(const char *names, const char *name);
/* "a|b" as options: --a, --b. */
void weir_opt_rule_put(FILE *out, const char *names, const char *between);

typedef struct weir_opt_operands {
    const char **v;
    int n;
    bool *given; /* for weir_opt_given */
} weir_opt_operands;

typedef enum weir_opt_result { WEIR_OPT_OK, WEIR_OPT_HELP, WEIR_OPT_BAD } weir_opt_result;

/* Sets defaults, then reads argv[0..argc) (without the tool's name) into args, which is zeroed and has the size that
 * the tool says.
 * `--` ends the options, `-` is an operand. BAD: msg[n] says what is wrong in one line. Free with weir_opt_release in
 * every case. */
weir_opt_result weir_opt_parse(const weir_opt_use *use, const weir_opt_rule *rules, int argc, char **argv, void *args,
                               weir_opt_operands *operands, char *msg, size_t n);
/* Does the option of this name stand on the command line? given: of weir_opt_operands. */
bool weir_opt_given(const weir_opt_use *use, const bool *given, const char *name);
void weir_opt_release(const weir_opt_use *use, void *args, weir_opt_operands *operands);

/* "a,b,c" of a list, to be freed; *out is left alone (NULL) for an empty one. False: out of memory. */
bool weir_opt_list_join(char **out, const weir_opt_list *list);

/* Strict numbers: all of the text, no white space, no overflow. */
bool weir_parse_int(const char *text, int64_t *out);
bool weir_parse_real(const char *text, double *out);
bool weir_parse_bytes(const char *text, int64_t *out);

/* The name among names[n] that is nearest to a misspelt one, or NULL when none is near. */
const char *weir_nearest(const char *name, const char *const *names, int n);

/* Options of all groups, titles and wrapped help texts, for --help. */
void weir_opt_print(const weir_opt_use *use, FILE *out);
/* text in lines of at most 80 columns, indented; a newline in the text starts a new line. */
void weir_print_wrapped(FILE *out, int indent, int column, const char *text);

#endif
