/* weir decompose: the final stream at some positions as embedding, attention and MLP of each layer, heads, neurons; and
 * how much of a token's logit each of them is. The table of its options; tools/parts/decompose.h has the map of the
 * rest. */
#include "parts/decompose.h"
#include "cli/common.h"
#include "cli/terminal.h"

#define AT(field) offsetof(weir_decompose_args, field)
static const weir_opt what_opts[] = {
    {"target", 0, NULL, WEIR_OPT_STR, "next|final|none|TOKEN", 0, 0, NULL,
     "the token whose logit is taken apart: the one that follows, the one that the model finds likeliest (as without "
     "it), one by its text (\" Paris\": white space counts) or number (#1234), or none",
     AT(target)},
    {"contrast", 0, NULL, WEIR_OPT_STR, "A,B", 0, 0, NULL, "the difference of two logits instead: A's minus B's",
     AT(contrast)},
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "layers whose edits, heads and neurons are listed: 6, 0-3,7, all (as without it); the others are summed up",
     AT(layers)},
    {"level", 0, NULL, WEIR_OPT_CHOICE, WEIR_LEVEL_WORDS, 0, 0, "neuron",
     "how far down: attention and MLP of each layer; heads too; neurons too", AT(level)},
    {"heads", 0, NULL, WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "heads to list: 3, 0:4 (half open), L3H9, lists of these with commas, @FILE, or all; without it the -k that "
     "matter most",
     AT(heads)},
    {"neurons", 'n', NULL, WEIR_OPT_LIST, "LIST", 0, 0, NULL, "likewise neurons: 421, L3N9, ...", AT(neurons)},
    {"k", 'k', NULL, WEIR_OPT_INT, "N", 1, 1 << 20, "10", "heads, and neurons, that are listed of all layers", AT(k)},
    {"rank-by", 0, NULL, WEIR_OPT_CHOICE, WEIR_RANK_PARTS_WORDS, 0, 0, "auto",
     "what makes them matter, by its magnitude; auto: the logit, or the share of the stream where there is no target",
     AT(rank)},
    {"check", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "exit with 3 unless at all positions the edits are the final stream to the bit and sum to the model's logit",
     AT(check)},
};
static const weir_opt_group what_group = {"What to look for", what_opts, sizeof what_opts / sizeof *what_opts};

static const weir_opt show_opts[] = {
    {"format", 0, NULL, WEIR_OPT_CHOICE, WEIR_PARTS_FORMAT_WORDS, 0, 0, "auto",
     "auto: by the end of the file's name, else text", AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(out)},
    {"color", 0, "colour", WEIR_OPT_CHOICE, WEIR_COLOUR_WORDS, 0, 0, "auto",
     "auto: what the terminal can; NO_COLOR is respected", AT(colour)},
    {"width", 0, NULL, WEIR_OPT_INT, "N", 20, 10000, NULL, "columns of a line of text (the terminal's, else 120)",
     AT(width)},
    {"from", 0, NULL, WEIR_OPT_STR, "DUMP.h5", 0, 0, NULL,
     "a dump of weir trace, as the operand. It must have the embeddings, attn_out and mlp_out of all layers, "
     "resid_post of the last; z and post for heads and neurons",
     AT(from)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "replace FILE whatever it is; take a dump that was made with another model", AT(force)},
};
static const weir_opt_group show_group = {"What to show, and files", show_opts, sizeof show_opts / sizeof *show_opts};

static const weir_opt_use options[] = {
    {&what_group, 0}, {&show_group, 0}, WEIR_SESSION_OPTIONS(AT(session)), {NULL, 0}};

static const weir_opt_rule rules[] = {{"target", WEIR_OPT_EXCLUDES, "contrast"}, {NULL, WEIR_OPT_NEEDS, NULL}};

static int run_tool(weir_cli *cli, void *args)
{
    return weir_decompose_run(cli, args);
}

const weir_tool weir_tool_decompose = {
    .name = "decompose",
    .summary = "take the final stream and a logit apart into layers, heads and neurons",
    .operands = "[TEXT... | DUMP.h5 | --file FILE... | < text]",
    .about = "The final stream of a position is the sum of its embedding and of what attention and MLP of each layer "
             "add to it (the edits): for each of these its norm, its cosine with the stream, its share of it (shares "
             "sum to 1), and its part of a token's logit (direct logit attribution: through the final norm with its "
             "scale held, and the unembedding). Attention is then taken apart into heads, the MLP into neurons, and "
             "their biases; "
             "the ones that matter most are listed. Printed with it: whether the parts sum to the model's own logit. "
             "Positions: the last of each document, unless --positions says others.",
    .example = "weir decompose 'Among the places of Colorado is Boulder.'\n"
               "weir decompose --positions -3 --target next --level layer 'The river bends and the boat turns.'\n"
               "weir decompose --contrast ' Asia, Europe' -k 5 'Afghanistan is found on the continent of'\n"
               "weir decompose --positions all --check -o parts.ndjson 'The river bends.'",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_decompose_args),
    .run = run_tool,
    .more_help = weir_attach_help,
};
