/* search/wanted.c: see wanted.h.
 *
 * Many lists hold the same place: 4 million entries of lists may be 25,000 tokens. So keys are sorted and made distinct
 * as often as their room is full, and the room grows only when that does not help.
 */
#include "search/wanted.h"

enum { FIRST_ROOM = 1 << 15, DIGITS = 8, RADIX = 256 };

/* Sorts by bytes, the lowest first; bytes that all keys share are passed over. */
static void sort_keys(weir_wanted *p)
{
    int64_t count[DIGITS][RADIX] = {{0}};
    for (int64_t i = 0; i < p->n; i++)
        for (int d = 0; d < DIGITS; d++)
            count[d][p->key[i] >> (8 * d) & 0xff]++;
    for (int d = 0; d < DIGITS; d++) {
        if (p->n == 0 || count[d][p->key[0] >> (8 * d) & 0xff] == p->n)
            continue;
        int64_t at[RADIX] = {0};
        for (int v = 1; v < RADIX; v++)
            at[v] = at[v - 1] + count[d][v - 1];
        for (int64_t i = 0; i < p->n; i++)
            p->spare[at[p->key[i] >> (8 * d) & 0xff]++] = p->key[i];
        uint64_t *sorted = p->spare;
        p->spare = p->key;
        p->key = sorted;
    }
}

static void make_distinct(weir_wanted *p)
{
    int64_t n = 0;
    sort_keys(p);
    for (int64_t i = 0; i < p->n; i++)
        if (n == 0 || p->key[i] != p->key[n - 1])
            p->key[n++] = p->key[i];
    p->n = n;
}

/* Both arrays of keys get room; what p->spare holds is of no account. */
static weir_status places_grow(weir_wanted *p, int64_t room, weir_err *err)
{
    uint64_t *key = weir_realloc(p->key, (size_t)room, sizeof *key);
    if (key)
        p->key = key;
    uint64_t *spare = weir_realloc(p->spare, (size_t)room, sizeof *spare);
    if (spare)
        p->spare = spare;
    if (!key || !spare)
        return weir_nomem(err, "the places of a search");
    p->room = room;
    return WEIR_OK;
}

static weir_status make_room(weir_wanted *p, weir_err *err)
{
    make_distinct(p);
    if (p->n <= p->room / 2)
        return WEIR_OK;
    return places_grow(p, p->room * 2, err);
}

static inline weir_status places_add(weir_wanted *p, weir_place at, weir_err *err)
{
    if (p->n == p->room)
        WEIR_TRY(make_room(p, err));
    p->key[p->n++] = weir_place_key(at);
    return WEIR_OK;
}

static weir_status add_list(weir_wanted *p, const weir_lists *l, weir_err *err)
{
    for (int64_t i = 0; l->room > 0 && i < l->n; i++)
        for (int64_t j = 0; j < l->size[i]; j++)
            WEIR_TRY(places_add(p, l->at[i * l->room + j], err));
    return WEIR_OK;
}

static weir_status add_samples(weir_wanted *p, const weir_ntable *t, weir_err *err)
{
    weir_sample *buffer = NULL;
    int64_t room = 0;
    weir_status st = WEIR_OK;
    for (int64_t i = 0; t->samples.neuron && i < t->n && st == WEIR_OK; i++) {
        int64_t n = weir_samples_get(&t->samples, i, buffer, room);
        if (n > room) {
            weir_free(buffer);
            room = n * 2;
            buffer = weir_calloc((size_t)room, sizeof *buffer);
            if (!buffer)
                return weir_nomem(err, "samples");
            n = weir_samples_get(&t->samples, i, buffer, room);
        }
        for (int64_t j = 0; j < n && st == WEIR_OK; j++)
            st = places_add(p, buffer[j].at, err);
    }
    weir_free(buffer);
    return st;
}

weir_status weir_wanted_find(weir_wanted *p, const weir_neurons *s, weir_err *err)
{
    WEIR_TRY(places_grow(p, FIRST_ROOM, err));
    for (int t = 0; t < s->n_tables; t++) {
        const weir_ntable *table = &s->table[t];
        for (int l = 0; l < WEIR_NEURONS_LISTS; l++)
            WEIR_TRY(add_list(p, &table->list[l], err));
        WEIR_TRY(add_samples(p, table, err));
        for (int64_t i = 0; i < table->random.n; i++)
            WEIR_TRY(places_add(p, table->random.at[i], err));
    }
    make_distinct(p);
    return WEIR_OK;
}

void weir_wanted_free(weir_wanted *p)
{
    weir_free(p->key);
    weir_free(p->spare);
}
