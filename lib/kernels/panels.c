/* kernels/panels.c: weights packed into column panels, once, when a layer is first used.
 *
 * A panel holds 48 outputs: [K][48], so that a tile reads 48 neighbouring weights for each k and the whole matrix
 * streams through the cache in the order in which it lies in memory. fp32, F16 and BF16 are copied; a block type stays
 * where it is (in the map of the file), and weir_panels_widen makes the fp32 panel of the tile that is being computed:
 * its rows are outputs, which are transposed, or k, which need no more than widening.
 */
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "io/filemap.h"
#include "kernels/kern.h"

#define ROWS_AT_ONCE 16       /* rows that one call of transpose takes */
#define PACK_K 256            /* k that are transposed before going to the next 16 rows: 48 KiB of a panel */
#define SLICE_BYTES (8 << 20) /* of a map that are packed before their pages are let go */

typedef struct pack_ctx {
    const weir_kern *kern;
    const weir_wview *w;
    weir_panels *p;
    int64_t size;    /* bytes of an element */
    int64_t k_chunk; /* k_major: rows of the tensor in one task */
    int64_t task0;   /* of the slice that is being packed */
} pack_ctx;

static int64_t stored_index(const weir_wview *w, int64_t n)
{
    return w->first + (w->row ? w->row[n] : n);
}

/* --- [n][k]: 16 rows of the tensor are transposed into 16 columns of the panel */
static void pack_rows(void *ctx, int64_t task, int thread)
{
    (void)thread;
    const pack_ctx *c = ctx;
    const weir_wview *w = c->w;
    const int64_t j = c->task0 + task, n0 = j * WEIR_PANEL, n1 = weir_min64(w->n, n0 + WEIR_PANEL);
    char *panel = (char *)c->p->data + (size_t)(j * WEIR_PANEL * w->k * c->size);
    if (n1 - n0 < WEIR_PANEL)
        memset(panel, 0, (size_t)(WEIR_PANEL * w->k * c->size));
    for (int64_t k0 = 0; k0 < w->k; k0 += PACK_K)
        for (int64_t n = n0; n < n1; n += ROWS_AT_ONCE) {
            const int rows = (int)weir_min64(ROWS_AT_ONCE, n1 - n);
            const int64_t cols = weir_min64(PACK_K, w->k - k0);
            const void *row[ROWS_AT_ONCE];
            for (int r = 0; r < rows; r++)
                row[r] = (const char *)w->t->data + (stored_index(w, n + r) * w->stride + k0) * c->size;
            char *dst = panel + (k0 * WEIR_PANEL + n - n0) * c->size;
            if (c->size == 4)
                c->kern->transpose((float *)dst, WEIR_PANEL, (const weir_f32u *const *)row, rows, cols);
            else
                c->kern->transpose16((uint16_t *)dst, WEIR_PANEL, (const weir_u16u *const *)row, rows, cols);
        }
}

/* --- [k][n]: pieces of 48 neighbours are copied; a few panels at a time, so that reads and writes both run on for a
 * while */
#define PANELS_AT_ONCE 8

static void copy_piece(const pack_ctx *c, char *dst, const char *src, int64_t n, int64_t count)
{
    const size_t size = (size_t)c->size;
    if (!c->w->row) {
        memcpy(dst, src + (size_t)(c->w->first + n) * size, (size_t)count * size);
    } else {
        for (int64_t i = 0; i < count; i++)
            memcpy(dst + (size_t)i * size, src + (size_t)stored_index(c->w, n + i) * size, size);
    }
    if (count < WEIR_PANEL)
        memset(dst + (size_t)count * size, 0, (size_t)(WEIR_PANEL - count) * size);
}

static void pack_columns(void *ctx, int64_t task, int thread)
{
    (void)thread;
    const pack_ctx *c = ctx;
    const weir_wview *w = c->w;
    const int64_t chunk = c->task0 + task;
    const int64_t panels = weir_ceil_div(w->n, WEIR_PANEL), line = WEIR_PANEL * c->size;
    const int64_t k0 = chunk * c->k_chunk, k1 = weir_min64(w->k, k0 + c->k_chunk);
    for (int64_t g = 0; g < panels; g += PANELS_AT_ONCE)
        for (int64_t k = k0; k < k1; k++) {
            const char *src = (const char *)w->t->data + k * w->stride * c->size;
            for (int64_t j = g; j < weir_min64(panels, g + PANELS_AT_ONCE); j++) {
                const int64_t n = j * WEIR_PANEL;
                char *dst = (char *)c->p->data + (j * w->k + k) * line;
                copy_piece(c, dst, src, n, weir_min64(WEIR_PANEL, w->n - n));
            }
        }
}

/* What tasks [t0, t1) read of the tensor. */
static const char *slice_of(const pack_ctx *c, int64_t t0, int64_t t1, size_t *bytes)
{
    const weir_wview *w = c->w;
    int64_t from = w->first + t0 * WEIR_PANEL, to = w->first + weir_min64(w->n, t1 * WEIR_PANEL);
    if (w->k_major) {
        from = t0 * c->k_chunk;
        to = weir_min64(w->k, t1 * c->k_chunk);
    } else if (w->row) { /* rows from anywhere */
        *bytes = w->t->bytes;
        return w->t->data;
    }
    *bytes = (size_t)((to - from) * w->stride * c->size);
    return (const char *)w->t->data + from * w->stride * c->size;
}

/* Slice by slice, so that no more of the map than one is in memory beside the panels. The next one is fetched
 * meanwhile. */
static void pack_mapped(pack_ctx *c, int threads, int64_t tasks, void (*body)(void *, int64_t, int))
{
    size_t bytes, next_bytes = 0;
    const char *next = slice_of(c, 0, 1, &bytes);
    const int64_t step = c->w->row ? tasks : weir_max64(1, SLICE_BYTES / (int64_t)bytes);
    const char *slice = slice_of(c, 0, weir_min64(tasks, step), &bytes);
    weir_map_fetch(slice, bytes);
    for (c->task0 = 0; c->task0 < tasks; c->task0 += step) {
        const int64_t end = weir_min64(tasks, c->task0 + step);
        if (end < tasks) {
            next = slice_of(c, end, weir_min64(tasks, end + step), &next_bytes);
            weir_map_fetch(next, next_bytes);
        }
        weir_parallel_for(threads, end - c->task0, 1, body, c);
        weir_map_drop(slice, bytes);
        slice = next;
        bytes = next_bytes;
    }
}

static weir_status pack_copy(weir_panels *p, const weir_wview *w, int threads, weir_err *err)
{
    const int64_t panels = weir_ceil_div(w->n, WEIR_PANEL);
    pack_ctx c = {.kern = weir_kern_best(), .w = w, .p = p, .size = weir_dtype_bytes(w->t->dtype), .k_chunk = 64};
    int64_t bytes;
    if (!weir_mul64(panels * WEIR_PANEL, w->k, &bytes) || !weir_mul64(bytes, c.size, &bytes))
        return weir_nomem(err, "packed weights");
    if (!w->pool)
        p->data = weir_alloc_aligned((size_t)bytes);
    else if ((p->piece = weir_panel_pool_take(w->pool, (size_t)bytes)))
        p->data = p->piece->p;
    if (!p->data)
        return weir_nomem(err, "packed weights");
    p->bytes = (size_t)bytes;
    const int64_t tasks = w->k_major ? weir_ceil_div(w->k, c.k_chunk) : panels;
    if (w->mapped)
        pack_mapped(&c, threads, tasks, w->k_major ? pack_columns : pack_rows);
    else
        weir_parallel_for(threads, tasks, 1, w->k_major ? pack_columns : pack_rows, &c);
    return WEIR_OK;
}

/* --- block types */
static weir_status keep_stored(weir_panels *p, const weir_wview *w, weir_err *err)
{
    p->row_bytes = w->stride / weir_dtype_block(w->t->dtype) * weir_dtype_bytes(w->t->dtype);
    p->stored = (const char *)w->t->data + w->first * p->row_bytes;
    p->k_major = w->k_major;
    p->mapped = w->mapped;
    if (w->row) {
        const int64_t rows = w->k_major ? w->k : w->n;
        p->row = weir_calloc((size_t)rows, sizeof *p->row);
        if (!p->row)
            return weir_nomem(err, "a row map of packed weights");
        memcpy(p->row, w->row, (size_t)rows * sizeof *p->row);
        p->bytes = (size_t)rows * sizeof *p->row;
    }
    return WEIR_OK;
}

#define GROUP 16 /* elements of a block type that can be widened on their own */
/* k of whole groups that cover WEIR_QUANT_K columns, wherever they begin */
#define WIDE_K (WEIR_QUANT_K + 2 * GROUP)

size_t weir_dequant_scratch(void)
{
    return (size_t)WEIR_QUANT_K * WEIR_PANEL + (size_t)(ROWS_AT_ONCE + 1) * WIDE_K;
}

/* Stored rows [from, from + n) of the view, n <= ROWS_AT_ONCE. */
static void stored_rows(const weir_panels *p, int64_t from, int n, const void **row)
{
    for (int r = 0; r < n; r++)
        row[r] = p->stored + (p->row ? p->row[from + r] : from + r) * p->row_bytes;
}

/* Asks for the elements [from, to) of the rows that come next, if there are any: rows of blocks lie too far apart for
 * the processor to see where it goes. */
static void fetch_ahead(const weir_panels *p, int64_t first, int64_t from, int64_t to)
{
    const int64_t block = weir_dtype_block(p->type), size = weir_dtype_bytes(p->type);
    const int64_t rows = p->k_major ? p->k : p->n, last = weir_min64(rows, first + ROWS_AT_ONCE);
    const void *row[ROWS_AT_ONCE];
    if (first >= last)
        return;
    stored_rows(p, first, (int)(last - first), row);
    for (int64_t r = 0; r < last - first; r++)
        for (const char *at = (const char *)row[r] + from / block * size,
                        *end = (const char *)row[r] + weir_ceil_div(to, block) * size;
             at < end; at += 64)
            __builtin_prefetch(at);
}

/* Rows are outputs: 16 of them are widened and transposed. */
static void widen_outputs(const weir_kern *k, const weir_panels *p, int64_t j, int64_t k0, int64_t kn, float *scratch)
{
    const int64_t from = k0 / GROUP * GROUP, to = weir_ceil_div(k0 + kn, GROUP) * GROUP;
    float *wide = scratch + WEIR_QUANT_K * WEIR_PANEL, *zero = wide + ROWS_AT_ONCE * WIDE_K;
    memset(zero, 0, WIDE_K * sizeof *zero);
    for (int g = 0; g < WEIR_PANEL; g += ROWS_AT_ONCE) {
        const int64_t n = j * WEIR_PANEL + g;
        const int there = (int)weir_max64(0, weir_min64(ROWS_AT_ONCE, p->n - n));
        const void *stored[ROWS_AT_ONCE];
        const weir_f32u *row[ROWS_AT_ONCE];
        stored_rows(p, n, there, stored);
        fetch_ahead(p, n + ROWS_AT_ONCE, from, to);
        k->dequant(p->type, stored, there, from, to - from, wide, WIDE_K);
        for (int r = 0; r < ROWS_AT_ONCE; r++)
            row[r] = r < there ? wide + r * WIDE_K + (k0 - from) : zero;
        k->transpose(scratch + g, WEIR_PANEL, row, ROWS_AT_ONCE, kn);
    }
}

/* Rows are k: they lie as the tile wants them. */
static void widen_inputs(const weir_kern *k, const weir_panels *p, int64_t j, int64_t k0, int64_t kn, float *scratch)
{
    const int64_t from = j * WEIR_PANEL, n = weir_min64(WEIR_PANEL, p->n - from);
    for (int64_t at = 0; at < kn; at += ROWS_AT_ONCE) {
        const int rows = (int)weir_min64(ROWS_AT_ONCE, kn - at);
        const void *stored[ROWS_AT_ONCE];
        stored_rows(p, k0 + at, rows, stored);
        fetch_ahead(p, k0 + at + ROWS_AT_ONCE, from, from + n);
        k->dequant(p->type, stored, rows, from, n, scratch + at * WEIR_PANEL, WEIR_PANEL);
    }
    for (int64_t at = 0; at < kn && n < WEIR_PANEL; at++)
        memset(scratch + at * WEIR_PANEL + n, 0, (size_t)(WEIR_PANEL - n) * sizeof *scratch);
}

const float *weir_panels_widen(const weir_kern *k, const weir_panels *p, int64_t j, int64_t k0, int64_t kn,
                               float *scratch)
{
    (p->k_major ? widen_inputs : widen_outputs)(k, p, j, k0, kn, scratch);
    return scratch;
}

/* --- the object */

/* Every stored number that the view names lies inside the tensor. first and row count stored rows, but columns where
 * rows of single numbers are k. */
static bool view_fits(const weir_wview *w)
{
    const int64_t block = weir_dtype_block(w->t->dtype), bytes = weir_dtype_bytes(w->t->dtype);
    const bool columns = w->k_major && block == 1;
    const int64_t rows = w->k_major ? w->k : w->n, cols = w->k_major ? w->n : w->k, mapped = columns ? cols : rows;
    int64_t most = mapped - 1, end;
    if (w->row)
        for (int64_t i = 0, m = most = 0; i < mapped; i++, most = m)
            m = weir_max64(m, w->row[i] < 0 ? INT64_MAX / 2 : w->row[i]);
    if (w->n <= 0 || w->k <= 0 || w->first < 0 || most < 0 || w->stride % block || cols % block)
        return false;
    if (!weir_add64(most, w->first, &most))
        return false;
    const int64_t last_row = columns ? rows - 1 : most, last_col = columns ? most : cols - 1;
    if (last_col >= w->stride || !weir_mul64(last_row, w->stride, &end) ||
        !weir_add64(end, last_col / block * block + block, &end))
        return false;
    return weir_mul64(end / block, bytes, &end) && (uint64_t)end <= w->t->bytes;
}

weir_status weir_panels_new(weir_panels **out, const weir_wview *w, int threads, weir_err *err)
{
    const weir_dtype type = w->t->dtype;
    const char *name = w->t->name ? w->t->name : "?";
    *out = NULL;
    if (type >= WEIR_DTYPE_COUNT)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "weights '%s' have a type that weir cannot compute with", name);
    if (!view_fits(w))
        return weir_fail(err, WEIR_E_SHAPE, "weights '%s' are smaller than the %lld x %lld that is read from them",
                         name, (long long)w->n, (long long)w->k);
    weir_panels *p = weir_calloc(1, sizeof *p);
    if (!p)
        return weir_nomem(err, "packed weights");
    p->type = type;
    p->n = w->n;
    p->k = w->k;
    const weir_status s = weir_dtype_block(type) > 1 ? keep_stored(p, w, err) : pack_copy(p, w, threads, err);
    if (s) {
        weir_panels_free(p);
        return s;
    }
    *out = p;
    return WEIR_OK;
}

void weir_panels_drop(const weir_panels *p)
{
    const int64_t rows = p->k_major ? p->k : p->n;
    int64_t from = p->row ? INT64_MAX : 0, to = p->row ? 0 : rows;
    if (!p->stored || !p->mapped)
        return;
    for (int64_t i = 0; p->row && i < rows; i++) {
        from = weir_min64(from, p->row[i]);
        to = weir_max64(to, p->row[i] + 1);
    }
    weir_map_drop(p->stored + from * p->row_bytes, (size_t)((to - from) * p->row_bytes));
}

void weir_panels_free(weir_panels *p)
{
    if (!p)
        return;
    if (p->piece)
        weir_panel_pool_give(p->piece);
    else
        weir_free_aligned(p->data);
    weir_free(p->row);
    weir_free(p);
}

int64_t weir_panels_bytes(const weir_panels *p)
{
    return (int64_t)(p->bytes + sizeof *p);
}
