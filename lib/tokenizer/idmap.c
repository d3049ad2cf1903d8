/* idmap.c: hash table of ids. */
#include "idmap.h"

#include <string.h>

#include "base/mem.h"
#include "base/strmap.h"

/* id_1 is the id + 1, 0 in an empty slot; hash tells most different pieces apart and lets the table grow. */
struct weir_tok_idmap_slot {
    uint32_t hash, id_1;
};

weir_status weir_tok_idmap_reserve(weir_tok_idmap *m, size_t n)
{
    if (n > UINT32_MAX / 4)
        return WEIR_E_NOMEM;
    size_t cap = m->cap ? m->cap : 16;
    while (n > cap / 4 * 3)
        cap *= 2;
    if (cap == m->cap)
        return WEIR_OK;
    struct weir_tok_idmap_slot *slot = weir_calloc(cap, sizeof *slot);
    if (!slot)
        return WEIR_E_NOMEM;
    for (size_t k = 0; k < m->cap; k++) {
        if (!m->slot[k].id_1)
            continue;
        size_t i = m->slot[k].hash & (cap - 1);
        while (slot[i].id_1)
            i = (i + 1) & (cap - 1);
        slot[i] = m->slot[k];
    }
    weir_free(m->slot);
    m->slot = slot;
    m->cap = cap;
    return WEIR_OK;
}

/* The slot of the string, or the empty one where it belongs. */
static size_t place(const weir_tok_idmap *m, const weir_str *piece, const char *p, size_t n, uint32_t hash)
{
    size_t i = hash & (m->cap - 1);
    for (; m->slot[i].id_1; i = (i + 1) & (m->cap - 1)) {
        if (m->slot[i].hash != hash)
            continue;
        const weir_str *s = &piece[m->slot[i].id_1 - 1];
        if (s->n == n && memcmp(s->p, p, n) == 0)
            break;
    }
    return i;
}

weir_status weir_tok_idmap_add(weir_tok_idmap *m, const weir_str *piece, int32_t id, int32_t *old)
{
    WEIR_TRY(weir_tok_idmap_reserve(m, m->n + 1));
    uint32_t hash = (uint32_t)weir_hash64(piece[id].p, piece[id].n);
    size_t i = place(m, piece, piece[id].p, piece[id].n, hash);
    *old = (int32_t)m->slot[i].id_1 - 1;
    if (*old >= 0)
        return WEIR_OK;
    m->slot[i].hash = hash;
    m->slot[i].id_1 = (uint32_t)id + 1;
    m->n++;
    return WEIR_OK;
}

int32_t weir_tok_idmap_find(const weir_tok_idmap *m, const weir_str *piece, const char *p, size_t n)
{
    if (!m->n)
        return -1;
    size_t i = place(m, piece, n ? p : "", n, (uint32_t)weir_hash64(n ? p : "", n));
    return (int32_t)m->slot[i].id_1 - 1;
}

void weir_tok_idmap_free(weir_tok_idmap *m)
{
    weir_free(m->slot);
    *m = (weir_tok_idmap){0};
}
