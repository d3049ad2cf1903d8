/* neuron-top: the tokens that fire a neuron: straight from a run over text, from a dump, or from results of its own.
 * The table of its options, and the order of its work; tools/neurons/top.h has the map of the rest. */
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "neurons/top.h"

#define AT(field) offsetof(weir_top_args, field)
static const weir_opt what_opts[] = {
    {"neurons", 'n', NULL, WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "421, 0:8 (half open), L3N9, lists of these with commas, @FILE, or all (as without it). Up to 64 that are named "
     "also get "
     "their values around each place, the mean by token and correlated neurons",
     AT(neurons)},
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL, "layers from 0: 6, 0-3,7, all (as without it)",
     AT(layers)},
    {"site", 's', NULL, WEIR_OPT_LIST, "SITES", 0, 0, NULL,
     "what a neuron is: post (as without it: the MLP's hidden unit), pre, gate, gate-act (the activation of the gate), "
     "up, mlp_out, "
     "resid_pre, resid_mid, resid_post, z, or any hook point by name, with * ? {a,b}",
     AT(sites)},
    {"k", 'k', NULL, WEIR_OPT_INT, "N", 1, WEIR_NEURONS_MAX_K, "20",
     "places of a list. Of a result: those shown; agrees and kinds are of all that it keeps", AT(k)},
    {"sign", 0, NULL, WEIR_OPT_CHOICE, "both|+|-|abs", 0, 0, "both",
     "the highest values, the lowest, both, or the largest magnitudes", AT(sign)},
    {"rank-by", 0, NULL, WEIR_OPT_CHOICE, "max|mean", 0, 0, "max",
     "max: each token by its activation; mean: each document by the mean over its tokens", AT(rank)},
    {"dedup", 0, NULL, WEIR_OPT_STR, "none|window|doc|text[:N]", 0, 0, "text:8",
     "what is listed once, with a count: the best token of a window of the model's context, of a document, or of all "
     "places whose "
     "last N tokens are the same",
     AT(dedup)},
    {"threshold", 0, "thresholds", WEIR_OPT_LIST, "X", 0, 0, NULL,
     "also count values above X (those above 0 are always counted)", AT(thresholds)},
    {"quantiles", 0, NULL, WEIR_OPT_INT, "N", 0, 100, "0",
     "draw N places from each band of the ranks: up to .5, .9, .99, .999, 1", AT(quantiles)},
    {"random", 0, NULL, WEIR_OPT_INT, "N", 0, 1000, "0", "draw N places from the whole text, the same for every neuron",
     AT(random)},
    {"seed", 0, NULL, WEIR_OPT_INT, "N", 0, 0, "0", "of what --quantiles and --random draw", AT(seed)},
    {"mask", 0, NULL, WEIR_OPT_STR, "LIST", 0, 0, "bos,special",
     "tokens that are left out of everything wherever they stand: bos, special, token ids, or none; their number is "
     "printed",
     AT(mask)},
    {"max-norm-ratio", 0, NULL, WEIR_OPT_REAL, "R", 0, 0, "0",
     "leave out tokens at which the stream that enters the layer has a norm above R times the median of their window "
     "(sinks); "
     "0: none. Raises --batch to the context. From a dump: the median of the rows that were recorded",
     AT(max_norm_ratio)},
    {"search", 0, NULL, WEIR_OPT_STR, "TEXT", 0, 0, NULL,
     "the other way round: which neurons fire most on TEXT; with a result file as operand, how unusual that is there",
     AT(search)},
};
static const weir_opt_group what_group = {"What to look for", what_opts, sizeof what_opts / sizeof *what_opts};

static const weir_opt show_opts[] = {
    {"context", 0, NULL, WEIR_OPT_STR, "BEFORE,AFTER|full", 0, 0, "10,10",
     "tokens around a place, or the whole document", AT(context)},
    {"weights", 0, NULL, WEIR_OPT_CHOICE, WEIR_TOP_WORDS, 0, 0, "auto",
     "tokens read from the weights: which ones a neuron's key looks for and which its value promotes. auto: where that "
     "is quick",
     AT(weights)},
    {"correlated", 0, NULL, WEIR_OPT_CHOICE, WEIR_TOP_WORDS, 0, 0, "auto",
     "for named neurons: which units of the layer go with them. auto: not from a dump, all of whose tiles would have "
     "to be read",
     AT(correlated)},
    {"sort", 0, NULL, WEIR_OPT_CHOICE, WEIR_SORT_WORDS, 0, 0, "order",
     "order of the neurons; clusters: how many things they stand for", AT(sort)},
    {"limit", 0, NULL, WEIR_OPT_INT, "N", 0, 0, "0", "neurons that are shown; 0: all", AT(limit)},
    {"min-density", 0, NULL, WEIR_OPT_REAL, "SHARE", 0, 0, "0",
     "show only neurons that are above 0 at this share of tokens (0 to 1) or more", AT(min_density)},
    {"max-density", 0, NULL, WEIR_OPT_REAL, "SHARE", 0, 0, "1", "... or less", AT(max_density)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, WEIR_FORMAT_WORDS, 0, 0, "auto",
     "auto: by the end of the file's name, else text. h5 holds everything and can be shown again, merged, and gone on "
     "with",
     AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(out)},
    {"color", 0, "colour", WEIR_OPT_CHOICE, WEIR_COLOUR_WORDS, 0, 0, "auto",
     "auto: what the terminal can; NO_COLOR is respected", AT(color)},
    {"width", 0, NULL, WEIR_OPT_INT, "N", 20, 10000, NULL, "columns of a line of text (the terminal's, else 120)",
     AT(width)},
};
static const weir_opt_group show_group = {"What to show", show_opts, sizeof show_opts / sizeof *show_opts};

static const weir_opt file_opts[] = {
    {"from", 0, NULL, WEIR_OPT_STR, "FILE.h5", 0, 0, NULL, "a dump or a result, as the operand", AT(from)},
    {"merge", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "the operands are the results of all shards of a text (--shard): join them", AT(merge)},
    {"resume", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "go on with what an interrupted run left in FILE.h5.part",
     AT(resume)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "replace FILE (an HDF5 file only if it is a result), and what an interrupted run left in FILE.h5.part", AT(force)},
    {"checkpoint", 0, NULL, WEIR_OPT_INT, "SECONDS", 1, 0, "60", "with -o FILE.h5: how often FILE.h5.part is written",
     AT(checkpoint)},
    {"spool", 0, NULL, WEIR_OPT_STR, "DIR", 0, 0, NULL,
     "where a temporary file of 12 bytes a token goes (and as much for each named neuron); $TMPDIR, else /tmp",
     AT(spool)},
};
static const weir_opt_group file_group = {"Files", file_opts, sizeof file_opts / sizeof *file_opts};

static const weir_opt_use options[] = {
    {&what_group, 0}, {&show_group, 0}, {&file_group, 0}, WEIR_SESSION_OPTIONS(AT(session)), {NULL, 0}};

static const weir_opt_rule rules[] = {{"shard", WEIR_OPT_EXCLUDES, "max-tokens"}, /* which counts over all shards */
                                      {"resume", WEIR_OPT_NEEDS, "out"},
                                      {"resume", WEIR_OPT_EXCLUDES, "force"},
                                      {"merge", WEIR_OPT_EXCLUDES, "from"},
                                      {"merge", WEIR_OPT_EXCLUDES, "search"},
                                      {"merge", WEIR_OPT_EXCLUDES, "resume"},
                                      {"merge", WEIR_OPT_EXCLUDES, "file"},
                                      {"from", WEIR_OPT_EXCLUDES, "file"},
                                      {"search", WEIR_OPT_EXCLUDES, "file"},
                                      {"search", WEIR_OPT_EXCLUDES, "resume"},
                                      {"search", WEIR_OPT_EXCLUDES, "shard"},
                                      {NULL, WEIR_OPT_NEEDS, NULL}};

static int find(weir_top *r)
{
    weir_err err = {0};
    static int (*const by_input[])(weir_top *) = {[WEIR_TOP_TEXT] = weir_top_from_text,
                                                  [WEIR_TOP_DUMP] = weir_top_from_dump,
                                                  [WEIR_TOP_RESULTS] = weir_top_from_results};
    int code = by_input[r->input](r);
    if (code != WEIR_EXIT_OK || r->finished)
        return code;
    code = weir_top_weights(r);
    if (code == WEIR_EXIT_OK && r->input != WEIR_TOP_RESULTS && weir_neurons_finish(r->s, &err) != WEIR_OK)
        code = weir_cli_fail(r->cli, &err);
    if (code == WEIR_EXIT_OK && r->input != WEIR_TOP_RESULTS &&
        weir_neurons_set_about(r->s, &r->about, &err) != WEIR_OK)
        code = weir_cli_fail(r->cli, &err);
    return code == WEIR_EXIT_OK ? weir_top_put(r) : code;
}

/* --search: z is of the same model's values, or means nothing. */
static int check_same_model(const weir_top *r)
{
    const char *was = r->result ? weir_neurons_about_of(r->result)->fingerprint : r->fingerprint;
    if (strcmp(was, r->fingerprint) == 0 || r->a->force)
        return WEIR_EXIT_OK;
    return weir_cli_error(r->cli, "%s was made with another model, %s: --model PATH (--force takes it all the same)",
                          r->file, weir_neurons_about_of(r->result)->model);
}

/* The text of --search is run like any other, for the one best place of each neuron. */
static int search(weir_top *r)
{
    weir_err err = {0};
    if (r->file && weir_neurons_read(&r->result, r->file, r->o.threads, &err) != WEIR_OK)
        return weir_cli_fail(r->cli, &err);
    r->o.k = 1;
    r->o.dedup = WEIR_DEDUP_NONE;
    r->o.rank = WEIR_RANK_MAX;
    r->o.per_band = r->o.random = 0;
    r->cli->operand = &r->a->search;
    r->cli->n_operands = 1;
    int code = weir_top_from_text(r);
    if (code == WEIR_EXIT_OK)
        code = check_same_model(r);
    if (code == WEIR_EXIT_OK &&
        (weir_neurons_finish(r->s, &err) != WEIR_OK || weir_neurons_set_about(r->s, &r->about, &err) != WEIR_OK))
        code = weir_cli_fail(r->cli, &err);
    return code == WEIR_EXIT_OK ? weir_top_put_search(r) : code;
}

static int run_all(weir_top *r)
{
    int code = weir_top_options(r);
    if (code == WEIR_EXIT_OK)
        code = weir_top_check_output(r);
    if (code != WEIR_EXIT_OK)
        return code;
    return r->a->search ? search(r) : find(r);
}

static void close_all(weir_top *r)
{
    weir_neurons_dump_close(r->dump);
    if (r->session_open)
        weir_session_close(&r->session);
    weir_live_free(&r->live);
    weir_neurons_free(r->s);
    weir_neurons_free(r->result);
    weir_asks_free(&r->asks);
    weir_masks_free(&r->masks);
    void *const own[] = {r->layers, r->sites, r->source, r->interventions, r};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

static int run_tool(weir_cli *cli, void *args)
{
    weir_top *r = calloc(1, sizeof *r);
    weir_top_args *a = args;
    cli->quiet = a->session.out.quiet;
    if (!r)
        return weir_cli_error(cli, "out of memory");
    const char **operand = cli->operand;
    int n_operands = cli->n_operands;
    *r = (weir_top){.cli = cli, .a = a, .start = weir_now()};
    int code = run_all(r);
    cli->operand = operand; /* --search put its text there */
    cli->n_operands = n_operands;
    close_all(r);
    return code;
}

const weir_tool weir_tool_neuron_top = {
    .name = "neuron-top",
    .summary = "list the tokens that fire a neuron",
    .operands = "[TEXT... | DUMP.h5 | RESULT.h5 | --merge RESULT.h5... | --file FILE... | < text]",
    .about = "Shows for each neuron the places where it is highest and lowest, with the text around them, and what its "
             "values are like: "
             "from a run over text (all neurons of all layers in one pass, in memory that does not grow with the "
             "text), from a dump of "
             "weir trace, or from a result that was written with -o FILE.h5. Without a text, standard input is read; a "
             "terminal or an "
             "empty input means the 1,000 sentences that come with brook.",
    .example = "weir neuron-top --layer 6 --neurons 746 -k 10\n"
               "weir neuron-top --layers all -k 5 -o neurons.h5\n"
               "weir neuron-top neurons.h5 --sort kurtosis --limit 3 -k 5\n"
               "weir neuron-top neurons.h5 -k 5 -o neurons.html\n"
               "weir neuron-top --search 'The river bends.' -k 5",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_top_args),
    .run = run_tool,
    .more_help = weir_attach_help,
};
