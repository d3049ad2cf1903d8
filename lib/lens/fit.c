/* Training a tuned lens: the object, and how rows become blocks and blocks steps. Blocks are cut by counting positions
 * from the beginning of each step, so that the order of every sum is independent of how the rows arrive. */
#include "fit.h"

#include <math.h>
#include <string.h>

#include "../base/parallel.h"

enum { MOST_ROWS = 256, LEAST_ROWS = 16, LOGIT_BYTES = 16 << 20 };

void weir_fit_options_init(weir_fit_options *o)
{
    *o = (weir_fit_options){.steps = 300, .step_rows = 512, .lr = 3e-3, .weight_decay = 1e-2, .clip = 1};
}

static weir_status check_options(const weir_fit_options *o, weir_err *err)
{
    if (o->steps < 1 || o->step_rows < 1)
        return weir_fail(err, WEIR_E_ARG, "%lld steps of %lld positions: each must be 1 or more", (long long)o->steps,
                         (long long)o->step_rows);
    if (!(o->lr > 0) || !isfinite(o->lr))
        return weir_fail(err, WEIR_E_ARG, "the learning rate is %g: it must be above 0", o->lr);
    if (!(o->weight_decay >= 0) || !isfinite(o->weight_decay))
        return weir_fail(err, WEIR_E_ARG, "the weight decay is %g: it cannot be negative", o->weight_decay);
    if (!(o->clip >= 0) || !isfinite(o->clip))
        return weir_fail(err, WEIR_E_ARG, "gradients are clipped at %g: it cannot be negative", o->clip);
    if (o->threads < 0)
        return weir_fail(err, WEIR_E_ARG, "threads is %d: it cannot be negative", o->threads);
    return WEIR_OK;
}

/* --- room */

/* [rows,cols] floats (rows,cols doubles where `wide`), zeroed; NULL when there is none. */
static void *room(int64_t rows, int64_t cols, bool wide)
{
    int64_t n;
    if (!weir_mul64(rows, cols, &n))
        return NULL;
    return weir_calloc((size_t)n, wide ? sizeof(double) : sizeof(float));
}

static weir_status make_work(weir_fit *f, weir_err *err)
{
    const int64_t c = f->spec->C, v = f->spec->V, n = f->block;
    weir_fit_work *w = &f->w;
    float **const narrow[] = {&w->g, &w->y, &w->h, &w->dh, &w->part, &w->turn};
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (!(*narrow[i] = room(n, c, false)))
            return weir_nomem(err, "a block of positions");
    w->scale = room(n, 1, false);
    w->f = room(n, v, false);
    w->z = room(n, v, false);
    w->f_ln_f = room(n, 1, true);
    w->kl = room(n, 1, true);
    w->da = room(c, c, false);
    /* Rows times columns of x in the products: n x C, n x V, C x n. */
    const int64_t wide = v > c ? v : c;
    w->gemm = weir_alloc_aligned(weir_gemm_scratch(n, wide, f->threads));
    return w->scale && w->f && w->z && w->f_ln_f && w->kl && w->da && w->gemm
               ? WEIR_OK
               : weir_nomem(err, "a block of positions");
}

static weir_status make_translators(weir_fit *f, weir_err *err)
{
    const int64_t l = f->spec->L, c = f->spec->C;
    if (!weir_mul64(c, c + 1, &f->size))
        return weir_nomem(err, "the translators");
    float **const each[] = {&f->theta, &f->grad, &f->mean, &f->square};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        if (!(*each[i] = room(l, f->size, false)))
            return weir_nomem(err, "the translators");
    f->packed = weir_calloc((size_t)l, sizeof *f->packed);
    f->loss = room(l, 1, true);
    f->loss_sum = room(l, 1, true);
    f->x = room((l + 1) * f->block, c, false);
    if (!f->packed || !f->loss || !f->loss_sum || !f->x)
        return weir_nomem(err, "the translators");
    for (int64_t i = 0; i < l; i++)
        f->loss[i] = NAN;
    return WEIR_OK;
}

static weir_status turn_head(weir_fit *f, weir_err *err)
{
    f->parts = weir_model_head_parts(f->model);
    f->head = weir_calloc((size_t)f->parts, sizeof *f->head);
    if (!f->head)
        return weir_nomem(err, "the unembedding turned round");
    for (int64_t i = 0; i < f->parts; i++)
        WEIR_TRY(weir_model_head_turned(f->model, i, &f->head[i], err));
    return WEIR_OK;
}

static int64_t block_rows(const weir_spec *s)
{
    const int64_t fit = LOGIT_BYTES / (int64_t)sizeof(float) / s->V;
    return fit < LEAST_ROWS ? LEAST_ROWS : fit > MOST_ROWS ? MOST_ROWS : fit;
}

static weir_status init(weir_fit *f, const weir_model *m, const weir_fit_options *o, weir_err *err)
{
    f->model = m;
    f->spec = weir_model_spec(m);
    f->o = *o;
    WEIR_TRY(check_options(o, err));
    WEIR_TRY(weir_kern_pick(&f->kern, o->kernel, err));
    f->rows = weir_fit_kern_of(f->kern);
    f->o.kernel = NULL; /* the caller's */
    f->threads = weir_threads(o->threads);
    f->block = block_rows(f->spec);
    WEIR_TRY(make_translators(f, err));
    WEIR_TRY(make_work(f, err));
    WEIR_TRY(weir_model_final(m, &f->norm, err));
    return turn_head(f, err);
}

weir_status weir_fit_new(weir_fit **out, const weir_model *m, const weir_fit_options *o, weir_err *err)
{
    *out = NULL;
    weir_fit *f = weir_calloc(1, sizeof *f);
    if (!f)
        return weir_nomem(err, "a lens to be fitted");
    const weir_status st = init(f, m, o, err);
    if (st != WEIR_OK)
        weir_fit_free(f);
    else
        *out = f;
    return st;
}

void weir_fit_free(weir_fit *f)
{
    if (!f)
        return;
    for (int64_t i = 0; f->head && i < f->parts; i++)
        weir_panels_free(f->head[i].w);
    for (int64_t i = 0; f->packed && i < f->spec->L; i++)
        weir_panels_free(f->packed[i]);
    weir_lens_free(f->lens);
    weir_free_aligned(f->w.gemm);
    const weir_fit_work *w = &f->w;
    void *const own[] = {f->head, f->packed, f->theta, f->grad,  f->mean, f->square, f->loss,   f->loss_sum,
                         f->x,    w->g,      w->y,     w->scale, w->h,    w->f,      w->f_ln_f, w->z,
                         w->kl,   w->dh,     w->part,  w->turn,  w->da,   f->tuned,  f->kl};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        weir_free(own[i]);
    weir_free(f);
}

/* --- rows to blocks to steps */

static weir_status check_loss(const weir_fit *f, weir_err *err)
{
    for (int64_t i = 0; i < f->spec->L; i++)
        if (!isfinite(f->loss_sum[i]))
            return weir_fail(err, WEIR_E_ARG,
                             "the loss of translator %lld is not finite in step %lld: a smaller rate, or the model's "
                             "own values are not",
                             (long long)i, (long long)f->steps + 1);
    return WEIR_OK;
}

static void end_step(weir_fit *f)
{
    for (int64_t i = 0; i < f->spec->L; i++) {
        f->loss[i] = f->loss_sum[i] / (double)f->o.step_rows;
        f->loss_sum[i] = 0;
        weir_panels_free(f->packed[i]);
        f->packed[i] = NULL;
    }
    weir_fit_update(f);
    f->rows_done = 0;
    f->steps++;
}

static weir_status end_block(weir_fit *f, weir_err *err)
{
    WEIR_TRY(weir_fit_block(f, err));
    WEIR_TRY(check_loss(f, err));
    f->rows_done += f->filled;
    f->filled = 0;
    if (f->rows_done == f->o.step_rows)
        end_step(f);
    return WEIR_OK;
}

weir_status weir_fit_add(weir_fit *f, const float *const *x, int64_t n, weir_err *err)
{
    const int64_t c = f->spec->C;
    for (int64_t at = 0; at < n && !weir_fit_done(f);) {
        const int64_t left = f->o.step_rows - f->rows_done; /* of the step, what waits included */
        const int64_t full = left < f->block ? left : f->block;
        const int64_t some = n - at < full - f->filled ? n - at : full - f->filled;
        for (int64_t i = 0; i <= f->spec->L; i++)
            memcpy(weir_fit_place(f, i) + f->filled * c, x[i] + at * c, (size_t)(some * c) * sizeof **x);
        f->filled += some;
        at += some;
        if (f->filled == full)
            WEIR_TRY(end_block(f, err));
    }
    return WEIR_OK;
}

int64_t weir_fit_steps(const weir_fit *f)
{
    return f->steps;
}

bool weir_fit_done(const weir_fit *f)
{
    return f->steps >= f->o.steps;
}

const double *weir_fit_loss(const weir_fit *f)
{
    return f->loss;
}

void weir_fit_translator(const weir_fit *f, int64_t i, const float **a, const float **b)
{
    const int64_t c = f->spec->C;
    *a = f->theta + i * f->size;
    *b = *a + c * c;
}

/* --- measuring */

static weir_status prepare_measure(weir_fit *f, weir_err *err)
{
    const int64_t l = f->spec->L;
    if (!f->tuned)
        f->tuned = room(l * f->block, f->spec->C, false);
    if (!f->kl)
        f->kl = room(2 * l + 1, f->block, false);
    if (!f->tuned || !f->kl)
        return weir_nomem(err, "the rows of a measurement");
    return f->lens ? WEIR_OK : weir_lens_new(&f->lens, f->model, weir_kern_name(f->kern), f->threads, err);
}

/* The stack of a block: plain rows, translated rows, the final row. */
static weir_status measure_block(weir_fit *f, const float *const *x, int64_t at, int64_t n, weir_lens_row *row,
                                 weir_err *err)
{
    const int64_t l = f->spec->L, c = f->spec->C;
    for (int64_t i = 0; i < l; i++) {
        float *tuned = f->tuned + i * f->block * c;
        WEIR_TRY(weir_fit_translate(f, i, x[i] + at * c, n, tuned, err));
        row[i] = (weir_lens_row){.x = x[i] + at * c, .prev = -1};
        row[l + i] = (weir_lens_row){.x = tuned, .prev = -1};
    }
    row[2 * l] = (weir_lens_row){.x = x[l] + at * c, .prev = -1};
    const weir_lens_what what = {.row = row, .n_rows = (int)(2 * l + 1), .n = n};
    const weir_lens_out out = {.kl_final = f->kl};
    return weir_lens_measure(f->lens, &what, &out, err);
}

static void add_up(double *sum, const float *kl, int64_t l, int64_t n)
{
    for (int64_t i = 0; i < l; i++)
        for (int64_t r = 0; r < n; r++)
            sum[i] += (double)kl[i * n + r];
}

weir_status weir_fit_measure(weir_fit *f, const float *const *x, int64_t n, double *plain, double *tuned,
                             weir_err *err)
{
    const int64_t l = f->spec->L;
    WEIR_TRY(prepare_measure(f, err));
    weir_lens_row *row = weir_calloc((size_t)(2 * l + 1), sizeof *row);
    if (!row)
        return weir_nomem(err, "the rows of a measurement");
    weir_status st = WEIR_OK;
    for (int64_t at = 0; at < n && st == WEIR_OK; at += f->block) {
        const int64_t some = n - at < f->block ? n - at : f->block;
        st = measure_block(f, x, at, some, row, err);
        if (st == WEIR_OK) {
            add_up(plain, f->kl, l, some);
            add_up(tuned, f->kl + l * some, l, some);
        }
    }
    weir_free(row);
    return st;
}
