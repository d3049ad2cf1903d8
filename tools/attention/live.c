/* Attention over text: a run that stops behind the last layer that is shown, and a hook that copies the patterns' rows.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "job.h"

typedef struct live {
    weir_attention_job *j;
    int64_t base; /* of the pass's first row among those that are gathered */
} live;

/* --- the hook */

static weir_want wants(void *self, const weir_point *p)
{
    int first;
    const live *l = self;
    return p->site == WEIR_SITE_PATTERN && weir_attention_heads_of(&l->j->about, p->layer, &first) ? WEIR_READ
                                                                                                   : WEIR_NONE;
}

static weir_status on_begin(void *self, const weir_rows *rows, weir_err *err)
{
    live *l = self;
    l->base = l->j->gather.n;
    for (int64_t i = 0; i < rows->n; i++) {
        const weir_attention_token t = {.doc = rows->tag[i],
                                        .pos = rows->doc_pos[i],
                                        .ctx_pos = rows->pos[i],
                                        .id = rows->id[i],
                                        .query = rows->keep[i] != 0};
        WEIR_TRY(weir_attention_gather_add(&l->j->gather, &t, err));
    }
    return WEIR_OK;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    const live *l = self;
    const weir_attention_gather *g = &l->j->gather;
    int first, n = weir_attention_heads_of(g->about, v->point->layer, &first);
    (void)err;
    for (int64_t i = 0; i < v->rows->n; i++) {
        int64_t at = g->at[l->base + i];
        for (int h = first; at >= 0 && h < first + n; h++)
            memcpy(g->pattern[h] + at, v->data + i * v->width + g->about->head[h].head * v->size,
                   sizeof *v->data * (size_t)(v->rows->pos[i] + 1));
    }
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    (void)self, (void)m, (void)args;
    return weir_fail(err, WEIR_E_ARG, "the rows of attention are copied by the tool alone");
}

static const weir_hook_class live_class = {.struct_size = sizeof(weir_hook_class),
                                           .abi = WEIR_HOOK_ABI,
                                           .name = "attention",
                                           .help = "the rows that the tool attention reads",
                                           .args = "",
                                           .create = create,
                                           .wants = wants,
                                           .on_begin = on_begin,
                                           .on_value = on_value};

/* --- batches */

static weir_status run_batch(weir_attention_job *j, const weir_batch *b, weir_err *err)
{
    if (!b->continues)
        WEIR_TRY(weir_attention_gather_flush(&j->gather, err));
    if (b->restart)
        weir_run_slot_reset(j->session.run, 0);
    weir_status st = b->n_seq ? weir_run_forward(j->session.run, b->seq, b->n_seq, 0, err) : WEIR_OK;
    return st != WEIR_STOP ? st
                           : weir_fail(err, WEIR_E_HOOK,
                                       "a hook stopped in the middle of a pass, whose rows are therefore not whole");
}

static weir_status run_all(weir_attention_job *j, weir_err *err)
{
    const weir_batch *b;
    int64_t rows = 0;
    weir_status st = WEIR_OK;
    while (!weir_signals_seen() && st == WEIR_OK && (st = weir_feed_next(j->session.feed, &b, err)) == WEIR_OK && b) {
        st = run_batch(j, b, err);
        rows += b->rows;
        if (j->cli->progress)
            weir_progress_update(j->cli->progress, weir_feed_progress(j->session.feed), rows);
        if (st == WEIR_OK && weir_run_enough(j->session.run)) {
            weir_cli_note(j->cli, "a hook ended the run");
            break;
        }
    }
    return st == WEIR_OK && !weir_signals_seen() ? weir_attention_gather_flush(&j->gather, err) : st;
}

static int feed(weir_attention_job *j)
{
    weir_err err = {0};
    const weir_session *s = &j->session;
    weir_status st = run_all(j, &err);
    if (weir_signals_seen())
        return weir_cli_error(j->cli, "stopped by signal %d", weir_signals_seen());
    if (st != WEIR_OK)
        return weir_cli_fail(j->cli, &err);
    const weir_docs_block *shard = weir_docs_block_of(s->in.docs);
    if ((shard ? shard->docs : weir_feed_counts_of(s->feed).docs) == 0)
        return weir_cli_error(j->cli, "the input holds no document");
    if (!shard && j->gather.maps == 0)
        return weir_cli_error(j->cli, "--positions %s: no document has such a row", s->a->rows.positions);
    if (j->gather.maps && weir_run_finish(s->run, stderr, &err) != WEIR_OK)
        return weir_cli_fail(j->cli, &err);
    weir_attach_say(&s->attach, j->cli);
    return WEIR_EXIT_OK;
}

/* --- opening */

int weir_attention_from_text(weir_attention_job *j)
{
    weir_err err = {0};
    live *l = calloc(1, sizeof *l);
    if (!l)
        return weir_cli_error(j->cli, "out of memory");
    l->j = j;
    j->from = l;
    j->feed = feed;
    j->session.in.one_sentence = true;
    int code = weir_session_model(&j->session);
    if (code == WEIR_EXIT_OK)
        code = weir_attention_choose(j, NULL);
    if (code == WEIR_EXIT_OK)
        code = weir_session_text(&j->session);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK)
        code = weir_session_run(&j->session);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_run_hook_object(j->session.run, &live_class, l, &err) != WEIR_OK)
        return weir_cli_fail(j->cli, &err);
    code = weir_session_prepare(&j->session, 0);
    return code == WEIR_EXIT_OK ? weir_provenance_of_text(&j->about.run, &j->room, &j->session) : code;
}
