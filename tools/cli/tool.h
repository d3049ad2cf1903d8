/* cli/tool.h: what a tool is. A file tools/NAME.c exports one `const weir_tool weir_tool_NAME` (hyphens as
 * underscores); the Makefile makes the table of the files that exist. Tools see weir's public headers only.
 */
#ifndef WEIR_CLI_TOOL_H
#define WEIR_CLI_TOOL_H

#include <weir/weir.h>

#include "opt.h"

/* Exit codes, the same for every tool. */
enum {
    WEIR_EXIT_OK = 0,
    WEIR_EXIT_FAILED = 1,
    WEIR_EXIT_USAGE = 2,
    WEIR_EXIT_FALSE = 3 /* a checked condition does not hold */
};

typedef struct weir_tool weir_tool;

/* One run of a tool. */
typedef struct weir_cli {
    const weir_tool *tool;
    const weir_tool *parent; /* `tool` is a command of this tool; NULL: it stands for itself */
    int argc; /* the whole command line, for provenance */
    char **argv;
    const char **operand;
    int n_operands;
    const bool *given;              /* for weir_cli_given */
    bool quiet;                     /* no remarks, no progress; errors are always said */
    struct weir_progress *progress; /* the bar that stands on the terminal's last line now, or NULL */
} weir_cli;

struct weir_tool {
    const char *name;
    const char *summary;                   /* one line for the list of tools */
    const char *operands;                  /* "[TEXT...]" */
    const char *about;                     /* a paragraph or two for --help */
    const char *example;                   /* shell lines; they run as printed, in this order */
    const weir_opt_use *options;           /* ends with a NULL group */
    const weir_opt_rule *rules;            /* ends with a NULL name; may be NULL */
    size_t args_size;                      /* of the struct that `run` gets */
    int (*run)(weir_cli *cli, void *args); /* returns an exit code */
    void (*more_help)(FILE *out);          /* appended to --help; may be NULL */
    /* A tool of commands (`weir rome edit ...`): its commands, each a tool of its own; ends with NULL. It then needs no
     * options, rules, args_size and run. */
    const weir_tool *const *commands;
};

extern const weir_tool *const weir_tool_table[];
extern const int weir_n_tools;

#endif
