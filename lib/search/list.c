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
    l->rank = weir_calloc(count, room * sizeof *l->rank);
    l->at = weir_calloc(count, room * sizeof *l->at);
    if (dedup) {
        l->key = weir_calloc(count, room * sizeof *l->key);
        l->count = weir_calloc(count, room * sizeof *l->count);
    }
    if (!l->size || !l->rank || !l->at || (dedup && (!l->key || !l->count)))
        return weir_nomem(err, "lists of the best places");
    return WEIR_OK;
}

void weir_lists_free(weir_lists *l)
{
    weir_free(l->size);
    weir_free(l->rank);
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
    const weir_ranked r = l->rank[i * l->room + at];
    const int64_t p = i * l->room + r.slot;
    return (weir_entry){r.value, l->at[p], l->key ? l->key[p] : 0, l->key ? l->count[p] : 1};
}

/* --- sorting, in place */

static bool sorted(const weir_ranked *r, const weir_place *at, weir_neurons_list which, int64_t n)
{
    for (int64_t j = 1; j < n; j++)
        if (better_ranked(which, at, r[j], r[j - 1]))
            return false;
    return true;
}

/* Makes r[n] a heap again, worst on top, that is one but for r[j]. */
static void sift(weir_ranked *r, const weir_place *at, weir_neurons_list which, int64_t j, int64_t n)
{
    const weir_ranked e = r[j];
    for (int64_t child; (child = 2 * j + 1) < n; j = child) {
        if (child + 1 < n && better_ranked(which, at, r[child], r[child + 1]))
            child++;
        if (!better_ranked(which, at, e, r[child]))
            break;
        r[j] = r[child];
    }
    r[j] = e;
}

static void sort(weir_ranked *r, const weir_place *at, weir_neurons_list which, int64_t n)
{
    for (int64_t j = n / 2; j-- > 0;)
        sift(r, at, which, j, n);
    for (int64_t end = n - 1; end > 0; end--) {
        const weir_ranked worst = r[0];
        r[0] = r[end];
        r[end] = worst;
        sift(r, at, which, 0, end);
    }
}

void weir_lists_sort(weir_lists *l, weir_neurons_list which, int64_t i)
{
    const int64_t first = i * l->room, n = l->size[i];
    weir_ranked *r = l->rank + first;
    if (!sorted(r, l->at + first, which, n))
        sort(r, l->at + first, which, n);
    for (int64_t j = 0; l->key && n == l->room && j < n; j++)
        if (figure(which, r[j].value) == figure(which, r[n - 1].value))
            l->count[first + r[j].slot] = 0;
}
