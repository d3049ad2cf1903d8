/* The stream from a dump of `weir trace`: the same rows and windows give the same numbers as a run. */
#include <stdlib.h>

#include "cli/from.h"
#include "cli/progress.h"
#include "cli/room.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "health.h"

enum { BLOCK_FLOATS = 1 << 18 }; /* of a line that are read at a time, or one row */

struct weir_health_dump {
    weir_dump_reader *r;
    weir_positions positions;
    weir_from_part part;
    char fingerprint[65];
    int *hook;      /* [lines] */
    int64_t row, n; /* the document's rows */
    int64_t room;   /* of these: */
    int32_t *id;
    int64_t *pos, *ctx_pos;
    uint8_t *keep; /* [keep_room] by position in the document */
    int64_t keep_room;
    int64_t block_rows;
    float *block; /* [block_rows, C] of one line */
};

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for the rows of a document");
}

/* --- a document */

static weir_status check_tokens(const weir_health *h, const struct weir_health_dump *d, int64_t doc, weir_err *err)
{
    WEIR_TRY(weir_from_positions(d->pos, d->n, doc, err));
    for (int64_t i = 0; i < d->n; i++) {
        if (d->ctx_pos[i] < 0)
            return weir_fail(err, WEIR_E_FORMAT, "is damaged: document %lld has a ctx_pos below 0", (long long)doc);
        if (d->id[i] < 0 || d->id[i] >= h->s.info->V)
            return weir_fail(err, WEIR_E_FORMAT, "token %d is not in the model's vocabulary of %lld", d->id[i],
                             (long long)h->s.info->V);
    }
    return WEIR_OK;
}

static weir_status open_doc(const weir_health *h, struct weir_health_dump *d, int64_t doc, weir_err *err)
{
    weir_dump_doc_rows rows;
    WEIR_TRY(weir_dump_read_doc(d->r, doc, &rows, err));
    d->row = rows.row;
    d->n = rows.n;
    if (d->n == 0)
        return WEIR_OK;
    if (d->n > d->room) {
        if (!weir_room(&d->id, (size_t)d->n, sizeof *d->id) || !weir_room(&d->pos, (size_t)d->n, sizeof *d->pos) ||
            !weir_room(&d->ctx_pos, (size_t)d->n, sizeof *d->ctx_pos))
            return no_memory(err);
        d->room = d->n;
    }
    const weir_token_columns c = {.id = d->id, .pos = d->pos, .ctx_pos = d->ctx_pos};
    WEIR_TRY(weir_dump_read_tokens(d->r, d->row, d->n, &c, err));
    WEIR_TRY(check_tokens(h, d, doc, err));
    const int64_t len = d->pos[d->n - 1] + 1;
    if (len > d->keep_room) {
        if (!weir_room(&d->keep, (size_t)len, 1))
            return no_memory(err);
        d->keep_room = len;
    }
    return weir_positions_keep(&d->positions, NULL, h->dump, NULL, 0, len, d->keep, err);
}

/* Rows [first, end) of the document, all of them kept, of one window. */
static weir_status take_rows(weir_health *h, struct weir_health_dump *d, int64_t doc, int64_t first, int64_t end,
                             weir_err *err)
{
    const int64_t at = h->w.n, c = h->s.info->C, n = end - first;
    if (at + n > h->s.ctx)
        return weir_fail(err, WEIR_E_FORMAT, "document %lld has a window of more than the model's %lld tokens",
                         (long long)doc, (long long)h->s.ctx);
    for (int64_t i = first; i < end; i++) {
        const weir_health_place place = {.doc = d->part.first_doc + doc, .pos = d->pos[i], .id = d->id[i]};
        weir_health_add(h, &place, d->ctx_pos[i] == 0);
    }
    for (int line = 0; line < h->n_lines; line++) {
        WEIR_TRY(weir_dump_read(d->r, d->hook[line], d->row + first, n, d->block, err));
        for (int64_t i = 0; i < n; i++)
            h->w.rms[line * h->s.ctx + at + i] =
                weir_health_value(h, line, d->block + i * c, h->w.first[at + i], &h->w.place[at + i]);
    }
    return WEIR_OK;
}

/* Rows of a window have one distance between their positions in the document and in the window. */
static weir_status take_doc(weir_health *h, struct weir_health_dump *d, int64_t doc, weir_err *err)
{
    WEIR_TRY(open_doc(h, d, doc, err));
    for (int64_t first = 0, end; first < d->n; first = end) {
        const int64_t window = d->pos[first] - d->ctx_pos[first];
        end = first + 1;
        if (first > 0 && window != d->pos[first - 1] - d->ctx_pos[first - 1])
            weir_health_end(h);
        if (!d->keep[d->pos[first]])
            continue;
        while (end < d->n && end - first < d->block_rows && d->keep[d->pos[end]] &&
               d->pos[end] - d->ctx_pos[end] == window)
            end++;
        WEIR_TRY(take_rows(h, d, doc, first, end, err));
    }
    weir_health_end(h);
    return WEIR_OK;
}

int weir_health_read_dump(weir_health *h)
{
    struct weir_health_dump *d = h->from;
    weir_err err = {0};
    weir_status st = WEIR_OK;
    weir_progress progress;
    const int64_t docs = weir_dump_n_docs(d->r);
    weir_progress_start(&progress, h->cli);
    for (int64_t i = 0; i < docs && st == WEIR_OK && !weir_signals_seen(); i++) {
        st = take_doc(h, d, i, &err);
        weir_progress_update(&progress, (double)i / (double)docs, -1);
    }
    weir_progress_stop(&progress, h->cli);
    if (weir_signals_seen())
        return weir_cli_error(h->cli, "stopped by signal %d", weir_signals_seen());
    if (st != WEIR_OK)
        return weir_cli_fail_at(h->cli, h->dump, &err);
    if (h->rows == 0)
        return weir_cli_error(h->cli, "%s: no document has a row for --positions %s", h->dump,
                              h->a->session.rows.positions);
    return WEIR_EXIT_OK;
}

/* --- opening */

/* Whole rows of the stream. */
static int find_hook(const weir_health *h, const weir_point *p)
{
    const struct weir_health_dump *d = h->from;
    const int i = weir_dump_find(d->r, p->name);
    const weir_dump_hook *hook = i < 0 ? NULL : weir_dump_hook_at(d->r, i);
    return hook && !hook->units && hook->width == p->width ? i : -1;
}

/* Without --layer those lines stay that the dump has; with it all of them have to be there. */
static int find_hooks(weir_health *h)
{
    struct weir_health_dump *d = h->from;
    int kept = 0;
    d->hook = calloc((size_t)h->n_lines + 1, sizeof *d->hook);
    if (!d->hook)
        return weir_cli_error(h->cli, "out of memory");
    for (int i = 0; i < h->n_lines; i++) {
        const int hook = find_hook(h, h->line[i].point);
        if (hook < 0 && h->a->layers.n)
            return weir_cli_error(h->cli,
                                  "%s lacks %s, whole: weir trace --site resid_pre,resid_post records the stream",
                                  h->dump, h->line[i].point->name);
        if (hook < 0) {
            weir_bins_free(&h->line[i].bins);
            continue;
        }
        d->hook[kept] = hook;
        h->line[kept++] = h->line[i];
    }
    h->n_lines = kept;
    return kept ? WEIR_EXIT_OK
                : weir_cli_error(h->cli,
                                 "%s has nothing of the stream: weir trace --site resid_pre,resid_post records it",
                                 h->dump);
}

static int describe(weir_health *h)
{
    struct weir_health_dump *d = h->from;
    weir_err err = {0};
    if (weir_from_part_of(d->r, &d->part, &err) != WEIR_OK)
        return weir_cli_fail_at(h->cli, h->dump, &err);
    const char *bos = weir_from_attr(d->r, "bos", "no");
    h->s.bos = bos[0] == 'y';
    h->interventions = weir_from_attr(d->r, "interventions", "[]");
    weir_from_note_incomplete(h->cli, d->r, h->dump);
    return WEIR_EXIT_OK;
}

int weir_health_open_dump(weir_health *h)
{
    struct weir_health_dump *d = calloc(1, sizeof *d);
    h->from = d;
    if (!d)
        return weir_cli_error(h->cli, "out of memory");
    int code = weir_from_open(&d->r, &d->positions, &h->s, h->dump);
    if (code == WEIR_EXIT_OK)
        code = weir_from_model(&h->s, d->r, h->dump, h->a->force, d->fingerprint);
    if (code == WEIR_EXIT_OK)
        code = weir_health_choose_lines(h);
    if (code == WEIR_EXIT_OK)
        code = find_hooks(h);
    if (code == WEIR_EXIT_OK)
        code = weir_from_tokenizer(&h->s);
    if (code == WEIR_EXIT_OK)
        code = describe(h);
    if (code != WEIR_EXIT_OK)
        return code;
    d->block_rows = BLOCK_FLOATS / h->s.info->C > 0 ? BLOCK_FLOATS / h->s.info->C : 1;
    d->block = malloc((size_t)(d->block_rows * h->s.info->C) * sizeof *d->block);
    return d->block ? WEIR_EXIT_OK : weir_cli_error(h->cli, "out of memory");
}

void weir_health_close_dump(weir_health *h)
{
    struct weir_health_dump *d = h->from;
    if (!d)
        return;
    weir_dump_close(d->r);
    weir_positions_free(&d->positions);
    void *const own[] = {d->hook, d->id, d->pos, d->ctx_pos, d->keep, d->block, d};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}
