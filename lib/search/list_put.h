/* search/list_put.h: how an entry gets into a list. Included by the file of each instruction set, which says first how
 * to search:
 *
 *     int64_t find_key(const uint64_t *key, int64_t n, uint64_t wanted);   the index, or -1
 *     int64_t count_better(const float *value, int64_t n, weir_neurons_list which, float f);
 *         how many values are no worse than one of figure f; the best come first
 *     void make_room(float *value, uint16_t *slot, int64_t r, int64_t hole);
 *         moves [r, hole) up by one
 */
#ifndef WEIR_SEARCH_LIST_PUT_H
#define WEIR_SEARCH_LIST_PUT_H

#include "search/list_rank.h"

/* Counts that are not known (0) stay so; a count that is too large for its 32 bits stays the largest. */
WEIR_INLINE uint32_t add_counts(uint32_t a, uint32_t b)
{
    const uint64_t sum = (uint64_t)a + b;
    return a == 0 || b == 0 ? 0 : sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

/* Where e belongs among the first n entries of neuron i, which rank. Places that tie come mostly in order. */
WEIR_INLINE int64_t find_rank(const weir_lists *l, weir_neurons_list which, int64_t i, int64_t n, const weir_entry *e)
{
    const int64_t first = i * l->room;
    const float f = figure(which, e->value);
    int64_t r = count_better(l->value + first, n, which, f);
    while (r > 0 && figure(which, l->value[first + r - 1]) == f &&
           weir_place_before(e->at, l->at[first + l->slot[first + r - 1]]))
        r--;
    return r;
}

/* The entry in a slot, with this value, comes to rank r; those from there on make room, up to `hole`, which goes. */
WEIR_INLINE void put_at(const weir_lists *l, int64_t i, int64_t r, int64_t hole, float value, uint16_t slot)
{
    float *v = l->value + i * l->room;
    uint16_t *s = l->slot + i * l->room;
    make_room(v, s, r, hole);
    v[r] = value;
    s[r] = slot;
}

/* e is the same text as the entry in a slot. */
static void join_entry(const weir_lists *l, weir_neurons_list which, int64_t i, int64_t slot, const weir_entry *e)
{
    const int64_t first = i * l->room;
    int64_t r = 0;
    while (l->slot[first + r] != slot)
        r++;
    const float was = figure(which, l->value[first + r]), now = figure(which, e->value);
    if (now < was)
        return;
    l->count[first + slot] = now > was ? e->count : add_counts(l->count[first + slot], e->count);
    if (now == was && !weir_place_before(e->at, l->at[first + slot]))
        return;
    put_at(l, i, find_rank(l, which, i, r, e), r, e->value, (uint16_t)slot);
    l->at[first + slot] = e->at;
}

WEIR_INLINE void put_entry(weir_lists *l, weir_neurons_list which, int64_t i, const weir_entry *e)
{
    const int64_t first = i * l->room, n = l->size[i];
    const bool full = n == l->room;
    const uint16_t slot = full ? l->slot[first + n - 1] : (uint16_t)n;
    const float worst = full ? figure(which, l->value[first + n - 1]) : -INFINITY, f = figure(which, e->value);
    if (f < worst)
        return;
    /* Only what ties asks for the place, which no cache has. It needs no count if it is not better. */
    if (__builtin_expect(f == worst, 0) && !weir_place_before(e->at, l->at[first + slot]))
        return;
    const int64_t same = l->key ? find_key(l->key + first, n, e->key) : -1;
    if (same >= 0) {
        join_entry(l, which, i, same, e);
        return;
    }
    const int64_t end = full ? n - 1 : n;
    put_at(l, i, find_rank(l, which, i, end, e), end, e->value, slot);
    l->at[first + slot] = e->at;
    if (l->key) {
        l->key[first + slot] = e->key;
        l->count[first + slot] = e->count;
    }
    l->size[i] += !full;
}

#endif
