/* search/list.c: lists of the best places, whatever the order in which they come.
 *
 * Why a list of k + 1 places is enough for exact counts. A place that was turned away, or lost its seat, is no better
 * than the worst place that the list has then, nor, therefore, than the one it has in the end. So the text of a place
 * whose value is better than that last one's has been in the list since it first came with this value, and all its
 * places were counted. Those that tie with the last one get no count.
 */
#include <string.h>

#include "search/impl.h"

static int64_t find_key(const uint64_t *key, int64_t n, uint64_t wanted)
{
    for (int64_t i = 0; i < n; i++)
        if (key[i] == wanted)
            return i;
    return -1;
}

static int64_t find_extreme(const float *x, int64_t n, weir_neurons_list which, bool *once);

#include "search/list_put.h"

static int64_t find_extreme(const float *x, int64_t n, weir_neurons_list which, bool *once)
{
    int64_t worst = 0;
    *once = true;
    for (int64_t i = 1; i < n; i++) {
        const float a = figure(which, x[i]), b = figure(which, x[worst]);
        if (a == b)
            *once = false;
        if (a < b) {
            worst = i;
            *once = true;
        }
    }
    return worst;
}

bool weir_entry_better(weir_neurons_list which, float a, weir_place at_a, float b, weir_place at_b)
{
    return better(which, a, at_a, b, at_b);
}

weir_status weir_lists_new(weir_lists *l, int64_t n, int64_t k, bool dedup, weir_err *err)
{
    const size_t count = (size_t)n, room = (size_t)k + 1;
    *l = (weir_lists){.n = n, .room = k + 1};
    l->size = weir_calloc(count, sizeof *l->size);
    l->least = weir_calloc(count, sizeof *l->least);
    l->value = weir_calloc(count, room * sizeof *l->value);
    l->at = weir_calloc(count, room * sizeof *l->at);
    if (dedup) {
        l->key = weir_calloc(count, room * sizeof *l->key);
        l->count = weir_calloc(count, room * sizeof *l->count);
    }
    if (!l->size || !l->least || !l->value || !l->at || (dedup && (!l->key || !l->count)))
        return weir_nomem(err, "lists of the best places");
    return WEIR_OK;
}

void weir_lists_free(weir_lists *l)
{
    weir_free(l->size);
    weir_free(l->least);
    weir_free(l->value);
    weir_free(l->at);
    weir_free(l->key);
    weir_free(l->count);
    *l = (weir_lists){0};
}

void weir_lists_put(weir_lists *l, weir_neurons_list which, int64_t i, const weir_entry *e)
{
    put_entry(l, which, i, e);
}

weir_entry weir_lists_get(const weir_lists *l, int64_t i, int64_t at)
{
    const int64_t p = i * l->room + at;
    return (weir_entry){l->value[p], l->at[p], l->key ? l->key[p] : 0, l->key ? l->count[p] : 1};
}

/* --- sorting, in place */

static void swap_entries(weir_lists *l, int64_t p, int64_t q)
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

static bool better_at(const weir_lists *l, weir_neurons_list which, int64_t p, int64_t q)
{
    return better(which, l->value[p], l->at[p], l->value[q], l->at[q]);
}

static bool sorted(const weir_lists *l, weir_neurons_list which, int64_t first, int64_t n)
{
    for (int64_t j = 1; j < n; j++)
        if (better_at(l, which, first + j, first + j - 1))
            return false;
    return true;
}

/* Makes the n entries from `first` on a heap again, worst on top, that is one but for entry j. */
static void sift(weir_lists *l, weir_neurons_list which, int64_t first, int64_t j, int64_t n)
{
    for (int64_t child; (child = 2 * j + 1) < n; j = child) {
        if (child + 1 < n && better_at(l, which, first + child, first + child + 1))
            child++;
        if (!better_at(l, which, first + j, first + child))
            return;
        swap_entries(l, first + j, first + child);
    }
}

void weir_lists_sort(weir_lists *l, weir_neurons_list which, int64_t i)
{
    const int64_t first = i * l->room, n = l->size[i], last = first + l->room - 1;
    if (!sorted(l, which, first, n)) {
        for (int64_t j = n / 2; j-- > 0;)
            sift(l, which, first, j, n);
        for (int64_t end = n - 1; end > 0; end--) {
            swap_entries(l, first, first + end);
            sift(l, which, first, 0, end);
        }
    }
    for (int64_t p = first; l->key && n == l->room && p <= last; p++)
        if (figure(which, l->value[p]) == figure(which, l->value[last]))
            l->count[p] = 0;
}
