/* Which hook points of a dump are searched, and which of their units. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "dump_impl.h"
#include "sites.h"

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

/* --- units */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The units that are asked for in this layer, ascending, each once; all that were recorded if nothing was asked. */
static weir_status choose_units(const weir_neurons_dump *d, const weir_dump_hook *h, weir_dump_source *source,
                                weir_err *err)
{
    int64_t most = d->o.n_ask ? d->o.n_ask : h->width, n = 0;
    source->unit = malloc(sizeof *source->unit * (size_t)(most > 0 ? most : 1));
    source->column = malloc(sizeof *source->column * (size_t)(most > 0 ? most : 1));
    if (!source->unit || !source->column)
        return no_memory(err);
    for (int64_t i = 0; i < most; i++)
        if (!d->o.n_ask)
            source->unit[n++] = h->units ? h->units[i] : i;
        else if (d->o.ask[i].layer == -1 || d->o.ask[i].layer == h->layer)
            source->unit[n++] = d->o.ask[i].unit;
    if (d->o.n_ask)
        qsort(source->unit, (size_t)n, sizeof *source->unit, by_number);
    for (int64_t i = 0; i < n; i++) {
        if (source->n && source->unit[source->n - 1] == source->unit[i])
            continue;
        source->unit[source->n] = source->unit[i];
        source->column[source->n] = d->o.n_ask ? weir_dump_column(d->r, source->hook, source->unit[i]) : i;
        if (source->column[source->n] < 0)
            return weir_fail(err, WEIR_E_ARG, "%s of %s has no unit %lld: %lld units were recorded%s", h->name,
                             d->o.path, (long long)source->unit[i], (long long)h->width,
                             h->units ? ", chosen ones" : ", from 0");
        source->n++;
    }
    return WEIR_OK;
}

/* --- hook points */

/* Adds a table for hook i, unless no unit of it is asked for. */
static weir_status add(weir_neurons_dump *d, int i, const char *site, weir_err *err)
{
    const weir_dump_hook *h = weir_dump_hook_at(d->r, i);
    if (strchr(h->letters, 'S'))
        return weir_fail(err, WEIR_E_UNSUPPORTED, "%s has keys where other points have units: it cannot be searched",
                         h->name);
    for (int64_t c = 0; h->units && c < h->width; c++)
        if (h->units[c] < (c ? h->units[c - 1] + 1 : 0) || h->units[c] >= INT32_MAX)
            return weir_fail(err, WEIR_E_FORMAT, "the units of %s do not ascend", h->name);
    weir_neurons_table *table = realloc(d->table, sizeof *table * ((size_t)d->n + 1));
    d->table = table ? table : d->table;
    weir_dump_source *source = realloc(d->source, sizeof *source * ((size_t)d->n + 1));
    d->source = source ? source : d->source;
    if (!table || !source)
        return no_memory(err);
    source += d->n;
    *source = (weir_dump_source){.hook = i, .gate_act = strcmp(site, "gate-act") == 0};
    weir_status st = choose_units(d, h, source, err);
    bool all = !d->o.n_ask && !h->units;
    int64_t width = h->units && h->width ? h->units[h->width - 1] + 1 : h->width;
    const weir_point *point = d->o.model && h->units ? weir_model_point(d->o.model, h->name) : NULL;
    if (point && point->width > width)
        width = point->width;
    table[d->n] = (weir_neurons_table){.hook = h->name,
                                       .site = site,
                                       .layer = h->layer,
                                       .width = width,
                                       .n = source->n,
                                       .units = all ? NULL : source->unit};
    if (st != WEIR_OK || source->n == 0) {
        free(source->unit);
        free(source->column);
        return st;
    }
    d->n++;
    return WEIR_OK;
}

/* What the dump holds, for an error: names with the layer left out, each once, as many as fit. */
static void list_points(const weir_neurons_dump *d, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = 0;
    for (int i = 0; i < weir_dump_n_hooks(d->r) && n + 80 < size; i++) {
        const char *name = weir_dump_hook_at(d->r, i)->name, *point = name;
        if (strncmp(name, "blocks.", 7) == 0 && strchr(name + 7, '.'))
            point = strchr(name + 7, '.') + 1;
        char word[80];
        snprintf(word, sizeof word, "%s%.60s", n ? ", " : "", point);
        if (!strstr(buf, word + (n ? 2 : 0)))
            n += (size_t)snprintf(buf + n, size - n, "%s", word);
    }
}

/* Does the name match the pattern, which may have * ? and {a,b}? */
static bool matches(const char *pattern, const char *name, int depth)
{
    const char *open = strchr(pattern, '{'), *close = open ? strchr(open, '}') : NULL;
    char whole[512];
    if (!close || depth > 4)
        return fnmatch(pattern, name, 0) == 0;
    for (const char *p = open + 1; p <= close; p++) {
        size_t n = strcspn(p, ",}");
        snprintf(whole, sizeof whole, "%.*s%.*s%s", (int)(open - pattern), pattern, (int)n, p, close + 1);
        if (matches(whole, name, depth + 1))
            return true;
        p += n;
    }
    return false;
}

/* What only gated MLPs have; whether the dump's is one, its model says. */
static weir_status check_gate(const weir_neurons_dump *d, const weir_short_site *site, weir_err *err)
{
    bool act = strcmp(site->kept, "gate-act") == 0;
    if (!act && strcmp(site->kept, "gate") != 0)
        return WEIR_OK;
    if (d->o.model && !weir_model_info_of(d->o.model)->gated)
        return weir_fail(err, WEIR_E_ARG, "%s: the MLP of this model has no gate", site->kept);
    if (act && !d->o.model)
        return weir_fail(err, WEIR_E_ARG, "gate-act: the activation is the model's; name it with --model");
    return WEIR_OK;
}

/* All points of one site, which is a short name or a name with globs. */
static weir_status choose_site(weir_neurons_dump *d, const char *asked, weir_err *err)
{
    char there[400];
    const weir_short_site *is = weir_short_site_of(asked);
    int found = 0;
    bool bad = false;
    if (weir_site_has_units(asked))
        return weir_fail(err, WEIR_E_ARG, "%s: units are chosen with --neurons", asked);
    if (is)
        WEIR_TRY(check_gate(d, is, err));
    for (int i = 0; i < weir_dump_n_hooks(d->r); i++) {
        const weir_dump_hook *h = weir_dump_hook_at(d->r, i);
        char point[256];
        snprintf(point, sizeof point, "blocks.%d.%s", h->layer, is ? is->point : "");
        if (is ? strcmp(point, h->name) != 0 : !matches(asked, h->name, 0))
            continue;
        found++;
        if (h->layer < 0 || weir_layers_have(d->o.layers, h->layer, &bad))
            WEIR_TRY(add(d, i, is ? is->kept : h->name, err));
    }
    if (found)
        return WEIR_OK;
    list_points(d, there, sizeof there);
    return weir_fail(err, WEIR_E_ARG, "%s was not recorded in %s, which holds %s (--site chooses)", asked, d->o.path,
                     there);
}

static bool has_layer(const weir_neurons_dump *d, int layer)
{
    for (int t = 0; t < d->n; t++)
        if (d->table[t].layer == layer)
            return true;
    return false;
}

/* A layer or a neuron that is named and not there is a mistake, not a shorter answer. */
static weir_status check_all_found(const weir_neurons_dump *d, weir_err *err)
{
    enum { MANY = 100000 }; /* layers that somebody may name */
    bool bad = false, some = d->o.layers && strcmp(d->o.layers, "all") != 0;
    for (int64_t i = 0; i < d->o.n_ask; i++)
        if (d->o.ask[i].layer != -1 && !has_layer(d, d->o.ask[i].layer))
            return weir_fail(err, WEIR_E_ARG, "L%dN%lld: layer %d was not recorded in %s, or not chosen",
                             d->o.ask[i].layer, (long long)d->o.ask[i].unit, d->o.ask[i].layer, d->o.path);
    for (int layer = 0; some && d->o.n_ask == 0 && layer < MANY; layer++)
        if (weir_layers_have(d->o.layers, layer, &bad) && !has_layer(d, layer))
            return weir_fail(err, WEIR_E_ARG, "layer %d was not recorded in %s", layer, d->o.path);
    if (d->n == 0)
        return weir_fail(err, WEIR_E_ARG, "%s has nothing of layers %s", d->o.path, some ? d->o.layers : "all");
    return WEIR_OK;
}

/* --max-norm-ratio reads another point than the tables do. */
static weir_status check_norms(const weir_neurons_dump *d, weir_err *err)
{
    for (int t = 0; t < d->n && d->o.max_norm_ratio > 0; t++) {
        char name[80];
        snprintf(name, sizeof name, "blocks.%d.hook_resid_pre", d->table[t].layer);
        int hook = d->table[t].layer < 0 ? 0 : weir_dump_find(d->r, name);
        if (hook < 0 || (d->table[t].layer >= 0 && weir_dump_hook_at(d->r, hook)->units))
            return weir_fail(err, WEIR_E_ARG, "--max-norm-ratio needs %s, which %s does not hold whole", name,
                             d->o.path);
    }
    return WEIR_OK;
}

weir_status weir_dump_choose(weir_neurons_dump *d, weir_err *err)
{
    bool bad = false;
    weir_layers_have(d->o.layers, -1, &bad);
    if (bad)
        return weir_fail(err, WEIR_E_ARG, "layers are written as 6, 0-3,7 or all, not \"%s\"", d->o.layers);
    char *sites = strdup(d->o.sites ? d->o.sites : "post"), *rest = sites;
    if (!sites)
        return no_memory(err);
    weir_status st = WEIR_OK;
    for (char *site = weir_next_site(&rest); site && st == WEIR_OK; site = weir_next_site(&rest))
        st = choose_site(d, site, err);
    free(sites);
    if (st == WEIR_OK)
        st = check_all_found(d, err);
    return st == WEIR_OK ? check_norms(d, err) : st;
}
