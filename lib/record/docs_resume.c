/* record/docs_resume.c: going on with /docs: what is kept of it, and whether documents that come again are the same. */
#include <string.h>

#include "base/mem.h"
#include "docs.h"

static weir_status read_there(weir_doc_table *t, int64_t n, weir_err *err)
{
    weir_docs_there *there = &t->there;
    there->byte_off = weir_calloc((size_t)n, sizeof *there->byte_off);
    there->byte_len = weir_calloc((size_t)n, sizeof *there->byte_len);
    there->source = weir_calloc((size_t)n, sizeof *there->source);
    if (!there->byte_off || !there->byte_len || !there->source)
        return weir_nomem(err, "documents");
    there->n = n;
    WEIR_TRY(weir_tiled_read(&t->column[WEIR_DOC_BYTE_OFF], 0, n, there->byte_off, err));
    WEIR_TRY(weir_tiled_read(&t->column[WEIR_DOC_BYTE_LEN], 0, n, there->byte_len, err));
    WEIR_TRY(weir_tiled_read(&t->column[WEIR_DOC_SOURCE], 0, n, there->source, err));
    /* Entries of /sources stand in the order of their first documents. */
    for (int64_t i = 0; i < n; i++) {
        if (there->source[i] < 0 || there->source[i] > there->n_sources)
            return weir_fail(err, WEIR_E_FORMAT, "/docs/source is damaged");
        if (there->source[i] == there->n_sources)
            there->n_sources++;
    }
    return WEIR_OK;
}

/* The last document is open: it may get more rows. */
static weir_status reopen_last(weir_doc_table *t, int64_t n, int64_t rows, weir_err *err)
{
    int64_t start = 0;
    WEIR_TRY(weir_tiled_resume(&t->column[WEIR_DOC_START], n, err));
    WEIR_TRY(weir_tiled_read(&t->column[WEIR_DOC_START], n - 1, 1, &start, err));
    if (start < 0 || start >= rows)
        return weir_fail(err, WEIR_E_FORMAT, "/docs/start is damaged");
    if (!(t->open = weir_calloc(1, sizeof *t->open)))
        return weir_nomem(err, "open documents");
    t->open[0] = (weir_doc_span){start, rows - start};
    t->open_n = t->open_cap = 1;
    t->closed = n - 1;
    return WEIR_OK;
}

weir_status weir_doc_table_resume(weir_doc_table *t, int64_t n, int64_t rows, weir_err *err)
{
    if (n > 0)
        WEIR_TRY(reopen_last(t, n, rows, err));
    for (int i = 0; i < WEIR_DOC_COLUMNS; i++) {
        bool span = i == WEIR_DOC_START || i == WEIR_DOC_COUNT;
        WEIR_TRY(weir_tiled_resume(&t->column[i], span ? t->closed : n, err));
    }
    WEIR_TRY(read_there(t, n, err));
    WEIR_TRY(weir_strings_resume(&t->sources, t->there.n_sources, err));
    return weir_fields_resume(&t->fields, n, err);
}

weir_status weir_doc_table_cut(weir_doc_table *t, weir_tile_writer *w, weir_err *err)
{
    for (int i = 0; i < WEIR_DOC_COLUMNS; i++)
        WEIR_TRY(weir_tiled_cut(&t->column[i], err));
    WEIR_TRY(weir_strings_cut(&t->sources, err));
    WEIR_TRY(weir_fields_cut(&t->fields, err));
    return weir_doc_table_flush(t, w, err); /* the last document with the rows that are left of it */
}

static weir_status changed(int64_t doc, weir_err *err)
{
    return weir_fail(err, WEIR_E_ARG, "the text has changed: document %lld is another one than in the file",
                     (long long)doc);
}

/* The name of an entry of /sources that comes for the first time. */
static weir_status same_source(weir_doc_table *t, const char *source, int64_t doc, weir_err *err)
{
    char *name;
    int64_t n;
    WEIR_TRY(weir_strings_read(&t->sources, t->there.sources, &name, &n, err));
    bool same = (size_t)n == strlen(source ? source : "") && !memcmp(name, source ? source : "", (size_t)n);
    weir_status st =
        same ? WEIR_OK
             : weir_fail(err, WEIR_E_ARG, "the text has changed: document %lld came from %s, and comes from %s now",
                         (long long)doc, name, source ? source : "");
    weir_free(name);
    return st;
}

weir_status weir_doc_table_same(weir_doc_table *t, const weir_doc *doc, const char *source, weir_err *err)
{
    weir_docs_there *there = &t->there;
    int64_t i = there->next++;
    int32_t *entry;
    WEIR_TRY(weir_doc_table_source_of(t, doc->source, &entry, err));
    if (*entry < 0 && there->sources < there->n_sources) {
        WEIR_TRY(same_source(t, source, i, err));
        *entry = (int32_t)there->sources++;
    }
    if (doc->byte_off != there->byte_off[i] || doc->byte_len != there->byte_len[i] || *entry != there->source[i])
        return changed(i, err);
    return WEIR_OK;
}
