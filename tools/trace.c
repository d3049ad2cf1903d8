/* trace: run a model on text and record what flows at its hook points. */
#include <stdlib.h>
#include <string.h>

#include "cli/logprob.h"
#include "cli/points.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/signals.h"

typedef struct trace_args {
    weir_session_args session;
    weir_opt_list layers, hooks, sites, attach;
    const char *dump;
    int64_t compress;
    bool list_hooks, logprob, force, hash_full;
} trace_args;

static const weir_opt what_opts[] = {
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "layers from 0: 6, 0-3,7, all. Without --hooks and --site: the residual adds, what attention and MLP read, and "
     "the MLP's neurons",
     offsetof(trace_args, layers)},
    {"hooks", 'k', NULL, WEIR_OPT_LIST, "NAMES", 0, 0, NULL,
     "hook points by name, with * ? {a,b}, and units in brackets: 'blocks.*.mlp.hook_post[:, 421]'. attn_scores, pattern and "
     "result are large: * leaves them out, spell them",
     offsetof(trace_args, hooks)},
    {"site", 's', NULL, WEIR_OPT_LIST, "SITES", 0, 0, NULL,
     "hook points by short name, in the layers of --layer: resid_pre, ln1, q, k, v, pattern, z, attn_out, resid_mid, "
     "ln2, pre, up, post, mlp_out, resid_post",
     offsetof(trace_args, sites)},
    {"list-hooks", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "print the hook points of this model with their shapes, and run nothing", offsetof(trace_args, list_hooks)},
    {"dump", 'o', "out", WEIR_OPT_STR, "FILE.h5", 0, 0, NULL, "record to this HDF5 file", offsetof(trace_args, dump)},
    {"logprob", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "also record the log-probability of each token given those before it", offsetof(trace_args, logprob)},
    {"compress", 0, NULL, WEIR_OPT_INT, "LEVEL", 0, 9, "1", "deflate level; 0: none", offsetof(trace_args, compress)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace what an interrupted run left in FILE.h5.part",
     offsetof(trace_args, force)},
    {"hash-full", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "fingerprint all bytes of the model, not only the ends of its tensors", offsetof(trace_args, hash_full)},
    {"hook", 0, NULL, WEIR_OPT_LIST, "NAME[:ARGS]", 0, 0, NULL,
     "attach a built-in hook (below); hooks act in the order given, and the recording sees what they wrote",
     offsetof(trace_args, attach)},
};
static const weir_opt_group what_group = {"What to record", what_opts, sizeof what_opts / sizeof *what_opts};

static const weir_opt_use options[] = {
    {&what_group, 0}, WEIR_SESSION_OPTIONS(offsetof(trace_args, session)), {NULL, 0}};

static const weir_opt_rule rules[] = {{"list-hooks", WEIR_OPT_EXCLUDES, "dump"},
                                      {"list-hooks", WEIR_OPT_EXCLUDES, "hook"},
                                      {"logprob", WEIR_OPT_NEEDS, "dump"},
                                      {"compress", WEIR_OPT_NEEDS, "dump"},
                                      {"force", WEIR_OPT_NEEDS, "dump"},
                                      {"hash-full", WEIR_OPT_NEEDS, "dump"},
                                      {NULL, WEIR_OPT_NEEDS, NULL}};

/* One run of the tool and all that it owns. */
typedef struct trace {
    weir_cli *cli;
    const trace_args *a;
    weir_session s;
    char *layers, *hooks, *sites; /* the lists, joined; NULL: not given */
    char *command_line, *interventions;
    weir_selector *sel;
    weir_dump *dump;
    weir_logprobs logprob; /* --logprob */
    int64_t rows_run, rows_kept;
    double start;
    weir_dump_summary summary;
    char *hook_text; /* --json: what the attached hooks print at the end */
    size_t hook_text_size;
} trace;

/* --- opening */

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

static int check_arguments(const trace *t)
{
    const trace_args *a = t->a;
    bool selects = a->layers.n || a->hooks.n || a->sites.n;
    if (a->list_hooks)
        return t->cli->n_operands ? weir_cli_usage(t->cli, "--list-hooks runs nothing, but the text \"%s\" was given",
                                                   t->cli->operand[0])
                                  : WEIR_EXIT_OK;
    if (a->dump && strcmp(a->dump, "-") == 0)
        return weir_cli_usage(t->cli, "--dump -: a dump is written out of order and needs a file: name one");
    if (!a->dump && selects)
        return weir_cli_usage(t->cli, "--%s says what to record, but not where: add --dump FILE.h5",
                              a->layers.n  ? "layer"
                              : a->hooks.n ? "hooks"
                                           : "site");
    if (!a->dump && !a->attach.n)
        return weir_cli_usage(t->cli, "nothing to do: --dump FILE.h5 records, --hook NAME attaches a hook");
    return WEIR_EXIT_OK;
}

static int open_selector(trace *t)
{
    weir_err err = {0};
    const trace_args *a = t->a;
    if (!join(&t->layers, &a->layers) || !join(&t->hooks, &a->hooks) || !join(&t->sites, &a->sites))
        return weir_cli_error(t->cli, "out of memory");
    const char *layers = t->layers || t->hooks || t->sites ? t->layers : "all";
    /* A list shows every point of the layers, a dump takes their usual ones. */
    const char *every = t->layers ? "blocks.{*,*scores,*pattern,*result}" : "{*,*scores,*pattern,*result}";
    const char *hooks = t->hooks || t->sites || !a->list_hooks ? t->hooks : every;
    if (weir_selector_build(&t->sel, t->s.model, hooks, layers, t->sites, &err) != WEIR_OK)
        return weir_cli_bad_argument(t->cli, t->hooks ? "--hooks" : t->sites ? "--site" : "--layer", &err);
    if (weir_selector_has_positions(t->sel))
        return weir_cli_usage(t->cli, "--hooks %s: a position in brackets; rows are chosen with --positions", t->hooks);
    return WEIR_EXIT_OK;
}

/* "NAME" or "NAME:ARGS". */
static int attach(trace *t, const char *text)
{
    weir_err err = {0};
    size_t n = strcspn(text, ":");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    const weir_hook_class *c = weir_hook_class_find(name);
    if (!c) {
        const char *names[64];
        int count = weir_hook_class_count() < 64 ? weir_hook_class_count() : 64;
        for (int i = 0; i < count; i++)
            names[i] = weir_hook_class_at(i)->name;
        const char *near = weir_nearest(name, names, count);
        return weir_cli_usage(t->cli, "--hook %s: no built-in hook has this name%s%s%s", name,
                              near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    }
    if (weir_run_hook(t->s.run, c, text[n] ? text + n + 1 : NULL, &err) != WEIR_OK) {
        char option[80];
        snprintf(option, sizeof option, "--hook %s", name);
        return weir_cli_bad_argument(t->cli, option, &err);
    }
    return WEIR_EXIT_OK;
}

static int attach_all(trace *t)
{
    bool only_writes = !t->a->dump;
    for (int i = 0; i < t->a->attach.n; i++) {
        int code = attach(t, t->a->attach.v[i]);
        if (code != WEIR_EXIT_OK)
            return code;
        only_writes = only_writes && weir_run_hook_writes(t->s.run, i);
    }
    if (only_writes)
        weir_cli_note(t->cli, "values are changed, but nothing records or listens: add --dump FILE.h5, or a hook such as stats");
    return WEIR_EXIT_OK;
}

/* The --hook options whose hooks may change values, as a JSON array; NULL when out of memory. */
static char *list_interventions(const trace *t)
{
    char *text = NULL;
    size_t size;
    weir_jsonw w;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    weir_jsonw_init(&w, f);
    weir_jsonw_array(&w);
    for (int i = 0; i < t->a->attach.n; i++)
        if (weir_run_hook_writes(t->s.run, i))
            weir_jsonw_cstr(&w, t->a->attach.v[i]);
    weir_jsonw_end(&w);
    return fclose(f) == 0 ? text : (free(text), NULL);
}

/* The file, and the hook that fills it: attached last, so that it sees what the others wrote. */
static int open_dump(trace *t)
{
    weir_err err = {0};
    weir_dump_options o;
    t->command_line = weir_command_line(t->cli);
    t->interventions = list_interventions(t);
    if (!t->command_line || !t->interventions)
        return weir_cli_error(t->cli, "out of memory");
    weir_dump_options_init(&o);
    o.compress = (int)t->a->compress;
    o.threads = (int)t->a->session.run.threads;
    o.force = t->a->force;
    o.logprob = t->a->logprob;
    o.ctx = t->s.ctx;
    o.stride = t->s.stride;
    o.bos = t->s.bos ? "yes" : "no";
    o.command_line = t->command_line;
    o.kernel = weir_run_kernel(t->s.run);
    o.run_threads = weir_run_threads(t->s.run);
    o.interventions = t->interventions;
    o.hash_full = t->a->hash_full;
    if (weir_dump_create(&t->dump, t->a->dump, t->s.model, t->s.tok, &o, &err) != WEIR_OK ||
        weir_dump_select(t->dump, t->sel, &err) != WEIR_OK ||
        weir_run_hook_object(t->s.run, weir_hook_class_find("record"), t->dump, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    return WEIR_EXIT_OK;
}

static int prepare(trace *t)
{
    weir_err err = {0};
    if (t->a->logprob && weir_logprobs_new(&t->logprob, t->a->session.run.batch, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    return weir_session_prepare(&t->s, t->a->logprob ? WEIR_FINAL : 0);
}

static int open_all(trace *t)
{
    int code = check_arguments(t);
    if (code == WEIR_EXIT_OK)
        code = weir_session_model(&t->s);
    if (code == WEIR_EXIT_OK && (t->a->dump || t->a->list_hooks))
        code = open_selector(t);
    if (t->a->list_hooks || code != WEIR_EXIT_OK)
        return code;
    code = weir_session_text(&t->s);
    if (code == WEIR_EXIT_OK)
        code = weir_session_run(&t->s);
    if (code == WEIR_EXIT_OK)
        code = attach_all(t);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK && t->a->dump)
        code = open_dump(t);
    return code == WEIR_EXIT_OK ? prepare(t) : code;
}

/* --- running */

/* Columns of rows [from, to). */
static weir_status write_tokens(trace *t, const weir_batch *b, int64_t from, int64_t to, weir_err *err)
{
    const weir_token_rows *k = &b->kept;
    weir_token_rows part = {.n = to - from,
                            .id = k->id + from,
                            .doc = k->doc + from,
                            .pos = k->pos + from,
                            .ctx_pos = k->ctx_pos + from,
                            .byte_off = k->byte_off + from,
                            .byte_len = k->byte_len + from,
                            .flags = k->flags + from,
                            .logprob = t->logprob.kept ? t->logprob.kept + from : NULL};
    return part.n ? weir_dump_tokens(t->dump, &part, err) : WEIR_OK;
}

static weir_status write_rows(trace *t, const weir_batch *b, weir_err *err)
{
    int64_t row = 0;
    for (int64_t i = 0; i < b->n_docs; i++) {
        WEIR_TRY(write_tokens(t, b, row, b->doc[i].first, err));
        WEIR_TRY(weir_dump_doc(t->dump, &b->doc[i].doc, b->doc[i].source, err));
        row = b->doc[i].first;
    }
    return write_tokens(t, b, row, b->kept.n, err);
}

/* One batch through the model and into the file. */
static weir_status run_batch(trace *t, const weir_batch *b, weir_err *err)
{
    weir_status s = WEIR_OK;
    if (b->restart)
        weir_run_slot_reset(t->s.run, 0);
    if (b->n_seq) {
        s = weir_run_forward(t->s.run, b->seq, b->n_seq, t->a->logprob ? WEIR_FINAL : 0, err);
        if (s == WEIR_STOP && t->dump)
            return weir_fail(err, WEIR_E_HOOK, "a hook stopped the run, so the last rows were not recorded whole: leave it out, "
                                               "or --dump");
        if (s != WEIR_OK)
            return s;
        if (t->a->logprob)
            WEIR_TRY(weir_logprobs_find(&t->logprob, t->s.run, b, err));
    }
    if (t->dump)
        WEIR_TRY(write_rows(t, b, err));
    t->rows_run += b->rows;
    t->rows_kept += b->kept.n;
    return s;
}

static weir_status run_batches(trace *t, weir_err *err)
{
    weir_progress progress;
    const weir_batch *b;
    weir_status s = WEIR_OK;
    weir_progress_start(&progress, t->cli);
    while (!weir_signals_seen() && s == WEIR_OK && (s = weir_feed_next(t->s.feed, &b, err)) == WEIR_OK && b) {
        s = run_batch(t, b, err);
        weir_progress_update(&progress, weir_feed_progress(t->s.feed), t->rows_run);
    }
    weir_progress_stop(&progress, t->cli);
    return s == WEIR_STOP ? WEIR_OK : s; /* a hook has seen enough */
}

/* Closes the dump without its final name. Recorded rows are worth keeping after a signal; after an error a run of the
 * repaired command should not find them in its way. */
static int give_up(trace *t, int code)
{
    int stopped = weir_signals_seen();
    bool keep = stopped && t->dump && t->rows_kept > 0;
    if (stopped)
        weir_cli_error(t->cli, keep ? "stopped by signal %d; the rows so far are in %s.part" : "stopped by signal %d",
                       stopped, keep ? t->a->dump : "");
    weir_dump_abort(t->dump, keep);
    t->dump = NULL;
    return code == WEIR_EXIT_OK ? WEIR_EXIT_FAILED : code;
}

static int run_all(trace *t)
{
    weir_err err = {0};
    weir_status s = run_batches(t, &err);
    if (weir_signals_seen())
        return WEIR_EXIT_FAILED;
    if (s != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    if (weir_feed_counts_of(t->s.feed).docs == 0)
        return weir_cli_error(t->cli, "the input holds no document");
    if (t->rows_kept == 0)
        return weir_cli_error(t->cli, "--positions %s: no document has such a row", t->a->session.rows.positions);
    FILE *out = t->a->session.out.json ? open_memstream(&t->hook_text, &t->hook_text_size) : stdout;
    if (!out)
        return weir_cli_error(t->cli, "out of memory");
    s = weir_run_finish(t->s.run, out, &err);
    if (out != stdout)
        fclose(out);
    if (s == WEIR_OK && t->dump) {
        s = weir_dump_commit(t->dump, &t->summary, &err);
        t->dump = NULL;
    }
    return s == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(t->cli, &err);
}

/* --- the tool */

static void report(const trace *t)
{
    weir_report r = {.model = t->s.model,
                     .run = t->s.run,
                     .docs = t->s.in.docs,
                     .counts = weir_feed_counts_of(t->s.feed),
                     .rows = t->rows_kept,
                     .rows_run = t->rows_run,
                     .seconds = weir_now() - t->start,
                     .dump = t->a->dump,
                     .summary = t->summary,
                     .hook_output = t->a->attach.n ? t->hook_text : NULL};
    weir_report_say(&r, t->cli);
    if (t->a->session.out.json)
        weir_report_json(&r, stdout);
}

static void close_all(trace *t)
{
    weir_selector_free(t->sel);
    weir_session_close(&t->s);
    weir_logprobs_free(&t->logprob);
    void *const own[] = {t->layers, t->hooks, t->sites, t->command_line, t->interventions, t->hook_text};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

static int run(weir_cli *cli, void *args)
{
    const trace_args *a = args;
    trace t = {.cli = cli, .a = a, .s = {.cli = cli, .a = &a->session}, .start = weir_now()};
    cli->quiet = a->session.out.quiet;
    int code = open_all(&t);
    if (code == WEIR_EXIT_OK && a->list_hooks) {
        weir_points_print(t.s.model, t.sel, a->session.out.json, stdout);
    } else if (code == WEIR_EXIT_OK) {
        code = run_all(&t);
        if (code == WEIR_EXIT_OK)
            report(&t);
    }
    if (t.dump || (weir_signals_seen() && code != WEIR_EXIT_OK))
        code = give_up(&t, code);
    close_all(&t);
    return code;
}

static void more_help(FILE *out)
{
    fprintf(out, "\nBuilt-in hooks\n");
    for (int i = 0; i < weir_hook_class_count(); i++) {
        const weir_hook_class *c = weir_hook_class_at(i);
        int n = fprintf(out, "  %s%s%s", c->name, c->args && *c->args ? ":" : "", c->args ? c->args : "");
        weir_print_wrapped(out, 26, n < 25 ? n : (fputc('\n', out), 0), c->help);
    }
}

const weir_tool weir_tool_trace = {
    .name = "trace",
    .summary = "run a model on text and record what flows at its hook points",
    .operands = "[TEXT... | --file FILE... | < text]",
    .about = "Runs the model over documents and records hook points, row by row, to an HDF5 file that h5py and xarray "
             "read. Without a text, standard input is read; a terminal or an empty input means the 1,000 sentences "
             "that come with brook.",
    .example = "weir trace --layer 6 --dump mlp.h5\n"
               "weir trace --layer 0-3 --site resid_post --positions last --dump last.h5 'The river bends.'\n"
               "weir trace --list-hooks --layer 6",
    .options = options,
    .rules = rules,
    .args_size = sizeof(trace_args),
    .run = run,
    .more_help = more_help,
};
