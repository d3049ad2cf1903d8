/* weir compose: which heads and neurons read what earlier ones write, from the weights alone: composition scores. */
#include <stdlib.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "compose/compose.h"

#define AT(field) offsetof(weir_compose_args, field)
static const weir_opt own_opts[] = {
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "layers from 0 that write and read: 6, 0-3,7, all (as without it)", AT(layers)},
    {"kind", 0, NULL, WEIR_OPT_CHOICE, WEIR_COMPOSE_KIND_WORDS, 0, 0, "all",
     "what reads: queries, keys, values of heads; the key of neurons (gated models: the gate's), their up projection",
     AT(kind)},
    {"neurons", 0, NULL, WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "neurons that take part besides all heads: L3N9, L3N0:8 (half open), 421 (in every layer), @FILE with such lists",
     AT(neurons)},
    {"weights", 0, NULL, WEIR_OPT_CHOICE, "raw|gain|folded", 0, 0, "raw",
     "raw: as the checkpoint has them, as everywhere in weir; gain: what reads is multiplied by the gain of its norm; "
     "folded: besides, LayerNorm's mean is taken away, as TransformerLens does by default (the paper's models have no "
     "gain: their weights are folded)",
     AT(weights)},
    {"k", 'k', NULL, WEIR_OPT_INT, "N", 1, 1 << 20, "10",
     "best pairs of each kind that the text and --json show; tsv and ndjson have all pairs", AT(k)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv|ndjson", 0, 0, "text", "form of the result", AT(format)},
    {"width", 0, NULL, WEIR_OPT_INT, "N", 20, 10000, NULL, "columns of the table of layers (the terminal's, else 120)",
     AT(width)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(path)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
};
static const weir_opt_group own_group = {"Pairs and result", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {
    {&own_group, 0},
    {&weir_opts_model, AT(model)},
    {&weir_opts_edit, AT(edit)},
    {&weir_opts_processor, AT(run)},
    {&weir_opts_out, AT(out)},
    {NULL, 0}};
static const weir_opt_rule rules[] = {{"json", WEIR_OPT_EXCLUDES, "format"}, {NULL, WEIR_OPT_NEEDS, NULL}};

/* --- opening */

static int open_model(weir_composing *t)
{
    weir_err err = {0};
    weir_model_options o;
    char brook[1100];
    weir_model_options_init(&o);
    o.log = weir_cli_log(t->cli);
    o.threads = (int)t->a->run.threads;
    const char *path = weir_model_path(&t->a->model, brook, sizeof brook, &err);
    if (!path || weir_model_open(&t->model, path, &o, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    t->info = weir_model_info_of(t->model);
    if (weir_compose_new(&t->c, t->model, (weir_compose_weights)t->a->weights, weir_kernel_name(&t->a->run),
                         (int)t->a->run.threads, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    int code = weir_edits_open(&t->edits, t->cli, &t->a->edit, t->model);
    weir_compose_with(t->c, (const weir_edit *const *)t->edits.edit, t->edits.n);
    return code;
}

static int choose_layers(weir_composing *t)
{
    weir_err err = {0};
    weir_selector *sel;
    const weir_point *p;
    char *layers = NULL;
    t->layer = calloc((size_t)t->info->L, sizeof *t->layer);
    if (!t->layer || !weir_opt_list_join(&layers, &t->a->layers))
        return weir_cli_error(t->cli, "out of memory");
    const weir_status st = weir_selector_build(&sel, t->model, NULL, layers ? layers : "all", "resid_pre", &err);
    free(layers);
    if (st != WEIR_OK)
        return weir_cli_bad_argument(t->cli, "--layer", &err);
    const int64_t n = weir_model_points(t->model, &p);
    for (int64_t i = 0; i < n; i++)
        if (weir_selector_matches(sel, &p[i]))
            t->layer[p[i].layer] = true;
    weir_selector_free(sel);
    return WEIR_EXIT_OK;
}

static int check_asks(const weir_composing *t)
{
    if (t->asks.n == 0)
        return weir_cli_usage(t->cli, "--neurons all: they are too many; name some");
    for (int64_t i = 0; i < t->asks.n; i++) {
        const weir_neuron_ask *a = &t->asks.ask[i];
        if (a->layer >= t->info->L || a->unit >= t->info->F)
            return weir_cli_usage(t->cli, "--neurons: the model has no neuron %lld in layer %d (%lld layers of %lld)",
                                  (long long)a->unit, a->layer < 0 ? 0 : a->layer, (long long)t->info->L,
                                  (long long)t->info->F);
    }
    return WEIR_EXIT_OK;
}

static int choose_neurons(weir_composing *t)
{
    weir_err err = {0};
    const bool asked = t->a->neurons.n > 0;
    t->unit = calloc((size_t)t->info->L, sizeof *t->unit);
    t->units = calloc((size_t)t->info->L, sizeof *t->units);
    if (!t->unit || !t->units)
        return weir_cli_error(t->cli, "out of memory");
    if (!asked && t->a->kind > 1 + WEIR_COMPOSE_V)
        return weir_cli_usage(t->cli, "--kind %s is about neurons: name them with --neurons",
                              weir_compose_input_name[t->a->kind - 1]);
    if (t->a->kind == 1 + WEIR_COMPOSE_UP && !t->info->gated)
        return weir_cli_usage(t->cli, "--kind up: the MLPs of this model are not gated");
    if (!asked)
        return WEIR_EXIT_OK;
    if (weir_asks_parse(&t->asks, &t->a->neurons, &err) != WEIR_OK)
        return weir_cli_bad_argument(t->cli, "--neurons", &err);
    int code = check_asks(t);
    for (int64_t l = 0; code == WEIR_EXIT_OK && l < t->info->L; l++) {
        t->unit[l] = calloc((size_t)t->info->F, sizeof **t->unit);
        if (!t->unit[l])
            return weir_cli_error(t->cli, "out of memory");
        for (int64_t u = 0; u < t->info->F; u++)
            if (weir_asks_have(&t->asks, (int)l, u))
                t->unit[l][t->units[l]++] = u;
    }
    return code;
}

/* --- the tool */

static int measure(void *ctx, FILE *out)
{
    weir_composing *t = ctx;
    weir_err err = {0};
    weir_progress bar;
    int64_t pairs = 0;
    t->out = out;
    weir_progress_start(&bar, t->cli);
    const weir_status st = weir_composing_take(t, &bar, &err);
    weir_progress_stop(&bar, t->cli);
    if (st != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    for (int from = 0; from < WEIR_COMPOSE_PARTS; from++)
        for (int input = 0; input < WEIR_COMPOSE_INPUTS; input++)
            pairs += t->group[from][input].pairs;
    if (pairs == 0)
        return weir_cli_error(t->cli,
                              "no pair: something that writes is needed, and in a later layer something that reads");
    weir_compose_put(t);
    return WEIR_EXIT_OK;
}

static weir_output_file file_of(const weir_compose_args *a)
{
    static const weir_output_mark json = {"{\"model\":", "\"rope_left_out\":"},
                                  forms[] = {[WEIR_COMPOSE_TEXT] = {"", " weights: composition scores; "},
                                             [WEIR_COMPOSE_TSV] = {"input\tfrom_kind\t", NULL},
                                             [WEIR_COMPOSE_NDJSON] = {"{\"input\":", "\"to_kind\":"}};
    const weir_output_mark *m = a->out.json ? &json : &forms[a->format];
    return (weir_output_file){.path = a->path, .begin = m->begin, .holds = m->holds, .force = a->force};
}

static int run_tool(weir_cli *cli, void *args)
{
    const weir_compose_args *a = args;
    const weir_output_file file = file_of(a);
    weir_composing t = {.cli = cli, .a = a};
    cli->quiet = a->out.quiet;
    if (cli->n_operands)
        return weir_cli_usage(cli, "weights are compared, there is no text: what is \"%s\"?", cli->operand[0]);
    if (weir_cli_given(cli, "k") && a->format != WEIR_COMPOSE_TEXT)
        return weir_cli_usage(cli, "--k is about the text and --json: tsv and ndjson have all pairs");
    weir_signals_catch();
    int code = weir_output_free(cli, &file);
    if (code == WEIR_EXIT_OK)
        code = open_model(&t);
    if (code == WEIR_EXIT_OK)
        code = choose_layers(&t);
    if (code == WEIR_EXIT_OK)
        code = choose_neurons(&t);
    if (code == WEIR_EXIT_OK && !weir_composing_room(&t))
        code = weir_cli_error(cli, "out of memory");
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(cli, &file, measure, &t);
    weir_composing_free(&t);
    return code;
}

const weir_tool weir_tool_compose = {
    .name = "compose",
    .summary = "which heads and neurons read what earlier ones write: composition scores",
    .operands = "",
    .about =
        "Compares what an earlier head or neuron writes into the stream with what a later one reads, from the weights "
        "alone: the Frobenius norm of the product of their matrices, divided by the norms of both (Elhage et al. "
        "2021, \"A mathematical framework for transformer circuits\"). Q is |W_QK2^T W_OV1|, K is |W_QK2 W_OV1|, V is "
        "|W_OV2 W_OV1|; a neuron's value and key take the places of matrices; of two neurons it is the cosine. Chance "
        "is "
        "1 / sqrt(C): the root of the mean square of a score between directions that have nothing to do with each "
        "other. RoPE and biases are left out.",
    .example = "weir compose\n"
               "weir compose --layer 0-3 --kind k -k 5\n"
               "weir compose --neurons L2N5,L6N0:4 --weights folded --format tsv",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_compose_args),
    .run = run_tool,
};
