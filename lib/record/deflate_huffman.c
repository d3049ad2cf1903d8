/* record/deflate_huffman.c: codes of limited length and how a block describes them. */
#include "deflate.h"

/* --- lengths */

typedef struct leaf {
    uint32_t freq;
    uint16_t sym;
} leaf;

/* Sorts by freq, rarest first, equal ones by symbol: a stable radix sort. */
static void sort_leaves(leaf *a, leaf *spare, int n)
{
    uint32_t all = 0;
    for (int i = 0; i < n; i++)
        all |= a[i].freq;
    for (int shift = 0; shift < 32 && all >> shift; shift += 8) {
        int at[257] = {0};
        for (int i = 0; i < n; i++)
            at[(a[i].freq >> shift & 255) + 1]++;
        if (at[(a[0].freq >> shift & 255) + 1] == n)
            continue;
        for (int b = 0; b < 256; b++)
            at[b + 1] += at[b];
        for (int i = 0; i < n; i++)
            spare[at[a[i].freq >> shift & 255]++] = a[i];
        memcpy(a, spare, (size_t)n * sizeof *a);
    }
}

/* Huffman's algorithm over sorted leaves with two queues, leaves and inner nodes; count[l]: leaves at depth l, all
 * deeper ones at `limit`. */
static void count_depths(const leaf *a, int n, int limit, int *count)
{
    uint64_t weight[WEIR_SYMS];
    uint16_t leaf_up[WEIR_SYMS], up[WEIR_SYMS], depth[WEIR_SYMS];
    int l = 0, q = 0; /* heads of the queues */
    for (int node = 0; node < n - 1; node++) {
        uint64_t sum = 0;
        for (int child = 0; child < 2; child++)
            if (q == node || (l < n && a[l].freq <= weight[q])) {
                sum += a[l].freq;
                leaf_up[l++] = (uint16_t)node;
            } else {
                sum += weight[q];
                up[q++] = (uint16_t)node;
            }
        weight[node] = sum;
    }
    depth[n - 2] = 0;
    for (int node = n - 3; node >= 0; node--)
        depth[node] = (uint16_t)(depth[up[node]] + 1);
    memset(count, 0, (size_t)(limit + 1) * sizeof *count);
    for (int i = 0; i < n; i++) {
        int d = depth[leaf_up[i]] + 1;
        count[d < limit ? d : limit]++;
    }
}

/* Makes the lengths a complete code again after the deepest were cut: the sum of 2^(limit - length) becomes 2^limit. */
static void complete(int *count, int limit)
{
    int64_t over = -((int64_t)1 << limit);
    for (int l = 1; l <= limit; l++)
        over += (int64_t)count[l] << (limit - l);
    while (over > 0) { /* lengthen the longest that can be: the smallest loss */
        int l = limit - 1;
        while (count[l] == 0)
            l--;
        count[l]--;
        count[l + 1]++;
        over -= (int64_t)1 << (limit - l - 1);
    }
    for (; over < 0; over++) {
        count[limit]--;
        count[limit - 1]++;
    }
}

static unsigned reversed16(unsigned x)
{
    x = (x & 0x5555) << 1 | (x >> 1 & 0x5555);
    x = (x & 0x3333) << 2 | (x >> 2 & 0x3333);
    x = (x & 0x0f0f) << 4 | (x >> 4 & 0x0f0f);
    return (x & 0xff) << 8 | x >> 8;
}

/* Canonical codes from lengths (RFC 1951 section 3.2.2). */
static void assign(weir_code *code, const uint8_t *len, int n, int limit)
{
    unsigned count[16] = {0}, next[16] = {0};
    for (int i = 0; i < n; i++)
        count[len[i]]++;
    count[0] = 0;
    for (int l = 1; l <= limit; l++)
        next[l] = (next[l - 1] + count[l - 1]) << 1;
    for (int i = 0; i < n; i++) {
        const unsigned l = len[i];
        code[i] = (weir_code)(l ? reversed16(next[l]++) >> (16 - l) | l << 12 : 0);
    }
}

void weir_huff_build(weir_code *code, const uint32_t *freq, int n, int limit)
{
    leaf a[WEIR_SYMS], spare[WEIR_SYMS];
    uint8_t len[WEIR_SYMS] = {0};
    int count[16], m = 0;
    for (int i = 0; i < n; i++)
        if (freq[i])
            a[m++] = (leaf){freq[i], (uint16_t)i};
    sort_leaves(a, spare, m);
    count_depths(a, m, limit, count);
    complete(count, limit);
    for (int i = 0, l = limit; i < m; i++) {
        while (count[l] == 0)
            l--;
        count[l]--;
        len[a[i].sym] = (uint8_t)l;
    }
    assign(code, len, n, limit);
}

static unsigned fixed_len(int sym)
{
    return sym < 144 || sym >= 280 ? 8 : sym < 256 ? 9 : 7;
}

size_t weir_huff_fixed_bits(const uint32_t *freq, const uint32_t *distances)
{
    size_t bits = 0;
    for (int s = 0; s < WEIR_SYMS; s++)
        bits += freq[s] * (size_t)fixed_len(s);
    for (int s = 0; s < WEIR_DISTANCES; s++)
        bits += distances[s] * (size_t)5;
    return bits;
}

void weir_huff_fixed(weir_code *code, weir_code *distance)
{
    uint8_t len[WEIR_SYMS + 2]; /* 286 and 287 take part in the code but do not occur */
    weir_code all[WEIR_SYMS + 2];
    for (int i = 0; i < WEIR_SYMS + 2; i++)
        len[i] = (uint8_t)fixed_len(i);
    assign(all, len, WEIR_SYMS + 2, 9);
    memcpy(code, all, WEIR_SYMS * sizeof *code);
    memset(len, 5, WEIR_DISTANCES);
    assign(distance, len, WEIR_DISTANCES, 5);
}

/* --- the head of a dynamic block (RFC 1951 section 3.2.7) */

static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

static unsigned repeat_bits(int sym)
{
    return sym == 16 ? 2 : sym == 17 ? 3 : sym == 18 ? 7 : 0;
}

static void add(weir_huff_head *head, int sym, int extra)
{
    head->sym[head->n] = (uint8_t)sym;
    head->extra[head->n++] = (uint8_t)extra;
}

/* `run` equal lengths: 16 repeats the last one 3 to 6 times, 17 and 18 are 3 to 10 and 11 to 138 zeros. */
static void add_run(weir_huff_head *head, int len, int run)
{
    if (len > 0) {
        add(head, len, 0);
        run--;
    }
    const int most = len > 0 ? 6 : 138;
    while (run >= 3) {
        int k = run < most ? run : most;
        if (len > 0)
            add(head, 16, k - 3);
        else if (k <= 10)
            add(head, 17, k - 3);
        else
            add(head, 18, k - 11);
        run -= k;
    }
    for (; run > 0; run--)
        add(head, len, 0);
}

/* Symbols up to the last that has a code. */
static int used(const weir_code *code, int most, int least)
{
    while (most > least && code[most - 1] == 0)
        most--;
    return most;
}

void weir_huff_head_make(weir_huff_head *head, const weir_code *code, const weir_code *distance)
{
    uint8_t len[WEIR_SYMS + WEIR_DISTANCES];
    uint32_t freq[19] = {0};
    head->n = 0;
    head->n_lit = used(code, WEIR_SYMS, 257);
    head->n_distance = used(distance, WEIR_DISTANCES, 1);
    for (int i = 0; i < head->n_lit; i++)
        len[i] = (uint8_t)code_len(code[i]);
    for (int i = 0; i < head->n_distance; i++)
        len[head->n_lit + i] = (uint8_t)code_len(distance[i]);
    const int n = head->n_lit + head->n_distance;
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && len[end] == len[i];)
            end++;
        add_run(head, len[i], end - i);
    }
    for (int i = 0; i < head->n; i++)
        freq[head->sym[i]]++;
    weir_huff_build(head->code, freq, 19, 7);
    head->n_order = 19;
    while (head->n_order > 4 && head->code[order[head->n_order - 1]] == 0)
        head->n_order--;
    head->bits = 3 + 5 + 5 + 4 + 3 * (size_t)head->n_order;
    for (int s = 0; s < 19; s++)
        head->bits += freq[s] * (size_t)(code_len(head->code[s]) + repeat_bits(s));
}

void weir_huff_head_put(weir_bits *w, const weir_huff_head *head, bool final)
{
    bits_put(w, (unsigned) final | 2 << 1, 3);
    bits_put(w, (unsigned)(head->n_lit - 257), 5);
    bits_put(w, (unsigned)(head->n_distance - 1), 5);
    bits_put(w, (unsigned)(head->n_order - 4), 4);
    for (int i = 0; i < head->n_order; i++)
        bits_put(w, code_len(head->code[order[i]]), 3);
    for (int i = 0; i < head->n; i++) {
        weir_code c = head->code[head->sym[i]];
        bits_put(w, code_bits(c) | (unsigned)head->extra[i] << code_len(c), code_len(c) + repeat_bits(head->sym[i]));
    }
}
