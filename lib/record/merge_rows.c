/* record/merge_rows.c: see merge_dump.h. */
#include <inttypes.h>

#include "merge_dump.h"
#include "round.h"

enum { PASS_BYTES = 256 << 20 }; /* of a pass, where the caller does not say */

/* Its rows are written; not virtual. */
static bool is_copied(const weir_column *c)
{
    return c->kind < WEIR_COLUMN_GROUP && c->out.id > 0;
}

/* A band in memory, of the result and as it was read. */
static size_t band_bytes(const weir_column *c)
{
    size_t width = (size_t)(c->out.spec.outer * c->out.spec.inner);
    return width * (size_t)c->out.spec.tile_rows * weir_elem_bytes(c->elem);
}

static void shift(int64_t *v, int64_t n, int64_t by)
{
    for (int64_t i = 0; i < n; i++)
        v[i] += by;
}

static weir_status renumber(const weir_source_map *map, int32_t *v, int64_t n, weir_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        if (v[i] < 0 || v[i] >= map->n)
            return weir_fail(err, WEIR_E_FORMAT, "docs/source holds %d, but there are %" PRId64 " sources", (int)v[i],
                             map->n);
        v[i] = map->to[v[i]];
    }
    return WEIR_OK;
}

/* n rows of part k, from row `first` on, become those of the result. *skip: rows at the begin that it has already. */
static weir_status translate(weir_join *j, weir_column *c, int k, int64_t first, int64_t n, int64_t *skip,
                             weir_err *err)
{
    const weir_merge_part *p = &j->m->part[k];
    void *v = j->band;
    *skip = 0;
    switch (c->kind) {
    case WEIR_COLUMN_ROWS:
        shift(v, n, p->rows_before);
        return WEIR_OK;
    case WEIR_COLUMN_DOCS:
        shift(v, n, p->docs_before);
        return WEIR_OK;
    case WEIR_COLUMN_SOURCES:
        return renumber(&j->map[k], v, n, err);
    case WEIR_COLUMN_OFFSETS:
        shift(v, n, c->end);
        *skip = first == 0 && k > 0;
        return WEIR_OK;
    default:
        return WEIR_OK;
    }
}

static int64_t rows_wanted(const weir_column *c, const weir_merge_part *p, int64_t has)
{
    switch (c->length) {
    case WEIR_PER_ROW:
        return p->rows;
    case WEIR_PER_DOC:
        return p->docs;
    case WEIR_PER_OFFSET:
        return p->docs + 1;
    default:
        return has;
    }
}

/* float16 was read as float32; the way back is exact. */
static weir_status append_half(weir_join *j, weir_column *c, int64_t n, weir_err *err)
{
    const float *src = (const float *)(const void *)j->band;
    const int64_t width = c->out.spec.outer * c->out.spec.inner;
    while (n > 0) {
        void *p = NULL;
        int64_t room = 0;
        WEIR_TRY(weir_tiled_room(&c->out, n, &p, &room, err));
        weir_to_f16(p, src, room * width);
        WEIR_TRY(weir_tiled_added(&c->out, &j->writer, room, err));
        src += room * width;
        n -= room;
    }
    return WEIR_OK;
}

/* n rows of the band, the first `skip` left out. */
static weir_status append_band(weir_join *j, weir_column *c, int64_t skip, int64_t n, weir_err *err)
{
    weir_status st;
    if (c->out.spec.elem == WEIR_ELEM_F16)
        st = append_half(j, c, n, err);
    else
        st = weir_tiled_append(&c->out, &j->writer, j->band + (size_t)skip * c->out.row_bytes, n - skip, err);
    if (st)
        weir_err_where(err, j->m->out, c->path, -1);
    return st;
}

/* All rows of one dataset of part k. */
static weir_status append_part(weir_join *j, weir_column *c, const weir_dset *d, int k, weir_err *err)
{
    const int64_t wanted = rows_wanted(c, &j->m->part[k], d->rows), step = c->out.spec.tile_rows;
    int64_t skip = 0, end = c->end;
    if (d->width != c->out.spec.outer * c->out.spec.inner)
        return weir_fail(err, WEIR_E_FORMAT, "%s has changed while the files were joined", c->path);
    if (d->rows != wanted)
        return weir_fail(err, WEIR_E_FORMAT, "%s has %" PRId64 " rows where %" PRId64 " are expected", c->path, d->rows,
                         wanted);
    for (int64_t row = 0; row < d->rows; row += step) {
        int64_t n = d->rows - row < step ? d->rows - row : step;
        weir_fetch w = {.row = row, .n = n, .n_columns = d->width, .out = j->band};
        WEIR_TRY(weir_fetch_run(&j->fetcher, d, &w, err));
        WEIR_TRY(translate(j, c, k, row, n, &skip, err));
        if (c->kind == WEIR_COLUMN_OFFSETS)
            end = ((const int64_t *)(const void *)j->band)[n - 1];
        WEIR_TRY(append_band(j, c, skip, n, err));
        if (weir_merge_step(j->m, (double)n * (double)c->out.row_bytes))
            return WEIR_STOP;
    }
    c->end = end;
    return WEIR_OK;
}

static weir_status append_columns(weir_join *j, weir_infile *f, int from, int to, int k, weir_err *err)
{
    for (int i = from; i < to; i++) {
        weir_column *c = &j->column[i];
        weir_dset d = {0};
        if (!is_copied(c) || (c->kind == WEIR_COLUMN_FIRST && k > 0))
            continue;
        weir_status st = weir_dset_open(&d, f, f->id, c->path, c->elem, err);
        if (!st)
            st = append_part(j, c, &d, k, err);
        weir_dset_close(&d);
        if (st)
            return st;
    }
    return WEIR_OK;
}

/* Columns [from, to) of all parts. */
static weir_status run_pass(weir_join *j, int from, int to, weir_err *err)
{
    for (int k = 0; k < j->m->n; k++) {
        weir_infile f = {0};
        weir_status st = weir_infile_open(&f, j->m->part[k].path, err);
        if (!st)
            st = append_columns(j, &f, from, to, k, err);
        if (st && st != WEIR_STOP && f.id > 0 && !(err && err->file[0]))
            weir_err_where(err, j->m->part[k].path, NULL, -1);
        weir_infile_close(&f);
        if (st)
            return st;
    }
    for (int i = from; i < to; i++)
        if (is_copied(&j->column[i])) {
            WEIR_TRY(weir_tiled_flush(&j->column[i].out, &j->writer, err));
            weir_tiled_close(&j->column[i].out);
        }
    return WEIR_OK;
}

weir_status weir_join_rows(weir_join *j, weir_err *err)
{
    const size_t room = j->m->o->memory > 0 ? (size_t)j->m->o->memory : PASS_BYTES;
    size_t widest = 0;
    for (int i = 0; i < j->n; i++)
        if (is_copied(&j->column[i])) {
            widest = band_bytes(&j->column[i]) > widest ? band_bytes(&j->column[i]) : widest;
            j->m->total +=
                j->column[i].length == WEIR_PER_ROW ? (double)j->m->rows * (double)j->column[i].out.row_bytes : 0;
        }
    if (!(j->band = weir_alloc_aligned(widest)))
        return weir_nomem(err, "the rows that are joined");
    for (int from = 0, to; from < j->n; from = to) {
        size_t bytes = 0;
        for (to = from; to < j->n; to++) {
            size_t more = is_copied(&j->column[to]) ? band_bytes(&j->column[to]) : 0;
            if (to > from && bytes + more > room)
                break;
            bytes += more;
        }
        WEIR_TRY(run_pass(j, from, to, err));
    }
    return WEIR_OK;
}

/* --- progress: what is complete in all parts together */

static weir_status add_progress(const weir_merge_part *p, int64_t *sum, int64_t n, weir_err *err)
{
    weir_infile f = {0};
    weir_dset d = {0};
    int64_t *rows = weir_calloc((size_t)n, sizeof *rows);
    if (!rows)
        return weir_nomem(err, "progress");
    weir_status st = weir_infile_open(&f, p->path, err);
    if (!st)
        st = weir_dset_open(&d, &f, f.id, "progress/rows_complete", WEIR_ELEM_I64, err);
    if (!st && d.rows != n)
        st = weir_fail(err, WEIR_E_FORMAT, "progress has another length than in the first file");
    if (!st)
        st = weir_dset_read_plain(&d, 0, n, rows, err);
    for (int64_t i = 0; i < n && !st; i++)
        sum[i] += rows[i];
    weir_dset_close(&d);
    weir_infile_close(&f);
    weir_free(rows);
    return st;
}

weir_status weir_join_progress(weir_join *j, weir_err *err)
{
    hid_t d = H5Dopen2(j->m->file, "progress/rows_complete", H5P_DEFAULT), space = H5Dget_space(d);
    int64_t n = H5Sget_simple_extent_npoints(space);
    weir_status st = n >= 0 && n < INT32_MAX ? WEIR_OK : weir_h5_fail(err, "cannot read group progress");
    int64_t *sum = st ? NULL : weir_calloc((size_t)n, sizeof *sum);
    if (!st && !sum)
        st = weir_nomem(err, "progress");
    for (int k = 0; k < j->m->n && !st; k++)
        st = add_progress(&j->m->part[k], sum, n, err);
    if (!st && H5Dwrite(d, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, sum) < 0)
        st = weir_h5_fail(err, "cannot write");
    weir_free(sum);
    H5Sclose(space);
    H5Dclose(d);
    return st;
}
