/* trace: run a model on text and record what flows at its hook points. */
#include <stdlib.h>
#include <string.h>

#include "cli/by_layer.h"
#include "cli/finished.h"
#include "cli/identity.h"
#include "cli/logprob.h"
#include "cli/points.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/signals.h"
#include "cli/spill.h"
#include "trace/gradient.h"

typedef struct trace_args {
    weir_session_args session;
    weir_opt_list layers, hooks, sites;
    const char *dump, *loss;
    int64_t compress;
    int mantissa, dtype, order;
    bool list_hooks, logprob, force, resume, hash_full;
} trace_args;

static const weir_opt what_opts[] = {
    {"layer", 'l', "layers", WEIR_OPT_LIST, "LIST", 0, 0, NULL,
     "layers from 0: 6, 0-3,7, all. Without --hooks and --site: the residual adds, what attention and MLP read, and "
     "the MLP's neurons",
     offsetof(trace_args, layers)},
    {"hooks", 'k', NULL, WEIR_OPT_LIST, "NAMES", 0, 0, NULL,
     "hook points by name, with * ? {a,b}, and units in brackets: 'blocks.*.mlp.hook_post[:, 421]'. attn_scores, "
     "pattern and result are large: * leaves them out, spell them",
     offsetof(trace_args, hooks)},
    {"site", 's', NULL, WEIR_OPT_LIST, "SITES", 0, 0, NULL,
     "hook points by short name, in the layers of --layer: resid_pre, ln1, q, k, v, pattern, z, attn_out, resid_mid, "
     "ln2, pre, up, post, mlp_out, resid_post",
     offsetof(trace_args, sites)},
    {"loss", 0, NULL, WEIR_OPT_STR, "LOSS", 0, 0, NULL,
     "go back from this scalar of each document, so that hook points with _grad at their end have values: d loss / d "
     "value, per unit of the value. nll: the mean, in nats, of -ln p(token) over the document's tokens that others "
     "precede in their window; nll-sum: their sum; logit:A-B: the logit of token A less that of B behind the "
     "document's "
     "last token; logit:A: that of A alone. Of the edited and changed model; documents and windows know nothing of "
     "each "
     "other, and a window has to fit into --batch. --positions chooses what is recorded, not the loss. Half of "
     "--memory "
     "is for the way back",
     offsetof(trace_args, loss)},
    {"list-hooks", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "print the hook points of this model with their shapes, and run nothing", offsetof(trace_args, list_hooks)},
    {"dump", 'o', "out", WEIR_OPT_STR, "FILE.h5", 0, 0, NULL,
     "record to this HDF5 file; an older dump there is replaced at the end", offsetof(trace_args, dump)},
    {"logprob", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "also record the log-probability of each token given those before it", offsetof(trace_args, logprob)},
    {"compress", 0, NULL, WEIR_OPT_INT, "LEVEL", 0, 9, "1", "deflate level; 0: none", offsetof(trace_args, compress)},
    {"mantissa", 0, NULL, WEIR_OPT_CHOICE, "all|7|10", 0, 0, "all",
     "bits of the mantissa that are kept, rounded to nearest even: 7 (bfloat16's precision) makes a dump about a third "
     "of its size, 10 (float16's) less than a half. The values stay float32",
     offsetof(trace_args, mantissa)},
    {"dtype", 0, NULL, WEIR_OPT_CHOICE, "f32|f16", 0, 0, "f32",
     "type of the recorded values; f16 rounds to nearest even, and what is beyond 65504 becomes infinite",
     offsetof(trace_args, dtype)},
    {"resume", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "go on with what an interrupted run left in FILE.h5.part; without it, begin", offsetof(trace_args, resume)},
    {"order", 0, NULL, WEIR_OPT_CHOICE, "batch|layer", 0, 0, "batch",
     "layer: all documents go through one layer before the next, so that a model larger than --memory is read once and "
     "not for every batch; the stream between layers takes twice 4 bytes a token and unit of the model's width on the "
     "dump's disk. The values are the same",
     offsetof(trace_args, order)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace what an interrupted run left in FILE.h5.part",
     offsetof(trace_args, force)},
    {"hash-full", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "fingerprint all bytes of the model, not only the ends of its tensors", offsetof(trace_args, hash_full)},
};
static const weir_opt_group what_group = {"What to record", what_opts, sizeof what_opts / sizeof *what_opts};

static const weir_opt_use options[] = {
    {&what_group, 0}, WEIR_SESSION_OPTIONS(offsetof(trace_args, session)), {NULL, 0}};

static const weir_opt_rule rules[] = {{"list-hooks", WEIR_OPT_EXCLUDES, "dump"},
                                      {"list-hooks", WEIR_OPT_EXCLUDES, "hook"},
                                      {"list-hooks", WEIR_OPT_EXCLUDES, "edit"},
                                      {"list-hooks", WEIR_OPT_EXCLUDES, "ablate"},
                                      {"list-hooks", WEIR_OPT_EXCLUDES, "scale"},
                                      {"list-hooks", WEIR_OPT_EXCLUDES, "add"},
                                      {"list-hooks", WEIR_OPT_EXCLUDES, "set"},
                                      {"list-hooks", WEIR_OPT_EXCLUDES, "patch"},
                                      {"list-hooks", WEIR_OPT_EXCLUDES, "project-out"},
                                      {"list-hooks", WEIR_OPT_EXCLUDES, "loss"},
                                      {"logprob", WEIR_OPT_NEEDS, "dump"},
                                      {"compress", WEIR_OPT_NEEDS, "dump"},
                                      {"mantissa", WEIR_OPT_NEEDS, "dump"},
                                      {"dtype", WEIR_OPT_NEEDS, "dump"},
                                      {"force", WEIR_OPT_NEEDS, "dump|edit"},
                                      {"resume", WEIR_OPT_NEEDS, "dump"},
                                      {"resume", WEIR_OPT_EXCLUDES, "force"},
                                      {"mantissa", WEIR_OPT_EXCLUDES, "dtype"},
                                      {"hash-full", WEIR_OPT_NEEDS, "dump"},
                                      {"shard", WEIR_OPT_EXCLUDES, "max-tokens"}, /* which counts over all shards */
                                      {NULL, WEIR_OPT_NEEDS, NULL}};

/* One run of the tool and all that it owns. */
typedef struct trace {
    weir_cli *cli;
    const trace_args *a;
    weir_session s;
    char *layers, *hooks, *sites; /* the lists, joined; NULL: not given */
    char *command_line, *interventions, *edits, *identity;
    weir_selector *sel;
    weir_dump *dump;
    weir_logprobs logprob;       /* --logprob */
    weir_gradient gradient;      /* --loss */
    weir_by_layer by_layer;      /* --order layer */
    bool keep;                   /* what is recorded is worth keeping, whatever went wrong */
    bool enough;                 /* a hook has seen enough */
    bool moot;                   /* a hook says that the rows are not what was asked for */
    bool finished;               /* --resume: an earlier run had come to the end */
    int64_t rows_run, rows_kept; /* of this run */
    int64_t rows_done;           /* --resume: those that were there */
    double start;
    weir_dump_summary summary;
    char *hook_text; /* --json: what the attached hooks print at the end */
    size_t hook_text_size;
} trace;

/* --- opening */

static int check_arguments(const trace *t)
{
    const trace_args *a = t->a;
    bool selects = a->layers.n || a->hooks.n || a->sites.n;
    if (a->list_hooks)
        return t->cli->n_operands ? weir_cli_usage(t->cli, "--list-hooks runs nothing, but the text \"%s\" was given",
                                                   t->cli->operand[0])
                                  : WEIR_EXIT_OK;
    for (int i = 0; a->order && i < a->session.attach.hook.n; i++)
        if (strcspn(a->session.attach.hook.v[i], ":") == 6 && strncmp(a->session.attach.hook.v[i], "record", 6) == 0)
            return weir_cli_usage(t->cli, "--hook record has to see whole passes: use --dump, or --order batch");
    if (a->order && a->loss)
        return weir_cli_usage(t->cli, "--loss goes back through whole passes, and --order layer has none");
    if (a->dump && strcmp(a->dump, "-") == 0)
        return weir_cli_usage(t->cli, "--dump -: a dump is written out of order and needs a file: name one");
    if (!a->dump && selects)
        return weir_cli_usage(t->cli, "--%s says what to record, but not where: add --dump FILE.h5",
                              a->layers.n  ? "layer"
                              : a->hooks.n ? "hooks"
                                           : "site");
    if (!a->dump && !weir_attach_count(&a->session.attach))
        return weir_cli_usage(t->cli, "nothing to do: --dump FILE.h5 records, --hook NAME attaches a hook");
    return a->loss ? weir_gradient_check(t->cli, a->loss) : WEIR_EXIT_OK;
}

/* A gradient is one of something. */
static int check_gradients(const trace *t)
{
    const weir_point *p;
    const int64_t n = weir_model_points_all(t->s.model, &p);
    for (int64_t i = 0; !t->a->loss && !t->a->list_hooks && i < n; i++)
        if (p[i].grad && weir_selector_matches(t->sel, &p[i]))
            return weir_cli_usage(
                t->cli, "%s is a gradient, and of what is not said: add --loss nll, or --loss logit:TOKEN-TOKEN",
                p[i].name);
    return WEIR_EXIT_OK;
}

static int open_selector(trace *t)
{
    weir_err err = {0};
    const trace_args *a = t->a;
    if (!weir_opt_list_join(&t->layers, &a->layers) || !weir_opt_list_join(&t->hooks, &a->hooks) ||
        !weir_opt_list_join(&t->sites, &a->sites))
        return weir_cli_error(t->cli, "out of memory");
    const char *layers = t->layers || t->hooks || t->sites ? t->layers : "all";
    /* A list shows every point of the layers, a dump takes their usual ones. */
    const char *every = t->layers ? "blocks.{*,*scores,*pattern,*result}" : "{*,*scores,*pattern,*result}";
    const char *hooks = t->hooks || t->sites || !a->list_hooks ? t->hooks : every;
    if (weir_selector_build(&t->sel, t->s.model, hooks, layers, t->sites, &err) != WEIR_OK)
        return weir_cli_bad_argument(t->cli, t->hooks ? "--hooks" : t->sites ? "--site" : "--layer", &err);
    if (weir_selector_has_positions(t->sel))
        return weir_cli_usage(t->cli, "--hooks %s: a position in brackets; rows are chosen with --positions", t->hooks);
    return check_gradients(t);
}

static int describe(trace *t)
{
    const char *pipe;
    if (t->a->resume && !weir_session_rereadable(&t->s, &pipe))
        return weir_cli_usage(t->cli, "--resume reads the text again from its beginning, which %s does not allow",
                              pipe);
    t->command_line = weir_command_line(t->cli);
    t->interventions = weir_attach_interventions(&t->s.attach);
    t->edits = weir_edits_json(&t->s.edits);
    if (!t->command_line || !t->interventions || !t->edits)
        return weir_cli_error(t->cli, "out of memory");
    t->identity = weir_session_identity(&t->s);
    return t->identity ? WEIR_EXIT_OK : WEIR_EXIT_FAILED;
}

static void dump_options(const trace *t, weir_dump_options *o)
{
    static const int mantissa[] = {0, 7, 10}; /* in the order of the option's words */
    weir_dump_options_init(o);
    o->compress = (int)t->a->compress;
    o->threads = (int)t->a->session.run.threads;
    o->mantissa = mantissa[t->a->mantissa];
    o->f16 = t->a->dtype == 1;
    o->force = t->a->force;
    o->resume = t->a->resume;
    o->logprob = t->a->logprob;
    o->logprob_late = t->a->logprob && t->s.by_layer;
    o->ctx = t->s.ctx;
    o->stride = t->s.stride;
    o->bos = t->s.bos ? "yes" : "no";
    o->command_line = t->command_line;
    o->run_options = t->identity;
    o->kernel = weir_run_kernel(t->s.run);
    o->run_threads = weir_run_threads(t->s.run);
    o->interventions = t->interventions;
    o->edits = t->edits;
    o->hash_full = t->a->hash_full;
    o->log = weir_cli_log(t->cli);
}

/* The file, and the hook that fills it: attached last, so that it sees what the others wrote. */
static int open_dump(trace *t)
{
    weir_err err = {0};
    weir_dump_options o;
    int code = describe(t);
    if (code != WEIR_EXIT_OK)
        return code;
    dump_options(t, &o);
    if (t->a->resume)
        code = weir_dump_finished(&t->finished, t->cli, t->a->dump, t->s.model, t->sel, &o,
                                  weir_docs_block_of(t->s.in.docs));
    if (code != WEIR_EXIT_OK || t->finished)
        return code;
    if (weir_dump_create(&t->dump, t->a->dump, t->s.model, t->s.tok, &o, &err) != WEIR_OK ||
        weir_dump_select(t->dump, t->sel, &err) != WEIR_OK || weir_dump_shard(t->dump, t->s.in.docs, &err) != WEIR_OK ||
        weir_run_hook_object(t->s.run, weir_hook_class_find("record"), t->dump, &err) != WEIR_OK ||
        weir_run_declare(t->s.run, t->dump, &err) != WEIR_OK ||
        (t->a->resume && weir_dump_seek(t->dump, NULL, weir_dump_rows_done(t->dump), &err) != WEIR_OK))
        return weir_cli_fail(t->cli, &err);
    if (t->s.by_layer)
        return WEIR_EXIT_OK;
    t->rows_done = weir_dump_rows_done(t->dump);
    weir_feed_skip(t->s.feed, t->rows_done);
    if (t->rows_done) {
        char n[32];
        weir_cli_note(t->cli, "%s.part has %s rows: going on behind them", t->a->dump, weir_commas(t->rows_done, n));
    }
    return WEIR_EXIT_OK;
}

/* Behind the forward pass the run goes to its end where somebody looks at what the model says. */
static int pass_flags(const trace *t)
{
    return t->a->logprob || t->a->loss ? WEIR_FINAL : 0;
}

static int prepare(trace *t)
{
    weir_err err = {0};
    const int code = t->a->loss ? weir_gradient_open(&t->gradient, &t->s) : WEIR_EXIT_OK;
    if (code != WEIR_EXIT_OK)
        return code;
    if (t->a->logprob && weir_logprobs_new(&t->logprob, t->a->session.run.batch, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    return weir_session_prepare(&t->s, pass_flags(t));
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
    if (code == WEIR_EXIT_OK && t->a->loss)
        code = weir_gradient_parse(&t->gradient, &t->s, t->a->loss);
    if (code == WEIR_EXIT_OK)
        code = weir_session_run(&t->s);
    if (code == WEIR_EXIT_OK && !t->a->dump && weir_attach_only_writes(&t->s.attach))
        weir_cli_note(
            t->cli, "values are changed, but nothing records or listens: add --dump FILE.h5, or a hook such as stats");
    weir_signals_catch();
    if (code == WEIR_EXIT_OK && t->a->dump)
        code = open_dump(t);
    return code == WEIR_EXIT_OK && !t->finished ? prepare(t) : code;
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

/* There, and with --loss back. */
static weir_status run_pass(trace *t, const weir_batch *b, weir_err *err)
{
    weir_status s = weir_run_forward(t->s.run, b->seq, b->n_seq, pass_flags(t), err);
    if (s == WEIR_OK && t->a->logprob)
        s = weir_logprobs_find(&t->logprob, t->s.run, b, err);
    if (s == WEIR_OK && t->a->loss)
        s = weir_gradient_back(&t->gradient, b, err);
    if (s != WEIR_STOP || !t->dump)
        return s;
    t->keep = true;
    return weir_fail(err, WEIR_E_HOOK,
                     "a hook stopped in the middle of a pass, whose rows are therefore not whole "
                     "(on_end may stop behind them)");
}

/* One batch through the model and into the file. */
static weir_status run_batch(trace *t, const weir_batch *b, weir_err *err)
{
    weir_status s = WEIR_OK;
    if (b->restart)
        weir_run_slot_reset(t->s.run, 0);
    if (b->n_seq && (s = run_pass(t, b, err)) != WEIR_OK)
        return s;
    if (t->dump) {
        WEIR_TRY(write_rows(t, b, err));
        WEIR_TRY(weir_dump_flush(t->dump, err));
    }
    t->rows_run += b->rows;
    t->rows_kept += b->kept.n;
    return s == WEIR_OK && weir_run_enough(t->s.run) ? WEIR_STOP : s;
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
    t->enough = s == WEIR_STOP;
    if (t->enough)
        weir_cli_note(t->cli, "a hook ended the run behind %lld rows", (long long)(t->rows_done + t->rows_kept));
    return t->enough ? WEIR_OK : s;
}

static weir_status take_batch(void *ctx, const weir_batch *b, weir_err *err)
{
    trace *t = ctx;
    t->rows_run += b->rows;
    t->rows_kept += b->kept.n;
    if (!t->dump)
        return WEIR_OK;
    WEIR_TRY(write_rows(t, b, err));
    return weir_dump_flush(t->dump, err);
}

static weir_status run_layers(trace *t, weir_err *err)
{
    weir_progress progress;
    weir_progress_start(&progress, t->cli);
    t->by_layer = (weir_by_layer){.cli = t->cli,
                                  .run = t->s.run,
                                  .feed = t->s.feed,
                                  .dump = t->dump,
                                  .dump_path = t->a->dump,
                                  .batch = t->a->session.run.batch,
                                  .resume = t->a->resume,
                                  .logprob = t->a->logprob ? &t->logprob : NULL,
                                  .progress = &progress,
                                  .fed = take_batch,
                                  .ctx = t};
    weir_status s = weir_by_layer_run(&t->by_layer, err);
    weir_progress_stop(&progress, t->cli);
    t->rows_done = t->by_layer.base;
    t->keep = s == WEIR_E_IO && t->dump;
    return s;
}

/* Recorded rows are worth keeping; but when a command fails soon, the repaired one should not find them in its way. */
static bool worth_keeping(const trace *t)
{
    enum { SOON = 1024 };
    return t->dump && !t->moot && t->rows_done + t->rows_kept >= (weir_signals_seen() || t->keep ? 1 : SOON);
}

/* One line: what went wrong, and where the rows are, unless the dump has said so itself. */
static int fail_run(const trace *t, const weir_err *err)
{
    char line[2048];
    weir_err_line(err, line, sizeof line);
    if (!worth_keeping(t) || strstr(line, ".part"))
        return weir_cli_fail(t->cli, err);
    return weir_cli_error(t->cli, "%s (the rows so far are in %s.part: --resume goes on with them)", line, t->a->dump);
}

/* Closes the dump without its final name. */
static int give_up(trace *t, int code)
{
    int stopped = weir_signals_seen();
    bool keep = worth_keeping(t);
    if (stopped)
        weir_cli_error(t->cli,
                       keep ? "stopped by signal %d; the rows so far are in %s.part: --resume goes on with them"
                            : "stopped by signal %d",
                       stopped, keep ? t->a->dump : "");
    weir_dump_abort(t->dump, keep);
    weir_by_layer_close(&t->by_layer, keep || t->a->resume);
    t->dump = NULL;
    return code == WEIR_EXIT_OK ? WEIR_EXIT_FAILED : code;
}

/* A text without rows is a mistake; a shard without them is one of the whole all the same. */
static int check_rows(const trace *t)
{
    const weir_docs_block *shard = weir_docs_block_of(t->s.in.docs);
    if ((shard ? shard->docs : weir_feed_counts_of(t->s.feed).docs) == 0)
        return weir_cli_error(t->cli, "the input holds no document");
    if (!shard && !t->enough && t->rows_done + t->rows_kept == 0)
        return weir_cli_error(t->cli, "--positions %s: no document has such a row", t->a->session.rows.positions);
    return WEIR_EXIT_OK;
}

/* That no row was met is an error, but in a shard or a resumed run: the rest may have the rows that a hook waits for.
 */
static weir_status finish_hooks(const trace *t, FILE *out, weir_err *err)
{
    weir_err inner = {0};
    weir_status s = weir_run_finish(t->s.run, out, &inner);
    bool idle = t->rows_run == 0;
    for (int i = 0; i < t->s.attach.n; i++)
        idle = idle || weir_run_hook_changed(t->s.run, i, NULL) == 0;
    bool shard = weir_docs_block_of(t->s.in.docs) != NULL;
    if (s == WEIR_E_HOOK && idle && (shard || t->rows_done)) {
        if (t->rows_run > 0)
            weir_cli_note(t->cli, "in this %s: %s", shard ? "shard" : "part of the run", inner.msg);
        return WEIR_OK;
    }
    *err = inner;
    return s;
}

static int run_all(trace *t)
{
    weir_err err = {0};
    weir_status s = t->s.by_layer ? run_layers(t, &err) : run_batches(t, &err);
    if (weir_signals_seen())
        return WEIR_EXIT_FAILED;
    if (s != WEIR_OK)
        return fail_run(t, &err);
    int code = check_rows(t);
    if (code != WEIR_EXIT_OK)
        return code;
    FILE *out = t->a->session.out.json ? open_memstream(&t->hook_text, &t->hook_text_size) : stdout;
    if (!out)
        return weir_cli_error(t->cli, "out of memory");
    s = finish_hooks(t, out, &err);
    t->moot = s != WEIR_OK;
    if (out != stdout)
        fclose(out);
    if (s == WEIR_OK && t->dump) {
        s = weir_dump_commit(t->dump, &t->summary, &err);
        t->dump = NULL;
        if (s == WEIR_OK)
            weir_spill_forget(t->a->dump);
    }
    return s == WEIR_OK ? WEIR_EXIT_OK : fail_run(t, &err);
}

/* --- the tool */

static void report(const trace *t)
{
    weir_report r = {.model = t->s.model,
                     .run = t->s.run,
                     .docs = t->s.in.docs,
                     .counts = weir_feed_counts_of(t->s.feed),
                     .rows = t->rows_done + t->rows_kept,
                     .rows_run = t->rows_run,
                     .seconds = weir_now() - t->start,
                     .dump = t->a->dump,
                     .summary = t->summary,
                     .hook_output = t->s.attach.n ? t->hook_text : NULL,
                     .attach = &t->s.attach};
    weir_report_say(&r, t->cli);
    if (t->a->session.out.json)
        weir_report_json(&r, stdout);
}

static void say_finished(const trace *t)
{
    weir_jsonw w;
    weir_cli_note(t->cli, "%s is complete: nothing is left to do", t->a->dump);
    if (!t->a->session.out.json)
        return;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "dump", t->a->dump);
    weir_jsonw_key_bool(&w, "finished_before", true);
    weir_jsonw_end(&w);
    fputc('\n', stdout);
}

static void close_all(trace *t)
{
    weir_by_layer_close(&t->by_layer, false);
    weir_selector_free(t->sel);
    weir_gradient_close(&t->gradient);
    weir_session_close(&t->s);
    weir_logprobs_free(&t->logprob);
    void *const own[] = {t->layers,        t->hooks, t->sites,    t->command_line,
                         t->interventions, t->edits, t->identity, t->hook_text};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}

static int run(weir_cli *cli, void *args)
{
    const trace_args *a = args;
    trace t = {.cli = cli,
               .a = a,
               .s = {.cli = cli, .a = &a->session, .by_layer = a->order == 1, .loss = a->loss},
               .start = weir_now()};
    cli->quiet = a->session.out.quiet;
    int code = open_all(&t);
    if (code == WEIR_EXIT_OK && a->list_hooks) {
        weir_points_print(t.s.model, t.sel, a->session.out.json, stdout);
    } else if (code == WEIR_EXIT_OK && t.finished) {
        weir_spill_forget(t.a->dump); /* of a run that was killed behind the renaming */
        say_finished(&t);
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

const weir_tool weir_tool_trace = {
    .name = "trace",
    .summary = "run a model on text and record what flows at its hook points",
    .operands = "[TEXT... | --file FILE... | < text]",
    .about = "Runs the model over documents and records hook points, row by row, to an HDF5 file that h5py and xarray "
             "read. Without a text, standard input is read; a terminal or an empty input means the 1,000 sentences "
             "that come with brook.",
    .example = "weir trace --layer 6 --dump mlp.h5\n"
               "weir trace --layer 0-3 --site resid_post --positions last --dump last.h5 'The river bends.'\n"
               "weir trace --loss nll --layer 6 --site resid_post,resid_post_grad --dump grad.h5 'The river bends.'\n"
               "weir trace --list-hooks --layer 6",
    .options = options,
    .rules = rules,
    .args_size = sizeof(trace_args),
    .run = run,
    .more_help = weir_attach_help,
};
