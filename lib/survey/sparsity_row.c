/* survey/sparsity_row.c: counting a row. */
#include <math.h>
#include <string.h>

#include "survey/sparsity.h"

/* Sums of a row. False: something in it is not finite. */
static bool add_sums(weir_sparsity_count *c, const float *x, int64_t n)
{
    double s1 = 0, s2 = 0, s3 = 0, s4 = 0, l1 = 0;
    int64_t zeros = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = x[i], q = v * v;
        s1 += v;
        s2 += q;
        s3 += q * v;
        s4 += q * q;
        l1 += fabs(v);
        zeros += x[i] == 0;
    }
    if (!isfinite(l1))
        return false;
    c->zeros += zeros;
    c->sum[0] += s1;
    c->sum[1] += s2;
    c->sum[2] += s3;
    c->sum[3] += s4;
    if (s2 > 0 && n > 1) {
        const double root = sqrt((double)n);
        c->hoyer += (root - l1 / sqrt(s2)) / (root - 1);
        c->hoyer_rows++;
    }
    return true;
}

static void add_active(weir_sparsity_at *a, const float *x, int64_t n, bool follows)
{
    int64_t active = 0, both = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t now = a->below > 0 ? fabsf(x[i]) >= a->below : x[i] != 0;
        active += now;
        both += now & a->active[i];
        a->count[i] += now;
        a->active[i] = now;
    }
    const int64_t either = active + a->last - both;
    if (follows && either) {
        a->pairs++;
        a->jaccard += (double)both / (double)either;
    }
    a->last = active;
    a->small += n - active;
    a->l0[active]++;
}

weir_status weir_sparsity_add(weir_sparsity *s, weir_sparsity_count *c, const float *x, int64_t tag, int64_t pos,
                              weir_err *err)
{
    const int64_t n = c->point->width;
    const bool follows = c->follows && c->tag == tag && c->pos + 1 == pos;
    c->follows = add_sums(c, x, n);
    c->tag = tag;
    c->pos = pos;
    if (!c->follows) {
        c->lost++;
        return WEIR_OK;
    }
    c->rows++;
    for (int64_t i = 0; i < n; i++)
        c->hist[weir_sparsity_bits(x[i]) >> WEIR_CUT_SHIFT]++;
    for (int t = 0; t < s->n_below; t++)
        add_active(&c->at[t], x, n, follows);
    return c->sample ? weir_sparsity_keep(s, c, x, tag, pos, err) : WEIR_OK;
}

void weir_sparsity_add_gate(weir_sparsity *s, weir_sparsity_count *c, const float *gate)
{
    const int64_t n = c->point->width;
    weir_op_act(s->kern, 1, s->act, s->scratch, gate, NULL, n);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bin = weir_sparsity_bits(s->scratch[i]) >> WEIR_CUT_SHIFT;
        c->gate_zeros += s->scratch[i] == 0;
        if (bin < WEIR_CUT_BINS)
            c->gate[bin]++;
    }
}
