/* weir collapse: do the rows of a text become alike layer by layer, and what keeps them apart: skips or MLPs? */
#include <stdlib.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "collapse/collapse.h"

#define AT(field) offsetof(weir_collapse_args, field)
static const weir_opt own_opts[] = {
    {"weights", 0, NULL, WEIR_OPT_CHOICE, "trained|random|both", 0, 0, "both",
     "the model's own weights, weights drawn at random in its shape, or both", AT(weights)},
    {"what", 0, NULL, WEIR_OPT_CHOICE, WEIR_COLLAPSE_WHAT_WORDS, 0, 0, "all",
     "the grid of blocks with and without skips and MLPs; who leaves the hull; bounds of the MLPs' Lipschitz constants",
     AT(what)},
    {"no-norms", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "the grid without the norms before and behind sublayers, as the theorem has it", AT(no_norms)},
    {"seed", 0, NULL, WEIR_OPT_INT, "N", 0, INT64_MAX, "1", "of the random weights, directions and samples", AT(seed)},
    {"deviation", 0, NULL, WEIR_OPT_REAL, "R", 0, 0, "0.02",
     "standard deviation of the random weights; biases are 0 and gains 1", AT(deviation)},
    {"save", 0, NULL, WEIR_OPT_STR, "DIR", 0, 0, NULL,
     "keep the random weights as a checkpoint in this new directory, instead of a while in $TMPDIR", AT(save)},
    {"singular", 0, NULL, WEIR_OPT_INT, "N", 0, 64, "4", "singular values of each matrix, and of its rest",
     AT(singular)},
    {"directions", 0, NULL, WEIR_OPT_INT, "N", 1, 1 << 20, "64", "random directions along which hulls are tested",
     AT(directions)},
    {"tokens", 0, NULL, WEIR_OPT_INT, "N", 1, 4096, "16", "tokens drawn from the text at which MLPs are stretched",
     AT(tokens)},
    {"iterations", 0, NULL, WEIR_OPT_INT, "N", 1, 1 << 20, "100", "of the power iteration at most", AT(iterations)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv", 0, 0, "text", "form of the lines; --json: one object", AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(out)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
};
static const weir_opt_group own_group = {"What to show", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {{&own_group, 0}, WEIR_SESSION_OPTIONS(AT(session)), {NULL, 0}};
static const weir_opt_rule rules[] = {{"json", WEIR_OPT_EXCLUDES, "format"}, {NULL, WEIR_OPT_NEEDS, NULL}};

static weir_status run_batches(weir_collapse *c, weir_err *err)
{
    weir_progress progress;
    const weir_batch *b;
    weir_status st;
    weir_progress_start(&progress, c->cli);
    while (!weir_signals_seen() && (st = weir_feed_next(c->s.feed, &b, err)) == WEIR_OK && b) {
        if (b->n_seq && (st = weir_collapse_forward(c, b, err)) != WEIR_OK)
            break;
        weir_progress_update(&progress, weir_feed_progress(c->s.feed), c->rows_seen);
    }
    weir_progress_stop(&progress, c->cli);
    return weir_signals_seen() ? weir_fail(err, WEIR_E_IO, "stopped by signal %d", weir_signals_seen()) : st;
}

static void say(const weir_collapse *c)
{
    const weir_report r = {.model = c->s.model,
                           .run = weir_collapse_main(c)->run,
                           .docs = c->s.in.docs,
                           .counts = weir_feed_counts_of(c->s.feed),
                           .rows = c->rows_seen,
                           .rows_run = c->rows_seen,
                           .seconds = weir_now() - c->start,
                           .attach = &weir_collapse_main(c)->attach};
    weir_report_say(&r, c->cli);
}

static int measure(void *ctx, FILE *out)
{
    weir_collapse *c = ctx;
    weir_err err = {0};
    c->out = out;
    if (run_batches(c, &err) != WEIR_OK)
        return weir_cli_fail(c->cli, &err);
    if (c->windows == 0)
        return weir_cli_error(c->cli, "no window of the text has two rows: one alone is like itself");
    for (int kind = 0; kind < WEIR_COLLAPSE_KINDS; kind++) {
        const int code = weir_collapse_probe_end(c, kind);
        if (code != WEIR_EXIT_OK)
            return code;
    }
    if (c->a->session.out.json)
        weir_collapse_put_json(c);
    else
        weir_collapse_put(c);
    if (weir_collapse_finish(c, c->a->session.out.json ? NULL : out, &err) != WEIR_OK)
        return weir_cli_fail(c->cli, &err);
    say(c);
    return WEIR_EXIT_OK;
}

/* Which file may be replaced: one of the same kind. */
static weir_output_file file_of(const weir_collapse_args *a)
{
    static const weir_output_mark forms[] = {[WEIR_COLLAPSE_TEXT] = {"", ": how alike the rows are, "},
                                             [WEIR_COLLAPSE_TSV] = {"weights\tcell\tlayer\t", NULL}};
    static const weir_output_mark json = {"{\"format\":\"weir-collapse\"", NULL};
    const weir_output_mark *m = a->session.out.json ? &json : &forms[a->format];
    return (weir_output_file){.path = a->out, .begin = m->begin, .holds = m->holds, .force = a->force};
}

static int open_all(weir_collapse *c)
{
    c->session.run.memory = c->session.run.memory ? c->session.run.memory / weir_collapse_runs(c) + 1 : 0;
    c->s.whole = true;
    int code = weir_session_model(&c->s);
    if (code == WEIR_EXIT_OK)
        code = weir_session_text(&c->s);
    if (code == WEIR_EXIT_OK && c->a->weights != WEIR_COLLAPSE_TRAINED)
        code = weir_collapse_random(c);
    return code == WEIR_EXIT_OK ? weir_collapse_open(c) : code;
}

static int run_all(weir_collapse *c)
{
    const weir_output_file file = file_of(c->a);
    if (c->a->save && c->a->weights == WEIR_COLLAPSE_TRAINED)
        return weir_cli_usage(c->cli, "--save keeps random weights, and --weights trained has none");
    int code = weir_output_free(c->cli, &file);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK)
        code = open_all(c);
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(c->cli, &file, measure, c);
    return code == WEIR_EXIT_OK ? weir_collapse_check(c) : code;
}

static int run_tool(weir_cli *cli, void *args)
{
    const weir_collapse_args *a = args;
    weir_collapse c = {.cli = cli, .a = a, .session = a->session, .s = {.cli = cli}, .start = weir_now()};
    c.s.a = &c.session;
    cli->quiet = a->session.out.quiet;
    const int code = run_all(&c);
    weir_collapse_close(&c);
    weir_session_close(&c.s);
    return code;
}

const weir_tool weir_tool_collapse = {
    .name = "collapse",
    .summary = "do the rows of a text become alike, and do skips or MLPs keep them apart",
    .operands = "[TEXT... | --file FILE... | < text]",
    .about =
        "Takes the stream of each window of a text as a matrix, a row for each token, and says layer by layer how far "
        "it is from a matrix of equal rows: relative to the matrix, in the norm sqrt(|X|_1 |X|_inf) of Dong, "
        "Cordonnier "
        "and Loukas 2021 (\"Attention is not all you need\") and in Frobenius's, with singular values and the mean "
        "cosine of two rows. The grid: the model's own blocks with attention alone, with the skips, with the MLPs, and "
        "whole, on the trained weights and on random ones. Of the whole models: whether the output of every head lies "
        "in "
        "the convex hull of its values (exit 3 if not), how often attention and MLP take the stream out of the hull of "
        "the window's rows, and a lower bound of each MLP's Lipschitz constant, the largest |J|_2 over tokens. Windows "
        "have to fit into --batch. Without a text, standard "
        "input is read; a terminal or an empty input means the 1,000 sentences that come with brook.",
    .example = "weir collapse 'The river bends where the old mill stands, and the miller knows it.'\n"
               "weir collapse --what grid --weights random --no-norms --json 'The river bends, and the mill turns.'",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_collapse_args),
    .run = run_tool,
    .more_help = weir_attach_help,
};
