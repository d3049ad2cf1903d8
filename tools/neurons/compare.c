#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sections.h"

/* Two neurons that are compared, and room for what is read of them. */
typedef struct pair {
    const weir_neurons *const *s;
    const weir_neurons_options *o[2];
    int64_t at[2]; /* index in the table */
    int named[2];  /* index among the named ones, or -1 */
    weir_table_diff *d;
    int64_t unit;
    weir_neuron_hit *hit[2];
    weir_token_mean *mean[2];
    weir_neuron_relation *relation[2];
} pair;

const char *weir_aspect_name(int aspect)
{
    static const char *const name[WEIR_ASPECTS] = {"lists",   "counts",  "moments", "histogram",
                                                   "samples", "weights", "named"};
    return name[aspect];
}

static bool same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static bool same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* Are a and b the same? The largest difference is kept. */
static bool same_value(pair *p, const char *in, double a, double b)
{
    if (same_double(a, b))
        return true;
    double distance = fabs(a - b);
    distance = isnan(distance) ? INFINITY : distance;
    if (!p->d->largest_in || distance > p->d->largest) {
        p->d->largest = distance;
        p->d->largest_unit = p->unit;
        p->d->largest_in = in;
    }
    return false;
}

/* --- places */

/* named: the values at these tokens too. */
static bool same_context(const pair *p, const weir_neuron_hit *hit, bool named)
{
    weir_neurons_context c[2];
    for (int k = 0; k < 2; k++)
        c[k] = weir_neurons_context_of(p->s[k], hit->doc, hit->pos, named ? p->named[k] : -1);
    if (c[0].n != c[1].n || c[0].hit != c[1].hit || c[0].begins != c[1].begins || c[0].ends != c[1].ends ||
        (c[0].n && memcmp(c[0].id, c[1].id, sizeof *c[0].id * (size_t)c[0].n) != 0))
        return false;
    for (int64_t i = 0; named && c[0].value && c[1].value && i < c[0].n; i++)
        if (!same_float(c[0].value[i], c[1].value[i]))
            return false;
    return true;
}

/* Contexts of other lengths are other options, not other places. */
static bool same_lengths(const pair *p)
{
    return p->o[0]->before == p->o[1]->before && p->o[0]->after == p->o[1]->after;
}

/* Of a list that is longer in one result, the end of the shorter one does not know what follows: its count is open. */
static bool same_place(const pair *p, const weir_neuron_hit *a, const weir_neuron_hit *b, bool counts)
{
    bool open = !counts && (a->count == 0 || b->count == 0);
    return same_float(a->value, b->value) && a->doc == b->doc && a->pos == b->pos && (open || a->count == b->count) &&
           (!same_lengths(p) || same_context(p, a, false));
}

static bool same_places(pair *p, const char *in, const int64_t n[2], bool counts)
{
    bool same = n[0] == n[1];
    for (int64_t i = 0; i < n[0] && i < n[1]; i++) {
        bool values = same_value(p, in, (double)p->hit[0][i].value, (double)p->hit[1][i].value);
        same = values && same_place(p, &p->hit[0][i], &p->hit[1][i], counts) && same;
    }
    return same;
}

static bool same_lists(pair *p)
{
    int64_t k = p->o[0]->k < p->o[1]->k ? p->o[0]->k : p->o[1]->k;
    unsigned both = p->o[0]->lists & p->o[1]->lists;
    bool same = true;
    for (int list = 0; list < WEIR_NEURONS_LISTS; list++) {
        int64_t n[2];
        if (!(both >> list & 1))
            continue;
        for (int i = 0; i < 2; i++) {
            n[i] = weir_neurons_hits(p->s[i], p->d->table[i], p->at[i], (weir_neurons_list)list, p->hit[i]);
            n[i] = n[i] < k ? n[i] : k;
        }
        same = same_places(p, weir_section_name(list), n, p->o[0]->k == p->o[1]->k) && same;
    }
    return same;
}

/* Samples are the same places only where they were drawn alike. */
static bool same_samples(pair *p)
{
    const weir_neurons_options *a = p->o[0], *b = p->o[1];
    bool same = true;
    int64_t n[2];
    for (int band = 0; band < WEIR_NEURONS_BANDS && a->per_band == b->per_band && a->seed == b->seed; band++) {
        for (int i = 0; i < 2; i++)
            n[i] = weir_neurons_band(p->s[i], p->d->table[i], p->at[i], band, p->hit[i]);
        same = same_places(p, weir_section_name(WEIR_SECTION_BAND + band), n, true) && same;
    }
    if (a->random != b->random || a->seed != b->seed)
        return same;
    for (int i = 0; i < 2; i++)
        n[i] = weir_neurons_random(p->s[i], p->d->table[i], p->at[i], p->hit[i]);
    return same_places(p, weir_section_name(WEIR_SECTION_RANDOM), n, true) && same;
}

/* --- numbers */

static bool same_counts(pair *p, const weir_neuron_stats st[2])
{
    bool same = st[0].count == st[1].count && st[0].nonfinite == st[1].nonfinite;
    for (int i = 0; i < p->o[0]->n_thresholds && i < p->o[1]->n_thresholds; i++)
        if (same_double(p->o[0]->threshold[i], p->o[1]->threshold[i]))
            same = same && st[0].above[i] == st[1].above[i];
    return same;
}

static bool same_moments(pair *p, const weir_neuron_stats st[2])
{
    bool same = same_value(p, "mean", st[0].mean, st[1].mean);
    same = same_value(p, "sd", st[0].sd, st[1].sd) && same;
    same = same_value(p, "min", (double)st[0].min, (double)st[1].min) && same;
    same = same_value(p, "max", (double)st[0].max, (double)st[1].max) && same;
    return same && same_double(st[0].skew, st[1].skew) && same_double(st[0].kurtosis, st[1].kurtosis);
}

static bool same_histogram(const pair *p)
{
    int64_t count[2][WEIR_NEURONS_BINS];
    for (int i = 0; i < 2; i++)
        weir_neurons_hist(p->s[i], p->d->table[i], p->at[i], count[i]);
    return memcmp(count[0], count[1], sizeof count[0]) == 0;
}

/* --- what the weights say, and what is kept of named neurons */

static bool same_weights(const pair *p)
{
    bool same = true;
    for (int end = 0; end < 2 * WEIR_SIDES && same; end++) {
        const weir_weight_token *t[2];
        int64_t n[2];
        for (int i = 0; i < 2; i++)
            t[i] = weir_neurons_weight_tokens(p->s[i], p->d->table[i], p->at[i], (weir_weight_side)(end / 2),
                                              end % 2 == 0, &n[i]);
        if (!t[0] || !t[1])
            continue; /* only one of them was asked for these: it is said of the results */
        same = n[0] == n[1];
        for (int64_t i = 0; i < n[0] && same; i++)
            same = t[0][i].id == t[1][i].id && (t[0][i].id < 0 || same_float(t[0][i].score, t[1][i].score));
    }
    return same;
}

static bool same_means(const pair *p)
{
    int64_t n[2];
    if (p->o[0]->token_means != p->o[1]->token_means)
        return true;
    for (int i = 0; i < 2; i++)
        n[i] = weir_neurons_token_means(p->s[i], p->named[i], true, 1, p->o[i]->token_means, p->mean[i]);
    bool same = n[0] == n[1];
    for (int64_t i = 0; i < n[0] && same; i++)
        same = p->mean[0][i].id == p->mean[1][i].id && p->mean[0][i].count == p->mean[1][i].count &&
               same_double(p->mean[0][i].mean, p->mean[1][i].mean);
    return same;
}

static bool same_relations(const pair *p)
{
    int64_t n[2];
    if (p->o[0]->correlate != p->o[1]->correlate)
        return true;
    for (int i = 0; i < 2; i++)
        n[i] = weir_neurons_related(p->s[i], p->named[i], false, weir_neurons_table_at(p->s[i], p->d->table[i])->width,
                                    p->relation[i]);
    bool same = n[0] == n[1];
    for (int64_t i = 0; i < n[0] && same; i++)
        same = p->relation[0][i].unit == p->relation[1][i].unit &&
               same_double(p->relation[0][i].r, p->relation[1][i].r) &&
               same_double(p->relation[0][i].cofire, p->relation[1][i].cofire);
    return same;
}

/* Values around the places of all lists. */
static bool same_surroundings(const pair *p)
{
    bool same = true;
    for (int list = 0; list < WEIR_NEURONS_LISTS && same && same_lengths(p); list++) {
        int64_t n = weir_neurons_hits(p->s[0], p->d->table[0], p->at[0], (weir_neurons_list)list, p->hit[0]);
        for (int64_t i = 0; i < n && same; i++)
            same = weir_neurons_context_of(p->s[1], p->hit[0][i].doc, p->hit[0][i].pos, -1).n == 0 ||
                   same_context(p, &p->hit[0][i], true);
    }
    return same;
}

static bool same_named(pair *p)
{
    for (int i = 0; i < 2; i++)
        p->named[i] = weir_neurons_find_named(p->s[i], p->d->table[i], p->at[i]);
    if (p->named[0] < 0 || p->named[1] < 0)
        return p->named[0] == p->named[1];
    return same_means(p) && same_relations(p) && same_surroundings(p);
}

/* --- a table */

static uint8_t compare(pair *p)
{
    weir_neuron_stats st[2];
    for (int i = 0; i < 2; i++)
        weir_neurons_stats(p->s[i], p->d->table[i], p->at[i], &st[i]);
    const bool same[WEIR_ASPECTS] = {
        [WEIR_ASPECT_LISTS] = same_lists(p),         [WEIR_ASPECT_COUNTS] = same_counts(p, st),
        [WEIR_ASPECT_MOMENTS] = same_moments(p, st), [WEIR_ASPECT_HISTOGRAM] = same_histogram(p),
        [WEIR_ASPECT_SAMPLES] = same_samples(p),     [WEIR_ASPECT_WEIGHTS] = same_weights(p),
        [WEIR_ASPECT_NAMED] = same_named(p)};
    unsigned differ = 0;
    for (int aspect = 0; aspect < WEIR_ASPECTS; aspect++) {
        differ |= same[aspect] ? 0 : 1u << aspect;
        p->d->count[aspect] += !same[aspect];
    }
    p->d->any += differ != 0;
    return (uint8_t)differ;
}

static int64_t unit_of(const weir_neurons_table *t, int64_t i)
{
    return t->units ? t->units[i] : i;
}

/* Both tables' units ascend: they are walked side by side. */
static void walk(pair *p, const weir_neurons_table *const t[2])
{
    weir_table_diff *d = p->d;
    int64_t i = 0, j = 0;
    while (i < t[0]->n && j < t[1]->n) {
        int64_t a = unit_of(t[0], i), b = unit_of(t[1], j);
        if (a == b) {
            p->at[0] = i;
            p->at[1] = j;
            p->unit = d->unit[d->n] = a;
            d->differ[d->n++] = compare(p);
        }
        i += a <= b;
        j += b <= a;
    }
    d->only[0] = t[0]->n - d->n;
    d->only[1] = t[1]->n - d->n;
}

static bool make_room(pair *p, const weir_neurons_table *const t[2])
{
    bool ok = true;
    for (int i = 0; i < 2 && ok; i++) {
        int64_t ids = p->o[i]->token_means > 0 ? p->o[i]->token_means : 1;
        p->hit[i] = malloc(sizeof *p->hit[i] * (size_t)weir_section_room(p->o[i]));
        p->mean[i] = malloc(sizeof *p->mean[i] * (size_t)ids);
        p->relation[i] = malloc(sizeof *p->relation[i] * (size_t)(t[i]->width + 1));
        ok = p->hit[i] && p->mean[i] && p->relation[i];
    }
    int64_t n = t[0]->n < t[1]->n ? t[0]->n : t[1]->n;
    p->d->unit = malloc(sizeof *p->d->unit * (size_t)(n + 1));
    p->d->differ = malloc((size_t)(n + 1));
    return ok && p->d->unit && p->d->differ;
}

weir_status weir_compare_tables(const weir_neurons *const s[2], weir_table_diff *d, weir_err *err)
{
    pair p = {.s = s, .d = d};
    const weir_neurons_table *t[2];
    for (int i = 0; i < 2; i++) {
        p.o[i] = weir_neurons_options_of(s[i]);
        t[i] = weir_neurons_table_at(s[i], d->table[i]);
    }
    bool ok = make_room(&p, t);
    if (ok)
        walk(&p, t);
    for (int i = 0; i < 2; i++) {
        free(p.hit[i]);
        free(p.mean[i]);
        free(p.relation[i]);
    }
    return ok ? WEIR_OK : weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

void weir_table_diff_free(weir_table_diff *d)
{
    free(d->unit);
    free(d->differ);
}
