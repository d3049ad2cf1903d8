/* base/json_keys.h: the keys of the objects that are open at one moment, to find duplicates. */
#ifndef WEIR_JSON_KEYS_H
#define WEIR_JSON_KEYS_H

#include "mem.h"

/* Keys form a stack: those of an inner object lie above those of the outer one and go when it closes. A hash table over
 * the stack needs no tombstones, since entries leave in the reverse order of their coming. Zero it before use. */
typedef struct weir_json_keys {
    struct weir_json_key_entry *entry; /* the stack */
    uint64_t *slot;                    /* [cap] high half: hash; low half: index + 1 in the stack, 0 when empty */
    size_t n, entry_cap, cap;
    weir_buf decoded; /* bytes of the keys that had escapes */
} weir_json_keys;

/* A place in the stack, to go back to. */
typedef struct weir_json_mark {
    size_t n, decoded;
} weir_json_mark;

weir_json_mark weir_json_keys_mark(const weir_json_keys *k);
/* Adds the key raw[n] (escapes: still to be resolved) to the object whose keys begin at `from`. *key is the decoded
 * key, borrowed until the next push. *fresh is false for a key that the object has already. */
WEIR_CHECKED weir_status weir_json_keys_push(weir_json_keys *k, weir_json_mark from, weir_str raw, bool escapes,
                                             weir_str *key, bool *fresh);
void weir_json_keys_pop(weir_json_keys *k, weir_json_mark to);
void weir_json_keys_free(weir_json_keys *k);

#endif
