/* weir health: how large the residual stream is, layer by layer, over a text: RMS, massive dimensions and positions,
 * and values that are not finite. */
#include <stdlib.h>
#include <string.h>

#include "cli/from.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "health/health.h"

#define AT(field) offsetof(weir_health_args, field)
static const weir_opt own_opts[] = {
    {"from", 0, NULL, WEIR_OPT_STR, "DUMP.h5", 0, 0, NULL,
     "a dump of weir trace instead of a text, as the operand; it needs hook_resid_pre of the layers, and "
     "hook_resid_post of the last one",
     AT(from)},
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "layers from 0: 6, 0-3,7, all (as without it); with the last one also the stream behind it", AT(layers)},
    {"dim-ratio", 0, NULL, WEIR_OPT_REAL, "R", 1, 0, "100",
     "a dimension is massive where its magnitude is above R times the median of its row", AT(dim_ratio)},
    {"norm-ratio", 0, NULL, WEIR_OPT_REAL, "R", 1, 0, "10",
     "a position is massive where its norm is above R times the median of its window's rows", AT(norm_ratio)},
    {"k", 'k', NULL, WEIR_OPT_INT, "N", 1, 1 << 20, "10",
     "massive dimensions and tokens that the text lists; the other formats have all", AT(k)},
    {"per", 0, NULL, WEIR_OPT_CHOICE, WEIR_HEALTH_PER_WORDS, 0, 0, "layer",
     "what a line is about: a layer (the text has massive dimensions and tokens below), a position with its RMS in "
     "each "
     "layer, a massive dimension, a token that is massive somewhere",
     AT(per)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv|ndjson", 0, 0, "text",
     "form of the lines; --json: all but the positions as one object", AT(format)},
    {"width", 0, NULL, WEIR_OPT_INT, "N", 20, 10000, NULL,
     "columns of the text of --per position (the terminal's, else 120)", AT(width)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(out)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "replace FILE, whatever it is; take a dump of another model than this one", AT(force)},
};
static const weir_opt_group own_group = {"What to show", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {{&own_group, 0}, WEIR_SESSION_OPTIONS(AT(session)), {NULL, 0}};
static const weir_opt_rule rules[] = {
    {"json", WEIR_OPT_EXCLUDES, "per"}, {"json", WEIR_OPT_EXCLUDES, "format"}, {NULL, WEIR_OPT_NEEDS, NULL}};

/* --- opening */

/* The chosen layers' resid_pre; behind the last layer also its resid_post. */
int weir_health_choose_lines(weir_health *h)
{
    weir_err err = {0};
    char *layers = NULL;
    const weir_point *p;
    if (!weir_opt_list_join(&layers, &h->a->layers))
        return weir_cli_error(h->cli, "out of memory");
    weir_status st =
        weir_selector_build(&h->sel, h->s.model, NULL, layers ? layers : "all", "resid_pre,resid_post", &err);
    free(layers);
    if (st != WEIR_OK)
        return weir_cli_bad_argument(h->cli, "--layer", &err);
    h->line = calloc((size_t)(h->s.info->L + 1), sizeof *h->line);
    if (!h->line)
        return weir_cli_error(h->cli, "out of memory");
    const int64_t n = weir_model_points(h->s.model, &p);
    for (int64_t i = 0; i < n; i++) {
        const bool out = p[i].site == WEIR_SITE_RESID_POST && p[i].layer == h->s.info->L - 1;
        if (!weir_selector_matches(h->sel, &p[i]) || (p[i].site != WEIR_SITE_RESID_PRE && !out))
            continue;
        weir_health_line *l = &h->line[h->n_lines++];
        l->point = &p[i];
        snprintf(l->name, sizeof l->name, out ? "out" : "L%d", p[i].layer);
        if (!weir_bins_new(&l->bins))
            return weir_cli_error(h->cli, "out of memory");
    }
    return WEIR_EXIT_OK;
}

static int make_room(weir_health *h)
{
    const size_t lines = (size_t)h->n_lines, ctx = (size_t)h->s.ctx, c = (size_t)h->s.info->C, v = (size_t)h->s.info->V;
    h->dim = calloc(lines * c, sizeof *h->dim);
    h->token = calloc(2 * v, sizeof *h->token);
    h->token_line = calloc(2 * v, lines);
    h->batch = calloc(lines * (size_t)h->a->session.run.batch, sizeof *h->batch);
    h->some = calloc(c > ctx ? c : ctx, sizeof *h->some);
    h->w.place = calloc(ctx, sizeof *h->w.place);
    h->w.first = calloc(ctx, sizeof *h->w.first);
    h->w.massive = calloc(ctx, sizeof *h->w.massive);
    h->w.rms = calloc(lines * ctx, sizeof *h->w.rms);
    if (!h->dim || !h->token || !h->token_line || !h->batch || !h->some || !h->w.place || !h->w.first ||
        !h->w.massive || !h->w.rms)
        return weir_cli_error(h->cli, "out of memory");
    return WEIR_EXIT_OK;
}

static void give_back(weir_health *h)
{
    for (int i = 0; i < h->n_lines; i++)
        weir_bins_free(&h->line[i].bins);
    void *const own[] = {h->line, h->dim,     h->token,   h->token_line, h->batch,
                         h->some, h->w.place, h->w.first, h->w.massive,  h->w.rms};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    weir_selector_free(h->sel);
}

/* The reader comes last, so that it sees what interventions leave. */
static int open_run(weir_health *h)
{
    weir_err err = {0};
    int code = weir_session_run(&h->s);
    if (code == WEIR_EXIT_OK && weir_run_hook_object(h->s.run, &weir_health_reader, h, &err) != WEIR_OK)
        code = weir_cli_fail(h->cli, &err);
    return code == WEIR_EXIT_OK ? weir_session_prepare(&h->s, 0) : code;
}

/* --- running */

static weir_status run_batches(weir_health *h, weir_err *err)
{
    weir_progress progress;
    const weir_batch *b;
    weir_status st;
    int64_t rows = 0;
    weir_progress_start(&progress, h->cli);
    while (!weir_signals_seen() && (st = weir_feed_next(h->s.feed, &b, err)) == WEIR_OK && b) {
        if (b->restart)
            weir_run_slot_reset(h->s.run, 0);
        if (b->n_seq)
            st = weir_run_forward(h->s.run, b->seq, b->n_seq, 0, err);
        if (st != WEIR_OK)
            break;
        weir_health_take(h, b);
        weir_progress_update(&progress, weir_feed_progress(h->s.feed), rows += b->rows);
    }
    weir_progress_stop(&progress, h->cli);
    return weir_signals_seen() ? weir_fail(err, WEIR_E_IO, "stopped by signal %d", weir_signals_seen()) : st;
}

static void say(const weir_health *h)
{
    const weir_report r = {.model = h->s.model,
                           .run = h->s.run,
                           .docs = h->s.in.docs,
                           .counts = weir_feed_counts_of(h->s.feed),
                           .rows = h->rows,
                           .rows_run = h->rows,
                           .seconds = weir_now() - h->start,
                           .attach = &h->s.attach};
    weir_report_say(&r, h->cli);
}

static int read_text(weir_health *h)
{
    weir_err err = {0};
    if (run_batches(h, &err) != WEIR_OK)
        return weir_cli_fail(h->cli, &err);
    weir_health_end(h);
    if (h->rows == 0)
        return weir_cli_error(h->cli, weir_feed_counts_of(h->s.feed).docs ? "--positions leaves no row"
                                                                          : "the input holds no document");
    if (weir_run_finish(h->s.run, h->a->session.out.json ? NULL : h->out, &err) != WEIR_OK)
        return weir_cli_fail(h->cli, &err);
    return WEIR_EXIT_OK;
}

static int measure(void *ctx, FILE *out)
{
    weir_health *h = ctx;
    h->out = out;
    const int code = h->dump ? weir_health_read_dump(h) : read_text(h);
    if (code != WEIR_EXIT_OK)
        return code;
    if (!weir_health_put(h))
        return weir_cli_error(h->cli, "out of memory");
    if (!h->dump)
        say(h);
    return WEIR_EXIT_OK;
}

/* Says of each layer what is not finite in it. */
static int check_finite(const weir_health *h)
{
    int code = WEIR_EXIT_OK;
    for (int i = 0; i < h->n_lines; i++) {
        const weir_health_line *l = &h->line[i];
        if (l->nan + l->inf == 0)
            continue;
        weir_cli_error(h->cli,
                       "%s (%s): %lld NaN and %lld infinite elements; the first at document %lld, position %lld, "
                       "dimension %lld",
                       l->name, l->point->name, (long long)l->nan, (long long)l->inf, (long long)l->first.doc,
                       (long long)l->first.pos, (long long)l->first_dim);
        code = WEIR_EXIT_FALSE;
    }
    return code;
}

/* --- the tool */

/* Which file may be replaced: one of the same lines. */
static weir_output_file file_of(const weir_health_args *a)
{
    static const weir_output_mark forms[][4] = {
        [WEIR_HEALTH_TEXT] = {{"", ": RMS of the residual stream, "},
                              {"document    pos      id massive ", NULL},
                              {"massive dimensions: ", NULL},
                              {"massive positions: ", NULL}},
        [WEIR_HEALTH_TSV] = {{"layer\thook\trows\tmean", NULL},
                             {"doc\tpos\tid\tmassive", NULL},
                             {"layer\tdim\trows", NULL},
                             {"id\tfirst\trows\tmassive", NULL}},
        [WEIR_HEALTH_NDJSON] = {{"{\"layer\":", "\"massive_dims\":"},
                                {"{\"doc\":", "\"rms\":"},
                                {"{\"layer\":", "\"first_rows\":"},
                                {"{\"id\":", "\"ratio_layer\":"}}};
    static const weir_output_mark json = {"{\"model\":", "\"median_exact\":"};
    const weir_output_mark *m = a->session.out.json ? &json : &forms[a->format][a->per];
    return (weir_output_file){.path = a->out, .begin = m->begin, .holds = m->holds, .force = a->force};
}

/* An option about what this form of the result does not show is a mistake. */
static int check_shown(const weir_health *h)
{
    const weir_health_args *a = h->a;
    const bool text = a->format == WEIR_HEALTH_TEXT && !a->session.out.json;
    const struct {
        const char *name;
        bool shown;
    } asked[] = {{"k", text && a->per != WEIR_HEALTH_POSITION},
                 {"width", text && a->per == WEIR_HEALTH_POSITION},
                 {"dim-ratio", a->per == WEIR_HEALTH_LAYER || a->per == WEIR_HEALTH_DIM},
                 {"norm-ratio", a->per != WEIR_HEALTH_DIM}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        if (weir_cli_given(h->cli, asked[i].name) && !asked[i].shown)
            return weir_cli_usage(h->cli, "--%s changes nothing in what is asked for", asked[i].name);
    return WEIR_EXIT_OK;
}

static int open_text(weir_health *h)
{
    int code = weir_session_model(&h->s);
    if (code == WEIR_EXIT_OK)
        code = weir_health_choose_lines(h);
    return code == WEIR_EXIT_OK ? weir_session_text(&h->s) : code;
}

static int run_all(weir_health *h)
{
    const weir_output_file file = file_of(h->a);
    int code = weir_from_dump(h->cli, h->a->from, &h->dump);
    if (code == WEIR_EXIT_OK)
        code = weir_from_check(h->cli, h->dump);
    if (code == WEIR_EXIT_OK)
        code = check_shown(h);
    if (code == WEIR_EXIT_OK)
        code = weir_output_free(h->cli, &file);
    if (code == WEIR_EXIT_OK)
        code = h->dump ? weir_health_open_dump(h) : open_text(h);
    if (code == WEIR_EXIT_OK)
        code = make_room(h);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK && !h->dump)
        code = open_run(h);
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(h->cli, &file, measure, h);
    return code == WEIR_EXIT_OK ? check_finite(h) : code;
}

static int run_tool(weir_cli *cli, void *args)
{
    const weir_health_args *a = args;
    weir_health h = {.cli = cli, .a = a, .s = {.cli = cli, .a = &a->session}, .start = weir_now()};
    cli->quiet = a->session.out.quiet;
    const int code = run_all(&h);
    give_back(&h);
    weir_health_close_dump(&h);
    weir_session_close(&h.s);
    return code;
}

const weir_tool weir_tool_health = {
    .name = "health",
    .summary = "how large the residual stream is: RMS, massive dimensions and positions, NaN",
    .operands = "[TEXT... | DUMP.h5 | --file FILE... | < text]",
    .about =
        "Measures the residual stream before each layer and behind the last one (\"out\"): the root of the mean square "
        "of a row (RMS), its mean, median and maximum over the text; dimensions and positions that are many times "
        "larger than the others, which sway norms, quantisation and colour scales; and elements that are NaN or "
        "infinite: exit 3 if there are any. Rows that --positions leaves out count nowhere, nor in medians. Without a "
        "text, standard input is read; a terminal or an empty input means the 1,000 sentences that come with brook.",
    .example = "weir health\n"
               "weir trace --quiet --site resid_pre,resid_post --dump stream.h5 'Boulder is in the state of "
               "Colorado.'\n"
               "weir health stream.h5\n"
               "weir health --per position 'Boulder is in the state of Colorado.'\n"
               "weir health --dim-ratio 20 --per dim --format tsv",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_health_args),
    .run = run_tool,
    .more_help = weir_attach_help,
};
