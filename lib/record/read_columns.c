/* record/read_columns.c: datasets of one value a row, and strings, of a dump that is read. See reader.h. */
#include <inttypes.h>

#include "reader.h"

/* --- columns of one value a row */

weir_status weir_read_column(weir_dump_reader *r, weir_dset *d, const char *name, weir_elem as, int64_t row, int64_t n,
                             void *out, weir_err *err)
{
    weir_status st = WEIR_OK;
    if (d->id <= 0) {
        st = weir_dset_open(d, &r->file, r->file.id, name, as, err);
        if (!st && d->rank != 1)
            st = weir_fail(err, WEIR_E_FORMAT, "dataset %s has another rank than a dump has", name);
    }
    if (!st && (row > d->rows || n > d->rows - row))
        st = weir_fail(err, WEIR_E_FORMAT, "dataset %s has %" PRId64 " entries, %" PRId64 " should be there", name,
                       d->rows, row + n);
    if (st) {
        weir_dset_close(d);
        return st;
    }
    const weir_fetch w = {.row = row, .n = n, .n_columns = 1, .out = out};
    return weir_fetch_run(&r->fetcher, d, &w, err);
}

/* --- strings: bytes, and offsets into them */

weir_status weir_read_strings_open(weir_dump_reader *r, weir_read_strings *s, const char *name, weir_err *err)
{
    weir_buf path = {0};
    weir_status st = WEIR_OK;
    if (s->offsets.id > 0)
        return WEIR_OK;
    if (weir_buf_printf(&path, "%s/bytes", name))
        st = weir_nomem(err, "a dump's strings");
    if (!st)
        st = weir_dset_open(&s->bytes, &r->file, r->file.id, path.p, WEIR_ELEM_U8, err);
    path.n = 0;
    if (!st && weir_buf_printf(&path, "%s/offsets", name))
        st = weir_nomem(err, "a dump's strings");
    if (!st)
        st = weir_dset_open(&s->offsets, &r->file, r->file.id, path.p, WEIR_ELEM_I64, err);
    if (!st && (s->bytes.rank != 1 || s->offsets.rank != 1))
        st = weir_fail(err, WEIR_E_FORMAT, "group %s has another shape than in a dump", name);
    if (st) {
        weir_dset_close(&s->bytes);
        weir_dset_close(&s->offsets);
    }
    weir_buf_free(&path);
    return st;
}

void weir_read_strings_close(weir_read_strings *s)
{
    weir_dset_close(&s->bytes);
    weir_dset_close(&s->offsets);
}

weir_status weir_read_string(weir_dump_reader *r, weir_read_strings *s, const char *name, int64_t i, weir_buf *buf,
                             weir_str *out, weir_err *err)
{
    int64_t at[2] = {0, 0};
    WEIR_TRY(weir_read_strings_open(r, s, name, err));
    if (i < 0 || s->offsets.rows < 2 || i > s->offsets.rows - 2)
        return weir_fail(err, WEIR_E_FORMAT, "group %s has no string %" PRId64, name, i);
    const weir_fetch offsets = {.row = i, .n = 2, .n_columns = 1, .out = at};
    WEIR_TRY(weir_fetch_run(&r->fetcher, &s->offsets, &offsets, err));
    if (at[0] < 0 || at[1] < at[0] || at[1] > s->bytes.rows || at[1] - at[0] > WEIR_READ_BYTES_MAX)
        return weir_fail(err, WEIR_E_FORMAT, "group %s has wrong offsets for string %" PRId64, name, i);
    buf->n = 0;
    if (weir_buf_reserve(buf, (size_t)(at[1] - at[0]) + 1))
        return weir_nomem(err, "a dump's strings");
    const weir_fetch bytes = {.row = at[0], .n = at[1] - at[0], .n_columns = 1, .out = buf->p};
    WEIR_TRY(weir_fetch_run(&r->fetcher, &s->bytes, &bytes, err));
    *out = (weir_str){buf->p, (size_t)bytes.n};
    return WEIR_OK;
}
