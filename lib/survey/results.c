/* survey/results.c: what the counts and sums come to. */
#include <math.h>
#include <string.h>

#include "survey/impl.h"

static const int twentieths[WEIR_SURVEY_QUANTILES] = {1, 5, 10, 15, 19};

double weir_survey_share(int quantile)
{
    return twentieths[quantile] / 20.0;
}

/* ceil(q n), in whole numbers; n >= 1, below 2^58. */
static int64_t rank_of(int quantile, int64_t n)
{
    return (n * twentieths[quantile] + 19) / 20;
}

int weir_survey_n_lines(const weir_survey *c)
{
    return c->n;
}

const weir_survey_line *weir_survey_line_at(const weir_survey *c, int line)
{
    return &c->line[line];
}

weir_survey_counts weir_survey_counts_of(const weir_survey *c)
{
    return c->counts;
}

/* --- values */

static double middle(int bin)
{
    return bin == WEIR_SURVEY_BIN_SIDE ? 0 : (weir_survey_edge(bin) + weir_survey_edge(bin + 1)) / 2;
}

static void put_quantiles(weir_survey_stat *out, const weir_survey_sums *s)
{
    int64_t below = 0;
    int bin = 0;
    for (int q = 0; q < WEIR_SURVEY_QUANTILES; q++) {
        while (bin < WEIR_SURVEY_BINS - 1 && below + s->hist[bin] < rank_of(q, s->count))
            below += s->hist[bin++];
        out->quantile[q] = fmin(fmax(middle(bin), (double)s->min), (double)s->max);
    }
}

static weir_survey_stat nothing(int64_t lost)
{
    weir_survey_stat out = {.lost = lost, .mean = NAN, .min = NAN, .max = NAN};
    for (int q = 0; q < WEIR_SURVEY_QUANTILES; q++)
        out.quantile[q] = NAN;
    return out;
}

weir_survey_stat weir_survey_stat_of(const weir_survey *c, int line, weir_survey_value v)
{
    const weir_survey_sums *s = weir_survey_sums_at(c, line, (int)v);
    if (s->count == 0)
        return nothing(s->lost);
    weir_survey_stat out = {.count = s->count, .lost = s->lost, .min = s->min, .max = s->max};
    out.mean = ldexp((double)s->sum, -WEIR_SURVEY_FRACTION) / (double)s->count;
    put_quantiles(&out, s);
    return out;
}

void weir_survey_hist(const weir_survey *c, int line, weir_survey_value v, int64_t *out)
{
    memcpy(out, weir_survey_sums_at(c, line, (int)v)->hist, WEIR_SURVEY_BINS * sizeof *out);
}

/* --- tokens */

int64_t weir_survey_agree(const weir_survey *c, int line)
{
    return c->agree[line];
}

int64_t weir_survey_right(const weir_survey *c, int line)
{
    return c->right[line];
}

int weir_survey_n_sites(const weir_survey *c)
{
    return c->n_sites;
}

const char *weir_survey_site(const weir_survey *c, int site)
{
    return c->site_name[site];
}

int weir_survey_site_of(const weir_survey *c, int line)
{
    return c->site[line];
}

int64_t weir_survey_settled(const weir_survey *c, int site, int line)
{
    return c->settled[site * c->n + line];
}

weir_survey_stat weir_survey_settle_of(const weir_survey *c, int site)
{
    const int64_t *at = c->settled + (int64_t)site * c->n;
    weir_survey_stat out = nothing(0);
    __int128 sum = 0;
    if (c->counts.seen == 0)
        return out;
    out.count = c->counts.seen;
    for (int l = 0; l < c->n; l++) {
        const float layer = (float)c->line[l].layer;
        sum += (__int128)at[l] * c->line[l].layer;
        if (at[l]) {
            out.min = isnan(out.min) ? layer : out.min;
            out.max = layer;
        }
    }
    out.mean = (double)sum / (double)out.count;
    int64_t below = 0;
    for (int q = 0, l = 0; q < WEIR_SURVEY_QUANTILES; q++) {
        while (l < c->n - 1 && below + at[l] < rank_of(q, out.count))
            below += at[l++];
        out.quantile[q] = c->line[l].layer;
    }
    return out;
}
