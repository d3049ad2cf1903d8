/* What values promote; which tokens followed the triggers, and what the values think of them. */
#include <math.h>
#include <stdlib.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "kv.h"

static weir_memory_ask ask_of(const weir_kv *t, int layer, int64_t k)
{
    return (weir_memory_ask){.layer = t->layer[layer].layer,
                             .norm = t->norm,
                             .k = k,
                             .vocab = t->vocab,
                             .edits = (const weir_edit *const *)t->s.edits.edit,
                             .n_edits = t->s.edits.n};
}

static int failed(const weir_kv *t, const weir_err *err)
{
    return weir_signals_seen() ? weir_cli_error(t->cli, "stopped by signal %d", weir_signals_seen())
                               : weir_cli_fail(t->cli, err);
}

/* --- before the run */

/* The first of each memory's tokens; [2][F]. */
static int32_t *firsts(const weir_kv *t, const weir_kv_layer *l)
{
    int32_t *id = malloc(2 * (size_t)t->F * sizeof *id);
    for (int64_t i = 0; id && i < 2 * t->F; i++)
        id[i] = l->top_id[i / t->F][i % t->F * t->tokens];
    return id;
}

static weir_status read_layer(weir_kv *t, int layer, weir_err *err)
{
    weir_kv_layer *l = &t->layer[layer];
    const size_t n = (size_t)(t->F * t->tokens);
    const weir_memory_ask ask = ask_of(t, layer, t->tokens);
    weir_memory_side side[2] = {{0}, {0}};
    for (int sign = 0; sign < 2; sign++) {
        l->top_id[sign] = malloc(n * sizeof(int32_t));
        l->top_logprob[sign] = malloc(n * sizeof(float));
        if (!l->top_id[sign] || !l->top_logprob[sign])
            return weir_fail(err, WEIR_E_NOMEM, "out of memory");
        side[sign].top_id = l->top_id[sign];
        side[sign].top_logprob = l->top_logprob[sign];
    }
    WEIR_TRY(weir_memory_values(t->lens, &ask, side, err));
    int32_t *id = firsts(t, l);
    if (!id)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    const weir_status st = weir_keyvalue_memories(t->split, layer, id, id + t->F, err);
    free(id);
    return st;
}

int weir_kv_read_values(weir_kv *t)
{
    weir_err err = {0};
    weir_progress bar;
    weir_status st = WEIR_OK;
    weir_progress_start(&bar, t->cli);
    for (int i = 0; i < t->n_layers && st == WEIR_OK && !weir_signals_seen(); i++) {
        st = read_layer(t, i, &err);
        weir_progress_update(&bar, (double)(i + 1) / t->n_layers, -1);
    }
    weir_progress_stop(&bar, t->cli);
    return st == WEIR_OK && !weir_signals_seen() ? WEIR_EXIT_OK : failed(t, &err);
}

/* --- behind it */

int64_t weir_kv_hits(const weir_kv *t, int layer, weir_kv_key key, int sign, int64_t unit, weir_neuron_hit *hit)
{
    return weir_neurons_hits(t->search, t->table[key] + layer, unit, sign ? WEIR_NEURONS_BOTTOM : WEIR_NEURONS_TOP,
                             hit);
}

void weir_kv_matches(const weir_kv *t, int layer, weir_kv_key key, int sign, int64_t unit, int64_t *agree,
                     int64_t *places)
{
    const int32_t *next = t->layer[layer].triggers[key][sign].next + unit * t->k;
    const int32_t top = t->layer[layer].top_id[sign][unit * t->tokens];
    *agree = *places = 0;
    for (int64_t j = 0; j < t->k; j++) {
        *places += next[j] >= 0;
        *agree += next[j] >= 0 && next[j] == top;
    }
}

/* The token behind each trigger of a key. A token that the vocabulary does not count has no rank: -1. */
static void find_next(const weir_kv *t, int layer, weir_kv_key key, int sign, int64_t unit, weir_neuron_hit *hit,
                      int32_t *next)
{
    const int64_t n = weir_kv_hits(t, layer, key, sign, unit, hit);
    for (int64_t j = 0; j < t->k; j++) {
        next[j] = -1;
        if (j >= n)
            continue;
        const weir_neurons_context c = weir_neurons_context_of(t->search, hit[j].doc, hit[j].pos, -1);
        if (c.hit + 1 < c.n && c.id[c.hit + 1] < t->vocab)
            next[j] = c.id[c.hit + 1];
    }
}

static weir_status find_triggers(const weir_kv *t, int layer, weir_kv_key key, int sign, weir_err *err)
{
    weir_kv_triggers *g = &t->layer[layer].triggers[key][sign];
    weir_neuron_hit *hit = calloc((size_t)t->k, sizeof *hit);
    g->next = malloc((size_t)(t->F * t->k) * sizeof *g->next);
    g->rank = malloc((size_t)(t->F * t->k) * sizeof *g->rank);
    for (int64_t u = 0; hit && g->next && u < t->F; u++)
        find_next(t, layer, key, sign, u, hit, g->next + u * t->k);
    free(hit);
    return hit && g->next && g->rank ? WEIR_OK : weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

/* One product for the keys of one kind: they are few, and their tables are as large as they are. */
static weir_status rank_next(weir_kv *t, int layer, weir_kv_key key, weir_err *err)
{
    const weir_memory_ask ask = ask_of(t, layer, 0);
    weir_memory_side side[2] = {{0}, {0}};
    for (int sign = 0; sign < 2; sign++) {
        weir_kv_triggers *g = &t->layer[layer].triggers[key][sign];
        if (t->sign[sign])
            side[sign] = (weir_memory_side){.target = g->next, .n_targets = t->k, .rank = g->rank};
    }
    return weir_memory_values(t->lens, &ask, side, err);
}

static weir_status count_agreement(weir_kv *t, int layer, weir_kv_key key, int sign, weir_err *err)
{
    weir_kv_layer *l = &t->layer[layer];
    weir_kv_triggers *g = &l->triggers[key][sign];
    int32_t *id = firsts(t, l);
    if (!id)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    const weir_keyvalue_keys keys = {.n = t->F, .k = t->k, .top = id + sign * t->F, .next = g->next, .rank = g->rank};
    const weir_status st = weir_keyvalue_agree(&keys, &g->figures, err);
    free(id);
    return st;
}

static weir_status agree_layer(weir_kv *t, int layer, weir_err *err)
{
    for (int key = 0; key < WEIR_KV_KEYS; key++) {
        for (int sign = 0; sign < 2 && t->key[key]; sign++)
            if (t->sign[sign])
                WEIR_TRY(find_triggers(t, layer, (weir_kv_key)key, sign, err));
        if (t->key[key])
            WEIR_TRY(rank_next(t, layer, (weir_kv_key)key, err));
        for (int sign = 0; sign < 2 && t->key[key]; sign++)
            if (t->sign[sign])
                WEIR_TRY(count_agreement(t, layer, (weir_kv_key)key, sign, err));
    }
    return WEIR_OK;
}

int weir_kv_read_triggers(weir_kv *t)
{
    weir_err err = {0};
    weir_progress bar;
    weir_status st = weir_neurons_finish(t->search, &err);
    weir_progress_start(&bar, t->cli);
    for (int i = 0; i < t->n_layers && st == WEIR_OK && !weir_signals_seen(); i++) {
        st = agree_layer(t, i, &err);
        weir_progress_update(&bar, (double)(i + 1) / t->n_layers, -1);
    }
    weir_progress_stop(&bar, t->cli);
    return st == WEIR_OK && !weir_signals_seen() ? WEIR_EXIT_OK : failed(t, &err);
}

/* --- which are listed */

static int by_certainty(const void *a, const void *b)
{
    const weir_kv_listed *x = a, *y = b;
    if (x->prob != y->prob)
        return x->prob > y->prob ? -1 : 1;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return (x->unit > y->unit) - (x->unit < y->unit);
}

/* Those that are named, in their order; else all, the most certain values first, which the paper calls predictive, and
 * of these --limit. */
int weir_kv_choose_listed(weir_kv *t)
{
    t->listed = calloc((size_t)(t->n_layers * t->F), sizeof *t->listed);
    if (!t->listed)
        return weir_cli_error(t->cli, "out of memory");
    for (int i = 0; i < t->n_layers; i++)
        for (int64_t u = 0; u < t->F; u++) {
            const double p = exp((double)t->layer[i].top_logprob[0][u * t->tokens]);
            if (!t->asks.n || weir_asks_have(&t->asks, t->layer[i].layer, u))
                t->listed[t->n_listed++] = (weir_kv_listed){i, u, isnan(p) ? -1 : p};
        }
    if (t->asks.n || t->format == WEIR_KV_TSV)
        return WEIR_EXIT_OK;
    qsort(t->listed, (size_t)t->n_listed, sizeof *t->listed, by_certainty);
    if (t->a->limit && t->a->limit < t->n_listed)
        t->n_listed = t->a->limit;
    return WEIR_EXIT_OK;
}
