#include "live.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/room.h"
#include "cli/say.h"
#include "sites.h"

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

/* --- tables */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The units of a point that are asked for, ascending. NULL with *n = 0: none. */
static weir_status choose_units(const weir_live *l, const weir_point *p, int64_t **units, int64_t *n, weir_err *err)
{
    *n = 0;
    *units = malloc(sizeof **units * (size_t)l->asks->n);
    if (!*units)
        return no_memory(err);
    for (int64_t i = 0; i < l->asks->n; i++) {
        const weir_neuron_ask *a = &l->asks->ask[i];
        if (a->layer != -1 && a->layer != p->layer)
            continue;
        if (a->unit >= p->width)
            return weir_fail(err, WEIR_E_ARG, "%lld: %s has %lld units, from 0", (long long)a->unit, p->name,
                             (long long)p->width);
        (*units)[(*n)++] = a->unit;
    }
    qsort(*units, (size_t)*n, sizeof **units, by_number);
    int64_t distinct = 0;
    for (int64_t i = 0; i < *n; i++)
        if (i == 0 || (*units)[i] != (*units)[distinct - 1])
            (*units)[distinct++] = (*units)[i];
    *n = distinct;
    return WEIR_OK;
}

/* site: what was asked for, if it is a short name. */
static weir_status add_table(weir_live *l, const weir_point *p, const weir_short_site *site, weir_err *err)
{
    int64_t *units = NULL, n = p->width;
    if (p->keyed)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "%s has keys where other points have units: it cannot be searched",
                         p->name);
    weir_status st = l->asks->n ? choose_units(l, p, &units, &n, err) : WEIR_OK;
    if (st != WEIR_OK || n == 0) {
        free(units);
        return st;
    }
    weir_neurons_table *table = realloc(l->table, sizeof *table * ((size_t)l->n_tables + 1));
    l->table = table ? table : l->table;
    weir_live_source *source = realloc(l->source, sizeof *source * ((size_t)l->n_tables + 1));
    l->source = source ? source : l->source;
    if (!table || !source) {
        free(units);
        return no_memory(err);
    }
    table[l->n_tables] = (weir_neurons_table){.hook = p->name,
                                              .site = site ? site->kept : p->name,
                                              .layer = p->layer,
                                              .width = p->width,
                                              .n = n,
                                              .units = units};
    source[l->n_tables++] = (weir_live_source){p, site && strcmp(site->kept, "gate-act") == 0};
    return WEIR_OK;
}

/* All points of one site, or of names with globs. */
static weir_status add_site(weir_live *l, const char *site, weir_err *err)
{
    const weir_point *point;
    const weir_model *m = l->session->model;
    int64_t n = weir_model_points(m, &point);
    weir_selector *sel;
    const weir_short_site *known = weir_short_site_of(site);
    bool gate_act = known && strcmp(known->kept, "gate-act") == 0;
    if (weir_site_has_units(site))
        return weir_fail(err, WEIR_E_ARG, "%s: units are chosen with --neurons", site);
    if (gate_act && !l->session->info->gated)
        return weir_fail(err, WEIR_E_ARG, "gate-act: the MLP of %s has no gate", l->session->info->name);
    WEIR_TRY(weir_selector_build(&sel, m, NULL, l->layers ? l->layers : "all", gate_act ? "gate" : site, err));
    weir_status st = WEIR_OK;
    bool any = false; /* a selector that was built matches something: here or among the gradients */
    for (int64_t i = 0; i < n && st == WEIR_OK; i++)
        if (weir_selector_matches(sel, &point[i])) {
            any = true;
            st = add_table(l, &point[i], known, err);
        }
    if (st == WEIR_OK && !any)
        st = weir_fail(err, WEIR_E_ARG, "%s: a gradient: no forward pass has values there", site);
    weir_selector_free(sel);
    return st;
}

/* A neuron that is named and lies in no table is a mistake, not a shorter answer. */
static weir_status check_asks(const weir_live *l, weir_err *err)
{
    for (int64_t i = 0; i < l->asks->n; i++) {
        const weir_neuron_ask *a = &l->asks->ask[i];
        bool found = a->layer == -1;
        for (int t = 0; t < l->n_tables && !found; t++)
            found = l->table[t].layer == a->layer;
        if (!found)
            return weir_fail(err, WEIR_E_ARG,
                             "L%dN%lld: layer %d is not searched (layers count from 0 to %lld; --layers chooses)",
                             a->layer, (long long)a->unit, a->layer, (long long)l->session->info->L - 1);
    }
    return WEIR_OK;
}

int weir_live_tables(weir_live *l)
{
    weir_err err = {0};
    char *sites = strdup(l->sites), *rest = sites;
    weir_status st = sites ? WEIR_OK : no_memory(&err);
    for (char *site = weir_next_site(&rest); site && st == WEIR_OK; site = weir_next_site(&rest))
        st = add_site(l, site, &err);
    free(sites);
    if (st == WEIR_OK)
        st = check_asks(l, &err);
    for (int t = 0; t < l->n_tables && st == WEIR_OK && l->max_norm_ratio > 0; t++)
        if (l->table[t].layer < 0)
            st = weir_fail(&err, WEIR_E_ARG, "--max-norm-ratio: %s lies in no layer, so no stream enters it",
                           l->table[t].hook);
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_bad_argument(l->session->cli, NULL, &err);
}

int64_t weir_live_batch(const weir_live *l, int64_t batch)
{
    return l->max_norm_ratio > 0 && batch < l->session->ctx ? l->session->ctx : batch;
}

/* --- the hook */

static weir_want wants(void *self, const weir_point *p)
{
    const weir_live *l = self;
    for (int t = 0; t < l->n_tables; t++)
        if (l->source[t].point == p ||
            (l->max_norm_ratio > 0 && p->site == WEIR_SITE_RESID_PRE && p->layer == l->source[t].point->layer))
            return WEIR_READ;
    return WEIR_NONE;
}

static weir_status make_room(weir_live *l, int64_t rows, weir_err *err)
{
    if (rows <= l->room)
        return WEIR_OK;
    const size_t n = (size_t)rows;
    if (!weir_room(&l->mask, n, sizeof *l->mask) || !weir_room(&l->skip, n, sizeof *l->skip) ||
        !weir_room(&l->norm, n, sizeof *l->norm) || !weir_room(&l->sorted, n, sizeof *l->sorted))
        return no_memory(err);
    l->room = rows;
    return WEIR_OK;
}

static weir_status on_begin(void *self, const weir_rows *rows, weir_err *err)
{
    weir_live *l = self;
    WEIR_TRY(make_room(l, rows->n, err));
    for (int64_t t = 0; t < rows->n; t++)
        l->mask[t] = l->kind[rows->id[t]];
    weir_neurons_rows_of of = {.n = rows->n,
                               .id = rows->id,
                               .doc = rows->tag,
                               .pos = rows->doc_pos,
                               .ctx_pos = rows->pos,
                               .keep = rows->keep,
                               .mask = l->mask};
    return weir_neurons_rows(l->s, &of, false, err);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Marks the rows of one window whose norm is out of proportion. */
static void judge_window(weir_live *l, const weir_rows *rows, int64_t from, int64_t to)
{
    int64_t n = 0;
    for (int64_t t = from; t < to; t++)
        if (rows->keep[t] && rows->doc_pos[t] >= 0)
            l->sorted[n++] = l->norm[t];
    if (n == 0)
        return;
    qsort(l->sorted, (size_t)n, sizeof *l->sorted, by_size);
    double median = (l->sorted[(n - 1) / 2] + l->sorted[n / 2]) / 2;
    for (int64_t t = from; t < to; t++)
        l->skip[t] = l->norm[t] > l->max_norm_ratio * median;
}

static void judge_norms(weir_live *l, const weir_value *v)
{
    const weir_rows *rows = v->rows;
    for (int64_t t = 0; t < rows->n; t++) {
        double sum = 0;
        for (int64_t c = 0; c < v->width; c++)
            sum += (double)v->data[t * v->width + c] * v->data[t * v->width + c];
        l->norm[t] = sqrt(sum);
    }
    for (int64_t from = 0, to; from < rows->n; from = to) {
        for (to = from + 1; to < rows->n && rows->seq[to] == rows->seq[from];)
            to++;
        judge_window(l, rows, from, to);
    }
}

static weir_status act(weir_live *l, const weir_value *v, weir_err *err)
{
    int64_t n = v->rows->n * v->width;
    if (n > l->acted_room) {
        float *p = realloc(l->acted, sizeof *p * (size_t)n);
        if (!p)
            return no_memory(err);
        l->acted = p;
        l->acted_room = n;
    }
    return weir_gate_act(l->session->model, weir_run_kernel(l->session->run), v->data, n, l->acted, err);
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    weir_live *l = self;
    if (l->max_norm_ratio > 0 && v->point->site == WEIR_SITE_RESID_PRE)
        judge_norms(l, v);
    for (int t = 0; t < l->n_tables; t++) {
        if (l->source[t].point != v->point)
            continue;
        weir_neurons_values values = {
            .x = v->data, .stride = v->width, .whole = true, .skip = l->max_norm_ratio > 0 ? l->skip : NULL};
        if (l->source[t].gate_act) {
            WEIR_TRY(act(l, v, err));
            values.x = l->acted;
        }
        WEIR_TRY(weir_neurons_add(l->s, t, &values, err));
    }
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    (void)self, (void)m, (void)args;
    return weir_fail(err, WEIR_E_ARG, "the search of neuron-top is attached by the tool alone");
}

static const weir_hook_class live_class = {.struct_size = sizeof(weir_hook_class),
                                           .abi = WEIR_HOOK_ABI,
                                           .name = "neuron-top",
                                           .help = "the search of the tool neuron-top",
                                           .args = "",
                                           .create = create,
                                           .wants = wants,
                                           .on_begin = on_begin,
                                           .on_value = on_value};

int weir_live_attach(weir_live *l, weir_neurons *s)
{
    weir_err err = {0};
    l->s = s;
    if (weir_masks_kinds(l->masks, l->session->tok, l->session->info->V, &l->kind, &err) != WEIR_OK)
        return weir_cli_bad_argument(l->session->cli, "--mask", &err);
    if (weir_run_hook_object(l->session->run, &live_class, l, &err) != WEIR_OK)
        return weir_cli_fail(l->session->cli, &err);
    return WEIR_EXIT_OK;
}

/* --- running */

static weir_status fetch(weir_live *l, weir_err *err)
{
    if (!l->fetched)
        WEIR_TRY(weir_feed_next(l->session->feed, &l->next, err));
    l->fetched = true;
    return WEIR_OK;
}

weir_status weir_live_next(weir_live *l, bool *more, weir_err *err)
{
    WEIR_TRY(fetch(l, err));
    const weir_batch *b = l->next;
    *more = b != NULL;
    if (!b)
        return WEIR_OK;
    if (b->restart)
        weir_run_slot_reset(l->session->run, 0);
    if (b->n_seq)
        WEIR_TRY(weir_run_forward(l->session->run, b->seq, b->n_seq, 0, err));
    l->rows += b->rows;
    l->kept += b->kept.n;
    l->fetched = false;
    /* The next batch tells whether this one ended with a document: it begins with one, or there is none. */
    WEIR_TRY(fetch(l, err));
    l->between = !l->next || (!l->next->continues && l->next->n_docs > 0 && l->next->doc[0].first == 0);
    return weir_run_enough(l->session->run) ? WEIR_STOP : WEIR_OK;
}

void weir_live_free(weir_live *l)
{
    for (int t = 0; t < l->n_tables; t++)
        free((int64_t *)l->table[t].units);
    void *const own[] = {l->table, l->source, l->kind, l->mask, l->skip, l->norm, l->sorted, l->acted};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
}
