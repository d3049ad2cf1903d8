/* --max-norm-ratio for a dump: rows at which the stream is far larger than it usually is in their window. Some models
 * have such tokens at places that no rule about ids finds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/signals.h"
#include "dump_impl.h"

enum { STEP = 1024 };

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for the norms of a window");
}

/* The window under way. */
typedef struct norms {
    double *x, *sorted; /* [room] norms of its rows */
    int64_t n, room;
    int64_t first; /* row of the dump */
} norms;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Marks the window's rows of high norm. Norms that are NaN are neither high nor part of the median. */
static void settle(norms *d, uint8_t *bit, double ratio)
{
    int64_t m = 0;
    for (int64_t i = 0; i < d->n; i++)
        if (!isnan(d->x[i]))
            d->sorted[m++] = d->x[i];
    if (m > 0) {
        qsort(d->sorted, (size_t)m, sizeof *d->sorted, by_value);
        double median = m % 2 ? d->sorted[m / 2] : (d->sorted[m / 2 - 1] + d->sorted[m / 2]) / 2;
        for (int64_t i = 0; i < d->n; i++)
            if (d->x[i] > ratio * median)
                bit[(d->first + i) / 8] |= (uint8_t)(1u << (d->first + i) % 8);
    }
    d->first += d->n;
    d->n = 0;
}

static bool push(norms *d, const float *x, int64_t width)
{
    if (d->n == d->room) {
        int64_t room = 2 * d->room + 1024;
        double *p = realloc(d->x, sizeof *p * (size_t)room);
        d->x = p ? p : d->x;
        double *q = realloc(d->sorted, sizeof *q * (size_t)room);
        d->sorted = q ? q : d->sorted;
        if (!p || !q)
            return false;
        d->room = room;
    }
    double sum = 0;
    for (int64_t i = 0; i < width; i++)
        sum += (double)x[i] * (double)x[i];
    d->x[d->n++] = sqrt(sum);
    return true;
}

/* Where a row's window begins tells windows apart. */
typedef struct places {
    int64_t doc[STEP], pos[STEP], ctx_pos[STEP];
} places;

static weir_status look(weir_neurons_dump *dump, weir_dump_stream *stream, norms *d, places *at, uint8_t *bit,
                        int64_t width, weir_err *err)
{
    int64_t row = 0, doc = -1, window = -1;
    weir_dump_block b;
    for (;;) {
        WEIR_TRY(weir_dump_stream_next(stream, &b, err));
        if (b.n == 0)
            break;
        if (b.n_columns != width)
            return weir_fail(err, WEIR_E_UNSUPPORTED, "rows of %lld values are too long for --max-norm-ratio",
                             (long long)width);
        for (int64_t i = 0; i < b.n; i++, row++) {
            int64_t k = i % STEP, ahead = b.n - i < STEP ? b.n - i : STEP;
            weir_token_columns columns = {.doc = at->doc, .pos = at->pos, .ctx_pos = at->ctx_pos};
            if (k == 0)
                WEIR_TRY(weir_dump_read_tokens(dump->r, row, ahead, &columns, err));
            if (at->doc[k] != doc || at->pos[k] - at->ctx_pos[k] != window)
                settle(d, bit, dump->o.max_norm_ratio);
            doc = at->doc[k];
            window = at->pos[k] - at->ctx_pos[k];
            if (!push(d, b.data + i * width, width))
                return no_memory(err);
        }
        if (weir_signals_seen())
            return WEIR_STOP;
    }
    settle(d, bit, dump->o.max_norm_ratio);
    return WEIR_OK;
}

weir_status weir_high_rows_find(weir_high_rows *h, weir_neurons_dump *d, int layer, weir_err *err)
{
    char name[80];
    norms n = {0};
    weir_dump_stream *stream = NULL;
    snprintf(name, sizeof name, "blocks.%d.hook_resid_pre", layer);
    int hook = weir_dump_find(d->r, name); /* weir_dump_choose saw that it is there */
    places *at = malloc(sizeof *at);
    h->bit = calloc((size_t)d->rows / 8 + 1, 1);
    weir_status st = at && h->bit ? weir_dump_stream_open(&stream, d->r, hook, 0, d->rows, err) : no_memory(err);
    if (st == WEIR_OK)
        st = look(d, stream, &n, at, h->bit, weir_dump_hook_at(d->r, hook)->width, err);
    free(at);
    weir_dump_stream_close(stream);
    free(n.x);
    free(n.sorted);
    return st;
}
