/* The update: Adam with decoupled weight decay, each translator's gradient clipped on its own, because translators are
 * problems of their own: none should learn slower for what another one saw. */
#include <math.h>
#include <string.h>

#include "../base/parallel.h"
#include "fit.h"

#define BETA1 0.9
#define BETA2 0.999
#define EPSILON 1e-8f

typedef struct update {
    weir_fit *f;
    double rate;
    double undo1, undo2; /* 1 / (1 - beta^t): the moments begin at 0 */
} update;

/* What the step's sum is multiplied with: its mean, shortened to `clip`. */
static float scale_of(const weir_fit *f, const float *grad)
{
    double sum = 0, scale = 1 / (double)f->o.step_rows;
    for (int64_t k = 0; k < f->size; k++)
        sum += (double)grad[k] * (double)grad[k];
    const double norm = sqrt(sum) * scale;
    if (f->o.clip > 0 && norm > f->o.clip)
        scale *= f->o.clip / norm;
    return (float)scale;
}

static void update_translator(void *ctx, int64_t i, int thread)
{
    const update *u = ctx;
    weir_fit *f = u->f;
    const int64_t n = f->size;
    float *theta = f->theta + i * n, *grad = f->grad + i * n, *mean = f->mean + i * n, *square = f->square + i * n;
    const float scale = scale_of(f, grad), rate = (float)(u->rate * u->undo1), undo2 = (float)u->undo2;
    const float keep = (float)(1 - u->rate * f->o.weight_decay);
    (void)thread;
    for (int64_t k = 0; k < n; k++) {
        const float g = grad[k] * scale;
        mean[k] = (float)BETA1 * mean[k] + (float)(1 - BETA1) * g;
        square[k] = (float)BETA2 * square[k] + (float)(1 - BETA2) * (g * g);
        theta[k] = keep * theta[k] - rate * mean[k] / (sqrtf(square[k] * undo2) + EPSILON);
    }
    memset(grad, 0, (size_t)n * sizeof *grad);
}

/* Adam's first steps are as long as any, whatever the gradient is worth: layers that are nearly right already would be
 * thrown off. So the rate rises over the first fifth of the steps, then falls. */
static double rate_of(const weir_fit *f)
{
    const int64_t n = f->o.steps, rise = n / 5, t = f->steps;
    return f->o.lr * (t < rise ? (double)(t + 1) / (double)rise : (double)(n - t) / (double)(n - rise));
}

void weir_fit_update(weir_fit *f)
{
    double left1 = 1, left2 = 1; /* products, not pow: the same bits everywhere */
    for (int64_t t = 0; t <= f->steps; t++) {
        left1 *= BETA1;
        left2 *= BETA2;
    }
    update u = {.f = f,
                .rate = rate_of(f),
                .undo1 = 1 / (1 - left1),
                .undo2 = 1 / (1 - left2)};
    weir_parallel_for(f->threads, f->spec->L, 1, update_translator, &u);
}
