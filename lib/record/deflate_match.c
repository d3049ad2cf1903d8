/* record/deflate_match.c: what in a piece repeats what came before. Two things do in activations: one byte again and
 * again (zeros above all), and whole rows, where documents begin with the same words: their values are the same to the
 * bit. */
#include "deflate.h"

/* --- runs */

/* Of word w: the places from which three bytes or more repeat the one before. */
static uint64_t run_starts(const uint64_t *bits, size_t w)
{
    const uint64_t e = bits[w], next = bits[w + 1];
    return e & (e >> 1 | next << 63) & (e >> 2 | next << 62);
}

/* How many such places there are. */
size_t weir_repeated(const uint64_t *bits, size_t n)
{
    size_t sum = 0;
    for (size_t w = 0; w * 64 < n; w++)
        sum += (size_t)__builtin_popcountll(run_starts(bits, w));
    return sum;
}

int weir_find_runs(weir_match *match, const uint64_t *bits, size_t n)
{
    uint64_t before = 0, covered_before = 0;
    bool inside = false;
    int found = 0;
    for (size_t w = 0; w * 64 <= n; w++) {
        const uint64_t starts = run_starts(bits, w);
        const uint64_t covered = starts | starts << 1 | before >> 63 | starts << 2 | before >> 62;
        uint64_t edges = covered ^ (covered << 1 | covered_before >> 63);
        for (; edges; edges &= edges - 1, inside = !inside) {
            const uint32_t at = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(edges);
            if (inside)
                match[found++].to = at;
            else
                match[found] = (weir_match){at, at, 1};
        }
        before = starts;
        covered_before = covered;
    }
    return found;
}

/* --- rows */

enum { ROW = WEIR_ROW, SLOT_BITS = 11, WINDOW = 32768, MOSTLY_RUNS = 48 };

static unsigned slot_of(const uint8_t *row)
{
    const uint64_t mixed = (load64(row) ^ load64(row + ROW / 2) * 3) * UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned)(mixed >> (64 - SLOT_BITS));
}

static bool equal_rows(const uint8_t *a, const uint8_t *b)
{
    return load64(a) == load64(b) && !memcmp(a, b, ROW);
}

int weir_find_rows(weir_match *match, uint64_t *repeats, const uint8_t *base, const uint8_t *p, size_t n)
{
    const size_t history = (size_t)(p - base) < WINDOW ? (size_t)(p - base) : WINDOW, old = history / ROW;
    uint16_t last[1 << SLOT_BITS] = {0}; /* the latest row with this hash, counted from 1 */
    uint32_t end = 0, distance = 0;      /* of the match before */
    int found = 0;
    if (history % ROW)
        return 0;
    for (size_t r = 0; r < old; r++)
        last[slot_of(p - history + r * ROW)] = (uint16_t)(r + 1);
    for (size_t r = 0; r < n / ROW; r++) {
        const uint8_t *const row = p + r * ROW;
        uint16_t *const seen = &last[slot_of(row)];
        const uint32_t at = (uint32_t)(r * ROW), back = *seen ? (uint32_t)(old + r + 1 - *seen) * ROW : 0;
        *seen = (uint16_t)(old + r + 1);
        if (end == at && distance > 0 && equal_rows(row - distance, row))
            match[found - 1].to = end = at + ROW;
        else if (back > 0 && back <= WINDOW && equal_rows(row - back, row) &&
                 __builtin_popcountll(repeats[r]) < MOSTLY_RUNS)
            match[found++] = (weir_match){at, end = at + ROW, distance = back};
        else
            continue;
        repeats[r] = 0;
    }
    return found;
}

/* From the end, so that `more` can go into the same array. */
int weir_merge_matches(weir_match *match, int n, const weir_match *more, int n_more)
{
    for (int i = n, j = n_more; j > 0;) {
        const bool take = i > 0 && match[i - 1].from > more[j - 1].from;
        match[i + j - 1] = take ? match[i - 1] : more[j - 1];
        i -= take;
        j -= !take;
    }
    return n + n_more;
}
