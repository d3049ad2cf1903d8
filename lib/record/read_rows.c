/* record/read_rows.c: hooks read by rows, by columns, and as a stream. See reader.h. */
#include <inttypes.h>
#include <string.h>

#include "reader.h"

/* Memory for rows that are kept, or given out as a block; and blocks of narrow hooks are made at least so large, so
 * that threads have something to do. */
enum { KEPT_BYTES = 64 << 20, BLOCK_BYTES = 4 << 20 };

/* --- opening */

static weir_status open_hook(weir_dump_reader *r, int i, weir_err *err)
{
    weir_read_hook *h = &r->store[i];
    if (h->dset.id > 0)
        return WEIR_OK;
    weir_status st = weir_dset_open(&h->dset, &r->file, r->group, r->hook[i].name, WEIR_ELEM_F32, err);
    if (!st && (h->dset.rank < 2 || h->dset.width != r->hook[i].width || h->dset.rows < r->hook[i].rows))
        st = weir_fail(err, WEIR_E_FORMAT, "the dataset has changed");
    h->resolved = false;
    if (!st && h->dset.is_virtual)
        st = weir_virtual_parts_find(&h->parts, &h->dset, &h->resolved, err);
    if (st) {
        weir_virtual_parts_free(&h->parts);
        weir_dset_close(&h->dset);
    }
    return st;
}

void weir_read_rows_close(weir_dump_reader *r)
{
    for (int i = 0; r->store && i < r->n_hooks; i++) {
        weir_virtual_parts_free(&r->store[i].parts);
        weir_dset_close(&r->store[i].dset);
    }
    weir_sources_free(&r->sources);
}

void weir_read_rows_free(weir_dump_reader *r)
{
    weir_fetcher_free(&r->fetcher);
    weir_free_aligned(r->cache.data);
}

/* --- rows of a dataset that may lie in several files */

/* The part that holds `row`, or the first one behind it; n when there is none. */
static int64_t part_at(const weir_virtual_parts *p, int64_t row)
{
    int64_t low = 0, high = p->n;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (p->part[mid].row + p->part[mid].n <= row)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void fill_rows(const weir_dset *d, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(out + i, d->fill, sizeof *out);
}

static weir_status fetch_parts(weir_dump_reader *r, weir_read_hook *h, const weir_fetch *w, weir_err *err)
{
    float *out = w->out;
    int64_t row = w->row, end = w->row + w->n;
    for (int64_t k = part_at(&h->parts, row); row < end; k++) {
        const weir_part_rows *p = k < h->parts.n ? &h->parts.part[k] : NULL;
        int64_t gap = p && p->row < end ? p->row - row : end - row;
        if (gap > 0) {
            fill_rows(&h->dset, out, gap * w->n_columns);
            out += gap * w->n_columns;
            row += gap;
            if (row == end)
                break;
        }
        const weir_dset *its = NULL;
        weir_fetch part = *w;
        WEIR_TRY(weir_sources_get(&r->sources, &h->dset, p, &its, err));
        part.row = p->source_row + (row - p->row);
        part.n = p->row + p->n < end ? p->row + p->n - row : end - row;
        part.out = out;
        WEIR_TRY(weir_fetch_run(&r->fetcher, its, &part, err));
        out += part.n * w->n_columns;
        row += part.n;
    }
    return WEIR_OK;
}

static weir_status fetch(weir_dump_reader *r, int i, const weir_fetch *w, weir_err *err)
{
    weir_read_hook *h = &r->store[i];
    WEIR_TRY(open_hook(r, i, err));
    if (h->resolved && !r->fetcher.plain)
        return fetch_parts(r, h, w, err);
    return weir_fetch_run(&r->fetcher, &h->dset, w, err);
}

/* The rows around `row` whose chunks are the same: what is best read together. */
static weir_status band_at(weir_dump_reader *r, int i, int64_t row, int64_t *first, int64_t *n, weir_err *err)
{
    weir_read_hook *h = &r->store[i];
    WEIR_TRY(open_hook(r, i, err));
    const weir_dset *d = &h->dset;
    int64_t shift = 0, low = 0, high = r->hook[i].rows; /* of the part; shift: from its rows to ours */
    if (h->resolved) {
        int64_t k = part_at(&h->parts, row);
        const weir_part_rows *p = k < h->parts.n ? &h->parts.part[k] : NULL;
        if (p && p->row <= row) {
            WEIR_TRY(weir_sources_get(&r->sources, &h->dset, p, &d, err));
            shift = p->row - p->source_row;
            low = p->row;
            high = p->row + p->n < high ? p->row + p->n : high;
        } else {
            low = k > 0 ? h->parts.part[k - 1].row + h->parts.part[k - 1].n : 0;
            high = p && p->row < high ? p->row : high;
        }
    }
    const int64_t rows = d->chunk[0] > 0 ? d->chunk[0] : WEIR_TILE_ROWS, in = (row - shift) % rows;
    *first = row - in > low ? row - in : low;
    const int64_t end = row - in + rows < high ? row - in + rows : high;
    *n = end - *first;
    return WEIR_OK;
}

/* --- whole rows */

static weir_status fetch_rows(weir_dump_reader *r, int i, int64_t row, int64_t n, float *out, weir_err *err)
{
    const weir_fetch w = {.row = row, .n = n, .n_columns = r->hook[i].width, .out = out};
    return fetch(r, i, &w, err);
}

/* Makes the cache hold `row`: its band, or of a band that is too large the piece around it. */
static weir_status fill_cache(weir_dump_reader *r, int i, int64_t row, weir_err *err)
{
    weir_row_cache *c = &r->cache;
    int64_t first, n;
    const int64_t row_bytes = r->hook[i].width * (int64_t)sizeof(float);
    if (c->hook == i && row >= c->row && row < c->row + c->n)
        return WEIR_OK;
    WEIR_TRY(band_at(r, i, row, &first, &n, err));
    const int64_t piece = KEPT_BYTES / row_bytes > 1 ? KEPT_BYTES / row_bytes : 1, skip = (row - first) / piece * piece;
    first += skip;
    n = n - skip < piece ? n - skip : piece;
    c->hook = -1;
    if (c->bytes < (size_t)(n * row_bytes)) {
        weir_free_aligned(c->data);
        c->bytes = 0;
        if (!(c->data = weir_alloc_aligned((size_t)(n * row_bytes))))
            return weir_nomem(err, "rows that are read");
        c->bytes = (size_t)(n * row_bytes);
    }
    WEIR_TRY(fetch_rows(r, i, first, n, c->data, err));
    c->hook = i;
    c->row = first;
    c->n = n;
    return WEIR_OK;
}

/* Bands that are wanted whole go straight to `out`, pieces of bands through the cache. */
static weir_status read_rows(weir_dump_reader *r, int i, int64_t row, int64_t n, float *out, weir_err *err)
{
    const int64_t width = r->hook[i].width, end = row + n;
    while (row < end) {
        int64_t first, band, last, tail;
        WEIR_TRY(band_at(r, i, row, &first, &band, err));
        if (first == row && band <= end - row) {
            WEIR_TRY(band_at(r, i, end - 1, &last, &tail, err));
            n = (last + tail == end ? end : last) - row;
            WEIR_TRY(fetch_rows(r, i, row, n, out, err));
        } else {
            const weir_row_cache *c = &r->cache;
            WEIR_TRY(fill_cache(r, i, row, err));
            n = c->row + c->n < end ? c->row + c->n - row : end - row;
            memcpy(out, c->data + (row - c->row) * width, (size_t)(n * width) * sizeof *out);
        }
        row += n;
        out += n * width;
    }
    return WEIR_OK;
}

static weir_status check_hook(const weir_dump_reader *r, int i, int64_t row, int64_t n, weir_err *err)
{
    if (i < 0 || i >= r->n_hooks)
        return weir_fail(err, WEIR_E_ARG, "hook %d is asked of %d", i, r->n_hooks);
    return weir_read_check_range(row, n, r->hook[i].rows, err);
}

weir_status weir_dump_read(weir_dump_reader *r, int i, int64_t row, int64_t n, float *out, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(check_hook(r, i, row, n, err));
    weir_h5_quiet_begin(&q);
    weir_status st = read_rows(r, i, row, n, out, err);
    weir_h5_quiet_end(&q);
    if (st)
        weir_err_where(err, r->path, r->hook[i].name, -1);
    return st;
}

/* --- columns */

weir_status weir_dump_read_columns(weir_dump_reader *r, int i, const int64_t *column, int64_t n_columns, int64_t row,
                                   int64_t n, float *out, weir_err *err)
{
    weir_h5_quiet q;
    WEIR_TRY(check_hook(r, i, row, n, err));
    for (int64_t c = 0; c < n_columns; c++)
        if (column[c] < 0 || column[c] >= r->hook[i].width)
            return weir_fail(err, WEIR_E_ARG, "column %" PRId64 " is asked of %s, which has %" PRId64, column[c],
                             r->hook[i].name, r->hook[i].width);
    if (n == 0 || n_columns <= 0)
        return WEIR_OK;
    const weir_fetch w = {.row = row, .n = n, .column = column, .n_columns = n_columns, .out = out};
    weir_h5_quiet_begin(&q);
    weir_status st = fetch(r, i, &w, err);
    weir_h5_quiet_end(&q);
    if (st)
        weir_err_where(err, r->path, r->hook[i].name, -1);
    return st;
}

weir_status weir_dump_read_column(weir_dump_reader *r, int i, int64_t column, int64_t row, int64_t n, float *out,
                                  weir_err *err)
{
    return weir_dump_read_columns(r, i, &column, 1, row, n, out, err);
}

/* --- streams */

struct weir_dump_stream {
    weir_dump_reader *r;
    int hook;
    int64_t row, end;         /* rows that are still to come */
    int64_t n, column, group; /* rows of the present blocks, columns done, columns of a block */
    float *data;
    size_t bytes;
};

weir_status weir_dump_stream_open(weir_dump_stream **out, weir_dump_reader *r, int i, int64_t row, int64_t n,
                                  weir_err *err)
{
    *out = NULL;
    WEIR_TRY(check_hook(r, i, row, n, err));
    weir_dump_stream *s = weir_calloc(1, sizeof *s);
    if (!s)
        return weir_nomem(err, "a stream of rows");
    *s = (weir_dump_stream){.r = r, .hook = i, .row = row, .end = row + n};
    *out = s;
    return WEIR_OK;
}

void weir_dump_stream_close(weir_dump_stream *s)
{
    if (!s)
        return;
    weir_free_aligned(s->data);
    weir_free(s);
}

/* Rows of the next blocks: to the end of a band, and of narrow hooks to that of a later one. */
static weir_status next_rows(weir_dump_stream *s, weir_err *err)
{
    const int64_t width = s->r->hook[s->hook].width, row_bytes = width * (int64_t)sizeof(float);
    int64_t first, band;
    s->n = s->column = 0;
    while (s->row + s->n < s->end && s->n * row_bytes < BLOCK_BYTES) {
        WEIR_TRY(band_at(s->r, s->hook, s->row + s->n, &first, &band, err));
        if (s->n > 0 && (s->n + band) * row_bytes > KEPT_BYTES)
            break;
        s->n = first + band - s->row;
    }
    s->n = s->end - s->row < s->n ? s->end - s->row : s->n;
    if (s->n > KEPT_BYTES / (int64_t)sizeof(float)) /* a chunk of very many rows */
        s->n = KEPT_BYTES / (int64_t)sizeof(float);
    s->group = width;
    if (s->n * row_bytes > KEPT_BYTES) { /* in groups of columns that end where chunks do, whole heads at rank 3 */
        const weir_dset *d = &s->r->store[s->hook].dset;
        int64_t unit = d->rank == 3 ? d->inner : WEIR_TILE_COLS, fit = KEPT_BYTES / (s->n * (int64_t)sizeof(float));
        unit = unit > fit || unit > width ? 1 : unit;
        s->group = fit / unit * unit > 0 ? fit / unit * unit : 1;
    }
    return WEIR_OK;
}

static weir_status make_block(weir_dump_stream *s, weir_dump_block *b, weir_err *err)
{
    if (s->n == 0)
        WEIR_TRY(next_rows(s, err));
    const int64_t left = s->r->hook[s->hook].width - s->column;
    *b = (weir_dump_block){
        .row = s->row, .n = s->n, .column = s->column, .n_columns = left < s->group ? left : s->group};
    const size_t bytes = (size_t)(b->n * b->n_columns) * sizeof *s->data;
    if (bytes > s->bytes) {
        weir_free_aligned(s->data);
        s->bytes = 0;
        if (!(s->data = weir_alloc_aligned(bytes)))
            return weir_nomem(err, "a stream of rows");
        s->bytes = bytes;
    }
    const weir_fetch w = {.row = b->row, .n = b->n, .first = b->column, .n_columns = b->n_columns, .out = s->data};
    WEIR_TRY(fetch(s->r, s->hook, &w, err));
    b->data = s->data;
    s->column += b->n_columns;
    if (s->column == s->r->hook[s->hook].width) {
        s->row += s->n;
        s->n = 0;
    }
    return WEIR_OK;
}

weir_status weir_dump_stream_next(weir_dump_stream *s, weir_dump_block *block, weir_err *err)
{
    weir_h5_quiet q;
    *block = (weir_dump_block){.row = s->end};
    if (s->row >= s->end)
        return WEIR_OK;
    weir_h5_quiet_begin(&q);
    weir_status st = make_block(s, block, err);
    weir_h5_quiet_end(&q);
    if (st) {
        block->n = 0;
        weir_err_where(err, s->r->path, s->r->hook[s->hook].name, -1);
    }
    return st;
}
