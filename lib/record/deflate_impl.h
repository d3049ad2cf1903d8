/* record/deflate_impl.h: plain C that each table compiles with its own instructions, for what a table has no vectors
 * of its own for. */
#ifndef WEIR_DEFLATE_IMPL_H
#define WEIR_DEFLATE_IMPL_H

#include "deflate.h"

enum { ADLER_MOD = 65521 };

static inline uint32_t adler_bytes(uint32_t a, uint32_t b, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        a = (a + p[i]) % ADLER_MOD;
        b = (b + a) % ADLER_MOD;
    }
    return b << 16 | a;
}

static inline void range_plain(const uint8_t *p, size_t n, uint8_t *lo, uint8_t *hi)
{
    uint8_t least = 255, most = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t x = (uint8_t)(p[i] << 1 | p[i] >> 7);
        least = x < least ? x : least;
        most = x > most ? x : most;
    }
    *lo = least;
    *hi = most;
}

/* Bit i: p[i] equals p[i - 1], for i from `from` to `to`, which lie in one word. */
static inline uint64_t repeats_bytes(const uint8_t *p, size_t from, size_t to)
{
    uint64_t bits = 0;
    for (size_t i = from; i < to; i++)
        bits |= (uint64_t)(p[i] == p[i - 1]) << (i & 63);
    return bits;
}

/* Four codes are joined before the stream moves on: at most 7 + 48 bits wait. */
static inline void literals_plain(weir_bits *w, const weir_code *code, const uint8_t *p, size_t n)
{
    uint8_t *q = w->p;
    uint64_t acc = w->acc;
    unsigned held = w->n;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const weir_code c0 = code[p[i]], c1 = code[p[i + 1]], c2 = code[p[i + 2]], c3 = code[p[i + 3]];
        const unsigned l0 = code_len(c0), l1 = code_len(c1), l2 = code_len(c2), l3 = code_len(c3);
        const uint32_t low = code_bits(c0) | code_bits(c1) << l0, high = code_bits(c2) | code_bits(c3) << l2;
        acc |= (low | (uint64_t)high << (l0 + l1)) << held;
        held += l0 + l1 + l2 + l3;
        store64(q, acc);
        q += held >> 3;
        acc >>= held & ~7u;
        held &= 7;
    }
    *w = (weir_bits){q, acc, held};
    for (; i < n; i++)
        bits_put(w, code_bits(code[p[i]]), code_len(code[p[i]]));
}

#endif
