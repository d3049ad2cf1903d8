/* search/list_put.h: how an entry gets into a list. Included by list.c, and by the file of each instruction set, which
 * says first how to search a row of numbers:
 *
 *     int64_t find_key(const uint64_t *key, int64_t n, uint64_t wanted);   the index, or -1
 *     int64_t find_extreme(const float *x, int64_t n, weir_neurons_list which, bool *once);
 *         the first index of the lowest value (BOTTOM: the highest, ABS: the smallest magnitude), n > 0; once: no other
 *         is equal to it
 */
#ifndef WEIR_SEARCH_LIST_PUT_H
#define WEIR_SEARCH_LIST_PUT_H

#include <math.h>

#include "search/impl.h"

/* What a list ranks by: the higher, the better. */
static inline float figure(weir_neurons_list which, float value)
{
    return which == WEIR_NEURONS_BOTTOM ? -value : which == WEIR_NEURONS_ABS ? fabsf(value) : value;
}

static inline bool better(weir_neurons_list which, float a, weir_place at_a, float b, weir_place at_b)
{
    const float x = figure(which, a), y = figure(which, b);
    return x > y || (x == y && weir_place_before(at_a, at_b));
}

static inline void store_entry(weir_lists *l, int64_t p, const weir_entry *e)
{
    l->value[p] = e->value;
    l->at[p] = e->at;
    if (l->key) {
        l->key[p] = e->key;
        l->count[p] = e->count;
    }
}

static inline void move_entry(weir_lists *l, int64_t from, int64_t to)
{
    l->value[to] = l->value[from];
    l->at[to] = l->at[from];
    if (l->key) {
        l->key[to] = l->key[from];
        l->count[to] = l->count[from];
    }
}

/* Of a list whose last entry is free, or is to go: e gets in, the worst of all goes last. Values are searched before
 * any is written: a wide load from where something narrow was just stored would wait for it. */
__attribute__((always_inline)) static inline void put_full(weir_lists *l, weir_neurons_list which, int64_t i,
                                                           const weir_entry *e)
{
    const int64_t first = i * l->room, last = first + l->room - 1;
    int64_t to = last;
    if (l->room > 1) {
        bool once;
        int64_t worst = first + find_extreme(l->value + first, l->room - 1, which, &once);
        for (int64_t p = worst + 1; !once && p < last; p++)
            if (better(which, l->value[worst], l->at[worst], l->value[p], l->at[p]))
                worst = p;
        if (better(which, e->value, e->at, l->value[worst], l->at[worst])) {
            move_entry(l, worst, last);
            to = worst;
        }
    }
    store_entry(l, to, e);
    l->least[i] = which == WEIR_NEURONS_ABS ? fabsf(l->value[last]) : l->value[last];
}

/* Counts that are not known (0) stay so; a count that is too large for its 32 bits stays the largest. */
static inline uint32_t add_counts(uint32_t a, uint32_t b)
{
    const uint64_t sum = (uint64_t)a + b;
    return a == 0 || b == 0 ? 0 : sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

/* e and the entry at p are the same text. True: the entry becomes *out. */
static inline bool join_entries(weir_lists *l, weir_neurons_list which, int64_t p, const weir_entry *e, weir_entry *out)
{
    const float was = figure(which, l->value[p]), now = figure(which, e->value);
    if (now < was)
        return false;
    *out = *e;
    if (now > was)
        return true;
    out->count = add_counts(l->count[p], e->count);
    if (!weir_place_before(e->at, l->at[p])) {
        out->value = l->value[p];
        out->at = l->at[p];
    }
    return true;
}

/* Always inline: `which` is known where it is called, and nothing is left of the questions about it. */
__attribute__((always_inline)) static inline void put_entry(weir_lists *l, weir_neurons_list which, int64_t i,
                                                            const weir_entry *e)
{
    const int64_t first = i * l->room, last = first + l->room - 1, n = l->size[i];
    const bool full = n == l->room;
    if (full && !better(which, e->value, e->at, l->value[last], l->at[last]))
        return; /* what ties with the worst place needs no count */
    const int64_t same = l->key ? find_key(l->key + first, n, e->key) : -1;
    weir_entry joined;
    if (same >= 0) {
        if (!join_entries(l, which, first + same, e, &joined))
            return;
        if (full && first + same == last)
            put_full(l, which, i, &joined);
        else
            store_entry(l, first + same, &joined);
        return;
    }
    l->size[i] += !full;
    if (n + 1 < l->room)
        store_entry(l, first + n, e);
    else
        put_full(l, which, i, e);
}

#endif
