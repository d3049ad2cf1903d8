/* search/neurons.c: a search's life: options, tables, its end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/add.h"
#include "search/mean.h"
#include "search/rows.h"
#include "search/scan.h"

void weir_neurons_options_init(weir_neurons_options *o)
{
    *o = (weir_neurons_options){
        .k = 20,
        .lists = 1u << WEIR_NEURONS_TOP | 1u << WEIR_NEURONS_BOTTOM,
        .dedup = WEIR_DEDUP_TEXT,
        .dedup_n = 8,
        .n_thresholds = 1,
        .before = 10,
        .after = 10,
    };
}

/* --- what may be asked */

enum { MAX_RANDOM = 1000 };

static weir_status check_range(const char *name, int64_t value, int64_t low, int64_t high, weir_err *err)
{
    if (value >= low && value <= high)
        return WEIR_OK;
    return weir_fail(err, WEIR_E_ARG, "%s is %lld: it must be %lld to %lld", name, (long long)value, (long long)low,
                     (long long)high);
}

static weir_status check_thresholds(const weir_neurons_options *o, weir_err *err)
{
    WEIR_TRY(check_range("the number of thresholds", o->n_thresholds, 1, WEIR_NEURONS_MAX_THRESHOLDS, err));
    if (o->threshold[0] != 0)
        return weir_fail(err, WEIR_E_ARG, "the first threshold is %g: it must be 0", o->threshold[0]);
    for (int i = 0; i < o->n_thresholds; i++)
        if (!isfinite((float)o->threshold[i]))
            return weir_fail(err, WEIR_E_ARG, "threshold %d is %g: it must be a finite number", i, o->threshold[i]);
    return WEIR_OK;
}

static weir_status check_options(const weir_neurons_options *o, weir_err *err)
{
    WEIR_TRY(check_range("k", o->k, 1, WEIR_NEURONS_MAX_K, err));
    WEIR_TRY(check_range("the set of lists", o->lists, 0, (1 << WEIR_NEURONS_LISTS) - 1, err));
    WEIR_TRY(check_range("rank", o->rank, WEIR_RANK_MAX, WEIR_RANK_MEAN, err));
    WEIR_TRY(check_range("dedup", o->dedup, WEIR_DEDUP_NONE, WEIR_DEDUP_TEXT, err));
    WEIR_TRY(check_range("dedup_n", o->dedup_n, 1, WEIR_NEURONS_MAX_DEDUP_N, err));
    WEIR_TRY(check_thresholds(o, err));
    WEIR_TRY(check_range("per_band", o->per_band, 0, WEIR_SAMPLES_MAX, err));
    WEIR_TRY(check_range("random", o->random, 0, MAX_RANDOM, err));
    WEIR_TRY(check_range("before", o->before, 0, INT32_MAX, err));
    WEIR_TRY(check_range("after", o->after, 0, INT32_MAX, err));
    WEIR_TRY(check_range("the number of named neurons", o->n_named, 0, WEIR_NEURONS_MAX_NAMED, err));
    WEIR_TRY(check_range("token_means", o->token_means, 0, INT32_MAX, err));
    return check_range("threads", o->threads, 0, INT32_MAX, err);
}

static weir_status check_table(const weir_neurons_table *t, int i, weir_err *err)
{
    if (!t->hook || !t->site || !*t->hook)
        return weir_fail(err, WEIR_E_ARG, "table %d has no hook point", i);
    if (t->width < 1 || t->width > INT32_MAX || t->n < 1 || t->n > t->width || (!t->units && t->n != t->width))
        return weir_fail(err, WEIR_E_ARG, "%s: %lld neurons of %lld units", t->hook, (long long)t->n,
                         (long long)t->width);
    for (int64_t u = 0; t->units && u < t->n; u++)
        if (t->units[u] < 0 || t->units[u] >= t->width || (u > 0 && t->units[u] <= t->units[u - 1]))
            return weir_fail(err, WEIR_E_ARG, "%s: unit %lld is out of order, or not one of its %lld", t->hook,
                             (long long)t->units[u], (long long)t->width);
    return WEIR_OK;
}

static weir_status check_tables(const weir_neurons_table *t, int n, weir_err *err)
{
    WEIR_TRY(check_range("the number of tables", n, 1, INT32_MAX, err));
    for (int i = 0; i < n; i++) {
        WEIR_TRY(check_table(&t[i], i, err));
        for (int j = 0; j < i; j++)
            if (!strcmp(t[i].hook, t[j].hook) && !strcmp(t[i].site, t[j].site))
                return weir_fail(err, WEIR_E_ARG, "%s is searched twice", t[i].hook);
    }
    return WEIR_OK;
}

static weir_status check_named(const weir_neurons_options *o, const weir_neurons_table *t, int n_tables, weir_err *err)
{
    for (int i = 0; i < o->n_named; i++) {
        const weir_neurons_named *a = &o->named[i];
        if (a->table < 0 || a->table >= n_tables || a->neuron < 0 || a->neuron >= t[a->table].n)
            return weir_fail(err, WEIR_E_ARG, "named neuron %d is neuron %lld of table %d, which there is not", i,
                             (long long)a->neuron, a->table);
        for (int j = 0; j < i; j++)
            if (o->named[j].table == a->table && o->named[j].neuron == a->neuron)
                return weir_fail(err, WEIR_E_ARG, "neuron %lld of %s is named twice", (long long)a->neuron,
                                 t[a->table].hook);
    }
    return WEIR_OK;
}

/* --- making */

/* NULL stays NULL. False: out of memory. */
static bool copy_text(weir_arena *a, const char **text)
{
    if (*text)
        *text = weir_arena_strndup(a, *text, strlen(*text));
    return *text != NULL;
}

static weir_status copy_options(weir_neurons *s, const weir_neurons_options *o, weir_err *err)
{
    const size_t named = (size_t)o->n_named * sizeof *s->named;
    s->o = *o;
    s->named = weir_arena_alloc(&s->arena, (size_t)o->n_named, sizeof *s->named);
    if (!s->named || (o->kernel && !copy_text(&s->arena, &s->o.kernel)) ||
        (o->spool && !copy_text(&s->arena, &s->o.spool)))
        return weir_nomem(err, "a search");
    if (named)
        memcpy(s->named, o->named, named);
    s->o.named = s->named;
    for (int i = 0; i < o->n_thresholds; i++)
        s->threshold[i] = (float)o->threshold[i];
    return WEIR_OK;
}

static weir_status copy_table(weir_neurons *s, weir_neurons_table *t, weir_err *err)
{
    int64_t *units = NULL;
    if (t->units) {
        units = weir_arena_alloc(&s->arena, (size_t)t->n, sizeof *units);
        if (units)
            memcpy(units, t->units, (size_t)t->n * sizeof *units);
    }
    if (!copy_text(&s->arena, &t->hook) || !copy_text(&s->arena, &t->site) || (t->units && !units))
        return weir_nomem(err, "a search");
    t->units = units;
    return WEIR_OK;
}

static weir_status table_counts(const weir_neurons *s, weir_ntable *t, weir_err *err)
{
    const size_t n = (size_t)t->n;
    t->nonfinite = weir_calloc(n, sizeof *t->nonfinite);
    t->above = weir_calloc(n, (size_t)s->o.n_thresholds * sizeof *t->above);
    t->min = weir_calloc(n, sizeof *t->min);
    t->max = weir_calloc(n, sizeof *t->max);
    t->hist = weir_calloc(n, WEIR_NEURONS_BINS * sizeof *t->hist);
    t->sums = weir_calloc(n, sizeof *t->sums);
    if (!t->nonfinite || !t->above || !t->min || !t->max || !t->hist || !t->sums)
        return weir_nomem(err, "counts of neurons");
    for (size_t i = 0; i < n; i++) {
        t->min[i] = INFINITY;
        t->max[i] = -INFINITY;
    }
    return WEIR_OK;
}

static weir_status table_new(weir_neurons *s, weir_ntable *t, const weir_neurons_table *from, weir_err *err)
{
    t->pub = *from;
    t->n = from->n;
    WEIR_TRY(copy_table(s, &t->pub, err));
    WEIR_TRY(table_counts(s, t, err));
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++)
        if (s->o.lists & 1u << which)
            WEIR_TRY(weir_lists_new(&t->list[which], t->n, s->o.k, s->o.dedup != WEIR_DEDUP_NONE, err));
    if (s->o.per_band > 0)
        WEIR_TRY(weir_samples_new(&t->samples, t->n, err));
    return s->o.rank == WEIR_RANK_MEAN ? weir_mean_new(&t->mean, t->n, err) : WEIR_OK;
}

static void table_free(weir_ntable *t)
{
    weir_free(t->nonfinite);
    weir_free(t->above);
    weir_free(t->min);
    weir_free(t->max);
    weir_free(t->hist);
    weir_free(t->hist_all);
    weir_free(t->sums);
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++)
        weir_lists_free(&t->list[which]);
    weir_samples_free(&t->samples, t->n);
    weir_random_free(&t->random);
    weir_mean_free(&t->mean);
}

static weir_status init(weir_neurons *s, const weir_neurons_options *o, const weir_neurons_table *table, int n_tables,
                        weir_err *err)
{
    WEIR_TRY(copy_options(s, o, err));
    WEIR_TRY(weir_scan_pick(&s->kernel, o->kernel, err));
    WEIR_TRY(weir_history_new(s, err));
    s->threads = weir_threads(o->threads);
    s->scratch = weir_calloc((size_t)s->threads, sizeof *s->scratch);
    for (int i = 0; s->scratch && i < s->threads; i++)
        if (!(s->scratch[i] = weir_alloc_aligned(weir_add_scratch_bytes())))
            return weir_nomem(err, "a search");
    s->table = weir_calloc((size_t)n_tables, sizeof *s->table);
    if (!s->scratch || !s->table)
        return weir_nomem(err, "a search");
    for (; s->n_tables < n_tables; s->n_tables++) {
        weir_status st = table_new(s, &s->table[s->n_tables], &table[s->n_tables], err);
        if (st) {
            table_free(&s->table[s->n_tables]);
            return st;
        }
    }
    return weir_detail_new(s, err);
}

weir_status weir_neurons_new(weir_neurons **out, const weir_neurons_options *o, const weir_neurons_table *table,
                             int n_tables, weir_err *err)
{
    weir_neurons_options defaults;
    weir_neurons_options_init(&defaults);
    *out = NULL;
    o = o ? o : &defaults;
    WEIR_TRY(check_options(o, err));
    WEIR_TRY(check_tables(table, n_tables, err));
    WEIR_TRY(check_named(o, table, n_tables, err));
    weir_neurons *s = weir_calloc(1, sizeof *s);
    if (!s)
        return weir_nomem(err, "a search");
    weir_status st = init(s, o, table, n_tables, err);
    if (st) {
        weir_neurons_free(s);
        return st;
    }
    *out = s;
    return WEIR_OK;
}

void weir_neurons_free(weir_neurons *s)
{
    if (!s)
        return;
    for (int t = 0; t < s->n_tables; t++)
        table_free(&s->table[t]);
    weir_free(s->table);
    for (int i = 0; s->scratch && i < s->threads; i++)
        weir_free_aligned(s->scratch[i]);
    weir_free(s->scratch);
    weir_free(s->vocab);
    weir_free(s->vocab_at);
    weir_free(s->special);
    weir_pass_free(&s->pass);
    weir_history_free(s);
    weir_spool_free(s->tokens);
    for (int j = 0; s->heat && j < s->o.n_named; j++)
        weir_spool_free(s->heat[j]);
    weir_free(s->heat);
    weir_texts_free(&s->texts, s->o.n_named);
    weir_detail_free(s->detail);
    weir_weights_free(s->weights);
    weir_covered_free(&s->covered);
    for (size_t i = 0; i < sizeof s->own.text / sizeof *s->own.text; i++)
        weir_free(s->own.text[i]);
    weir_arena_free(&s->arena);
    weir_free(s);
}

/* --- ending */

weir_status weir_neurons_settle(weir_neurons *s, weir_err *err)
{
    for (int t = 0; s->o.rank == WEIR_RANK_MEAN && t < s->n_tables; t++)
        WEIR_TRY(weir_mean_settle(s, &s->table[t], err));
    return WEIR_OK;
}

static void settle_neuron(void *ctx, int64_t i, int thread)
{
    weir_ntable *t = ctx;
    (void)thread;
    for (int which = 0; which < WEIR_NEURONS_LISTS; which++)
        if (t->list[which].room)
            weir_lists_settle(&t->list[which], (weir_neurons_list)which, i);
}

weir_status weir_neurons_finish(weir_neurons *s, weir_err *err)
{
    WEIR_TRY(weir_neurons_settle(s, err));
    for (int t = 0; t < s->n_tables; t++)
        weir_parallel_for(s->threads, s->table[t].n, WEIR_NEURONS_BLOCK, settle_neuron, &s->table[t]);
    WEIR_TRY(weir_texts_gather(s, err));
    s->finished = true;
    return WEIR_OK;
}
