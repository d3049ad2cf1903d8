/* The likeliest tokens of rows.
 *
 * A heap of the k best so far, the worst of them on top, so that a long list costs no more than a few steps a token;
 * most tokens are below the top and are passed over many at a time. */
#include <math.h>

#include "../base/parallel.h"
#include "lens/impl.h"

typedef struct heap {
    const float *x;
    int32_t *id;
    int64_t n;
} heap;

/* Of equal ones the higher id is the worse. */
static bool worse(const heap *h, int32_t a, int32_t b)
{
    return h->x[a] < h->x[b] || (h->x[a] == h->x[b] && a > b);
}

/* Puts v into the empty place i, or below it. */
static void sink(heap *h, int64_t i, int32_t v)
{
    for (int64_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && worse(h, h->id[child + 1], h->id[child]))
            child++;
        if (!worse(h, h->id[child], v))
            break;
        h->id[i] = h->id[child];
    }
    h->id[i] = v;
}

/* The first k that are no NaN; returns the place behind the last one. */
static int64_t fill(heap *h, int64_t v, int64_t k)
{
    int64_t i = 0;
    for (; i < v && h->n < k; i++)
        if (!isnan(h->x[i]))
            h->id[h->n++] = (int32_t)i;
    for (int64_t j = h->n / 2 - 1; j >= 0; j--)
        sink(h, j, h->id[j]);
    return i;
}

/* Takes the worst away until the best is first. */
static void sort(heap *h)
{
    while (h->n > 1) {
        const int32_t last = h->id[--h->n];
        h->id[h->n] = h->id[0];
        sink(h, 0, last);
    }
}

void weir_lens_largest(const weir_lens *l, const float *x, int64_t v, int64_t k, int32_t *id)
{
    heap h = {.x = x, .id = id};
    int64_t i = fill(&h, v, k);
    for (int64_t j = h.n; j < k; j++)
        id[j] = -1;
    while (h.n == k && k > 0 && (i = l->lanes->find_above(x, i, v, x[id[0]])) < v)
        sink(&h, 0, (int32_t)i++);
    sort(&h);
}

typedef struct ranking {
    const weir_lens *l;
    int64_t k;
    int32_t *id;
} ranking;

static void rank_row(void *ctx, int64_t r, int thread)
{
    const ranking *k = ctx;
    const int64_t v = k->l->spec->V;
    (void)thread;
    weir_lens_largest(k->l, k->l->logits + r * v, v, k->k, k->id + r * k->k);
}

weir_status weir_lens_top(weir_lens *l, const float *x, int64_t n, int64_t k, int32_t *id, float *logprob,
                          weir_err *err)
{
    const weir_spec *s = l->spec;
    if (k < 1 || k > s->V)
        return weir_fail(err, WEIR_E_ARG, "%lld tokens of a vocabulary of %lld: it must be 1 to all", (long long)k,
                         (long long)s->V);
    WEIR_TRY(weir_lens_room(l, l->tile_rows, err));
    for (int64_t t = 0; t < n; t += l->tile_rows) {
        const int64_t rows = n - t < l->tile_rows ? n - t : l->tile_rows;
        WEIR_TRY(weir_lens_logits(l, x + t * s->C, rows, l->logits, err));
        weir_parallel_for(l->threads, rows, 1, rank_row, &(ranking){l, k, id + t * k});
        weir_op_logprobs(l->kern, l->threads, logprob + t * k, l->logits, s->V, rows, s->V, id + t * k, k);
    }
    return WEIR_OK;
}
