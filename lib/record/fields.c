/* record/fields.c: see fields.h. */
#include "fields.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

/* --- names: '/' would make a group, "." means the group itself */

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

size_t weir_field_name(char *link)
{
    char *to = link;
    for (const char *p = strcmp(link, "%") ? link : ""; *p; p++) {
        bool escape = !strncmp(p, "%2F", 3) || !strncmp(p, "%25", 3) || !strncmp(p, "%2E", 3);
        *to++ = !escape ? *p : p[2] == 'F' ? '/' : p[2] == '5' ? '%' : '.';
        p += escape ? 2 : 0;
    }
    *to = '\0';
    return (size_t)(to - link);
}

/* --- columns */

static const void *missing(weir_field_type type)
{
    static const int64_t no_int = WEIR_FIELD_NO_INT;
    static const double no_float = NAN;
    static const uint8_t no_bool = WEIR_FIELD_NO_BOOL;
    switch (type) {
    case WEIR_FIELD_INT:
        return &no_int;
    case WEIR_FIELD_FLOAT:
        return &no_float;
    default:
        return &no_bool;
    }
}

static weir_tiled_spec layout(weir_field_type type)
{
    weir_tiled_spec spec = weir_tiled_column(type == WEIR_FIELD_INT     ? WEIR_ELEM_I64
                                             : type == WEIR_FIELD_FLOAT ? WEIR_ELEM_F64
                                                                        : WEIR_ELEM_U8);
    spec.filtered = false;
    spec.fill = missing(type);
    return spec;
}

/* One column more, with no dataset yet. */
static weir_status new_column(weir_field_table *t, weir_str name, weir_field_type type, weir_err *err)
{
    bool added;
    weir_field_column *grown = weir_grow(t->column, (size_t)t->n, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "document fields");
    t->column = grown;
    weir_field_column *c = &grown[t->n];
    memset(c, 0, sizeof *c);
    c->type = type;
    if (!(c->name = weir_strndup(name.p, name.n)))
        return weir_nomem(err, "document fields");
    t->n++;
    if (weir_strmap_add(&t->index, (weir_str){c->name, name.n}, t->n - 1, &added, NULL))
        return weir_nomem(err, "document fields");
    return WEIR_OK;
}

static weir_status create_column(weir_field_table *t, weir_tile_writer *w, const weir_field *f, weir_err *err)
{
    weir_buf link = {0};
    WEIR_TRY(new_column(t, f->name, f->type, err));
    weir_field_column *c = &t->column[t->n - 1];
    weir_status st = link_name(&link, f->name, err);
    if (!st && f->type == WEIR_FIELD_STRING) {
        st = weir_strings_create(&c->text, t->group, link.p, false, w, err);
    } else if (!st) {
        weir_tiled_spec spec = layout(f->type);
        st = weir_tiled_create(&c->value, t->group, link.p, &spec, w, err);
    }
    weir_buf_free(&link);
    return st;
}

weir_status weir_fields_create(weir_field_table *t, hid_t docs, weir_err *err)
{
    t->group = weir_h5_create_group(docs, "fields", false);
    return t->group < 0 ? weir_h5_fail(err, "cannot create group fields") : WEIR_OK;
}

weir_status weir_fields_declare(weir_field_table *t, weir_tile_writer *w, const weir_doc *doc, weir_err *err)
{
    if (t->typed)
        return WEIR_OK;
    t->typed = true;
    for (int i = 0; i < doc->n_fields; i++) {
        const weir_field *f = &doc->fields[i];
        bool storable = f->type != WEIR_FIELD_OTHER && !memchr(f->name.p, 0, f->name.n);
        if (storable && !weir_strmap_get(&t->index, f->name.p, f->name.n, NULL))
            WEIR_TRY(create_column(t, w, f, err));
    }
    return WEIR_OK;
}

/* --- going on with what is there */

weir_field_type weir_field_stored_type(hid_t loc, const char *link)
{
    weir_field_type found = WEIR_FIELD_OTHER;
    hid_t id = H5Oopen(loc, link, H5P_DEFAULT);
    if (id < 0)
        return found;
    if (H5Iget_type(id) == H5I_GROUP) {
        found = H5Lexists(id, "bytes", H5P_DEFAULT) > 0 ? WEIR_FIELD_STRING : WEIR_FIELD_OTHER;
    } else if (H5Iget_type(id) == H5I_DATASET) {
        hid_t type = H5Dget_type(id);
        H5T_class_t class = H5Tget_class(type);
        if (class == H5T_FLOAT)
            found = WEIR_FIELD_FLOAT;
        else if (class == H5T_INTEGER)
            found = H5Tget_size(type) == 1 ? WEIR_FIELD_BOOL : WEIR_FIELD_INT;
        H5Tclose(type);
    }
    H5Oclose(id);
    return found;
}

static weir_status open_column(weir_field_table *t, const char *link, const weir_tile_writer *w, weir_err *err)
{
    weir_field_type type = weir_field_stored_type(t->group, link);
    if (type == WEIR_FIELD_OTHER)
        return weir_fail(err, WEIR_E_FORMAT, "docs/fields/%.200s is no field of a dump: the file is damaged", link);
    char *name = weir_strndup(link, strlen(link));
    if (!name)
        return weir_nomem(err, "document fields");
    size_t n = weir_field_name(name);
    weir_status st = new_column(t, (weir_str){name, n}, type, err);
    weir_free(name);
    WEIR_TRY(st);
    weir_field_column *c = &t->column[t->n - 1];
    if (type == WEIR_FIELD_STRING)
        return weir_strings_open(&c->text, t->group, link, w, err);
    weir_tiled_spec spec = layout(type);
    return weir_tiled_open(&c->value, t->group, link, &spec, w, err);
}

weir_status weir_fields_open(weir_field_table *t, hid_t docs, bool typed, const weir_tile_writer *w, weir_err *err)
{
    H5G_info_t info;
    char link[1024];
    t->typed = typed;
    t->group = H5Gopen2(docs, "fields", H5P_DEFAULT);
    if (t->group < 0 || H5Gget_info(t->group, &info) < 0)
        return weir_h5_fail(err, "cannot open group fields");
    for (hsize_t i = 0; i < info.nlinks; i++) {
        ssize_t n = H5Lget_name_by_idx(t->group, ".", H5_INDEX_NAME, H5_ITER_INC, i, link, sizeof link, H5P_DEFAULT);
        if (n < 0 || (size_t)n >= sizeof link)
            return weir_fail(err, WEIR_E_UNSUPPORTED, "a field's name is too long to go on with");
        WEIR_TRY(open_column(t, link, w, err));
    }
    return WEIR_OK;
}

weir_status weir_fields_resume(weir_field_table *t, int64_t n, weir_err *err)
{
    for (int i = 0; i < t->n; i++) {
        weir_field_column *c = &t->column[i];
        WEIR_TRY(c->type == WEIR_FIELD_STRING ? weir_strings_resume(&c->text, n, err)
                                              : weir_tiled_resume(&c->value, n, err));
    }
    return WEIR_OK;
}

weir_status weir_fields_cut(weir_field_table *t, weir_err *err)
{
    for (int i = 0; i < t->n; i++) {
        weir_field_column *c = &t->column[i];
        WEIR_TRY(c->type == WEIR_FIELD_STRING ? weir_strings_cut(&c->text, err) : weir_tiled_cut(&c->value, err));
    }
    return WEIR_OK;
}

/* --- documents */

/* An integer may stand in a column of floats. */
static bool fits(const weir_field_column *c, const weir_field *f)
{
    return f->type == c->type || (c->type == WEIR_FIELD_FLOAT && f->type == WEIR_FIELD_INT);
}

static weir_status put_value(weir_field_column *c, weir_tile_writer *w, const weir_field *f, weir_err *err)
{
    const uint8_t flag = f->i != 0;
    const double real = f->type == WEIR_FIELD_INT ? (double)f->i : f->f;
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

static weir_status put_missing(weir_field_column *c, weir_tile_writer *w, weir_err *err)
{
    if (c->type == WEIR_FIELD_STRING)
        return weir_strings_append(&c->text, w, (weir_str){"", 0}, err);
    return weir_tiled_append(&c->value, w, missing(c->type), 1, err);
}

/* Where a field of the document goes; NULL: nowhere. */
static weir_field_column *place_of(const weir_field_table *t, const weir_field *f)
{
    int64_t at;
    if (!weir_strmap_get(&t->index, f->name.p, f->name.n, &at))
        return NULL;
    weir_field_column *c = &t->column[at];
    return c->seen || !fits(c, f) ? NULL : c;
}

/* Counts a field that goes nowhere; names the first few. */
static void drop(weir_field_table *t, weir_str name)
{
    const size_t room = sizeof t->dropped_name[0] - 1;
    size_t n = name.n < room ? name.n : room;
    while (n > 0 && n < name.n && (name.p[n] & 0xc0) == 0x80)
        n--;
    t->dropped++;
    for (int i = 0; i < WEIR_DROPPED_NAMES && n > 0; i++) {
        char *at = t->dropped_name[i];
        if (!*at)
            memcpy(at, name.p, n);
        if (strncmp(at, name.p, n) == 0 && !at[n])
            return;
    }
}

weir_status weir_fields_add(weir_field_table *t, weir_tile_writer *w, const weir_doc *doc, bool there, weir_err *err)
{
    WEIR_TRY(weir_fields_declare(t, w, doc, err));
    for (int i = 0; i < t->n; i++)
        t->column[i].seen = false;
    for (int i = 0; i < doc->n_fields; i++) {
        const weir_field *f = &doc->fields[i];
        weir_field_column *c = place_of(t, f);
        if (!c) {
            drop(t, f->name);
            continue;
        }
        c->seen = true;
        if (!there)
            WEIR_TRY(put_value(c, w, f, err));
    }
    for (int i = 0; i < t->n && !there; i++)
        if (!t->column[i].seen)
            WEIR_TRY(put_missing(&t->column[i], w, err));
    return WEIR_OK;
}

weir_status weir_fields_flush(weir_field_table *t, weir_tile_writer *w, weir_err *err)
{
    for (int i = 0; i < t->n; i++) {
        weir_field_column *c = &t->column[i];
        WEIR_TRY(c->type == WEIR_FIELD_STRING ? weir_strings_flush(&c->text, w, err)
                                              : weir_tiled_flush(&c->value, w, err));
    }
    return WEIR_OK;
}

weir_status weir_fields_sync(weir_field_table *t, weir_err *err)
{
    for (int i = 0; i < t->n; i++) {
        weir_field_column *c = &t->column[i];
        WEIR_TRY(c->type == WEIR_FIELD_STRING ? weir_strings_sync(&c->text, err) : weir_tiled_sync(&c->value, err));
    }
    return WEIR_OK;
}

void weir_fields_close(weir_field_table *t)
{
    for (int i = 0; i < t->n; i++) {
        weir_tiled_close(&t->column[i].value);
        weir_strings_close(&t->column[i].text);
        weir_free(t->column[i].name);
    }
    weir_free(t->column);
    weir_strmap_free(&t->index);
    if (t->group > 0)
        H5Gclose(t->group);
    memset(t, 0, sizeof *t);
}
