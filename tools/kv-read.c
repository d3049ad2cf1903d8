/* weir kv-read: an MLP as a memory of keys and values: what triggers each key, what its value promotes, whether the two
 * agree, and where each layer's prediction comes from (Geva et al. 2021). */
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "kv/kv.h"

#define AT(field) offsetof(weir_kv_args, field)
static const weir_opt what_opts[] = {
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL, "layers from 0: 6, 0-3,7, all (as without it)",
     AT(layers)},
    {"key", 0, NULL, WEIR_OPT_CHOICE, WEIR_KV_KEY_WORDS, 0, 0, "all",
     "what triggers are found by: the coefficient (hook_post: what the value is multiplied with), or one of the two "
     "keys "
     "of a gated MLP. all: those that the model has",
     AT(key)},
    {"sign", 0, NULL, WEIR_OPT_CHOICE, WEIR_KV_SIGN_WORDS, 0, 0, "+",
     "+: the highest coefficients, beside the value; -: the lowest, beside its negative", AT(sign)},
    {"k", 'k', NULL, WEIR_OPT_INT, "N", 1, 1000, "10", "triggers of a key", AT(k)},
    {"dedup", 0, NULL, WEIR_OPT_CHOICE, WEIR_KV_DEDUP_WORDS, 0, 0, "doc",
     "what triggers a key once: a document, as in the paper, a window, the same last 8 tokens, or each position",
     AT(dedup)},
    {"norm", 0, NULL, WEIR_OPT_CHOICE, WEIR_KV_NORM_WORDS, 0, 0, "none",
     "how values and parts of the stream are read: none: straight through the unembedding, as in the paper; gain: "
     "through the final norm's gain; recompute: through all of it, with their own statistics",
     AT(norm)},
    {"every", 0, NULL, WEIR_OPT_INT, "N", 1, INT32_MAX, "1",
     "split the predictions of one position of N, drawn at random; triggers are of all positions", AT(every)},
    {"seed", 0, NULL, WEIR_OPT_INT, "N", 0, 0, "0", "of the positions that --every draws", AT(seed)},
    {"mask", 0, NULL, WEIR_OPT_STR, "LIST", 0, 0, "bos,special",
     "tokens that are left out of everything wherever they stand: bos, special, token ids, or none", AT(mask)},
};
static const weir_opt_group what_group = {"What to read", what_opts, sizeof what_opts / sizeof *what_opts};
static const weir_opt show_opts[] = {
    {"neurons", 'n', NULL, WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "memories that are listed: L3N9, 421 (in every layer), 0:8 (half open), @FILE with such lists, all. Without it "
     "those "
     "whose values are the most certain",
     AT(neurons)},
    {"limit", 0, NULL, WEIR_OPT_INT, "N", 0, 0, "10", "how many of the most certain; 0: all. TSV has all of them",
     AT(limit)},
    {"tokens", 0, NULL, WEIR_OPT_INT, "N", 1, 1000, "5", "likeliest tokens of a value", AT(tokens)},
    {"context", 0, NULL, WEIR_OPT_INT, "N", 0, 10000, "10", "tokens shown before a trigger's last one", AT(context)},
    {"per", 0, NULL, WEIR_OPT_CHOICE, WEIR_KV_PER_WORDS, 0, 0, "layer",
     "what a line of TSV is about: a layer, a key, a token of a value, a trigger", AT(per)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, WEIR_KV_FORMAT_WORDS, 0, 0, "auto",
     "auto: by the end of the file's name, else text; svg draws the layers", AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(out)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
};
static const weir_opt_group show_group = {"What to show", show_opts, sizeof show_opts / sizeof *show_opts};
static const weir_opt_use options[] = {
    {&what_group, 0}, {&show_group, 0}, WEIR_SESSION_OPTIONS(AT(session)), {NULL, 0}};
static const weir_opt_rule rules[] = {
    {"json", WEIR_OPT_EXCLUDES, "format"}, {"json", WEIR_OPT_EXCLUDES, "per"}, {NULL, WEIR_OPT_NEEDS, NULL}};

const char *const weir_kv_key_name[WEIR_KV_KEYS] = {"coefficient", "gate", "up"};
const char *const weir_kv_sign_name[2] = {"+", "-"};
const char *const weir_kv_norm_name[] = {"none", "gain", "recompute"};

/* --- what is asked */

static int read_format(weir_kv *t)
{
    const weir_kv_args *a = t->a;
    const char *end = a->out ? strrchr(a->out, '.') : NULL;
    t->format = a->format;
    if (t->format == WEIR_KV_AUTO)
        t->format = end && strcmp(end, ".tsv") == 0   ? WEIR_KV_TSV
                    : end && strcmp(end, ".svg") == 0 ? WEIR_KV_SVG
                                                      : WEIR_KV_TEXT;
    if (t->format != WEIR_KV_TSV && weir_cli_given(t->cli, "per"))
        return weir_cli_usage(t->cli, "--per is about the lines of --format tsv");
    if (t->format == WEIR_KV_TSV && weir_cli_given(t->cli, "limit"))
        return weir_cli_usage(t->cli,
                              "--limit is about the text and --json: TSV has all memories, or those of --neurons");
    if (t->asks.n && weir_cli_given(t->cli, "limit"))
        return weir_cli_usage(t->cli, "--limit is about the most certain values, and --neurons names others");
    return WEIR_EXIT_OK;
}

static int read_options(weir_kv *t)
{
    static const weir_lens_norm norm[] = {WEIR_LENS_NONE, WEIR_LENS_GAIN, WEIR_LENS_RECOMPUTE};
    weir_err err = {0};
    if (t->a->neurons.n && weir_asks_parse(&t->asks, &t->a->neurons, &err) != WEIR_OK)
        return weir_cli_bad_argument(t->cli, "--neurons", &err);
    t->norm = norm[t->a->norm];
    t->sign[0] = t->a->sign != WEIR_KV_MINUS;
    t->sign[1] = t->a->sign != WEIR_KV_PLUS;
    return read_format(t);
}

/* --- opening */

static const weir_point *point_of(const weir_kv *t, int layer, const char *site)
{
    char name[80];
    snprintf(name, sizeof name, "blocks.%d.%s", layer, site);
    return weir_model_point(t->s.model, name);
}

static void find_points(const weir_kv *t, weir_kv_layer *l)
{
    static const char *const site[] = {"mlp.hook_post", "mlp.hook_pre", "mlp.hook_pre_linear"};
    const bool parallel = t->s.info->parallel;
    for (int key = 0; key < WEIR_KV_KEYS; key++)
        l->point[key] = t->key[key] || key == WEIR_KV_COEFFICIENT ? point_of(t, l->layer, site[key]) : NULL;
    l->residual = point_of(t, l->layer, parallel ? "hook_resid_pre" : "hook_resid_mid");
    l->attn_out = parallel ? point_of(t, l->layer, "hook_attn_out") : NULL;
    l->mlp = point_of(t, l->layer, "hook_mlp_out");
    l->out = point_of(t, l->layer, "hook_resid_post");
}

static int choose_layers(weir_kv *t)
{
    weir_err err = {0};
    weir_selector *sel;
    const weir_point *p;
    char *layers = NULL;
    t->layer = calloc((size_t)t->s.info->L, sizeof *t->layer);
    if (!t->layer || !weir_opt_list_join(&layers, &t->a->layers))
        return weir_cli_error(t->cli, "out of memory");
    const weir_status st = weir_selector_build(&sel, t->s.model, NULL, layers ? layers : "all", "resid_post", &err);
    free(layers);
    if (st != WEIR_OK)
        return weir_cli_bad_argument(t->cli, "--layer", &err);
    const int64_t n = weir_model_points(t->s.model, &p);
    for (int64_t i = 0; i < n; i++)
        if (weir_selector_matches(sel, &p[i]))
            t->layer[t->n_layers++].layer = p[i].layer;
    weir_selector_free(sel);
    for (int i = 0; i < t->n_layers; i++)
        find_points(t, &t->layer[i]);
    return WEIR_EXIT_OK;
}

static int check_asks(const weir_kv *t)
{
    for (int64_t i = 0; i < t->asks.n; i++) {
        const weir_neuron_ask *a = &t->asks.ask[i];
        bool layer = a->layer < 0;
        for (int j = 0; j < t->n_layers; j++)
            layer |= t->layer[j].layer == a->layer;
        if (!layer)
            return weir_cli_usage(t->cli, "--neurons: layer %d is not among those that are read (--layer chooses)",
                                  a->layer);
        if (a->unit >= t->F)
            return weir_cli_usage(t->cli, "--neurons: there is no neuron %lld: a layer has %lld, 0 to %lld",
                                  (long long)a->unit, (long long)t->F, (long long)t->F - 1);
    }
    return WEIR_EXIT_OK;
}

static int choose_keys(weir_kv *t)
{
    const int asked = t->a->key - 1; /* -1: all */
    if (asked > WEIR_KV_COEFFICIENT && !t->s.info->gated)
        return weir_cli_usage(t->cli, "--key %s: the MLPs of %s have no gate, and one key", weir_kv_key_name[asked],
                              t->s.info->name);
    for (int key = 0; key < WEIR_KV_KEYS; key++)
        t->key[key] = asked < 0 ? t->s.info->gated || key == WEIR_KV_COEFFICIENT : key == asked;
    return WEIR_EXIT_OK;
}

static int open_model(weir_kv *t)
{
    int code = weir_session_model(&t->s);
    if (code != WEIR_EXIT_OK)
        return code;
    t->F = t->s.info->F;
    t->C = t->s.info->C;
    t->k = t->a->k;
    code = choose_keys(t);
    if (code == WEIR_EXIT_OK)
        code = choose_layers(t);
    return code == WEIR_EXIT_OK ? check_asks(t) : code;
}

/* A table for each key and layer, the keys one after the other. */
static weir_status open_search(weir_kv *t, weir_err *err)
{
    static const weir_neurons_dedup dedup[] = {WEIR_DEDUP_NONE, WEIR_DEDUP_WINDOW, WEIR_DEDUP_DOC, WEIR_DEDUP_TEXT};
    weir_neurons_options o;
    weir_neurons_options_init(&o);
    o.k = t->k;
    o.lists = (unsigned)(t->sign[0] << WEIR_NEURONS_TOP | t->sign[1] << WEIR_NEURONS_BOTTOM);
    o.dedup = dedup[t->a->dedup];
    o.before = t->a->context;
    o.after = 1;
    o.threads = (int)t->a->session.run.threads;
    o.kernel = weir_kernel_name(&t->a->session.run);
    weir_neurons_table *table = calloc((size_t)(WEIR_KV_KEYS * t->n_layers), sizeof *table);
    int n = 0;
    if (!table)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    for (int key = 0; key < WEIR_KV_KEYS; key++) {
        t->table[key] = n;
        for (int i = 0; i < t->n_layers && t->key[key]; i++)
            table[n++] = (weir_neurons_table){.hook = t->layer[i].point[key]->name,
                                              .site = weir_kv_key_name[key],
                                              .layer = t->layer[i].layer,
                                              .width = t->F,
                                              .n = t->F};
    }
    const weir_status st = weir_neurons_new(&t->search, &o, table, n, err);
    free(table);
    return st;
}

static int open_all(weir_kv *t)
{
    weir_err err = {0};
    int code = open_model(t);
    if (code == WEIR_EXIT_OK)
        code = weir_session_text(&t->s);
    if (code != WEIR_EXIT_OK)
        return code;
    const int64_t known = t->s.tok ? weir_tokenizer_size(t->s.tok) : t->s.info->V;
    t->vocab = known < t->s.info->V ? known : t->s.info->V;
    t->tokens = t->a->tokens < t->vocab ? t->a->tokens : t->vocab;
    if (weir_lens_new(&t->lens, t->s.model, weir_kernel_name(&t->a->session.run), (int)t->a->session.run.threads,
                      &err) != WEIR_OK ||
        weir_keyvalue_new(&t->split, t->n_layers, t->F, t->s.info->V, &err) != WEIR_OK ||
        open_search(t, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    code = weir_session_run(&t->s);
    if (code == WEIR_EXIT_OK)
        code = weir_kv_attach(t);
    return code == WEIR_EXIT_OK ? weir_session_prepare(&t->s, 0) : code;
}

/* --- the tool */

static int measure(void *ctx, FILE *out)
{
    weir_kv *t = ctx;
    t->out = out;
    int code = weir_kv_read_values(t);
    if (code == WEIR_EXIT_OK)
        code = weir_kv_run(t);
    if (code == WEIR_EXIT_OK)
        code = weir_provenance_of_text(&t->about, &t->room, &t->s);
    if (code == WEIR_EXIT_OK)
        code = weir_kv_read_triggers(t);
    if (code == WEIR_EXIT_OK)
        code = weir_kv_choose_listed(t);
    if (code != WEIR_EXIT_OK)
        return code;
    bool (*const put[])(const weir_kv *) = {[WEIR_KV_TEXT] = weir_kv_put_text, [WEIR_KV_TSV] = weir_kv_put_tsv};
    if (t->a->session.out.json)
        return weir_kv_put_json(t) ? WEIR_EXIT_OK : weir_cli_error(t->cli, "out of memory");
    if (t->format != WEIR_KV_SVG)
        return put[t->format](t) ? WEIR_EXIT_OK : weir_cli_error(t->cli, "out of memory");
    weir_kv_put_svg(t);
    return WEIR_EXIT_OK;
}

/* Which file may be replaced: one of the same form. */
static weir_output_file file_of(const weir_kv *t)
{
    static const weir_output_mark json = {"{\"format\":\"weir-kv-read\"", NULL},
                                  text = {"", ": an MLP as a memory of keys and values, "},
                                  svg = {"<?xml", "weir kv-read"},
                                  tsv[] = {{"layer\tkey\tsign\tkeys\tagree", NULL},
                                           {"layer\tunit\tkey\tsign\ttop_id", NULL},
                                           {"layer\tunit\tsign\trank\tid\tprob", NULL},
                                           {"layer\tunit\tkey\tsign\tplace\tvalue", NULL}};
    const weir_output_mark *m = t->a->session.out.json     ? &json
                                : t->format == WEIR_KV_TSV ? &tsv[t->a->per]
                                : t->format == WEIR_KV_SVG ? &svg
                                                           : &text;
    return (weir_output_file){.path = t->a->out, .begin = m->begin, .holds = m->holds, .force = t->a->force};
}

static void close_all(weir_kv *t)
{
    for (int i = 0; t->layer && i < t->n_layers; i++)
        for (int sign = 0; sign < 2; sign++) {
            free(t->layer[i].top_id[sign]);
            free(t->layer[i].top_logprob[sign]);
            for (int key = 0; key < WEIR_KV_KEYS; key++) {
                free(t->layer[i].triggers[key][sign].next);
                free(t->layer[i].triggers[key][sign].rank);
            }
        }
    free(t->layer);
    free(t->listed);
    weir_kv_live_free(t->live);
    weir_lens_free(t->lens);
    weir_keyvalue_free(t->split);
    weir_neurons_free(t->search);
    weir_asks_free(&t->asks);
    weir_provenance_free(&t->room);
    weir_session_close(&t->s);
}

static int run_tool(weir_cli *cli, void *args)
{
    const weir_kv_args *a = args;
    weir_kv t = {.cli = cli, .a = a, .s = {.cli = cli, .a = &a->session}, .start = weir_now()};
    cli->quiet = a->session.out.quiet;
    int code = read_options(&t);
    const weir_output_file file = file_of(&t);
    if (code == WEIR_EXIT_OK)
        code = weir_output_free(cli, &file);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK)
        code = open_all(&t);
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(cli, &file, measure, &t);
    close_all(&t);
    return code;
}

const weir_tool weir_tool_kv_read = {
    .name = "kv-read",
    .summary = "an MLP as a memory: what triggers its keys, what its values promote",
    .operands = "[TEXT... | --file FILE... | < text]",
    .about =
        "Reads each neuron of an MLP as a memory (Geva et al. 2021, \"Transformer feed-forward layers are key-value "
        "memories\"): the texts that its key is triggered by, the tokens that its value, as a distribution over the "
        "vocabulary, promotes, and for each layer the agreement rate: the share of keys whose value's likeliest token "
        "is "
        "the one behind the best trigger, beside the rate of a random pairing. And where a layer's prediction comes "
        "from: "
        "it is the residual's, the MLP's, that of both (agreement) or of neither (composition); and how often the MLP "
        "predicts what no memory of it does. Without a text, standard input is read; a terminal or an empty input "
        "means "
        "the 1,000 sentences that come with brook.",
    .example = "weir kv-read\n"
               "weir kv-read --layer 5 --neurons L5N12 -k 3 'Boulder is in the state of Colorado.'\n"
               "weir kv-read --layer 6-7 --norm recompute --format tsv",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_kv_args),
    .run = run_tool,
    .more_help = weir_attach_help,
};
