/* From the terms of the scalar to the gradient of what the unembedding reads. Logits are made at the rows that have
 * terms, a tile of rows at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "impl.h"

/* --- the terms */

static weir_status check(const weir_grad *g, const weir_loss_term *t, int64_t i)
{
    if (t->row < 0 || t->row >= weir_grad_rows(g))
        return weir_fail(g->err, WEIR_E_ARG, "term %lld is about row %lld: the last pass had rows 0 to %lld",
                         (long long)i, (long long)t->row, (long long)(weir_grad_rows(g) - 1));
    if (t->kind != WEIR_LOSS_NLL && t->kind != WEIR_LOSS_LOGIT && t->kind != WEIR_LOSS_KL)
        return weir_fail(g->err, WEIR_E_ARG, "term %lld is of kind %d: there is none", (long long)i, (int)t->kind);
    if (t->kind == WEIR_LOSS_KL && !t->log_q)
        return weir_fail(g->err, WEIR_E_ARG, "term %lld is a KL and has no log_q", (long long)i);
    if (t->kind != WEIR_LOSS_KL && (t->token < 0 || t->token >= g->spec->V))
        return weir_fail(g->err, WEIR_E_ARG, "term %lld is about token %d: the vocabulary has 0 to %lld", (long long)i,
                         t->token, (long long)(g->spec->V - 1));
    if (!isfinite(t->weight))
        return weir_fail(g->err, WEIR_E_ARG, "the weight of term %lld is not finite", (long long)i);
    return WEIR_OK;
}

static weir_status make_room(weir_grad *g, int64_t n)
{
    if (n <= g->room)
        return WEIR_OK;
    weir_grad_row *row = weir_realloc(g->row, (size_t)n, sizeof *row);
    g->row = row ? row : g->row;
    int64_t *order = weir_realloc(g->order, (size_t)n * 2, sizeof *order);
    g->order = order ? order : g->order;
    weir_loss_row *loss = weir_realloc(g->loss, (size_t)n, sizeof *loss);
    g->loss = loss ? loss : g->loss;
    double *value = weir_realloc(g->value, (size_t)n * 2, sizeof *value);
    g->value = value ? value : g->value;
    if (!row || !order || !loss || !value)
        return weir_nomem(g->err, "the terms of a loss");
    g->room = n;
    return WEIR_OK;
}

/* order[n] = the terms by row, those of one row as they came: a merge of sorted runs. */
static void sort(int64_t *order, int64_t *spare, const weir_loss_term *term, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t a = 0; a < n; a += 2 * run) {
            const int64_t mid = a + run < n ? a + run : n, end = mid + run < n ? mid + run : n;
            int64_t i = a, k = mid;
            for (int64_t to = a; to < end; to++)
                spare[to] = i < mid && (k == end || term[order[i]].row <= term[order[k]].row) ? order[i++] : order[k++];
        }
        memcpy(order, spare, (size_t)n * sizeof *order);
    }
}

weir_status weir_grad_terms(weir_grad *g, const weir_loss_term *term, int64_t n)
{
    g->n_rows = g->most = 0;
    for (int64_t i = 0; i < n; i++)
        WEIR_TRY(check(g, &term[i], i));
    WEIR_TRY(make_room(g, n));
    if (n)
        sort(g->order, g->order + n, term, n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = term[g->order[i]].row;
        if (!g->n_rows || g->row[g->n_rows - 1].row != row)
            g->row[g->n_rows++] = (weir_grad_row){.row = row, .first = i};
        weir_grad_row *at = &g->row[g->n_rows - 1];
        at->n++;
        g->most = at->n > g->most ? at->n : g->most;
    }
    return WEIR_OK;
}

/* --- logits of a tile of rows */

/* Rows with terms, [first, first + n) of g->row. */
typedef struct tile {
    int64_t first, n;
    float *y;     /* [n,V] logits: of the loss, and (capped) what the cap made */
    float *d;     /* [n,V] their gradient; y itself if nobody needs both */
    float *spare; /* [n,V] */
} tile;

/* Capped logits of a row before hooks wrote to them: what the cap's derivative is made of. NULL: as in the tile. */
static const float *capped_row(const weir_grad *g, int64_t row)
{
    return g->run->tape.capped ? g->run->tape.capped + row * g->spec->V : NULL;
}

/* Logits as the loss sees them, so with what hooks wrote: of n rows with terms, or (rows NULL) of n rows from row0 on.
 */
static weir_status logits_of(weir_grad *g, const weir_grad_row *rows, int64_t row0, int64_t n, float *out)
{
    const weir_spec *s = g->spec;
    weir_run *r = g->run;
    const weir_unembedding u = {
        .model = g->model, .kern = g->kern, .threads = r->threads, .room = r->room, .scratch = g->b.gemm};
    const float *from = r->unembedded ? r->b.logits : r->b.final;
    const int64_t width = r->unembedded ? s->V : s->C;
    float *to = r->unembedded ? out : g->b.h;
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * width, from + (rows ? rows[i].row : row0 + i) * width, (size_t)width * sizeof *to);
    if (r->unembedded)
        return WEIR_OK;
    WEIR_TRY(weir_unembed(&u, g->b.h, n, out, g->err));
    if (s->logit_softcap != 0)
        weir_op_softcap(g->kern, r->threads, out, s->logit_softcap, n * s->V);
    return WEIR_OK;
}

/* Term k of each row of the tile that has one: d (+)= its gradient. */
static void add_terms(weir_grad *g, const tile *t, int64_t k, const weir_loss_term *term, int64_t n_terms)
{
    const int64_t v = g->spec->V;
    float *to = k == 0 ? t->d : t->spare;
    double *got = g->value + n_terms;
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const weir_grad_row *row = &g->row[t->first + i];
        if (row->n <= k)
            continue;
        const weir_loss_term *x = &term[g->order[row->first + k]];
        g->loss[n] = (weir_loss_row){.kind = x->kind == WEIR_LOSS_NLL     ? WEIR_ROW_NLL
                                             : x->kind == WEIR_LOSS_LOGIT ? WEIR_ROW_LOGIT
                                                                          : WEIR_ROW_KL,
                                     .token = x->token,
                                     .weight = x->weight,
                                     .log_q = x->log_q};
        if (to != t->y)
            memcpy(to + n * v, t->y + i * v, (size_t)v * sizeof *to);
        n++;
    }
    weir_loss_backward(g->kern, g->run->threads, to, v, n, v, g->loss, got);
    for (int64_t i = 0, from = 0; i < t->n; i++) {
        const weir_grad_row *row = &g->row[t->first + i];
        if (row->n <= k)
            continue;
        g->value[g->order[row->first + k]] = got[from];
        if (k > 0)
            weir_op_add(g->kern, 1, t->d + i * v, t->d + i * v, to + from * v, v);
        from++;
    }
}

/* The gradient of the logits of a tile's rows, in t->d. */
static weir_status tile_loss(weir_grad *g, const tile *t, const weir_loss_term *term, int64_t n_terms)
{
    WEIR_TRY(logits_of(g, g->row + t->first, 0, t->n, t->y));
    for (int64_t k = 0; k < g->most; k++)
        add_terms(g, t, k, term, n_terms);
    return WEIR_OK;
}

static weir_status check_values(const weir_grad *g, const weir_loss_term *term, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(g->value[i]))
            return weir_fail(g->err, WEIR_E_ARG, "the loss is not finite: term %lld, at row %lld, is %f", (long long)i,
                             (long long)term[i].row, g->value[i]);
    return WEIR_OK;
}

/* --- through the unembedding */

/* b.h [n,C] = what comes back from d [n,V]. */
static weir_status unembed_back(weir_grad *g, const float *d, int64_t n)
{
    const weir_spec *s = g->spec;
    for (int64_t i = 0; i < weir_model_head_parts(g->model); i++) {
        const weir_turned *head;
        WEIR_TRY(weir_grad_head(g, i, &head));
        const weir_gemm gemm = {.m = n,
                                .x = d + head->first,
                                .ldx = s->V,
                                .kn = head->n,
                                .n_out = 1,
                                .out = {{.w = head->w, .y = i ? g->b.part : g->b.h, .ldy = s->C}},
                                .scratch = g->b.gemm};
        weir_gemm_run(g->kern, g->run->threads, &gemm);
        weir_grad_head_done(g, i);
        if (i)
            weir_op_add(g->kern, g->run->threads, g->b.h, g->b.h, g->b.part, n * s->C);
    }
    return WEIR_OK;
}

static void cap_back(weir_grad *g, float *d, const float *y, int64_t row)
{
    const float *kept = capped_row(g, row);
    weir_softcap_backward(g->kern, 1, d, kept ? kept : y, g->spec->logit_softcap, g->spec->V);
}

/* Nobody looks at the logits' gradient: tile by tile down to the rows of dh. */
static weir_status by_tiles(weir_grad *g, tile *t, int64_t step, const weir_loss_term *term, int64_t n_terms)
{
    const int64_t c = g->spec->C, v = g->spec->V;
    memset(g->b.dh, 0, (size_t)(weir_grad_rows(g) * c) * sizeof *g->b.dh);
    for (t->first = 0; t->first < g->n_rows; t->first += t->n) {
        t->n = g->n_rows - t->first < step ? g->n_rows - t->first : step;
        WEIR_TRY(tile_loss(g, t, term, n_terms));
        if (g->earliest == INT64_MAX) /* the values are all that is wanted */
            continue;
        for (int64_t i = 0; i < t->n && g->spec->logit_softcap != 0; i++)
            cap_back(g, t->d + i * v, t->y + i * v, g->row[t->first + i].row);
        WEIR_TRY(unembed_back(g, t->d, t->n));
        for (int64_t i = 0; i < t->n; i++)
            memcpy(g->b.dh + g->row[t->first + i].row * c, g->b.h + i * c, (size_t)c * sizeof *g->b.h);
    }
    return check_values(g, term, n_terms);
}

/* The cap's derivative over all rows; the logits are made again if the pass did not keep them. */
static weir_status whole_cap_back(weir_grad *g, const tile *t, int64_t step)
{
    const int64_t v = g->spec->V;
    for (int64_t row = 0; row < weir_grad_rows(g); row += step) {
        const int64_t n = weir_grad_rows(g) - row < step ? weir_grad_rows(g) - row : step;
        WEIR_TRY(logits_of(g, NULL, row, n, t->y));
        for (int64_t i = 0; i < n; i++)
            cap_back(g, g->b.whole + (row + i) * v, t->y + i * v, row + i);
    }
    return WEIR_OK;
}

/* Somebody looks: the gradient of all logits in b.whole. */
static weir_status as_a_whole(weir_grad *g, tile *t, int64_t step, const weir_loss_term *term, int64_t n_terms)
{
    const int64_t c = g->spec->C, v = g->spec->V, rows = weir_grad_rows(g);
    memset(g->b.whole, 0, (size_t)(rows * v) * sizeof *g->b.whole);
    for (t->first = 0; t->first < g->n_rows; t->first += t->n) {
        t->n = g->n_rows - t->first < step ? g->n_rows - t->first : step;
        WEIR_TRY(tile_loss(g, t, term, n_terms));
        for (int64_t i = 0; i < t->n; i++)
            memcpy(g->b.whole + g->row[t->first + i].row * v, t->d + i * v, (size_t)v * sizeof *t->d);
    }
    WEIR_TRY(check_values(g, term, n_terms));
    WEIR_TRY(weir_grad_arrive(g, -1, WEIR_SITE_LOGITS, g->b.whole));
    if (g->spec->logit_softcap != 0)
        WEIR_TRY(whole_cap_back(g, t, step));
    WEIR_TRY(weir_grad_arrive(g, -1, WEIR_SITE_UNEMBED_OUT, g->b.whole));
    for (int64_t row = 0; row < rows; row += step) {
        const int64_t n = rows - row < step ? rows - row : step;
        WEIR_TRY(unembed_back(g, g->b.whole + row * v, n));
        memcpy(g->b.dh + row * c, g->b.h, (size_t)(n * c) * sizeof *g->b.h);
    }
    return WEIR_OK;
}

weir_status weir_grad_loss(weir_grad *g, const weir_loss_term *term, int64_t n)
{
    const bool apart = g->most > 1 || g->spec->logit_softcap != 0;
    const int64_t step = apart ? g->tile / WEIR_GRAD_TILES : g->tile;
    tile t = {.y = g->b.logits, .d = g->b.logits, .spare = NULL};
    if (apart) {
        t.d = t.y + step * g->spec->V;
        t.spare = t.d + step * g->spec->V;
    }
    return g->whole ? as_a_whole(g, &t, step, term, n) : by_tiles(g, &t, step, term, n);
}
