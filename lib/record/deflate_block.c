/* record/deflate_block.c: from bytes to one block. */
#include "deflate.h"

/* --- stored */

/* At most: a head has 3 bits, up to 7 to the next byte, and the length twice. */
static size_t stored_bits(size_t n)
{
    return 8 * n + 42 * (n / WEIR_STORED_MAX + 1);
}

void weir_put_stored(weir_deflater *d, const uint8_t *p, size_t n, bool final)
{
    weir_bits *w = &d->out;
    while (n > 0) {
        const size_t len = n < WEIR_STORED_MAX ? n : WEIR_STORED_MAX;
        bits_put(w, final && len == n, 3);
        bits_put(w, 0, (8 - w->n) & 7);
        bits_put(w, len | (len ^ 0xffff) << 16, 32);
        memcpy(w->p, p, len);
        w->p += len;
        p += len;
        n -= len;
    }
}

/* --- codes for what was counted */

static void begin_block(weir_block *b)
{
    memset(b->freq, 0, sizeof b->freq);
    memset(b->distances, 0, sizeof b->distances);
    memset(b->lengths, 0, sizeof b->lengths);
    b->freq[WEIR_SYM_END] = 1;
    b->extra = 0;
    b->matches = 0;
}

static size_t coded_bits(const weir_block *b)
{
    size_t bits = b->extra;
    for (int s = 0; s < WEIR_SYMS; s++)
        bits += b->freq[s] * (size_t)code_len(b->code[s]);
    for (int s = 0; s < WEIR_DISTANCES; s++)
        bits += b->distances[s] * (size_t)code_len(b->distance[s]);
    return bits;
}

/* One distance has a code of one bit; a block without matches has one too, as some inflaters want it. */
static void choose_distance_code(weir_block *b)
{
    int used = 0, last = 0;
    for (int s = 0; s < WEIR_DISTANCES; s++)
        if (b->distances[s]) {
            used++;
            last = s;
        }
    if (used > 1) {
        weir_huff_build(b->distance, b->distances, WEIR_DISTANCES, WEIR_CODE_BITS);
    } else {
        memset(b->distance, 0, sizeof b->distance);
        b->distance[last] = 1 << 12;
    }
}

static void choose_code(weir_block *b)
{
    weir_huff_build(b->code, b->freq, WEIR_SYMS, WEIR_CODE_BITS);
    choose_distance_code(b);
    weir_huff_head_make(&b->head, b->code, b->distance);
    b->bits = b->head.bits + coded_bits(b);
    b->fixed = false;
}

/* The fixed code wins for a few bytes. */
static void try_fixed(weir_block *b)
{
    const size_t bits = 3 + b->extra + weir_huff_fixed_bits(b->freq, b->distances);
    if (bits > b->bits)
        return;
    weir_huff_fixed(b->code, b->distance);
    b->bits = bits;
    b->fixed = true;
}

static void put_head(weir_bits *w, const weir_block *b, bool final)
{
    if (b->fixed)
        bits_put(w, (unsigned) final | 1 << 1, 3);
    else
        weir_huff_head_put(w, &b->head, final);
}

static void put_symbol(weir_bits *w, const weir_block *b, int sym)
{
    bits_put(w, code_bits(b->code[sym]), code_len(b->code[sym]));
}

/* --- matches */

/* Counts (sign 1) or forgets (-1) a match of any length. */
static void count_match(weir_block *b, size_t len, unsigned distance, uint32_t sign)
{
    const weir_part back = distance_part(distance);
    const size_t longest = len / WEIR_MATCH_MAX > 1 ? len / WEIR_MATCH_MAX - 1 : 0; /* as put_match has them */
    b->lengths[WEIR_MATCH_MAX] += sign * (uint32_t)longest;
    b->distances[back.sym] += sign * (uint32_t)longest;
    for (size_t left = len - longest * WEIR_MATCH_MAX; left > 0; left -= next_match(left)) {
        b->lengths[next_match(left)] += sign;
        b->distances[back.sym] += sign;
    }
}

/* From lengths to their symbols. */
static void count_symbols(weir_block *b)
{
    memset(b->freq + WEIR_SYM_END + 1, 0, (WEIR_SYMS - WEIR_SYM_END - 1) * sizeof *b->freq);
    b->extra = 0;
    for (unsigned len = WEIR_MATCH_MIN; len <= WEIR_MATCH_MAX; len++)
        if (b->lengths[len]) {
            const weir_part part = length_part(len);
            b->freq[part.sym] += b->lengths[len];
            b->extra += b->lengths[len] * (size_t)part.bits;
        }
    for (unsigned s = 4; s < WEIR_DISTANCES; s++)
        b->extra += b->distances[s] * (size_t)(s / 2 - 1);
}

/* A symbol and the bits that follow it, as they are written. */
typedef struct word {
    uint64_t v;
    unsigned n;
} word;

static word join(weir_code c, weir_part part)
{
    return (word){code_bits(c) | (uint64_t)part.extra << code_len(c), code_len(c) + part.bits};
}

/* One match of the format: at most 12 + 5 and 12 + 13 bits. */
static word match_word(const weir_block *b, unsigned len, unsigned distance)
{
    const weir_part l = length_part(len), back = distance_part(distance);
    const word first = join(b->code[l.sym], l), second = join(b->distance[back.sym], back);
    return (word){first.v | second.v << first.n, first.n + second.n};
}

static void put_match(weir_bits *w, const weir_block *b, size_t len, unsigned distance)
{
    if (len >= 2 * WEIR_MATCH_MAX) {
        const word m = match_word(b, WEIR_MATCH_MAX, distance);
        for (; len >= 2 * WEIR_MATCH_MAX; len -= WEIR_MATCH_MAX)
            bits_put(w, m.v, m.n);
    }
    for (; len > 0; len -= next_match(len)) {
        const word m = match_word(b, next_match(len), distance);
        bits_put(w, m.v, m.n);
    }
}

void weir_put_constant(weir_deflater *d, uint8_t byte, size_t n, bool final)
{
    weir_block *b = &d->block;
    const uint32_t lits = n > WEIR_MATCH_MIN ? 1 : (uint32_t)n;
    begin_block(b);
    b->freq[byte] = lits;
    count_match(b, n - lits, 1, 1);
    count_symbols(b);
    choose_code(b);
    try_fixed(b);
    put_head(&d->out, b, final);
    for (uint32_t i = 0; i < lits; i++)
        put_symbol(&d->out, b, byte);
    put_match(&d->out, b, n - lits, 1);
    put_symbol(&d->out, b, WEIR_SYM_END);
}

void weir_put_end(weir_deflater *d)
{
    bits_put(&d->out, 1 | 1 << 1, 3 + 7); /* fixed code; the end is seven zeros */
}

/* --- blocks with matches */

enum { FEW = 16 }; /* literals: calls cost more */

static inline void count_literals(weir_block *b, const uint8_t *p, size_t n)
{
    if (n >= FEW)
        weir_count_bytes(b->freq, p, n);
    else
        for (size_t i = 0; i < n; i++)
            b->freq[p[i]]++;
}

static void count_matches(const weir_deflater *d, weir_block *b, const uint8_t *p, size_t n)
{
    size_t at = 0;
    for (int i = 0; i < b->matches; i++) {
        const weir_match m = d->match[i];
        count_literals(b, p + at, m.from - at);
        count_match(b, m.to - m.from, m.distance, 1);
        at = m.to;
    }
    count_literals(b, p + at, n - at);
    count_symbols(b);
}

/* At most this many bits could be saved by giving up short matches for bytes one by one. */
static size_t dear_bits(const weir_block *b)
{
    unsigned cheapest = WEIR_CODE_BITS;
    size_t sum = 0;
    for (int s = 0; s < 256; s++)
        if (b->freq[s] && code_len(b->code[s]) < cheapest)
            cheapest = code_len(b->code[s]);
    for (unsigned len = WEIR_MATCH_MIN; len <= WEIR_MATCH_MAX && len * cheapest < 2 * WEIR_CODE_BITS; len++)
        if (b->lengths[len]) {
            const unsigned bits = match_word(b, len, 1).n;
            sum += bits > len * cheapest ? b->lengths[len] * (size_t)(bits - len * cheapest) : 0;
        }
    return sum;
}

/* Gives up the runs that cost more than their bytes. */
static void drop_dear_runs(weir_deflater *d, weir_block *b, const uint8_t *p)
{
    int kept = 0;
    for (int i = 0; i < b->matches; i++) {
        const weir_match m = d->match[i];
        const unsigned len = m.to - m.from, literals = len * code_len(b->code[p[m.from]]);
        if (m.distance > 1 || len > WEIR_MATCH_MAX || literals >= match_word(b, len, 1).n) {
            d->match[kept++] = m;
        } else {
            count_match(b, len, 1, -1u);
            b->freq[p[m.from]] += len;
        }
    }
    b->matches = kept;
    count_symbols(b);
}

/* d->repeats and d->row[rows] are set. */
static void make_matches(weir_deflater *d, weir_block *b, const uint8_t *p, size_t n, int rows)
{
    begin_block(b);
    b->matches = weir_merge_matches(d->match, weir_find_runs(d->match, d->repeats, n), d->row, rows);
    count_matches(d, b, p, n);
    choose_code(b);
    for (int round = 0; round < 2 && dear_bits(b) > b->bits / 128; round++) {
        drop_dear_runs(d, b, p);
        choose_code(b);
    }
    try_fixed(b);
}

static void put_literals(weir_deflater *d, const weir_block *b, const uint8_t *p, size_t n)
{
    if (n >= FEW) {
        d->kern->literals(&d->out, b->code, p, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        put_symbol(&d->out, b, p[i]);
}

/* A few literals and a run go out as one: at most 2 * 12 + 12 + 5 + 12 bits. */
static void put_short(weir_bits *w, const weir_code *code, const uint8_t *p, size_t n, word run)
{
    word all = {0, 0};
    for (size_t i = 0; i < n; i++) {
        all.v |= (uint64_t)code_bits(code[p[i]]) << all.n;
        all.n += code_len(code[p[i]]);
    }
    bits_put(w, all.v | run.v << all.n, all.n + run.n);
}

static void put_block(weir_deflater *d, const weir_block *b, const uint8_t *p, size_t n, bool final)
{
    enum { SHORT = 2 };
    size_t at = 0;
    put_head(&d->out, b, final);
    for (int i = 0; i < b->matches; i++) {
        const weir_match m = d->match[i];
        const size_t lits = m.from - at, len = m.to - m.from;
        if (lits <= SHORT && len <= WEIR_MATCH_MAX && m.distance == 1) {
            put_short(&d->out, b->code, p + at, lits, match_word(b, (unsigned)len, 1));
        } else {
            put_literals(d, b, p + at, lits);
            put_match(&d->out, b, len, m.distance);
        }
        at = m.to;
    }
    put_literals(d, b, p + at, n - at);
    put_symbol(&d->out, b, WEIR_SYM_END);
}

/* --- the choice */

static void put_best(weir_deflater *d, const weir_block *b, const uint8_t *p, size_t n, bool final)
{
    if (b->bits < stored_bits(n))
        put_block(d, b, p, n, final);
    else
        weir_put_stored(d, p, n, final);
}

static void make_literals(weir_block *b, const uint8_t *p, size_t n)
{
    begin_block(b);
    weir_count_bytes(b->freq, p, n);
    choose_code(b);
    try_fixed(b);
}

/* The better of bytes one by one and matches, from exact counts. */
static const weir_block *make_exact(weir_deflater *d, const uint8_t *p, size_t n)
{
    make_literals(&d->other, p, n);
    d->kern->repeats(d->repeats, p, n);
    const int rows = weir_find_rows(d->row, d->repeats, d->base, p, n);
    if (rows == 0 && weir_repeated(d->repeats, n) == 0)
        return &d->other;
    make_matches(d, &d->block, p, n, rows);
    return d->block.bits < d->other.bits ? &d->block : &d->other;
}

size_t weir_exact_bits(weir_deflater *d, const uint8_t *p, size_t n)
{
    const size_t bits = make_exact(d, p, n)->bits;
    return bits < stored_bits(n) ? bits : stored_bits(n);
}

void weir_put_exact(weir_deflater *d, const uint8_t *p, size_t n, bool final)
{
    put_best(d, make_exact(d, p, n), p, n, final);
}

enum { SAMPLE_MIN = 32768, STRIDE = 512, SAMPLED_GAIN = 64 };

/* Literals under a code that was made from a sample. The sample may have misled: then, as soon as that shows, the piece
 * is stored after all. */
static void put_sampled(weir_deflater *d, const uint8_t *p, size_t n, bool final)
{
    weir_block *b = &d->block;
    const weir_bits start = d->out;
    begin_block(b);
    weir_count_sample(d->kern, b->freq, p, n);
    choose_code(b);
    if (b->bits < stored_bits(n) - 8 * n / SAMPLED_GAIN) {
        size_t i = 0;
        put_head(&d->out, b, final);
        while (i < n && (size_t)(d->out.p - start.p) + STRIDE * WEIR_CODE_BITS / 8 + 8 < n) {
            const size_t k = n - i < STRIDE ? n - i : STRIDE;
            d->kern->literals(&d->out, b->code, p + i, k);
            i += k;
        }
        if (i == n) {
            put_symbol(&d->out, b, WEIR_SYM_END);
            return;
        }
        d->out = start;
    }
    weir_put_stored(d, p, n, final);
}

void weir_put_fast(weir_deflater *d, const uint8_t *p, size_t n, bool final)
{
    d->kern->repeats(d->repeats, p, n);
    const int rows = d->look_for_rows ? weir_find_rows(d->row, d->repeats, p, p, n) : 0;
    const bool matches = rows > 0 || weir_repeated(d->repeats, n) > n / 32;
    if (!matches && n >= SAMPLE_MIN) {
        put_sampled(d, p, n, final);
        return;
    }
    if (matches)
        make_matches(d, &d->block, p, n, rows);
    else
        make_literals(&d->block, p, n);
    put_best(d, &d->block, p, n, final);
}

bool weir_has_rows(weir_deflater *d, const uint8_t *p, size_t n)
{
    size_t sum = 0;
    d->kern->repeats(d->repeats, p, n);
    for (int i = weir_find_rows(d->row, d->repeats, p, p, n); i > 0; i--)
        sum += d->row[i - 1].to - d->row[i - 1].from;
    return sum > n / 32;
}
