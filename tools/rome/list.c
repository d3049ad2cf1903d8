/* weir rome list: the edits in some directories, a line each. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "about.h"
#include "cli/common.h"
#include "cli/say.h"

typedef struct list {
    weir_cli *cli;
    bool json;
    int64_t n, bad;
} list;

static bool is_edit(const char *dir)
{
    char path[4200];
    struct stat st;
    return snprintf(path, sizeof path, "%s/adapter_config.json", dir) < (int)sizeof path && stat(path, &st) == 0;
}

/* One that cannot be read is a remark, not the end. */
static void tell(list *l, const char *dir)
{
    weir_err err = {0};
    weir_edit_look *look;
    weir_jsonw w;
    char line[1400];
    if (weir_edit_look_at(&look, dir, &err) != WEIR_OK) {
        weir_cli_error(l->cli, "%s", weir_err_line(&err, line, sizeof line));
        l->bad++;
        return;
    }
    l->n++;
    if (l->json) {
        weir_jsonw_init(&w, stdout);
        weir_rome_about_json(&w, look, false);
        putchar('\n');
    } else {
        weir_rome_about_line(look, stdout);
    }
    weir_edit_look_free(look);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The directory itself, if it is an edit, else the edits in it. */
static int list_in(list *l, const char *dir)
{
    struct dirent **entry;
    const int n = is_edit(dir) ? 0 : scandir(dir, &entry, NULL, by_name);
    if (n < 0)
        return weir_cli_error(l->cli, "cannot read the directory %s", dir);
    if (is_edit(dir)) {
        tell(l, dir);
        return WEIR_EXIT_OK;
    }
    for (int i = 0; i < n; i++) {
        char path[4200];
        const bool here = strcmp(dir, ".") == 0, hidden = entry[i]->d_name[0] == '.';
        if (!hidden &&
            snprintf(path, sizeof path, "%s%s%s", here ? "" : dir, here ? "" : "/", entry[i]->d_name) <
                (int)sizeof path &&
            is_edit(path))
            tell(l, path);
        free(entry[i]);
    }
    free(entry);
    return WEIR_EXIT_OK;
}

static int run(weir_cli *cli, void *args)
{
    const weir_out_args *a = args;
    list l = {.cli = cli, .json = a->json};
    int code = WEIR_EXIT_OK;
    cli->quiet = a->quiet;
    if (!cli->n_operands)
        code = list_in(&l, ".");
    for (int i = 0; i < cli->n_operands && code == WEIR_EXIT_OK; i++)
        code = list_in(&l, cli->operand[i]);
    if (code == WEIR_EXIT_OK && !l.n && !l.bad)
        weir_cli_note(cli, "no edit here: a directory with adapter_config.json is one");
    return code == WEIR_EXIT_OK && l.bad ? WEIR_EXIT_FAILED : code;
}

static const weir_opt_use options[] = {{&weir_opts_out, 0}, {NULL, 0}};
const weir_tool weir_rome_list = {
    .name = "list",
    .summary = "the edits in some directories, a line each",
    .operands = "[DIR...]",
    .about = "Lists edits: of each directory itself, or of those directly in it (without one, in the working "
             "directory): its name, how it was made, its matrices with their rank, the size of the update, and what "
             "was asked for. --json prints an object a line. No model is needed.",
    .example = "weir rome list",
    .options = options,
    .args_size = sizeof(weir_out_args),
    .run = run,
};
