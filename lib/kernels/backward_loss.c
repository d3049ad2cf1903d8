/* kernels/backward_loss.c: rows of logits become rows of gradients of a loss. */
#include <math.h>

#include "base/parallel.h"
#include "kernels/kern.h"

#define KL_PIECE 1024 /* columns whose terms are summed in fp32, before they go to the total in double */

typedef struct loss_ctx {
    const weir_kern *kern;
    float *x;
    int64_t ld, v;
    const weir_loss_row *row;
    double *value;
} loss_ctx;

static double logit_row(float *x, int64_t v, const weir_loss_row *r)
{
    const double value = (double)x[r->token];
    for (int64_t i = 0; i < v; i++)
        x[i] = 0.0f;
    x[r->token] = isnan(r->weight) ? NAN : r->weight;
    return value;
}

static double nll_row(const loss_ctx *c, float *x, const weir_loss_row *r, const weir_row_sum *s)
{
    const double value = s->log_sum - (double)(x[r->token] - s->max);
    c->kern->prob_row(x, c->v, s->max, 1.0f / s->sum, r->weight);
    const float d = x[r->token] - r->weight;
    x[r->token] = isnan(d) ? NAN : d;
    return value;
}

static double kl_row(const loss_ctx *c, float *x, const weir_loss_row *r, const weir_row_sum *s)
{
    weir_kl_row k = {.max = s->max, .inv = 1.0f / s->sum, .log_sum = (float)s->log_sum, .weight = r->weight};
    double kl = 0;
    for (int64_t i = 0; i < c->v; i += KL_PIECE)
        kl += (double)c->kern->kl_sum(x + i, r->log_q + i, weir_min64(KL_PIECE, c->v - i), &k);
    k.kl = (float)kl;
    c->kern->kl_row(x, r->log_q, c->v, &k);
    return kl;
}

static void loss_row(void *ctx, int64_t i, int thread)
{
    (void)thread;
    const loss_ctx *c = ctx;
    const weir_loss_row *r = &c->row[i];
    float *x = c->x + i * c->ld;
    double value;
    if (r->kind == WEIR_ROW_LOGIT) {
        value = logit_row(x, c->v, r);
    } else {
        weir_row_sum s;
        weir_op_row_sums(c->kern, 1, &s, x, c->ld, 1, c->v);
        value = r->kind == WEIR_ROW_NLL ? nll_row(c, x, r, &s) : kl_row(c, x, r, &s);
    }
    c->value[i] = isnan(value) ? NAN : value;
}

void weir_loss_backward(const weir_kern *k, int threads, float *x, int64_t ld, int64_t rows, int64_t v,
                        const weir_loss_row *row, double *value)
{
    weir_parallel_for(threads, rows, 1, loss_row,
                      &(loss_ctx){.kern = k, .x = x, .ld = ld, .v = v, .row = row, .value = value});
}
