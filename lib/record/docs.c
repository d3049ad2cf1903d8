/* record/docs.c: see docs.h. Nothing here goes through a filter: /docs is small, and its last chunk is written again
 * and again. */
#include "docs.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "schema.h"

/* --- strings */

weir_status weir_strings_create(weir_strings *s, hid_t loc, const char *name, bool filtered, weir_tile_writer *w,
                                weir_err *err)
{
    weir_tiled_spec bytes = weir_tiled_column(WEIR_ELEM_U8), offsets = weir_tiled_column(WEIR_ELEM_I64);
    const int64_t zero = 0;
    bytes.tile_rows = WEIR_TILE_BYTES;
    bytes.filtered = offsets.filtered = filtered;
    hid_t g = weir_h5_create_group(loc, name, false);
    if (g < 0)
        return weir_h5_fail(err, "cannot create group %s", name);
    weir_status st = weir_tiled_create(&s->bytes, g, "bytes", &bytes, w, err);
    if (!st)
        st = weir_tiled_create(&s->offsets, g, "offsets", &offsets, w, err);
    H5Gclose(g);
    return st ? st : weir_tiled_append(&s->offsets, w, &zero, 1, err);
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

weir_status weir_strings_flush(weir_strings *s, weir_tile_writer *w, weir_err *err)
{
    WEIR_TRY(weir_tiled_flush(&s->bytes, w, err));
    return weir_tiled_flush(&s->offsets, w, err);
}

void weir_strings_close(weir_strings *s)
{
    weir_tiled_close(&s->bytes);
    weir_tiled_close(&s->offsets);
}

/* --- the table */

weir_status weir_doc_table_create(weir_doc_table *t, hid_t file, weir_tile_writer *w, weir_err *err)
{
    static const struct {
        const char *name;
        weir_elem elem;
    } columns[WEIR_DOC_COLUMNS] = {
        [WEIR_DOC_START] = {"start", WEIR_ELEM_I64},       [WEIR_DOC_COUNT] = {"count", WEIR_ELEM_I64},
        [WEIR_DOC_BYTE_OFF] = {"byte_off", WEIR_ELEM_I64}, [WEIR_DOC_BYTE_LEN] = {"byte_len", WEIR_ELEM_I64},
        [WEIR_DOC_SOURCE] = {"source", WEIR_ELEM_I32},
    };
    t->group = weir_h5_create_group(file, "docs", false);
    t->fields = t->group < 0 ? -1 : weir_h5_create_group(t->group, "fields", false);
    if (t->fields < 0)
        return weir_h5_fail(err, "cannot create group docs");
    for (int i = 0; i < WEIR_DOC_COLUMNS; i++) {
        weir_tiled_spec spec = weir_tiled_column(columns[i].elem);
        spec.filtered = false;
        WEIR_TRY(weir_tiled_create(&t->column[i], t->group, columns[i].name, &spec, w, err));
    }
    return weir_strings_create(&t->sources, file, "sources", false, w, err);
}

/* A field's name as the name of an HDF5 link: '/' would make a group, "." means the group itself. */
static weir_status link_name(weir_buf *out, weir_str name, weir_err *err)
{
    weir_status st = name.n ? WEIR_OK : weir_buf_add(out, "%", 1);
    for (size_t i = 0; i < name.n && !st; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c == '/' || c == '%' || (c == '.' && name.n == 1))
            st = weir_buf_printf(out, "%%%02X", c);
        else
            st = weir_buf_add(out, &name.p[i], 1);
    }
    return st ? weir_nomem(err, "a field's name") : WEIR_OK;
}

/* What stands where a document lacks a field: also the fill value of the dataset. */
static const void *missing(weir_field_type type)
{
    static const int64_t no_int = INT64_MIN;
    static const double no_float = NAN;
    static const uint8_t no_bool = 255;
    switch (type) {
    case WEIR_FIELD_INT:
        return &no_int;
    case WEIR_FIELD_FLOAT:
        return &no_float;
    default:
        return &no_bool;
    }
}

static weir_status create_field(weir_doc_table *t, weir_tile_writer *w, const weir_field *f, weir_err *err)
{
    weir_field_column *grown = weir_realloc(t->field, (size_t)t->n_fields + 1, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "document fields");
    t->field = grown;
    weir_field_column *c = &grown[t->n_fields];
    memset(c, 0, sizeof *c);
    c->type = f->type;
    if (!(c->name = weir_strndup(f->name.p, f->name.n)))
        return weir_nomem(err, "document fields");
    t->n_fields++;
    weir_buf link = {0};
    weir_status st = link_name(&link, f->name, err);
    if (!st && f->type == WEIR_FIELD_STRING)
        st = weir_strings_create(&c->text, t->fields, link.p, false, w, err);
    else if (!st) {
        weir_tiled_spec spec = weir_tiled_column(f->type == WEIR_FIELD_INT     ? WEIR_ELEM_I64
                                                 : f->type == WEIR_FIELD_FLOAT ? WEIR_ELEM_F64
                                                                               : WEIR_ELEM_U8);
        spec.filtered = false;
        spec.fill = missing(f->type);
        st = weir_tiled_create(&c->value, t->fields, link.p, &spec, w, err);
    }
    weir_buf_free(&link);
    return st;
}

static weir_field_column *find_field(weir_doc_table *t, weir_str name)
{
    for (int i = 0; i < t->n_fields; i++)
        if (strlen(t->field[i].name) == name.n && !memcmp(t->field[i].name, name.p, name.n))
            return &t->field[i];
    return NULL;
}

/* Appends a field's value if it has the column's type; an integer may stand in a column of floats. */
static weir_status put_field(weir_field_column *c, weir_tile_writer *w, const weir_field *f, weir_err *err)
{
    const uint8_t flag = f->i != 0;
    const double real = f->type == WEIR_FIELD_INT ? (double)f->i : f->f;
    bool fits = f->type == c->type || (c->type == WEIR_FIELD_FLOAT && f->type == WEIR_FIELD_INT);
    if (!fits || c->seen)
        return WEIR_OK;
    c->seen = true;
    switch (c->type) {
    case WEIR_FIELD_INT:
        return weir_tiled_append(&c->value, w, &f->i, 1, err);
    case WEIR_FIELD_FLOAT:
        return weir_tiled_append(&c->value, w, &real, 1, err);
    case WEIR_FIELD_BOOL:
        return weir_tiled_append(&c->value, w, &flag, 1, err);
    default:
        return weir_strings_append(&c->text, w, f->str, err);
    }
}

static weir_status put_fields(weir_doc_table *t, weir_tile_writer *w, const weir_doc *doc, weir_err *err)
{
    if (!t->typed) {
        t->typed = true;
        for (int i = 0; i < doc->n_fields; i++)
            if (doc->fields[i].type != WEIR_FIELD_OTHER && !memchr(doc->fields[i].name.p, 0, doc->fields[i].name.n) &&
                !find_field(t, doc->fields[i].name))
                WEIR_TRY(create_field(t, w, &doc->fields[i], err));
    }
    int stored = 0;
    for (int i = 0; i < t->n_fields; i++)
        t->field[i].seen = false;
    for (int i = 0; i < doc->n_fields; i++) {
        weir_field_column *c = find_field(t, doc->fields[i].name);
        if (c)
            WEIR_TRY(put_field(c, w, &doc->fields[i], err));
    }
    for (int i = 0; i < t->n_fields; i++) {
        weir_field_column *c = &t->field[i];
        stored += c->seen;
        if (c->seen)
            continue;
        if (c->type == WEIR_FIELD_STRING)
            WEIR_TRY(weir_strings_append(&c->text, w, (weir_str){"", 0}, err));
        else
            WEIR_TRY(weir_tiled_append(&c->value, w, missing(c->type), 1, err));
    }
    t->dropped += doc->n_fields - stored;
    return WEIR_OK;
}

/* The entry of /sources for the reader's source number. */
static weir_status source_entry(weir_doc_table *t, weir_tile_writer *w, int32_t source, const char *name,
                                int32_t *entry, weir_err *err)
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
    if (t->source_of[source] < 0) {
        int64_t n = weir_strings_count(&t->sources);
        WEIR_TRY(weir_strings_append(&t->sources, w, (weir_str){name ? name : "", name ? strlen(name) : 0}, err));
        t->source_of[source] = (int32_t)n;
    }
    *entry = t->source_of[source];
    return WEIR_OK;
}

weir_status weir_doc_table_add(weir_doc_table *t, weir_tile_writer *w, const weir_doc *doc, const char *source,
                               weir_err *err)
{
    int32_t entry;
    if (t->open_n == t->open_cap) {
        int64_t cap = t->open_cap ? 2 * t->open_cap : 64;
        weir_doc_span *grown = weir_realloc(t->open, (size_t)cap, sizeof *grown);
        if (!grown)
            return weir_nomem(err, "open documents");
        t->open = grown;
        t->open_cap = cap;
    }
    WEIR_TRY(source_entry(t, w, doc->source, source, &entry, err));
    WEIR_TRY(put_fields(t, w, doc, err));
    WEIR_TRY(weir_tiled_append(&t->column[WEIR_DOC_BYTE_OFF], w, &doc->byte_off, 1, err));
    WEIR_TRY(weir_tiled_append(&t->column[WEIR_DOC_BYTE_LEN], w, &doc->byte_len, 1, err));
    WEIR_TRY(weir_tiled_append(&t->column[WEIR_DOC_SOURCE], w, &entry, 1, err));
    t->open[t->open_n++] = (weir_doc_span){0, 0};
    return WEIR_OK;
}

int64_t weir_doc_table_count(const weir_doc_table *t)
{
    return t->closed + t->open_n;
}

/* Documents before `doc` get no more rows. Those without any begin where the next row stands. */
static weir_status close_before(weir_doc_table *t, weir_tile_writer *w, int64_t doc, int64_t row, weir_err *err)
{
    int64_t n = doc - t->closed;
    for (int64_t i = 0; i < n; i++) {
        weir_doc_span s = t->open[i];
        if (s.count == 0)
            s.start = row;
        WEIR_TRY(weir_tiled_append(&t->column[WEIR_DOC_START], w, &s.start, 1, err));
        WEIR_TRY(weir_tiled_append(&t->column[WEIR_DOC_COUNT], w, &s.count, 1, err));
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

weir_status weir_doc_table_flush(weir_doc_table *t, weir_tile_writer *w, weir_err *err)
{
    for (int i = 0; i < WEIR_DOC_COLUMNS; i++)
        WEIR_TRY(weir_tiled_flush(&t->column[i], w, err));
    for (int i = 0; i < t->n_fields; i++) {
        if (t->field[i].type == WEIR_FIELD_STRING)
            WEIR_TRY(weir_strings_flush(&t->field[i].text, w, err));
        else
            WEIR_TRY(weir_tiled_flush(&t->field[i].value, w, err));
    }
    return weir_strings_flush(&t->sources, w, err);
}

void weir_doc_table_close(weir_doc_table *t)
{
    for (int i = 0; i < WEIR_DOC_COLUMNS; i++)
        weir_tiled_close(&t->column[i]);
    for (int i = 0; i < t->n_fields; i++) {
        weir_tiled_close(&t->field[i].value);
        weir_strings_close(&t->field[i].text);
        weir_free(t->field[i].name);
    }
    weir_strings_close(&t->sources);
    weir_free(t->field);
    weir_free(t->source_of);
    weir_free(t->open);
    if (t->fields > 0)
        H5Gclose(t->fields);
    if (t->group > 0)
        H5Gclose(t->group);
    memset(t, 0, sizeof *t);
}
