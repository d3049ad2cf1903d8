/* The first sweep: what can be said of a row by itself. */
#include <math.h>
#include <string.h>

#include "lens/measure.h"

static void put_top(const weir_lens_block *b, int64_t position, int row, const int32_t *id, const float *x)
{
    const int64_t k = b->what->k, at = (row * b->what->n + b->at + position) * k;
    const weir_lens_seen *s = &b->seen[position * b->what->n_rows + row];
    if (b->out->top_id)
        memcpy(b->out->top_id + at, id, (size_t)k * sizeof *id);
    if (b->out->top_logprob)
        for (int64_t i = 0; i < k; i++)
            b->out->top_logprob[at + i] = id[i] < 0 ? NAN : weir_row_logprob(&s->sum, x[id[i]]);
}

void weir_lens_see_row(void *ctx, int64_t i, int thread)
{
    const weir_lens_block *b = ctx;
    const int rows = b->what->n_rows, row = (int)(i % rows);
    const int64_t k = b->out->top_id || b->out->top_logprob ? b->what->k : 0;
    const int64_t most = b->what->k > 1 ? b->what->k : 1;
    const float *x = weir_lens_logits_at(b, i / rows, row);
    weir_lens_seen *s = &b->seen[i];
    weir_op_row_sums(b->l->kern, 1, &s->sum, x, b->l->spec->V, 1, b->vocab);
    s->good = !isnan(s->sum.log_sum);
    s->softmax = (weir_lens_softmax){s->sum.max, 1.0f / s->sum.sum, (float)s->sum.log_sum};
    s->rest = s->sum.log_sum - (double)s->softmax.log_z;
    const bool best = b->what->n_targets > 0 && (row == rows - 1 || b->row_tops);
    int32_t *id = b->id + thread * most;
    id[0] = -1;
    if (k > 0 || best)
        weir_lens_largest(b->l, x, b->vocab, k > 0 ? k : 1, id);
    s->best = id[0];
    if (k > 0)
        put_top(b, i / rows, row, id, x);
}
