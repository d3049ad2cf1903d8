/* weir notebook-export: a notebook, or a page, that shows what is in a file of weir's. */
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/say.h"
#include "export/choose.h"
#include "export/execute.h"
#include "export/marks.h"
#include "export/nb.h"
#include "export/place.h"

typedef struct args {
    const char *from, *template, *path;
    weir_opt_list params;
    bool html, execute, list, force, quiet;
    int64_t timeout;
} args;

#define AT(field) offsetof(args, field)
static const weir_opt notebook_opts[] = {
    {"from", 0, NULL, WEIR_OPT_STR, "FILE.h5", 0, 0, NULL, "the file that is shown, as the argument", AT(from)},
    {"template", 0, NULL, WEIR_OPT_STR, "NAME", 0, 0, NULL,
     "which kind of notebook, where the file's format has several; --list names them", AT(template)},
    {"param", 'p', NULL, WEIR_OPT_LIST, "NAME=VALUE", 0, 0, NULL,
     "a value of the notebook's parameters cell; --list FILE.h5 shows them", AT(params)},
    {"list", 'l', NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "print the kinds of notebooks, or with FILE.h5 the one that shows it and its parameters", AT(list)},
};
static const weir_opt out_opts[] = {
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL,
     "NAME.ipynb, or NAME.html for a page; without it the file's name with .ipynb, in the current directory", AT(path)},
    {"html", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "write one page with all figures, drawn by weir: no Jupyter, no Python, no network", AT(html)},
    {"execute", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "run the notebook with Jupyter (jupyter nbconvert), so that it opens with its figures", AT(execute)},
    {"timeout", 0, NULL, WEIR_OPT_INT, "SECONDS", 1, 1 << 30, "600", "with --execute: for each cell", AT(timeout)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
    {"quiet", 'q', NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "no remarks, only errors", AT(quiet)},
};
static const weir_opt_group notebook_group = {"Notebook", notebook_opts, sizeof notebook_opts / sizeof *notebook_opts};
static const weir_opt_group out_group = {"Output", out_opts, sizeof out_opts / sizeof *out_opts};
static const weir_opt_use options[] = {{&notebook_group, 0}, {&out_group, 0}, {NULL, 0}};
static const weir_opt_rule rules[] = {{"execute", WEIR_OPT_EXCLUDES, "html"}, {"timeout", WEIR_OPT_NEEDS, "execute"},
                                      {"list", WEIR_OPT_EXCLUDES, "out"},     {"list", WEIR_OPT_EXCLUDES, "html"},
                                      {"list", WEIR_OPT_EXCLUDES, "execute"}, {NULL, WEIR_OPT_NEEDS, NULL}};

/* One run. */
typedef struct job {
    const weir_cli *cli;
    const args *a;
    const char *file; /* that is shown */
    char *out;        /* where to */
    char *named;      /* how the notebook names the file */
    char *text;       /* [size] the whole output */
    size_t size;
    bool page;
    weir_nb nb;
    void *data; /* the kind's */
} job;

static int name_file(job *j)
{
    const weir_cli *cli = j->cli;
    const char *operand = cli->n_operands ? cli->operand[0] : NULL;
    if (j->a->from && operand)
        return weir_cli_usage(cli, "--from %s, but \"%s\" was given too", j->a->from, operand);
    if (cli->n_operands > 1)
        return weir_cli_usage(cli, "one file at a time: what is \"%s\"?", cli->operand[1]);
    j->file = j->a->from ? j->a->from : operand;
    if (!j->file && !j->a->list)
        return weir_cli_usage(cli, "which file? notebook-export FILE.h5 shows a dump of trace, or what neuron-top, "
                                   "logit-lens or rome verify wrote with -o FILE.h5");
    return WEIR_EXIT_OK;
}

/* Where the output goes, and whether it may. */
static int name_output(job *j)
{
    const char *path = j->a->path;
    const bool to_stdout = path && strcmp(path, "-") == 0, html = path && weir_ends_with(path, ".html");
    if (path && !to_stdout && !html && !weir_ends_with(path, ".ipynb"))
        return weir_cli_usage(j->cli, "-o %s: a notebook's name ends in .ipynb, a page's in .html", path);
    if (path && j->a->html && !html && !to_stdout)
        return weir_cli_usage(j->cli, "-o %s is no name of a page: --html writes NAME.html", path);
    j->page = j->a->html || html;
    if (j->a->execute && (j->page || to_stdout))
        return weir_cli_usage(j->cli, "--execute runs a notebook: -o NAME.ipynb");
    j->out = path ? strdup(path) : weir_nb_default_name(j->file, j->page ? ".html" : ".ipynb");
    j->named = weir_nb_file_from(j->out, j->file);
    if (!j->out || !j->named)
        return weir_cli_error(j->cli, "out of memory");
    return weir_output_apart(j->cli, j->out, &j->file, 1);
}

static weir_output_file output_of(const job *j)
{
    return (weir_output_file){.path = j->out,
                              .begin = j->page ? "<!doctype html" : "{",
                              .holds = j->page ? "content=\"weir notebook-export\"" : NULL,
                              .force = j->a->force};
}

static int check_output(const job *j)
{
    const weir_output_file f = output_of(j);
    return j->page || j->a->force ? weir_output_free(j->cli, &f) : weir_nb_notebook_free(j->cli, j->out);
}

static int open_kind(job *j)
{
    const weir_nb_kind *kind = NULL;
    int code = weir_nb_choose(&kind, j->cli, j->file, j->a->template);
    if (code == WEIR_EXIT_OK)
        code = weir_nb_begin(&j->nb, j->cli, kind, j->file);
    if (code == WEIR_EXIT_OK)
        code = weir_nb_give(&j->nb, &j->a->params);
    if (code == WEIR_EXIT_OK)
        code = kind->open(&j->nb, &j->data);
    return code == WEIR_EXIT_OK ? weir_nb_check(&j->nb) : code;
}

/* All of the output in memory, so that nothing is left of one that fails or is stopped. */
static int make(job *j)
{
    FILE *f = open_memstream(&j->text, &j->size);
    if (!f)
        return weir_cli_error(j->cli, "out of memory");
    int code = WEIR_EXIT_OK;
    if (j->page)
        code = weir_nb_put_page(&j->nb, j->data, f);
    else if (!weir_nb_put_notebook(&j->nb, j->named, f))
        code = weir_cli_error(j->cli, "out of memory");
    const bool bad = ferror(f) != 0;
    if ((fclose(f) != 0 || bad) && code == WEIR_EXIT_OK)
        code = weir_cli_error(j->cli, "out of memory");
    return code;
}

static int put_text(void *ctx, FILE *out)
{
    const job *j = ctx;
    fwrite(j->text, 1, j->size, out);
    return WEIR_EXIT_OK; /* the stream's errors are seen when it is closed */
}

static int put(job *j)
{
    weir_output_file f = output_of(j);
    int code = check_output(j);
    f.force = true; /* it has just been asked */
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(j->cli, &f, put_text, j);
    if (code == WEIR_EXIT_OK && strcmp(j->out, "-") != 0)
        weir_cli_note(j->cli, "%s: %s of %s%s%s", j->out, j->nb.kind->name, j->file,
                      j->page || j->a->execute ? "" : "; jupyter lab opens it, --execute runs it",
                      j->page ? "; a browser opens it" : "");
    return code;
}

/* Name, format and heading of each. */
static int list_kinds(const weir_cli *cli)
{
    int code = WEIR_EXIT_OK;
    for (int i = 0; i < weir_n_nb_kinds && code == WEIR_EXIT_OK; i++) {
        weir_nb nb;
        code = weir_nb_begin(&nb, cli, weir_nb_kind_table[i], "");
        char *title = code == WEIR_EXIT_OK ? weir_nb_title(&nb) : NULL;
        if (title)
            printf("%-14s %-15s %s\n", nb.kind->name, nb.kind->format, title);
        free(title);
        weir_nb_free(&nb);
    }
    return code;
}

static void list_parameters(const job *j)
{
    weir_put_printable(stdout, j->file, 0);
    printf(": %s, %s\n\n", j->nb.kind->name, j->nb.kind->format);
    weir_nb_put_parameters(&j->nb, j->file, stdout);
    putchar('\n');
}

static int run(job *j)
{
    int code = name_file(j);
    if (code == WEIR_EXIT_OK && !j->file) {
        return list_kinds(j->cli);
    }
    if (code == WEIR_EXIT_OK && !j->a->list)
        code = name_output(j);
    if (code == WEIR_EXIT_OK && !j->a->list)
        code = check_output(j);
    if (code == WEIR_EXIT_OK)
        code = open_kind(j);
    if (code == WEIR_EXIT_OK && j->a->list) {
        list_parameters(j);
        return WEIR_EXIT_OK;
    }
    if (code == WEIR_EXIT_OK)
        code = make(j);
    if (code == WEIR_EXIT_OK)
        code = put(j);
    if (code == WEIR_EXIT_OK && j->a->execute)
        code = weir_nb_execute(j->cli, j->out, j->a->timeout);
    return code;
}

static int run_tool(weir_cli *cli, void *given)
{
    const args *a = given;
    job j = {.cli = cli, .a = a};
    cli->quiet = a->quiet;
    const int code = run(&j);
    if (j.data)
        j.nb.kind->close(j.data);
    weir_nb_free(&j.nb);
    free(j.out);
    free(j.named);
    free(j.text);
    return code;
}

const weir_tool weir_tool_notebook_export = {
    .name = "notebook-export",
    .summary = "a Jupyter notebook, or a page, that shows what is in a file of weir's",
    .operands = "FILE.h5",
    .about = "Writes a Jupyter notebook that opens FILE.h5 with h5py alone and draws what is in it: a dump of weir "
             "trace, what neuron-top or logit-lens wrote with -o FILE.h5, or rome verify. The template follows the "
             "file's format. Its cells are short and meant to be changed; what can be chosen stands in the parameters "
             "cell, whose values -p sets. With --html, or -o NAME.html, weir draws the same figures itself, with the "
             "same numbers, on one page that needs neither Jupyter nor a network. A notebook that was changed by hand "
             "is not replaced without --force.",
    .example = "weir trace --layer 6 --dump mlp.h5 'Boulder is in the state of'\n"
               "weir notebook-export mlp.h5\n"
               "weir notebook-export mlp.h5 -o mlp.html\n"
               "weir notebook-export --list mlp.h5",
    .options = options,
    .rules = rules,
    .args_size = sizeof(args),
    .run = run_tool,
};
