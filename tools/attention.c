/* weir attention: how much each token reads of those before it, in chosen layers and heads. The table of its options,
 * and the order of its work; tools/attention/job.h has the map of the rest. */
#include <stdlib.h>

#include "attention/job.h"
#include "cli/from.h"
#include "cli/say.h"
#include "cli/terminal.h"

#define AT(field) offsetof(weir_attention_args, field)
static const weir_opt what_opts[] = {
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "layers from 0: 6, 0-3,7, all. Without it and --heads: the middle one, in html all of them", AT(layers)},
    {"heads", 'H', "head", WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "heads of these layers: 0,2 or 0-3, all (as without it), and heads by name: L6H3", AT(heads)},
    {"from", 0, NULL, WEIR_OPT_STR, "DUMP.h5", 0, 0, NULL,
     "a dump of weir trace instead of a text, as the operand; it needs hook_pattern of the layers", AT(from)},
};
static const weir_opt_group what_group = {"What to look at", what_opts, sizeof what_opts / sizeof *what_opts};

static const weir_opt show_opts[] = {
    {"format", 0, NULL, WEIR_OPT_CHOICE, WEIR_ATTENTION_FORMAT_WORDS, 0, 0, "auto",
     "auto: by the end of the file's name, else text", AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(out)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "replace FILE, whatever it is; take a dump of another model than this one", AT(force)},
    {"color", 0, "colour", WEIR_OPT_CHOICE, WEIR_COLOUR_WORDS, 0, 0, "auto",
     "auto: what the terminal can; NO_COLOR is respected", AT(color)},
    {"width", 0, NULL, WEIR_OPT_INT, "N", 20, 10000, NULL, "columns of the maps (the terminal's, else 120)", AT(width)},
};
static const weir_opt_group show_group = {"What to show", show_opts, sizeof show_opts / sizeof *show_opts};

static const weir_opt_use options[] = {
    {&what_group, 0}, {&show_group, 0}, WEIR_SESSION_OPTIONS(AT(session)), {NULL, 0}};

static const weir_opt_rule rules[] = {{"from", WEIR_OPT_EXCLUDES, "file"},
                                      {"shard", WEIR_OPT_EXCLUDES, "max-tokens"}, /* which counts over all shards */
                                      {NULL, WEIR_OPT_NEEDS, NULL}};

static int run_all(weir_attention_job *j)
{
    int code = weir_from_dump(j->cli, j->a->from, &j->dump);
    if (code == WEIR_EXIT_OK)
        code = weir_from_check(j->cli, j->dump);
    if (code == WEIR_EXIT_OK)
        code = weir_attention_check_output(j);
    if (code == WEIR_EXIT_OK)
        code = j->dump ? weir_attention_from_dump(j) : weir_attention_from_text(j);
    return code == WEIR_EXIT_OK ? weir_attention_put(j) : code;
}

static int run_tool(weir_cli *cli, void *args)
{
    const weir_attention_args *a = args;
    weir_attention_job j = {.cli = cli, .a = a, .session = {.cli = cli, .a = &a->session}};
    cli->quiet = a->session.out.quiet;
    int code = run_all(&j);
    weir_attention_gather_close(&j.gather);
    weir_attention_close_dump(&j);
    weir_session_close(&j.session);
    weir_provenance_free(&j.room);
    free(j.from);
    free(j.head);
    return code;
}

const weir_tool weir_tool_attention = {
    .name = "attention",
    .summary = "show how much each token reads of those before it",
    .operands = "[TEXT... | DUMP.h5 | --file FILE... | < text]",
    .about =
        "Shows attention patterns (softmax of the scores) of chosen layers and heads: a row for each token that reads, "
        "a "
        "column for each token that is read, a map for each window of the text. html is a page with all heads small "
        "and "
        "one large, where a token shows what it reads and what reads it. Without a text, standard input is read; a "
        "terminal or an empty input means the first of the sentences that come with brook.",
    .example = "weir attention --heads L2H3 'The capital city of Colombia is'\n"
               "weir attention --layer 0-1 --heads 0,2 --format tsv 'The capital city of Colombia is'\n"
               "weir trace --hooks 'blocks.*.attn.hook_pattern' --dump patterns.h5 'The capital city of Colombia is'\n"
               "weir attention patterns.h5 -o attention.html",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_attention_args),
    .run = run_tool,
    .more_help = weir_attach_help,
};
