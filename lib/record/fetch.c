/* record/fetch.c: see fetch.h. */
#include "fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "unpack.h"

enum {
    JOBS = 512,             /* chunks that are located before they are read */
    PLAIN_BYTES = 16 << 20, /* of rows that HDF5 reads at a time to pick columns from */
};

/* --- which part of which chunk goes where */

/* Columns that lie together in a chunk and in the result. */
typedef struct run {
    int64_t chunk;           /* number of the chunk in its band of rows */
    int64_t outer, inner, n; /* in the dataset */
    int64_t slot;            /* first column of the result */
} run;

typedef struct plan {
    run *run; /* [n] ascending by chunk */
    int64_t n;
} plan;

/* Adds columns first .. first + n - 1, which go to slot .. slot + n - 1, cut where a chunk ends. */
static weir_status add_runs(plan *p, const weir_dset *d, int64_t first, int64_t n, int64_t slot)
{
    const int64_t across = (d->inner + d->chunk[2] - 1) / d->chunk[2];
    while (n > 0) {
        int64_t outer = first / d->inner, inner = first % d->inner, len = d->chunk[2] - inner % d->chunk[2];
        len = d->inner - inner < len ? d->inner - inner : len;
        len = n < len ? n : len;
        run *grown = weir_grow(p->run, (size_t)p->n, sizeof *grown);
        if (!grown)
            return WEIR_E_NOMEM;
        p->run = grown;
        p->run[p->n++] = (run){outer / d->chunk[1] * across + inner / d->chunk[2], outer, inner, len, slot};
        first += len;
        slot += len;
        n -= len;
    }
    return WEIR_OK;
}

static int by_chunk(const void *a, const void *b)
{
    const run *x = a, *y = b;
    if (x->chunk != y->chunk)
        return x->chunk < y->chunk ? -1 : 1;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

static weir_status make_plan(plan *p, const weir_dset *d, const weir_fetch *w, weir_err *err)
{
    weir_status st = WEIR_OK;
    if (!w->column) {
        st = add_runs(p, d, w->first, w->n_columns, 0);
    } else {
        for (int64_t i = 0, n; i < w->n_columns && !st; i += n) {
            for (n = 1; i + n < w->n_columns && w->column[i + n] == w->column[i] + n;)
                n++;
            st = add_runs(p, d, w->column[i], n, i);
        }
    }
    if (st)
        return weir_nomem(err, "the columns that are read");
    qsort(p->run, (size_t)p->n, sizeof *p->run, by_chunk);
    return WEIR_OK;
}

/* --- one chunk, on any thread */

typedef enum fault { FINE, UNREADABLE, WRONG_LENGTH, DAMAGED } fault;

typedef struct job {
    weir_chunk_place place;
    int64_t row; /* first row of the chunk */
    const run *run;
    int64_t n_runs;
    const uint8_t *src; /* the chunk in memory; NULL where it does not exist */
    fault fault;
    int error; /* errno, where it is UNREADABLE */
} job;

typedef struct batch {
    weir_fetcher *f;
    const weir_dset *d;
    const weir_fetch *w;
    job *job;
    int64_t n, step; /* step: jobs that a thread takes at a time, 1 or 2 */
} batch;

/* Reads a chunk that exists into buffer k. True: it has to be inflated. */
static bool load(const batch *b, job *j, int k)
{
    const weir_dset *d = b->d;
    const size_t n = (size_t)j->place.bytes;
    const bool deflated = d->deflate & ~j->place.skipped;
    if (!deflated && n != d->chunk_bytes) {
        j->fault = WRONG_LENGTH;
        return false;
    }
    j->error = weir_infile_pread(d->file, b->f->packed[k], n, j->place.offset);
    if (j->error)
        j->fault = UNREADABLE;
    else
        j->src = b->f->packed[k];
    return deflated && !j->error;
}

static void fill_run(const weir_dset *d, uint8_t *out, size_t stride, int64_t rows, int64_t n)
{
    const size_t bytes = weir_elem_bytes(d->as);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++)
            memcpy(out + (size_t)r * stride + (size_t)i * bytes, d->fill, bytes);
}

static void unpack_run(const weir_dset *d, const weir_unpack *u, size_t at, uint8_t *out, size_t stride, int64_t rows,
                       int64_t n)
{
    const size_t bytes = weir_elem_bytes(d->as), step = (size_t)(d->chunk[1] * d->chunk[2]);
    if (n == 1) {
        weir_unpack_column(u, at, step, (size_t)rows, out, stride / bytes);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        weir_unpack_run(u, at + (size_t)r * step, (size_t)n, out + (size_t)r * stride);
}

/* The chunk is in memory (or does not exist): its columns to their places. */
static void spread(const batch *b, const job *j)
{
    const weir_dset *d = b->d;
    const weir_fetch *w = b->w;
    const int64_t from = j->row > w->row ? j->row : w->row;
    const int64_t to = w->row + w->n - j->row < d->chunk[0] ? w->row + w->n : j->row + d->chunk[0];
    const size_t bytes = weir_elem_bytes(d->as), stride = (size_t)w->n_columns * bytes;
    const weir_unpack u = {.src = j->src,
                           .count = d->chunk_bytes / d->elem,
                           .elem = d->elem,
                           .shuffled = d->shuffle & ~j->place.skipped,
                           .half = d->half};
    for (int64_t k = 0; k < j->n_runs; k++) {
        const run *r = &j->run[k];
        uint8_t *out = (uint8_t *)w->out + (size_t)(from - w->row) * stride + (size_t)r->slot * bytes;
        int64_t at = ((from - j->row) * d->chunk[1] + r->outer % d->chunk[1]) * d->chunk[2] + r->inner % d->chunk[2];
        if (u.src)
            unpack_run(d, &u, (size_t)at, out, stride, to - from, r->n);
        else
            fill_run(d, out, stride, to - from, r->n);
    }
}

/* Jobs i * step .. of one thread: two chunks are inflated faster together than one after the other. */
static void do_jobs(void *ctx, int64_t i, int thread)
{
    const batch *b = ctx;
    job *j = &b->job[i * b->step], *packed[2];
    weir_zlib z[2];
    int n = 0;
    const int64_t many = b->n - i * b->step < b->step ? b->n - i * b->step : b->step;
    for (int k = 0; k < many; k++) {
        if (j[k].place.bytes == 0 || !load(b, &j[k], 2 * thread + k))
            continue;
        z[n] = (weir_zlib){.src = j[k].src,
                           .n = (size_t)j[k].place.bytes,
                           .out = b->f->chunk[2 * thread + k],
                           .out_n = b->d->chunk_bytes};
        packed[n++] = &j[k];
    }
    if (n > 0)
        weir_inflate_some(b->f->inflater[thread], z, n);
    for (int k = 0; k < n; k++) {
        packed[k]->src = z[k].out;
        packed[k]->fault = z[k].good ? FINE : DAMAGED;
    }
    for (int k = 0; k < many; k++)
        if (j[k].fault == FINE)
            spread(b, &j[k]);
}

/* --- batches of chunks */

void weir_fetcher_free(weir_fetcher *f)
{
    for (int i = 0; i < 2 * f->n_slots; i++) {
        weir_free_aligned(f->packed[i]);
        weir_free_aligned(f->chunk[i]);
    }
    for (int i = 0; i < f->n_slots; i++)
        weir_inflater_free(f->inflater[i]);
    weir_free(f->inflater);
    weir_free(f->packed);
    weir_free(f->chunk);
    *f = (weir_fetcher){.threads = f->threads, .plain = f->plain};
}

static weir_status make_slots(weir_fetcher *f, weir_err *err)
{
    if (f->n_slots > 0)
        return WEIR_OK;
    if (f->threads <= 0)
        f->threads = weir_threads(0);
    f->inflater = weir_calloc((size_t)f->threads, sizeof *f->inflater);
    f->packed = weir_calloc(2 * (size_t)f->threads, sizeof *f->packed);
    f->chunk = weir_calloc(2 * (size_t)f->threads, sizeof *f->chunk);
    f->packed_bytes = f->chunk_bytes = 0;
    if (!f->inflater || !f->packed || !f->chunk) {
        weir_fetcher_free(f);
        return weir_nomem(err, "chunks that are read");
    }
    f->n_slots = f->threads;
    for (int i = 0; i < f->n_slots; i++) {
        weir_status st = weir_inflater_new(&f->inflater[i], err);
        if (st) {
            weir_fetcher_free(f);
            return st;
        }
    }
    return WEIR_OK;
}

/* Grows n buffers to at least `bytes`; what is in them is lost. */
static weir_status grow(uint8_t **buf, int n, size_t *have, size_t bytes, weir_err *err)
{
    if (bytes <= *have)
        return WEIR_OK;
    bytes += bytes / 4; /* packed chunks differ a little in size */
    *have = 0;
    for (int i = 0; i < n; i++) {
        weir_free_aligned(buf[i]);
        if (!(buf[i] = weir_alloc_aligned(bytes + WEIR_INFLATE_SLACK)))
            return weir_nomem(err, "chunks that are read");
    }
    *have = bytes;
    return WEIR_OK;
}

static weir_status make_room(const batch *b, weir_err *err)
{
    weir_fetcher *f = b->f;
    size_t largest = 0;
    for (int64_t i = 0; i < b->n; i++)
        if ((size_t)b->job[i].place.bytes > largest)
            largest = (size_t)b->job[i].place.bytes;
    WEIR_TRY(make_slots(f, err));
    WEIR_TRY(grow(f->packed, 2 * f->n_slots, &f->packed_bytes, largest, err));
    return grow(f->chunk, 2 * f->n_slots, &f->chunk_bytes, b->d->chunk_bytes, err);
}

static weir_status explain(const batch *b, const job *j, weir_err *err)
{
    const weir_dset *d = b->d;
    const int64_t last = (d->rows - j->row < d->chunk[0] ? d->rows : j->row + d->chunk[0]) - 1;
    weir_status st = WEIR_E_FORMAT;
    if (j->fault == UNREADABLE && j->error != ENODATA)
        st = weir_fail(err, WEIR_E_IO, "cannot read rows %" PRId64 " to %" PRId64 ": %s", j->row, last,
                       strerror(j->error));
    else if (j->fault == UNREADABLE)
        weir_fail(err, st, "rows %" PRId64 " to %" PRId64 " are missing: the file was cut short", j->row, last);
    else
        weir_fail(err, st, "rows %" PRId64 " to %" PRId64 " are damaged: %s", j->row, last,
                  j->fault == DAMAGED ? "they cannot be inflated" : "their chunk has a wrong length");
    weir_err_where(err, d->file->path, d->name, j->place.offset);
    return st;
}

static weir_status run_batch(batch *b, weir_err *err)
{
    WEIR_TRY(make_room(b, err));
    b->step = b->n >= 2 * b->f->threads ? 2 : 1;
    weir_parallel_for(b->f->threads, (b->n + b->step - 1) / b->step, 1, do_jobs, b);
    for (int64_t i = 0; i < b->n; i++)
        if (b->job[i].fault)
            return explain(b, &b->job[i], err);
    b->n = 0;
    return WEIR_OK;
}

static weir_status add_job(batch *b, int64_t row, const run *r, int64_t n_runs, weir_err *err)
{
    const weir_dset *d = b->d;
    job *j = &b->job[b->n];
    const hsize_t outer = (hsize_t)(r->outer - r->outer % d->chunk[1]);
    const hsize_t inner = (hsize_t)(r->inner - r->inner % d->chunk[2]);
    const hsize_t at[3] = {(hsize_t)row, d->rank == 3 ? outer : inner, inner};
    *j = (job){.row = row, .run = r, .n_runs = n_runs};
    WEIR_TRY(weir_infile_locate(d->file, d->id, at, &j->place, err));
    b->n++;
    return b->n < JOBS ? WEIR_OK : run_batch(b, err);
}

/* All chunks of one band of rows that hold columns of ours. */
static weir_status add_band(batch *b, const plan *p, int64_t row, weir_err *err)
{
    for (int64_t i = 0, n; i < p->n; i += n) {
        for (n = 1; i + n < p->n && p->run[i + n].chunk == p->run[i].chunk;)
            n++;
        WEIR_TRY(add_job(b, row, &p->run[i], n, err));
    }
    return WEIR_OK;
}

static weir_status fetch_direct(weir_fetcher *f, const weir_dset *d, const weir_fetch *w, weir_err *err)
{
    plan p = {0};
    batch b = {.f = f, .d = d, .w = w};
    weir_status st = make_plan(&p, d, w, err);
    if (!st && !(b.job = weir_calloc(JOBS, sizeof *b.job)))
        st = weir_nomem(err, "chunks that are read");
    for (int64_t row = w->row - w->row % d->chunk[0]; row < w->row + w->n && !st; row += d->chunk[0])
        st = add_band(&b, &p, row, err);
    if (!st && b.n > 0)
        st = run_batch(&b, err);
    weir_free(b.job);
    weir_free(p.run);
    return st;
}

/* --- through HDF5 */

static void pick(const weir_dset *d, const weir_fetch *w, const uint8_t *rows, int64_t n, uint8_t *out)
{
    const size_t bytes = weir_elem_bytes(d->as);
    for (int64_t r = 0; r < n; r++, rows += (size_t)d->width * bytes)
        for (int64_t c = 0; c < w->n_columns; c++, out += bytes)
            memcpy(out, rows + (size_t)(w->column ? w->column[c] : w->first + c) * bytes, bytes);
}

/* In whole bands of chunks where there are any, so that HDF5 inflates each chunk once. */
static weir_status fetch_plain(const weir_dset *d, const weir_fetch *w, weir_err *err)
{
    const int64_t row_bytes = d->width * (int64_t)weir_elem_bytes(d->as);
    const int64_t band = d->chunk[0] > 0 ? d->chunk[0] : 1;
    int64_t step = PLAIN_BYTES / row_bytes > 1 ? PLAIN_BYTES / row_bytes : 1;
    step = step > band ? step - step % band : step;
    if (!w->column && w->n_columns == d->width)
        return weir_dset_read_plain(d, w->row, w->n, w->out, err);
    uint8_t *rows = weir_alloc_aligned((size_t)(step * row_bytes));
    weir_status st = rows ? WEIR_OK : weir_nomem(err, "rows that are read");
    for (int64_t row = w->row, n; row < w->row + w->n && !st; row += n) {
        n = step - row % step;
        n = w->row + w->n - row < n ? w->row + w->n - row : n;
        st = weir_dset_read_plain(d, row, n, rows, err);
        if (!st)
            pick(d, w, rows, n, (uint8_t *)w->out + (row - w->row) * w->n_columns * (int64_t)weir_elem_bytes(d->as));
    }
    weir_free_aligned(rows);
    return st;
}

weir_status weir_fetch_run(weir_fetcher *f, const weir_dset *d, const weir_fetch *w, weir_err *err)
{
    if (w->n == 0 || w->n_columns == 0)
        return WEIR_OK;
    weir_status st = d->direct && !f->plain ? fetch_direct(f, d, w, err) : fetch_plain(d, w, err);
    if (st && st != WEIR_E_NOMEM)
        weir_err_where(err, d->file->path, d->name, -1);
    return st;
}
