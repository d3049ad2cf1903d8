/* search/scan_lanes.h: the fast kernels of scan.h. Included by the file of each instruction set, which says first what
 * a register of LANES floats is (vf), with vi as many 32-bit integers and vm a yes or no for each, and how to search a
 * row of numbers (list_put.h).
 *
 * Counters of a histogram are found LANES at a time and raised one by one: those that follow each other belong to
 * different neurons, so that none waits for the one before it. */
#ifndef WEIR_SEARCH_SCAN_LANES_H
#define WEIR_SEARCH_SCAN_LANES_H

#include <math.h>

#include "search/list_put.h"
#include "search/scan.h"

enum {
    BLOCK = WEIR_NEURONS_BLOCK,
    STEP = 16,                /* rows whose counters are found before any is raised */
    LOWEST = (127 - 20) << 3, /* as in weir_neurons_bin */
    SIDE = WEIR_NEURONS_BIN_SIDE + 1
};

/* --- counts */

/* LANES neurons, as they are looked at together. */
typedef struct lanes {
    int first, n; /* n: those that there are */
    vf min, max;
    vi above[WEIR_NEURONS_MAX_THRESHOLDS];
} lanes;

static inline void raise_all(uint32_t *hist, const uint32_t *at)
{
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++)
        hist[at[j]]++;
}

static void raise_some(uint32_t *hist, const uint32_t *at, uint32_t which)
{
    for (; which; which &= which - 1)
        hist[at[__builtin_ctz(which)]]++;
}

/* Rows of one STEP: where each counter lies, and which values are finite. */
static inline void find_counters(lanes *l, const float *x, int m, uint32_t at[STEP][LANES], uint32_t finite[STEP])
{
    const vi size = vi_set(0x7fffffff), infinite = vi_set(0x7f800000), lowest = vi_set(1 - LOWEST), side = vi_set(SIDE),
             centre = vi_centres(WEIR_NEURONS_BINS, SIDE);
    for (int r = 0; r < m; r++, x += BLOCK) {
        const vi bits = vi_load(x), magnitude = vi_and(bits, size), sign = vi_sign(bits);
        const vi step = vi_clamp(vi_add(vi_upper(magnitude), lowest), side);
        vi_store(at[r], vi_add(centre, vi_sub(vi_xor(step, sign), sign)));
        const vm real = vi_less(magnitude, infinite);
        finite[r] = vm_bits(real);
        l->min = vf_min_where(real, l->min, vf_of(bits));
        l->max = vf_max_where(real, l->max, vf_of(bits));
    }
}

static inline void count_above(lanes *l, const weir_scan_counts *c, const float *x, int m)
{
    const vf infinite = vf_set(INFINITY);
    for (int t = 0; t < c->n_thresholds; t++) {
        const vf threshold = vf_set(c->threshold[t]);
        vi n = l->above[t];
        for (int r = 0; r < m; r++) {
            const vf v = vf_of(vi_load(x + r * BLOCK));
            n = vi_count(n, vm_and(vf_above(v, threshold), vf_above(infinite, v)));
        }
        l->above[t] = n;
    }
}

/* Rows of one STEP, but for those that are not finite. */
static inline void count_step(lanes *l, const weir_scan_counts *c, const float *x, int m)
{
    _Alignas(64) uint32_t at[STEP][LANES], finite[STEP];
    uint32_t *hist = c->hist + l->first * WEIR_NEURONS_BINS;
    const uint32_t there = (uint32_t)((1ull << l->n) - 1);
    find_counters(l, x, m, at, finite);
    count_above(l, c, x, m);
    for (int r = 0; r < m; r++) {
        const uint32_t real = finite[r] & there;
        if (real == (uint32_t)((1ull << LANES) - 1)) {
            raise_all(hist, at[r]);
            continue;
        }
        raise_some(hist, at[r], real);
        for (uint32_t not = there & ~real; not ; not &= not -1)
            c->nonfinite[l->first + __builtin_ctz(not )]++;
    }
}

static void lanes_begin(lanes *l, const weir_scan_counts *c, int first)
{
    l->first = first;
    l->n = c->nb - first < LANES ? (int)c->nb - first : LANES;
    l->min = vf_set(INFINITY);
    l->max = vf_set(-INFINITY);
    for (int t = 0; t < c->n_thresholds; t++)
        l->above[t] = vi_set(0);
}

static void lanes_end(const lanes *l, const weir_scan_counts *c)
{
    _Alignas(64) float min[LANES], max[LANES];
    _Alignas(64) uint32_t above[LANES];
    vf_store(min, l->min);
    vf_store(max, l->max);
    for (int j = 0; j < l->n; j++) {
        c->min[l->first + j] = fminf(c->min[l->first + j], min[j]);
        c->max[l->first + j] = fmaxf(c->max[l->first + j], max[j]);
    }
    for (int t = 0; t < c->n_thresholds; t++) {
        vi_store(above, l->above[t]);
        for (int j = 0; j < l->n; j++)
            c->above[(l->first + j) * c->n_thresholds + t] += above[j];
    }
}

static void count_values(const weir_scan_counts *c, const float *x, int64_t m)
{
    for (int first = 0; first < c->nb; first += LANES) {
        lanes l;
        lanes_begin(&l, c, first);
        for (int64_t r = 0; r < m; r += STEP)
            count_step(&l, c, x + r * BLOCK + first, m - r < STEP ? (int)(m - r) : STEP);
        lanes_end(&l, c);
    }
}

/* --- beyond */

static inline void find_beyond(uint64_t *mask, const float *x, int64_t m, const float *gate, weir_neurons_list which)
{
    vf g[BLOCK / LANES];
    const vf infinite = vf_set(INFINITY), minus_infinite = vf_set(-INFINITY);
    for (int i = 0; i < BLOCK / LANES; i++)
        g[i] = vf_of(vi_load(gate + i * LANES));
    for (int64_t r = 0; r < m; r++) {
        uint64_t bits = 0;
#pragma GCC unroll 8
        for (int i = 0; i < BLOCK / LANES; i++) {
            const vi raw = vi_load(x + r * BLOCK + i * LANES);
            const vf v = vf_of(which == WEIR_NEURONS_ABS ? vi_and(raw, vi_set(0x7fffffff)) : raw);
            const vm yes = which == WEIR_NEURONS_BOTTOM ? vm_and(vf_above(g[i], v), vf_above(v, minus_infinite))
                                                        : vm_and(vf_above(v, g[i]), vf_above(infinite, v));
            bits |= (uint64_t)vm_bits(yes) << (i * LANES);
        }
        mask[r] = bits;
    }
}

static void above_gate(uint64_t *mask, const float *x, int64_t m, const float *gate)
{
    find_beyond(mask, x, m, gate, WEIR_NEURONS_TOP);
}

static void below_gate(uint64_t *mask, const float *x, int64_t m, const float *gate)
{
    find_beyond(mask, x, m, gate, WEIR_NEURONS_BOTTOM);
}

static void larger_than_gate(uint64_t *mask, const float *x, int64_t m, const float *gate)
{
    find_beyond(mask, x, m, gate, WEIR_NEURONS_ABS);
}

/* --- lists */

static void put_fast(weir_lists *l, weir_neurons_list which, int64_t i, const weir_entry *e)
{
    if (which == WEIR_NEURONS_TOP) /* three copies of the code, each for a list that the compiler knows */
        put_entry(l, WEIR_NEURONS_TOP, i, e);
    else if (which == WEIR_NEURONS_BOTTOM)
        put_entry(l, WEIR_NEURONS_BOTTOM, i, e);
    else
        put_entry(l, WEIR_NEURONS_ABS, i, e);
}

#endif
