/* The command line of neuron-top: values of options, and what does not go together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/say.h"
#include "top.h"

static int read_dedup(weir_top *r)
{
    static const char *const word[] = {"none", "window", "doc", "text"};
    const char *text = r->a->dedup;
    for (int i = 0; i < 4; i++)
        if (strcmp(text, word[i]) == 0) {
            r->o.dedup = (weir_neurons_dedup)i;
            return WEIR_EXIT_OK;
        }
    if (strncmp(text, "text:", 5) == 0 && weir_parse_int(text + 5, &r->o.dedup_n) && r->o.dedup_n > 0 &&
        r->o.dedup_n <= WEIR_NEURONS_MAX_DEDUP_N) {
        r->o.dedup = WEIR_DEDUP_TEXT;
        return WEIR_EXIT_OK;
    }
    return weir_cli_usage(r->cli, "--dedup %s: none, window, doc, text, or text:N with N of 1 to %d", text,
                          WEIR_NEURONS_MAX_DEDUP_N);
}

static bool read_sides(const char *text, int64_t *before, int64_t *after)
{
    const char *comma = strchr(text, ',');
    char first[24] = "";
    if (!comma || (size_t)(comma - text) >= sizeof first)
        return false;
    memcpy(first, text, (size_t)(comma - text));
    return weir_parse_int(first, before) && weir_parse_int(comma + 1, after) && *before >= 0 && *after >= 0 &&
           *before < INT32_MAX && *after < INT32_MAX;
}

static int read_context(weir_top *r)
{
    if (strcmp(r->a->context, "full") == 0) {
        r->o.before = r->o.after = INT32_MAX;
        return WEIR_EXIT_OK;
    }
    if (!read_sides(r->a->context, &r->o.before, &r->o.after))
        return weir_cli_usage(r->cli, "--context %s: tokens before and behind a place, as 10,10, or full",
                              r->a->context);
    return WEIR_EXIT_OK;
}

static int read_thresholds(weir_top *r)
{
    for (int i = 0; i < r->a->thresholds.n; i++) {
        if (r->o.n_thresholds == WEIR_NEURONS_MAX_THRESHOLDS)
            return weir_cli_usage(r->cli, "--threshold: at most %d beside 0", WEIR_NEURONS_MAX_THRESHOLDS - 1);
        double *to = &r->o.threshold[r->o.n_thresholds++];
        if (!weir_parse_real(r->a->thresholds.v[i], to) || !isfinite((float)*to))
            return weir_cli_usage(r->cli, "--threshold %s: a number, and none that is too large for a float32",
                                  r->a->thresholds.v[i]);
    }
    return WEIR_EXIT_OK;
}

static int read_lists(weir_top *r)
{
    const weir_top_args *a = r->a;
    weir_err err = {0};
    if (!weir_opt_list_join(&r->layers, &a->layers) || !weir_opt_list_join(&r->sites, &a->sites))
        return weir_cli_error(r->cli, "out of memory");
    if (weir_asks_parse(&r->asks, &a->neurons, &err) != WEIR_OK)
        return weir_cli_bad_argument(r->cli, "--neurons", &err);
    if (weir_masks_parse(&r->masks, a->mask, &err) != WEIR_OK)
        return weir_cli_bad_argument(r->cli, "--mask", &err);
    return WEIR_EXIT_OK;
}

static int check_densities(const weir_top *r)
{
    const weir_top_args *a = r->a;
    if (a->min_density > 1 || a->max_density > 1)
        return weir_cli_usage(r->cli, "--%s-density %g: a share of tokens, 0 to 1", a->min_density > 1 ? "min" : "max",
                              a->min_density > 1 ? a->min_density : a->max_density);
    if (a->min_density > a->max_density)
        return weir_cli_usage(r->cli, "--min-density %g is above --max-density %g: that is no neuron", a->min_density,
                              a->max_density);
    return WEIR_EXIT_OK;
}

static int read_values(weir_top *r)
{
    static const unsigned lists[] = {3, 1, 2, 4}; /* in the order of the words of --sign */
    const weir_top_args *a = r->a;
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
    int (*const read[])(weir_top *) = {read_dedup, read_context, read_thresholds, read_lists};
    int code = WEIR_EXIT_OK;
    for (size_t i = 0; i < sizeof read / sizeof *read && code == WEIR_EXIT_OK; i++)
        code = read[i](r);
    if (code == WEIR_EXIT_OK && a->max_norm_ratio != 0 && a->max_norm_ratio < 1)
        return weir_cli_usage(r->cli, "--max-norm-ratio %g: 1 or more, or 0 for none", a->max_norm_ratio);
    return code == WEIR_EXIT_OK ? check_densities(r) : code;
}

static int read_format(weir_top *r)
{
    const weir_top_args *a = r->a;
    bool file = a->out && strcmp(a->out, "-") != 0;
    if (a->session.out.json && a->format != WEIR_FORMAT_AUTO && a->format != WEIR_FORMAT_NDJSON)
        return weir_cli_usage(r->cli, "--json is --format ndjson, but another format was given too");
    r->format = weir_format_of(a->session.out.json ? WEIR_FORMAT_NDJSON : (weir_format)a->format, a->out);
    if (r->format == WEIR_FORMAT_H5 && !file)
        return weir_cli_usage(r->cli, "--format h5: a file is needed: -o FILE.h5");
    if (a->resume && r->format != WEIR_FORMAT_H5)
        return weir_cli_usage(
            r->cli, "--resume: only a run with -o FILE.h5 can be gone on with; other forms are made of that file");
    if (a->search && (r->format == WEIR_FORMAT_H5 || r->format == WEIR_FORMAT_HTML))
        return weir_cli_usage(r->cli, "--search: its formats are text, tsv and ndjson");
    return WEIR_EXIT_OK;
}

/* A mistyped name is not a text to be searched. */
static bool looks_like_file(const char *text)
{
    size_t n = strlen(text);
    return (n > 3 && strcmp(text + n - 3, ".h5") == 0) || (n > 5 && strcmp(text + n - 5, ".part") == 0);
}

static int read_input(weir_top *r)
{
    const weir_top_args *a = r->a;
    weir_cli *cli = r->cli;
    if (a->merge) {
        if (cli->n_operands < 1)
            return weir_cli_usage(cli, "--merge: the results to join are needed");
        r->input = WEIR_TOP_RESULTS;
        r->file = cli->operand[0];
        return WEIR_EXIT_OK;
    }
    if (a->from && cli->n_operands)
        return weir_cli_usage(cli, "--from %s, but \"%s\" was given too", a->from, cli->operand[0]);
    const char *path = a->from ? a->from : cli->n_operands == 1 ? cli->operand[0] : NULL;
    if (path && !a->from && looks_like_file(path) && access(path, F_OK) != 0)
        return weir_cli_error(
            cli, "cannot open %s: no such file (a text of that name can be given with --file or on standard input)",
            path);
    bool result = path && weir_neurons_is_file(path);
    if (a->from || result || (path && weir_neurons_is_dump(path))) {
        r->file = path;
        r->input = result ? WEIR_TOP_RESULTS : WEIR_TOP_DUMP;
    }
    for (int i = 1; i < cli->n_operands && !r->file; i++)
        if (weir_neurons_is_file(cli->operand[i]) && weir_neurons_is_file(cli->operand[0]))
            return weir_cli_usage(cli, "%s and %s are results: --merge joins the shards of one text", cli->operand[0],
                                  cli->operand[i]);
    return WEIR_EXIT_OK;
}

/* Options about how a text becomes rows: nothing that a file could still follow. */
static const char *const of_text[] = {"file",   "docs",       "jsonl",  "field",      "shard",       "ids",
                                      "bos",    "ctx",        "stride", "max-tokens", "positions",   "ablate",
                                      "scale",  "add",        "set",    "patch",      "project-out", "hook",
                                      "resume", "checkpoint", "batch",  "memory",     NULL};
/* Options about what a search keeps: settled where there is a result. */
static const char *const of_search[] = {"site", "rank-by", "dedup",          "threshold",  "quantiles", "random",
                                        "seed", "mask",    "max-norm-ratio", "correlated", "spool",     NULL};

/* Options about what is shown: a result that is written as a result is whole. */
static const char *const of_view[] = {"neurons", "layer", "sign",        "k",           "context",
                                      "sort",    "limit", "min-density", "max-density", NULL};

/* Options that --search leaves no room for: it keeps one place of each neuron, and shows neurons. */
static const char *const not_of_search[] = {"rank-by", "dedup",       "threshold",   "quantiles",  "random",
                                            "seed",    "context",     "weights",     "correlated", "sort",
                                            "limit",   "min-density", "max-density", NULL};

static const char *first_given(const weir_cli *cli, const char *const *names)
{
    for (; *names; names++)
        if (weir_cli_given(cli, *names))
            return *names;
    return NULL;
}

/* An option that a file cannot follow would be a wrong answer without a word. */
static int check_meaning(const weir_top *r)
{
    if (r->input == WEIR_TOP_TEXT || r->a->search)
        return WEIR_EXIT_OK;
    const char *name = first_given(r->cli, of_text);
    if (name)
        return weir_cli_usage(r->cli, "--%s is about a run over text, and %s holds what such a run gave", name,
                              r->file);
    name = r->input == WEIR_TOP_RESULTS && r->format == WEIR_FORMAT_H5 ? first_given(r->cli, of_view) : NULL;
    if (name)
        return weir_cli_usage(
            r->cli, "--%s chooses what is shown, and an HDF5 result is written whole: another --format", name);
    if (r->input == WEIR_TOP_RESULTS && r->a->weights != WEIR_TOP_YES && r->a->session.edit.dir.n)
        return weir_cli_usage(r->cli, "--edit is about the weights, which %s is shown without: --weights yes reads "
                                      "tokens from them",
                              r->file);
    name = r->input == WEIR_TOP_RESULTS ? first_given(r->cli, of_search) : NULL;
    if (name)
        return weir_cli_usage(r->cli, "--%s says how to search, and %s is the result of a search: search again with it",
                              name, r->file);
    return WEIR_EXIT_OK;
}

static int check_search(weir_top *r)
{
    if (!r->a->search)
        return WEIR_EXIT_OK;
    const char *name = first_given(r->cli, not_of_search);
    if (name)
        return weir_cli_usage(
            r->cli, "--%s says nothing to --search, which ranks neurons by their best token in TEXT (-k: how many)",
            name);
    if (r->input == WEIR_TOP_DUMP)
        return weir_cli_usage(r->cli, "--search takes a result beside its text (-o FILE.h5 writes one), and %s is none",
                              r->file);
    if (!r->file && r->cli->n_operands)
        return weir_cli_usage(r->cli, "--search \"%s\", but the text \"%s\" was given too", r->a->search,
                              r->cli->operand[0]);
    return WEIR_EXIT_OK;
}

int weir_top_options(weir_top *r)
{
    int (*const step[])(weir_top *) = {read_values, read_format, read_input, check_search};
    int code = WEIR_EXIT_OK;
    for (size_t i = 0; i < sizeof step / sizeof *step && code == WEIR_EXIT_OK; i++)
        code = step[i](r);
    return code == WEIR_EXIT_OK ? check_meaning(r) : code;
}

int weir_top_name(weir_top *r, const weir_neurons_table *table, int n_tables, int64_t ids, bool correlate)
{
    int64_t n = 0;
    for (int t = 0; r->asks.n && t < n_tables; t++)
        n += table[t].n;
    if (n == 0 || n > WEIR_NEURONS_MAX_NAMED) {
        if (r->a->correlated != WEIR_TOP_YES)
            return WEIR_EXIT_OK;
        return weir_cli_usage(r->cli, "--correlated: only for neurons that --neurons names, at most %d, and %s",
                              WEIR_NEURONS_MAX_NAMED, n ? "these are more" : "none is named");
    }
    for (int t = 0; t < n_tables; t++)
        for (int64_t i = 0; i < table[t].n; i++)
            r->named[r->o.n_named++] = (weir_neurons_named){t, i};
    r->o.token_means = ids;
    r->o.correlate = correlate;
    return WEIR_EXIT_OK;
}
