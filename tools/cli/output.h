/* cli/output.h: results that go to a file or to standard output: a file appears whole or not at all, and what is there
 * is replaced only if it is an earlier output of the same kind, or with --force. */
#ifndef WEIR_CLI_OUTPUT_H
#define WEIR_CLI_OUTPUT_H

#include "tool.h"

typedef struct weir_output_file {
    const char *path;  /* NULL or "-": standard output */
    const char *begin; /* how an earlier output of this kind begins; letters of either case. "": by its first line, which
                          holds, somewhere, what is named below */
    const char *holds; /* and what its first 4 KiB hold besides; NULL: no more is asked */
    bool force;
} weir_output_file;

/* The last two of a form: tools have a table of them. */
typedef struct weir_output_mark {
    const char *begin, *holds;
} weir_output_mark;

/* Do two names mean one file, there or not? */
bool weir_output_same(const char *a, const char *b);

/* Is `path`, whole or while it is made (PATH.part), none of what is read? input [n]: files and directories; NULL ones are
 * passed over. For tools whose command line also holds words that are no names. An error has been said. */
int weir_output_apart(const weir_cli *cli, const char *path, const char *const *input, int n);

/* Can a file be made, or replaced, at `path`? A device could be destroyed, reading a pipe may wait for ever, and what the
 * command line reads must not be written over. An error has been said. */
int weir_output_place(const weir_cli *cli, const char *path);
/* That, and is the path free? Asked before the work is done; weir_output_put asks again. */
int weir_output_free(const weir_cli *cli, const weir_output_file *f);
/* Opens, calls write, and closes. Returns an exit code; an error has been said. */
int weir_output_put(const weir_cli *cli, const weir_output_file *f, int (*write)(void *ctx, FILE *out), void *ctx);

/* Does a file name end with this (".html")? */
bool weir_ends_with(const char *path, const char *end);

#endif
