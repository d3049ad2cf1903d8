/* Rows of the dumps, one after the other. */
#include <math.h>
#include <stdlib.h>

#include "cli/progress.h"
#include "cli/signals.h"
#include "direction.h"

enum { MOST_FLOATS = 1 << 18 }; /* that are read at a time, or one row */

/* One way through all documents. A method makes two or three, a probe one for each of its steps, whose number nobody
 * knows: the bar shows how far the pass is. */
typedef struct pass {
    weir_progress bar;
    int64_t docs, done;
} pass;

static void begin_pass(pass *p, const weir_direction *d, int n_dumps)
{
    p->docs = p->done = 0;
    for (int k = 0; k < n_dumps; k++)
        p->docs += weir_dump_n_docs(d->dump[k].r);
    weir_progress_start(&p->bar, d->cli);
}

static void tick(pass *p)
{
    weir_progress_update(&p->bar, (double)p->done++ / (double)p->docs, -1);
}

/* One dump as it is gone through. */
typedef struct reading {
    const weir_direction *d;
    const weir_direction_dump *u;
    pass *pass;
    int64_t room; /* rows */
    float *raw;   /* [room, n] */
    double *x;    /* [n] */
} reading;

static weir_status begin(reading *g, const weir_direction *d, const weir_direction_dump *u, weir_err *err)
{
    const int64_t room = MOST_FLOATS / d->n;
    *g = (reading){.d = d, .u = u, .room = room > 0 ? room : 1};
    g->raw = malloc((size_t)(g->room * d->n) * sizeof *g->raw);
    g->x = malloc((size_t)d->n * sizeof *g->x);
    return g->raw && g->x ? WEIR_OK : weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

static void end(reading *g)
{
    free(g->raw);
    free(g->x);
}

/* Rows [row, row+n), all of them finite. */
static weir_status read_rows(reading *g, int64_t row, int64_t n, weir_err *err)
{
    const int64_t width = g->d->n;
    weir_status st = weir_dump_read(g->u->r, g->u->hook, row, n, g->raw, err);
    for (int64_t i = 0; st == WEIR_OK && i < n * width; i++)
        if (!isfinite(g->raw[i]))
            st = weir_fail(err, WEIR_E_ARG, "element %lld of row %lld of %s is %f: no direction has a meaning then",
                           (long long)(i % width), (long long)(row + i / width), g->d->hook->name, (double)g->raw[i]);
    if (st != WEIR_OK)
        weir_err_where(err, g->u->path, NULL, -1);
    return st;
}

static void widen(const reading *g, int64_t i)
{
    for (int64_t c = 0; c < g->d->n; c++)
        g->x[c] = (double)g->raw[i * g->d->n + c];
}

/* --- one document */

static weir_status take_last(reading *g, const weir_dump_doc_rows *rows, weir_err *err)
{
    WEIR_TRY(read_rows(g, rows->row + rows->n - 1, 1, err));
    widen(g, 0);
    return WEIR_OK;
}

static weir_status take_mean(reading *g, const weir_dump_doc_rows *rows, weir_err *err)
{
    for (int64_t c = 0; c < g->d->n; c++)
        g->x[c] = 0;
    for (int64_t at = 0, n; at < rows->n; at += n) {
        n = rows->n - at < g->room ? rows->n - at : g->room;
        WEIR_TRY(read_rows(g, rows->row + at, n, err));
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < g->d->n; c++)
                g->x[c] += (double)g->raw[i * g->d->n + c];
    }
    for (int64_t c = 0; c < g->d->n; c++)
        g->x[c] /= (double)rows->n;
    return WEIR_OK;
}

static weir_status take_all(reading *g, const weir_dump_doc_rows *rows, weir_example *e, weir_example_take *take,
                            void *ctx, weir_err *err)
{
    for (int64_t at = 0, n; at < rows->n; at += n) {
        n = rows->n - at < g->room ? rows->n - at : g->room;
        WEIR_TRY(read_rows(g, rows->row + at, n, err));
        for (int64_t i = 0; i < n; i++) {
            widen(g, i);
            WEIR_TRY(take(ctx, e, err));
        }
    }
    return WEIR_OK;
}

static weir_status take_doc(reading *g, int64_t doc, weir_example *e, weir_example_take *take, void *ctx, weir_err *err)
{
    weir_dump_doc_rows rows;
    WEIR_TRY(weir_dump_read_doc(g->u->r, doc, &rows, err));
    if (rows.n == 0)
        return WEIR_OK;
    e->x = g->x;
    if (g->d->a->rows == WEIR_DIRECTION_ALL)
        return take_all(g, &rows, e, take, ctx, err);
    WEIR_TRY(g->d->a->rows == WEIR_DIRECTION_LAST ? take_last(g, &rows, err) : take_mean(g, &rows, err));
    return take(ctx, e, err);
}

static weir_status take_dump(reading *g, int side, weir_example_take *take, void *ctx, weir_err *err)
{
    for (int64_t i = 0; i < weir_dump_n_docs(g->u->r); i++) {
        weir_example e = {.class = weir_direction_class(g->u, i), .side = weir_direction_side(g->d, g->u, i)};
        if (weir_signals_seen())
            return WEIR_STOP;
        tick(g->pass);
        if (e.class >= 0 && (side < 0 || side == e.side))
            WEIR_TRY(take_doc(g, i, &e, take, ctx, err));
    }
    return WEIR_OK;
}

weir_status weir_examples_each(const weir_direction *d, int side, weir_example_take *take, void *ctx, weir_err *err)
{
    pass p;
    weir_status st = WEIR_OK;
    begin_pass(&p, d, d->n_dumps);
    for (int k = 0; k < d->n_dumps && st == WEIR_OK; k++) {
        reading g;
        st = begin(&g, d, &d->dump[k], err);
        g.pass = &p;
        if (st == WEIR_OK)
            st = take_dump(&g, side, take, ctx, err);
        end(&g);
    }
    weir_progress_stop(&p.bar, d->cli);
    return st;
}

/* --- pairs */

/* Row `at` of a document, or what stands for the whole document, into g->x. */
static weir_status take_part(reading *g, int64_t doc, int64_t at, weir_err *err)
{
    weir_dump_doc_rows rows;
    WEIR_TRY(weir_dump_read_doc(g->u->r, doc, &rows, err));
    if (g->d->a->rows == WEIR_DIRECTION_ROWS_MEAN)
        return take_mean(g, &rows, err);
    if (g->d->a->rows == WEIR_DIRECTION_ALL)
        rows.n = at + 1;
    return take_last(g, &rows, err);
}

static weir_status take_pairs(reading g[2], int64_t doc, weir_example_take *take, void *ctx, weir_err *err)
{
    const weir_direction *d = g[0].d;
    const weir_example e = {.x = g[0].x, .class = WEIR_POSITIVE, .side = WEIR_TRAINING};
    weir_dump_doc_rows rows;
    WEIR_TRY(weir_dump_read_doc(g[0].u->r, doc, &rows, err));
    const int64_t n = d->a->rows == WEIR_DIRECTION_ALL ? rows.n : rows.n > 0;
    for (int64_t at = 0; at < n; at++) {
        for (int k = 0; k < 2; k++)
            WEIR_TRY(take_part(&g[k], doc, at, err));
        for (int64_t c = 0; c < d->n; c++)
            g[0].x[c] -= g[1].x[c];
        WEIR_TRY(take(ctx, &e, err));
    }
    return WEIR_OK;
}

weir_status weir_pairs_each(const weir_direction *d, weir_example_take *take, void *ctx, weir_err *err)
{
    reading g[2] = {{0}};
    pass p;
    weir_status st = begin(&g[0], d, &d->dump[0], err);
    if (st == WEIR_OK)
        st = begin(&g[1], d, &d->dump[1], err);
    begin_pass(&p, d, 1);
    for (int64_t i = 0; st == WEIR_OK && i < weir_dump_n_docs(d->dump[0].r); i++) {
        tick(&p);
        if (weir_signals_seen())
            st = WEIR_STOP;
        else if (weir_direction_side(d, &d->dump[0], i) == WEIR_TRAINING)
            st = take_pairs(g, i, take, ctx, err);
    }
    weir_progress_stop(&p.bar, d->cli);
    end(&g[0]);
    end(&g[1]);
    return st;
}
