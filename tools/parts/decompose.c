#include "decompose.h"

#include <stdlib.h>
#include <string.h>

#include "cli/from.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/target.h"
#include "cli/terminal.h"

/* --- what is asked */

static int ask_layers(weir_decompose *d)
{
    weir_err err = {0};
    const weir_point *point;
    const int64_t n = weir_model_points(d->session.model, &point);
    char *layers;
    weir_selector *sel;
    d->layer = calloc((size_t)d->session.info->L, sizeof *d->layer);
    if (!d->layer || !weir_opt_list_join(&d->layers, &d->a->layers))
        return weir_cli_error(d->cli, "out of memory");
    layers = d->layers;
    if (weir_selector_build(&sel, d->session.model, NULL, layers ? layers : "all", "attn_out", &err) != WEIR_OK)
        return weir_cli_bad_argument(d->cli, "--layers", &err);
    for (int64_t i = 0; i < n; i++)
        if (point[i].layer >= 0 && weir_selector_matches(sel, &point[i]))
            d->layer[point[i].layer] = true;
    weir_selector_free(sel);
    return WEIR_EXIT_OK;
}

/* Units that are named must be there, and in a layer that is chosen. */
static int check_units(const weir_decompose *d, const weir_units *u, int64_t width)
{
    const char letter = u->asks.heads ? 'H' : 'N', *what = u->asks.heads ? "heads" : "neurons";
    for (int64_t i = 0; i < u->asks.n; i++) {
        const weir_neuron_ask *a = &u->asks.ask[i];
        if (a->unit >= width)
            return weir_cli_usage(d->cli, "--%s %lld: a layer has %lld %s, from 0", what, (long long)a->unit,
                                  (long long)width, what);
        if (a->layer >= 0 && (a->layer >= d->session.info->L || !d->layer[a->layer]))
            return weir_cli_usage(d->cli,
                                  "L%d%c%lld: layer %d is not looked at (layers count from 0 to %lld; --layers "
                                  "chooses)",
                                  a->layer, letter, (long long)a->unit, a->layer, (long long)d->session.info->L - 1);
    }
    return WEIR_EXIT_OK;
}

static int ask_units(weir_decompose *d, bool mlp)
{
    weir_err err = {0};
    weir_units *u = mlp ? &d->neurons : &d->heads;
    const weir_opt_list *texts = mlp ? &d->a->neurons : &d->a->heads;
    const char *option = mlp ? "--neurons" : "--heads";
    const bool looked = d->a->level >= (mlp ? WEIR_LEVEL_NEURON : WEIR_LEVEL_HEAD);
    u->asks.heads = !mlp;
    u->mode = looked ? WEIR_UNITS_TOP : WEIR_UNITS_NONE;
    if (texts->n == 0)
        return WEIR_EXIT_OK;
    if (!looked)
        return weir_cli_usage(d->cli, "%s asks for more than the level %s shows", option,
                              d->a->level == WEIR_LEVEL_LAYER ? "layer" : "head");
    if ((mlp ? weir_asks_parse : weir_asks_parse_heads)(&u->asks, texts, &err) != WEIR_OK)
        return weir_cli_bad_argument(d->cli, option, &err);
    u->mode = u->asks.n ? WEIR_UNITS_NAMED : WEIR_UNITS_ALL;
    return check_units(d, u, mlp ? d->session.info->F : d->session.info->H);
}

static int ask_target(weir_decompose *d)
{
    const int64_t vocab = d->session.info->V;
    const weir_decompose_args *a = d->a;
    int32_t id[2];
    d->target = d->against = WEIR_TARGET_NONE;
    if (a->contrast) {
        int code = weir_contrast_parse(d->cli, "--contrast", d->session.tok, vocab, a->contrast, id);
        if (code == WEIR_EXIT_OK) {
            d->target = id[0];
            d->against = id[1];
        }
        return code;
    }
    const char *target = a->target ? a->target : "final";
    if (strcmp(target, "none") == 0)
        return WEIR_EXIT_OK;
    return weir_target_parse(d->cli, "--target", d->session.tok, vocab, target, &d->target);
}

static bool no_target(const weir_decompose *d)
{
    return d->target == WEIR_TARGET_NONE;
}

/* An option that cannot be followed would be a wrong answer without a word. */
static int check_ranking(const weir_decompose *d)
{
    static const char *const of_lists[] = {"k", "rank-by"};
    const bool ranked = d->heads.mode == WEIR_UNITS_TOP || d->neurons.mode == WEIR_UNITS_TOP;
    for (size_t i = 0; i < sizeof of_lists / sizeof *of_lists && !ranked; i++)
        if (weir_cli_given(d->cli, of_lists[i]))
            return weir_cli_usage(
                d->cli, "--%s is about the heads and neurons that matter most, and none are asked for", of_lists[i]);
    if (d->a->rank == WEIR_RANK_LOGIT && no_target(d))
        return weir_cli_usage(d->cli, "--rank-by logit: with --target none there is none; share and norm are there");
    return WEIR_EXIT_OK;
}

static int ask(weir_decompose *d)
{
    if (d->a->target && d->a->contrast)
        return weir_cli_usage(d->cli, "--target and --contrast exclude each other");
    int code = ask_layers(d);
    if (code == WEIR_EXIT_OK)
        code = ask_units(d, false);
    if (code == WEIR_EXIT_OK)
        code = ask_units(d, true);
    if (code == WEIR_EXIT_OK)
        code = ask_target(d);
    return code == WEIR_EXIT_OK ? check_ranking(d) : code;
}

/* A dump that lacks what heads or neurons need can still be taken apart into its edits, unless they were asked for. */
static void ask_less_of_dump(weir_decompose *d)
{
    static const char *const site[2][2] = {{"attn.hook_z", "ln1_post.hook_scale"},
                                           {"mlp.hook_post", "ln2_post.hook_scale"}};
    if (weir_cli_given(d->cli, "level") || weir_cli_given(d->cli, "dla"))
        return;
    for (int mlp = 0; mlp < 2 && weir_from_edited(d->dump); mlp++) {
        (mlp ? &d->neurons : &d->heads)->mode = WEIR_UNITS_NONE;
        snprintf(d->lacks[mlp], sizeof d->lacks[mlp], "the edits of the weights that its run had");
    }
    for (int mlp = 0; mlp < 2; mlp++)
        for (int64_t l = 0; l < d->session.info->L; l++)
            for (int i = 0; i < 2 && (mlp ? &d->neurons : &d->heads)->mode == WEIR_UNITS_TOP && d->layer[l]; i++) {
                char name[80];
                snprintf(name, sizeof name, "blocks.%lld.%s", (long long)l, site[mlp][i]);
                if (!weir_model_point(d->session.model, name) || weir_dump_find(d->dump, name) >= 0)
                    continue;
                (mlp ? &d->neurons : &d->heads)->mode = WEIR_UNITS_NONE;
                snprintf(d->lacks[mlp], sizeof d->lacks[mlp], "%s", name);
            }
}

/* --- opening */

/* The dump, and the model that made it. */
static int open_dump(weir_decompose *d)
{
    int code = weir_from_open(&d->dump, &d->asked, &d->session, d->dump_path);
    if (code == WEIR_EXIT_OK)
        code = weir_from_model(&d->session, d->dump, d->dump_path, d->a->force, d->fingerprint);
    if (code != WEIR_EXIT_OK)
        return code;
    const char *source = weir_from_attr(d->dump, "run_options", "");
    d->interventions = weir_from_changes(d->dump);
    d->source = strdup(*source ? source : "null");
    if (!d->interventions || !d->source)
        return weir_cli_error(d->cli, "out of memory");
    /* Its tokens are named by the model's tokenizer; where there is none, by numbers. */
    weir_err none = {0};
    if (weir_tokenizer_open(&d->session.tok, d->session.model_path, NULL, &none) == WEIR_E_NOMEM)
        return weir_cli_fail(d->cli, &none);
    return WEIR_EXIT_OK;
}

static int open_text(weir_decompose *d)
{
    weir_err err = {0};
    int code = weir_session_model(&d->session);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_model_fingerprint(d->session.model, false, d->fingerprint, &err) != WEIR_OK)
        return weir_cli_fail(d->cli, &err);
    d->session.in.one_sentence = true;
    return weir_session_text(&d->session);
}

static int open_source(weir_decompose *d)
{
    int code = weir_from_dump(d->cli, d->a->from, &d->dump_path);
    if (code == WEIR_EXIT_OK)
        code = weir_from_check(d->cli, d->dump_path);
    if (code != WEIR_EXIT_OK)
        return code;
    return d->dump_path ? open_dump(d) : open_text(d);
}

static int open_values(weir_decompose *d)
{
    weir_err err = {0};
    const int64_t layers = d->session.info->L;
    bool *wants = calloc((size_t)(2 * layers), sizeof *wants);
    if (!wants)
        return weir_cli_error(d->cli, "out of memory");
    for (int64_t l = 0; l < layers; l++) {
        wants[l] = weir_decompose_wants(d, l, false);
        wants[layers + l] = weir_decompose_wants(d, l, true);
    }
    weir_status st = weir_sites_begin(&d->values, d->session.model, wants, wants + layers, &err);
    free(wants);
    if (st == WEIR_OK)
        st = weir_parts_new(&d->parts, d->session.model, weir_kernel_name(&d->a->session.run),
                            (int)d->a->session.run.threads, &err);
    if (st != WEIR_OK)
        return weir_cli_fail(d->cli, &err);
    return d->dump_path ? weir_decompose_open_dump(d) : weir_decompose_open_text(d);
}

static int open_all(weir_decompose *d)
{
    if (!weir_cli_given(d->cli, "positions"))
        d->a->session.rows.positions = "last";
    int code = open_source(d);
    if (code == WEIR_EXIT_OK)
        code = ask(d);
    if (code == WEIR_EXIT_OK && d->dump_path)
        ask_less_of_dump(d);
    if (code == WEIR_EXIT_OK && d->dump_path && weir_from_edited(d->dump) && (d->heads.mode || d->neurons.mode))
        return weir_cli_error(d->cli,
                              "%s was recorded with edits of the weights: heads and neurons are taken apart as the "
                              "model runs (the text, and --edit)",
                              d->dump_path);
    return code == WEIR_EXIT_OK ? open_values(d) : code;
}

/* --- output */

static weir_parts_format format_of(const weir_decompose_args *a)
{
    if (a->format != WEIR_PARTS_AUTO)
        return (weir_parts_format)a->format;
    if (a->session.out.json)
        return WEIR_PARTS_NDJSON;
    if (a->out && weir_ends_with(a->out, ".tsv"))
        return WEIR_PARTS_TSV;
    return a->out && (weir_ends_with(a->out, ".ndjson") || weir_ends_with(a->out, ".jsonl")) ? WEIR_PARTS_NDJSON
                                                                                             : WEIR_PARTS_TEXT;
}

static void describe(weir_decompose *d, FILE *out)
{
    static const char *const rank[] = {"auto", "logit", "share", "norm"};
    const weir_decompose_args *a = d->a;
    d->view = (weir_view_parts){.model = d->session.info->name,
                                .fingerprint = d->fingerprint,
                                .tokenizer = d->session.tok ? weir_tokenizer_fingerprint(d->session.tok) : "",
                                .source = d->source,
                                .interventions = d->interventions,
                                .target = a->contrast || no_target(d) ? NULL
                                          : a->target                 ? a->target
                                                                      : "final",
                                .contrast = a->contrast,
                                .layers = d->layers ? d->layers : "all",
                                .rank = rank[a->rank],
                                .tok = d->session.tok,
                                .capped = weir_model_point(d->session.model, "hook_logits") != NULL,
                                .colour = weir_colour_of((weir_colour_asked)a->colour, out),
                                .width = weir_width_of(a->width, out),
                                .one_object = a->session.out.json};
}

static int write_all(void *ctx, FILE *out)
{
    weir_decompose *d = ctx;
    d->out = out;
    describe(d, out);
    if (d->sink->begin)
        d->sink->begin(out, &d->view);
    int code = d->dump_path ? weir_decompose_dump(d) : weir_decompose_text(d);
    if (code == WEIR_EXIT_OK && d->sink->end)
        d->sink->end(out, &d->view);
    return code;
}

/* A defect of the model or the dump: said behind the results. */
static int lost(const weir_decompose *d)
{
    weir_cli_error(d->cli, "%lld of %lld positions have a stream or logits that are not finite (NaN or infinite)",
                   (long long)d->lost, (long long)d->positions);
    return WEIR_EXIT_FALSE;
}

static int check(const weir_decompose *d)
{
    if (d->positions == 0)
        weir_cli_note(d->cli, "no position was asked for: --positions %s", d->a->session.rows.positions);
    if (d->without)
        weir_cli_note(d->cli, "%lld of %lld positions have no next token, and no logits: --target final, or a token",
                      (long long)d->without, (long long)d->positions);
    if (d->lost)
        return lost(d);
    if (!d->a->check || d->inexact + d->beyond == 0)
        return WEIR_EXIT_OK;
    weir_cli_error(d->cli,
                   "of %lld positions, %lld have edits that are not the final stream to the bit, and %lld a sum that "
                   "is not the model's logit; the first: doc %lld, position %lld",
                   (long long)d->positions, (long long)d->inexact, (long long)d->beyond, (long long)d->bad_doc,
                   (long long)d->bad_pos);
    return WEIR_EXIT_FALSE;
}

static int run_all(weir_decompose *d)
{
    static const weir_sink *const sink[] = {[WEIR_PARTS_TEXT] = &weir_parts_text,
                                            [WEIR_PARTS_TSV] = &weir_parts_tsv,
                                            [WEIR_PARTS_NDJSON] = &weir_parts_json};
    const weir_parts_format format = format_of(d->a);
    if (d->a->session.out.json && format != WEIR_PARTS_NDJSON)
        return weir_cli_usage(d->cli, "--json and --format exclude each other");
    static const char *const of_text[] = {"color", "width"};
    for (size_t i = 0; format != WEIR_PARTS_TEXT && i < sizeof of_text / sizeof *of_text; i++)
        if (weir_cli_given(d->cli, of_text[i]))
            return weir_cli_usage(d->cli, "--%s is about the text view, and another format was chosen", of_text[i]);
    d->sink = sink[format];
    const weir_output_file file = {.path = d->a->out, .begin = d->sink->begins, .force = d->a->force};
    int code = weir_output_free(d->cli, &file);
    if (code == WEIR_EXIT_OK)
        code = open_all(d);
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(d->cli, &file, write_all, d);
    return code == WEIR_EXIT_OK ? check(d) : code;
}

int weir_decompose_run(weir_cli *cli, weir_decompose_args *a)
{
    weir_decompose d = {.cli = cli, .a = a, .session = {.cli = cli, .a = &a->session}};
    cli->quiet = a->session.out.quiet;
    int code = run_all(&d);
    weir_parts_free(d.parts);
    weir_sites_free(&d.values);
    weir_dump_close(d.dump);
    weir_positions_free(&d.asked);
    weir_session_close(&d.session);
    weir_asks_free(&d.heads.asks);
    weir_asks_free(&d.neurons.asks);
    void *const own[] = {d.layer, d.layers, d.source, d.interventions};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    return code;
}
