/* The gradient of a block of positions: for each layer forward through translator, norm and unembedding, then back the
 * same way. weir/tuned.h has the formulas. Every sum has a fixed order: products are chains of the GEMM's, parts of the
 * unembedding are added in theirs, means over a row are taken in double from its first element on. */
#include "fit.h"

#include "../base/parallel.h"
#include "../run/state.h"

/* --- forward */

static weir_status pack_translator(weir_fit *f, int64_t i, weir_err *err)
{
    const int64_t c = f->spec->C;
    if (f->packed[i])
        return WEIR_OK;
    const weir_tensor a = {.dtype = WEIR_F32,
                           .rank = 2,
                           .shape = {c, c, 1, 1},
                           .data = f->theta + i * f->size,
                           .bytes = (size_t)(c * c) * sizeof(float)};
    const weir_wview view = {.t = &a, .n = c, .k = c, .stride = c};
    return weir_panels_new(&f->packed[i], &view, f->threads, err);
}

weir_status weir_fit_translate(weir_fit *f, int64_t i, const float *x, int64_t n, float *out, weir_err *err)
{
    const int64_t c = f->spec->C;
    WEIR_TRY(pack_translator(f, i, err));
    const float *b = f->theta + i * f->size + c * c;
    const weir_gemm g = {.m = n,
                         .x = x,
                         .ldx = c,
                         .kn = c,
                         .n_out = 1,
                         .out = {{.w = f->packed[i], .bias = b, .y = out, .ldy = c}},
                         .scratch = f->w.gemm};
    weir_gemm_run(f->kern, f->threads, &g);
    weir_op_add(f->kern, f->threads, out, x, out, n * c);
    return WEIR_OK;
}

/* Logits of n rows into out [n,V]; y, scale and h of the work are theirs afterwards. */
static weir_status read_rows(weir_fit *f, const float *x, int64_t n, float *out, weir_err *err)
{
    const weir_spec *s = f->spec;
    const weir_norm norm = {.rms = s->rms,
                            .eps = s->eps,
                            .offset = s->norm_offset,
                            .w = f->norm.w,
                            .b = f->norm.b,
                            .rows = n,
                            .c = s->C,
                            .x = x,
                            .scale = f->w.scale,
                            .norm = f->w.y,
                            .out = f->w.h};
    weir_norm_run(f->kern, f->threads, &norm);
    const weir_unembedding u = {
        .model = f->model, .kern = f->kern, .threads = f->threads, .room = INT64_MAX, .scratch = f->w.gemm};
    WEIR_TRY(weir_unembed(&u, f->w.h, n, out, err));
    if (s->logit_softcap != 0)
        weir_op_softcap(f->kern, f->threads, out, s->logit_softcap, n * s->V);
    return WEIR_OK;
}

static void softmax_row(void *ctx, int64_t r, int thread)
{
    const weir_fit *f = ctx;
    (void)thread;
    f->w.f_ln_f[r] = f->rows->softmax(f->w.f + r * f->spec->V, f->spec->V);
}

/* --- back */

static void logits_row(void *ctx, int64_t r, int thread)
{
    const weir_fit *f = ctx;
    const int64_t v = f->spec->V;
    (void)thread;
    f->w.kl[r] = f->rows->gradient(f->w.z + r * v, f->w.f + r * v, v, f->spec->logit_softcap, f->w.f_ln_f[r]);
}

/* dh = the gradient z of the logits times W_U. */
static void back_unembed(const weir_fit *f, int64_t n)
{
    const int64_t c = f->spec->C;
    for (int64_t p = 0; p < f->parts; p++) {
        const weir_turned *head = &f->head[p];
        const weir_gemm g = {.m = n,
                             .x = f->w.z + head->first,
                             .ldx = f->spec->V,
                             .kn = head->n,
                             .n_out = 1,
                             .out = {{.w = head->w, .y = p ? f->w.part : f->w.dh, .ldy = c}},
                             .scratch = f->w.gemm};
        weir_gemm_run(f->kern, f->threads, &g);
        if (p)
            weir_op_add(f->kern, f->threads, f->w.dh, f->w.dh, f->w.part, n * c);
    }
}

/* Row r of dh, from the gradient of the norm's output to that of its input. */
static void norm_row(void *ctx, int64_t r, int thread)
{
    const weir_fit *f = ctx;
    const weir_spec *s = f->spec;
    const int64_t c = s->C;
    const float *y = f->w.y + r * c, *gain = f->norm.w;
    float *d = f->w.dh + r * c;
    double mean = 0, along = 0;
    (void)thread;
    for (int64_t i = 0; i < c; i++) {
        d[i] = gain ? d[i] * (s->norm_offset + gain[i]) : d[i];
        mean += (double)d[i];
        along += (double)d[i] * (double)y[i];
    }
    mean = s->rms ? 0 : mean / (double)c;
    along /= (double)c;
    for (int64_t i = 0; i < c; i++)
        d[i] = (float)(((double)d[i] - mean - (double)y[i] * along) / (double)f->w.scale[r]);
}

/* A column of dh [n,C] becomes a row of turn [C,n]. */
static void turn_column(void *ctx, int64_t o, int thread)
{
    const weir_fit *f = ctx;
    const int64_t c = f->spec->C, n = f->filled;
    (void)thread;
    for (int64_t r = 0; r < n; r++)
        f->w.turn[o * n + r] = f->w.dh[r * c + o];
}

/* The sums over the positions: A[o,k] gets sum dh[r,o] x[r,k], b[o] gets sum dh[r,o]. */
static weir_status back_translator(weir_fit *f, int64_t i, int64_t n, weir_err *err)
{
    const int64_t c = f->spec->C;
    float *grad = f->grad + i * f->size;
    const weir_tensor x = {.dtype = WEIR_F32,
                           .rank = 2,
                           .shape = {n, c, 1, 1},
                           .data = weir_fit_place(f, i),
                           .bytes = (size_t)(n * c) * sizeof(float)};
    const weir_wview view = {.t = &x, .n = c, .k = n, .k_major = true, .stride = c};
    weir_panels *packed;
    WEIR_TRY(weir_panels_new(&packed, &view, f->threads, err));
    weir_parallel_for(f->threads, c, 0, turn_column, f);
    const weir_gemm g = {.m = c,
                         .x = f->w.turn,
                         .ldx = n,
                         .kn = n,
                         .n_out = 1,
                         .out = {{.w = packed, .y = f->w.da, .ldy = c}},
                         .scratch = f->w.gemm};
    weir_gemm_run(f->kern, f->threads, &g);
    weir_panels_free(packed);
    weir_op_add(f->kern, f->threads, grad, grad, f->w.da, c * c);
    for (int64_t r = 0; r < n; r++)
        for (int64_t o = 0; o < c; o++)
            grad[c * c + o] += f->w.dh[r * c + o];
    return WEIR_OK;
}

/* --- a block */

static weir_status translator(weir_fit *f, int64_t i, int64_t n, weir_err *err)
{
    WEIR_TRY(weir_fit_translate(f, i, weir_fit_place(f, i), n, f->w.g, err));
    WEIR_TRY(read_rows(f, f->w.g, n, f->w.z, err));
    weir_parallel_for(f->threads, n, 1, logits_row, f);
    for (int64_t r = 0; r < n; r++)
        f->loss_sum[i] += f->w.kl[r];
    back_unembed(f, n);
    weir_parallel_for(f->threads, n, 0, norm_row, f);
    return back_translator(f, i, n, err);
}

weir_status weir_fit_block(weir_fit *f, weir_err *err)
{
    const int64_t n = f->filled;
    WEIR_TRY(read_rows(f, weir_fit_place(f, f->spec->L), n, f->w.f, err));
    weir_parallel_for(f->threads, n, 1, softmax_row, f);
    for (int64_t i = 0; i < f->spec->L; i++)
        WEIR_TRY(translator(f, i, n, err));
    return WEIR_OK;
}
