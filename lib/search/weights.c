/* search/weights.c: tokens read from the weights, kept; how often they come true. weights_find.c finds them. */
#include "search/weights.h"

#include <math.h>
#include <string.h>

weir_status weir_weights_new(weir_weights **out, const weir_neurons *s, int64_t n, weir_err *err)
{
    *out = NULL;
    if (n < 1 || n > WEIR_WEIGHTS_MOST)
        return weir_fail(err, WEIR_E_ARG, "%lld tokens of each end: it must be 1 to %d", (long long)n,
                         (int)WEIR_WEIGHTS_MOST);
    weir_weights *w = weir_calloc(1, sizeof *w);
    if (!w)
        return weir_nomem(err, "the tokens of the weights");
    *w = (weir_weights){.n = n, .n_tables = s->n_tables};
    w->table = weir_calloc((size_t)s->n_tables, sizeof *w->table);
    if (!w->table) {
        weir_free(w);
        return weir_nomem(err, "the tokens of the weights");
    }
    for (int t = 0; t < s->n_tables; t++)
        w->table[t].neurons = s->table[t].pub.n;
    *out = w;
    return WEIR_OK;
}

void weir_weights_free(weir_weights *w)
{
    if (!w)
        return;
    for (int t = 0; t < w->n_tables; t++)
        for (int side = 0; side < WEIR_SIDES; side++)
            for (int end = 0; end < 2; end++)
                weir_free(w->table[t].list[side][end]);
    weir_free(w->table);
    weir_free(w);
}

/* Tokens in all lists of one end. */
static int64_t tokens(const weir_weights *w, int t)
{
    return w->table[t].neurons * w->n;
}

weir_status weir_weights_room(weir_weights *w, int t, weir_weight_side side, weir_err *err)
{
    for (int end = 0; end < 2; end++) {
        weir_weight_token *list = weir_calloc((size_t)tokens(w, t), sizeof *list);
        if (!list)
            return weir_nomem(err, "the tokens of the weights");
        for (int64_t i = 0; i < tokens(w, t); i++)
            list[i] = (weir_weight_token){-1, NAN};
        weir_free(w->table[t].list[side][end]);
        w->table[t].list[side][end] = list;
    }
    return WEIR_OK;
}

weir_weight_token *weir_weights_list(const weir_weights *w, int t, weir_weight_side side, bool positive)
{
    return w->table[t].list[side][positive];
}

/* --- what a file may not hold */

static bool in_order(weir_weight_token a, weir_weight_token b, bool positive)
{
    if (a.score == b.score)
        return a.id < b.id;
    return positive ? a.score > b.score : a.score < b.score;
}

static bool is_list(const weir_weight_token *list, int64_t n, bool positive, int64_t most_id)
{
    int64_t size = 0;
    while (size < n && list[size].id != -1)
        size++;
    for (int64_t i = 0; i < size; i++)
        if (list[i].id < 0 || list[i].id >= most_id || isnan(list[i].score) ||
            (i && !in_order(list[i - 1], list[i], positive)))
            return false;
    for (int64_t i = size; i < n; i++)
        if (list[i].id != -1)
            return false;
    return true;
}

weir_status weir_weights_check(const weir_weights *w, int64_t most_id, weir_err *err)
{
    for (int t = 0; t < w->n_tables; t++)
        for (int side = 0; side < WEIR_SIDES; side++)
            for (int end = 0; end < 2; end++) {
                const weir_weight_token *list = w->table[t].list[side][end];
                for (int64_t i = 0; list && i < w->table[t].neurons; i++)
                    if (!is_list(list + i * w->n, w->n, end == 1, most_id))
                        return weir_fail(
                            err, WEIR_E_FORMAT,
                            "tokens of the weights of table %d, neuron %lld: they are not in order, or not "
                            "of the vocabulary",
                            t, (long long)i);
            }
    return WEIR_OK;
}

/* --- merging */

static weir_status copy_of(weir_weights **out, const weir_neurons *s, const weir_weights *w, weir_err *err)
{
    WEIR_TRY(weir_weights_new(out, s, w->n, err));
    for (int t = 0; t < w->n_tables; t++)
        for (int side = 0; side < WEIR_SIDES; side++) {
            if (!w->table[t].list[side][0])
                continue;
            weir_status st = weir_weights_room(*out, t, (weir_weight_side)side, err);
            if (st) {
                weir_weights_free(*out);
                *out = NULL;
                return st;
            }
            for (int end = 0; end < 2; end++)
                memcpy((*out)->table[t].list[side][end], w->table[t].list[side][end],
                       (size_t)tokens(w, t) * sizeof(weir_weight_token));
        }
    return WEIR_OK;
}

static bool same_table(const weir_weights *a, const weir_weights *b, int t)
{
    for (int side = 0; side < WEIR_SIDES; side++)
        for (int end = 0; end < 2; end++) {
            const weir_weight_token *x = a->table[t].list[side][end], *y = b->table[t].list[side][end];
            if (!x != !y || (x && memcmp(x, y, (size_t)tokens(a, t) * sizeof *x)))
                return false;
        }
    return true;
}

weir_status weir_weights_merge(weir_neurons *to, const weir_neurons *from, weir_err *err)
{
    const weir_weights *a = to->weights, *b = from->weights;
    if (!b)
        return WEIR_OK;
    if (!a)
        return copy_of(&to->weights, to, b, err);
    if (a->n != b->n)
        return weir_fail(err, WEIR_E_ARG, "one has %lld tokens of the weights at each end, the other %lld",
                         (long long)a->n, (long long)b->n);
    for (int t = 0; t < a->n_tables; t++)
        if (!same_table(a, b, t))
            return weir_fail(err, WEIR_E_ARG, "the tokens of the weights of %s differ: another model, or vocabulary",
                             to->table[t].pub.hook);
    return WEIR_OK;
}

/* --- weir/neurons.h */

const weir_weight_token *weir_neurons_weight_tokens(const weir_neurons *s, int t, int64_t i, weir_weight_side side,
                                                    bool positive, int64_t *n)
{
    const weir_weight_token *list = s->weights ? weir_weights_list(s->weights, t, side, positive) : NULL;
    *n = list ? s->weights->n : 0;
    return list ? list + i * s->weights->n : NULL;
}

bool weir_neurons_agreement(const weir_neurons *s, int t, int64_t i, int64_t *agree, int64_t *places)
{
    *agree = *places = 0;
    const weir_lists *top = &s->table[t].list[WEIR_NEURONS_TOP];
    int64_t n;
    const weir_weight_token *out = weir_neurons_weight_tokens(s, t, i, WEIR_SIDE_OUT, true, &n);
    if (!out || out[0].id < 0 || top->room == 0)
        return false;
    const int64_t size = top->size[i] < s->o.k ? top->size[i] : s->o.k;
    for (int64_t r = 0; r < size; r++) {
        const weir_place at = weir_lists_get(top, i, r).at;
        const weir_neurons_context c = weir_neurons_context_of(s, at.doc, at.pos, -1);
        if (c.hit + 1 >= c.n)
            continue;
        ++*places;
        *agree += c.id[c.hit + 1] == out[0].id;
    }
    return true;
}
