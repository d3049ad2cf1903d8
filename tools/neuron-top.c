/* neuron-top: the tokens that fire a neuron: straight from a run over text, from a dump, or from results of its own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/identity.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "neurons/choose.h"
#include "neurons/kept.h"
#include "neurons/live.h"
#include "neurons/output.h"

typedef struct neuron_args {
    weir_session_args session;
    weir_opt_list neurons, layers, sites, thresholds;
    int64_t k, quantiles, random, seed, checkpoint, width, limit;
    int sign, rank, weights, correlated, format, sort, color;
    const char *dedup, *context, *mask, *search, *from, *spool, *out;
    double max_norm_ratio, min_density, max_density;
    bool merge, resume, force;
} neuron_args;

#define AT(field) offsetof(neuron_args, field)
static const weir_opt what_opts[] = {
    {"neurons", 'n', NULL, WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "421, 0:8 (half open), L3N9, lists of these with commas, @FILE, or all (as without it). Up to 64 that are named also get "
     "their values around each place, the mean by token and correlated neurons",
     AT(neurons)},
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL, "layers from 0: 6, 0-3,7, all (as without it)", AT(layers)},
    {"site", 's', NULL, WEIR_OPT_LIST, "SITES", 0, 0, NULL,
     "what a neuron is: post (as without it: the MLP's hidden unit), pre, gate, gate-act (the activation of the gate), up, mlp_out, "
     "resid_pre, resid_mid, resid_post, z, or any hook point by name, with * ? {a,b}",
     AT(sites)},
    {"k", 'k', NULL, WEIR_OPT_INT, "N", 1, WEIR_NEURONS_MAX_K, "20", "places of a list", AT(k)},
    {"sign", 0, NULL, WEIR_OPT_CHOICE, "both|+|-|abs", 0, 0, "both", "the highest values, the lowest, both, or the largest magnitudes",
     AT(sign)},
    {"rank-by", 0, NULL, WEIR_OPT_CHOICE, "max|mean", 0, 0, "max",
     "max: each token by its activation; mean: each document by the mean over its tokens", AT(rank)},
    {"dedup", 0, NULL, WEIR_OPT_STR, "none|window|doc|text[:N]", 0, 0, "text:8",
     "what is listed once, with a count: the best token of a window of the model's context, of a document, or of all places whose "
     "last N tokens are the same",
     AT(dedup)},
    {"threshold", 0, NULL, WEIR_OPT_LIST, "X", 0, 0, NULL, "also count values above X (those above 0 are always counted); repeatable",
     AT(thresholds)},
    {"quantiles", 0, NULL, WEIR_OPT_INT, "N", 0, 100, "0", "draw N places from each band of the ranks: up to .5, .9, .99, .999, 1",
     AT(quantiles)},
    {"random", 0, NULL, WEIR_OPT_INT, "N", 0, 1000, "0", "draw N places from the whole text, the same for every neuron", AT(random)},
    {"seed", 0, NULL, WEIR_OPT_INT, "N", 0, 0, "0", "of both", AT(seed)},
    {"mask", 0, NULL, WEIR_OPT_STR, "LIST", 0, 0, "bos,special",
     "tokens that are left out of everything wherever they stand: bos, special, token ids, or none; their number is printed", AT(mask)},
    {"max-norm-ratio", 0, NULL, WEIR_OPT_REAL, "R", 0, 0, "0",
     "leave out tokens at which the stream that enters the layer has a norm above R times the median of their window (sinks); "
     "0: none. Raises --batch to the context",
     AT(max_norm_ratio)},
    {"search", 0, NULL, WEIR_OPT_STR, "TEXT", 0, 0, NULL,
     "the other way round: which neurons fire most on TEXT; with a result file as operand, how unusual that is there", AT(search)},
};
static const weir_opt_group what_group = {"What to look for", what_opts, sizeof what_opts / sizeof *what_opts};

static const weir_opt show_opts[] = {
    {"context", 0, NULL, WEIR_OPT_STR, "BEFORE,AFTER|full", 0, 0, "10,10", "tokens around a place, or the whole document", AT(context)},
    {"weights", 0, NULL, WEIR_OPT_CHOICE, "auto|yes|no", 0, 0, "auto",
     "tokens read from the weights: which ones a neuron's key looks for and which its value promotes. auto: where that is quick",
     AT(weights)},
    {"correlated", 0, NULL, WEIR_OPT_CHOICE, "auto|yes|no", 0, 0, "auto",
     "for named neurons: which units of the layer go with them. auto: not from a dump, all of whose tiles would have to be read",
     AT(correlated)},
    {"sort", 0, NULL, WEIR_OPT_CHOICE, WEIR_SORT_WORDS, 0, 0, "order", "order of the neurons; clusters: how many things they stand for",
     AT(sort)},
    {"limit", 0, NULL, WEIR_OPT_INT, "N", 0, 0, "0", "neurons that are shown; 0: all", AT(limit)},
    {"min-density", 0, NULL, WEIR_OPT_REAL, "SHARE", 0, 0, "0", "show only neurons that are above 0 at this share of tokens or more",
     AT(min_density)},
    {"max-density", 0, NULL, WEIR_OPT_REAL, "SHARE", 0, 0, "1", "... or less", AT(max_density)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, WEIR_FORMAT_WORDS, 0, 0, "auto",
     "auto: by the end of the file's name, else text. h5 holds everything and can be shown again, merged, and gone on with", AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(out)},
    {"color", 0, "colour", WEIR_OPT_CHOICE, WEIR_COLOUR_WORDS, 0, 0, "auto", "auto: what the terminal can; NO_COLOR is respected",
     AT(color)},
    {"width", 0, NULL, WEIR_OPT_INT, "N", 20, 10000, NULL, "columns of a line of text (the terminal's, else 120)", AT(width)},
};
static const weir_opt_group show_group = {"What to show", show_opts, sizeof show_opts / sizeof *show_opts};

static const weir_opt file_opts[] = {
    {"from", 0, NULL, WEIR_OPT_STR, "FILE.h5", 0, 0, NULL, "a dump or a result, as the operand", AT(from)},
    {"merge", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "the operands are the results of all shards of a text (--shard): join them",
     AT(merge)},
    {"resume", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "go on with what an interrupted run left in FILE.h5.part", AT(resume)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, and what an interrupted run left in FILE.h5.part", AT(force)},
    {"checkpoint", 0, NULL, WEIR_OPT_INT, "SECONDS", 1, 0, "60", "with -o FILE.h5: how often FILE.h5.part is written", AT(checkpoint)},
    {"spool", 0, NULL, WEIR_OPT_STR, "DIR", 0, 0, NULL,
     "where a temporary file of 12 bytes a token goes (and as much for each named neuron); $TMPDIR, else /tmp", AT(spool)},
};
static const weir_opt_group file_group = {"Files", file_opts, sizeof file_opts / sizeof *file_opts};

static const weir_opt_use options[] = {{&what_group, 0}, {&show_group, 0}, {&file_group, 0}, WEIR_SESSION_OPTIONS(AT(session)), {NULL, 0}};

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
                                      {NULL, WEIR_OPT_NEEDS, NULL}};

/* One run of the tool and all that it owns. */
typedef struct run {
    weir_cli *cli;
    neuron_args *a;
    char *layers, *sites; /* the lists, joined; NULL: not given */
    weir_asks asks;
    weir_masks masks;
    weir_format format;
    const char *file; /* dump or result */
    weir_session session;
    bool session_open;
    weir_live live;
    weir_neurons_dump *dump;
    weir_neurons *s;
    weir_neurons_options o;
    weir_neurons_named named[WEIR_NEURONS_MAX_NAMED];
    weir_neurons_about about;
    weir_kept kept;
    char fingerprint[65], *source, *interventions;
    double start;
} run;

/* --- the command line */

/* "a,b,c" of a list; *out stays NULL for an empty one. */
static bool join(char **out, const weir_opt_list *list)
{
    size_t n = 1;
    for (int i = 0; i < list->n; i++)
        n += strlen(list->v[i]) + 1;
    if (list->n == 0)
        return true;
    *out = calloc(n, 1);
    for (int i = 0; *out && i < list->n; i++) {
        strcat(*out, i ? "," : "");
        strcat(*out, list->v[i]);
    }
    return *out != NULL;
}

static int read_dedup(run *r)
{
    static const char *const word[] = {"none", "window", "doc", "text"};
    const char *text = r->a->dedup;
    for (int i = 0; i < 4; i++)
        if (strcmp(text, word[i]) == 0) {
            r->o.dedup = (weir_neurons_dedup)i;
            return WEIR_EXIT_OK;
        }
    if (strncmp(text, "text:", 5) == 0 && weir_parse_int(text + 5, &r->o.dedup_n) && r->o.dedup_n > 0) {
        r->o.dedup = WEIR_DEDUP_TEXT;
        return WEIR_EXIT_OK;
    }
    return weir_cli_usage(r->cli, "--dedup %s: none, window, doc, text, or text:N with N of 1 or more", text);
}

static int read_context(run *r)
{
    const char *text = r->a->context, *comma = strchr(text, ',');
    if (strcmp(text, "full") == 0) {
        r->o.before = r->o.after = INT32_MAX;
        return WEIR_EXIT_OK;
    }
    char first[24] = "";
    if (comma && (size_t)(comma - text) < sizeof first)
        memcpy(first, text, (size_t)(comma - text));
    if (comma && weir_parse_int(first, &r->o.before) && weir_parse_int(comma + 1, &r->o.after) && r->o.before >= 0 && r->o.after >= 0 &&
        r->o.before <= INT32_MAX && r->o.after <= INT32_MAX)
        return WEIR_EXIT_OK;
    return weir_cli_usage(r->cli, "--context %s: tokens before and behind a place, as 10,10, or full", text);
}

static int read_thresholds(run *r)
{
    for (int i = 0; i < r->a->thresholds.n; i++) {
        if (r->o.n_thresholds == WEIR_NEURONS_MAX_THRESHOLDS)
            return weir_cli_usage(r->cli, "--threshold: at most %d, 0 counted", WEIR_NEURONS_MAX_THRESHOLDS);
        if (!weir_parse_real(r->a->thresholds.v[i], &r->o.threshold[r->o.n_thresholds++]))
            return weir_cli_usage(r->cli, "--threshold %s: a number", r->a->thresholds.v[i]);
    }
    return WEIR_EXIT_OK;
}

static int read_options(run *r)
{
    static const unsigned lists[] = {3, 1, 2, 4}; /* in the order of the words of --sign */
    const neuron_args *a = r->a;
    weir_err err = {0};
    weir_neurons_options_init(&r->o);
    r->o.k = a->k;
    r->o.lists = lists[a->sign];
    r->o.rank = (weir_neurons_rank)a->rank;
    r->o.per_band = a->quantiles;
    r->o.random = a->random;
    r->o.seed = (uint64_t)a->seed;
    r->o.threads = (int)a->session.run.threads;
    r->o.kernel = weir_kernel_name(&a->session.run);
    r->o.spool = a->spool;
    r->o.named = r->named;
    int code = read_dedup(r);
    if (code == WEIR_EXIT_OK)
        code = read_context(r);
    if (code == WEIR_EXIT_OK)
        code = read_thresholds(r);
    if (code != WEIR_EXIT_OK)
        return code;
    if (!join(&r->layers, &a->layers) || !join(&r->sites, &a->sites))
        return weir_cli_error(r->cli, "out of memory");
    if (weir_asks_parse(&r->asks, &a->neurons, &err) != WEIR_OK)
        return weir_cli_bad_argument(r->cli, "--neurons", &err);
    if (weir_masks_parse(&r->masks, a->mask, &err) != WEIR_OK)
        return weir_cli_bad_argument(r->cli, "--mask", &err);
    if (isnan(a->max_norm_ratio) || (a->max_norm_ratio != 0 && a->max_norm_ratio < 1))
        return weir_cli_usage(r->cli, "--max-norm-ratio %g: 1 or more, or 0 for none", a->max_norm_ratio);
    return WEIR_EXIT_OK;
}

/* Which of the inputs it is: r->file is set for a dump or a result. */
static int read_input(run *r)
{
    const neuron_args *a = r->a;
    weir_cli *cli = r->cli;
    r->format = weir_format_of(a->session.out.json ? WEIR_FORMAT_NDJSON : (weir_format)a->format, a->out);
    if (r->format == WEIR_FORMAT_H5 && (!a->out || strcmp(a->out, "-") == 0))
        return weir_cli_usage(cli, "--format h5: a file is needed: -o FILE.h5");
    if (a->resume && r->format != WEIR_FORMAT_H5)
        return weir_cli_usage(cli, "--resume: only a run with -o FILE.h5 can be gone on with; other forms are made of that file");
    if (r->format == WEIR_FORMAT_H5 && a->search)
        return weir_cli_usage(cli, "--search: text, tsv or ndjson");
    if (r->format == WEIR_FORMAT_HTML && a->search)
        return weir_cli_usage(cli, "--search: text, tsv or ndjson");
    if (a->merge) {
        if (cli->n_operands < 1)
            return weir_cli_usage(cli, "--merge: the results to join are needed");
        return WEIR_EXIT_OK;
    }
    if (a->from && cli->n_operands)
        return weir_cli_usage(cli, "--from %s, but \"%s\" was given too", a->from, cli->operand[0]);
    r->file = a->from;
    if (!r->file && cli->n_operands == 1 && (weir_neurons_is_file(cli->operand[0]) || weir_neurons_is_dump(cli->operand[0])))
        r->file = cli->operand[0];
    return r->file && a->resume ? weir_cli_usage(cli, "--resume: a dump and a result are read quickly from the beginning")
                                : WEIR_EXIT_OK;
}

/* --- what a result is about */

/* The text and what was left out of it, as JSON: text_json as weir_session_identity has it. */
static int describe(run *r, const char *text_json, const char *bos, int64_t ctx, int64_t stride)
{
    size_t size;
    FILE *f = open_memstream(&r->source, &size);
    weir_jsonw w;
    if (!f)
        return weir_cli_error(r->cli, "out of memory");
    weir_jsonw_init(&w, f);
    weir_jsonw_object(&w);
    weir_jsonw_key(&w, "text");
    weir_jsonw_null(&w);
    if (text_json && *text_json) {
        fseek(f, -4, SEEK_CUR);
        fputs(text_json, f);
    }
    weir_jsonw_key_cstr(&w, "bos", bos);
    weir_jsonw_key_int(&w, "ctx", ctx);
    weir_jsonw_key_int(&w, "stride", stride);
    weir_jsonw_key_cstr(&w, "mask", r->a->mask);
    weir_jsonw_key_double(&w, "max_norm_ratio", r->a->max_norm_ratio);
    weir_jsonw_end(&w);
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad)
        return weir_cli_error(r->cli, "out of memory");
    r->about.source = r->source;
    return WEIR_EXIT_OK;
}

static int about_live(run *r)
{
    weir_err err = {0};
    const weir_session *s = &r->session;
    const weir_docs_block *shard = weir_docs_block_of(s->in.docs);
    char *identity = weir_session_identity(s);
    r->interventions = weir_attach_json(&s->attach);
    int code = identity ? WEIR_EXIT_OK : WEIR_EXIT_FAILED;
    if (code == WEIR_EXIT_OK && !r->interventions)
        code = weir_cli_error(r->cli, "out of memory");
    if (code == WEIR_EXIT_OK && weir_model_fingerprint(s->model, false, r->fingerprint, &err) != WEIR_OK)
        code = weir_cli_fail(r->cli, &err);
    if (code == WEIR_EXIT_OK)
        code = describe(r, identity, s->bos ? "yes" : "no", s->ctx, s->stride);
    free(identity);
    r->about.model = s->info->name;
    r->about.family = s->info->family;
    r->about.fingerprint = r->fingerprint;
    r->about.tokenizer = s->tok ? weir_tokenizer_fingerprint(s->tok) : "";
    r->about.interventions = r->interventions;
    r->about.shard = shard ? shard->shard : 0;
    r->about.shards = shard ? shard->shards : 0;
    return code;
}

/* --- neurons that are named get more */

static int name_neurons(run *r, const weir_neurons_table *table, int n_tables, int64_t vocabulary, bool correlate)
{
    int64_t n = 0;
    for (int t = 0; r->asks.n && t < n_tables; t++)
        n += table[t].n;
    if (n == 0 || n > WEIR_NEURONS_MAX_NAMED) {
        if (n && r->a->correlated == 1)
            return weir_cli_usage(r->cli, "--correlated: for at most %d named neurons, and these are %lld", WEIR_NEURONS_MAX_NAMED,
                                  (long long)n);
        return WEIR_EXIT_OK;
    }
    for (int t = 0; t < n_tables; t++)
        for (int64_t i = 0; i < table[t].n; i++)
            r->named[r->o.n_named++] = (weir_neurons_named){t, i};
    r->o.token_means = vocabulary;
    r->o.correlate = correlate;
    return WEIR_EXIT_OK;
}

/* --- straight from text */

static int open_model(run *r)
{
    r->session = (weir_session){.cli = r->cli, .a = &r->a->session};
    r->session_open = true;
    return weir_session_model(&r->session);
}

static int open_live(run *r)
{
    weir_err err = {0};
    r->live = (weir_live){.session = &r->session,
                          .sites = r->sites ? r->sites : "post",
                          .layers = r->layers,
                          .asks = &r->asks,
                          .masks = &r->masks,
                          .max_norm_ratio = r->a->max_norm_ratio};
    int code = open_model(r);
    if (code == WEIR_EXIT_OK)
        code = weir_live_tables(&r->live);
    r->a->session.run.batch = code == WEIR_EXIT_OK ? weir_live_batch(&r->live, r->a->session.run.batch) : 0;
    if (code == WEIR_EXIT_OK)
        code = weir_session_text(&r->session);
    if (code == WEIR_EXIT_OK)
        code = weir_session_run(&r->session);
    if (code == WEIR_EXIT_OK)
        code = name_neurons(r, r->live.table, r->live.n_tables, r->session.info->V, r->a->correlated != 2 && !r->a->search);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_neurons_new(&r->s, &r->o, r->live.table, r->live.n_tables, &err) != WEIR_OK ||
        (r->session.tok && weir_neurons_vocab(r->s, r->session.tok, &err) != WEIR_OK))
        return weir_cli_bad_argument(r->cli, NULL, &err);
    return about_live(r);
}

/* With a file to go on with, the search may be one that was read. */
static int open_kept(run *r, bool *finished)
{
    const char *pipe;
    if (r->a->resume && !weir_session_rereadable(&r->session, &pipe))
        return weir_cli_usage(r->cli, "--resume reads the text again from its beginning, which %s does not allow", pipe);
    r->kept = (weir_kept){
        .cli = r->cli, .path = r->a->out, .resume = r->a->resume, .force = r->a->force, .every = (double)r->a->checkpoint};
    int code = weir_kept_begin(&r->kept, &r->s, &r->about, finished);
    if (code == WEIR_EXIT_OK && r->kept.rows) {
        weir_feed_skip(r->session.feed, r->kept.rows);
        r->live.kept = r->kept.rows;
    }
    return code;
}

static int stopped(run *r, bool file)
{
    weir_err err = {0};
    int signal = weir_signals_seen();
    if (!file)
        return weir_cli_error(r->cli, "stopped by signal %d", signal);
    if (r->live.between && weir_kept_checkpoint(&r->kept, r->s, &r->about, r->live.kept, true, &err) != WEIR_OK)
        return weir_cli_fail(r->cli, &err);
    if (r->kept.rows == 0)
        return weir_cli_error(r->cli, "stopped by signal %d", signal);
    return weir_cli_error(r->cli, "stopped by signal %d; what %lld rows gave is in %s: --resume goes on with it", signal,
                          (long long)r->kept.rows, r->kept.part);
}

static int feed_live(run *r, bool file)
{
    weir_err err = {0};
    weir_progress bar;
    bool more = true;
    weir_status st = WEIR_OK;
    weir_progress_start(&bar, r->cli);
    while (st == WEIR_OK && more && !weir_signals_seen()) {
        st = weir_live_next(&r->live, &more, &err);
        if (st == WEIR_OK && file && more && r->live.between)
            st = weir_kept_checkpoint(&r->kept, r->s, &r->about, r->live.kept, false, &err);
        weir_progress_update(&bar, weir_feed_progress(r->session.feed), r->live.rows);
    }
    weir_progress_stop(&bar, r->cli);
    if (weir_signals_seen())
        return stopped(r, file);
    if (st == WEIR_STOP)
        weir_cli_note(r->cli, "a hook ended the run behind %lld rows", (long long)r->live.kept);
    else if (st != WEIR_OK)
        return weir_cli_fail(r->cli, &err);
    if (weir_run_finish(r->session.run, stderr, &err) != WEIR_OK && r->live.rows)
        return weir_cli_fail(r->cli, &err);
    r->about.rows_done = r->live.kept;
    r->about.complete = true;
    const weir_docs_block *shard = weir_docs_block_of(r->session.in.docs);
    if (!shard && weir_feed_counts_of(r->session.feed).docs == 0)
        return weir_cli_error(r->cli, "the input holds no document");
    return WEIR_EXIT_OK;
}

static int run_live(run *r, bool *finished)
{
    int code = open_live(r);
    bool file = r->format == WEIR_FORMAT_H5;
    weir_signals_catch();
    if (code == WEIR_EXIT_OK && file)
        code = open_kept(r, finished);
    if (code != WEIR_EXIT_OK || *finished)
        return code;
    code = weir_live_attach(&r->live, r->s);
    if (code == WEIR_EXIT_OK)
        code = weir_session_prepare(&r->session, 0);
    if (code == WEIR_EXIT_OK)
        code = feed_live(r, file);
    if (code == WEIR_EXIT_OK && !r->cli->quiet) {
        char n[32];
        double seconds = weir_now() - r->start;
        weir_cli_note(r->cli, "%s rows in %.2f s: %.0f tokens/s", weir_commas(r->live.rows, n), seconds, (double)r->live.rows / seconds);
    }
    return code;
}

/* --- from a dump */

/* The model whose weights and activation go with a file: the one that is named, or brook, if the file is of that. */
static bool model_fits(run *r, const char *fingerprint)
{
    weir_err err = {0};
    return weir_model_fingerprint(r->session.model, false, r->fingerprint, &err) == WEIR_OK && strcmp(r->fingerprint, fingerprint) == 0;
}

static bool model_named(const run *r)
{
    const char *env = getenv("WEIR_MODEL");
    return r->a->session.model.path || (env && *env);
}

/* Opens the model of a file that was made by it; leaves it closed where it is not at hand. */
static int find_model(run *r, const char *fingerprint, const char *name)
{
    weir_err err = {0};
    char buf[1100];
    if (!model_named(r) && !weir_model_path(&r->a->session.model, buf, sizeof buf, &err))
        return WEIR_EXIT_OK;
    int code = open_model(r);
    if (code != WEIR_EXIT_OK)
        return code;
    if (!model_fits(r, fingerprint)) {
        if (model_named(r) && !r->a->force)
            return weir_cli_error(r->cli, "%s was made with another model than %s: with %s (--force takes it all the same)", r->file,
                                  r->session.model_path, name);
        if (!model_named(r)) {
            weir_session_close(&r->session);
            r->session = (weir_session){0};
            r->session_open = false;
        }
    }
    return WEIR_EXIT_OK;
}

static int feed_dump(run *r)
{
    weir_err err = {0};
    weir_progress bar;
    weir_progress_start(&bar, r->cli);
    weir_status st = weir_neurons_dump_feed(r->dump, r->s, &bar, &err);
    weir_progress_stop(&bar, r->cli);
    if (st == WEIR_STOP)
        return weir_cli_error(r->cli, "stopped by signal %d", weir_signals_seen());
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(r->cli, &err);
}

static int about_dump(run *r)
{
    int64_t ctx = 0, stride = 0;
    weir_dump_reader *d;
    weir_err err = {0};
    weir_neurons_dump_about(r->dump, &r->about);
    if (weir_dump_open(&d, r->file, &err) != WEIR_OK)
        return weir_cli_fail(r->cli, &err);
    const char *bos = weir_dump_attr(d, "bos"), *c = weir_dump_attr(d, "ctx"), *s = weir_dump_attr(d, "stride");
    if (c && s && (!weir_parse_int(c, &ctx) || !weir_parse_int(s, &stride)))
        ctx = stride = 0;
    int code = describe(r, r->about.source, bos ? bos : "", ctx, stride);
    weir_dump_close(d);
    return code;
}

static int run_dump(run *r)
{
    weir_err err = {0};
    weir_dump_reader *d;
    int n = 0;
    if (weir_dump_open(&d, r->file, &err) != WEIR_OK)
        return weir_cli_fail(r->cli, &err);
    const char *fingerprint = weir_dump_attr(d, "fingerprint"), *name = weir_dump_attr(d, "model");
    int code = find_model(r, fingerprint ? fingerprint : "", name ? name : "one without a name");
    weir_dump_close(d);
    bool correlate = r->a->correlated == 1;
    weir_neurons_dump_options o = {.path = r->file,
                                   .sites = r->sites,
                                   .layers = r->layers,
                                   .ask = r->asks.ask,
                                   .n_ask = r->asks.n,
                                   .model = r->session.model,
                                   .mask_bos = r->masks.bos,
                                   .mask_special = r->masks.special,
                                   .mask_id = r->masks.id,
                                   .n_mask_ids = r->masks.n,
                                   .max_norm_ratio = r->a->max_norm_ratio,
                                   .whole = correlate,
                                   .threads = r->o.threads,
                                   .kernel = r->o.kernel};
    weir_signals_catch();
    if (code == WEIR_EXIT_OK)
        code = weir_neurons_dump_open(&r->dump, r->cli, &o);
    if (code != WEIR_EXIT_OK)
        return code;
    const weir_neurons_table *table = weir_neurons_dump_tables(r->dump, &n);
    code = name_neurons(r, table, n, INT32_MAX, correlate);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_neurons_new(&r->s, &r->o, table, n, &err) != WEIR_OK || weir_neurons_dump_vocab(r->dump, r->s, &err) != WEIR_OK)
        return weir_cli_bad_argument(r->cli, NULL, &err);
    code = about_dump(r);
    return code == WEIR_EXIT_OK ? feed_dump(r) : code;
}

/* --- from results */

static int read_results(run *r)
{
    weir_err err = {0};
    int n = r->a->merge ? r->cli->n_operands : 1;
    for (int i = 0; i < n; i++) {
        const char *path = r->a->merge ? r->cli->operand[i] : r->file;
        weir_neurons *more;
        if (weir_neurons_read(&more, path, r->o.threads, &err) != WEIR_OK)
            return weir_cli_fail(r->cli, &err);
        if (!r->s) {
            r->s = more;
            continue;
        }
        weir_status st = weir_neurons_merge(r->s, more, &err);
        weir_neurons_free(more);
        if (st != WEIR_OK) {
            weir_err_where(&err, path, NULL, -1);
            return weir_cli_fail(r->cli, &err);
        }
    }
    if (n > 1 && weir_neurons_finish(r->s, &err) != WEIR_OK)
        return weir_cli_fail(r->cli, &err);
    r->about = *weir_neurons_about_of(r->s);
    r->file = r->a->merge ? r->cli->operand[0] : r->file;
    if (r->about.shards)
        weir_cli_note(r->cli, "not all of the %lld shards are here: what is shown is of those that are", (long long)r->about.shards);
    return WEIR_EXIT_OK;
}

/* --- tokens read from the weights */

static void on_progress(void *user, double share)
{
    weir_progress_update(user, share, -1);
}

static int add_weights(run *r)
{
    enum { QUICK = 200 }; /* thousands of millions of multiply-adds: some seconds */
    weir_err err = {0};
    weir_progress bar;
    weir_neurons_weights_options o;
    int64_t n = 0;
    for (int t = 0; t < weir_neurons_n_tables(r->s); t++) /* a result may have them already */
        if (weir_neurons_table_at(r->s, t)->n && weir_neurons_weight_tokens(r->s, t, 0, WEIR_SIDE_OUT, true, &n))
            return WEIR_EXIT_OK;
    if (r->a->weights == 2)
        return WEIR_EXIT_OK;
    if (!r->session.model)
        return r->a->weights == 1 ? weir_cli_error(r->cli, "--weights: the model is needed: --model PATH") : WEIR_EXIT_OK;
    double cost = weir_neurons_weights_cost(r->s, r->session.model);
    if (r->a->weights == 0 && cost > QUICK * 1e9) {
        weir_cli_note(r->cli, "tokens read from the weights are left out: that is %.0f billion multiply-adds (--weights yes)", cost / 1e9);
        return WEIR_EXIT_OK;
    }
    weir_neurons_weights_options_init(&o);
    o.vocab = weir_neurons_vocab_size(r->s);
    o.vocab = o.vocab < r->session.info->V ? o.vocab : r->session.info->V;
    o.threads = r->o.threads;
    o.kernel = r->o.kernel;
    o.stop = weir_signals_stop;
    o.progress = on_progress;
    o.user = &bar;
    weir_progress_start(&bar, r->cli);
    weir_status st = weir_neurons_weights(r->s, r->session.model, &o, &err);
    weir_progress_stop(&bar, r->cli);
    if (st == WEIR_STOP)
        return weir_cli_error(r->cli, "stopped by signal %d", weir_signals_seen());
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(r->cli, &err);
}

/* --- output */

static int write_view(void *ctx, FILE *out)
{
    static int (*const by_format[])(const weir_view *) = {[WEIR_FORMAT_TEXT] = weir_view_text,
                                                          [WEIR_FORMAT_TSV] = weir_view_tsv,
                                                          [WEIR_FORMAT_NDJSON] = weir_view_ndjson,
                                                          [WEIR_FORMAT_HTML] = weir_view_html};
    run *r = ctx;
    weir_err err = {0};
    weir_shown *shown;
    int64_t n;
    char input[400];
    const weir_neurons_options *o = weir_neurons_options_of(r->s);
    weir_input_name(input, sizeof input, weir_neurons_about_of(r->s)->source);
    weir_choice c = {.asks = &r->asks,
                     .layers = r->layers,
                     .sort = (weir_sort)r->a->sort,
                     .limit = r->a->limit,
                     .min_density = r->a->min_density,
                     .max_density = r->a->max_density};
    if (weir_choose(r->s, &c, &shown, &n, &err) != WEIR_OK)
        return weir_cli_bad_argument(r->cli, NULL, &err);
    weir_view v = {.cli = r->cli,
                   .s = r->s,
                   .shown = shown,
                   .n = n,
                   .k = r->a->k < o->k ? r->a->k : o->k,
                   .before = r->o.before < o->before ? r->o.before : o->before,
                   .after = r->o.after < o->after ? r->o.after : o->after,
                   .whole = r->o.before == INT32_MAX && o->before == INT32_MAX,
                   .input = input,
                   .clusters = true,
                   .colour = weir_colour_of((weir_colour_asked)r->a->color, out),
                   .width = weir_width_of(r->a->width, out),
                   .out = out};
    int code = by_format[r->format](&v);
    free(shown);
    return code;
}

/* Values that are not finite are a defect of the model or the dump: said by name, behind the results. */
static int check_finite(const run *r)
{
    enum { NAMED = 4 };
    char text[256] = "";
    size_t at = 0;
    int64_t neurons = 0, values = 0;
    for (int t = 0; t < weir_neurons_n_tables(r->s); t++) {
        const weir_neurons_table *table = weir_neurons_table_at(r->s, t);
        for (int64_t i = 0; i < table->n; i++) {
            weir_neuron_stats st;
            weir_neurons_stats(r->s, t, i, &st);
            if (st.nonfinite == 0)
                continue;
            if (neurons++ < NAMED)
                at += (size_t)snprintf(text + at, sizeof text - at, "%sL%dN%lld (%lld)", neurons > 1 ? ", " : "", table->layer,
                                       (long long)(table->units ? table->units[i] : i), (long long)st.nonfinite);
            values += st.nonfinite;
        }
    }
    if (neurons == 0)
        return WEIR_EXIT_OK;
    weir_cli_error(r->cli, "%lld values of %lld neurons are not finite (NaN or infinite) and were left out: %s%s", (long long)values,
                   (long long)neurons, text, neurons > NAMED ? ", ..." : "");
    return WEIR_EXIT_FALSE;
}

static int put_results(run *r)
{
    weir_err err = {0};
    int code = WEIR_EXIT_OK;
    if (r->format == WEIR_FORMAT_H5) {
        if (!r->kept.path) { /* not from a run over text: there is nothing to go on with */
            r->kept = (weir_kept){.cli = r->cli, .path = r->a->out, .force = r->a->force};
            bool finished;
            code = weir_kept_begin(&r->kept, &r->s, &r->about, &finished);
        }
        if (code == WEIR_EXIT_OK && weir_kept_commit(&r->kept, r->s, &r->about, &err) != WEIR_OK)
            code = weir_cli_fail(r->cli, &err);
    } else {
        code = weir_output(r->cli, r->a->out, r->format, r->a->force, write_view, r);
    }
    return code == WEIR_EXIT_OK ? check_finite(r) : code;
}

/* --- --search */

typedef struct search_output {
    run *r;
    const weir_neurons *result;
} search_output;

static int write_search(void *ctx, FILE *out)
{
    search_output *o = ctx;
    run *r = o->r;
    weir_err err = {0};
    weir_search_view v = {.text = r->s,
                          .result = o->result,
                          .lists = r->o.lists,
                          .k = r->a->k,
                          .colour = weir_colour_of((weir_colour_asked)r->a->color, out),
                          .width = weir_width_of(r->a->width, out),
                          .out = out};
    int code = r->format == WEIR_FORMAT_TSV      ? weir_search_tsv(&v, &err)
               : r->format == WEIR_FORMAT_NDJSON ? weir_search_ndjson(&v, &err)
                                                 : weir_search_text(&v, &err);
    return code == WEIR_EXIT_OK ? code : weir_cli_fail(r->cli, &err);
}

static int run_search(run *r)
{
    weir_err err = {0};
    bool finished = false;
    weir_neurons *result = NULL;
    if (r->file && weir_neurons_read(&result, r->file, r->o.threads, &err) != WEIR_OK)
        return weir_cli_fail(r->cli, &err);
    if (!r->file && r->cli->n_operands)
        return weir_cli_usage(r->cli, "--search \"%s\", but the text \"%s\" was given too", r->a->search, r->cli->operand[0]);
    r->o.k = 1;
    r->o.dedup = WEIR_DEDUP_NONE;
    r->o.rank = WEIR_RANK_MAX;
    r->o.per_band = r->o.random = 0;
    r->cli->operand = &r->a->search;
    r->cli->n_operands = 1;
    int code = run_live(r, &finished);
    if (code == WEIR_EXIT_OK && weir_neurons_finish(r->s, &err) != WEIR_OK)
        code = weir_cli_fail(r->cli, &err);
    if (code == WEIR_EXIT_OK)
        code = weir_output(r->cli, r->a->out, r->format, r->a->force, write_search, &(search_output){r, result});
    weir_neurons_free(result);
    return code;
}

/* --- the tool */

static int run_all(run *r)
{
    weir_err err = {0};
    bool finished = false;
    int code = read_options(r);
    if (code == WEIR_EXIT_OK)
        code = read_input(r);
    if (code != WEIR_EXIT_OK)
        return code;
    if (r->a->search)
        return run_search(r);
    bool result = r->a->merge || (r->file && weir_neurons_is_file(r->file));
    code = result ? read_results(r) : r->file ? run_dump(r) : run_live(r, &finished);
    if (code != WEIR_EXIT_OK || finished)
        return code;
    if (!result)
        code = add_weights(r);
    if (code == WEIR_EXIT_OK && !result && weir_neurons_finish(r->s, &err) != WEIR_OK)
        code = weir_cli_fail(r->cli, &err);
    if (code == WEIR_EXIT_OK && !result && weir_neurons_set_about(r->s, &r->about, &err) != WEIR_OK)
        code = weir_cli_fail(r->cli, &err);
    return code == WEIR_EXIT_OK ? put_results(r) : code;
}

static int run_tool(weir_cli *cli, void *args)
{
    run *r = calloc(1, sizeof *r);
    neuron_args *a = args;
    cli->quiet = a->session.out.quiet;
    if (!r)
        return weir_cli_error(cli, "out of memory");
    const char **operand = cli->operand;
    int n_operands = cli->n_operands;
    *r = (run){.cli = cli, .a = a, .start = weir_now()};
    int code = run_all(r);
    cli->operand = operand; /* --search put its text there */
    cli->n_operands = n_operands;
    weir_neurons_dump_close(r->dump);
    if (r->session_open)
        weir_session_close(&r->session);
    weir_live_free(&r->live);
    weir_neurons_free(r->s);
    weir_asks_free(&r->asks);
    weir_masks_free(&r->masks);
    void *const own[] = {r->layers, r->sites, r->source, r->interventions};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    free(r);
    return code;
}

const weir_tool weir_tool_neuron_top = {
    .name = "neuron-top",
    .summary = "list the tokens that fire a neuron",
    .operands = "[TEXT... | DUMP.h5 | RESULT.h5 | --merge RESULT.h5... | --file FILE... | < text]",
    .about = "Shows for each neuron the places where it is highest and lowest, with the text around them, and what its values are like: "
             "from a run over text (all neurons of all layers in one pass, in memory that does not grow with the text), from a dump of "
             "weir trace, or from a result that was written with -o FILE.h5. Without a text, standard input is read; a terminal or an "
             "empty input means the 1,000 sentences that come with brook.",
    .example = "weir neuron-top --layer 6 --neurons 746 -k 10\n"
               "weir neuron-top --layers all -k 5 -o neurons.h5\n"
               "weir neuron-top neurons.h5 --sort kurtosis --limit 3 -k 5\n"
               "weir neuron-top neurons.h5 -k 5 -o neurons.html\n"
               "weir neuron-top --search 'The river bends.' -k 5",
    .options = options,
    .rules = rules,
    .args_size = sizeof(neuron_args),
    .run = run_tool,
    .more_help = weir_attach_help,
};
