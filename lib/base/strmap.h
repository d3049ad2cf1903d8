/* base/strmap.h: open-addressing map from byte strings to int64 values. Keys are borrowed. Zero it before use. */
#ifndef WEIR_STRMAP_H
#define WEIR_STRMAP_H

#include <weir/base.h>

typedef struct weir_strmap {
    struct weir_strmap_slot *slot;
    size_t cap, n;
} weir_strmap;

WEIR_CHECKED weir_status weir_strmap_reserve(weir_strmap *m, size_t n);
/* *added = false: the key was there (its value is unchanged and stored in *old if non-NULL). */
WEIR_CHECKED weir_status weir_strmap_add(weir_strmap *m, weir_str key, int64_t value, bool *added, int64_t *old);
bool weir_strmap_get(const weir_strmap *m, const char *p, size_t n, int64_t *value);
void weir_strmap_free(weir_strmap *m);

uint64_t weir_hash64(const void *p, size_t n);

#endif
