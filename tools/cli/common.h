/* cli/common.h: groups of options that tools share, and the structs of their values. A tool includes those that make
 * sense in it. */
#ifndef WEIR_CLI_COMMON_H
#define WEIR_CLI_COMMON_H

#include "tool.h"

/* --model */
typedef struct weir_model_args {
    const char *path; /* NULL: $WEIR_MODEL, else brook */
} weir_model_args;
extern const weir_opt_group weir_opts_model;

/* --threads --kernel --memory --batch */
typedef struct weir_run_args {
    int64_t threads; /* 0: all processors */
    int kernel;
    int64_t memory; /* 0: no bound */
    int64_t batch;
} weir_run_args;
extern const weir_opt_group weir_opts_run;
/* Its first ones alone. Where a pass has as many rows as the tool makes: no --batch. Where nothing is run: no --memory
 * either. */
extern const weir_opt_group weir_opts_run_here, weir_opts_processor;

/* --file --docs --jsonl --field --shard --chat --system: where text comes from (cli/input.h) */
typedef struct weir_text_args {
    weir_opt_list files;
    const char *docs;
    bool jsonl;
    const char *field;
    const char *shard; /* "I/N"; NULL: the whole text */
    bool chat;          /* documents are messages to the model: its chat template goes round them */
    const char *system; /* NULL: none */
} weir_text_args;
extern const weir_opt_group weir_opts_text;

/* --ids --bos --ctx --stride --max-tokens --positions: from text to rows (cli/feed.h) */
typedef enum weir_bos { WEIR_BOS_AUTO, WEIR_BOS_YES, WEIR_BOS_NO } weir_bos;
typedef struct weir_row_args {
    bool ids;
    int bos;
    int64_t ctx, stride, max_tokens; /* 0: the model's context; no overlap; no bound */
    const char *positions;
} weir_row_args;
extern const weir_opt_group weir_opts_rows;

/* --json --quiet */
typedef struct weir_out_args {
    bool json, quiet;
} weir_out_args;
extern const weir_opt_group weir_opts_out;

/* NULL for "best", else the table's name. */
const char *weir_kernel_name(const weir_run_args *a);

/* --model, else $WEIR_MODEL, else brook's directory; may use buf[n]. NULL: brook is nowhere. */
const char *weir_model_path(const weir_model_args *a, char *buf, size_t n, weir_err *err);

/* Does the option of this name stand on the command line? Its value may be the default's all the same. */
bool weir_cli_given(const weir_cli *cli, const char *name);
/* Does the tool have an option of this name? */
bool weir_cli_has(const weir_cli *cli, const char *name);

/* The command line as one line that a shell reads back; owned by the caller (free), NULL when out of memory. */
char *weir_command_line(const weir_cli *cli);

#endif
