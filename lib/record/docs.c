/* record/docs.c: see docs.h. */
#include "docs.h"

#include <string.h>

#include "base/mem.h"

const weir_schema_column weir_doc_schema[WEIR_DOC_COLUMNS] = {
    [WEIR_DOC_START] = {"docs/start", WEIR_ELEM_I64},       [WEIR_DOC_COUNT] = {"docs/count", WEIR_ELEM_I64},
    [WEIR_DOC_BYTE_OFF] = {"docs/byte_off", WEIR_ELEM_I64}, [WEIR_DOC_BYTE_LEN] = {"docs/byte_len", WEIR_ELEM_I64},
    [WEIR_DOC_SOURCE] = {"docs/source", WEIR_ELEM_I32},
};

static weir_tiled_spec layout(int column)
{
    weir_tiled_spec spec = weir_tiled_column(weir_doc_schema[column].elem);
    spec.filtered = false;
    return spec;
}

weir_status weir_doc_table_create(weir_doc_table *t, hid_t file, weir_tile_writer *w, weir_err *err)
{
    t->group = weir_h5_create_group(file, "docs", false);
    if (t->group < 0)
        return weir_h5_fail(err, "cannot create group docs");
    WEIR_TRY(weir_fields_create(&t->fields, t->group, err));
    for (int i = 0; i < WEIR_DOC_COLUMNS; i++) {
        weir_tiled_spec spec = layout(i);
        WEIR_TRY(weir_tiled_create(&t->column[i], file, weir_doc_schema[i].path, &spec, w, err));
    }
    return weir_strings_create(&t->sources, file, "sources", false, w, err);
}

weir_status weir_doc_table_open(weir_doc_table *t, hid_t file, const weir_tile_writer *w, weir_err *err)
{
    hsize_t docs = 0;
    t->group = H5Gopen2(file, "docs", H5P_DEFAULT);
    if (t->group < 0)
        return weir_h5_fail(err, "cannot open group docs");
    for (int i = 0; i < WEIR_DOC_COLUMNS; i++) {
        weir_tiled_spec spec = layout(i);
        WEIR_TRY(weir_tiled_open(&t->column[i], file, weir_doc_schema[i].path, &spec, w, err));
    }
    hid_t space = H5Dget_space(t->column[WEIR_DOC_BYTE_OFF].id);
    H5Sget_simple_extent_dims(space, &docs, NULL);
    H5Sclose(space);
    WEIR_TRY(weir_fields_open(&t->fields, t->group, docs > 0, w, err));
    return weir_strings_open(&t->sources, file, "sources", w, err);
}

weir_status weir_doc_table_declare(weir_doc_table *t, weir_tile_writer *w, const weir_doc *doc, weir_err *err)
{
    return weir_fields_declare(&t->fields, w, doc, err);
}

weir_status weir_doc_table_source_of(weir_doc_table *t, int32_t source, int32_t **entry, weir_err *err)
{
    if (source < 0)
        return weir_fail(err, WEIR_E_ARG, "document source %d is negative", (int)source);
    if (source >= t->n_source_of) {
        int32_t *grown = weir_realloc(t->source_of, (size_t)source + 1, sizeof *grown);
        if (!grown)
            return weir_nomem(err, "document sources");
        t->source_of = grown;
        while (t->n_source_of <= source)
            t->source_of[t->n_source_of++] = -1;
    }
    *entry = &t->source_of[source];
    return WEIR_OK;
}

static weir_status open_doc(weir_doc_table *t, weir_err *err)
{
    if (t->open_n == t->open_cap) {
        int64_t cap = t->open_cap ? 2 * t->open_cap : 64;
        weir_doc_span *grown = weir_realloc(t->open, (size_t)cap, sizeof *grown);
        if (!grown)
            return weir_nomem(err, "open documents");
        t->open = grown;
        t->open_cap = cap;
    }
    t->open[t->open_n++] = (weir_doc_span){0, 0};
    return WEIR_OK;
}

weir_status weir_doc_table_add(weir_doc_table *t, weir_tile_writer *w, const weir_doc *doc, const char *source,
                               weir_err *err)
{
    int32_t *entry;
    if (t->there.next < t->there.n) {
        WEIR_TRY(weir_doc_table_same(t, doc, source, err));
        return weir_fields_add(&t->fields, w, doc, true, err);
    }
    WEIR_TRY(weir_doc_table_source_of(t, doc->source, &entry, err));
    if (*entry < 0) {
        *entry = (int32_t)weir_strings_count(&t->sources);
        WEIR_TRY(
            weir_strings_append(&t->sources, w, (weir_str){source ? source : "", source ? strlen(source) : 0}, err));
    }
    WEIR_TRY(weir_fields_add(&t->fields, w, doc, false, err));
    WEIR_TRY(weir_tiled_append(&t->column[WEIR_DOC_BYTE_OFF], w, &doc->byte_off, 1, err));
    WEIR_TRY(weir_tiled_append(&t->column[WEIR_DOC_BYTE_LEN], w, &doc->byte_len, 1, err));
    WEIR_TRY(weir_tiled_append(&t->column[WEIR_DOC_SOURCE], w, entry, 1, err));
    return open_doc(t, err);
}

int64_t weir_doc_table_count(const weir_doc_table *t)
{
    return t->closed + t->open_n;
}

static weir_status put_span(weir_doc_table *t, weir_tile_writer *w, weir_doc_span s, weir_err *err)
{
    WEIR_TRY(weir_tiled_append(&t->column[WEIR_DOC_START], w, &s.start, 1, err));
    return weir_tiled_append(&t->column[WEIR_DOC_COUNT], w, &s.count, 1, err);
}

/* Documents before `doc` get no more rows. Those without any begin where the next row stands. */
static weir_status close_before(weir_doc_table *t, weir_tile_writer *w, int64_t doc, int64_t row, weir_err *err)
{
    int64_t n = doc - t->closed;
    for (int64_t i = 0; i < n; i++) {
        weir_doc_span s = t->open[i];
        if (s.count == 0)
            s.start = row;
        WEIR_TRY(put_span(t, w, s, err));
    }
    if (n > 0) {
        memmove(t->open, t->open + n, (size_t)(t->open_n - n) * sizeof *t->open);
        t->open_n -= n;
        t->closed = doc;
    }
    return WEIR_OK;
}

weir_status weir_doc_table_rows(weir_doc_table *t, weir_tile_writer *w, int64_t doc, int64_t row, int64_t n,
                                weir_err *err)
{
    if (doc >= weir_doc_table_count(t) || doc < 0)
        return weir_fail(err, WEIR_E_ARG, "row %lld belongs to document %lld, which has not been declared",
                         (long long)row, (long long)doc);
    if (doc < t->closed)
        return weir_fail(err, WEIR_E_ARG,
                         "row %lld belongs to document %lld, but rows of document %lld stand before it", (long long)row,
                         (long long)doc, (long long)t->closed);
    WEIR_TRY(close_before(t, w, doc, row, err));
    if (t->open[0].count == 0)
        t->open[0].start = row;
    t->open[0].count += n;
    return WEIR_OK;
}

weir_status weir_doc_table_end(weir_doc_table *t, weir_tile_writer *w, int64_t rows, weir_err *err)
{
    return close_before(t, w, weir_doc_table_count(t), rows, err);
}

/* One column of spans, with that of the document whose rows come now. Its place in the band is taken for the moment
 * only: a band that is full has been written, so that there is room. */
static weir_status flush_span(weir_tiled *column, weir_tile_writer *w, const int64_t *now, weir_err *err)
{
    void *place = NULL;
    int64_t room = 0;
    if (!now)
        return column->n ? weir_tiled_flush(column, w, err) : WEIR_OK;
    WEIR_TRY(weir_tiled_room(column, 1, &place, &room, err));
    memcpy(place, now, sizeof *now);
    column->n++;
    column->kept = -1;
    weir_status st = weir_tiled_flush(column, w, err);
    column->n--;
    column->kept = -1;
    return st;
}

weir_status weir_doc_table_flush(weir_doc_table *t, weir_tile_writer *w, weir_err *err)
{
    const weir_doc_span *now = t->open_n > 0 && t->open[0].count > 0 ? t->open : NULL;
    for (int i = WEIR_DOC_BYTE_OFF; i < WEIR_DOC_COLUMNS; i++)
        WEIR_TRY(weir_tiled_flush(&t->column[i], w, err));
    WEIR_TRY(flush_span(&t->column[WEIR_DOC_START], w, now ? &now->start : NULL, err));
    WEIR_TRY(flush_span(&t->column[WEIR_DOC_COUNT], w, now ? &now->count : NULL, err));
    WEIR_TRY(weir_fields_flush(&t->fields, w, err));
    return weir_strings_flush(&t->sources, w, err);
}

weir_status weir_doc_table_sync(weir_doc_table *t, weir_err *err)
{
    for (int i = 0; i < WEIR_DOC_COLUMNS; i++)
        WEIR_TRY(weir_tiled_sync(&t->column[i], err));
    WEIR_TRY(weir_fields_sync(&t->fields, err));
    return weir_strings_sync(&t->sources, err);
}

int64_t weir_doc_table_written(const weir_doc_table *t)
{
    return t->closed + (t->open_n > 0 && t->open[0].count > 0);
}

void weir_doc_table_forget(weir_doc_table *t)
{
    for (int i = 0; i < WEIR_DOC_COLUMNS; i++)
        t->column[i].id = -1;
    for (int i = 0; i < t->fields.n; i++)
        t->fields.column[i].value.id = t->fields.column[i].text.bytes.id = t->fields.column[i].text.offsets.id = -1;
    t->sources.bytes.id = t->sources.offsets.id = -1;
    t->group = t->fields.group = -1;
}

void weir_doc_table_close(weir_doc_table *t)
{
    for (int i = 0; i < WEIR_DOC_COLUMNS; i++)
        weir_tiled_close(&t->column[i]);
    weir_fields_close(&t->fields);
    weir_strings_close(&t->sources);
    weir_free(t->source_of);
    weir_free(t->open);
    weir_free(t->there.byte_off);
    weir_free(t->there.byte_len);
    weir_free(t->there.source);
    if (t->group > 0)
        H5Gclose(t->group);
    memset(t, 0, sizeof *t);
}
