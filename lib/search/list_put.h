/* search/list_put.h: how an entry gets into a list. Included by the file of each instruction set, which says first how
 * to search keys:
 *
 *     int64_t find_key(const uint64_t *key, int64_t n, uint64_t wanted);   the index, or -1
 */
#ifndef WEIR_SEARCH_LIST_PUT_H
#define WEIR_SEARCH_LIST_PUT_H

#include "search/list_rank.h"

/* Of a full list: e comes to h in the heap, counted from behind, or nearer to its leaves. */
WEIR_INLINE void sift_down(const weir_lists *l, weir_neurons_list which, int64_t i, int64_t h, weir_ranked e)
{
    const weir_place *at = l->at + i * l->room;
    weir_ranked *root = l->rank + (i + 1) * l->room - 1;
    const int64_t n = l->room;
    for (int64_t child; (child = 2 * h + 1) < n; h = child) {
        if (child + 1 < n) {
            const float x = figure(which, root[-child].value), y = figure(which, root[-child - 1].value);
            int64_t second = x > y; /* no branch: nobody could guess where it goes */
            if (__builtin_expect(x == y, 0))
                second = weir_place_before(at[root[-child].slot], at[root[-child - 1].slot]);
            child += second;
        }
        if (!better_ranked(which, at, e, root[-child]))
            break;
        root[-h] = root[-child];
    }
    root[-h] = e;
}

/* Counts that are not known (0) stay so; a count that is too large for its 32 bits stays the largest. */
WEIR_INLINE uint32_t add_counts(uint32_t a, uint32_t b)
{
    const uint64_t sum = (uint64_t)a + b;
    return a == 0 || b == 0 ? 0 : sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

/* e is the same text as the entry in a slot. */
static void join_entry(const weir_lists *l, weir_neurons_list which, int64_t i, int64_t slot, const weir_entry *e)
{
    const int64_t first = i * l->room, last = first + l->room - 1;
    int64_t p = first;
    while (l->rank[p].slot != slot)
        p++;
    const float was = figure(which, l->rank[p].value), now = figure(which, e->value);
    if (now < was)
        return;
    l->count[first + slot] = now > was ? e->count : add_counts(l->count[first + slot], e->count);
    if (now == was && !weir_place_before(e->at, l->at[first + slot]))
        return;
    l->at[first + slot] = e->at;
    l->rank[p].value = e->value;
    if (l->size[i] == l->room) /* it is better than it was */
        sift_down(l, which, i, last - p, l->rank[p]);
}

static void make_heap(const weir_lists *l, weir_neurons_list which, int64_t i)
{
    for (int64_t h = l->room / 2; h-- > 0;)
        sift_down(l, which, i, h, l->rank[(i + 1) * l->room - 1 - h]);
}

WEIR_INLINE void put_entry(weir_lists *l, weir_neurons_list which, int64_t i, const weir_entry *e)
{
    const int64_t first = i * l->room, n = l->size[i];
    const bool full = n == l->room;
    const weir_ranked worst = full ? l->rank[first + n - 1] : (weir_ranked){0, (uint32_t)n};
    if (full && !better(which, e->value, e->at, worst.value, l->at[first + worst.slot]))
        return; /* what ties with the worst place needs no count */
    const int64_t same = l->key ? find_key(l->key + first, n, e->key) : -1;
    if (same >= 0) {
        join_entry(l, which, i, same, e);
        return;
    }
    const weir_ranked in = {e->value, worst.slot};
    l->at[first + in.slot] = e->at;
    if (l->key) {
        l->key[first + in.slot] = e->key;
        l->count[first + in.slot] = e->count;
    }
    if (full) {
        sift_down(l, which, i, 0, in);
        return;
    }
    l->rank[first + n] = in;
    l->size[i]++;
    if (n + 1 == l->room)
        make_heap(l, which, i);
}

#endif
