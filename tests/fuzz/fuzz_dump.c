/* Reading dumps: an input edits a sound one (dump_edit.h), and everything in it that a reader can ask for is asked for.
 * A call may refuse with one line; what it says must hang together. */
#include <weir/record.h>

#define FUZZ_COST 10
#include "dump_edit.h"

enum { ROWS = 40, FLOATS = 1 << 16, COLUMNS = 5, STRIDE = 7 };

static void read_hook(weir_dump_reader *r, int i)
{
    static float x[FLOATS], again[FLOATS];
    const weir_dump_hook *h = weir_dump_hook_at(r, i);
    weir_err err = {0};
    PROMISE(h && h->name && h->rows >= 0 && h->width > 0 && h->heads > 0 && h->heads * h->size == h->width);
    PROMISE(weir_dump_find(r, h->name) >= 0 && h->letters);
    int64_t most = FLOATS / h->width, n = h->rows < ROWS ? h->rows : ROWS;
    n = n < most ? n : most;
    const int64_t row = h->rows - n;
    promise_error(weir_dump_read(r, i, row, n, x, &err), &err);
    const bool good = !err.code;
    int64_t column[COLUMNS];
    for (int64_t k = 0; k < COLUMNS; k++)
        column[k] = k * STRIDE % h->width;
    err = (weir_err){0};
    promise_error(weir_dump_read_columns(r, i, column, COLUMNS, row, n, again, &err), &err);
    for (int64_t k = 0; good && !err.code && k < n * COLUMNS; k++)
        PROMISE(!memcmp(&again[k], &x[k / COLUMNS * h->width + column[k % COLUMNS]], sizeof *x));
    err = (weir_err){0};
    promise_error(weir_dump_read_column(r, i, h->width - 1, row, n, again, &err), &err);
    for (int64_t k = 0; good && !err.code && k < n; k++)
        PROMISE(!memcmp(&again[k], &x[k * h->width + h->width - 1], sizeof *x));
    for (int64_t k = 0; h->units && k < h->width; k++)
        PROMISE(weir_dump_column(r, i, h->units[k]) >= 0);
}

static void read_stream(weir_dump_reader *r, int i)
{
    const weir_dump_hook *h = weir_dump_hook_at(r, i);
    weir_dump_stream *s;
    weir_dump_block block;
    weir_err err = {0};
    int64_t sum = 0, n = h->rows < ROWS ? h->rows : ROWS;
    if (h->width > FLOATS)
        return;
    promise_error(weir_dump_stream_open(&s, r, i, h->rows - n, n, &err), &err);
    for (bool more = !err.code; more;) {
        promise_error(weir_dump_stream_next(s, &block, &err), &err);
        more = !err.code && block.n > 0;
        sum += more ? block.n * block.n_columns : 0;
        PROMISE(!more || (block.data && block.column >= 0 && block.column + block.n_columns <= h->width));
    }
    PROMISE(err.code || sum == n * h->width);
    weir_dump_stream_close(s);
}

static void read_tokens(weir_dump_reader *r)
{
    static int32_t id[ROWS], id2[ROWS];
    static int64_t doc[ROWS], pos[ROWS], ctx_pos[ROWS], off[ROWS], len[ROWS];
    static uint8_t flags[ROWS];
    static float logprob[ROWS];
    const weir_token_columns all = {id, doc, pos, ctx_pos, off, len, flags, logprob};
    int64_t rows = weir_dump_rows(r), n = rows < ROWS ? rows : ROWS;
    weir_err err = {0};
    weir_str s;
    promise_error(weir_dump_read_tokens(r, rows - n, n, &all, &err), &err);
    bool good = !err.code;
    err = (weir_err){0};
    promise_error(weir_dump_read_ids(r, rows - n, n, id2, &err), &err);
    PROMISE(!good || err.code || !memcmp(id, id2, (size_t)n * sizeof *id));
    for (int64_t i = 0; good && i < n; i++) {
        err = (weir_err){0};
        promise_error(weir_dump_token_bytes(r, id[i], &s, &err), &err);
        PROMISE(err.code || s.p || !s.n);
    }
    err = (weir_err){0};
    promise_error(weir_dump_read_text(r, rows - n, n, &s, &err), &err);
}

static void read_docs(weir_dump_reader *r)
{
    int64_t n = weir_dump_n_docs(r);
    for (int64_t d = 0; d < n && d < ROWS; d++) {
        weir_dump_doc_rows rows;
        weir_err err = {0};
        promise_error(weir_dump_read_doc(r, d, &rows, &err), &err);
        PROMISE(err.code || (rows.row >= 0 && rows.n >= 0 && rows.row + rows.n <= weir_dump_rows(r) && rows.source.p));
        for (int i = 0; i < weir_dump_n_fields(r) && i < ROWS; i++) {
            weir_field f;
            bool there;
            weir_err bad = {0};
            PROMISE(weir_dump_find_field(r, weir_dump_field_at(r, i)->name) >= 0);
            promise_error(weir_dump_read_field(r, i, d, &f, &there, &bad), &bad);
            PROMISE(bad.code || f.type == weir_dump_field_at(r, i)->type);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    edit_input in = {data, size};
    edit_dump(&in, "dump.h5");
    weir_dump_reader *r;
    weir_err err = {0};
    promise_error(weir_dump_open(&r, parts_path("dump.h5"), &err), &err);
    PROMISE((r != NULL) == !err.code);
    if (r) {
        weir_dump_set_threads(r, 1);
        (void)weir_dump_is_complete(r);
        for (int i = 0; i < EDIT_ATTRIBUTES; i++)
            (void)weir_dump_attr(r, edit_attribute[i]);
        for (int i = 0; i < weir_dump_n_hooks(r); i++) {
            PROMISE(weir_dump_hook_at(r, i)->rows >= weir_dump_rows(r));
            read_hook(r, i);
            read_stream(r, i);
        }
        read_tokens(r);
        read_docs(r);
        promise_error(weir_dump_refresh(r, &err), &err);
    }
    weir_dump_close(r);
    unlink(parts_path("dump.h5"));
    return 0;
}
