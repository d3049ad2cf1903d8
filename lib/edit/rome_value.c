/* The search for v*: Adam (Kingma and Ba, arXiv 1412.6980) on delta, whose length is held below the clamp. One round
 * is what kmeng01/rome's compute_v does: at most steps - 1 updates, because the last pass only measures. Where that
 * left the target unlikely, another follows from the same place. Sums are in double, in ascending order. */
#include <math.h>
#include <string.h>

#include "rome.h"

#define BETA1 0.9
#define BETA2 0.999
#define EPSILON 1e-8
#define REACHED 0.9 /* probability of the target that ends a search with its round */

typedef struct adam {
    float *delta, *grad, *mean, *square; /* [C] */
    int64_t c, t;
    double rate, left1, left2; /* left: products of the betas, not pow: the same bits everywhere */
} adam;

static double norm(const float *x, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += (double)x[i] * (double)x[i];
    return sqrt(s);
}

static void update(adam *a)
{
    a->left1 *= BETA1;
    a->left2 *= BETA2;
    const double rate = a->rate / (1 - a->left1), undo2 = 1 / (1 - a->left2);
    for (int64_t i = 0; i < a->c; i++) {
        const double g = (double)a->grad[i];
        a->mean[i] = (float)(BETA1 * (double)a->mean[i] + (1 - BETA1) * g);
        a->square[i] = (float)(BETA2 * (double)a->square[i] + (1 - BETA2) * g * g);
        a->delta[i] =
            (float)((double)a->delta[i] - rate * (double)a->mean[i] / (sqrt((double)a->square[i] * undo2) + EPSILON));
    }
}

/* Back onto the ball. */
static bool project(adam *a, double most)
{
    const double length = norm(a->delta, a->c);
    if (length <= most)
        return false;
    for (int64_t i = 0; i < a->c; i++)
        a->delta[i] = (float)((double)a->delta[i] * (most / length));
    return true;
}

/* The decay's share of the gradient: of weight ||delta||, 0 at 0. */
static void add_decay(adam *a, double weight, double length)
{
    if (!(length > 0))
        return;
    for (int64_t i = 0; i < a->c; i++)
        a->grad[i] = (float)((double)a->grad[i] + weight * (double)a->delta[i] / length);
}

static weir_status measure(weir_rome_pass *p, const weir_rome_options *o, adam *a, float *log_q, double v0, bool first,
                           weir_rome_step *step, weir_err *err)
{
    weir_rome_loss loss;
    WEIR_TRY(weir_rome_pass_try(p, a->delta, err));
    if (first)
        WEIR_TRY(weir_rome_pass_log_q(p, log_q, err));
    WEIR_TRY(weir_rome_pass_loss(p, first ? NULL : log_q, o->kl, &loss, a->grad, err));
    const double length = norm(a->delta, a->c), weight = o->decay / (v0 * v0);
    *step = (weir_rome_step){.nll = loss.nll, .kl = o->kl * loss.kl, .decay = weight * length, .delta = length};
    step->loss = step->nll + step->kl + step->decay;
    step->p = exp(-step->nll);
    if (!isfinite(step->loss))
        return weir_fail(err, WEIR_E_ARG,
                         "the loss is %f: a rate of %g is too much here, or the model's own values are not "
                         "finite",
                         step->loss, o->rate);
    add_decay(a, weight, length);
    return WEIR_OK;
}

/* Adam begins anew, where delta is. */
static void forget(adam *a)
{
    memset(a->mean, 0, (size_t)a->c * sizeof *a->mean);
    memset(a->square, 0, (size_t)a->c * sizeof *a->square);
    a->left1 = a->left2 = 1;
}

static double target_p(const weir_rome_report *r)
{
    return exp(-r->step[r->steps - 1].nll * (double)r->target_tokens);
}

static weir_status search(weir_rome_pass *p, const weir_rome_options *o, adam *a, float *log_q, double v0,
                          weir_rome_report *r, weir_err *err)
{
    bool clamped = false;
    const int64_t most = o->steps * o->rounds;
    for (int64_t t = 0; t < most; t++) {
        weir_rome_step *step = &r->step[t];
        WEIR_TRY(measure(p, o, a, log_q, v0, t == 0, step, err));
        r->steps = t + 1;
        const bool round_over = r->steps % o->steps == 0;
        if (step->loss < o->enough || r->steps == most || (round_over && target_p(r) >= REACHED))
            break;
        if (round_over)
            forget(a);
        update(a);
        clamped = project(a, o->clamp * v0);
    }
    r->delta = norm(a->delta, a->c);
    r->clamped = clamped;
    r->converged = r->step[r->steps - 1].loss < o->enough || target_p(r) > 0.5;
    return WEIR_OK;
}

weir_status weir_rome_search(weir_rome_pass *p, const weir_rome_options *o, double v0, float *delta,
                             weir_rome_report *report, weir_err *err)
{
    const int64_t c = weir_rome_pass_width(p), v = weir_rome_pass_vocabulary(p);
    if (!(v0 > 0) || !isfinite(v0))
        return weir_fail(err, WEIR_E_ARG, "the value at the subject has length %f: nothing to begin with", v0);
    adam a = {.delta = delta, .c = c, .rate = o->rate, .left1 = 1, .left2 = 1};
    float *room = weir_calloc(3, (size_t)c * sizeof *room), *log_q = weir_calloc((size_t)v, sizeof *log_q);
    report->step = weir_calloc((size_t)(o->steps * o->rounds), sizeof *report->step);
    report->v0 = v0;
    memset(delta, 0, (size_t)c * sizeof *delta);
    weir_status s = WEIR_OK;
    if (room && log_q && report->step) {
        a.grad = room, a.mean = room + c, a.square = room + 2 * c;
        s = search(p, o, &a, log_q, v0, report, err);
    } else {
        s = weir_nomem(err, "the search of an edit");
    }
    weir_free(room);
    weir_free(log_q);
    return s;
}
