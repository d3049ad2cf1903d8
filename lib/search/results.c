/* search/results.c: what a search says of its neurons. */
#include <math.h>
#include <string.h>

#include "search/impl.h"

/* --- bins */

enum { LOWEST = (127 - 20) << 3 }; /* the upper bits of 2^-20: exponent and three bits of the mantissa */

int weir_neurons_bin(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int step = (int)(bits << 1 >> 21) - LOWEST + 1; /* 0: below 2^-20 */
    step = step < 0 ? 0 : step > WEIR_NEURONS_BIN_SIDE + 1 ? WEIR_NEURONS_BIN_SIDE + 1 : step;
    return bits >> 31 ? WEIR_NEURONS_BIN_SIDE + 1 - step : WEIR_NEURONS_BIN_SIDE + 1 + step;
}

/* The s-th edge upwards from 2^-20. */
static double edge_of_step(int s)
{
    return ldexp(8 + s % 8, s / 8 - 20 - 3);
}

double weir_neurons_edge(int bin)
{
    enum { ZERO = WEIR_NEURONS_BIN_SIDE + 1 };
    if (bin <= 0)
        return -INFINITY;
    if (bin >= WEIR_NEURONS_BINS)
        return INFINITY;
    return bin > ZERO ? edge_of_step(bin - ZERO - 1) : -edge_of_step(ZERO - bin);
}

static const int band_edge[WEIR_NEURONS_BANDS + 1] = {0, 500, 900, 990, 999, 1000}; /* thousandths */

double weir_neurons_band_edge(int i)
{
    return band_edge[i] / 1000.0;
}

/* --- the search */

int weir_neurons_n_tables(const weir_neurons *s)
{
    return s->n_tables;
}

const weir_neurons_table *weir_neurons_table_at(const weir_neurons *s, int t)
{
    return &s->table[t].pub;
}

const weir_neurons_options *weir_neurons_options_of(const weir_neurons *s)
{
    return &s->o;
}

const weir_neurons_about *weir_neurons_about_of(const weir_neurons *s)
{
    return &s->about;
}

weir_neurons_counts weir_neurons_counts_of(const weir_neurons *s)
{
    return s->counts;
}

int64_t weir_neurons_skipped(const weir_neurons *s, int t)
{
    return s->table[t].skipped;
}

int weir_neurons_find_named(const weir_neurons *s, int t, int64_t i)
{
    for (int j = 0; j < s->o.n_named; j++)
        if (s->named[j].table == t && s->named[j].neuron == i)
            return j;
    return -1;
}

/* --- counts */

int64_t weir_neurons_nonfinite(const weir_neurons *s, int t, int64_t i)
{
    return s->table[t].nonfinite[i];
}

void weir_neurons_stats(const weir_neurons *s, int t, int64_t i, weir_neuron_stats *out)
{
    const weir_ntable *table = &s->table[t];
    *out = (weir_neuron_stats){.nonfinite = table->nonfinite[i], .min = NAN, .max = NAN};
    out->count = table->rows - out->nonfinite;
    if (out->count > 0) {
        out->min = table->min[i];
        out->max = table->max[i];
    }
    for (int j = 0; j < s->o.n_thresholds; j++)
        out->above[j] = table->above[i * s->o.n_thresholds + j];
    weir_sums_finish(&table->sums[i], out->count, &out->mean, &out->sd, &out->skew, &out->kurtosis);
}

void weir_neurons_hist(const weir_neurons *s, int t, int64_t i, int64_t *out)
{
    const weir_ntable *table = &s->table[t];
    for (int64_t b = 0, at = i * WEIR_NEURONS_BINS; b < WEIR_NEURONS_BINS; b++, at++)
        out[b] = table->hist[at] + (table->hist_all ? table->hist_all[at] : 0);
}

/* --- places */

static weir_neuron_hit hit_of(float value, weir_place at, int64_t count)
{
    return (weir_neuron_hit){.value = value, .doc = at.doc, .pos = at.pos, .count = count};
}

int64_t weir_neurons_hits(const weir_neurons *s, int t, int64_t i, weir_neurons_list which, weir_neuron_hit *out)
{
    const weir_lists *l = &s->table[t].list[which];
    if (!l->room)
        return 0;
    const int64_t n = l->size[i] < s->o.k ? l->size[i] : s->o.k;
    for (int64_t j = 0; j < n; j++) {
        const weir_entry e = weir_lists_get(l, i, j);
        out[j] = hit_of(e.value, e.at, e.count);
    }
    return n;
}

int64_t weir_neurons_random(const weir_neurons *s, int t, int64_t i, weir_neuron_hit *out)
{
    const weir_ntable *table = &s->table[t];
    const weir_random *r = &table->random;
    for (int64_t n = 0; n < r->n; n++) {
        int64_t at = n; /* places are few: insertion */
        for (;
             at > 0 && weir_place_before(r->at[n], (weir_place){(uint32_t)out[at - 1].doc, (uint32_t)out[at - 1].pos});
             at--)
            out[at] = out[at - 1];
        out[at] = hit_of(r->value[r->row[n] * table->n + i], r->at[n], 1);
    }
    return r->n;
}

/* Which bins belong to a band: [*first, *end). */
static void bins_of_band(const int64_t *hist, int band, uint32_t *first, uint32_t *end)
{
    int64_t all = 0, upto = 0;
    for (int b = 0; b < WEIR_NEURONS_BINS; b++)
        all += hist[b];
    *first = *end = 0;
    for (uint32_t b = 0; b < WEIR_NEURONS_BINS; b++) {
        upto += hist[b];
        const __int128 rank = (__int128)upto * 1000;
        *first += rank <= (__int128)all * band_edge[band];
        *end += rank <= (__int128)all * band_edge[band + 1];
    }
}

int64_t weir_neurons_band(const weir_neurons *s, int t, int64_t i, int band, weir_neuron_hit *out)
{
    const weir_samples *samples = &s->table[t].samples;
    int64_t hist[WEIR_NEURONS_BINS];
    uint32_t first, end;
    if (!samples->neuron || band < 0 || band >= WEIR_NEURONS_BANDS)
        return 0;
    weir_neurons_hist(s, t, i, hist);
    bins_of_band(hist, band, &first, &end);
    return weir_samples_best(samples, i, first, end, s->o.per_band, out);
}
