/* Logits and log-probabilities of the last pass, made when asked. */
#include <string.h>

#include "state.h"

weir_status weir_unembed(const weir_unembedding *u, const float *h, int64_t n, float *out, weir_err *err)
{
    const weir_spec *s = weir_model_spec(u->model);
    for (int64_t i = 0; i < weir_model_head_parts(u->model); i++) {
        weir_head head;
        WEIR_TRY(weir_model_head(u->model, i, u->room, &head, err));
        const weir_gemm g = {.m = n,
                             .x = h,
                             .ldx = s->C,
                             .kn = s->C,
                             .n_out = 1,
                             .out = {{.w = head.w, .y = out + head.first, .ldy = s->V}},
                             .scratch = u->scratch};
        weir_gemm_run(u->kern, u->threads, &g);
        weir_model_head_done(u->model, i);
    }
    return WEIR_OK;
}

weir_status weir_run_unembed(weir_run *r, int64_t row, int64_t n, float *out)
{
    const weir_unembedding u = {
        .model = r->model, .kern = r->kern, .threads = r->threads, .room = r->room, .scratch = r->b.gemm};
    return weir_unembed(&u, r->b.final + row * r->spec->C, n, out, r->err);
}

/* Rows of logits: those of the pass if hooks saw them (and may have written), else made now into `room`. */
static weir_status rows_of(weir_run *r, int64_t row, int64_t n, float *room, const float **out)
{
    const weir_spec *s = r->spec;
    if (r->unembedded) {
        *out = r->b.logits + row * s->V;
        return WEIR_OK;
    }
    WEIR_TRY(weir_run_unembed(r, row, n, room));
    if (s->logit_softcap != 0)
        weir_op_softcap(r->kern, r->threads, room, s->logit_softcap, n * s->V);
    *out = room;
    return WEIR_OK;
}

static weir_status check(const weir_run *r, int64_t row, int64_t n)
{
    if (!r->final)
        return weir_fail(r->err, WEIR_E_ARG, "no logits: the last pass did not run with WEIR_FINAL to its end");
    if (row < 0 || n < 0 || row > r->rows.n - n)
        return weir_fail(r->err, WEIR_E_ARG, "rows %lld to %lld are not in the last pass, which had %lld",
                         (long long)row, (long long)(row + n - 1), (long long)r->rows.n);
    return WEIR_OK;
}

weir_status weir_run_logits(weir_run *r, int64_t row, int64_t n, float *out, weir_err *err)
{
    r->err = err;
    WEIR_TRY(check(r, row, n));
    if (n == 0)
        return WEIR_OK;
    const float *x;
    WEIR_TRY(rows_of(r, row, n, out, &x));
    if (x != out)
        memcpy(out, x, (size_t)(n * r->spec->V) * sizeof *out);
    return WEIR_OK;
}

weir_status weir_run_logprobs(weir_run *r, const int32_t *target, float *out, weir_err *err)
{
    r->err = err;
    WEIR_TRY(check(r, 0, 0));
    int64_t v = r->spec->V;
    for (int64_t t = 0; t < r->rows.n; t++)
        if (target[t] >= v)
            return weir_fail(err, WEIR_E_ARG, "target %d of row %lld is outside the vocabulary, 0 to %lld", target[t],
                             (long long)t, (long long)(v - 1));
    for (int64_t t = 0; t < r->rows.n; t += r->tile_rows) {
        int64_t n = r->rows.n - t < r->tile_rows ? r->rows.n - t : r->tile_rows;
        const float *x;
        WEIR_TRY(rows_of(r, t, n, r->b.tile, &x));
        weir_op_logprob(r->kern, r->threads, out + t, x, v, n, v, target + t);
    }
    return WEIR_OK;
}
