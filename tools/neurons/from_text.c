/* neuron-top straight from text: a run that stops behind the last hook point that is searched. */
#include <stdlib.h>

#include "cli/identity.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "top.h"

int weir_top_open_model(weir_top *r)
{
    r->session = (weir_session){.cli = r->cli, .a = &r->a->session};
    r->session_open = true;
    return weir_session_model(&r->session);
}

static int describe(weir_top *r)
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
        code = weir_top_describe(r, identity, s->bos ? "yes" : "no", s->ctx, s->stride);
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

/* A search visits what it keeps of all neurons in every pass: passes larger than the usual ones cost it less. Memory
 * that is bounded is for the user to share out. */
static int64_t rows_of_a_pass(const weir_top *r)
{
    enum { SEARCHED = 1024 };
    const weir_run_args *run = &r->a->session.run;
    const bool chosen = weir_cli_given(r->cli, "batch") || run->memory;
    return chosen || run->batch > SEARCHED ? run->batch : SEARCHED;
}

/* The model, the hook points of the search, the text, and the run, in the order in which mistakes are best told. */
static int open_run(weir_top *r)
{
    r->live = (weir_live){.session = &r->session,
                          .sites = r->sites ? r->sites : "post",
                          .layers = r->layers,
                          .asks = &r->asks,
                          .masks = &r->masks,
                          .max_norm_ratio = r->a->max_norm_ratio};
    int code = weir_top_open_model(r);
    if (code == WEIR_EXIT_OK)
        code = weir_live_tables(&r->live);
    if (code == WEIR_EXIT_OK)
        r->a->session.run.batch = weir_live_batch(&r->live, rows_of_a_pass(r));
    if (code == WEIR_EXIT_OK)
        code = weir_session_text(&r->session);
    return code == WEIR_EXIT_OK ? weir_session_run(&r->session) : code;
}

static int open_search(weir_top *r)
{
    weir_err err = {0};
    bool correlate = r->a->correlated != WEIR_TOP_NO && !r->a->search;
    int code = weir_top_name(r, r->live.table, r->live.n_tables, r->session.info->V, correlate);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_neurons_new(&r->s, &r->o, r->live.table, r->live.n_tables, &err) != WEIR_OK ||
        (r->session.tok && weir_neurons_vocab(r->s, r->session.tok, &err) != WEIR_OK))
        return weir_cli_bad_argument(r->cli, NULL, &err);
    return describe(r);
}

/* With a file to go on with, the search becomes the one that was left there. */
static int open_kept(weir_top *r)
{
    const char *pipe;
    if (r->format != WEIR_FORMAT_H5)
        return WEIR_EXIT_OK;
    if (r->a->resume && !weir_session_rereadable(&r->session, &pipe))
        return weir_cli_usage(r->cli, "--resume reads the text again from its beginning, which %s does not allow",
                              pipe);
    int code = weir_kept_begin(&r->kept, &r->s, &r->about, &r->finished);
    if (code == WEIR_EXIT_OK && r->kept.rows) {
        weir_feed_skip(r->session.feed, r->kept.rows);
        r->live.kept = r->kept.rows;
    }
    return code;
}

static int stopped(weir_top *r)
{
    weir_err err = {0};
    int signal = weir_signals_seen();
    if (r->format == WEIR_FORMAT_H5 && r->live.between &&
        weir_kept_checkpoint(&r->kept, r->s, &r->about, r->live.kept, true, &err) != WEIR_OK)
        return weir_cli_fail(r->cli, &err);
    if (r->kept.rows == 0)
        return weir_cli_error(r->cli, "stopped by signal %d", signal);
    return weir_cli_error(r->cli, "stopped by signal %d; what %lld rows gave is in %s: --resume goes on with it",
                          signal, (long long)r->kept.rows, r->kept.part);
}

/* WEIR_STOP: a hook has seen enough. */
static weir_status feed(weir_top *r, weir_err *err)
{
    weir_progress bar;
    bool more = true;
    weir_status st = WEIR_OK;
    weir_progress_start(&bar, r->cli);
    while (st == WEIR_OK && more && !weir_signals_seen()) {
        st = weir_live_next(&r->live, &more, err);
        if (st == WEIR_OK && r->format == WEIR_FORMAT_H5 && more && r->live.between)
            st = weir_kept_checkpoint(&r->kept, r->s, &r->about, r->live.kept, false, err);
        weir_progress_update(&bar, weir_feed_progress(r->session.feed), r->live.rows);
    }
    weir_progress_stop(&bar, r->cli);
    return st;
}

/* A text without rows is a mistake; a shard without them is one of the whole all the same. */
static int check_rows(const weir_top *r, bool enough)
{
    const weir_docs_block *shard = weir_docs_block_of(r->session.in.docs);
    if ((shard ? shard->docs : weir_feed_counts_of(r->session.feed).docs) == 0)
        return weir_cli_error(r->cli, "the input holds no document");
    if (!shard && !enough && r->live.kept == 0)
        return weir_cli_error(r->cli, "--positions %s: no document has such a row", r->a->session.rows.positions);
    return WEIR_EXIT_OK;
}

static int run(weir_top *r)
{
    weir_err err = {0};
    weir_status st = feed(r, &err);
    if (weir_signals_seen())
        return stopped(r);
    if (st == WEIR_STOP)
        weir_cli_note(r->cli, "a hook ended the run behind %lld rows", (long long)r->live.kept);
    else if (st != WEIR_OK)
        return weir_cli_fail(r->cli, &err);
    if (weir_run_finish(r->session.run, stderr, &err) != WEIR_OK && r->live.rows)
        return weir_cli_fail(r->cli, &err);
    r->about.rows_done = r->live.kept;
    r->about.complete = true;
    return check_rows(r, st == WEIR_STOP);
}

static void say_speed(const weir_top *r)
{
    char n[32];
    double seconds = weir_now() - r->start;
    weir_cli_note(r->cli, "%s rows in %.2f s: %.0f tokens/s", weir_commas(r->live.rows, n), seconds,
                  (double)r->live.rows / seconds);
}

int weir_top_from_text(weir_top *r)
{
    int code = open_run(r);
    if (code == WEIR_EXIT_OK)
        code = open_search(r);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK)
        code = open_kept(r);
    if (code != WEIR_EXIT_OK || r->finished)
        return code;
    code = weir_live_attach(&r->live, r->s);
    if (code == WEIR_EXIT_OK)
        code = weir_session_prepare(&r->session, 0);
    if (code == WEIR_EXIT_OK)
        code = run(r);
    if (code == WEIR_EXIT_OK)
        say_speed(r);
    return code;
}
