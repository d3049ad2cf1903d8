/* search/scan_ref.c: see scan.h. Plain C, and which table is used. */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "search/scan.h"

static int64_t find_key(const uint64_t *key, int64_t n, uint64_t wanted)
{
    for (int64_t i = 0; i < n; i++)
        if (key[i] == wanted)
            return i;
    return -1;
}

#include "search/list_rank.h"

static int64_t count_better(const float *value, int64_t n, weir_neurons_list which, float f)
{
    int64_t r = 0;
    while (r < n && figure(which, value[r]) >= f)
        r++;
    return r;
}

static inline void make_room(float *value, uint16_t *slot, int64_t r, int64_t hole)
{
    memmove(value + r + 1, value + r, (size_t)(hole - r) * sizeof *value);
    memmove(slot + r + 1, slot + r, (size_t)(hole - r) * sizeof *slot);
}

#include "search/list_put.h"

static void put(weir_lists *l, weir_neurons_list which, int64_t i, const weir_entry *e)
{
    put_entry(l, which, i, e);
}

static void count_value(const weir_scan_counts *c, int64_t j, float x)
{
    if (!isfinite(x)) {
        c->nonfinite[j]++;
        return;
    }
    c->hist[j * WEIR_NEURONS_BINS + weir_neurons_bin(x)]++;
    c->min[j] = x < c->min[j] ? x : c->min[j];
    c->max[j] = x > c->max[j] ? x : c->max[j];
    for (int t = 0; t < c->n_thresholds; t++)
        c->above[j * c->n_thresholds + t] += x > c->threshold[t];
}

static void count(const weir_scan_counts *c, const float *x, int64_t m)
{
    for (int64_t r = 0; r < m; r++)
        for (int64_t j = 0; j < c->nb; j++)
            count_value(c, j, x[r * WEIR_NEURONS_BLOCK + j]);
}

static void above(uint64_t *mask, const float *x, int64_t m, const float *gate)
{
    for (int64_t r = 0; r < m; r++, x += WEIR_NEURONS_BLOCK) {
        mask[r] = 0;
        for (int j = 0; j < WEIR_NEURONS_BLOCK; j++)
            mask[r] |= (uint64_t)(x[j] > gate[j] && isfinite(x[j])) << j;
    }
}

static void below(uint64_t *mask, const float *x, int64_t m, const float *gate)
{
    for (int64_t r = 0; r < m; r++, x += WEIR_NEURONS_BLOCK) {
        mask[r] = 0;
        for (int j = 0; j < WEIR_NEURONS_BLOCK; j++)
            mask[r] |= (uint64_t)(x[j] < gate[j] && isfinite(x[j])) << j;
    }
}

static void larger(uint64_t *mask, const float *x, int64_t m, const float *gate)
{
    for (int64_t r = 0; r < m; r++, x += WEIR_NEURONS_BLOCK) {
        mask[r] = 0;
        for (int j = 0; j < WEIR_NEURONS_BLOCK; j++)
            mask[r] |= (uint64_t)(fabsf(x[j]) > gate[j] && isfinite(x[j])) << j;
    }
}

const weir_scan_kernels weir_scan_ref = {
    .name = "ref",
    .moments = weir_moments_ref,
    .count = count,
    .beyond = {above, below, larger},
    .put = put,
};

weir_status weir_scan_pick(const weir_scan_kernels **out, const char *name, weir_err *err)
{
    const weir_kern *k;
    WEIR_TRY(weir_kern_pick(&k, name, err));
    *out = &weir_scan_ref;
#if defined(__x86_64__)
    static const weir_scan_kernels *const fast[] = {&weir_scan_avx2, &weir_scan_avx512};
    for (int i = 0; i < 2; i++)
        if (!strcmp(fast[i]->name, weir_kern_name(k)))
            *out = fast[i];
#endif
    return WEIR_OK;
}
