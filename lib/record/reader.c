/* record/reader.c: a dump opened, refreshed and closed. See reader.h. */
#include "reader.h"

#include <inttypes.h>
#include <string.h>

#include "base/parallel.h"

/* --- the header */

static weir_status check_format(weir_dump_reader *r, weir_err *err)
{
    int64_t version = 0;
    char *format;
    weir_status st = weir_h5_get_text(r->file.id, "format", &format, err);
    if (st)
        return st;
    if (!format)
        st = weir_fail(err, WEIR_E_FORMAT, "this HDF5 file is not a dump of weir's (no root attribute `format`)");
    else if (strcmp(format, WEIR_DUMP_FORMAT))
        st = weir_fail(err, WEIR_E_FORMAT, "this file has format \"%.40s\", not \"%s\"", format, WEIR_DUMP_FORMAT);
    else if (!weir_h5_get_int(r->file.id, "format_version", &version))
        st = weir_fail(err, WEIR_E_FORMAT, "the dump does not say its format_version");
    else if (version != WEIR_DUMP_VERSION)
        st = weir_fail(err, WEIR_E_UNSUPPORTED, "the dump has format_version %lld; this weir reads %d",
                       (long long)version, WEIR_DUMP_VERSION);
    weir_free(format);
    return st;
}

/* --- open, refresh, close */

/* Rows that tokens and every hook have. */
static weir_status count_rows(weir_dump_reader *r, weir_err *err)
{
    weir_dset d = {0};
    weir_status st = weir_dset_open(&d, &r->file, r->file.id, "tokens/id", WEIR_ELEM_I32, err);
    if (!st && d.rank != 1)
        st = weir_fail(err, WEIR_E_FORMAT, "dataset tokens/id has another rank than a dump has");
    r->rows = r->token_rows = weir_read_limit(r, "tokens", d.rows);
    weir_dset_close(&d);
    for (int i = 0; i < r->n_hooks; i++)
        if (r->hook[i].rows < r->rows)
            r->rows = r->hook[i].rows;
    return st;
}

static weir_status open_all(weir_dump_reader *r, weir_err *err)
{
    WEIR_TRY(weir_infile_open(&r->file, r->path, err));
    WEIR_TRY(check_format(r, err));
    WEIR_TRY(weir_read_progress(r, err));
    WEIR_TRY(weir_read_hooks(r, err));
    WEIR_TRY(count_rows(r, err));
    return weir_read_docs_open(r, err);
}

/* Every HDF5 object of the dump's own file but the file. */
static void close_objects(weir_dump_reader *r)
{
    weir_read_rows_close(r);
    weir_read_docs_close(r);
    weir_progress_close(&r->progress);
    if (r->group > 0)
        H5Gclose(r->group);
    r->group = 0;
}

static void free_reader(weir_dump_reader *r)
{
    close_objects(r);
    weir_read_rows_free(r);
    weir_read_docs_free(r);
    weir_infile_close(&r->file);
    for (int i = 0; i < r->n_hooks; i++) {
        weir_free((char *)r->hook[i].name);
        weir_free((char *)r->hook[i].letters);
        weir_free((int64_t *)r->hook[i].units);
    }
    for (int i = 0; i < r->n_attrs; i++) {
        weir_free(r->attr[i].name);
        weir_free(r->attr[i].text);
    }
    weir_free(r->hook);
    weir_free(r->store);
    weir_free(r->attr);
    weir_free(r->path);
    weir_free(r);
}

weir_status weir_dump_open(weir_dump_reader **out, const char *path, weir_err *err)
{
    weir_h5_quiet q;
    *out = NULL;
    weir_dump_reader *r = weir_calloc(1, sizeof *r);
    if (!r || !(r->path = weir_strndup(path, strlen(path)))) {
        weir_free(r);
        return weir_nomem(err, "a dump's reader");
    }
    r->cache.hook = -1;
    weir_h5_quiet_begin(&q);
    weir_status st = open_all(r, err);
    if (st) {
        weir_err_where(err, path, NULL, -1);
        free_reader(r);
        r = NULL;
    }
    weir_h5_quiet_end(&q);
    *out = r;
    return st;
}

void weir_dump_close(weir_dump_reader *r)
{
    weir_h5_quiet q;
    if (!r)
        return;
    weir_h5_quiet_begin(&q);
    free_reader(r);
    weir_h5_quiet_end(&q);
}

static weir_status refresh(weir_dump_reader *r, weir_err *err)
{
    r->cache.hook = -1;
    close_objects(r);
    WEIR_TRY(weir_infile_reopen(&r->file, err));
    WEIR_TRY(weir_read_progress(r, err));
    WEIR_TRY(weir_read_open_group(r, err));
    for (int i = 0; i < r->n_hooks; i++)
        WEIR_TRY(weir_read_recount(r, &r->hook[i], err));
    WEIR_TRY(count_rows(r, err));
    return weir_read_docs_refresh(r, err);
}

weir_status weir_dump_refresh(weir_dump_reader *r, weir_err *err)
{
    weir_h5_quiet q;
    weir_h5_quiet_begin(&q);
    weir_status st = refresh(r, err);
    if (st)
        weir_err_where(err, r->path, NULL, -1);
    weir_h5_quiet_end(&q);
    return st;
}

void weir_dump_set_threads(weir_dump_reader *r, int threads)
{
    weir_fetcher_free(&r->fetcher);
    r->fetcher.threads = threads > 0 ? weir_threads(threads) : 0;
}

void weir_dump_read_plainly(weir_dump_reader *r, bool plainly)
{
    r->fetcher.plain = plainly;
    r->cache.hook = -1;
}

/* --- what it holds */

weir_status weir_read_check_range(int64_t row, int64_t n, int64_t rows, weir_err *err)
{
    if (row < 0 || n < 0 || row > rows || n > rows - row)
        return weir_fail(err, WEIR_E_ARG, "%" PRId64 " rows from row %" PRId64 " on are asked of %" PRId64, n, row, rows);
    return WEIR_OK;
}

weir_status weir_read_leave(const weir_dump_reader *r, const weir_h5_quiet *q, weir_status st, weir_err *err)
{
    weir_h5_quiet_end(q);
    if (st)
        weir_err_where(err, r->path, NULL, -1);
    return st;
}

bool weir_dump_is_complete(const weir_dump_reader *r)
{
    return r->complete;
}

int64_t weir_dump_rows(const weir_dump_reader *r)
{
    return r->rows;
}

int weir_dump_n_hooks(const weir_dump_reader *r)
{
    return r->n_hooks;
}

const weir_dump_hook *weir_dump_hook_at(const weir_dump_reader *r, int i)
{
    return i >= 0 && i < r->n_hooks ? &r->hook[i] : NULL;
}

int weir_dump_find(const weir_dump_reader *r, const char *name)
{
    for (int i = 0; i < r->n_hooks; i++)
        if (!strcmp(r->hook[i].name, name))
            return i;
    return -1;
}

int64_t weir_dump_column(const weir_dump_reader *r, int i, int64_t unit)
{
    const weir_dump_hook *h = weir_dump_hook_at(r, i);
    if (!h)
        return -1;
    if (!h->units)
        return unit >= 0 && unit < h->width ? unit : -1;
    for (int64_t c = 0; c < h->width; c++)
        if (h->units[c] == unit)
            return c;
    return -1;
}

const char *weir_dump_attr(weir_dump_reader *r, const char *name)
{
    weir_h5_quiet q;
    for (int i = 0; i < r->n_attrs; i++)
        if (!strcmp(r->attr[i].name, name))
            return r->attr[i].text;
    void *grown = weir_realloc(r->attr, (size_t)r->n_attrs + 1, sizeof *r->attr);
    if (!grown)
        return NULL;
    r->attr = grown;
    weir_h5_quiet_begin(&q);
    char *text;
    weir_status st = weir_h5_get_text(r->file.id, name, &text, NULL);
    weir_h5_quiet_end(&q);
    char *key = !st && text ? weir_strndup(name, strlen(name)) : NULL;
    if (!key) {
        weir_free(text);
        return NULL;
    }
    r->attr[r->n_attrs].name = key;
    r->attr[r->n_attrs++].text = text;
    return text;
}
