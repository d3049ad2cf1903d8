/* logit-lens over text: a run that stops behind the last block, and a hook that copies the rows that are kept. */
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "cli/signals.h"
#include "job.h"

/* --- the hook */

static weir_want wants(void *self, const weir_point *p)
{
    const weir_lens_job *j = self;
    for (int i = 0; i < j->stack.n_points; i++)
        if (j->stack.point[i] == p)
            return WEIR_READ;
    return WEIR_NONE;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    const weir_lens_job *j = self;
    const weir_lens_cells *c = &j->cells;
    int64_t n = 0;
    int i = 0;
    while (i < j->stack.n_points && j->stack.point[i] != v->point)
        i++;
    for (int64_t t = 0; t < v->rows->n; t++) {
        if (!v->rows->keep[t])
            continue;
        if (n == c->room)
            return weir_fail(err, WEIR_E_SHAPE, "more than %lld rows in one pass", (long long)c->room);
        memcpy(c->row[i] + n++ * v->width, v->data + t * v->width, sizeof *v->data * (size_t)v->width);
    }
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    (void)self, (void)m, (void)args;
    return weir_fail(err, WEIR_E_ARG, "the rows of logit-lens are copied by the tool alone");
}

static const weir_hook_class live_class = {.struct_size = sizeof(weir_hook_class),
                                           .abi = WEIR_HOOK_ABI,
                                           .name = "logit-lens",
                                           .help = "the rows that the tool logit-lens reads",
                                           .args = "",
                                           .create = create,
                                           .wants = wants,
                                           .on_value = on_value};

/* --- batches */

/* The rows of the batch, besides those that the hook has copied. */
static void take_columns(weir_lens_job *j, const weir_batch *b)
{
    const weir_docs_block *shard = weir_docs_block_of(j->session.in.docs);
    weir_lens_cells *c = &j->cells;
    for (int64_t i = 0; i < b->kept.n; i++) {
        c->doc[i] = b->kept.doc[i] + (shard ? shard->first : 0);
        c->pos[i] = b->kept.pos[i];
        c->id[i] = b->kept.id[i];
        c->next[i] = b->kept_next[i];
    }
    c->n = b->kept.n;
}

/* Does the batch before this one end with a document? */
static bool begins_anew(const weir_batch *b)
{
    return !b || (!b->continues && b->n_docs > 0 && b->doc[0].first == 0);
}

/* Runs one batch and fetches the next, which tells whether a document has ended. */
static weir_status run_batch(weir_lens_job *j, const weir_batch **b, weir_err *err)
{
    weir_status st = WEIR_OK;
    if ((*b)->restart)
        weir_run_slot_reset(j->session.run, 0);
    if ((*b)->n_seq)
        st = weir_run_forward(j->session.run, (*b)->seq, (*b)->n_seq, 0, err);
    if (st == WEIR_STOP)
        return weir_fail(err, WEIR_E_HOOK,
                         "a hook stopped in the middle of a pass, whose rows are therefore not whole");
    if (st != WEIR_OK)
        return st;
    take_columns(j, *b);
    bool enough = weir_run_enough(j->session.run);
    WEIR_TRY(weir_feed_next(j->session.feed, b, err));
    WEIR_TRY(weir_lens_cells_put(&j->cells, begins_anew(*b) || enough, err));
    return enough ? WEIR_STOP : WEIR_OK;
}

static weir_status run_all(weir_lens_job *j, weir_err *err)
{
    const weir_batch *b;
    int64_t rows = 0;
    weir_status st = weir_feed_next(j->session.feed, &b, err);
    while (st == WEIR_OK && b && !weir_signals_seen() && !weir_lens_cells_vain(&j->cells)) {
        rows += b->rows;
        st = run_batch(j, &b, err);
        if (j->cli->progress)
            weir_progress_update(j->cli->progress, weir_feed_progress(j->session.feed), rows);
    }
    return st;
}

static int feed(weir_lens_job *j)
{
    weir_err err = {0};
    const weir_session *s = &j->session;
    weir_status st = run_all(j, &err);
    if (weir_signals_seen())
        return weir_cli_error(j->cli, "stopped by signal %d", weir_signals_seen());
    if (st == WEIR_STOP)
        weir_cli_note(j->cli, "a hook ended the run");
    else if (st != WEIR_OK)
        return weir_cli_fail(j->cli, &err);
    const weir_docs_block *shard = weir_docs_block_of(s->in.docs);
    if ((shard ? shard->docs : weir_feed_counts_of(s->feed).docs) == 0)
        return weir_cli_error(j->cli, "the input holds no document");
    if (!shard && j->cells.cells == 0)
        return weir_cli_error(j->cli, "--positions %s: no document has such a row", s->a->rows.positions);
    if (j->cells.cells && weir_run_finish(s->run, stderr, &err) != WEIR_OK)
        return weir_cli_fail(j->cli, &err);
    if (!j->a->corpus) /* whose summary says it */
        weir_attach_say(&s->attach, j->cli);
    return WEIR_EXIT_OK;
}

/* --- opening */

/* A point behind the stream that the selector chooses; NULL: there is none. */
static const weir_point *point_behind(const weir_model *m, const weir_selector *sel)
{
    const weir_point *p;
    int64_t n = weir_model_points(m, &p);
    for (int64_t i = 0; i < n; i++)
        if (p[i].site >= WEIR_SITE_LNF_SCALE && weir_selector_matches(sel, &p[i]))
            return &p[i];
    return NULL;
}

/* What is changed behind the last block does not reach the stream: to show it unchanged would be a wrong answer. */
static int check_hook(const weir_lens_job *j, const weir_attached_hook *h)
{
    weir_err err = {0};
    weir_selector *sel = NULL;
    char *text = strndup(h->args, strcspn(h->args, "="));
    int code = text ? WEIR_EXIT_OK : weir_cli_error(j->cli, "out of memory");
    if (code == WEIR_EXIT_OK && weir_selector_build(&sel, j->session.model, text, NULL, NULL, &err) != WEIR_OK)
        code = weir_cli_fail(j->cli, &err);
    const weir_point *behind = sel ? point_behind(j->session.model, sel) : NULL;
    if (behind)
        code = weir_cli_usage(j->cli, "--%s %s: %s lies behind the stream, which is all that the lens reads", h->kind,
                              text, behind->name);
    weir_selector_free(sel);
    free(text);
    return code;
}

static int check_reach(const weir_lens_job *j)
{
    const weir_attach *a = &j->session.attach;
    int code = WEIR_EXIT_OK;
    for (int i = 0; i < a->n && code == WEIR_EXIT_OK; i++)
        if (a->hook[i].declared && a->hook[i].args)
            code = check_hook(j, &a->hook[i]);
    return code;
}

static int describe(weir_lens_job *j)
{
    const weir_session *s = &j->session;
    const weir_docs_block *shard = weir_docs_block_of(s->in.docs);
    j->shard = shard ? shard->shard : 0;
    j->shards = shard ? shard->shards : 0;
    return weir_provenance_of_text(&j->about.run, &j->room, s);
}

/* A batch has as many rows as there is room for. */
static int open_cells(weir_lens_job *j)
{
    weir_err err = {0};
    weir_session *s = &j->session;
    j->cells.room = j->a->session.run.batch;
    if (weir_lens_cells_open(&j->cells, s->model, weir_kernel_name(&s->a->run), (int)s->a->run.threads, &err) !=
            WEIR_OK ||
        weir_run_hook_object(s->run, &live_class, j, &err) != WEIR_OK)
        return weir_cli_fail(j->cli, &err);
    return weir_session_prepare(s, 0);
}

/* The model, the lines, the text, the targets, and the run, in the order in which mistakes are best told. */
int weir_lens_from_text(weir_lens_job *j)
{
    weir_session *s = &j->session;
    s->in.one_sentence = !j->a->corpus;
    int code = weir_session_model(s);
    if (code == WEIR_EXIT_OK)
        code = weir_lens_ask_lines(j, NULL, NULL);
    if (code != WEIR_EXIT_OK)
        return code;
    /* -k is bounded by the vocabulary below; what it is without the option does not matter here. */
    int64_t k = j->a->k < s->info->V ? j->a->k : s->info->V;
    int64_t room = weir_lens_cells_room(&j->stack, s->model, k, j->a->tuned != NULL);
    if (j->a->session.run.batch > room)
        j->a->session.run.batch = room;
    code = weir_session_text(s);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK)
        code = weir_lens_ask(j);
    if (code == WEIR_EXIT_OK)
        code = weir_session_run(s);
    if (code == WEIR_EXIT_OK)
        code = check_reach(j);
    if (code == WEIR_EXIT_OK)
        code = describe(j);
    j->feed = feed;
    return code == WEIR_EXIT_OK ? open_cells(j) : code;
}
