/* run/carve.h: handing out one arena's memory: the same layout runs twice, without memory to measure and with memory to
 * hand out. */
#ifndef WEIR_RUN_CARVE_H
#define WEIR_RUN_CARVE_H

#include "../base/mem.h"

enum { WEIR_CARVE_ALIGN = 64 };

typedef struct weir_carver {
    char *base; /* NULL: measuring */
    int64_t at, peak;
    bool overflow;
} weir_carver;

/* Room for count * width elements, aligned; NULL while measuring. */
static inline void *weir_carve(weir_carver *c, int64_t count, int64_t width, size_t size)
{
    int64_t n, bytes, end;
    if (!weir_mul64(count, width, &n) || !weir_mul64(n, (int64_t)size, &bytes) || !weir_add64(c->at, bytes, &end) ||
        !weir_add64(end, WEIR_CARVE_ALIGN, &end)) {
        c->overflow = true;
        return NULL;
    }
    void *p = c->base ? c->base + c->at : NULL;
    c->at = (c->at + bytes + WEIR_CARVE_ALIGN - 1) / WEIR_CARVE_ALIGN * WEIR_CARVE_ALIGN;
    if (c->at > c->peak)
        c->peak = c->at;
    return p;
}

static inline float *weir_carve_floats(weir_carver *c, int64_t rows, int64_t width)
{
    return weir_carve(c, rows, width, sizeof(float));
}

#endif
