/* search/wanted.h: the distinct places that a search holds, around which tokens are wanted. */
#ifndef WEIR_SEARCH_WANTED_H
#define WEIR_SEARCH_WANTED_H

#include "search/impl.h"

/* Places as keys, document << 32 | position: ascending, each once. Zero it before use. */
typedef struct weir_wanted {
    uint64_t *key, *spare; /* spare: of the same room, for sorting */
    int64_t n, room;
} weir_wanted;

static inline uint64_t weir_place_key(weir_place at)
{
    return (uint64_t)at.doc << 32 | at.pos;
}

static inline weir_place weir_place_of(uint64_t key)
{
    return (weir_place){(uint32_t)(key >> 32), (uint32_t)key};
}

/* All places of lists (with those that just missed them), of bands and of random samples, of all tables. p is to be
 * freed after a failure too. */
WEIR_CHECKED weir_status weir_wanted_find(weir_wanted *p, const weir_neurons *s, weir_err *err);
void weir_wanted_free(weir_wanted *p);

#endif
