#include "choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct ranked {
    weir_shown shown;
    double figure; /* the highest comes first */
    int64_t order;
} ranked;

static int64_t unit_of(const weir_neurons_table *t, int64_t i)
{
    return t->units ? t->units[i] : i;
}

static weir_status clusters_of(const weir_neurons *s, int t, int64_t i, double *figure, weir_err *err)
{
    weir_neuron_clusters c;
    unsigned lists = weir_neurons_options_of(s)->lists;
    int list = 0;
    while (list < WEIR_NEURONS_LISTS && !(lists >> list & 1))
        list++;
    if (list == WEIR_NEURONS_LISTS)
        return weir_fail(err, WEIR_E_ARG, "--sort clusters needs lists of places, and none is kept");
    WEIR_TRY(weir_neurons_clusters(s, t, i, (weir_neurons_list)list, &c, NULL, err));
    *figure = c.places ? c.effective : NAN;
    return WEIR_OK;
}

static weir_status figure_of(const weir_neurons *s, const weir_choice *c, int t, int64_t i, const weir_neuron_stats *st,
                             double *figure, weir_err *err)
{
    const double by[] = {[WEIR_SORT_ORDER] = 0,
                         [WEIR_SORT_MAX] = (double)st->max,
                         [WEIR_SORT_MIN] = -(double)st->min,
                         [WEIR_SORT_MEAN] = st->mean,
                         [WEIR_SORT_SD] = st->sd,
                         [WEIR_SORT_SKEW] = st->skew,
                         [WEIR_SORT_KURTOSIS] = st->kurtosis,
                         [WEIR_SORT_DENSITY] = st->count ? (double)st->above[0] / (double)st->count : NAN};
    if (c->sort == WEIR_SORT_CLUSTERS)
        return clusters_of(s, t, i, figure, err);
    *figure = by[c->sort];
    return WEIR_OK;
}

static int by_figure(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (isnan(x->figure) != isnan(y->figure))
        return isnan(x->figure) ? 1 : -1;
    if (x->figure != y->figure && !isnan(x->figure))
        return x->figure > y->figure ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

double weir_density(const weir_neuron_stats *st)
{
    return st->count ? (double)st->above[0] / (double)st->count : 0;
}

static bool dense(const weir_choice *c, const weir_neuron_stats *st)
{
    double density = weir_density(st);
    return density >= c->min_density && density <= c->max_density;
}

static bool has_unit(const weir_neurons_table *t, int64_t unit)
{
    if (!t->units)
        return unit < t->n;
    int64_t lo = 0, hi = t->n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (t->units[mid] < unit)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->n && t->units[lo] == unit;
}

/* Hook points outside the blocks belong to no layer, and are in every choice. */
static bool has_layer(const weir_choice *c, const weir_neurons_table *t)
{
    bool bad = false;
    return t->layer < 0 || weir_layers_have(c->layers, t->layer, &bad);
}

static bool is_there(const weir_neurons *s, const weir_choice *c, const weir_neuron_ask *ask)
{
    for (int t = 0; t < weir_neurons_n_tables(s); t++) {
        const weir_neurons_table *table = weir_neurons_table_at(s, t);
        if ((ask->layer == -1 || ask->layer == table->layer) && has_layer(c, table) && has_unit(table, ask->unit))
            return true;
    }
    return false;
}

static weir_status check_layers(const weir_neurons *s, const weir_choice *c, weir_err *err)
{
    bool bad = false;
    weir_layers_have(c->layers, 0, &bad);
    if (bad)
        return weir_fail(err, WEIR_E_ARG, "layers are written as 6, 0-3,7 or all, not \"%s\"", c->layers);
    for (int t = 0; t < weir_neurons_n_tables(s); t++)
        if (has_layer(c, weir_neurons_table_at(s, t)))
            return WEIR_OK;
    return weir_fail(err, WEIR_E_ARG, "--layer %s: this result has none of these layers", c->layers);
}

static weir_status check_asks(const weir_neurons *s, const weir_choice *c, weir_err *err)
{
    const char *where = c->layers ? " in these layers" : "";
    WEIR_TRY(check_layers(s, c, err));
    for (int64_t a = 0; a < c->asks->n; a++) {
        const weir_neuron_ask *ask = &c->asks->ask[a];
        if (is_there(s, c, ask))
            continue;
        if (ask->layer >= 0)
            return weir_fail(err, WEIR_E_ARG, "L%dN%lld is not among the neurons of this result%s", ask->layer,
                             (long long)ask->unit, where);
        return weir_fail(err, WEIR_E_ARG, "no hook point of this result has a unit %lld%s", (long long)ask->unit,
                         where);
    }
    return WEIR_OK;
}

static weir_status collect(const weir_neurons *s, const weir_choice *c, ranked *out, int64_t *n, weir_err *err)
{
    int64_t order = 0;
    *n = 0;
    for (int t = 0; t < weir_neurons_n_tables(s); t++) {
        const weir_neurons_table *table = weir_neurons_table_at(s, t);
        bool layer = has_layer(c, table);
        for (int64_t i = 0; i < table->n; i++, order++) {
            weir_neuron_stats st;
            if (!layer || (c->asks->n && !weir_asks_have(c->asks, table->layer, unit_of(table, i))))
                continue;
            weir_neurons_stats(s, t, i, &st);
            if (!dense(c, &st))
                continue;
            out[*n] = (ranked){.shown = {t, i}, .order = order};
            WEIR_TRY(figure_of(s, c, t, i, &st, &out[*n].figure, err));
            ++*n;
        }
    }
    return WEIR_OK;
}

weir_status weir_choose(const weir_neurons *s, const weir_choice *c, weir_shown **shown, int64_t *n, weir_err *err)
{
    int64_t all = 0;
    *shown = NULL;
    WEIR_TRY(check_asks(s, c, err));
    for (int t = 0; t < weir_neurons_n_tables(s); t++)
        all += weir_neurons_table_at(s, t)->n;
    ranked *found = malloc(sizeof *found * (size_t)(all + 1));
    weir_shown *out = malloc(sizeof *out * (size_t)(all + 1));
    weir_status st = found && out ? collect(s, c, found, n, err) : weir_fail(err, WEIR_E_NOMEM, "out of memory");
    if (st == WEIR_OK) {
        if (c->sort != WEIR_SORT_ORDER)
            qsort(found, (size_t)*n, sizeof *found, by_figure);
        *n = c->limit && *n > c->limit ? c->limit : *n;
        for (int64_t i = 0; i < *n; i++)
            out[i] = found[i].shown;
        *shown = out;
    } else {
        free(out);
    }
    free(found);
    return st;
}
