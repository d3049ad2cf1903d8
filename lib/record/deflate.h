/* record/deflate.h: the pieces of the deflate encoder (RFC 1951), private to lib/record.
 *
 * compress.c cuts a chunk into pieces of planes, deflate_block.c turns one piece into a block, deflate_fine.c looks for
 * the best blocks (levels 2 to 9). deflate_stats.c and deflate_match.c look at the bytes, deflate_huffman.c makes
 * codes. What costs time stands in a table of functions for each instruction set (deflate_ref.c, _avx2.c, _avx512.c).
 * All tables give the same results and every decision is made from integers, so the stream depends on the bytes and the
 * level alone.
 */
#ifndef WEIR_DEFLATE_H
#define WEIR_DEFLATE_H

#include <string.h>

#include "compress.h"

enum {
    WEIR_SYM_END = 256, /* end of block; 257.. are match lengths */
    WEIR_SYMS = 286,    /* literals, end, lengths */
    WEIR_DISTANCES = 30,
    WEIR_CODE_BITS = 12, /* longest code: four fit into a 64-bit flush, and code and length into 16 bits */
    WEIR_PIECE = 65536,  /* bytes coded at once: one plane of a 1024 x 64 tile */
    WEIR_ROW = 64,       /* bytes of a plane from one row of a tile */
    WEIR_STORED_MAX = 65535,
    WEIR_MATCH_MIN = 3,
    WEIR_MATCH_MAX = 258,
    WEIR_FINE_NODES = 256 /* halves of halves: down to 512 bytes of a piece */
};

/* --- bits, the first in the lowest place. Between calls n < 8; up to 8 bytes behind p may be overwritten. */
typedef struct weir_bits {
    uint8_t *p;
    uint64_t acc;
    unsigned n;
} weir_bits;

static inline uint64_t little64(uint64_t x)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(x);
#else
    return x;
#endif
}

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, 8);
    return little64(x);
}

static inline void store64(uint8_t *p, uint64_t x)
{
    x = little64(x);
    memcpy(p, &x, 8);
}

/* n <= 56 bits of v; the bits above them are zero. */
static inline void bits_put(weir_bits *w, uint64_t v, unsigned n)
{
    w->acc |= v << w->n;
    w->n += n;
    store64(w->p, w->acc);
    w->p += w->n >> 3;
    w->acc >>= w->n & ~7u;
    w->n &= 7;
}

/* --- one instruction set */

/* A symbol's code, bit-reversed as it is written, with its length in the upper four bits; 0: has no code. */
typedef uint16_t weir_code;
static inline unsigned code_len(weir_code c)
{
    return c >> 12;
}
static inline unsigned code_bits(weir_code c)
{
    return c & 0xfff;
}

typedef struct weir_deflate_kern {
    const char *name; /* as in lib/kernels: ref, avx2, avx512 */
    /* cols elements of 2 or 4 bytes from each of t->rows rows to their planes; nothing else is written. */
    void (*shuffle2)(uint8_t *dst, const weir_tile *t);
    void (*shuffle4)(uint8_t *dst, const weir_tile *t);
    /* Adler-32 of n bytes (RFC 1950). */
    uint32_t (*adler)(const uint8_t *p, size_t n);
    /* Bit i of bits[n / 64 + 2]: byte i equals the one before it. Bit 0 and those from n on are 0. */
    void (*repeats)(uint64_t *bits, const uint8_t *p, size_t n);
    /* Smallest and largest of n > 0 bytes after rotating each left by one: the sign of a float goes last, so that a
     * narrow band of exponents is a narrow range. */
    void (*range)(const uint8_t *p, size_t n, uint8_t *lo, uint8_t *hi);
    /* The codes of n bytes. */
    void (*literals)(weir_bits *w, const weir_code *code, const uint8_t *p, size_t n);
} weir_deflate_kern;

extern const weir_deflate_kern weir_deflate_ref, weir_deflate_avx2, weir_deflate_avx512;

/* The table that goes with the kernel table in use (WEIR_KERNEL or the best of this machine); ref if WEIR_KERNEL names
 * none that runs here, which weir_packer_new refuses. */
const weir_deflate_kern *weir_deflate_pick(void);

/* --- codes */

/* A code for the symbols with freq > 0, at least two of them; complete, no longer than `limit`, the same on every
 * machine. */
void weir_huff_build(weir_code *code, const uint32_t *freq, int n, int limit);
/* The codes of RFC 1951 section 3.2.6, and what they need for these counts. */
void weir_huff_fixed(weir_code *code, weir_code *distance);
size_t weir_huff_fixed_bits(const uint32_t *freq, const uint32_t *distances);

/* The head of a dynamic block: the codes' lengths, run-length coded, themselves coded. */
typedef struct weir_huff_head {
    uint8_t sym[WEIR_SYMS + WEIR_DISTANCES], extra[WEIR_SYMS + WEIR_DISTANCES];
    int n, n_lit, n_distance, n_order;
    weir_code code[19];
    size_t bits; /* of the whole head, the three bits that begin a block included */
} weir_huff_head;
void weir_huff_head_make(weir_huff_head *head, const weir_code *code, const weir_code *distance);
void weir_huff_head_put(weir_bits *w, const weir_huff_head *head, bool final);

/* --- matches */

/* A length or a distance: its symbol and the bits that follow it. */
typedef struct weir_part {
    unsigned sym, extra, bits;
} weir_part;

static inline weir_part length_part(unsigned len)
{
    const unsigned x = len - WEIR_MATCH_MIN;
    if (len == WEIR_MATCH_MAX || x < 8)
        return (weir_part){len == WEIR_MATCH_MAX ? 285 : 257 + x, 0, 0};
    const unsigned bits = 29 - (unsigned)__builtin_clz(x);
    return (weir_part){257 + 4 * bits + (x >> bits), x & ((1u << bits) - 1), bits};
}

static inline weir_part distance_part(unsigned distance)
{
    const unsigned x = distance - 1;
    if (x < 4)
        return (weir_part){x, 0, 0};
    const unsigned bits = 30 - (unsigned)__builtin_clz(x);
    return (weir_part){2 * bits + (x >> bits), x & ((1u << bits) - 1), bits};
}

/* The first match to code of len >= 3 bytes: what is left is none or again 3 at least. */
static inline unsigned next_match(size_t len)
{
    if (len <= WEIR_MATCH_MAX)
        return (unsigned)len;
    return len - WEIR_MATCH_MAX >= WEIR_MATCH_MIN ? WEIR_MATCH_MAX : (unsigned)len - WEIR_MATCH_MIN;
}

/* Bytes [from, to) of a piece repeat those `distance` before them; to - from >= 3. */
typedef struct weir_match {
    uint32_t from, to, distance;
} weir_match;

/* Both are given the repeats of p[n] (weir_deflate_kern); matches come in order and do not overlap. */
/* Places from which three bytes or more repeat the one before. */
size_t weir_repeated(const uint64_t *repeats, size_t n);
/* All runs of three repeats or more: matches of distance 1. */
int weir_find_runs(weir_match *match, const uint64_t *repeats, size_t n);
/* Rows of 64 bytes, counted from p, that stand again within 32 KiB, from `base` on; not those that are mostly runs. The
 * repeats in them are cleared: find_runs finds what is left. */
int weir_find_rows(weir_match *match, uint64_t *repeats, const uint8_t *base, const uint8_t *p, size_t n);
/* Merges `more`, which do not overlap, into match, which has room for them. */
int weir_merge_matches(weir_match *match, int n, const weir_match *more, int n_more);

/* --- statistics */

/* Adds the bytes to count. */
void weir_count_bytes(uint32_t count[256], const uint8_t *p, size_t n);
/* Estimates the counts from one group of bytes in eight. A byte that does not occur in p but lies in the range of those
 * that do may get a count; one that occurs never has none. */
void weir_count_sample(const weir_deflate_kern *kern, uint32_t count[256], const uint8_t *p, size_t n);
/* Would a code save less than 2 %? From a sample; false for short pieces. */
bool weir_is_noise(const uint8_t *p, size_t n);
/* Bytes at the end that all equal the last one; n > 0. */
size_t weir_tail(const uint8_t *p, size_t n);

/* --- blocks */

/* One block in the making. */
typedef struct weir_block {
    uint32_t freq[WEIR_SYMS], distances[WEIR_DISTANCES], lengths[WEIR_MATCH_MAX + 1];
    size_t extra; /* bits beside the symbols */
    int matches;  /* of weir_deflater.match */
    weir_code code[WEIR_SYMS], distance[WEIR_DISTANCES];
    weir_huff_head head;
    size_t bits; /* all of it with these codes */
    bool fixed;
} weir_block;

/* What one thread's encoder owns. */
typedef struct weir_deflater {
    const weir_deflate_kern *kern;
    weir_bits out;
    bool look_for_rows;  /* level 1: this chunk has rows that stand in it more than once */
    const uint8_t *base; /* rows may repeat those from here on */
    uint64_t repeats[WEIR_PIECE / 64 + 2];
    weir_match match[WEIR_PIECE / 4 + WEIR_PIECE / WEIR_ROW], row[WEIR_PIECE / WEIR_ROW];
    weir_block block, other;
    bool halved[WEIR_FINE_NODES];
} weir_deflater;

/* Each writes blocks that hold p[n] and together are no longer than stored ones. */
void weir_put_stored(weir_deflater *d, const uint8_t *p, size_t n, bool final);
void weir_put_constant(weir_deflater *d, uint8_t byte, size_t n, bool final);
/* n <= WEIR_PIECE. Level 1: a large piece without repeats gets its code from a sample. */
void weir_put_fast(weir_deflater *d, const uint8_t *p, size_t n, bool final);
/* n <= WEIR_PIECE. The best block from exact counts, and how long it is. */
void weir_put_exact(weir_deflater *d, const uint8_t *p, size_t n, bool final);
size_t weir_exact_bits(weir_deflater *d, const uint8_t *p, size_t n);
/* n <= WEIR_PIECE. The best blocks of at least `least` bytes each. */
void weir_put_fine(weir_deflater *d, const uint8_t *p, size_t n, size_t least, bool final);
/* An empty last block. */
void weir_put_end(weir_deflater *d);
/* n <= WEIR_PIECE. Do rows repeat so often that looking for them in all planes pays? */
bool weir_has_rows(weir_deflater *d, const uint8_t *p, size_t n);

#endif
