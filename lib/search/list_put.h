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

static inline void swap_entries(weir_lists *l, int64_t p, int64_t q)
{
    const float value = l->value[p];
    const weir_place at = l->at[p];
    l->value[p] = l->value[q];
    l->value[q] = value;
    l->at[p] = l->at[q];
    l->at[q] = at;
    if (!l->key)
        return;
    const uint64_t key = l->key[p];
    const uint32_t count = l->count[p];
    l->key[p] = l->key[q];
    l->key[q] = key;
    l->count[p] = l->count[q];
    l->count[q] = count;
}

/* Of a list that is full: its worst place goes last, and its value into least. */
static inline void settle_worst(weir_lists *l, weir_neurons_list which, int64_t i)
{
    const int64_t first = i * l->room, last = first + l->room - 1;
    bool once;
    int64_t worst = first + find_extreme(l->value + first, l->room, which, &once);
    for (int64_t p = worst + 1; !once && p <= last; p++)
        if (better(which, l->value[worst], l->at[worst], l->value[p], l->at[p]))
            worst = p;
    if (worst != last)
        swap_entries(l, worst, last);
    l->least[i] = which == WEIR_NEURONS_ABS ? fabsf(l->value[last]) : l->value[last];
}

/* Counts that are not known (0) stay so; a count that is too large for its 32 bits stays the largest. */
static inline uint32_t add_counts(uint32_t a, uint32_t b)
{
    const uint64_t sum = (uint64_t)a + b;
    return a == 0 || b == 0 ? 0 : sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

/* e and the entry at p are the same text. True: the entry has another value or place now. */
static inline bool join_entry(weir_lists *l, weir_neurons_list which, int64_t p, const weir_entry *e)
{
    const float was = figure(which, l->value[p]), now = figure(which, e->value);
    if (now < was)
        return false;
    l->count[p] = now > was ? e->count : add_counts(l->count[p], e->count);
    if (now == was && !weir_place_before(e->at, l->at[p]))
        return false;
    l->value[p] = e->value;
    l->at[p] = e->at;
    return true;
}

static inline void put_entry(weir_lists *l, weir_neurons_list which, int64_t i, const weir_entry *e)
{
    const int64_t first = i * l->room, last = first + l->room - 1, n = l->size[i];
    const bool full = n == l->room;
    if (full && !better(which, e->value, e->at, l->value[last], l->at[last]))
        return; /* what ties with the worst place needs no count */
    const int64_t same = l->key ? find_key(l->key + first, n, e->key) : -1;
    if (same >= 0) {
        if (join_entry(l, which, first + same, e) && full && first + same == last)
            settle_worst(l, which, i);
        return;
    }
    const int64_t p = full ? last : first + n;
    l->value[p] = e->value;
    l->at[p] = e->at;
    if (l->key) {
        l->key[p] = e->key;
        l->count[p] = e->count;
    }
    if (!full)
        l->size[i]++;
    if (p == last)
        settle_worst(l, which, i);
}

#endif
