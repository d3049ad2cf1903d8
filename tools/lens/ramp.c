#include "ramp.h"

#include <math.h>
#include <stdlib.h>

static bool is_value(weir_lens_stat stat, double x)
{
    return isfinite(x) && !(stat == WEIR_STAT_RANK && x <= 0);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* x [n > 0] ascending. */
static double quantile(const float *x, int64_t n, double q)
{
    double at = q * (double)(n - 1);
    int64_t i = (int64_t)at, next = i + 1 < n ? i + 1 : i;
    return (double)x[i] + (at - (double)i) * ((double)x[next] - (double)x[i]);
}

weir_lens_ramp weir_lens_ramp_of(weir_lens_stat stat, float *x, int64_t n)
{
    weir_lens_ramp r = {stat, 0, 1};
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (is_value(stat, (double)x[i]))
            x[kept++] = x[i];
    if (kept == 0 || stat == WEIR_STAT_PROB)
        return r;
    qsort(x, (size_t)kept, sizeof *x, by_value);
    double low = quantile(x, kept, 0.05), high = quantile(x, kept, 0.95), most = fmax(fabs(low), fabs(high));
    if (stat == WEIR_STAT_RANK)
        return (weir_lens_ramp){stat, 1, fmax(10, high)};
    if (stat == WEIR_STAT_LOGIT)
        return (weir_lens_ramp){stat, low, high};
    if (stat == WEIR_STAT_CONTRAST)
        return (weir_lens_ramp){stat, -most, most};
    return (weir_lens_ramp){stat, 0, high};
}

double weir_lens_ramp_at(const weir_lens_ramp *r, double x)
{
    bool rank = r->stat == WEIR_STAT_RANK;
    if (!is_value(r->stat, x))
        return (double)NAN;
    double low = rank ? log(r->low) : r->low, high = rank ? log(r->high) : r->high;
    double share = high > low ? ((rank ? log(x) : x) - low) / (high - low) : x > r->low ? 1 : 0;
    share = fmax(0, fmin(1, share));
    return rank ? 1 - share : r->stat == WEIR_STAT_CONTRAST ? 2 * share - 1 : share;
}

double weir_lens_ramp_value(const weir_lens_ramp *r, double share)
{
    if (r->stat == WEIR_STAT_RANK)
        return exp(log(r->low) + share * (log(r->high) - log(r->low)));
    return r->low + share * (r->high - r->low);
}

const char *weir_lens_stat_long(weir_lens_stat stat)
{
    static const char *const text[WEIR_STAT_COUNT] = {
        [WEIR_STAT_PROB] = "probability",
        [WEIR_STAT_LOGIT] = "logit",
        [WEIR_STAT_RANK] = "rank, 1: likeliest",
        [WEIR_STAT_ENTROPY] = "entropy of the row's distribution, in nats",
        [WEIR_STAT_KL] = "KL(final row || this row), in nats",
        [WEIR_STAT_KL_PREV] = "KL(this row || the row before it), in nats",
        [WEIR_STAT_JSD] = "Jensen-Shannon divergence to the final row, in nats",
        [WEIR_STAT_CE] = "cross-entropy of the token that follows, in nats",
        [WEIR_STAT_CONTRAST] = "difference of two logits"};
    return text[stat];
}
