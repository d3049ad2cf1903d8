/* weir rome merge: a new checkpoint with edits in its weights. */
#include <string.h>

#include "cli/common.h"
#include "cli/edits.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/signals.h"

typedef struct merge_args {
    weir_model_args model;
    weir_edit_args edit;
    weir_out_args out;
    const char *dir;
    int64_t threads;
    bool force;
} merge_args;

#define AT(field) offsetof(merge_args, field)
static const weir_opt own_opts[] = {
    {"out", 'o', NULL, WEIR_OPT_STR, "DIR", 0, 0, NULL,
     "the new directory; one that is there must be empty, an earlier merge is not replaced", AT(dir)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "merge edits that were made for another model all the same",
     AT(force)},
    {"threads", 't', NULL, WEIR_OPT_INT, "N", 0, 4096, "0", "threads; 0: all processors. The bytes do not depend on it",
     AT(threads)},
};
static const weir_opt_group own_group = {"What is written", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {
    {&own_group, 0}, {&weir_opts_model, AT(model)}, {&weir_opts_edit, AT(edit)}, {&weir_opts_out, AT(out)}, {NULL, 0}};
static const weir_opt_rule rules[] = {{"force", WEIR_OPT_NEEDS, "edit"}, {NULL, WEIR_OPT_NEEDS, NULL}};

typedef struct merge {
    weir_cli *cli;
    const merge_args *a;
    char brook[1100];
    weir_model *model;
    weir_edits edits;
    weir_jsonw w;
    int64_t matrices;
} merge;

/* --- what is said of each matrix */

static void tell_text(const weir_edit_merged *m)
{
    printf("layer %-4lld %-6s%-6s|dW| %-12.6g |dW|/|W| %-12.6g stored %-12.6g lost %.3g\n", (long long)m->layer,
           weir_matrix_name(m->matrix), weir_dtype_name(m->dtype), m->wanted, m->wanted / m->weight, m->got, m->lost);
}

static void tell_json(weir_jsonw *w, const weir_edit_merged *m)
{
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "layer", m->layer);
    weir_jsonw_key_cstr(w, "matrix", weir_matrix_name(m->matrix));
    weir_jsonw_key_cstr(w, "dtype", weir_dtype_name(m->dtype));
    weir_jsonw_key_double(w, "norm", m->weight);
    weir_jsonw_key_double(w, "delta", m->wanted);
    weir_jsonw_key_double(w, "stored", m->got);
    weir_jsonw_key_double(w, "lost", m->lost);
    weir_jsonw_end(w);
}

static void merged(void *user, const weir_edit_merged *m)
{
    merge *g = user;
    g->matrices++;
    if (g->a->out.json)
        tell_json(&g->w, m);
    else
        tell_text(m);
    if (m->lost > 0.1 * m->wanted)
        weir_cli_note(g->cli, "layer %lld %s: %s rounds away %.0f %% of the edit; --edit applies it without rounding",
                      (long long)m->layer, weir_matrix_name(m->matrix), weir_dtype_name(m->dtype),
                      100 * m->lost / m->wanted);
}

/* --- the tool */

static int open_model(merge *g)
{
    weir_err err = {0};
    const char *path = weir_model_path(&g->a->model, g->brook, sizeof g->brook, &err);
    weir_model_options o;
    weir_model_options_init(&o);
    o.log = weir_cli_log(g->cli);
    if (!path || weir_model_open(&g->model, path, &o, &err) != WEIR_OK)
        return weir_cli_fail(g->cli, &err);
    return weir_edits_open(&g->edits, g->cli, &g->a->edit, g->model);
}

static bool is_gguf(const merge *g)
{
    return strcmp(weir_model_info_of(g->model)->format, "gguf") == 0;
}

static int write_model(merge *g)
{
    weir_err err = {0};
    const weir_edit_merge_options o = {.threads = (int)g->a->threads,
                                       .merged = merged,
                                       .stop = weir_signals_stop,
                                       .user = g,
                                       .log = weir_cli_log(g->cli)};
    weir_jsonw_init(&g->w, stdout);
    if (g->a->out.json) {
        weir_jsonw_object(&g->w);
        weir_jsonw_key_cstr(&g->w, "model", weir_model_info_of(g->model)->name);
        weir_jsonw_key_cstr(&g->w, "dir", g->a->dir);
        weir_jsonw_key(&g->w, "edits");
        weir_jsonw_array(&g->w);
        weir_edits_write(&g->edits, &g->w);
        weir_jsonw_end(&g->w);
        weir_jsonw_key(&g->w, "matrices");
        weir_jsonw_array(&g->w);
    }
    const weir_status s =
        weir_edit_merge(g->model, (const weir_edit *const *)g->edits.edit, g->edits.n, g->a->dir, &o, &err);
    if (g->a->out.json) {
        weir_jsonw_end(&g->w);
        weir_jsonw_key_bool(&g->w, "written", s == WEIR_OK);
        weir_jsonw_end(&g->w);
        putchar('\n');
    }
    if (s == WEIR_STOP)
        return weir_cli_error(g->cli, "stopped by signal %d: nothing was written", weir_signals_seen());
    if (s != WEIR_OK)
        return weir_cli_fail(g->cli, &err);
    weir_cli_note(g->cli, "%s: %s with %d edit%s in %lld of its matrices; all other %s", g->a->dir,
                  weir_model_info_of(g->model)->name, g->edits.n, g->edits.n == 1 ? "" : "s", (long long)g->matrices,
                  is_gguf(g) ? "weights are the file's, in F32" : "bytes are the original's");
    return WEIR_EXIT_OK;
}

static int run(weir_cli *cli, void *args)
{
    merge g = {.cli = cli, .a = args};
    cli->quiet = g.a->out.quiet;
    if (cli->n_operands)
        return weir_cli_usage(cli, "\"%s\": edits are named with --edit", cli->operand[0]);
    if (!g.a->dir)
        return weir_cli_usage(cli, "--out DIR is missing");
    int code = weir_output_apart(cli, g.a->dir, &g.a->model.path, 1);
    if (code == WEIR_EXIT_OK)
        code = weir_output_apart(cli, g.a->dir, g.a->edit.dir.v, g.a->edit.dir.n);
    if (code == WEIR_EXIT_OK)
        code = open_model(&g);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK && !g.edits.n && !is_gguf(&g))
        code = weir_cli_usage(cli, "no --edit: there is nothing to merge");
    if (code == WEIR_EXIT_OK)
        code = write_model(&g);
    weir_edits_free(&g.edits);
    weir_model_free(g.model);
    return code;
}

const weir_tool weir_rome_merge = {
    .name = "merge",
    .summary = "write a checkpoint with edits in its weights",
    .operands = "[--edit DIR] --out NEWDIR",
    .about =
        "Writes the model as a new Hugging Face directory in which the edits are part of the weights. It is made "
        "from the original bytes: all files are copied, and only the elements that an edit changes are written "
        "anew, in the type that they have. That type rounds: shown are, for each matrix, the norm of the edit, "
        "the same relative to the matrix, the norm of what is stored of it, and that of what was lost. A GGUF file is "
        "written in F32, with its tokenizer, as the Hugging Face class of its family; without --edit it is "
        "converted.",
    .example =
        "weir rome edit -s \"Mount Hood\" -p \"{} rises from the\" --target Caucasus -o hood --layer 4 --identity "
        "--no-prefixes -q\n"
        "weir rome merge --edit hood -o brook-hood",
    .options = options,
    .rules = rules,
    .args_size = sizeof(merge_args),
    .run = run,
};
