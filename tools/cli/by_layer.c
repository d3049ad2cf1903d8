#include "by_layer.h"

#include "say.h"
#include "signals.h"

/* --- the text */

static weir_status feed_all(weir_by_layer *l, weir_err *err)
{
    const weir_batch *b;
    weir_status s = WEIR_OK;
    while (!weir_signals_seen() && (s = weir_feed_next(l->feed, &b, err)) == WEIR_OK && b) {
        if (l->fed)
            WEIR_TRY(l->fed(l->ctx, b, err));
        WEIR_TRY(weir_spill_put(l->spill, b, err));
    }
    return s;
}

/* --- what the dump has */

static int64_t part_of(const weir_by_layer *l, const weir_point *p)
{
    if (p->layer >= 0)
        return p->layer + 1;
    return p->site < WEIR_SITE_RESID_PRE ? 0 : weir_model_info_of(weir_run_model(l->run))->L + 1;
}

static const weir_point *point_of(const weir_by_layer *l, int64_t part)
{
    const weir_point *p;
    int64_t n = weir_model_points(weir_run_model(l->run), &p);
    for (int64_t i = 0; i < n; i++)
        if (part_of(l, &p[i]) == part)
            return &p[i];
    return NULL;
}

/* Kept rows of the corpus that the part need not run again; -1: it has to run all. Where nothing is recorded, the
 * stream alone matters, and the last part, which leaves none, has been run for what it does. */
static int64_t rows_done(const weir_by_layer *l, int64_t part)
{
    if (!l->resume)
        return -1;
    int64_t rows = weir_dump_point_rows(l->dump, point_of(l, part));
    if (rows < 0)
        return part < l->parts - 1 ? INT64_MAX : -1;
    return rows > l->base ? rows - l->base : -1;
}

/* Are all rows of the parts before there? If not (a kill before they were on disk), all begins anew. */
static bool earlier_are_whole(const weir_by_layer *l, int64_t part)
{
    for (int64_t i = 0; i < part; i++)
        if (rows_done(l, i) < l->kept)
            return false;
    return true;
}

/* The rows of this part that come next are the corpus's from `first` on. */
static weir_status seek(const weir_by_layer *l, int64_t part, int64_t first, weir_err *err)
{
    const weir_point *p;
    int64_t n = weir_model_points(weir_run_model(l->run), &p);
    for (int64_t i = 0; l->resume && i < n; i++)
        if (part_of(l, &p[i]) == part)
            WEIR_TRY(weir_dump_seek(l->dump, &p[i], l->base + first, err));
    /* what is said of whole passes: log-probabilities */
    return l->resume && part == l->parts - 1 ? weir_dump_seek(l->dump, NULL, l->base + first, err) : WEIR_OK;
}

/* No rows of this part come any more: they are on disk, whatever happens, and need no memory. */
static weir_status settle(const weir_by_layer *l, int64_t part, weir_err *err)
{
    return l->dump ? weir_dump_settle(l->dump, point_of(l, part), err) : WEIR_OK;
}

/* --- a part */

static weir_status stopped(weir_err *err)
{
    return weir_fail(err, WEIR_E_HOOK,
                     "a hook has ended the run, but in the order of layers every document goes through "
                     "every layer: use --order batch, or leave the hook out");
}

static weir_status run_batch(weir_by_layer *l, const weir_batch *b, weir_err *err)
{
    if (b->restart)
        weir_run_slot_reset(l->run, 0);
    if (l->part > 0)
        WEIR_TRY(weir_spill_read(l->spill, weir_run_stream(l->run), err));
    weir_status s = weir_run_part(l->run, l->part, b->seq, b->n_seq, err);
    if (s == WEIR_STOP || (s == WEIR_OK && weir_run_enough(l->run)))
        return stopped(err);
    if (s != WEIR_OK)
        return s;
    WEIR_TRY(weir_spill_write(l->spill, weir_run_stream(l->run), err));
    if (l->logprob && l->part == l->parts - 1) {
        WEIR_TRY(weir_logprobs_find(l->logprob, l->run, b, err));
        if (b->kept.n)
            WEIR_TRY(weir_dump_logprobs(l->dump, l->logprob->kept, b->kept.n, err));
    }
    return l->dump ? weir_dump_flush(l->dump, err) : WEIR_OK;
}

static void show(const weir_by_layer *l, int64_t rows)
{
    int64_t done = l->part * l->rows + rows;
    if (l->progress)
        weir_progress_update(l->progress, (double)done / (double)(l->parts * l->rows), done / l->parts);
}

/* Did an earlier process leave rows of any part? */
static bool holds_rows(const weir_by_layer *l)
{
    for (int64_t i = 0; i < l->parts; i++)
        if (weir_dump_point_rows(l->dump, point_of(l, i)) > 0)
            return true;
    return false;
}

/* A run that goes on says where. */
static void say_where(const weir_by_layer *l, int64_t first)
{
    char rows[32];
    if (!holds_rows(l))
        return;
    if (l->part == 0 && first == 0)
        weir_cli_note(l->cli, "going on from the first layer: no stream between layers was left");
    else
        weir_cli_note(l->cli, "going on in part %lld of %lld of the model, behind %s rows", (long long)l->part,
                      (long long)l->parts, weir_commas(l->base + first, rows));
}

/* going_on: an earlier process may have run some of it. */
static weir_status run_part(weir_by_layer *l, bool going_on, weir_err *err)
{
    const weir_batch *b;
    int64_t first, rows = 0;
    WEIR_TRY(weir_spill_begin(l->spill, l->part, rows_done(l, l->part), &first, err));
    WEIR_TRY(seek(l, l->part, first, err));
    if (going_on)
        say_where(l, first);
    for (;;) {
        if (weir_signals_seen())
            return WEIR_OK;
        WEIR_TRY(weir_spill_next(l->spill, &b, err));
        if (!b)
            break;
        WEIR_TRY(run_batch(l, b, err));
        show(l, rows += b->rows);
    }
    if (rows == 0)
        weir_run_part_done(l->run, l->part);
    WEIR_TRY(settle(l, l->part, err));
    return weir_spill_end(l->spill, err);
}

/* The parts that an earlier process has been through. */
static weir_status pass_over(weir_by_layer *l, int64_t part, weir_err *err)
{
    for (l->part = 0; l->part < part; l->part++) {
        weir_run_part_done(l->run, l->part);
        WEIR_TRY(settle(l, l->part, err));
    }
    return WEIR_OK;
}

static weir_status open_spill(weir_by_layer *l, weir_err *err)
{
    const weir_spill_options o = {.dump = l->dump_path,
                                  .width = weir_model_info_of(weir_run_model(l->run))->C,
                                  .batch = l->batch,
                                  .resume = l->resume};
    WEIR_TRY(weir_spill_open(&l->spill, &o, err));
    l->base = weir_spill_base(l->spill);
    if (l->base < 0)
        l->base = l->dump ? weir_dump_rows_done(l->dump) : 0;
    weir_feed_skip(l->feed, l->base);
    return l->resume ? weir_dump_seek(l->dump, NULL, l->base, err) : WEIR_OK;
}

weir_status weir_by_layer_run(weir_by_layer *l, weir_err *err)
{
    int64_t part;
    l->parts = weir_run_parts(l->run);
    WEIR_TRY(open_spill(l, err));
    WEIR_TRY(feed_all(l, err));
    l->rows = weir_spill_sum_of(l->spill).rows;
    l->kept = weir_spill_sum_of(l->spill).kept;
    if (weir_signals_seen())
        return WEIR_OK;
    if (l->rows == 0) /* an empty text, or one that the dump had in full */
        return l->base ? pass_over(l, l->parts, err) : WEIR_OK;
    if (l->dump)
        WEIR_TRY(weir_dump_settle(l->dump, NULL, err));
    WEIR_TRY(weir_spill_fed(l->spill, l->base, l->parts, &part, err));
    if (!earlier_are_whole(l, part)) {
        part = 0;
        WEIR_TRY(weir_spill_restart(l->spill, err));
    }
    WEIR_TRY(pass_over(l, part, err));
    for (; l->part < l->parts && !weir_signals_seen(); l->part++)
        WEIR_TRY(run_part(l, l->resume && l->part == part, err));
    return WEIR_OK;
}

void weir_by_layer_close(weir_by_layer *l, bool keep)
{
    weir_spill_close(l->spill, keep);
    l->spill = NULL;
}
