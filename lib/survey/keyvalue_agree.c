/* survey/keyvalue_agree.c: do values promote what follows their keys' triggers (weir/keyvalue.h)? */
#include <math.h>
#include <stdlib.h>

#include <weir/keyvalue.h>

#include "base/mem.h"

static int by_size(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Pairs of a key's trigger and any key's value that agree; both [n], sorted here. */
static double pairs_alike(int32_t *value, int32_t *next, int64_t n)
{
    double pairs = 0; /* whole, and exact below 2^53 */
    qsort(value, (size_t)n, sizeof *value, by_size);
    qsort(next, (size_t)n, sizeof *next, by_size);
    for (int64_t i = 0, j = 0; i < n && j < n;) {
        const int32_t token = value[i] > next[j] ? value[i] : next[j];
        int64_t a = 0, b = 0;
        for (; i < n && value[i] <= token; i++)
            a += value[i] == token;
        for (; j < n && next[j] <= token; j++)
            b += next[j] == token;
        pairs += (double)a * (double)b;
    }
    return pairs;
}

static double median(int32_t *x, int64_t n)
{
    if (n == 0)
        return NAN;
    qsort(x, (size_t)n, sizeof *x, by_size);
    return ((double)x[(n - 1) / 2] + (double)x[n / 2]) / 2;
}

static void count_key(const weir_keyvalue_keys *keys, int64_t i, weir_keyvalue_figures *f)
{
    bool any = false;
    for (int64_t j = i * keys->k; j < (i + 1) * keys->k; j++) {
        f->places += keys->next[j] >= 0;
        f->matches += keys->next[j] >= 0 && keys->next[j] == keys->top[i];
        any |= keys->next[j] >= 0 && keys->next[j] == keys->top[i];
    }
    f->keys++;
    f->agree += keys->next[i * keys->k] == keys->top[i];
    f->any += any;
}

weir_status weir_keyvalue_agree(const weir_keyvalue_keys *keys, weir_keyvalue_figures *out, weir_err *err)
{
    *out = (weir_keyvalue_figures){.chance = NAN, .rank = NAN};
    if (keys->n < 0 || keys->k < 1)
        return weir_fail(err, WEIR_E_ARG, "%lld triggers of %lld keys: there must be some", (long long)keys->k,
                         (long long)keys->n);
    int32_t *room = weir_calloc((size_t)(3 * keys->n + 1), sizeof *room);
    if (!room)
        return weir_nomem(err, "the agreement of keys and values");
    int32_t *value = room, *next = room + keys->n, *rank = next + keys->n;
    int64_t ranks = 0;
    for (int64_t i = 0; i < keys->n; i++) {
        const int64_t best = i * keys->k;
        if (keys->top[i] < 0 || keys->next[best] < 0)
            continue;
        value[out->keys] = keys->top[i];
        next[out->keys] = keys->next[best];
        if (keys->rank && keys->rank[best] > 0)
            rank[ranks++] = keys->rank[best];
        count_key(keys, i, out);
    }
    if (out->keys)
        out->chance = pairs_alike(value, next, out->keys) / ((double)out->keys * (double)out->keys);
    out->rank = median(rank, ranks);
    weir_free(room);
    return WEIR_OK;
}
