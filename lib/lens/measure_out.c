/* Results of a row at a position: sums over the pieces, in double and in their order. */
#include <math.h>

#include "lens/measure.h"

/* Totals over the vocabulary. */
typedef struct totals {
    double plogp, kl_final, kl_prev, jsd;
} totals;

static totals add_up(const weir_lens_block *b, int64_t position, int row)
{
    totals t = {0};
    for (int64_t i = 0; i < b->pieces; i++) {
        const weir_lens_sums *s = &b->sums[(position * b->pieces + i) * b->what->n_rows + row];
        t.plogp += (double)s->plogp;
        t.kl_final += (double)s->kl_final;
        t.kl_prev += (double)s->kl_prev;
        t.jsd += (double)s->jsd;
    }
    return t;
}

/* What is not negative but for its last bits. */
static float at_least_0(double x)
{
    return x > 0 ? (float)x : 0.0f;
}

/* KL(p || q) from the sum of p (ln p - ln q): both logarithms are too large by their rests. */
static float divergence(double sum, const weir_lens_seen *p, const weir_lens_seen *q)
{
    return p->good && q->good ? at_least_0(sum + (q->rest - p->rest)) : NAN;
}

static float half_jsd(double sum)
{
    const float most = 0x1.62e42ep-1f; /* the last float below ln 2 */
    const float x = at_least_0(sum / 2);
    return x < most ? x : most;
}

static void put_numbers(const weir_lens_block *b, int64_t position, int row, int64_t at)
{
    const weir_lens_out *o = b->out;
    const weir_lens_seen *seen = &b->seen[position * b->what->n_rows], *s = &seen[row];
    const int final = b->what->n_rows - 1, prev = b->what->row[row].prev;
    const weir_lens_seen *f = &seen[final];
    if (o->log_z)
        o->log_z[at] = s->good ? (float)((double)s->sum.max + s->sum.log_sum) : NAN;
    if (!b->probs)
        return;
    const totals t = add_up(b, position, row);
    if (o->entropy)
        o->entropy[at] = s->good ? at_least_0(s->rest - t.plogp) : NAN;
    if (o->kl_prev)
        o->kl_prev[at] = prev >= 0 ? divergence(t.kl_prev, s, &seen[prev]) : NAN;
    if (o->kl_final)
        o->kl_final[at] = divergence(t.kl_final, f, s);
    if (o->jsd)
        o->jsd[at] = s->good && f->good ? half_jsd(t.jsd) : NAN;
    if (row == final && s->good) {
        if (o->kl_final)
            o->kl_final[at] = 0;
        if (o->jsd)
            o->jsd[at] = 0;
    }
}

static int32_t rank(const weir_lens_block *b, int64_t position, int row, int j)
{
    int32_t rank = 1;
    for (int64_t i = 0; i < b->pieces; i++)
        rank += b->likelier[((position * b->pieces + i) * b->what->n_rows + row) * b->what->n_targets + j];
    return rank;
}

static void put_target(const weir_lens_block *b, int64_t position, int row, int j, int64_t at)
{
    const weir_lens_out *o = b->out;
    const weir_lens_seen *s = &b->seen[position * b->what->n_rows + row];
    const int32_t t = weir_lens_target(b, position, row, j);
    const bool known = t >= 0 && s->good;
    const float y = known ? weir_lens_logits_at(b, position, row)[t] : NAN;
    if (o->logit)
        o->logit[at] = y;
    if (o->logprob)
        o->logprob[at] = known ? weir_row_logprob(&s->sum, y) : NAN;
    if (o->rank)
        o->rank[at] = known ? rank(b, position, row, j) : 0;
}

void weir_lens_put_row(void *ctx, int64_t i, int thread)
{
    const weir_lens_block *b = ctx;
    const int rows = b->what->n_rows, row = (int)(i % rows), targets = b->what->n_targets;
    const int64_t position = i / rows, at = row * b->what->n + b->at + position;
    (void)thread;
    put_numbers(b, position, row, at);
    for (int j = 0; j < targets; j++)
        put_target(b, position, row, j, at * targets + j);
}
