/* search/list.c: lists of the best places, whatever the order in which they come.
 *
 * Why a list of k + 1 places is enough for exact counts. A place that was turned away, or lost its seat, is no better
 * than the worst place that the list has then, nor, therefore, than the one it has in the end. So the text of a place
 * whose value is better than that last one's has been in the list since it first came with this value, and all its
 * places were counted. Those that tie with the last one get no count.
 */
#include "search/list_rank.h"
#include "search/scan.h"

bool weir_entry_better(weir_neurons_list which, float a, weir_place at_a, float b, weir_place at_b)
{
    return better(which, a, at_a, b, at_b);
}

weir_status weir_lists_new(weir_lists *l, int64_t n, int64_t k, bool dedup, weir_err *err)
{
    const size_t count = (size_t)n, room = (size_t)k + 1;
    *l = (weir_lists){.n = n, .room = k + 1};
    l->size = weir_calloc(count, sizeof *l->size);
    l->value = weir_calloc(count, room * sizeof *l->value);
    l->slot = weir_calloc(count, room * sizeof *l->slot);
    l->at = weir_calloc(count, room * sizeof *l->at);
    if (dedup) {
        l->key = weir_calloc(count, room * sizeof *l->key);
        l->count = weir_calloc(count, room * sizeof *l->count);
    }
    if (!l->size || !l->value || !l->slot || !l->at || (dedup && (!l->key || !l->count)))
        return weir_nomem(err, "lists of the best places");
    return WEIR_OK;
}

void weir_lists_free(weir_lists *l)
{
    weir_free(l->size);
    weir_free(l->value);
    weir_free(l->slot);
    weir_free(l->at);
    weir_free(l->key);
    weir_free(l->count);
    *l = (weir_lists){0};
}

void weir_lists_put(weir_lists *l, weir_neurons_list which, int64_t i, const weir_entry *e)
{
    l->mixed = true;
    weir_scan_ref.put(l, which, i, e);
}

weir_entry weir_lists_get(const weir_lists *l, int64_t i, int64_t at)
{
    const int64_t first = i * l->room, p = first + l->slot[first + at];
    return (weir_entry){l->value[first + at], l->at[p], l->key ? l->key[p] : 0, l->key ? l->count[p] : 1};
}

void weir_lists_settle(weir_lists *l, weir_neurons_list which, int64_t i)
{
    const int64_t first = i * l->room, last = first + l->room - 1;
    for (int64_t p = first; l->key && l->size[i] == l->room && p <= last; p++)
        if (figure(which, l->value[p]) == figure(which, l->value[last]))
            l->count[first + l->slot[p]] = 0;
}
