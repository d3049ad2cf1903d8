/* tests/kernels/check.h: what the kernel tests share: numbers with every kind of trouble in them, guarded buffers,
 * comparison to the bit, and the account of which tables ran. Each program that includes this ends with CHECK_TESTS. */
#ifndef WEIR_TESTS_KERNELS_CHECK_H
#define WEIR_TESTS_KERNELS_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "kernels/kernels.h"

#define UNUSED __attribute__((unused))

/* --- random numbers (xorshift, seeded: every run is the same) */
static uint64_t rng_state = 88172645463325252ull;

UNUSED static uint32_t rng(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return (uint32_t)(rng_state >> 32);
}
/* lo <= result <= hi */
UNUSED static int64_t pick(int64_t lo, int64_t hi)
{
    return lo + (int64_t)(rng() % (uint64_t)(hi - lo + 1));
}
UNUSED static float from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
UNUSED static uint32_t to_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
/* About normal, mean 0, deviation 1. */
UNUSED static float normal(void)
{
    float s = 0;
    for (int i = 0; i < 4; i++)
        s += (float)(rng() >> 8) * 0x1p-24f;
    return (s - 2.0f) * 1.7f;
}
/* One in `rare` is a NaN with some payload, an infinity, a subnormal, a zero of either sign, or huge. */
UNUSED static float trouble(int rare)
{
    if (pick(1, rare) != 1)
        return normal();
    switch (pick(0, 6)) {
    case 0:
        return from_bits(0x7f800001u | rng() % 0x7fffffu);
    case 1:
        return from_bits(0xff800001u | rng() % 0x7fffffu);
    case 2:
        return INFINITY;
    case 3:
        return -INFINITY;
    case 4:
        return from_bits((rng() & 0x80000000u) | rng() % 0x7fffffu);
    case 5:
        return from_bits(rng() & 0x80000000u);
    default:
        return normal() * 0x1p125f;
    }
}
UNUSED static void fill(float *p, int64_t n, int rare)
{
    for (int64_t i = 0; i < n; i++)
        p[i] = rare ? trouble(rare) : normal();
}

/* --- buffers with guards on both sides, at an address that is 4 (1 + shift % 16) bytes past a multiple of 64 */
enum { GUARD = 64, GUARD_BITS = 0x7fabcdef };
typedef struct guarded {
    float *block, *p;
    int64_t n;
    int shift;
} guarded;

UNUSED static guarded guarded_new(int64_t n, int shift)
{
    guarded g = {.n = n, .shift = 1 + shift % 16};
    const int64_t all = n + 2 * GUARD + 32;
    g.block = aligned_alloc(64, (size_t)(all * 4 + 63) / 64 * 64);
    assert_non_null(g.block);
    for (int64_t i = 0; i < all; i++)
        g.block[i] = from_bits(GUARD_BITS);
    g.p = g.block + GUARD + g.shift;
    return g;
}
UNUSED static bool guarded_whole(const guarded *g)
{
    for (int64_t i = 0; i < GUARD + g->shift; i++)
        if (to_bits(g->block[i]) != GUARD_BITS)
            return false;
    for (int64_t i = 0; i < GUARD; i++)
        if (to_bits(g->p[g->n + i]) != GUARD_BITS)
            return false;
    return true;
}
UNUSED static void guarded_free(guarded *g)
{
    assert_true(guarded_whole(g));
    free(g->block);
}

/* --- comparison: the index of the first difference in bits, or -1 */
UNUSED static int64_t first_difference(const float *a, const float *b, int64_t n)
{
    if (!memcmp(a, b, (size_t)n * sizeof *a))
        return -1;
    for (int64_t i = 0; i < n; i++)
        if (to_bits(a[i]) != to_bits(b[i]))
            return i;
    return -1;
}
#define SAME(a, b, n, ...)                                                                                             \
    do {                                                                                                               \
        const int64_t at_ = first_difference(a, b, n);                                                                 \
        if (at_ >= 0) {                                                                                                \
            char what_[200];                                                                                           \
            snprintf(what_, sizeof what_, __VA_ARGS__);                                                                \
            fail_msg("%s: element %lld is %08x (%g), not %08x (%g)", what_, (long long)at_, to_bits((a)[at_]),         \
                     (double)(a)[at_], to_bits((b)[at_]), (double)(b)[at_]);                                           \
        }                                                                                                              \
    } while (0)

/* Every NaN in p is the one that is stored. */
UNUSED static bool only_stored_nan(const float *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (isnan(p[i]) && to_bits(p[i]) != 0x7fc00000u)
            return false;
    return true;
}

/* --- tables */
enum { MAX_TABLES = 8 };
static const weir_kern *table[MAX_TABLES];
static int tables, ran[MAX_TABLES];
static const int thread_counts[3] = {1, 2, 4};

UNUSED static const weir_kern *ref(void)
{
    return table[0];
}
/* for (const weir_kern *k = NULL; next_table(&k);) visits every table of this machine, ref first, and notes that it
 * ran. */
UNUSED static bool next_table(const weir_kern **k)
{
    int i = 0;
    while (*k && table[i] != *k)
        i++;
    i += *k != NULL;
    if (i == tables)
        return false;
    ran[i]++;
    *k = table[i];
    return true;
}

static int find_tables(void **state)
{
    (void)state;
    tables = weir_kern_available(table, MAX_TABLES);
    printf("kernel tables of this machine:");
    for (int i = 0; i < tables; i++)
        printf(" %s", weir_kern_name(table[i]));
    printf("\n");
    return tables > 0 && !strcmp(weir_kern_name(table[0]), "ref") ? 0 : -1;
}
static void every_table_ran(void **state)
{
    (void)state;
    for (int i = 0; i < tables; i++)
        if (!ran[i])
            fail_msg("table %s of this machine went untested", weir_kern_name(table[i]));
}

/* --- the helpers can fail */
static void helpers_notice(void **state)
{
    (void)state;
    float a[3] = {1, 0.0f, NAN}, b[3] = {1, 0.0f, NAN};
    assert_int_equal(first_difference(a, b, 3), -1);
    b[1] = -0.0f;
    assert_int_equal(first_difference(a, b, 3), 1);
    b[1] = 0.0f;
    b[2] = from_bits(0xffc00000u);
    assert_int_equal(first_difference(a, b, 3), 2);
    assert_true(only_stored_nan(a, 3));
    assert_false(only_stored_nan(b, 3));
    guarded g = guarded_new(5, 3);
    assert_true(guarded_whole(&g));
    g.p[5] = 0;
    assert_false(guarded_whole(&g));
    g.p[5] = from_bits(GUARD_BITS);
    g.p[-1] = 0;
    assert_false(guarded_whole(&g));
    free(g.block);
}

#define CHECK_TESTS cmocka_unit_test(helpers_notice), cmocka_unit_test(every_table_ran)

#endif
