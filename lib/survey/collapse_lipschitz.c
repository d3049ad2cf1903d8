/* How much an MLP stretches a small step: power iteration on J^T J at many points at once. */
#include <math.h>
#include <string.h>

#include <weir/collapse.h>
#include <weir/grad.h>

#include "../base/mem.h"
#include "collapse_draw.h"

/* A pass through one MLP: what it reads is put there, what it gives is copied. */
typedef struct passing {
    weir_run *run;
    const weir_point *in, *out;
    float *put, *got; /* [n,C] */
} passing;

typedef struct stretching {
    int64_t n, c, layer;
    const float *x;
    passing base, moved; /* at the points, with a way back; at others */
    weir_grad *grad;
    int32_t *id;
    weir_seq *seq;      /* [n] one token each: rows that do not know of each other */
    double *v, *jv, *w; /* [n,C] the vector, J v, J^T u */
    float *seed, *back; /* [n,C] u, J^T u */
    float *ahead;       /* [n,C] what the MLP gives a step ahead */
    double *step;       /* [n]; NaN: the point is lost */
    bool *done;         /* [n] */
} stretching;

/* --- passes */

static weir_want wants(void *self, const weir_point *p)
{
    const passing *s = self;
    return p == s->in ? WEIR_WRITE : p == s->out ? WEIR_READ : WEIR_NONE;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    passing *s = self;
    const size_t bytes = (size_t)(v->rows->n * v->width) * sizeof(float);
    (void)err;
    if (v->point == s->in)
        memcpy(v->data, s->put, bytes);
    else
        memcpy(s->got, v->data, bytes);
    return WEIR_OK;
}

static weir_status on_grad(void *self, const weir_value *v, weir_err *err)
{
    (void)self;
    (void)err;
    memset(v->data, 0, (size_t)(v->rows->n * v->width) * sizeof *v->data);
    return WEIR_OK;
}

static const weir_hook_class through = {.struct_size = sizeof(weir_hook_class),
                                        .abi = WEIR_HOOK_ABI,
                                        .name = "lipschitz",
                                        .wants = wants,
                                        .on_value = on_value,
                                        .on_grad = on_grad};

static weir_status forward(stretching *s, passing *p, int flags, weir_err *err)
{
    memcpy(weir_run_stream(p->run), s->x, (size_t)(s->n * s->c) * sizeof *s->x);
    return weir_run_forward_from(p->run, s->seq, s->n, s->layer, flags, err);
}

/* --- products */

/* s->jv = J v, by the points ahead and behind. */
static weir_status ahead_and_behind(stretching *s, weir_err *err)
{
    float *put = s->moved.put;
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (int64_t i = 0; i < s->n * s->c; i++)
            put[i] = (float)((double)s->x[i] + sign * s->step[i / s->c] * s->v[i]);
        WEIR_TRY(forward(s, &s->moved, 0, err));
        if (sign > 0)
            memcpy(s->ahead, s->moved.got, (size_t)(s->n * s->c) * sizeof *s->ahead);
    }
    for (int64_t i = 0; i < s->n * s->c; i++)
        s->jv[i] = ((double)s->ahead[i] - (double)s->moved.got[i]) / (2 * s->step[i / s->c]);
    return WEIR_OK;
}

static double length(const double *x, int64_t n)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        square += x[i] * x[i];
    return sqrt(square);
}

/* s->w = J^T u, u the direction of J v. */
static weir_status back(stretching *s, weir_err *err)
{
    for (int64_t i = 0; i < s->n; i++) {
        const double size = length(s->jv + i * s->c, s->c);
        for (int64_t k = 0; k < s->c; k++)
            s->seed[i * s->c + k] = size > 0 ? (float)(s->jv[i * s->c + k] / size) : 0;
    }
    const weir_grad_seed seed = {.point = s->base.out, .d = s->seed};
    WEIR_TRY(weir_grad_backward(s->grad, NULL, 0, &seed, 1, NULL, NULL, err));
    for (int64_t i = 0; i < s->n * s->c; i++)
        s->w[i] = (double)s->back[i];
    return WEIR_OK;
}

/* What a point has come to, and its next vector. u was rounded to fp32: its length is 1 but for 2^-24. */
static void take(stretching *s, int64_t i, double tolerance, weir_lipschitz *out)
{
    double *v = s->v + i * s->c, *w = s->w + i * s->c, square = 0;
    const double size = length(s->jv + i * s->c, s->c), factor = length(w, s->c);
    if (s->done[i])
        return;
    out->iterations++;
    for (int64_t k = 0; k < s->c; k++) {
        const double d = size > 0 ? w[k] / size - v[k] : 0;
        square += d * d;
        v[k] = factor > 0 ? w[k] / factor : v[k];
    }
    out->residual = sqrt(square);
    out->factor = fmax(out->factor, factor); /* each is a lower bound */
    s->done[i] = !(out->residual > tolerance);
}

static weir_status iterate(stretching *s, const weir_lipschitz_options *o, weir_lipschitz *out, weir_err *err)
{
    int64_t left = s->n;
    WEIR_TRY(forward(s, &s->base, WEIR_FINAL, err));
    for (int64_t k = 0; k < o->iterations && left > 0; k++) {
        WEIR_TRY(ahead_and_behind(s, err));
        WEIR_TRY(back(s, err));
        left = 0;
        for (int64_t i = 0; i < s->n; i++) {
            take(s, i, o->tolerance, &out[i]);
            left += !s->done[i];
        }
    }
    return WEIR_OK;
}

/* --- making */

/* Products so small that threads would wait for each other more than they work. */
enum { SMALL = 1 << 24 };

static weir_status open_pass(const stretching *s, passing *p, const weir_model *m, const weir_lipschitz_options *o,
                             bool backward, weir_err *err)
{
    weir_run_options r;
    char name[64];
    weir_run_options_init(&r);
    r.threads = s->n * s->c * weir_model_info_of(m)->F < SMALL ? 1 : o->threads;
    r.kernel = o->kernel;
    r.edits = o->edits;
    r.n_edits = o->n_edits;
    r.max_rows = s->n;
    r.max_len = 1;
    r.backward = backward;
    snprintf(name, sizeof name, "blocks.%lld.ln2.hook_out", (long long)s->layer);
    p->in = weir_model_point(m, name);
    snprintf(name, sizeof name, "blocks.%lld.hook_mlp_out", (long long)s->layer);
    p->out = weir_model_point(m, name);
    WEIR_TRY(weir_run_new(&p->run, m, &r, err));
    return weir_run_hook_object(p->run, &through, p, err);
}

static bool give_room(stretching *s)
{
    const size_t n = (size_t)s->n, c = (size_t)s->c;
    double **const wide[] = {&s->v, &s->jv, &s->w};
    float **const narrow[] = {&s->base.put, &s->base.got, &s->moved.put, &s->moved.got, &s->seed, &s->back, &s->ahead};
    bool ok = (s->id = weir_calloc(n, sizeof *s->id)) && (s->seq = weir_calloc(n, sizeof *s->seq)) &&
              (s->step = weir_calloc(n, sizeof *s->step)) && (s->done = weir_calloc(n, sizeof *s->done));
    for (size_t i = 0; i < sizeof wide / sizeof *wide && ok; i++)
        ok = (*wide[i] = weir_calloc(n, c * sizeof **wide[i]));
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow && ok; i++)
        ok = (*narrow[i] = weir_calloc(n, c * sizeof **narrow[i]));
    return ok;
}

static void begin(stretching *s, uint64_t seed, weir_lipschitz *out)
{
    for (int64_t i = 0; i < s->n; i++) {
        double square = 0;
        uint64_t state = weir_rng_mix(seed) ^ (uint64_t)i;
        s->seq[i] = (weir_seq){.ids = s->id + i, .n = 1, .slot = -1};
        weir_collapse_direction(&state, s->c, s->v + i * s->c);
        for (int64_t k = 0; k < s->c; k++)
            square += (double)s->x[i * s->c + k] * (double)s->x[i * s->c + k];
        s->done[i] = !(square > 0) || !isfinite(square);
        s->step[i] = s->done[i] ? 1 : sqrt(square) / 256;
        out[i] = (weir_lipschitz){s->done[i] ? NAN : 0, s->done[i] ? NAN : INFINITY, 0};
    }
    memcpy(s->base.put, s->x, (size_t)(s->n * s->c) * sizeof *s->x);
}

static weir_status measure(stretching *s, const weir_model *m, const weir_lipschitz_options *o, weir_lipschitz *out,
                           weir_err *err)
{
    if (!give_room(s))
        return weir_nomem(err, "the stretch of an MLP");
    WEIR_TRY(open_pass(s, &s->base, m, o, true, err));
    WEIR_TRY(open_pass(s, &s->moved, m, o, false, err));
    WEIR_TRY(weir_grad_new(&s->grad, s->base.run, NULL, err));
    WEIR_TRY(weir_grad_to(s->grad, s->base.in, s->back, err));
    WEIR_TRY(weir_run_prepare(s->base.run, WEIR_FINAL, err));
    WEIR_TRY(weir_run_prepare(s->moved.run, 0, err));
    begin(s, o->seed, out);
    return iterate(s, o, out, err);
}

weir_status weir_lipschitz_measure(weir_lipschitz *out, const weir_model *m, int64_t layer, const float *x, int64_t n,
                                   const weir_lipschitz_options *o, weir_err *err)
{
    const weir_model_info *info = weir_model_info_of(m);
    stretching s = {.n = n, .c = info->C, .layer = layer, .x = x};
    if (layer < 0 || layer >= info->L || n < 1 || o->iterations < 1)
        return weir_fail(err, WEIR_E_ARG, "the MLP of layer %lld at %lld points in %lld iterations", (long long)layer,
                         (long long)n, (long long)o->iterations);
    const weir_status st = measure(&s, m, o, out, err);
    weir_grad_free(s.grad);
    weir_run_free(s.base.run);
    weir_run_free(s.moved.run);
    void *const own[] = {s.id,    s.seq,  s.v,    s.jv,       s.w,        s.seed,      s.back,
                         s.ahead, s.step, s.done, s.base.put, s.base.got, s.moved.put, s.moved.got};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        weir_free(own[i]);
    return st;
}
