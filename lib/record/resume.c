/* record/resume.c: going on with PATH.part: the same model, options, points and text; rows from where it ended. */
#include <string.h>

#include "base/log.h"
#include "dump.h"

/* --- opening */

static weir_status open_all(weir_dump *d, const weir_dump_header *h, const weir_dump_options *o, weir_err *err)
{
    WEIR_TRY(weir_dump_check_header(d, h, o, err));
    if ((H5Lexists(d->file, "tokens/logprob", H5P_DEFAULT) > 0) != d->logprob)
        return weir_fail(err, WEIR_E_ARG,
                         "%s was begun with%s log-probabilities, and now they are%s wanted (--force begins again)",
                         d->out.part, d->logprob ? "out" : "", d->logprob ? "" : " not");
    d->activations = H5Gopen2(d->file, "activations", H5P_DEFAULT);
    if (d->activations < 0)
        return weir_h5_fail(err, "cannot open group activations");
    WEIR_TRY(weir_dump_open_tokens(d, err));
    return weir_doc_table_open(&d->docs, d->file, &d->writer, err);
}

weir_status weir_dump_resume(weir_dump *d, const weir_dump_header *h, const weir_dump_options *o, weir_err *err)
{
    bool there;
    weir_dump_report r;
    weir_err why = {0};
    WEIR_TRY(weir_partfile_adopt(&d->out, &there, err));
    d->resumed = there;
    if (!there)
        return WEIR_OK;
    weir_status st = weir_dump_repair_file(d->out.part, false, &r, &why);
    if (st && !r.blank) {
        if (err && !err->code)
            *err = why;
        return st;
    }
    if (st || r.most == 0) { /* nothing to lose */
        weir_logf(&d->log, WEIR_LOG_INFO, "%s holds no row yet: begun again", d->out.part);
        weir_partfile_drop(&d->out);
        d->resumed = false;
        return WEIR_OK;
    }
    if (r.open)
        weir_logf(&d->log, WEIR_LOG_INFO, "%s was left by a run that was killed: repaired", d->out.part);
    d->file = weir_h5_open_file(d->out.part, true, false);
    if (d->file < 0)
        return weir_h5_fail(err, "cannot open %s", d->out.part);
    weir_behind_init(&d->writer.behind, d->file);
    WEIR_TRY(weir_progress_open(&d->progress, d->file, err));
    return open_all(d, h, o, err);
}

/* --- declarations are made: are they all that the file has? */

static weir_status check_points(weir_dump *d, weir_err *err)
{
    H5G_info_t info;
    char name[256] = "";
    if (H5Gget_info(d->activations, &info) < 0)
        return weir_h5_fail(err, "cannot list what %s records", d->out.part);
    for (hsize_t i = 0; i < info.nlinks; i++) {
        if (H5Lget_name_by_idx(d->activations, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT) < 0)
            return weir_h5_fail(err, "cannot list what %s records", d->out.part);
        if (weir_dump_find_act(d, name) < 0)
            return weir_fail(err, WEIR_E_ARG,
                             "%s was begun with other hook points: it records %s, which is not asked for now "
                             "(--force begins again)",
                             d->out.part, name);
    }
    return WEIR_OK;
}

/* Datasets of all hooks in the file. */
static int count_own(hid_t hooks)
{
    H5G_info_t all, one;
    char name[256];
    hsize_t n = 0;
    for (hsize_t i = 0; H5Gget_info(hooks, &all) >= 0 && i < all.nlinks; i++)
        if (H5Lget_name_by_idx(hooks, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT) >= 0 &&
            H5Gget_info_by_name(hooks, name, &one, H5P_DEFAULT) >= 0)
            n += one.nlinks;
    return (int)n;
}

static weir_status check_own(weir_dump *d, weir_err *err)
{
    int n = 0;
    if (H5Lexists(d->file, "hooks", H5P_DEFAULT) > 0) {
        hid_t hooks = H5Gopen2(d->file, "hooks", H5P_DEFAULT);
        n = count_own(hooks);
        H5Gclose(hooks);
    }
    if (n == d->n_own)
        return WEIR_OK;
    return weir_fail(err, WEIR_E_ARG,
                     "%s was begun with other hooks: it has %d datasets of theirs, not %d (--force begins again)",
                     d->out.part, n, d->n_own);
}

/* --- rows */

static int64_t group_rows(const weir_dump *d, const char *name)
{
    int i = weir_progress_find(&d->progress, name);
    return i < 0 ? 0 : d->progress.rows[i];
}

/* Documents that have a row among the first `rows`. */
static weir_status docs_of(weir_dump *d, int64_t rows, int64_t *docs, weir_err *err)
{
    *docs = 0;
    if (rows > 0) {
        WEIR_TRY(weir_tiled_read(&d->token[WEIR_TOK_DOC], rows - 1, 1, docs, err));
        ++*docs;
    }
    if (*docs < 0 || *docs > group_rows(d, "docs"))
        return weir_fail(err, WEIR_E_FORMAT,
                         "%s: rows belong to documents that /docs does not have: the file is damaged", d->out.part);
    return WEIR_OK;
}

/* Everything is read that will be needed; nothing is written yet. */
weir_status weir_dump_go_on(weir_dump *d, weir_err *err)
{
    int64_t tokens = group_rows(d, "tokens"), docs, least = weir_progress_least(&d->progress);
    WEIR_TRY(check_points(d, err));
    WEIR_TRY(check_own(d, err));
    for (int i = 0; i < d->n_columns; i++) {
        weir_tiled *t = d->column[i].rows;
        WEIR_TRY(weir_tiled_resume(t, d->progress.rows[d->column[i].group], err));
        t->over = weir_tiled_rows(t) - least;
    }
    WEIR_TRY(docs_of(d, tokens, &docs, err));
    return weir_doc_table_resume(&d->docs, docs, tokens, err);
}

/* First /progress says what will be left; then it is cut: a kill in between leaves a file that can be repaired. */
weir_status weir_dump_trim(weir_dump *d, weir_err *err)
{
    if (!d->resumed || d->trimmed)
        return WEIR_OK;
    d->trimmed = true;
    for (int i = 0; i < d->n_columns; i++) {
        int64_t *rows = &d->progress.rows[d->column[i].group];
        if (d->column[i].rows->base < *rows)
            *rows = d->column[i].rows->base;
    }
    d->progress.rows[weir_progress_find(&d->progress, "docs")] = weir_doc_table_written(&d->docs);
    WEIR_TRY(weir_progress_write(&d->progress, err));
    if (H5Fflush(d->file, H5F_SCOPE_LOCAL) < 0)
        return weir_h5_fail(err, "cannot write");
    for (int i = 0; i < d->n_columns; i++)
        WEIR_TRY(weir_tiled_cut(d->column[i].rows, err));
    WEIR_TRY(weir_doc_table_cut(&d->docs, &d->writer, err));
    return H5Fflush(d->file, H5F_SCOPE_LOCAL) < 0 ? weir_h5_fail(err, "cannot write") : WEIR_OK;
}

/* --- what the caller asks */

int64_t weir_dump_rows_done(const weir_dump *d)
{
    int64_t least = INT64_MAX;
    if (!d->begun)
        return weir_progress_least(&d->progress);
    for (int i = 0; i < d->n_columns; i++)
        if (weir_tiled_rows(d->column[i].rows) < least)
            least = weir_tiled_rows(d->column[i].rows);
    return least;
}

int64_t weir_dump_point_rows(const weir_dump *d, const weir_point *p)
{
    char name[WEIR_PROGRESS_NAME] = "tokens";
    if (p)
        weir_progress_name(name, p->site, p->layer);
    int group = weir_progress_find(&d->progress, name);
    if (group < 0)
        return -1;
    return d->begun ? weir_dump_group_rows(d, group) : d->progress.rows[group];
}

/* late: rows that are not there yet come in any case from where the dataset ends. */
static weir_status seek(weir_dump *d, weir_tiled *t, const char *name, int64_t row, bool late, weir_err *err)
{
    int64_t rows = weir_tiled_rows(t);
    if (row < 0 || (row > rows && !late))
        return weir_fail(err, WEIR_E_ARG, "%s: %s cannot go on at row %lld: it has %lld rows", d->out.part, name,
                         (long long)row, (long long)rows);
    t->over = row < rows ? rows - row : 0;
    return WEIR_OK;
}

static weir_status seek_tokens(weir_dump *d, int64_t row, weir_err *err)
{
    for (int i = 0; i < WEIR_TOK_LOGPROB; i++)
        WEIR_TRY(seek(d, &d->token[i], "/tokens", row, false, err));
    WEIR_TRY(seek(d, &d->row, "/row", row, false, err));
    return d->logprob ? seek(d, &d->token[WEIR_TOK_LOGPROB], "logprob", row, d->logprob_late, err) : WEIR_OK;
}

static weir_status seek_all(weir_dump *d, const weir_point *p, int64_t row, weir_err *err)
{
    WEIR_TRY(weir_dump_begin(d, err));
    if (!p)
        WEIR_TRY(seek_tokens(d, row, err));
    int act = p ? weir_dump_find_act(d, p->name) : -1;
    if (act >= 0)
        WEIR_TRY(seek(d, &d->act[act].rows, p->name, row, false, err));
    for (int i = 0; i < d->n_own; i++) {
        const weir_point *own = d->own[i].point;
        if (own == p || (own && p && !strcmp(own->name, p->name)))
            WEIR_TRY(seek(d, &d->own[i].rows, d->own[i].name, row, !p, err));
    }
    return WEIR_OK;
}

weir_status weir_dump_seek(weir_dump *d, const weir_point *p, int64_t row, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(weir_dump_enter(d, &q, err));
    return weir_dump_leave(d, &q, seek_all(d, p, row, err), err);
}
