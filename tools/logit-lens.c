/* logit-lens: the stream at every layer and position through the final norm and the unembedding: what a model would say
 * if it stopped there. The table of its options, and the order of its work; tools/lens/job.h has the map of the rest.
 */
#include <stdlib.h>

#include "cli/say.h"
#include "cli/terminal.h"
#include "lens/corpus.h"
#include "parts/decompose.h"

#define AT(field) offsetof(weir_lens_args, field)
static const weir_opt what_opts[] = {
    {"site", 's', NULL, WEIR_OPT_LIST, "SITES", 0, 0, NULL,
     "resid-post (as without it: the stream behind each block), resid-mid, resid-pre, or what is added to it: "
     "attn-out, "
     "mlp-out; several with commas",
     AT(sites)},
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL, "layers from 0: 6, 0-3,7, all (as without it)",
     AT(layers)},
    {"layer-step", 0, NULL, WEIR_OPT_INT, "N", 1, 100000, "1", "every N-th of these layers, and the last one",
     AT(step)},
    {"target", 0, NULL, WEIR_OPT_STR, "next|final|TOKEN", 0, 0, NULL,
     "the token whose prob, logit and rank are shown: the one that follows, the one that the model finds likeliest in "
     "the "
     "end, or one by its text (' Paris', white space counts) or number (#1234). Without it: prob and logit of each "
     "row's "
     "own likeliest token, and the rank of the final one",
     AT(target)},
    {"contrast", 0, NULL, WEIR_OPT_STR, "A,B", 0, 0, NULL, "two tokens: the logit of A minus that of B", AT(contrast)},
    {"norm", 0, NULL, WEIR_OPT_CHOICE, WEIR_LENS_NORM_WORDS, 0, 0, "recompute",
     "how rows meet the final norm: recompute: with their own statistics, as the final row does; cached: with the "
     "final "
     "row's scale (a part's share in the final logits, no lens of the layer); none: as they are",
     AT(norm)},
    {"tuned", 0, NULL, WEIR_OPT_STR, "DIR", 0, 0, NULL,
     "a tuned lens: rows pass through their layer's translator first (weir lens-fit trains one; weir/tuned.h says how "
     "one "
     "of the Python package tuned-lens is converted). For resid-pre and resid-post",
     AT(tuned)},
    {"no-softcap", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "leave out the soft cap of the logits, where a model has one", AT(no_softcap)},
    {"mask-padding", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "leave out what pads the vocabulary: ids that the tokenizer does not have", AT(mask_padding)},
    {"dla", 0, NULL, WEIR_OPT_CHOICE, WEIR_LEVEL_WORDS, 0, 0, NULL,
     "instead of the lens, direct logit attribution: the final logit of the target (without --target: of the likeliest "
     "token), or of --contrast, as a sum over layers, and of the heads or neurons that matter most; what weir "
     "decompose "
     "does",
     AT(dla)},
    {"corpus", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "instead of positions, statistics of the whole text, line by line: mean and quantiles of the next token's "
     "cross-entropy and of KL(final || line), how often the likeliest token is right and is the final one, and from "
     "which layer on it stays. -o FILE.h5 keeps them: FILE.h5 as the operand shows them again",
     AT(corpus)},
    {"mask", 0, NULL, WEIR_OPT_STR, "LIST", 0, 0, "bos,special",
     "with --corpus, positions that are not counted: bos, special (all special tokens), none, and token ids", AT(mask)},
    {"merge", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "the operands are results of --corpus, of all shards of a text (--shard): join them", AT(merge)},
    {"from", 0, NULL, WEIR_OPT_STR, "DUMP.h5", 0, 0, NULL,
     "a dump of weir trace instead of a text, as the operand; it needs hook_resid_post of the last layer", AT(from)},
};
static const weir_opt_group what_group = {"What to look at", what_opts, sizeof what_opts / sizeof *what_opts};

static const weir_opt show_opts[] = {
    {"stat", 0, NULL, WEIR_OPT_CHOICE, WEIR_LENS_STAT_WORDS, 0, 0, "prob",
     "the number in each cell, and its colour: probability, logit or rank (1: likeliest) of the target; entropy; "
     "kl: from the final distribution; kl-prev: to the line before; jsd: Jensen-Shannon divergence to the final one; "
     "ce: "
     "cross-entropy of the token that follows; contrast. tsv, ndjson, html and h5 have them all",
     AT(stat)},
    {"k", 'k', NULL, WEIR_OPT_INT, "N", 1, 1000, NULL,
     "likeliest tokens of each cell; without it 1, and 10 in ndjson, html and h5", AT(k)},
    {"bottom-up", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "the first layer at the bottom of the table",
     AT(bottom_up)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, WEIR_LENS_FORMAT_WORDS, 0, 0, "auto",
     "auto: by the end of the file's name, else text", AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(out)},
    {"stats-plot", 0, NULL, WEIR_OPT_STR, "FILE.svg", 0, 0, NULL,
     "beside the output, a picture: rank, entropy and KL by layer", AT(plot)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "replace FILE, whatever it is; take a dump of another model than this one", AT(force)},
    {"color", 0, "colour", WEIR_OPT_CHOICE, WEIR_COLOUR_WORDS, 0, 0, "auto",
     "auto: what the terminal can; NO_COLOR is respected", AT(color)},
    {"width", 0, NULL, WEIR_OPT_INT, "N", 20, 10000, NULL, "columns of the table (the terminal's, else 120)",
     AT(width)},
};
static const weir_opt_group show_group = {"What to show", show_opts, sizeof show_opts / sizeof *show_opts};

static const weir_opt_use options[] = {
    {&what_group, 0}, {&show_group, 0}, WEIR_SESSION_OPTIONS(AT(session)), {NULL, 0}};

static const weir_opt_rule rules[] = {{"from", WEIR_OPT_EXCLUDES, "file"},
                                      {"dla", WEIR_OPT_EXCLUDES, "site"},
                                      {"dla", WEIR_OPT_EXCLUDES, "layer-step"},
                                      {"dla", WEIR_OPT_EXCLUDES, "norm"},
                                      {"dla", WEIR_OPT_EXCLUDES, "tuned"},
                                      {"dla", WEIR_OPT_EXCLUDES, "no-softcap"},
                                      {"dla", WEIR_OPT_EXCLUDES, "mask-padding"},
                                      {"dla", WEIR_OPT_EXCLUDES, "stat"},
                                      {"dla", WEIR_OPT_EXCLUDES, "bottom-up"},
                                      {"dla", WEIR_OPT_EXCLUDES, "stats-plot"},
                                      {"dla", WEIR_OPT_EXCLUDES, "corpus"},
                                      {"dla", WEIR_OPT_EXCLUDES, "merge"},
                                      {"dla", WEIR_OPT_EXCLUDES, "mask"},
                                      {"merge", WEIR_OPT_EXCLUDES, "corpus"},
                                      {"merge", WEIR_OPT_EXCLUDES, "from"},
                                      {"merge", WEIR_OPT_EXCLUDES, "file"},
                                      {"shard", WEIR_OPT_EXCLUDES, "max-tokens"}, /* which counts over all shards */
                                      {NULL, WEIR_OPT_NEEDS, NULL}};

/* Logits that are not finite are a defect of the model or the dump: said behind the results. */
static int check_finite(const weir_lens_job *j)
{
    if (j->cells.lost == 0)
        return WEIR_EXIT_OK;
    weir_cli_error(j->cli, "%lld of %lld cells have logits that are not finite (NaN or infinite)",
                   (long long)j->cells.lost, (long long)j->cells.cells);
    return WEIR_EXIT_FALSE;
}

static int run_all(weir_lens_job *j)
{
    int code = weir_lens_options(j);
    if (code == WEIR_EXIT_OK)
        code = weir_lens_check_output(j);
    if (code == WEIR_EXIT_OK && j->result)
        return weir_lens_corpus_results(j);
    if (code == WEIR_EXIT_OK)
        code = j->dump ? weir_lens_from_dump(j) : weir_lens_from_text(j);
    if (code == WEIR_EXIT_OK)
        code = j->a->corpus ? weir_lens_corpus_put(j) : weir_lens_put(j);
    return code == WEIR_EXIT_OK ? check_finite(j) : code;
}

static void close_all(weir_lens_job *j)
{
    weir_lens_close_dump(j);
    weir_session_close(&j->session);
    weir_lens_cells_close(&j->cells);
    weir_lens_stack_free(&j->stack);
    weir_provenance_free(&j->room);
    void *const own[] = {j->layers, j->sites, j->target, j->contrast[0], j->contrast[1], j};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

/* --dla */
static int attribute(weir_cli *cli, const weir_lens_args *a)
{
    enum { LISTED = 10 };
    static const int format[WEIR_LENS_FORMATS] = {[WEIR_LENS_AUTO] = WEIR_PARTS_AUTO,
                                                  [WEIR_LENS_TEXT] = WEIR_PARTS_TEXT,
                                                  [WEIR_LENS_TSV] = WEIR_PARTS_TSV,
                                                  [WEIR_LENS_NDJSON] = WEIR_PARTS_NDJSON};
    const weir_lens_format asked = weir_lens_format_of(a);
    if (asked == WEIR_LENS_SVG || asked == WEIR_LENS_HTML || asked == WEIR_LENS_H5)
        return weir_cli_usage(cli, "--dla: its formats are text, tsv and ndjson");
    weir_decompose_args parts = {.session = a->session,
                                 .from = a->from,
                                 .target = a->target,
                                 .contrast = a->contrast,
                                 .layers = a->layers,
                                 .level = a->dla,
                                 .format = format[a->format],
                                 .colour = a->color,
                                 .k = a->k ? a->k : LISTED,
                                 .width = a->width,
                                 .out = a->out,
                                 .force = a->force};
    return weir_decompose_run(cli, &parts);
}

static int run_tool(weir_cli *cli, void *args)
{
    weir_lens_args *a = args;
    cli->quiet = a->session.out.quiet;
    if (weir_cli_given(cli, "dla"))
        return attribute(cli, a);
    weir_lens_job *j = calloc(1, sizeof *j);
    if (!j)
        return weir_cli_error(cli, "out of memory");
    *j = (weir_lens_job){.cli = cli, .a = a, .session = {.cli = cli, .a = &a->session}, .start = weir_now()};
    int code = run_all(j);
    close_all(j);
    return code;
}

const weir_tool weir_tool_logit_lens = {
    .name = "logit-lens",
    .summary = "show what a model would say next at every layer",
    .operands = "[TEXT... | DUMP.h5 | RESULT.h5 | --merge RESULT.h5... | --file FILE... | < text]",
    .about =
        "Takes the stream at every layer and position through the final norm and the unembedding (the logit lens) and "
        "shows the tokens that are likeliest there, with how likely they are and how far the prediction is from the "
        "final one: from a run over text, or from a dump of weir trace. The last line, out, is what the model itself "
        "predicts. Without a text, standard input is read; a terminal or an empty input means the first of the "
        "sentences that come with brook.",
    .example =
        "weir logit-lens 'The capital city of Colombia is'\n"
        "weir logit-lens --stat rank --target final --positions last 'The capital city of Colombia is'\n"
        "weir logit-lens --format tsv --site attn-out,mlp-out --layers 4-7 -k 3 'The capital city of Colombia is'\n"
        "weir trace --hooks 'blocks.0.hook_resid_pre,blocks.*.hook_resid_post' --dump stream.h5 'The capital city of "
        "Colombia is'\n"
        "weir logit-lens stream.h5 --stat kl\n"
        "weir logit-lens stream.h5 -o lens.html --stats-plot lens.svg\n"
        "weir logit-lens stream.h5 -o map.h5\n"
        "weir logit-lens --corpus 'The river bends.' 'The capital city of Colombia is' -o stats.h5\n"
        "weir logit-lens stats.h5",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_lens_args),
    .run = run_tool,
    .more_help = weir_attach_help,
};
