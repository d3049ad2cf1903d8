#include "json_keys.h"

#include <string.h>

#include "json_scan.h"
#include "strmap.h"

struct weir_json_key_entry {
    union {
        const char *text; /* in the text */
        size_t off;       /* is_decoded: in `decoded` */
    } at;
    uint32_t n : 31, is_decoded : 1;
    uint32_t hash;
};

static const char *bytes_of(const weir_json_keys *k, const struct weir_json_key_entry *e)
{
    return e->is_decoded ? k->decoded.p + e->at.off : e->at.text;
}

weir_json_mark weir_json_keys_mark(const weir_json_keys *k)
{
    return (weir_json_mark){k->n, k->decoded.n};
}

/* Index of the first empty slot for hash; *same says whether an entry at or above `from` with these bytes was met
 * before it. */
static size_t probe(const weir_json_keys *k, uint32_t hash, size_t from, const char *p, size_t n, bool *same)
{
    size_t i = hash & (k->cap - 1);
    *same = false;
    for (; k->slot[i]; i = (i + 1) & (k->cap - 1)) {
        size_t at = (size_t)(uint32_t)k->slot[i] - 1;
        if (k->slot[i] >> 32 != hash || at < from)
            continue;
        const struct weir_json_key_entry *e = &k->entry[at];
        if (e->n == n && memcmp(bytes_of(k, e), p, n) == 0) {
            *same = true;
            break;
        }
    }
    return i;
}

static weir_status grow(weir_json_keys *k)
{
    if (k->n == k->entry_cap) {
        size_t cap = k->entry_cap ? k->entry_cap * 2 : 16;
        struct weir_json_key_entry *e = weir_realloc(k->entry, cap, sizeof *e);
        if (!e)
            return WEIR_E_NOMEM;
        k->entry = e;
        k->entry_cap = cap;
    }
    if ((k->n + 1) * 2 <= k->cap)
        return WEIR_OK;
    size_t cap = k->cap ? k->cap * 4 : 32;
    uint64_t *slot = cap > UINT32_MAX ? NULL : weir_calloc(cap, sizeof *slot);
    if (!slot)
        return WEIR_E_NOMEM;
    weir_free(k->slot);
    k->slot = slot;
    k->cap = cap;
    for (size_t at = 0; at < k->n; at++) { /* in the order of the stack, so that popping still only clears slots */
        bool same;
        uint32_t hash = k->entry[at].hash;
        k->slot[probe(k, hash, k->n, NULL, 0, &same)] = (uint64_t)hash << 32 | (at + 1);
    }
    return WEIR_OK;
}

weir_status weir_json_keys_push(weir_json_keys *k, weir_json_mark from, weir_str raw, bool escapes, weir_str *key,
                                bool *fresh)
{
    if (raw.n > INT32_MAX)
        return WEIR_E_NOMEM;
    WEIR_TRY(grow(k));
    struct weir_json_key_entry e = {.at.text = raw.p, .n = (uint32_t)raw.n & INT32_MAX};
    if (escapes) {
        size_t off = k->decoded.n;
        WEIR_TRY(weir_json_unescape(&k->decoded, raw.p, raw.n));
        e = (struct weir_json_key_entry){.at.off = off, .n = (k->decoded.n - off) & INT32_MAX, .is_decoded = true};
    }
    *key = (weir_str){bytes_of(k, &e), e.n};
    e.hash = (uint32_t)weir_hash64(key->p, key->n) ^ (uint32_t)from.n * 0x9e3779b1u;
    bool same;
    size_t i = probe(k, e.hash, from.n, key->p, key->n, &same);
    *fresh = !same;
    if (same)
        return WEIR_OK;
    k->entry[k->n++] = e;
    k->slot[i] = (uint64_t)e.hash << 32 | k->n;
    return WEIR_OK;
}

void weir_json_keys_pop(weir_json_keys *k, weir_json_mark to)
{
    while (k->n > to.n) {
        k->n--;
        size_t i = k->entry[k->n].hash & (k->cap - 1);
        while ((uint32_t)k->slot[i] != k->n + 1)
            i = (i + 1) & (k->cap - 1);
        k->slot[i] = 0;
    }
    k->decoded.n = to.decoded;
}

void weir_json_keys_free(weir_json_keys *k)
{
    weir_free(k->entry);
    weir_free(k->slot);
    weir_buf_free(&k->decoded);
    *k = (weir_json_keys){0};
}
