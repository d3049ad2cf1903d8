#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/signals.h"
#include "compose.h"

bool weir_composing_room(weir_composing *t)
{
    const size_t l = (size_t)t->info->L;
    for (int from = 0; from < WEIR_COMPOSE_PARTS; from++)
        for (int input = 0; input < WEIR_COMPOSE_INPUTS; input++) {
            weir_compose_group *g = &t->group[from][input];
            *g = (weir_compose_group){.from = (weir_compose_part)from, .input = (weir_compose_input)input};
            g->layer_sum = calloc(l * l, sizeof *g->layer_sum);
            g->layer_pairs = calloc(l * l, sizeof *g->layer_pairs);
            g->top = calloc((size_t)t->a->k, sizeof *g->top);
            if (!g->layer_sum || !g->layer_pairs || !g->top)
                return false;
        }
    return true;
}

void weir_composing_free(weir_composing *t)
{
    for (int from = 0; from < WEIR_COMPOSE_PARTS; from++)
        for (int input = 0; input < WEIR_COMPOSE_INPUTS; input++) {
            free(t->group[from][input].layer_sum);
            free(t->group[from][input].layer_pairs);
            free(t->group[from][input].top);
        }
    for (int64_t l = 0; t->unit && l < t->info->L; l++)
        free(t->unit[l]);
    free(t->unit);
    free(t->units);
    free(t->layer);
    weir_asks_free(&t->asks);
    weir_compose_free(t->c);
    weir_edits_free(&t->edits);
    weir_model_free(t->model);
}

/* --- a pair */

static void rank(weir_compose_group *g, int64_t k, const weir_compose_pair *p)
{
    if (g->n_top == k && fabs(p->score) <= fabs(g->top[k - 1].score))
        return;
    int64_t at = g->n_top < k ? g->n_top++ : k - 1;
    for (; at > 0 && fabs(g->top[at - 1].score) < fabs(p->score); at--)
        g->top[at] = g->top[at - 1];
    g->top[at] = *p;
}

static void take(weir_composing *t, weir_compose_group *g, const weir_compose_pair *p)
{
    const int64_t cell = p->from.layer * t->info->L + p->to.layer;
    if (t->scored++ == 0)
        weir_compose_put_head(t);
    weir_compose_put_pair(t, g, p);
    if (isnan(p->score)) /* one of them is 0 */
        return;
    g->pairs++;
    g->sum += fabs(p->score);
    g->layer_pairs[cell]++;
    g->layer_sum[cell] += fabs(p->score);
    rank(g, t->a->k, p);
}

/* --- two layers */

static bool wanted(const weir_composing *t, int input)
{
    return t->a->kind == 0 || t->a->kind == 1 + input;
}

static int64_t count_of(const weir_composing *t, weir_compose_part part, int64_t layer)
{
    return part == WEIR_COMPOSE_HEADS ? t->info->H : t->units[layer];
}

static weir_compose_unit unit_of(const weir_composing *t, weir_compose_part part, int64_t layer, int64_t i)
{
    return (weir_compose_unit){part, layer, part == WEIR_COMPOSE_HEADS ? i : t->unit[layer][i]};
}

/* score [n_from, n_to] of an input */
static void take_all(weir_composing *t, weir_compose_part part, int64_t from, int64_t to, int input,
                     const double *score)
{
    const weir_compose_part into = input <= WEIR_COMPOSE_V ? WEIR_COMPOSE_HEADS : WEIR_COMPOSE_NEURONS;
    const int64_t n_from = count_of(t, part, from), n_to = count_of(t, into, to);
    for (int64_t i = 0; i < n_from; i++)
        for (int64_t j = 0; j < n_to; j++) {
            const weir_compose_pair p = {unit_of(t, part, from, i), unit_of(t, into, to, j), score[i * n_to + j]};
            take(t, &t->group[part][input], &p);
        }
}

static weir_status into_heads(weir_composing *t, weir_compose_part part, int64_t from, int64_t to, double *score,
                              weir_err *err)
{
    const int64_t n = count_of(t, part, from), h = t->info->H;
    if (part == WEIR_COMPOSE_HEADS)
        WEIR_TRY(weir_compose_heads(t->c, from, to, score, err));
    else
        WEIR_TRY(weir_compose_neurons_heads(t->c, from, t->unit[from], n, to, score, err));
    for (int input = WEIR_COMPOSE_Q; input <= WEIR_COMPOSE_V; input++)
        if (wanted(t, input))
            take_all(t, part, from, to, input, score + input * n * h);
    return WEIR_OK;
}

static weir_status into_neurons(weir_composing *t, weir_compose_part part, int64_t from, int64_t to, double *score,
                                weir_err *err)
{
    for (int input = WEIR_COMPOSE_KEY; input <= (t->info->gated ? WEIR_COMPOSE_UP : WEIR_COMPOSE_KEY); input++) {
        if (!wanted(t, input))
            continue;
        const weir_compose_input in = (weir_compose_input)input;
        if (part == WEIR_COMPOSE_HEADS)
            WEIR_TRY(weir_compose_heads_neurons(t->c, from, to, in, t->unit[to], t->units[to], score, err));
        else
            WEIR_TRY(weir_compose_neurons(t->c, from, t->unit[from], t->units[from], to, in, t->unit[to], t->units[to],
                                          score, err));
        take_all(t, part, from, to, input, score);
    }
    return WEIR_OK;
}

static weir_status take_parts(weir_composing *t, weir_compose_part part, int64_t from, weir_compose_part into,
                              int64_t to, weir_err *err)
{
    const int64_t n = count_of(t, part, from), m = count_of(t, into, to);
    const bool heads = into == WEIR_COMPOSE_HEADS;
    const bool asked = heads ? t->a->kind <= 1 + WEIR_COMPOSE_V : t->a->kind == 0 || t->a->kind > 1 + WEIR_COMPOSE_V;
    if (n == 0 || m == 0 || !asked || !weir_compose_reads(t->model, part, from, into, to))
        return WEIR_OK;
    double *score = calloc((size_t)n * (size_t)m, 3 * sizeof *score);
    if (!score)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    const weir_status st =
        heads ? into_heads(t, part, from, to, score, err) : into_neurons(t, part, from, to, score, err);
    free(score);
    return st;
}

weir_status weir_composing_take(weir_composing *t, weir_progress *bar, weir_err *err)
{
    int64_t layers = 0, done = 0;
    for (int64_t l = 0; l < t->info->L; l++)
        layers += t->layer[l];
    for (int64_t to = 0; to < t->info->L; to++)
        for (int64_t from = 0; t->layer[to] && from <= to; from++) {
            for (int pair = 0; t->layer[from] && pair < WEIR_COMPOSE_PARTS * WEIR_COMPOSE_PARTS; pair++)
                WEIR_TRY(take_parts(t, (weir_compose_part)(pair % 2), from, (weir_compose_part)(pair / 2), to, err));
            if (weir_signals_seen())
                return weir_fail(err, WEIR_E_IO, "stopped by signal %d", weir_signals_seen());
            done += t->layer[from];
            weir_progress_update(bar, (double)done / (double)(layers * (layers + 1) / 2), -1);
        }
    return WEIR_OK;
}
