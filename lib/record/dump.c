/* record/dump.c: the life of a dump after its creation: rows, commit and rename, or abort. */
#include "dump.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* Closes every HDF5 object; false when the file did not close well (its last bytes may be missing). */
bool weir_dump_close_file(weir_dump *d)
{
    for (int i = 0; i < WEIR_TOK_COLUMNS; i++)
        weir_tiled_close(&d->token[i]);
    weir_tiled_close(&d->row);
    weir_doc_table_close(&d->docs);
    for (int i = 0; i < d->n_acts; i++)
        weir_act_close(&d->act[i]);
    d->n_acts = 0;
    weir_scales_free(&d->scales);
    if (d->progress >= 0)
        H5Dclose(d->progress);
    if (d->tokens >= 0)
        H5Gclose(d->tokens);
    if (d->activations >= 0)
        H5Gclose(d->activations);
    bool good = d->file < 0 || H5Fclose(d->file) >= 0;
    d->file = d->activations = d->tokens = d->progress = -1;
    return good;
}

void weir_dump_free(weir_dump *d)
{
    weir_dump_close_file(d);
    weir_tile_writer_free(&d->writer);
    weir_free(d->act);
    weir_free(d->group);
    weir_free(d->path);
    weir_free(d->part);
    weir_free(d);
}

/* --- rows. Every call goes through enter and leave: silence, and no writing after a failure. */

weir_status weir_dump_enter(weir_dump *d, weir_h5_quiet *q, weir_err *err)
{
    if (d->failed)
        return weir_fail(err, d->failed, "an earlier write to %s failed", d->part);
    if (d->completed)
        return weir_fail(err, WEIR_E_ARG, "%s is complete", d->path);
    weir_h5_quiet_begin(q);
    return WEIR_OK;
}

weir_status weir_dump_leave(weir_dump *d, const weir_h5_quiet *q, weir_status st, weir_err *err)
{
    weir_h5_quiet_end(q);
    if (st) {
        d->failed = st;
        weir_err_where(err, d->path, NULL, -1);
    }
    return st;
}

/* The first row comes: what is still missing of the file is made, so that afterwards datasets only grow. */
weir_status weir_dump_begin(weir_dump *d, weir_err *err)
{
    int row;
    if (d->begun)
        return WEIR_OK;
    WEIR_TRY(weir_scales_add(&d->scales, "row", d->row.id, &row, err));
    for (int i = 0; i < WEIR_TOK_COLUMNS; i++)
        if (i != WEIR_TOK_LOGPROB || d->logprob)
            WEIR_TRY(weir_scales_use(&d->scales, d->token[i].id, 1, &row, err));
    for (int i = 0; i < d->n_acts; i++)
        WEIR_TRY(weir_act_scales(&d->act[i], &d->scales, row, err));
    WEIR_TRY(weir_scales_attach(&d->scales, err));
    WEIR_TRY(weir_progress_create(d, err));
    d->begun = true;
    return WEIR_OK;
}

weir_status weir_dump_doc(weir_dump *d, const weir_doc *doc, const char *source, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(weir_dump_enter(d, &q, err));
    weir_status st = weir_doc_table_add(&d->docs, &d->writer, doc, source, err);
    if (!st)
        st = weir_dump_begin(d, err);
    return weir_dump_leave(d, &q, st, err);
}

static weir_status append_logprob(weir_dump *d, const weir_token_rows *t, weir_err *err)
{
    const float nan = NAN;
    if (t->logprob)
        return weir_tiled_append(&d->token[WEIR_TOK_LOGPROB], &d->writer, t->logprob, t->n, err);
    for (int64_t i = 0; i < t->n; i++)
        WEIR_TRY(weir_tiled_append(&d->token[WEIR_TOK_LOGPROB], &d->writer, &nan, 1, err));
    return WEIR_OK;
}

weir_status weir_dump_append_tokens(weir_dump *d, const weir_token_rows *t, weir_err *err)
{
    const void *column[] = {t->id, t->doc, t->pos, t->ctx_pos, t->byte_off, t->byte_len, t->flags};
    int64_t first = weir_tiled_rows(&d->row);
    WEIR_TRY(weir_dump_begin(d, err));
    for (int64_t i = 0, end; i < t->n; i = end) {
        for (end = i + 1; end < t->n && t->doc[end] == t->doc[i];)
            end++;
        WEIR_TRY(weir_doc_table_rows(&d->docs, &d->writer, t->doc[i], first + i, end - i, err));
    }
    for (int i = 0; i < WEIR_TOK_LOGPROB; i++)
        WEIR_TRY(weir_tiled_append(&d->token[i], &d->writer, column[i], t->n, err));
    if (d->logprob)
        WEIR_TRY(append_logprob(d, t, err));
    for (int64_t i = first; i < first + t->n; i++)
        WEIR_TRY(weir_tiled_append(&d->row, &d->writer, &i, 1, err));
    return WEIR_OK;
}

weir_status weir_dump_tokens(weir_dump *d, const weir_token_rows *t, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(weir_dump_enter(d, &q, err));
    return weir_dump_leave(d, &q, weir_dump_append_tokens(d, t, err), err);
}

weir_want weir_dump_wants(const weir_dump *d, const weir_point *p)
{
    return weir_dump_find_act(d, p->name) >= 0 ? WEIR_READ : WEIR_NONE;
}

weir_status weir_dump_value(weir_dump *d, const weir_value *v, weir_err *err)
{
    weir_h5_quiet q;
    int i = weir_dump_find_act(d, v->point->name);
    if (i < 0)
        return weir_fail(err, WEIR_E_HOOK, "%s was not declared for %s", v->point->name, d->path);
    WEIR_TRY(weir_dump_enter(d, &q, err));
    weir_status st = weir_dump_begin(d, err);
    if (!st)
        st = weir_act_append(&d->act[i], &d->writer, v, err);
    if (st)
        weir_err_where(err, d->path, v->point->name, -1);
    return weir_dump_leave(d, &q, st, err);
}

/* --- commit */

static weir_status check_rows(const weir_dump *d, weir_err *err)
{
    int64_t rows = weir_tiled_rows(&d->row);
    for (int i = 0; i < d->n_acts; i++) {
        int64_t n = weir_tiled_rows(&d->act[i].rows);
        if (n == rows)
            continue;
        if (n == 0)
            return weir_fail(err, WEIR_E_HOOK, "%s never fired: it has no rows, the dump has %lld tokens",
                             d->act[i].name, (long long)rows);
        return weir_fail(err, WEIR_E_HOOK, "%s has %lld rows, the dump has %lld tokens", d->act[i].name, (long long)n,
                         (long long)rows);
    }
    return WEIR_OK;
}

/* Everything in memory to the file. */
static weir_status write_tails(weir_dump *d, weir_err *err)
{
    WEIR_TRY(weir_dump_begin(d, err));
    WEIR_TRY(weir_doc_table_end(&d->docs, &d->writer, weir_tiled_rows(&d->row), err));
    for (int i = 0; i < WEIR_TOK_COLUMNS; i++)
        if (i != WEIR_TOK_LOGPROB || d->logprob)
            WEIR_TRY(weir_tiled_flush(&d->token[i], &d->writer, err));
    WEIR_TRY(weir_tiled_flush(&d->row, &d->writer, err));
    for (int i = 0; i < d->n_acts; i++)
        WEIR_TRY(weir_tiled_flush(&d->act[i].rows, &d->writer, err));
    WEIR_TRY(weir_doc_table_flush(&d->docs, &d->writer, err));
    return weir_progress_write(d, err);
}

static void summarise(const weir_dump *d, weir_dump_summary *s)
{
    memset(s, 0, sizeof *s);
    s->rows = weir_tiled_rows(&d->row);
    s->docs = weir_doc_table_count(&d->docs);
    s->datasets = d->n_acts;
    s->dropped_fields = d->docs.dropped;
    for (int i = 0; i < d->n_acts; i++)
        s->raw_bytes += weir_tiled_rows(&d->act[i].rows) * (int64_t)d->act[i].rows.row_bytes;
}

/* Tail, complete = 1, close, rename. After it d holds no file, whatever happened. */
static weir_status complete(weir_dump *d, weir_dump_summary *summary, weir_err *err)
{
    struct stat st;
    weir_dump_summary s;
    WEIR_TRY(write_tails(d, err));
    WEIR_TRY(check_rows(d, err));
    summarise(d, &s);
    /* Everything else first: a file that says complete is complete. */
    if (H5Fflush(d->file, H5F_SCOPE_LOCAL) < 0)
        return weir_h5_fail(err, "cannot write");
    WEIR_TRY(weir_h5_put_int(d->file, "complete", 1, err));
    if (!weir_dump_close_file(d))
        return weir_h5_fail(err, "cannot close %s", d->part);
    WEIR_TRY(weir_dump_publish_part(d, err));
    d->completed = true;
    s.file_bytes = stat(d->path, &st) ? 0 : (int64_t)st.st_size;
    if (summary)
        *summary = s;
    return WEIR_OK;
}

weir_status weir_dump_complete(weir_dump *d, weir_dump_summary *summary, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(weir_dump_enter(d, &q, err));
    weir_status st = complete(d, summary, err);
    weir_dump_close_file(d);
    if (st)
        weir_dump_settle_part(d, st, err);
    return weir_dump_leave(d, &q, st, err);
}

weir_status weir_dump_commit(weir_dump *d, weir_dump_summary *summary, weir_err *err)
{
    weir_h5_quiet q;
    weir_status st = weir_dump_complete(d, summary, err);
    weir_h5_quiet_begin(&q);
    weir_dump_free(d);
    weir_h5_quiet_end(&q);
    return st;
}

void weir_dump_abort(weir_dump *d, bool keep)
{
    weir_h5_quiet q;
    if (!d)
        return;
    weir_h5_quiet_begin(&q);
    if (keep && !d->failed && !d->completed && write_tails(d, NULL))
        d->failed = WEIR_E_IO; /* what could be written is written; complete is 0 */
    if (!keep && !d->completed && !d->part_whole)
        weir_dump_drop_part(d);
    weir_dump_free(d);
    weir_h5_quiet_end(&q);
}
