/* The logit lens: any rows of the stream through the final norm and the unembedding. The steps and the kernels are
 * those of the end of a pass (forward.c, logits.c); none of them looks across rows, so the bits are the same too. */
#include <math.h>
#include <string.h>

#include "../base/mem.h"
#include "../base/parallel.h"
#include "state.h"

enum { TILE_BYTES = 16 << 20, LEAST_ROWS = 8, MOST_ROWS = 1024 };

struct weir_lens {
    const weir_model *model;
    const weir_spec *spec;
    const weir_kern *kern;
    int threads;
    int64_t tile_rows;
    float *h;      /* [tile_rows, C] normed */
    float *logits; /* [tile_rows, V] */
    void *gemm;
};

static weir_status init(weir_lens *l, const weir_model *m, const char *kernel, int threads, weir_err *err)
{
    const weir_spec *s = weir_model_spec(m);
    l->model = m;
    l->spec = s;
    WEIR_TRY(weir_kern_pick(&l->kern, kernel, err));
    l->threads = weir_threads(threads);
    l->tile_rows = TILE_BYTES / ((int64_t)sizeof(float) * s->V);
    l->tile_rows = l->tile_rows < LEAST_ROWS ? LEAST_ROWS : l->tile_rows > MOST_ROWS ? MOST_ROWS : l->tile_rows;
    int64_t h, logits;
    if (!weir_mul64(l->tile_rows * (int64_t)sizeof(float), s->C, &h) ||
        !weir_mul64(l->tile_rows * (int64_t)sizeof(float), s->V, &logits))
        return weir_nomem(err, "a lens");
    l->h = weir_alloc_aligned((size_t)h);
    l->logits = weir_alloc_aligned((size_t)logits);
    l->gemm = weir_alloc_aligned(weir_gemm_scratch(l->tile_rows, s->C, l->threads));
    return l->h && l->logits && l->gemm ? WEIR_OK : weir_nomem(err, "a lens");
}

weir_status weir_lens_new(weir_lens **out, const weir_model *m, const char *kernel, int threads, weir_err *err)
{
    *out = NULL;
    if (threads < 0)
        return weir_fail(err, WEIR_E_ARG, "threads is %d: it cannot be negative", threads);
    weir_lens *l = weir_calloc(1, sizeof *l);
    if (!l)
        return weir_nomem(err, "a lens");
    weir_status st = init(l, m, kernel, threads, err);
    if (st)
        weir_lens_free(l);
    else
        *out = l;
    return st;
}

void weir_lens_free(weir_lens *l)
{
    if (!l)
        return;
    weir_free_aligned(l->h);
    weir_free_aligned(l->logits);
    weir_free_aligned(l->gemm);
    weir_free(l);
}

/* Logits of at most tile_rows rows. */
static weir_status project(weir_lens *l, const float *x, int64_t n, float *out, weir_err *err)
{
    const weir_spec *s = l->spec;
    weir_normw w;
    WEIR_TRY(weir_model_final(l->model, &w, err));
    const weir_norm norm = {.rms = s->rms,
                            .eps = s->eps,
                            .offset = s->norm_offset,
                            .w = w.w,
                            .b = w.b,
                            .rows = n,
                            .c = s->C,
                            .x = x,
                            .out = l->h};
    weir_norm_run(l->kern, l->threads, &norm);
    const weir_unembedding u = {
        .model = l->model, .kern = l->kern, .threads = l->threads, .room = INT64_MAX, .scratch = l->gemm};
    WEIR_TRY(weir_unembed(&u, l->h, n, out, err));
    if (s->logit_softcap != 0)
        weir_op_softcap(l->kern, l->threads, out, s->logit_softcap, n * s->V);
    return WEIR_OK;
}

static int64_t rows_of_tile(const weir_lens *l, int64_t n, int64_t at)
{
    return n - at < l->tile_rows ? n - at : l->tile_rows;
}

weir_status weir_lens_logits(weir_lens *l, const float *x, int64_t n, float *out, weir_err *err)
{
    for (int64_t t = 0; t < n; t += l->tile_rows)
        WEIR_TRY(project(l, x + t * l->spec->C, rows_of_tile(l, n, t), out + t * l->spec->V, err));
    return WEIR_OK;
}

/* --- the k largest of each row */

typedef struct ranking {
    const float *logits;
    int64_t v, k;
    int32_t *id;
} ranking;

/* Moves what is smaller one place down and puts v in. Equal logits keep the order in which they came: ascending ids. */
static void rank_in(const float *x, int32_t *id, int64_t n, int32_t v)
{
    for (; n > 0 && x[id[n - 1]] < x[v]; n--)
        id[n] = id[n - 1];
    id[n] = v;
}

static void rank_row(void *ctx, int64_t r, int thread)
{
    const ranking *k = ctx;
    const float *x = k->logits + r * k->v;
    int32_t *id = k->id + r * k->k;
    int64_t n = 0;
    (void)thread;
    for (int64_t v = 0; v < k->v; v++) {
        if (isnan(x[v]) || (n == k->k && !(x[v] > x[id[n - 1]])))
            continue;
        n += n < k->k;
        rank_in(x, id, n - 1, (int32_t)v);
    }
    for (; n < k->k; n++)
        id[n] = -1;
}

weir_status weir_lens_top(weir_lens *l, const float *x, int64_t n, int64_t k, int32_t *id, float *logprob,
                          weir_err *err)
{
    const weir_spec *s = l->spec;
    if (k < 1 || k > s->V)
        return weir_fail(err, WEIR_E_ARG, "%lld tokens of a vocabulary of %lld: it must be 1 to all", (long long)k,
                         (long long)s->V);
    for (int64_t t = 0; t < n; t += l->tile_rows) {
        int64_t rows = rows_of_tile(l, n, t);
        WEIR_TRY(project(l, x + t * s->C, rows, l->logits, err));
        weir_parallel_for(l->threads, rows, 1, rank_row, &(ranking){l->logits, s->V, k, id + t * k});
        weir_op_logprobs(l->kern, l->threads, logprob + t * k, l->logits, s->V, rows, s->V, id + t * k, k);
    }
    return WEIR_OK;
}
