#include "strmap.h"

#include <string.h>

#include "mem.h"

/* Linear probing, at most two thirds full. An empty slot has no key. */
struct weir_strmap_slot {
    const char *p;
    size_t n;
    uint64_t hash;
    int64_t value;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 r = (unsigned __int128)a * b;
    return (uint64_t)r ^ (uint64_t)(r >> 64);
}

static uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint64_t load32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* The last n <= 8 bytes of a key as one number, by loads that overlap: a memcpy of n bytes would be a call. */
static uint64_t load_tail(const uint8_t *p, size_t n)
{
    if (n >= 4)
        return load32(p) | load32(p + n - 4) << 32;
    return n ? p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16 : 0;
}

uint64_t weir_hash64(const void *p, size_t n)
{
    static const uint64_t k0 = 0x9e3779b97f4a7c15u, k1 = 0xbf58476d1ce4e5b9u, k2 = 0x94d049bb133111ebu;
    const uint8_t *s = p;
    uint64_t h = (n + 1) * k0;
    size_t left = n;
    for (; left > 8; s += 8, left -= 8)
        h = mix(h ^ load64(s), k1);
    return mix(h ^ load_tail(s, left), k2) ^ h;
}

/* The key's slot, or the empty one where it belongs. */
static struct weir_strmap_slot *find(const weir_strmap *m, const char *p, size_t n, uint64_t hash)
{
    size_t i = (size_t)hash & (m->cap - 1);
    for (;; i = (i + 1) & (m->cap - 1)) {
        struct weir_strmap_slot *s = &m->slot[i];
        if (!s->p || (s->hash == hash && s->n == n && memcmp(s->p, p, n) == 0))
            return s;
    }
}

weir_status weir_strmap_reserve(weir_strmap *m, size_t n)
{
    if (n > SIZE_MAX / 256)
        return WEIR_E_NOMEM;
    size_t cap = m->cap ? m->cap : 16;
    while (n > cap / 3 * 2)
        cap *= 2;
    if (cap == m->cap)
        return WEIR_OK;
    weir_strmap bigger = {weir_calloc(cap, sizeof *bigger.slot), cap, m->n};
    if (!bigger.slot)
        return WEIR_E_NOMEM;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slot[i].p)
            *find(&bigger, m->slot[i].p, m->slot[i].n, m->slot[i].hash) = m->slot[i];
    weir_free(m->slot);
    *m = bigger;
    return WEIR_OK;
}

weir_status weir_strmap_add(weir_strmap *m, weir_str key, int64_t value, bool *added, int64_t *old)
{
    WEIR_TRY(weir_strmap_reserve(m, m->n + 1));
    const char *p = key.p ? key.p : "";
    uint64_t hash = weir_hash64(p, key.n);
    struct weir_strmap_slot *s = find(m, p, key.n, hash);
    bool is_new = !s->p;
    if (is_new) {
        *s = (struct weir_strmap_slot){p, key.n, hash, value};
        m->n++;
    } else if (old) {
        *old = s->value;
    }
    if (added)
        *added = is_new;
    return WEIR_OK;
}

bool weir_strmap_get(const weir_strmap *m, const char *p, size_t n, int64_t *value)
{
    if (!m->n)
        return false;
    p = p ? p : "";
    const struct weir_strmap_slot *s = find(m, p, n, weir_hash64(p, n));
    if (s->p && value)
        *value = s->value;
    return s->p != NULL;
}

void weir_strmap_free(weir_strmap *m)
{
    weir_free(m->slot);
    *m = (weir_strmap){0};
}
