/* record/inflate_quick.c: see inflate_quick.h. Section numbers are those of RFC 1951. */
#include "inflate_quick.h"

#include <string.h>

#include "deflate.h"

enum { TABLE = 1 << WEIR_QUICK_BITS, LITERALS = 256, SYMBOLS = 288, DISTANCES = 30, LENGTHS = 19 };

/* An entry of `many`: the bits that it takes in the lowest six, so that they are a shift count as they stand (the loop
 * waits for nothing else); how many literals in the next two; the literals, or if there are none another symbol, above.
 */
#define ENTRY(value, count, bits) ((uint32_t)(bits) | (uint32_t)(count) << 6 | (uint32_t)(value) << 8)
#define ENTRY_BITS(e) ((e)&63u)
#define ENTRY_COUNT(e) ((e) >> 6 & 3u)
#define ENTRY_VALUE(e) ((e) >> 8)

typedef struct input {
    const uint8_t *p, *end; /* end: of the stream, its checksum included */
    uint64_t acc;
    unsigned n; /* bits in acc */
} input;

/* p may be ahead of the bits that are used by 8 bytes; farther only a damaged stream leads. */
static inline bool beyond(const input *in)
{
    return in->p - in->end > WEIR_INFLATE_SLACK - 8;
}

/* At least 56 bits. */
static inline bool refill(input *in)
{
    if (beyond(in))
        return false;
    in->acc |= load64(in->p) << in->n;
    in->p += (63 - in->n) >> 3;
    in->n |= 56;
    return true;
}

static inline unsigned take(input *in, unsigned bits)
{
    unsigned v = (unsigned)(in->acc & ((UINT64_C(1) << bits) - 1));
    in->acc >>= bits;
    in->n -= bits;
    return v;
}

/* Back to a whole byte. */
static void align(input *in)
{
    in->p -= in->n >> 3;
    in->acc = 0;
    in->n = 0;
}

/* --- codes */

static unsigned reversed(unsigned code, unsigned bits)
{
    unsigned r = 0;
    for (unsigned i = 0; i < bits; i++)
        r |= (code >> i & 1) << (bits - 1 - i);
    return r;
}

/* 3.2.2: fills one[1 << bits] with symbol << 4 | length. False unless the code is complete and no longer than `bits`.
 */
static bool fill_table(uint16_t *one, unsigned bits, const uint8_t *length, int n)
{
    unsigned count[16] = {0}, next[16] = {0}, code = 0;
    for (int s = 0; s < n; s++)
        count[length[s]]++;
    count[0] = 0;
    for (unsigned b = 1; b <= 15; b++) {
        code = (code + count[b - 1]) << 1;
        next[b] = code;
        if (b > bits && count[b])
            return false;
    }
    if (next[bits] + count[bits] != 1u << bits)
        return false;
    for (int s = 0; s < n; s++) {
        unsigned len = length[s];
        for (unsigned i = len ? reversed(next[len]++, len) : 1u << bits; i < 1u << bits; i += 1u << len)
            one[i] = (uint16_t)((unsigned)s << 4 | len);
    }
    return true;
}

/* Fills many[1 << bits] from one[1 << WEIR_QUICK_BITS]; returns bits: as few as the longest code has, if no two codes
 * fit into more. */
static unsigned fill_many(weir_quick *q, const uint8_t *length, int n)
{
    unsigned longest = 0, shortest = 15;
    for (int s = 0; s < n; s++) {
        longest = length[s] > longest ? length[s] : longest;
        shortest = length[s] && length[s] < shortest ? length[s] : shortest;
    }
    const unsigned bits = 2 * shortest > WEIR_QUICK_BITS ? longest : WEIR_QUICK_BITS;
    for (unsigned i = 0; i < 1u << bits; i++) {
        unsigned sym = q->one[i] >> 4, used = q->one[i] & 15u, count = 0, value = sym;
        while (count < 3 && sym < LITERALS) {
            value = count ? value | sym << (8 * count) : sym;
            count++;
            const unsigned next = q->one[i >> used]; /* right where its bits are known */
            sym = next >> 4;
            if (count == 3 || sym >= LITERALS || used + (next & 15u) > bits)
                break;
            used += next & 15u;
        }
        q->many[i] = ENTRY(value, count, used);
    }
    return bits;
}

/* 3.2.7: lengths of both codes, themselves coded. */
static bool read_lengths(input *in, uint8_t *length, int n)
{
    static const uint8_t order[LENGTHS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t of_code[LENGTHS] = {0};
    uint16_t table[128];
    if (!refill(in))
        return false;
    const int n_codes = (int)take(in, 4) + 4;
    for (int i = 0; i < n_codes; i++) {
        if (!refill(in))
            return false;
        of_code[order[i]] = (uint8_t)take(in, 3);
    }
    if (!fill_table(table, 7, of_code, LENGTHS))
        return false;
    for (int i = 0; i < n;) {
        if (!refill(in))
            return false;
        const unsigned e = table[in->acc & 127], sym = e >> 4;
        take(in, e & 15u);
        if (sym < 16) {
            length[i++] = (uint8_t)sym;
            continue;
        }
        const unsigned times = sym == 16 ? 3 + take(in, 2) : sym == 17 ? 3 + take(in, 3) : 11 + take(in, 7);
        if ((sym == 16 && i == 0) || (int)times > n - i)
            return false;
        memset(length + i, sym == 16 ? length[i - 1] : 0, times);
        i += (int)times;
    }
    return true;
}

/* *bits: those of the code of distance 1, which are zeros: so is the shortest code of the lowest symbol. 0: it has no
 * such code. False for lengths that are no code: too many of them, or too few but for a single one. */
static bool distance_code(const uint8_t *length, int n, unsigned *bits)
{
    unsigned used = 0, longest = 0, shortest = 15; /* used: of 1 << 15 */
    for (int s = 0; s < n; s++) {
        used += length[s] ? 1u << (15 - length[s]) : 0;
        longest = length[s] > longest ? length[s] : longest;
        shortest = length[s] && length[s] < shortest ? length[s] : shortest;
    }
    *bits = length[0] == shortest ? length[0] : 0;
    return used == 1u << 15 || (used < 1u << 15 && longest <= 1);
}

/* --- one stream */

typedef enum phase { BLOCK, LITERAL, DONE, BAD } phase; /* what comes next */

typedef struct state {
    weir_quick *q;
    input in;
    uint8_t *out, *o, *out_end;
    unsigned mask, distance_bits; /* of the present block: of the index into many; of the code of distance 1, or 0 */
    bool last;                    /* the present block is */
    phase next;
} state;

static bool dynamic_codes(state *s, uint8_t *length, int *n)
{
    if (!refill(&s->in))
        return false;
    const int n_lit = (int)take(&s->in, 5) + 257, n_dist = (int)take(&s->in, 5) + 1;
    *n = n_lit;
    return n_lit <= WEIR_SYMS && n_dist <= DISTANCES && read_lengths(&s->in, length, n_lit + n_dist) &&
           length[WEIR_SYM_END] && distance_code(length + n_lit, n_dist, &s->distance_bits);
}

/* 3.2.6 */
static void fixed_codes(state *s, uint8_t *length, int *n)
{
    memset(length, 8, 144);
    memset(length + 144, 9, 112);
    memset(length + 256, 7, 24);
    memset(length + 280, 8, 8);
    s->distance_bits = 5;
    *n = SYMBOLS;
}

static bool stored(state *s)
{
    input *in = &s->in;
    align(in);
    if (in->end - in->p < 4)
        return false;
    const unsigned len = in->p[0] | (unsigned)in->p[1] << 8, inverse = in->p[2] | (unsigned)in->p[3] << 8;
    in->p += 4;
    if (len != (inverse ^ 0xffff) || len > (size_t)(in->end - in->p) || len > (size_t)(s->out_end - s->o))
        return false;
    memcpy(s->o, in->p, len);
    in->p += len;
    s->o += len;
    return true;
}

/* The head of a block and, of a stored one, all of it. */
static phase begin_block(state *s)
{
    uint8_t length[SYMBOLS + DISTANCES] = {0};
    int n = 0;
    if (!refill(&s->in))
        return BAD;
    s->last = take(&s->in, 1);
    const unsigned kind = take(&s->in, 2);
    if (kind == 0)
        return !stored(s) ? BAD : s->last ? DONE : BLOCK;
    if (kind == 1)
        fixed_codes(s, length, &n);
    else if (kind == 3 || !dynamic_codes(s, length, &n))
        return BAD;
    if (!fill_table(s->q->one, WEIR_QUICK_BITS, length, n))
        return BAD;
    s->mask = (1u << fill_many(s->q, length, n)) - 1;
    return LITERAL;
}

/* A run of the byte before; sym: its length's. 3.2.5 */
static bool put_run(state *s, unsigned sym)
{
    static const uint16_t base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                      31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                      2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    if (sym > 285 || !s->distance_bits || s->o == s->out || !refill(&s->in))
        return false;
    const unsigned len = base[sym - 257] + take(&s->in, extra[sym - 257]);
    if (take(&s->in, s->distance_bits) != 0 || len > (size_t)(s->out_end - s->o))
        return false;
    memset(s->o, s->o[-1], len);
    s->o += len;
    return true;
}

/* Literals have been read; e: the entry that came last. Up to 16 bytes too many may have been written. */
static phase after_literals(state *s, uint32_t e)
{
    if (s->o > s->out_end)
        return BAD;
    if (ENTRY_COUNT(e) != 0) /* there may be more of them */
        return beyond(&s->in) ? BAD : LITERAL;
    if (ENTRY_VALUE(e) == WEIR_SYM_END)
        return s->last ? DONE : BLOCK;
    return put_run(s, ENTRY_VALUE(e)) ? LITERAL : BAD;
}

/* --- literals, which is where the time goes. The state of a stream is kept in variables, named with a or b. */

#define BEGIN(x, s)                                                                                                    \
    uint64_t acc##x = (s)->in.acc;                                                                                     \
    unsigned n##x = (s)->in.n;                                                                                         \
    uint8_t *o##x = (s)->o;                                                                                            \
    const uint8_t *p##x = (s)->in.p;                                                                                   \
    const uint32_t *many##x = (s)->q->many;                                                                            \
    const unsigned mask##x = (s)->mask;                                                                                \
    uint32_t e##x = ENTRY(0, 1, 0), literals##x

#define MORE(x, s) (o##x <= (s)->out_end && p##x - (s)->in.end <= WEIR_INFLATE_SLACK - 8)

/* As refill. */
#define REFILL(x)                                                                                                      \
    acc##x |= load64(p##x) << n##x;                                                                                    \
    p##x += (63 - n##x) >> 3;                                                                                          \
    n##x |= 56

/* One look into the table; leaves the loop where there is no literal. Four of at most 12 bits to a refill. */
#define LOOK(x)                                                                                                        \
    e##x = many##x[acc##x & mask##x];                                                                                  \
    acc##x >>= ENTRY_BITS(e##x);                                                                                       \
    n##x -= ENTRY_BITS(e##x);                                                                                          \
    if (ENTRY_COUNT(e##x) == 0)                                                                                        \
        break;                                                                                                         \
    literals##x = ENTRY_VALUE(e##x);                                                                                   \
    memcpy(o##x, &literals##x, 4);                                                                                     \
    o##x += ENTRY_COUNT(e##x)

#define END(x, s)                                                                                                      \
    (s)->in.acc = acc##x;                                                                                              \
    (s)->in.n = n##x;                                                                                                  \
    (s)->in.p = p##x;                                                                                                  \
    (s)->o = o##x;                                                                                                     \
    (s)->next = after_literals(s, e##x)

static void literals_of_one(state *s)
{
    BEGIN(a, s);
    while (MORE(a, s)) {
        REFILL(a);
        LOOK(a);
        LOOK(a);
        LOOK(a);
        LOOK(a);
    }
    END(a, s);
}

static void literals_of_two(state *s, state *t)
{
    BEGIN(a, s);
    BEGIN(b, t);
    while (MORE(a, s) && MORE(b, t)) {
        REFILL(a);
        REFILL(b);
        LOOK(a);
        LOOK(b);
        LOOK(a);
        LOOK(b);
        LOOK(a);
        LOOK(b);
        LOOK(a);
        LOOK(b);
    }
    END(a, s);
    END(b, t);
}

/* --- streams */

static void begin(state *s, weir_quick *q, const weir_zlib *z)
{
    const uint8_t *p = z->src; /* RFC 1950, section 2.2 */
    *s = (state){.q = q, .out = z->out, .o = z->out, .out_end = z->out + z->out_n, .next = BLOCK};
    if (z->n < 6 || (p[0] & 15) != 8 || p[0] >> 4 > 7 || (p[1] & 32) || (p[0] << 8 | p[1]) % 31)
        s->next = BAD;
    else
        s->in = (input){.p = p + 2, .end = p + z->n};
}

static bool ends_well(state *s, const weir_zlib *z)
{
    if (s->next != DONE)
        return false;
    align(&s->in);
    const uint8_t *p = s->in.p;
    if (s->o != s->out_end || s->in.end - p < 4)
        return false;
    const uint32_t sum = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    return s->q->kern->adler(z->out, z->out_n) == sum;
}

void weir_quick_inflate(weir_quick *q, weir_zlib *stream, int n)
{
    state s[2] = {{.next = DONE}, {.next = DONE}};
    for (int i = 0; i < n; i++)
        begin(&s[i], &q[i], &stream[i]);
    for (;;) {
        for (int i = 0; i < n; i++)
            while (s[i].next == BLOCK)
                s[i].next = begin_block(&s[i]);
        if (s[0].next == LITERAL && s[1].next == LITERAL)
            literals_of_two(&s[0], &s[1]);
        else if (s[0].next == LITERAL || s[1].next == LITERAL)
            literals_of_one(&s[s[0].next != LITERAL]);
        else
            break;
    }
    for (int i = 0; i < n; i++)
        stream[i].good = ends_well(&s[i], &stream[i]);
}
