/* weir repair: what a kill left of dumps, made readable. */
#include "cli/common.h"
#include "cli/say.h"

typedef struct repair_args {
    weir_out_args out;
} repair_args;

static const weir_opt_use options[] = {{&weir_opts_out, offsetof(repair_args, out)}, {NULL, 0}};

static const char *found(const weir_dump_report *r)
{
    if (r->complete)
        return "complete: nothing to repair";
    if (r->most == 0)
        return "its run ended before any row was whole";
    return r->open ? "repaired" : r->cut ? "cut to what is whole" : "nothing to repair";
}

static void print_text(const char *path, const weir_dump_report *r)
{
    printf("%s: %s", path, found(r));
    if (r->most > 0)
        printf("; %lld rows, %lld documents", (long long)r->rows, (long long)r->docs);
    if (r->most > r->rows)
        printf(" (some hook points have up to %lld rows)", (long long)r->most);
    putchar('\n');
}

static void print_json(weir_jsonw *w, const char *path, const weir_dump_report *r)
{
    const struct {
        const char *key;
        int64_t value;
    } number[] = {{"rows", r->rows}, {"most_rows", r->most}, {"documents", r->docs}, {"datasets_cut", r->cut}};
    weir_jsonw_key(w, path);
    weir_jsonw_object(w);
    weir_jsonw_key_bool(w, "complete", r->complete);
    weir_jsonw_key_bool(w, "was_open", r->open);
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        weir_jsonw_key_int(w, number[i].key, number[i].value);
    }
    weir_jsonw_end(w);
}

static int run(weir_cli *cli, void *args)
{
    const repair_args *a = args;
    int code = WEIR_EXIT_OK;
    weir_jsonw w;
    cli->quiet = a->out.quiet;
    if (cli->n_operands == 0)
        return weir_cli_usage(cli, "name the files to repair");
    if (a->out.json) {
        weir_jsonw_init(&w, stdout);
        weir_jsonw_object(&w);
    }
    for (int i = 0; i < cli->n_operands; i++) {
        weir_err err = {0};
        weir_dump_report r;
        if (weir_dump_repair(cli->operand[i], &r, &err) != WEIR_OK)
            code = weir_cli_fail(cli, &err);
        else if (a->out.json)
            print_json(&w, cli->operand[i], &r);
        else if (!cli->quiet)
            print_text(cli->operand[i], &r);
    }
    if (a->out.json) {
        weir_jsonw_end(&w);
        putchar('\n');
    }
    return code;
}

const weir_tool weir_tool_repair = {
    .name = "repair",
    .summary = "make readable what a killed run left of a dump",
    .operands = "FILE.h5.part...",
    .about =
        "A run that is killed leaves FILE.h5.part marked as open: h5py refuses it, and "
        "HDF5's own h5clear would cut off nearly all of it. This puts it right, and cuts every dataset to the rows "
        "that are surely whole (/progress). Nothing that was whole is lost; `complete` stays 0. trace --resume repairs "
        "by itself. Repairing a file again, or one that is in order, changes nothing. Files that another "
        "process writes are refused.",
    .example = "weir trace --layer 6 --dump mlp.h5 'The river bends.'\n"
               "weir repair mlp.h5\n"
               "weir repair --json mlp.h5",
    .options = options,
    .rules = NULL,
    .args_size = sizeof(repair_args),
    .run = run,
};
