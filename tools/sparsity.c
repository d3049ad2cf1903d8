/* weir sparsity: how sparse a model's neurons are over a text, which thresholds would make them sparser, and what the
 * model loses by it: with a mask, or with another activation in place of its own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "sparsity/sparsity.h"

#define AT(field) offsetof(weir_sparsity_args, field)
static const weir_opt own_opts[] = {
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL, "layers from 0: 6, 0-3,7, all (as without it)",
     AT(layers)},
    {"site", 's', NULL, WEIR_OPT_STR, "SITE,...", 0, 0, "post",
     "what is looked at: post (the input of the down projection), pre or gate, up, mlp_out, resid_post ...", AT(sites)},
    {"below", 0, NULL, WEIR_OPT_STR, "T,...", 0, 0, "0,0.01,0.1,1",
     "thresholds: a value is small where |x| < T (0: where it is 0), else its neuron is active", AT(below)},
    {"active", 0, NULL, WEIR_OPT_REAL, "T", 0, 0, "0.1",
     "the threshold whose active neurons the text shows; the other formats have all", AT(active)},
    {"shares", 0, NULL, WEIR_OPT_STR, "P,...", 0, 0, "0.25,0.5,0.75,0.9",
     "shares of the values that TEAL and CATS thresholds make zero", AT(shares)},
    {"hot", 0, NULL, WEIR_OPT_STR, "P,...", 0, 0, "0.01,0.1,0.2",
     "shares of the neurons: how much of all firings the most active have", AT(hot)},
    {"sample", 0, NULL, WEIR_OPT_INT, "N", 0, WEIR_SPARSITY_SAMPLE, "64",
     "tokens for the CETT curve: what the MLP's output loses without its small neurons; 0: no curve", AT(sample)},
};
static const weir_opt change_opts[] = {
    {"mask", 0, NULL, WEIR_OPT_STR, "KIND:N", 0, 0, NULL,
     "run with all but the large neurons of each token zeroed, and score both: topk:K keeps K a layer, below:T zeroes "
     "|x| < T, teal:SHARE finds each layer's threshold in the text first",
     AT(mask)},
    {"act", 0, NULL, WEIR_OPT_STR, "NAME", 0, 0, NULL,
     "run with another activation in place of the model's, and score both: relu, relu2, identity, gelu, silu ...",
     AT(act)},
};
static const weir_opt result_opts[] = {
    {"per", 0, NULL, WEIR_OPT_CHOICE, WEIR_SPARSITY_PER_WORDS, 0, 0, "layer",
     "what a line of TSV is about: a layer; its active neurons at a threshold; a point of its curve; a neuron",
     AT(per)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv", 0, 0, "text", "form of the result; --json: all as one object",
     AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(out)},
    {"svg", 0, NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "draw the CETT curves into this file", AT(svg)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
};
static const weir_opt_group own_group = {"What to measure", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_group change_group = {"What if", change_opts, sizeof change_opts / sizeof *change_opts};
static const weir_opt_group result_group = {"Result", result_opts, sizeof result_opts / sizeof *result_opts};
static const weir_opt_use options[] = {
    {&own_group, 0}, {&change_group, 0}, {&result_group, 0}, WEIR_SESSION_OPTIONS(AT(session)), {NULL, 0}};
static const weir_opt_rule rules[] = {
    {"json", WEIR_OPT_EXCLUDES, "per"}, {"json", WEIR_OPT_EXCLUDES, "format"}, {NULL, WEIR_OPT_NEEDS, NULL}};

/* --- the command line */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* "0.1,0.5" to numbers of [0, most], in ascending order. */
static int read_list(const weir_sparsing *t, const char *option, const char *text, double most, double *v, int max,
                     int *n)
{
    char item[64];
    for (*n = 0; text; (*n)++) {
        const size_t length = strcspn(text, ",");
        snprintf(item, sizeof item, "%.*s", length < sizeof item ? (int)length : 0, text);
        if (*n == max)
            return weir_cli_usage(t->cli, "--%s: more than %d numbers", option, max);
        if (!weir_parse_real(item, &v[*n]) || !(v[*n] >= 0) || v[*n] > most)
            return weir_cli_usage(t->cli, "--%s: \"%.*s\" is not a number from 0 to %g", option, (int)length, text,
                                  most);
        text = text[length] ? text + length + 1 : NULL;
    }
    qsort(v, (size_t)*n, sizeof *v, ascending);
    for (int i = 1; i < *n; i++)
        if ((float)v[i] == (float)v[i - 1])
            return weir_cli_usage(t->cli, "--%s: %g stands there twice", option, v[i]);
    return WEIR_EXIT_OK;
}

/* The threshold of --active, which is one more if --below does not name it. */
static int choose_active(weir_sparsing *t)
{
    int at = 0;
    while (at < t->n_below && (float)t->below[at] < (float)t->a->active)
        at++;
    t->active = at;
    if (at < t->n_below && (float)t->below[at] == (float)t->a->active)
        return WEIR_EXIT_OK;
    if (t->n_below == WEIR_SPARSITY_THRESHOLDS)
        return weir_cli_usage(t->cli, "--below and --active: more than %d thresholds", WEIR_SPARSITY_THRESHOLDS);
    memmove(t->below + at + 1, t->below + at, (size_t)(t->n_below++ - at) * sizeof *t->below);
    t->below[at] = t->a->active;
    return WEIR_EXIT_OK;
}

static int read_act(weir_sparsing *t)
{
    if (!t->a->act)
        return WEIR_EXIT_OK;
    t->s.act = weir_activation_named(t->a->act);
    if (!t->s.act)
        return weir_cli_usage(t->cli, "--act %s: no activation is called so (weir act lists them)", t->a->act);
    if (!t->s.act->runs)
        return weir_cli_usage(t->cli, "--act %s: no kernel has it", t->a->act);
    return WEIR_EXIT_OK;
}

static int read_command(weir_sparsing *t)
{
    const weir_sparsity_args *a = t->a;
    int code = read_list(t, "below", a->below, 1e30, t->below, WEIR_SPARSITY_THRESHOLDS, &t->n_below);
    if (code == WEIR_EXIT_OK)
        code = choose_active(t);
    if (code == WEIR_EXIT_OK)
        code = read_list(t, "shares", a->shares, 1, t->share, WEIR_SPARSITY_SHARES, &t->n_shares);
    if (code == WEIR_EXIT_OK)
        code = read_list(t, "hot", a->hot, 1, t->hot, WEIR_SPARSITY_SHARES, &t->n_hot);
    if (code == WEIR_EXIT_OK)
        code = weir_sparsity_read_mask(t);
    if (code == WEIR_EXIT_OK)
        code = read_act(t);
    if (code == WEIR_EXIT_OK && weir_cli_given(t->cli, "per") && a->format != WEIR_SPARSITY_TSV)
        code = weir_cli_usage(t->cli, "--per is about --format tsv");
    if (code == WEIR_EXIT_OK && a->sample == 0 && (a->svg || a->per == WEIR_SPARSITY_PER_CETT))
        code = weir_cli_usage(t->cli, "--sample 0 makes no curve to %s", a->svg ? "draw" : "show");
    return code;
}

/* --- running */

static bool changes_values(const weir_sparsing *t)
{
    bool changes = t->s.edits.n || t->s.act || t->mask.kind != WEIR_MASK_NONE;
    for (int i = 0; i < t->s.attach.n; i++)
        changes |= weir_run_hook_writes(t->s.run, t->s.attach.hook[i].index);
    return changes;
}

/* The reader comes last, so that it sees what is left. */
static int open_stats(weir_sparsing *t)
{
    weir_err err = {0};
    weir_sparsity_options o = {.layers = t->layers,
                               .sites = t->a->sites,
                               .below = t->below,
                               .n_below = t->n_below,
                               .sample = t->a->sample,
                               .act = t->s.act,
                               .edits = (const weir_edit *const *)t->s.edits.edit,
                               .n_edits = t->s.edits.n};
    if (weir_sparsity_new(&t->stats, t->s.model, &o, &err) != WEIR_OK)
        return weir_cli_bad_argument(t->cli, "--layer, --site", &err);
    return weir_sparsity_attach(t->stats, t->s.run, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(t->cli, &err);
}

static int open_runs(weir_sparsing *t)
{
    weir_err err = {0};
    int code = weir_session_run(&t->s);
    if (code == WEIR_EXIT_OK)
        code = weir_sparsity_attach_mask(t);
    if (code == WEIR_EXIT_OK)
        code = open_stats(t);
    t->arms = code == WEIR_EXIT_OK && changes_values(t) ? WEIR_SPARSITY_ARMS : 0;
    if (code == WEIR_EXIT_OK)
        code = weir_session_prepare(&t->s, t->arms ? WEIR_FINAL : 0);
    if (code == WEIR_EXIT_OK && t->arms)
        code = weir_session_plain_run(&t->s, &t->plain);
    for (int arm = 0; code == WEIR_EXIT_OK && arm < t->arms; arm++)
        if (weir_logprobs_new(&t->logprob[arm], t->a->session.run.batch, &err) != WEIR_OK)
            code = weir_cli_fail(t->cli, &err);
    return code;
}

static weir_status run_arm(weir_sparsing *t, int arm, const weir_batch *b, weir_err *err)
{
    weir_run *run = arm == WEIR_SPARSITY_ASKED ? t->s.run : t->plain;
    if (b->restart)
        weir_run_slot_reset(run, 0);
    WEIR_TRY(weir_run_forward(run, b->seq, b->n_seq, t->arms ? WEIR_FINAL : 0, err));
    return t->arms ? weir_logprobs_find(&t->logprob[arm], run, b, err) : WEIR_OK;
}

/* Nothing precedes the first token of a window. */
static void add_losses(weir_sparsing *t, const weir_batch *b)
{
    for (int64_t i = 0; t->arms && i < b->kept.n; i++) {
        if (b->kept.ctx_pos[i] == 0) {
            t->unscored += !(b->kept.flags[i] & WEIR_TOKEN_BOS);
            continue;
        }
        t->tokens++;
        for (int arm = 0; arm < t->arms; arm++)
            t->nats[arm] -= (double)t->logprob[arm].kept[i];
    }
}

static weir_status run_batches(weir_sparsing *t, weir_err *err)
{
    weir_progress progress;
    const weir_batch *b;
    weir_status st;
    weir_progress_start(&progress, t->cli);
    while (!weir_signals_seen() && (st = weir_feed_next(t->s.feed, &b, err)) == WEIR_OK && b) {
        st = b->n_seq ? run_arm(t, WEIR_SPARSITY_ASKED, b, err) : WEIR_OK;
        if (st == WEIR_OK && b->n_seq && t->arms)
            st = run_arm(t, WEIR_SPARSITY_PLAIN, b, err);
        if (st != WEIR_OK)
            break;
        add_losses(t, b);
        weir_progress_update(&progress, weir_feed_progress(t->s.feed), t->rows += b->rows);
    }
    weir_progress_stop(&progress, t->cli);
    return weir_signals_seen() ? weir_fail(err, WEIR_E_IO, "stopped by signal %d", weir_signals_seen()) : st;
}

static void say(const weir_sparsing *t)
{
    const weir_report r = {.model = t->s.model,
                           .run = t->s.run,
                           .docs = t->s.in.docs,
                           .counts = weir_feed_counts_of(t->s.feed),
                           .rows = t->rows,
                           .rows_run = t->rows,
                           .seconds = weir_now() - t->start,
                           .attach = &t->s.attach};
    weir_report_say(&r, t->cli);
    for (int i = 0; i < weir_sparsity_lines(t->stats); i++) {
        const weir_sparsity_line l = weir_sparsity_line_of(t->stats, i);
        if (l.lost)
            weir_cli_note(t->cli, "%s: %lld rows with NaN or infinite values are left out", l.point->name,
                          (long long)l.lost);
    }
}

int weir_sparsity_run(weir_sparsing *t)
{
    weir_err err = {0};
    if (run_batches(t, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    if (weir_sparsity_line_of(t->stats, 0).rows + weir_sparsity_line_of(t->stats, 0).lost == 0)
        return weir_cli_error(t->cli, weir_feed_counts_of(t->s.feed).docs ? "--positions leaves no row"
                                                                          : "the input holds no document");
    if (t->arms && t->tokens == 0)
        return weir_cli_error(t->cli, "no token was scored: nothing precedes the only token of its window (--bos yes "
                                      "puts BOS before it), or --positions leaves none");
    if (weir_sparsity_finish(t->stats, (int)t->a->session.run.threads, &err) != WEIR_OK ||
        weir_run_finish(t->s.run, t->a->session.out.json ? NULL : t->out, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    return WEIR_EXIT_OK;
}

static int measure(void *ctx, FILE *out)
{
    weir_sparsing *t = ctx;
    t->out = out;
    const int code = weir_sparsity_run(t);
    if (code != WEIR_EXIT_OK)
        return code;
    const bool put = t->a->session.out.json              ? weir_sparsity_put_json(t)
                     : t->a->format == WEIR_SPARSITY_TSV ? weir_sparsity_put_tsv(t)
                                                         : weir_sparsity_put_text(t);
    if (!put)
        return weir_cli_error(t->cli, "out of memory");
    say(t);
    return WEIR_EXIT_OK;
}

/* --- the tool */

static weir_output_file file_of(const weir_sparsity_args *a)
{
    static const weir_output_mark json = {"{\"format\":\"weir-sparsity\"", NULL}, text = {"", ": sparsity over "},
                                  tsv[] = {{"layer\thook\trows", NULL},
                                           {"layer\thook\tbelow", NULL},
                                           {"layer\thook\tedge", NULL},
                                           {"layer\thook\tneuron", NULL}};
    const weir_output_mark *m = a->session.out.json ? &json : a->format == WEIR_SPARSITY_TSV ? &tsv[a->per] : &text;
    return (weir_output_file){.path = a->out, .begin = m->begin, .holds = m->holds, .force = a->force};
}

static int open_text(weir_sparsing *t)
{
    int code = weir_session_model(&t->s);
    if (code == WEIR_EXIT_OK && !weir_opt_list_join(&t->layers, &t->a->layers))
        code = weir_cli_error(t->cli, "out of memory");
    return code == WEIR_EXIT_OK ? weir_session_text(&t->s) : code;
}

static int run_all(weir_sparsing *t)
{
    const weir_output_file file = file_of(t->a),
                           svg = {.path = t->a->svg, .begin = "<?xml", .holds = "weir sparsity", .force = t->a->force};
    int code = read_command(t);
    if (code == WEIR_EXIT_OK)
        code = weir_output_free(t->cli, &file);
    if (code == WEIR_EXIT_OK && svg.path)
        code = weir_output_free(t->cli, &svg);
    if (code == WEIR_EXIT_OK)
        code = open_text(t);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK)
        code = weir_sparsity_calibrate(t);
    if (code == WEIR_EXIT_OK)
        code = open_runs(t);
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(t->cli, &file, measure, t);
    if (code == WEIR_EXIT_OK && svg.path)
        code = weir_output_put(t->cli, &svg, weir_sparsity_put_svg, t);
    return code;
}

static int run_tool(weir_cli *cli, void *args)
{
    const weir_sparsity_args *a = args;
    weir_sparsing t = {.cli = cli, .a = a, .s = {.cli = cli, .a = &a->session}, .start = weir_now()};
    cli->quiet = a->session.out.quiet;
    const int code = run_all(&t);
    for (int arm = 0; arm < WEIR_SPARSITY_ARMS; arm++)
        weir_logprobs_free(&t.logprob[arm]);
    weir_run_free(t.plain);
    weir_session_close(&t.s);
    weir_sparsity_free(t.stats);
    free(t.layers);
    free(t.cut);
    return code;
}

const weir_tool weir_tool_sparsity = {
    .name = "sparsity",
    .summary = "how sparse the neurons are, which thresholds make them sparser, and what that costs",
    .operands = "[TEXT... | --file FILE... | < text]",
    .about =
        "Counts over a text, for each layer's neurons (mlp.hook_post) or another site: exact zeros, values below "
        "thresholds, neurons that fire never, always and most, what consecutive tokens share; the thresholds of TEAL "
        "and "
        "CATS; and the CETT curve: what an MLP's output loses without its small neurons. With --mask or --act the "
        "model "
        "runs so changed, what is counted is what is left, and the loss stands beside that of the model as it is. "
        "Memory "
        "does not grow with the text. Without a text, standard input is read; a terminal or an empty input means the "
        "1,000 sentences that come with brook.",
    .example = "weir sparsity\n"
               "weir sparsity --mask topk:64 'Boulder is in the state of Colorado.'\n"
               "weir sparsity --act relu --active 0\n"
               "weir sparsity --format tsv --per cett --layer 3 'The river bends.'",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_sparsity_args),
    .run = run_tool,
    .more_help = weir_attach_help,
};
