/* record/read_docs.c: documents of a dump and their fields. See reader.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "reader.h"

enum { FIELDS_MAX = 1 << 16 };

/* --- documents */

static weir_status read_doc(weir_dump_reader *r, int64_t doc, weir_dump_doc_rows *out, weir_err *err)
{
    int64_t v[WEIR_DOC_SOURCE], end;
    int32_t source;
    for (int k = 0; k < WEIR_DOC_SOURCE; k++)
        WEIR_TRY(weir_read_column(r, &r->doc[k], weir_doc_schema[k].path, WEIR_ELEM_I64, doc, 1, &v[k], err));
    WEIR_TRY(weir_read_column(r, &r->doc[WEIR_DOC_SOURCE], weir_doc_schema[WEIR_DOC_SOURCE].path, WEIR_ELEM_I32, doc, 1,
                              &source, err));
    const bool good = weir_add64(v[WEIR_DOC_START], v[WEIR_DOC_COUNT], &end);
    if (!good || (r->complete && end > r->rows))
        return weir_fail(err, WEIR_E_FORMAT, "document %" PRId64 " has rows that the dump does not have", doc);
    *out = (weir_dump_doc_rows){
        .row = v[WEIR_DOC_START], .byte_off = v[WEIR_DOC_BYTE_OFF], .byte_len = v[WEIR_DOC_BYTE_LEN]};
    out->row = out->row < r->rows ? out->row : r->rows;
    out->n = end < r->rows ? end - out->row : r->rows - out->row;
    return weir_read_string(r, &r->source, "sources", source, &r->name, &out->source, err);
}

/* --- fields */

typedef struct field_listing {
    weir_dump_reader *r;
    weir_err *err;
    weir_status st;
} field_listing;

static weir_status add_field(weir_dump_reader *r, hid_t group, const char *link, weir_err *err)
{
    weir_field_type type = weir_field_stored_type(group, link);
    if (type == WEIR_FIELD_OTHER) /* what later versions may add */
        return WEIR_OK;
    if (r->n_fields >= FIELDS_MAX)
        return weir_fail(err, WEIR_E_FORMAT, "the file has too many fields of documents");
    weir_read_field *grown = weir_grow(r->field, (size_t)r->n_fields, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "document fields");
    r->field = grown;
    weir_read_field *f = &grown[r->n_fields];
    memset(f, 0, sizeof *f);
    weir_buf path = {0};
    char *name = weir_strndup(link, strlen(link));
    if (!name || weir_buf_printf(&path, "docs/fields/%s", link)) {
        weir_free(name);
        weir_buf_free(&path);
        return weir_nomem(err, "document fields");
    }
    weir_field_name(name);
    f->pub = (weir_dump_field){name, type};
    f->path = path.p;
    r->n_fields++;
    return WEIR_OK;
}

static herr_t on_field(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
    field_listing *l = user;
    if (info->type == H5L_TYPE_HARD)
        l->st = add_field(l->r, group, name, l->err);
    return l->st ? -1 : 0;
}

static weir_status list_fields(weir_dump_reader *r, weir_err *err)
{
    field_listing l = {.r = r, .err = err, .st = WEIR_OK};
    hid_t g = H5Gopen2(r->file.id, "docs/fields", H5P_DEFAULT);
    if (g < 0) {
        H5Eclear2(H5E_DEFAULT);
        return WEIR_OK;
    }
    herr_t e = H5Literate(g, H5_INDEX_NAME, H5_ITER_INC, NULL, on_field, &l);
    H5Gclose(g);
    if (l.st)
        return l.st;
    return e < 0 ? weir_h5_fail(err, "cannot list group docs/fields") : WEIR_OK;
}

static weir_status read_field(weir_dump_reader *r, weir_read_field *f, int64_t doc, weir_field *out, bool *there,
                              weir_err *err)
{
    uint8_t truth;
    *out = (weir_field){.name = {f->pub.name, strlen(f->pub.name)}, .type = f->pub.type};
    *there = true;
    switch (f->pub.type) {
    case WEIR_FIELD_INT:
        WEIR_TRY(weir_read_column(r, &f->value, f->path, WEIR_ELEM_I64, doc, 1, &out->i, err));
        *there = out->i != WEIR_FIELD_NO_INT;
        break;
    case WEIR_FIELD_FLOAT:
        WEIR_TRY(weir_read_column(r, &f->value, f->path, WEIR_ELEM_F64, doc, 1, &out->f, err));
        *there = !isnan(out->f);
        break;
    case WEIR_FIELD_BOOL:
        WEIR_TRY(weir_read_column(r, &f->value, f->path, WEIR_ELEM_U8, doc, 1, &truth, err));
        *there = truth != WEIR_FIELD_NO_BOOL;
        out->i = truth == 1;
        break;
    default:
        return weir_read_string(r, &f->text, f->path, doc, &r->value, &out->str, err);
    }
    return WEIR_OK;
}

/* --- open, refresh, close */

/* A file without documents (made by another program) has none. */
static weir_status count_docs(weir_dump_reader *r, weir_err *err)
{
    weir_dset d = {0};
    weir_status st = WEIR_OK;
    r->n_docs = 0;
    if (H5Lexists(r->file.id, "docs", H5P_DEFAULT) > 0 && H5Lexists(r->file.id, "docs/start", H5P_DEFAULT) > 0) {
        st = weir_dset_open(&d, &r->file, r->file.id, "docs/start", WEIR_ELEM_I64, err);
        r->n_docs = weir_read_limit(r, "docs", d.rows);
        weir_dset_close(&d);
    }
    return st;
}

weir_status weir_read_docs_open(weir_dump_reader *r, weir_err *err)
{
    r->has_logprob = weir_read_has_logprob(r);
    WEIR_TRY(count_docs(r, err));
    return list_fields(r, err);
}

weir_status weir_read_docs_refresh(weir_dump_reader *r, weir_err *err)
{
    WEIR_TRY(count_docs(r, err));
    return r->n_fields == 0 ? list_fields(r, err) : WEIR_OK; /* they come with the first document */
}

void weir_read_docs_close(weir_dump_reader *r)
{
    for (int k = 0; k < WEIR_TOK_COLUMNS; k++)
        weir_dset_close(&r->token[k]);
    for (int k = 0; k < WEIR_DOC_COLUMNS; k++)
        weir_dset_close(&r->doc[k]);
    weir_read_strings_close(&r->source);
    for (int i = 0; i < r->n_fields; i++) {
        weir_dset_close(&r->field[i].value);
        weir_read_strings_close(&r->field[i].text);
    }
}

void weir_read_docs_free(weir_dump_reader *r)
{
    for (int i = 0; i < r->n_fields; i++) {
        weir_free((char *)r->field[i].pub.name);
        weir_free(r->field[i].path);
    }
    weir_free(r->field);
    weir_free(r->vocab.bytes);
    weir_free(r->vocab.offset);
    weir_buf_free(&r->name);
    weir_buf_free(&r->text);
    weir_buf_free(&r->value);
}

/* --- public */

int64_t weir_dump_n_docs(const weir_dump_reader *r)
{
    return r->n_docs;
}

int weir_dump_n_fields(const weir_dump_reader *r)
{
    return r->n_fields;
}

const weir_dump_field *weir_dump_field_at(const weir_dump_reader *r, int i)
{
    return i >= 0 && i < r->n_fields ? &r->field[i].pub : NULL;
}

int weir_dump_find_field(const weir_dump_reader *r, const char *name)
{
    for (int i = 0; i < r->n_fields; i++)
        if (!strcmp(r->field[i].pub.name, name))
            return i;
    return -1;
}

static weir_status check_doc(const weir_dump_reader *r, int64_t doc, weir_err *err)
{
    if (doc < 0 || doc >= r->n_docs)
        return weir_fail(err, WEIR_E_ARG, "document %" PRId64 " is asked of %" PRId64, doc, r->n_docs);
    return WEIR_OK;
}

weir_status weir_dump_read_doc(weir_dump_reader *r, int64_t doc, weir_dump_doc_rows *out, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(check_doc(r, doc, err));
    weir_h5_quiet_begin(&q);
    return weir_read_leave(r, &q, read_doc(r, doc, out, err), err);
}

weir_status weir_dump_read_field(weir_dump_reader *r, int i, int64_t doc, weir_field *out, bool *there, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(check_doc(r, doc, err));
    if (i < 0 || i >= r->n_fields)
        return weir_fail(err, WEIR_E_ARG, "field %d is asked of %d", i, r->n_fields);
    weir_h5_quiet_begin(&q);
    return weir_read_leave(r, &q, read_field(r, &r->field[i], doc, out, there, err), err);
}
