/* The pieces of the deflate encoder: codes against the rules of the format, each table's functions against their
 * definitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "kernels/kernels.h"
#include "record/deflate.h"

enum { TABLES = 3 };

static uint32_t next(uint32_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    return *s ^= *s << 5;
}

/* The tables that run here, the reference first. */
static int tables(const weir_deflate_kern **out)
{
    const weir_kern *all[TABLES];
    const int n = weir_kern_available(all, TABLES);
    for (int i = 0; i < n; i++) {
        setenv("WEIR_KERNEL", weir_kern_name(all[i]), 1);
        out[i] = weir_deflate_pick();
        assert_string_equal(out[i]->name, weir_kern_name(all[i]));
    }
    unsetenv("WEIR_KERNEL");
    return n;
}

/* --- codes */

/* Complete, within the limit, no symbol without a count, and none longer than a rarer one. */
static bool good_code(const weir_code *code, const uint32_t *freq, int n, int limit)
{
    uint32_t kraft = 0;
    for (int i = 0; i < n; i++) {
        const unsigned len = code_len(code[i]);
        if ((len > 0) != (freq[i] > 0) || len > (unsigned)limit)
            return false;
        kraft += len ? 1u << (limit - (int)len) : 0;
        for (int j = 0; j < n; j++)
            if (freq[j] && freq[j] < freq[i] && code_len(code[j]) < len)
                return false;
    }
    return kraft == 1u << limit;
}

static uint64_t cost(const weir_code *code, const uint32_t *freq, int n)
{
    uint64_t bits = 0;
    for (int i = 0; i < n; i++)
        bits += (uint64_t)freq[i] * code_len(code[i]);
    return bits;
}

static void codes_obey_the_rules(void **state)
{
    (void)state;
    uint32_t seed = 1, freq[WEIR_SYMS];
    weir_code code[WEIR_SYMS];
    for (int round = 0; round < 2000; round++) {
        const int n = 2 + (int)(next(&seed) % (WEIR_SYMS - 1)), steep = (int)(next(&seed) % 32);
        for (int i = 0; i < n; i++)
            freq[i] = next(&seed) % 3 ? next(&seed) >> next(&seed) % (unsigned)(steep + 1) >> 1 : 0;
        freq[0] = freq[n - 1] = 1;
        weir_huff_build(code, freq, n, WEIR_CODE_BITS);
        assert_true(good_code(code, freq, n, WEIR_CODE_BITS));
    }
    freq[0] = 0; /* the check can fail */
    assert_false(good_code(code, freq, 2, WEIR_CODE_BITS));
}

static void fibonacci_counts_stay_within_the_limit(void **state)
{
    (void)state;
    uint32_t freq[40];
    weir_code code[40];
    for (int n = 2; n <= 40; n++) {
        for (int i = 0; i < n; i++)
            freq[i] = i < 2 ? 1 : freq[i - 1] + freq[i - 2];
        for (int limit = 7; limit <= WEIR_CODE_BITS; limit++) {
            weir_huff_build(code, freq, n, limit);
            assert_true(good_code(code, freq, n, limit));
        }
        /* Unlimited, symbol i > 0 of n has n - i bits. */
        uint64_t best = (uint64_t)freq[0] * (uint64_t)(n - 1);
        for (int i = 1; i < n; i++)
            best += (uint64_t)freq[i] * (uint64_t)(n - i);
        if (n <= WEIR_CODE_BITS + 1)
            assert_int_equal(cost(code, freq, n), best);
        assert_true(cost(code, freq, n) * 100 <= best * 104); /* the limit costs little even here */
    }
}

/* RFC 1951 section 3.2.2's example: lengths 3, 3, 3, 3, 3, 2, 4, 4 have the codes 010 011 100 101 110 00 1110 1111. */
static void codes_are_canonical(void **state)
{
    (void)state;
    static const uint32_t freq[8] = {10, 10, 10, 10, 10, 20, 4, 5};
    static const uint16_t want[8] = {2, 6, 1, 5, 3, 0, 7, 15}; /* reversed */
    weir_code code[8];
    weir_huff_build(code, freq, 8, WEIR_CODE_BITS);
    for (int i = 0; i < 8; i++)
        assert_int_equal(code_bits(code[i]), want[i]);
    weir_code fixed[WEIR_SYMS], distance[WEIR_DISTANCES];
    weir_huff_fixed(fixed, distance);
    assert_int_equal(code_len(fixed[0]), 8);
    assert_int_equal(code_bits(fixed[0]), 0x0c);   /* 00110000 */
    assert_int_equal(code_bits(fixed[144]), 0x13); /* 110010000 */
    assert_int_equal(code_bits(fixed[256]), 0);
    assert_int_equal(code_bits(fixed[280]), 0x03); /* 11000000 */
    assert_int_equal(distance[1], 5 << 12 | 0x10); /* 00001 */
}

/* The tables of RFC 1951 section 3.2.5. */
static void lengths_and_distances_have_their_symbols(void **state)
{
    (void)state;
    static const uint16_t base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                      31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint16_t far[30] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                     33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                     1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    for (unsigned len = WEIR_MATCH_MIN; len <= WEIR_MATCH_MAX; len++) {
        unsigned s = 28;
        while (base[s] > len)
            s--;
        const weir_part part = length_part(len);
        assert_int_equal(part.sym, 257 + s);
        assert_int_equal(base[s] + part.extra, len);
        assert_int_equal(part.bits, s < 8 || s == 28 ? 0 : s / 4 - 1);
    }
    for (unsigned distance = 1; distance <= 32768; distance++) {
        unsigned s = 29;
        while (far[s] > distance)
            s--;
        const weir_part part = distance_part(distance);
        assert_int_equal(part.sym, s);
        assert_int_equal(far[s] + part.extra, distance);
        assert_int_equal(part.bits, s < 4 ? 0 : s / 2 - 1);
    }
    for (size_t len = WEIR_MATCH_MIN; len < 2000; len++)
        for (size_t left = len; left > 0; left -= next_match(left))
            assert_in_range(next_match(left), WEIR_MATCH_MIN, left < WEIR_MATCH_MAX ? left : WEIR_MATCH_MAX);
}

/* --- tables */

/* n bytes at the very end of what was allocated, for the sanitizer. */
static uint8_t *bytes(size_t n, unsigned values, uint32_t seed)
{
    uint8_t *p = malloc(n + !n);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(next(&seed) % values);
    return p;
}

static void checksums_are_zlibs(void **state)
{
    (void)state;
    const weir_deflate_kern *t[TABLES];
    const int n = tables(t);
    for (int k = 0; k < n; k++) {
        for (size_t len = 0; len < 700; len++) {
            uint8_t *p = bytes(len, 256, (uint32_t)len + 1);
            assert_int_equal(t[k]->adler(p, len), adler32(1, p, (uInt)len));
            free(p);
        }
        enum { LONG = 3000017 };
        uint8_t *p = malloc(LONG);
        memset(p, 255, LONG); /* the largest sums */
        assert_int_equal(t[k]->adler(p, LONG), adler32(1, p, LONG));
        p[LONG / 2] ^= 1;
        assert_int_not_equal(t[k]->adler(p, LONG), adler32(1, p + 1, LONG - 1));
        free(p);
    }
}

static void repeats_and_ranges_are_their_definitions(void **state)
{
    (void)state;
    const weir_deflate_kern *t[TABLES];
    const int n = tables(t);
    for (int k = 0; k < n; k++)
        for (size_t len = 1; len < 400; len++) {
            uint8_t *p = bytes(len, 1 + (unsigned)len % 5, (uint32_t)len + 1), lo, hi;
            uint64_t *bits = malloc((len / 64 + 2) * sizeof *bits);
            t[k]->repeats(bits, p, len);
            for (size_t i = 0; i < (len / 64 + 2) * 64; i++)
                assert_int_equal(bits[i / 64] >> i % 64 & 1, i > 0 && i < len && p[i] == p[i - 1]);
            for (size_t i = 0; i < len; i++)
                p[i] = (uint8_t)(p[i] * 37 + len);
            unsigned least = 255, most = 0;
            for (size_t i = 0; i < len; i++) {
                const unsigned x = (p[i] << 1 | p[i] >> 7) & 255;
                least = x < least ? x : least;
                most = x > most ? x : most;
            }
            t[k]->range(p, len, &lo, &hi);
            assert_int_equal(lo, least);
            assert_int_equal(hi, most);
            free(bits);
            free(p);
        }
}

static void literals_are_their_codes(void **state)
{
    (void)state;
    const weir_deflate_kern *t[TABLES];
    const int n = tables(t);
    uint8_t want[2048], got[2048];
    for (unsigned values = 2; values <= 256; values += 127)
        for (size_t len = 0; len < 600; len += 1 + len / 64) {
            uint8_t *p = bytes(len, values, (uint32_t)len + 9);
            uint32_t freq[257] = {0};
            weir_code code[257];
            for (unsigned s = 0; s < values; s++)
                freq[s] = 1 + (s < 24 ? 1u << (24 - s) : 0); /* short codes and the longest */
            freq[256] = 1;
            weir_huff_build(code, freq, 257, WEIR_CODE_BITS);
            for (unsigned held = 0; held < 8; held++) {
                weir_bits w = {want, (1u << held) - 1, held};
                for (size_t i = 0; i < len; i++)
                    bits_put(&w, code_bits(code[p[i]]), code_len(code[p[i]]));
                for (int k = 0; k < n; k++) {
                    weir_bits v = {got, (1u << held) - 1, held};
                    t[k]->literals(&v, code, p, len);
                    assert_int_equal(v.p - got, w.p - want);
                    assert_memory_equal(got, want, (size_t)(w.p - want));
                    assert_int_equal(v.n, w.n);
                    assert_int_equal(v.acc, w.acc);
                }
            }
            free(p);
        }
}

/* Every match is one, they are in order and apart, and what repeats is found. */
static size_t covered(const weir_match *m, int n, const uint8_t *p, size_t history)
{
    size_t at = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        assert_true(m[i].from >= at && m[i].to >= m[i].from + WEIR_MATCH_MIN);
        assert_true(m[i].distance >= 1 && m[i].distance <= 32768 && m[i].distance <= m[i].from + history);
        for (uint32_t k = m[i].from; k < m[i].to; k++)
            assert_int_equal(p[k], p[(ptrdiff_t)k - (ptrdiff_t)m[i].distance]);
        at = m[i].to;
        sum += m[i].to - m[i].from;
    }
    return sum;
}

static void repeated_rows_and_runs_are_found(void **state)
{
    (void)state;
    enum { ROWS = 1024, N = ROWS * WEIR_ROW, HISTORY = 100 * WEIR_ROW };
    uint8_t *base = bytes(HISTORY + N, 256, 21), *p = base + HISTORY;
    uint64_t *repeats = malloc((N / 64 + 2) * sizeof *repeats);
    weir_match *row = malloc(ROWS * sizeof *row), *all = malloc(N / 3 * sizeof *all);
    memcpy(p, base, 3 * WEIR_ROW);                                    /* 3 rows out of the history */
    memcpy(p + 20 * WEIR_ROW, p + 10 * WEIR_ROW, 5 * WEIR_ROW);       /* 5 from nearby */
    memcpy(p + 700 * WEIR_ROW, p + 100 * WEIR_ROW, WEIR_ROW);         /* too far */
    memcpy(p + 800 * WEIR_ROW, p + (800 - 512) * WEIR_ROW, WEIR_ROW); /* just within the window */
    memset(p + 900 * WEIR_ROW + 10, 7, 10 * WEIR_ROW);                /* runs, not rows */
    weir_deflate_ref.repeats(repeats, p, N);
    const int rows = weir_find_rows(row, repeats, base, p, N);
    assert_int_equal(rows, 3);
    assert_int_equal(covered(row, rows, p, HISTORY), 9 * WEIR_ROW);
    const int n = weir_merge_matches(all, weir_find_runs(all, repeats, N), row, rows);
    assert_true(n > rows);
    assert_in_range(covered(all, n, p, HISTORY), 19 * WEIR_ROW - 1, 19 * WEIR_ROW + 8);
    assert_int_equal(weir_find_rows(row, repeats, p, p, N), 2);     /* without the history */
    assert_int_equal(weir_find_rows(row, repeats, p - 1, p, N), 0); /* no row begins there */
    free(base);
    free(repeats);
    free(row);
    free(all);
}

static void noise_is_told_from_what_is_not(void **state)
{
    (void)state;
    enum { N = 65536 };
    uint8_t *p = bytes(N, 256, 11), *q = bytes(N, 200, 12), *steps = malloc(N);
    for (int i = 0; i < N; i++)
        steps[i] = (uint8_t)(i / 8); /* even, but in runs */
    assert_true(weir_is_noise(p, N));
    assert_true(weir_is_noise(p, 4096));
    assert_false(weir_is_noise(p, 1024)); /* too few to tell */
    assert_false(weir_is_noise(q, N));
    assert_false(weir_is_noise(steps, N));
    memset(p + N / 2, 7, N / 2);
    assert_false(weir_is_noise(p, N));
    assert_int_equal(weir_tail(p, N), N / 2 + (p[N / 2 - 1] == 7));
    assert_int_equal(weir_tail(steps, 5), 5);
    assert_int_equal(weir_tail(steps, 17), 1);
    free(p);
    free(q);
    free(steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_obey_the_rules),
        cmocka_unit_test(fibonacci_counts_stay_within_the_limit),
        cmocka_unit_test(codes_are_canonical),
        cmocka_unit_test(lengths_and_distances_have_their_symbols),
        cmocka_unit_test(checksums_are_zlibs),
        cmocka_unit_test(repeats_and_ranges_are_their_definitions),
        cmocka_unit_test(literals_are_their_codes),
        cmocka_unit_test(repeated_rows_and_runs_are_found),
        cmocka_unit_test(noise_is_told_from_what_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
