/* record/live.c: while the run goes on: what is whole is put into the file, so that it survives a kill and can be
 * followed.
 *
 * HDF5's SWMR mode writes metadata in an order in which the file can be read at any moment: a chunk before the index
 * that leads to it, an index before the extent that reaches it. Tiles are written once (a tile that is written again
 * takes new place in the file each time); /docs, which has no filters, is written again in place. /progress comes last,
 * so that what it says is true at any moment. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"
#include "dump.h"

/* HDF5 holds its lock by now, if there are locks: to ask for it once more changes nothing. */
bool weir_dump_has_locks(const weir_dump *d)
{
    const char *off = getenv("HDF5_USE_FILE_LOCKING"); /* HDF5's own switch, set where locks do not work */
    if (off && (!strcmp(off, "FALSE") || !strcmp(off, "0")))
        return false;
    return flock(weir_h5_descriptor(d->file), LOCK_EX | LOCK_NB) == 0;
}

/* Every object exists: from here on datasets only grow. HDF5 gives its lock up for the sake of readers; a shared one
 * lets them in and keeps other writers out. */
static weir_status go_live(weir_dump *d, weir_err *err)
{
    if (d->live || d->no_locks)
        return WEIR_OK;
    if (!weir_dump_has_locks(d)) {
        d->no_locks = true;
        weir_logf(
            &d->log, WEIR_LOG_WARN,
            "%s: file locks do not work here (a network file system?): it is written without SWMR, so that it cannot "
            "be read before the end, and a kill may lose it",
            d->out.part);
        return WEIR_OK;
    }
    if (weir_h5_start_swmr(d->file) < 0)
        return weir_h5_fail(err, "cannot begin to write %s in SWMR mode", d->out.part);
    d->live = true;
    flock(weir_h5_descriptor(d->file), LOCK_SH | LOCK_NB);
    return WEIR_OK;
}

/* /progress as it will be true: tails: with the rows of unfinished tiles. */
static void measure(weir_dump *d, bool tails)
{
    for (int i = 0; i < d->progress.n; i++)
        d->progress.rows[i] = strcmp(d->progress.group[i].name, "docs") ? INT64_MAX : weir_doc_table_written(&d->docs);
    for (int i = 0; i < d->n_columns; i++) {
        const weir_counted *c = &d->column[i];
        int64_t rows = tails ? weir_tiled_rows(c->rows) : c->rows->base;
        if (rows < d->progress.rows[c->group])
            d->progress.rows[c->group] = rows;
    }
}

weir_status weir_dump_put(weir_dump *d, bool tails, weir_err *err)
{
    WEIR_TRY(weir_dump_trim(d, err));
    for (int i = 0; i < d->n_columns && tails; i++)
        WEIR_TRY(weir_tiled_flush(d->column[i].rows, &d->writer, err));
    WEIR_TRY(weir_doc_table_flush(&d->docs, &d->writer, err));
    if (d->live) {
        WEIR_TRY(weir_doc_table_sync(&d->docs, err));
        for (int i = 0; i < d->n_columns; i++)
            WEIR_TRY(weir_tiled_sync(d->column[i].rows, err));
    } else if (H5Fflush(d->file, H5F_SCOPE_LOCAL) < 0) {
        return weir_h5_fail(err, "cannot write");
    }
    measure(d, tails);
    WEIR_TRY(weir_progress_write(&d->progress, err));
    if (!d->live && H5Fflush(d->file, H5F_SCOPE_LOCAL) < 0)
        return weir_h5_fail(err, "cannot write");
    d->flushed = d->writer.bands;
    return WEIR_OK;
}

/* Fields of documents are declared by the first one: before it, objects may still be made. */
weir_status weir_dump_flush_bands(weir_dump *d, weir_err *err)
{
    if (!d->begun || !d->docs.fields.typed)
        return WEIR_OK;
    WEIR_TRY(weir_dump_trim(d, err));
    WEIR_TRY(go_live(d, err));
    return d->writer.bands == d->flushed ? WEIR_OK : weir_dump_put(d, false, err);
}

weir_status weir_dump_flush(weir_dump *d, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(weir_dump_enter(d, &q, err));
    return weir_dump_leave(d, &q, weir_dump_flush_bands(d, err), err);
}

/* --- a write failed */

/* HDF5 1.10 may crash when it closes a file that it cannot write, or write over what is good: the file is left open,
 * and what HDF5 might still do goes to nowhere. That also gives up its lock. */
static void abandon(weir_dump *d)
{
    int fd = weir_h5_descriptor(d->file), nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd >= 0 && nowhere >= 0)
        dup3(nowhere, fd, O_CLOEXEC);
    if (nowhere >= 0)
        close(nowhere);
    d->writer.behind.fd = -1;
    d->file = d->activations = -1;
    for (int i = 0; i < WEIR_TOK_COLUMNS; i++)
        d->token[i].id = -1;
    d->row.id = -1;
    for (int i = 0; i < d->n_acts; i++)
        d->act[i].rows.id = -1;
    for (int i = 0; i < d->n_own; i++)
        d->own[i].rows.id = -1;
    weir_doc_table_forget(&d->docs);
    weir_scales_forget(&d->scales);
    d->progress.rows_complete = -1;
}

void weir_dump_add_words(weir_err *err, const char *fmt, ...)
{
    if (!err)
        return;
    va_list ap;
    size_t n = strlen(err->msg);
    va_start(ap, fmt);
    vsnprintf(err->msg + n, sizeof err->msg - n, fmt, ap);
    va_end(ap);
}

void weir_dump_salvage(weir_dump *d, weir_err *err)
{
    weir_dump_report r = {0};
    weir_err why = {0};
    bool begun = d->begun || d->resumed;
    abandon(d);
    if (!begun) {
        weir_partfile_drop(&d->out);
        return;
    }
    weir_status st = weir_dump_repair_file(d->out.part, true, &r, &why);
    d->part_saved = d->resumed || (st ? d->flushed > 0 : r.most > 0);
    if (st && d->part_saved)
        weir_dump_add_words(
            err, "; what was written is in %s, which could not be closed (%s): make room, then `weir repair` it",
            d->out.part, why.msg);
    else if (d->part_saved && r.most == r.rows)
        weir_dump_add_words(err, "; the first %lld rows are safe in %s: make room, then go on with --resume",
                            (long long)r.rows, d->out.part);
    else if (d->part_saved)
        weir_dump_add_words(
            err, "; the first %lld rows, and of some hooks %lld, are safe in %s: make room, then go on with --resume",
            (long long)r.rows, (long long)r.most, d->out.part);
    else
        weir_partfile_drop(&d->out);
}
