/* weir merge: files that belong together, joined into one. */
#include <stdlib.h>

#include "cli/common.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"

typedef struct merge_args {
    weir_out_args out;
    bool as_virtual, force;
    int64_t threads, memory;
} merge_args;

static const weir_opt own_opts[] = {
    {"virtual", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "leave the values where they are: OUT.h5 points into the files, which have to stay beside it. The directory as a "
     "whole can be moved",
     offsetof(merge_args, as_virtual)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "replace OUT.h5 if it is a dump, and what a killed merge left in OUT.h5.part",
     offsetof(merge_args, force)},
    {"memory", 0, NULL, WEIR_OPT_BYTES, "BYTES", 1, 0, "256M",
     "rows that are held at a time; less means that the files are opened more often. K, M or G may follow",
     offsetof(merge_args, memory)},
    {"threads", 't', NULL, WEIR_OPT_INT, "N", 0, 4096, "0", "threads; 0: all processors",
     offsetof(merge_args, threads)},
};
static const weir_opt_group own_group = {"Joining", own_opts, sizeof own_opts / sizeof *own_opts};

static const weir_opt_use options[] = {{&own_group, 0}, {&weir_opts_out, offsetof(merge_args, out)}, {NULL, 0}};

static void on_progress(void *user, double share)
{
    weir_progress_update(user, share, -1);
}

static void print_json(const weir_merge_summary *s, const char *out)
{
    weir_jsonw w;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "file", out);
    weir_jsonw_key_int(&w, "files", s->files);
    weir_jsonw_key_int(&w, "documents", s->docs);
    weir_jsonw_key_int(&w, "rows", s->rows);
    weir_jsonw_key_int(&w, "datasets", s->datasets);
    weir_jsonw_key_int(&w, "file_bytes", s->file_bytes);
    weir_jsonw_end(&w);
    putchar('\n');
}

static int merge(weir_cli *cli, const merge_args *a, const char *command_line)
{
    weir_err err = {0};
    weir_merge_options o;
    weir_merge_summary s;
    weir_progress bar;
    const char *out = cli->operand[0];
    weir_merge_options_init(&o);
    o.as_virtual = a->as_virtual;
    o.force = a->force;
    o.threads = (int)a->threads;
    o.memory = a->memory;
    o.command_line = command_line;
    o.stop = weir_signals_stop;
    o.progress = on_progress;
    o.user = &bar;
    weir_signals_catch();
    weir_progress_start(&bar, cli);
    weir_status st = weir_dump_merge(out, cli->operand + 1, cli->n_operands - 1, &o, &s, &err);
    weir_progress_stop(&bar, cli);
    if (st == WEIR_STOP)
        return weir_cli_error(cli, "stopped by signal %d; nothing was left behind", weir_signals_seen());
    if (st != WEIR_OK)
        return weir_cli_fail(cli, &err);
    weir_cli_note(cli, "%s: %lld files, %lld documents, %lld rows", out, (long long)s.files, (long long)s.docs,
                  (long long)s.rows);
    if (a->out.json)
        print_json(&s, out);
    return WEIR_EXIT_OK;
}

static int run(weir_cli *cli, void *args)
{
    const merge_args *a = args;
    cli->quiet = a->out.quiet;
    if (cli->n_operands < 2)
        return weir_cli_usage(cli, "a name for the result and the files to join are needed, %d given", cli->n_operands);
    char *command_line = weir_command_line(cli);
    if (!command_line)
        return weir_cli_error(cli, "out of memory");
    int code = merge(cli, a, command_line);
    free(command_line);
    return code;
}

const weir_tool weir_tool_merge = {
    .name = "merge",
    .summary = "join the shards of a text, or other dumps of the same kind, into one file",
    .operands = "OUT.h5 SHARD.h5...",
    .about =
        "Joins the dumps of trace --shard 0/N to N-1/N, in any order, into one file whose datasets equal those of a "
        "run over the whole text. Dumps that are no shards are laid one behind the other in the order given, if "
        "model, options and hooks are the same. A file that does not belong to the others is named, with what differs, "
        "and nothing is written. The files themselves are not changed.",
    .example = "weir trace --layer 6 --shard 0/2 --dump part0.h5\n"
               "weir trace --layer 6 --shard 1/2 --dump part1.h5\n"
               "weir merge whole.h5 part0.h5 part1.h5",
    .options = options,
    .rules = NULL,
    .args_size = sizeof(merge_args),
    .run = run,
};
