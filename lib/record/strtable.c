/* record/strtable.c: see strtable.h. */
#include "strtable.h"

#include "base/mem.h"
#include "schema.h"

static void layout(weir_tiled_spec *bytes, weir_tiled_spec *offsets, bool filtered)
{
    *bytes = weir_tiled_column(WEIR_ELEM_U8);
    *offsets = weir_tiled_column(WEIR_ELEM_I64);
    bytes->tile_rows = WEIR_TILE_BYTES;
    bytes->filtered = offsets->filtered = filtered;
}

weir_status weir_strings_create(weir_strings *s, hid_t loc, const char *name, bool filtered, weir_tile_writer *w,
                                weir_err *err)
{
    weir_tiled_spec bytes, offsets;
    const int64_t zero = 0;
    layout(&bytes, &offsets, filtered);
    hid_t g = weir_h5_create_group(loc, name, false);
    if (g < 0)
        return weir_h5_fail(err, "cannot create group %s", name);
    weir_status st = weir_tiled_create(&s->bytes, g, "bytes", &bytes, w, err);
    if (!st)
        st = weir_tiled_create(&s->offsets, g, "offsets", &offsets, w, err);
    H5Gclose(g);
    return st ? st : weir_tiled_append(&s->offsets, w, &zero, 1, err);
}

weir_status weir_strings_open(weir_strings *s, hid_t loc, const char *name, const weir_tile_writer *w, weir_err *err)
{
    weir_tiled_spec bytes, offsets;
    layout(&bytes, &offsets, false);
    hid_t g = H5Gopen2(loc, name, H5P_DEFAULT);
    if (g < 0)
        return weir_h5_fail(err, "cannot open group %s", name);
    weir_status st = weir_tiled_open(&s->bytes, g, "bytes", &bytes, w, err);
    if (!st)
        st = weir_tiled_open(&s->offsets, g, "offsets", &offsets, w, err);
    H5Gclose(g);
    return st;
}

weir_status weir_strings_resume(weir_strings *s, int64_t n, weir_err *err)
{
    int64_t end = 0;
    WEIR_TRY(weir_tiled_resume(&s->offsets, n + 1, err));
    WEIR_TRY(weir_tiled_read(&s->offsets, n, 1, &end, err));
    return weir_tiled_resume(&s->bytes, end, err);
}

weir_status weir_strings_cut(weir_strings *s, weir_err *err)
{
    WEIR_TRY(weir_tiled_cut(&s->offsets, err));
    return weir_tiled_cut(&s->bytes, err);
}

weir_status weir_strings_append(weir_strings *s, weir_tile_writer *w, weir_str text, weir_err *err)
{
    WEIR_TRY(weir_tiled_append(&s->bytes, w, text.p, (int64_t)text.n, err));
    int64_t end = weir_tiled_rows(&s->bytes);
    return weir_tiled_append(&s->offsets, w, &end, 1, err);
}

int64_t weir_strings_count(const weir_strings *s)
{
    return weir_tiled_rows(&s->offsets) - 1;
}

weir_status weir_strings_read(weir_strings *s, int64_t i, char **out, int64_t *n, weir_err *err)
{
    int64_t at[2];
    WEIR_TRY(weir_tiled_read(&s->offsets, i, 2, at, err));
    if (at[0] < 0 || at[1] < at[0] || at[1] > weir_tiled_rows(&s->bytes))
        return weir_fail(err, WEIR_E_FORMAT, "offsets of strings are damaged");
    *n = at[1] - at[0];
    if (!(*out = weir_calloc((size_t)*n + 1, 1)))
        return weir_nomem(err, "a string");
    weir_status st = weir_tiled_read(&s->bytes, at[0], *n, *out, err);
    if (st) {
        weir_free(*out);
        *out = NULL;
    }
    return st;
}

weir_status weir_strings_flush(weir_strings *s, weir_tile_writer *w, weir_err *err)
{
    WEIR_TRY(weir_tiled_flush(&s->bytes, w, err));
    return weir_tiled_flush(&s->offsets, w, err);
}

/* Bytes first: an offset in the file never points behind them. */
weir_status weir_strings_sync(weir_strings *s, weir_err *err)
{
    WEIR_TRY(weir_tiled_sync(&s->bytes, err));
    return weir_tiled_sync(&s->offsets, err);
}

void weir_strings_close(weir_strings *s)
{
    weir_tiled_close(&s->bytes);
    weir_tiled_close(&s->offsets);
}
