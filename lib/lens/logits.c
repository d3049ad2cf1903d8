/* A lens, and any rows of the stream through the final norm and the unembedding. The steps and the kernels are those of
 * the end of a pass (lib/run); none of them looks across rows, so the bits are the same too. */
#include "../base/mem.h"
#include "../base/parallel.h"
#include "lens/impl.h"

enum { TILE_BYTES = 16 << 20, BLOCK_BYTES = 64 << 20, LEAST_ROWS = 8, MOST_ROWS = 1024 };

static void drop_room(weir_lens *l)
{
    weir_free_aligned(l->h);
    weir_free_aligned(l->logits);
    weir_free_aligned(l->gemm);
    l->h = l->logits = l->gemm = NULL;
    l->rows = 0;
}

weir_status weir_lens_room(weir_lens *l, int64_t rows, weir_err *err)
{
    const weir_spec *s = l->spec;
    int64_t h, logits;
    if (rows <= l->rows)
        return WEIR_OK;
    drop_room(l);
    if (!weir_mul64(rows, (int64_t)sizeof(float) * s->C, &h) ||
        !weir_mul64(rows, (int64_t)sizeof(float) * s->V, &logits))
        return weir_nomem(err, "a lens");
    l->h = weir_alloc_aligned((size_t)h);
    l->logits = weir_alloc_aligned((size_t)logits);
    l->gemm = weir_alloc_aligned(weir_gemm_scratch(rows, s->C, l->threads));
    if (!l->h || !l->logits || !l->gemm) {
        drop_room(l);
        return weir_nomem(err, "a lens");
    }
    l->rows = rows;
    return WEIR_OK;
}

static weir_status init(weir_lens *l, const weir_model *m, const char *kernel, int threads, weir_err *err)
{
    const weir_spec *s = weir_model_spec(m);
    l->model = m;
    l->spec = s;
    WEIR_TRY(weir_kern_pick(&l->kern, kernel, err));
    l->lanes = weir_lens_lanes_of(weir_kern_name(l->kern));
    l->threads = weir_threads(threads);
    l->block_bytes = BLOCK_BYTES;
    l->tile_rows = TILE_BYTES / ((int64_t)sizeof(float) * s->V);
    l->tile_rows = l->tile_rows < LEAST_ROWS ? LEAST_ROWS : l->tile_rows > MOST_ROWS ? MOST_ROWS : l->tile_rows;
    return WEIR_OK;
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
    drop_room(l);
    weir_free(l);
}

weir_status weir_lens_final_norm(const weir_lens *l, int64_t n, weir_norm *norm, weir_err *err)
{
    const weir_spec *s = l->spec;
    weir_normw w;
    WEIR_TRY(weir_model_final(l->model, &w, err));
    *norm =
        (weir_norm){.rms = s->rms, .eps = s->eps, .offset = s->norm_offset, .w = w.w, .b = w.b, .rows = n, .c = s->C};
    return WEIR_OK;
}

weir_status weir_lens_unembed(weir_lens *l, int64_t n, bool softcap, float *out, weir_err *err)
{
    const weir_spec *s = l->spec;
    const weir_unembedding u = {
        .model = l->model, .kern = l->kern, .threads = l->threads, .room = INT64_MAX, .scratch = l->gemm};
    WEIR_TRY(weir_unembed(&u, l->h, n, out, err));
    if (softcap && s->logit_softcap != 0)
        weir_op_softcap(l->kern, l->threads, out, s->logit_softcap, n * s->V);
    return WEIR_OK;
}

/* Rows, or directions, tile by tile. */
static weir_status project(weir_lens *l, bool directions, const float *x, int64_t n, float *out, weir_err *err)
{
    const weir_spec *s = l->spec;
    float one[MOST_ROWS];
    for (int64_t i = 0; i < l->tile_rows; i++)
        one[i] = 1;
    WEIR_TRY(weir_lens_room(l, l->tile_rows, err));
    for (int64_t t = 0; t < n; t += l->tile_rows) {
        const int64_t rows = n - t < l->tile_rows ? n - t : l->tile_rows;
        weir_norm norm;
        WEIR_TRY(weir_lens_final_norm(l, rows, &norm, err));
        norm.x = x + t * s->C;
        norm.out = l->h;
        if (directions) {
            norm.scale = one;
            norm.b = NULL;
            weir_norm_from_scale(l->kern, l->threads, &norm);
        } else {
            weir_norm_run(l->kern, l->threads, &norm);
        }
        WEIR_TRY(weir_lens_unembed(l, rows, !directions, out + t * s->V, err));
    }
    return WEIR_OK;
}

weir_status weir_lens_logits(weir_lens *l, const float *x, int64_t n, float *out, weir_err *err)
{
    return project(l, false, x, n, out, err);
}

weir_status weir_lens_scores(weir_lens *l, const float *x, int64_t n, float *out, weir_err *err)
{
    return project(l, true, x, n, out, err);
}
