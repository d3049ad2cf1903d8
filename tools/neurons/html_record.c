#include "html_record.h"

#include <math.h>

#include "sections.h"

static const weir_weight_token *weight_tokens(const weir_html *h, const weir_shown *neuron, int part, int64_t *n)
{
    return weir_neurons_weight_tokens(h->v->s, neuron->table, neuron->neuron, (weir_weight_side)(part / 2),
                                      part % 2 == 0, n);
}

static int64_t token_means(const weir_html *h, int named, bool descending, weir_token_mean *mean)
{
    int64_t least = 2; /* a token seen once is a place, not a mean */
    return weir_neurons_token_means(h->v->s, named, descending, least, WEIR_HTML_MEANS, mean);
}

void weir_html_want(weir_html *h, const weir_shown *neuron)
{
    const weir_view *v = h->v;
    for (int section = 0; section < WEIR_SECTIONS; section++) {
        bool kept = weir_section_shown(v, section);
        int64_t n = kept ? weir_section_hits(v, neuron, section, h->hit) : 0;
        for (int64_t i = 0; i < n; i++)
            weir_html_text_want(&h->text, &h->text.places, weir_html_place(&h->hit[i]));
    }
    for (int part = 0; part < 2 * WEIR_SIDES; part++) {
        int64_t n;
        const weir_weight_token *w = weight_tokens(h, neuron, part, &n);
        for (int64_t i = 0; i < n; i++)
            if (w[i].id >= 0)
                weir_html_text_want(&h->text, &h->text.ids, (uint32_t)w[i].id);
    }
    int named = weir_neurons_find_named(v->s, neuron->table, neuron->neuron);
    weir_token_mean mean[WEIR_HTML_MEANS];
    for (int end = 0; end < 2 && named >= 0; end++)
        for (int64_t i = token_means(h, named, end == 0, mean); i-- > 0;)
            weir_html_text_want(&h->text, &h->text.ids, (uint32_t)mean[i].id);
}

/* --- places */

/* Of a named neuron: its values around a place. How many tokens, which of them is the place's, the values. */
static void put_values(weir_html *h, const weir_neuron_hit *hit, int named)
{
    weir_neurons_context c = weir_neurons_context_of(h->v->s, hit->doc, hit->pos, named);
    int64_t first = 0, end = 0;
    if (c.n && c.value)
        weir_view_window(h->v, &c, &first, &end);
    weir_base64_count(&h->out, end - first);
    if (end > first)
        weir_base64_count(&h->out, c.hit - first);
    for (int64_t i = first; i < end; i++)
        weir_base64_f32(&h->out, c.value[i]);
}

/* value, where it is in the text + 1 (0: nowhere; then document and position), count, cluster + 1. */
static void put_hit(weir_html *h, const weir_neuron_hit *hit, int32_t cluster, int named)
{
    int64_t at = weir_html_text_at(&h->text, hit->doc, hit->pos);
    weir_base64_f32(&h->out, hit->value);
    weir_base64_count(&h->out, at + 1);
    if (at < 0) {
        weir_base64_count(&h->out, hit->doc);
        weir_base64_count(&h->out, hit->pos);
    }
    weir_base64_count(&h->out, hit->count);
    weir_base64_count(&h->out, cluster + 1);
    if (named >= 0)
        put_values(h, hit, named);
}

static bool put_sections(weir_html *h, const weir_shown *neuron, int named, weir_html_row *row)
{
    const weir_view *v = h->v;
    const weir_neurons_options *opt = weir_neurons_options_of(v->s);
    bool clusters = v->clusters && weir_section_kept(opt, WEIR_NEURONS_TOP);
    if (clusters) {
        weir_neuron_clusters c;
        if (weir_neurons_clusters(v->s, neuron->table, neuron->neuron, WEIR_NEURONS_TOP, &c, h->cluster, &h->err))
            return false;
        row->effective = c.effective;
        row->clusters = (uint32_t)c.clusters;
    }
    for (int section = 0; section < WEIR_SECTIONS; section++) {
        if (!weir_section_shown(v, section))
            continue;
        int64_t n = weir_section_hits(v, neuron, section, h->hit);
        weir_base64_count(&h->out, n);
        for (int64_t i = 0; i < n; i++)
            put_hit(h, &h->hit[i], clusters && section == WEIR_NEURONS_TOP ? h->cluster[i] : -1, named);
    }
    return true;
}

/* --- numbers */

/* The histogram's column of a bin, for a neuron whose values all are below 2^e in magnitude. */
static int column(int bin, int e)
{
    int centre = WEIR_HTML_SIDE, zero = WEIR_NEURONS_BIN_SIDE + 1; /* the bin around 0 */
    int from_zero = bin > zero ? bin - zero - 1 : zero - bin - 1;
    int half = from_zero / 4; /* octaves have eight bins; half 0 begins at 2^-20 */
    int from_top = 2 * (e + 20) - 1 - half;
    from_top = from_top < 0 ? 0 : from_top; /* 2^20 and more: no bins of their own */
    if (bin == zero || from_top >= WEIR_HTML_SIDE)
        return centre;
    return bin > zero ? WEIR_HTML_COLUMNS - 1 - from_top : from_top;
}

/* e + 20, then the counts of the columns. */
static void put_histogram(weir_html *h, const weir_shown *neuron, const weir_neuron_stats *st)
{
    int64_t bin[WEIR_NEURONS_BINS], sum[WEIR_HTML_COLUMNS] = {0};
    int e = -20;
    float most = fmaxf(fabsf(st->min), fabsf(st->max));
    if (st->count && most > 0)
        frexpf(most, &e);
    e = e < -8 ? -8 : e > 20 ? 20 : e; /* 12 octaves down to 2^-20 at least */
    weir_neurons_hist(h->v->s, neuron->table, neuron->neuron, bin);
    for (int b = 0; b < WEIR_NEURONS_BINS; b++)
        sum[column(b, e)] += bin[b];
    weir_base64_count(&h->out, e + 20);
    for (int c = 0; c < WEIR_HTML_COLUMNS; c++)
        weir_base64_count(&h->out, sum[c]);
}

static void put_numbers(weir_html *h, const weir_shown *neuron, weir_html_row *row)
{
    const weir_view *v = h->v;
    weir_neuron_stats st;
    weir_neurons_stats(v->s, neuron->table, neuron->neuron, &st);
    row->mean = st.mean;
    row->sd = st.sd;
    row->skew = st.skew;
    row->kurtosis = st.kurtosis;
    row->min = st.min;
    row->max = st.max;
    row->density = (double)st.above[0] / (double)st.count;
    row->unit = (uint32_t)weir_shown_unit(v, neuron);
    row->table = (uint32_t)neuron->table;
    weir_base64_count(&h->out, st.count);
    weir_base64_count(&h->out, st.nonfinite);
    for (int i = 0; i < weir_neurons_options_of(v->s)->n_thresholds; i++)
        weir_base64_count(&h->out, st.above[i]);
    put_histogram(h, neuron, &st);
}

/* --- weights, and what is kept of named neurons */

static void put_weights(weir_html *h, const weir_shown *neuron)
{
    int64_t n, agree = 0, places = 0;
    for (int part = 0; part < 2 * WEIR_SIDES; part++) {
        const weir_weight_token *w = weight_tokens(h, neuron, part, &n);
        while (n > 0 && w[n - 1].id < 0)
            n--;
        weir_base64_count(&h->out, n);
        for (int64_t i = 0; i < n; i++) {
            weir_base64_count(&h->out, weir_html_text_index(&h->text, w[i].id));
            weir_base64_f32(&h->out, w[i].score);
        }
    }
    bool known = weir_neurons_agreement(h->v->s, neuron->table, neuron->neuron, &agree, &places);
    weir_base64_count(&h->out, known ? places : 0);
    weir_base64_count(&h->out, known ? agree : 0);
}

static void put_named(weir_html *h, int named)
{
    weir_token_mean mean[WEIR_HTML_MEANS];
    weir_neuron_relation relation[WEIR_HTML_MEANS];
    for (int end = 0; end < 2; end++) {
        int64_t n = token_means(h, named, end == 0, mean);
        weir_base64_count(&h->out, n);
        for (int64_t i = 0; i < n; i++) {
            weir_base64_count(&h->out, weir_html_text_index(&h->text, mean[i].id));
            weir_base64_count(&h->out, mean[i].count);
            weir_base64_f64(&h->out, mean[i].mean);
        }
    }
    for (int by_cofire = 0; by_cofire < 2; by_cofire++) {
        int64_t n = weir_neurons_related(h->v->s, named, by_cofire, WEIR_HTML_MEANS, relation);
        weir_base64_count(&h->out, n);
        for (int64_t i = 0; i < n; i++) {
            weir_base64_count(&h->out, relation[i].unit);
            weir_base64_f64(&h->out, relation[i].r);
            weir_base64_f64(&h->out, relation[i].cofire);
        }
    }
}

bool weir_html_record(weir_html *h, const weir_shown *neuron, weir_html_row *row)
{
    uint64_t before = h->out.bytes;
    int named = weir_neurons_find_named(h->v->s, neuron->table, neuron->neuron);
    *row = (weir_html_row){.effective = NAN};
    weir_base64_count(&h->out, named + 1);
    if (!put_sections(h, neuron, named, row))
        return false;
    put_numbers(h, neuron, row);
    put_weights(h, neuron);
    if (named >= 0)
        put_named(h, named);
    row->length = (uint32_t)(h->out.bytes - before);
    return true;
}

void weir_html_rows(weir_html *h)
{
    for (int64_t i = 0; i < h->v->n; i++) {
        const weir_html_row *r = &h->row[i];
        const double number[6] = {r->mean, r->sd, r->skew, r->kurtosis, r->density, r->effective};
        const uint32_t integer[4] = {r->unit, r->length, r->clusters, r->table};
        for (int j = 0; j < 6; j++)
            weir_base64_f64(&h->out, number[j]);
        weir_base64_f32(&h->out, r->min);
        weir_base64_f32(&h->out, r->max);
        for (int j = 0; j < 4; j++)
            weir_base64_u32(&h->out, integer[j]);
    }
}
