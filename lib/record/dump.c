/* record/dump.c: the life of a dump after its creation: documents and values, commit and rename, or abort. */
#include "dump.h"

#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

bool weir_dump_close_file(weir_dump *d)
{
    for (int i = 0; i < WEIR_TOK_COLUMNS; i++)
        weir_tiled_close(&d->token[i]);
    weir_tiled_close(&d->row);
    weir_doc_table_close(&d->docs);
    for (int i = 0; i < d->n_acts; i++)
        weir_act_close(&d->act[i]);
    d->n_acts = 0;
    for (int i = 0; i < d->n_own; i++)
        weir_own_close(&d->own[i]);
    d->n_own = 0;
    d->n_columns = 0;
    weir_scales_free(&d->scales);
    weir_progress_close(&d->progress);
    if (d->activations >= 0)
        H5Gclose(d->activations);
    bool good = d->file < 0 || H5Fclose(d->file) >= 0;
    d->file = d->activations = -1;
    return good;
}

void weir_dump_free(weir_dump *d)
{
    weir_dump_close_file(d);
    weir_tile_writer_free(&d->writer);
    weir_free(d->act);
    weir_free(d->own);
    weir_strmap_free(&d->act_index);
    weir_free(d->column);
    weir_partfile_free(&d->out);
    weir_free(d);
}

/* --- rows. Every call goes through enter and leave: silence, and no writing after a failure. */

weir_status weir_dump_enter(weir_dump *d, weir_h5_quiet *q, weir_err *err)
{
    if (d->failed)
        return weir_fail(err, d->failed, "an earlier write to %s failed", d->out.part);
    if (d->completed)
        return weir_fail(err, WEIR_E_ARG, "%s is complete", d->out.path);
    weir_h5_quiet_begin(q);
    return WEIR_OK;
}

weir_status weir_dump_leave(weir_dump *d, const weir_h5_quiet *q, weir_status st, weir_err *err)
{
    if (st) {
        d->failed = st;
        weir_err_where(err, d->out.path, NULL, -1);
        if ((st == WEIR_E_IO || st == WEIR_E_HDF5) && d->file >= 0)
            weir_dump_salvage(d, err);
    }
    weir_h5_quiet_end(q);
    return st;
}

weir_status weir_dump_doc(weir_dump *d, const weir_doc *doc, const char *source, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(weir_dump_enter(d, &q, err));
    weir_status st = weir_dump_begin(d, err);
    if (!st && d->docs.there.next == d->docs.there.n)
        st = weir_dump_trim(d, err);
    if (!st)
        st = weir_doc_table_add(&d->docs, &d->writer, doc, source, err);
    return weir_dump_leave(d, &q, st, err);
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
        return weir_fail(err, WEIR_E_HOOK, "%s was not declared for %s", v->point->name, d->out.path);
    WEIR_TRY(weir_dump_enter(d, &q, err));
    weir_status st = weir_dump_begin(d, err);
    if (!st && d->act[i].rows.over < v->rows->n)
        st = weir_dump_trim(d, err);
    if (!st)
        st = weir_act_append(&d->act[i], &d->writer, v, err);
    if (st)
        weir_err_where(err, d->out.path, v->point->name, -1);
    return weir_dump_leave(d, &q, st, err);
}

/* --- commit */

static weir_status check_count(const weir_tiled *t, const char *name, int64_t rows, weir_err *err)
{
    int64_t n = weir_tiled_rows(t);
    if (n == rows)
        return WEIR_OK;
    if (n == 0)
        return weir_fail(err, WEIR_E_HOOK, "%s never fired: it has no rows, the dump has %lld tokens", name,
                         (long long)rows);
    return weir_fail(err, WEIR_E_HOOK, "%s has %lld rows, the dump has %lld tokens", name, (long long)n,
                     (long long)rows);
}

static weir_status check_rows(const weir_dump *d, weir_err *err)
{
    int64_t rows = weir_tiled_rows(&d->row);
    if (d->docs.there.next < d->docs.there.n)
        return weir_fail(err, WEIR_E_ARG, "the text has changed: it has %lld documents, the file has %lld",
                         (long long)d->docs.there.next, (long long)d->docs.there.n);
    for (int i = 0; i < d->n_acts; i++)
        WEIR_TRY(check_count(&d->act[i].rows, d->act[i].name, rows, err));
    for (int i = 0; i < d->n_own; i++)
        WEIR_TRY(check_count(&d->own[i].rows, d->own[i].name, rows, err));
    return d->logprob ? check_count(&d->token[WEIR_TOK_LOGPROB], "logprob", rows, err) : WEIR_OK;
}

/* Everything in memory to the file. */
static weir_status write_tails(weir_dump *d, weir_err *err)
{
    WEIR_TRY(weir_dump_begin(d, err));
    WEIR_TRY(weir_doc_table_end(&d->docs, &d->writer, weir_tiled_rows(&d->row), err));
    return weir_dump_put(d, true, err);
}

static void summarise(const weir_dump *d, weir_dump_summary *s)
{
    memset(s, 0, sizeof *s);
    s->rows = weir_tiled_rows(&d->row);
    s->docs = weir_doc_table_count(&d->docs);
    s->datasets = d->n_acts;
    s->dropped_fields = d->docs.fields.dropped;
    memcpy(s->dropped_name, d->docs.fields.dropped_name, sizeof s->dropped_name);
    for (int i = 0; i < d->n_acts; i++)
        s->raw_bytes += weir_tiled_rows(&d->act[i].rows) * (int64_t)d->act[i].rows.row_bytes;
}

/* The last thing that is written, to a file in which all else is safe. Followers may have it open: no lock. */
static weir_status say_complete(const weir_dump *d, weir_err *err)
{
    WEIR_TRY(weir_partfile_check(&d->out, err));
    hid_t f = weir_h5_open_file(d->out.part, false, false);
    if (f < 0)
        return weir_h5_fail(err, "cannot open %s", d->out.part);
    weir_status st = weir_h5_put_int(f, "complete", 1, err);
    if (H5Fclose(f) < 0 && !st)
        st = weir_h5_fail(err, "cannot write");
    return st;
}

/* Tail, close, complete = 1, rename. */
static weir_status complete(weir_dump *d, weir_dump_summary *s, weir_err *err)
{
    struct stat st;
    WEIR_TRY(write_tails(d, err));
    WEIR_TRY(check_rows(d, err));
    summarise(d, s);
    if (H5Fflush(d->file, H5F_SCOPE_LOCAL) < 0)
        return weir_h5_fail(err, "cannot write");
    if (!weir_dump_close_file(d))
        return weir_h5_fail(err, "cannot close %s", d->out.part);
    WEIR_TRY(say_complete(d, err));
    d->part_whole = true;
    WEIR_TRY(weir_partfile_publish(&d->out, err));
    d->completed = true;
    s->file_bytes = stat(d->out.path, &st) ? 0 : (int64_t)st.st_size;
    return WEIR_OK;
}

weir_status weir_dump_complete(weir_dump *d, weir_dump_summary *summary, weir_err *err)
{
    weir_h5_quiet q;
    weir_dump_summary s = {0};
    WEIR_TRY(weir_dump_enter(d, &q, err));
    weir_status st = complete(d, &s, err);
    bool healthy = st != WEIR_E_IO && st != WEIR_E_HDF5; /* else leave gives the file up */
    if (healthy || d->file < 0) {
        weir_dump_close_file(d);
        if (st && weir_partfile_check(&d->out, NULL) == WEIR_OK)
            weir_dump_add_words(err, " (the rows are in %s)", d->out.part);
    }
    if (!st && summary)
        *summary = s;
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

/* What has come is kept: all of it, or, after an error that is not the file's, what is whole. */
static void keep_rows(weir_dump *d)
{
    weir_status st = d->failed || !d->begun ? WEIR_OK : write_tails(d, NULL);
    if (!st && d->failed && d->begun)
        st = weir_dump_put(d, false, NULL);
    if (st)
        weir_dump_salvage(d, NULL);
}

void weir_dump_abort(weir_dump *d, bool keep)
{
    weir_h5_quiet q;
    if (!d)
        return;
    weir_h5_quiet_begin(&q);
    keep = keep || d->resumed;
    if (keep && d->file >= 0 && !d->completed)
        keep_rows(d);
    if (!keep && !d->completed && !d->part_whole && !d->part_saved)
        weir_partfile_drop(&d->out);
    weir_dump_free(d);
    weir_h5_quiet_end(&q);
}
