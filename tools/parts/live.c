/* Straight from text: a run that stops behind the last layer, with a hook that keeps what is needed of the positions
 * asked for. It is attached behind those of the command line, so it hears what they wrote. */
#include <stdlib.h>
#include <string.h>

#include "cli/identity.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "decompose.h"

enum { MOST_BYTES = 256 << 20 }; /* of values of one batch, where the batch is ours to choose */

/* --- the hook */

static weir_want wants(void *self, const weir_point *p)
{
    const weir_decompose *d = self;
    return weir_sites_find(&d->values, p) < 0 ? WEIR_NONE : WEIR_READ;
}

static weir_status on_begin(void *self, const weir_rows *rows, weir_err *err)
{
    weir_sites *v = &((weir_decompose *)self)->values;
    int64_t n = 0;
    for (int64_t t = 0; t < rows->n; t++)
        n += rows->keep[t] != 0;
    WEIR_TRY(weir_sites_room(v, n, err));
    for (int64_t t = 0; t < rows->n; t++) {
        if (!rows->keep[t])
            continue;
        v->doc[v->n] = rows->tag[t];
        v->pos[v->n] = rows->doc_pos[t];
        v->id[v->n++] = rows->id[t];
    }
    return WEIR_OK;
}

static weir_status on_value(void *self, const weir_value *x, weir_err *err)
{
    const weir_decompose *d = self;
    float *to = d->values.slot[weir_sites_find(&d->values, x->point)].data;
    (void)err;
    for (int64_t t = 0; t < x->rows->n; t++) {
        if (!x->rows->keep[t])
            continue;
        memcpy(to, x->data + t * x->width, (size_t)x->width * sizeof *to);
        to += x->width;
    }
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    (void)self, (void)m, (void)args;
    return weir_fail(err, WEIR_E_ARG, "the hook of decompose is attached by the tool alone");
}

static const weir_hook_class decompose_class = {.struct_size = sizeof(weir_hook_class),
                                                .abi = WEIR_HOOK_ABI,
                                                .name = "decompose",
                                                .help = "the values of the tool decompose",
                                                .args = "",
                                                .create = create,
                                                .wants = wants,
                                                .on_begin = on_begin,
                                                .on_value = on_value};

/* --- running */

int weir_decompose_open_text(weir_decompose *d)
{
    weir_err err = {0};
    weir_session *s = &d->session;
    const int64_t fits = MOST_BYTES / d->values.row_bytes;
    if (!weir_cli_given(d->cli, "batch") && d->a->session.run.batch > fits)
        d->a->session.run.batch = fits > 16 ? fits : 16;
    int code = weir_session_run(s);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_run_hook_object(s->run, &decompose_class, d, &err) != WEIR_OK)
        return weir_cli_fail(d->cli, &err);
    code = weir_session_prepare(s, 0);
    if (code != WEIR_EXIT_OK)
        return code;
    d->source = weir_session_identity(s);
    d->interventions = weir_attach_json(&s->attach);
    if (!d->source)
        return WEIR_EXIT_FAILED;
    return d->interventions ? WEIR_EXIT_OK : weir_cli_error(d->cli, "out of memory");
}

static weir_status take_batch(weir_decompose *d, const weir_batch *b, weir_err *err)
{
    const weir_session *s = &d->session;
    if (b->restart)
        weir_run_slot_reset(s->run, 0);
    if (!b->n_seq)
        return WEIR_OK;
    WEIR_TRY(weir_run_forward(s->run, b->seq, b->n_seq, 0, err));
    for (int64_t i = 0; i < d->values.n; i++)
        d->values.next[i] = b->kept_next[i];
    WEIR_TRY(weir_decompose_take(d, err));
    return weir_run_enough(s->run) ? WEIR_STOP : WEIR_OK;
}

static weir_status feed(weir_decompose *d, weir_err *err)
{
    const weir_session *s = &d->session;
    const weir_batch *b;
    weir_progress bar;
    int64_t rows = 0;
    weir_progress_start(&bar, d->cli);
    weir_status st = weir_feed_next(s->feed, &b, err);
    while (st == WEIR_OK && b && !weir_signals_seen() && !ferror(d->out)) { /* else computed in vain */
        rows += b->rows;
        st = take_batch(d, b, err);
        weir_progress_update(&bar, weir_feed_progress(s->feed), rows);
        if (st == WEIR_OK)
            st = weir_feed_next(s->feed, &b, err);
    }
    weir_progress_stop(&bar, d->cli);
    return st;
}

int weir_decompose_text(weir_decompose *d)
{
    weir_err err = {0};
    weir_signals_catch();
    weir_status st = feed(d, &err);
    if (weir_signals_seen())
        return weir_cli_error(d->cli, "stopped by signal %d", weir_signals_seen());
    if (st == WEIR_STOP)
        weir_cli_note(d->cli, "a hook ended the run behind %lld positions", (long long)d->positions);
    else if (st != WEIR_OK)
        return weir_cli_fail(d->cli, &err);
    if (weir_feed_counts_of(d->session.feed).docs == 0)
        return weir_cli_error(d->cli, "the input holds no document");
    if (weir_run_finish(d->session.run, stderr, &err) != WEIR_OK && d->positions)
        return weir_cli_fail(d->cli, &err);
    weir_attach_say(&d->session.attach, d->cli);
    return WEIR_EXIT_OK;
}
