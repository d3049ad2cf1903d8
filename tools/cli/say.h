/* cli/say.h: talk, on stderr, one line each, with the tool's name before it. What is not printable (file names
 * may hold it) is shown as '?'. A progress bar is taken off the terminal first. */
#ifndef WEIR_CLI_SAY_H
#define WEIR_CLI_SAY_H

#include "tool.h"

/* A remark; silent with --quiet. */
void weir_cli_note(const weir_cli *cli, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* An error that the tool words itself; returns WEIR_EXIT_FAILED. */
int weir_cli_error(const weir_cli *cli, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* A library's error; returns WEIR_EXIT_FAILED. */
int weir_cli_fail(const weir_cli *cli, const weir_err *err);
/* The same, of the file at path where the error names none. */
int weir_cli_fail_at(const weir_cli *cli, const char *path, weir_err *err);
/* A wrong command line; the line ends with where help is. Returns WEIR_EXIT_USAGE. */
int weir_cli_usage(const weir_cli *cli, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* A library's error about what stands on the command line: usage, unless files or memory are to blame. option: put
 * before it, or NULL. */
int weir_cli_bad_argument(const weir_cli *cli, const char *option, const weir_err *err);

/* The library's log, sent to weir_cli_note. cli must outlive it. */
weir_log weir_cli_log(const weir_cli *cli);

#endif
