/* search/samples.c: samples of places that depend on the set of rows alone: those with the smallest hashes. Of bands,
 * in every bin of a neuron's histogram; at random, of all rows of a table. */
#include <math.h>
#include <string.h>

#include "search/impl.h"

/* splitmix64's finisher: a permutation of 64 bits, so that places with one seed never share a hash. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t weir_place_hash(uint64_t seed, weir_place at)
{
    return mix(mix(seed + 0x9e3779b97f4a7c15u) ^ ((uint64_t)at.doc << 32 | at.pos));
}

/* --- bands */

struct weir_bin_samples {
    weir_sample *e; /* by (bin, hash, place) */
    int32_t n, room;
};

weir_status weir_samples_new(weir_samples *s, int64_t n, weir_err *err)
{
    s->neuron = weir_calloc((size_t)n, sizeof *s->neuron);
    return s->neuron ? WEIR_OK : weir_nomem(err, "samples of places");
}

void weir_samples_free(weir_samples *s, int64_t n)
{
    for (int64_t i = 0; s->neuron && i < n; i++)
        weir_free(s->neuron[i].e);
    weir_free(s->neuron);
    s->neuron = NULL;
}

static bool sample_before(const weir_sample *a, const weir_sample *b)
{
    if (a->bin != b->bin)
        return a->bin < b->bin;
    return a->hash != b->hash ? a->hash < b->hash : weir_place_before(a->at, b->at);
}

/* The first sample that is not before e. */
static int32_t lower_bound(const struct weir_bin_samples *b, const weir_sample *e)
{
    int32_t low = 0, high = b->n;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (sample_before(&b->e[middle], e))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool same_sample(const weir_sample *a, const weir_sample *b)
{
    return a->bin == b->bin && a->hash == b->hash && a->at.doc == b->at.doc && a->at.pos == b->at.pos;
}

weir_status weir_samples_put(weir_samples *s, int64_t i, int64_t per, const weir_sample *e, weir_err *err)
{
    struct weir_bin_samples *b = &s->neuron[i];
    const int32_t at = lower_bound(b, e);
    const bool full = at >= per && b->e[at - per].bin == e->bin; /* `per` smaller ones are there */
    if (full || (at < b->n && same_sample(&b->e[at], e)))
        return WEIR_OK;
    int32_t drop = at; /* the bin's largest, where the bin overflows: else behind all */
    while (drop < b->n && b->e[drop].bin == e->bin)
        drop++;
    const bool overflows = drop >= per && b->e[drop - per].bin == e->bin;
    if (!overflows && b->n == b->room) {
        const int32_t room = b->room ? b->room * 2 : 16;
        weir_sample *grown = weir_realloc(b->e, (size_t)room, sizeof *grown);
        if (!grown)
            return weir_nomem(err, "samples of places");
        b->e = grown;
        b->room = room;
    }
    const int32_t end = overflows ? drop - 1 : b->n++;
    memmove(b->e + at + 1, b->e + at, (size_t)(end - at) * sizeof *b->e);
    b->e[at] = *e;
    return WEIR_OK;
}

int64_t weir_samples_get(const weir_samples *s, int64_t i, weir_sample *out, int64_t cap)
{
    const struct weir_bin_samples *b = &s->neuron[i];
    const int64_t n = b->n < cap ? b->n : cap;
    if (n > 0)
        memcpy(out, b->e, (size_t)n * sizeof *out);
    return b->n;
}

/* Of what is kept by their hashes, at most `most`: which one goes when another comes. */
static int64_t largest_hash(const weir_sample *const *e, int64_t n)
{
    int64_t at = 0;
    for (int64_t j = 1; j < n; j++)
        if (e[j]->hash > e[at]->hash || (e[j]->hash == e[at]->hash && weir_place_before(e[at]->at, e[j]->at)))
            at = j;
    return at;
}

static bool smaller_hash(const weir_sample *a, const weir_sample *b)
{
    return a->hash != b->hash ? a->hash < b->hash : weir_place_before(a->at, b->at);
}

static bool higher(const weir_sample *a, const weir_sample *b)
{
    return a->value != b->value ? a->value > b->value : weir_place_before(a->at, b->at);
}

int64_t weir_samples_best(const weir_samples *s, int64_t i, uint32_t first, uint32_t end, int64_t per,
                          weir_neuron_hit *out)
{
    const struct weir_bin_samples *b = &s->neuron[i];
    const weir_sample *kept[WEIR_SAMPLES_MAX];
    int64_t n = 0;
    for (const weir_sample *e = b->e; e < b->e + b->n; e++) {
        if (e->bin < first || e->bin >= end)
            continue;
        if (n < per) {
            kept[n++] = e;
            continue;
        }
        const int64_t drop = largest_hash(kept, n);
        if (smaller_hash(e, kept[drop]))
            kept[drop] = e;
    }
    for (int64_t j = 0; j < n; j++) {
        const weir_sample *e = kept[j];
        int64_t at = j;
        for (; at > 0 && higher(e, kept[at - 1]); at--)
            kept[at] = kept[at - 1];
        kept[at] = e;
    }
    for (int64_t j = 0; j < n; j++)
        out[j] = (weir_neuron_hit){.value = kept[j]->value, .doc = kept[j]->at.doc, .pos = kept[j]->at.pos, .count = 1};
    return n;
}

/* --- at random */

void weir_random_free(weir_random *r)
{
    weir_free(r->hash);
    weir_free(r->at);
    weir_free(r->value);
    weir_free(r->row);
    *r = (weir_random){0};
}

static weir_status random_grow(weir_random *r, int64_t most, int64_t neurons, weir_err *err)
{
    int64_t room = r->room ? r->room * 2 : 16;
    room = room < most ? room : most;
    uint64_t *hash = weir_realloc(r->hash, (size_t)room, sizeof *hash);
    r->hash = hash ? hash : r->hash;
    weir_place *at = weir_realloc(r->at, (size_t)room, sizeof *at);
    r->at = at ? at : r->at;
    float *value = weir_realloc(r->value, (size_t)room, (size_t)neurons * sizeof *value);
    r->value = value ? value : r->value;
    int32_t *row = weir_realloc(r->row, (size_t)room, sizeof *row);
    r->row = row ? row : r->row;
    if (!hash || !at || !value || !row)
        return weir_nomem(err, "random places");
    r->room = room;
    return WEIR_OK;
}

/* Where the place belongs; there: it is there already. */
static int64_t random_find(const weir_random *r, uint64_t hash, weir_place at, bool *there)
{
    int64_t j = r->n;
    while (j > 0 && (r->hash[j - 1] > hash || (r->hash[j - 1] == hash && weir_place_before(at, r->at[j - 1]))))
        j--;
    *there = j > 0 && r->hash[j - 1] == hash && r->at[j - 1].doc == at.doc && r->at[j - 1].pos == at.pos;
    return j;
}

weir_status weir_random_put(weir_random *r, int64_t most, int64_t neurons, uint64_t hash, weir_place at,
                            const float *values, int64_t stride_of_values, weir_err *err)
{
    bool there;
    const int64_t j = random_find(r, hash, at, &there);
    if (there || j >= most)
        return WEIR_OK;
    if (r->n < most && r->n == r->room)
        WEIR_TRY(random_grow(r, most, neurons, err));
    const bool drop = r->n == most;
    const int32_t row = drop ? r->row[most - 1] : (int32_t)r->n;
    const size_t behind = (size_t)(r->n - drop - j);
    memmove(r->hash + j + 1, r->hash + j, behind * sizeof *r->hash);
    memmove(r->at + j + 1, r->at + j, behind * sizeof *r->at);
    memmove(r->row + j + 1, r->row + j, behind * sizeof *r->row);
    r->hash[j] = hash;
    r->at[j] = at;
    r->row[j] = row;
    r->n += !drop;
    for (int64_t i = 0; i < neurons; i++) {
        const float x = values[i * stride_of_values];
        r->value[row * neurons + i] = isfinite(x) ? x : NAN;
    }
    return WEIR_OK;
}
