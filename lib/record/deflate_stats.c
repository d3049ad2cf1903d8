/* record/deflate_stats.c: what a look at some of the bytes tells. */
#include "deflate.h"

/* Four tables, so that equal neighbours do not wait for each other. */
void weir_count_bytes(uint32_t count[256], const uint8_t *p, size_t n)
{
    uint32_t part[3][256];
    size_t i = 0;
    if (n >= 512) {
        memset(part, 0, sizeof part);
        for (; i + 4 <= n; i += 4) {
            count[p[i]]++;
            part[0][p[i + 1]]++;
            part[1][p[i + 2]]++;
            part[2][p[i + 3]]++;
        }
        for (int b = 0; b < 256; b++)
            count[b] += part[0][b] + part[1][b] + part[2][b];
    }
    for (; i < n; i++)
        count[p[i]]++;
}

enum { GROUP = 64 };

/* The g-th of the groups to look at, one of every `of`: places that no period of the data's falls into step with. */
static const uint8_t *sampled(const uint8_t *p, size_t g, size_t of)
{
    uint32_t mixed = (uint32_t)g * 0x9e3779b1u;
    return p + (g * of + ((uint64_t)mixed * of >> 32)) * GROUP;
}

/* By collisions: pairs of equal bytes are 1/256 of all pairs where bytes are even, and 1.1 times that at 7.86 bits a
 * byte. Bytes that come in runs are not noise, however even. */
bool weir_is_noise(const uint8_t *p, size_t n)
{
    enum { LEAST = 16, MOST = 32 };
    const size_t groups = n / (2 * GROUP) < MOST ? n / (2 * GROUP) : MOST, taken = groups * GROUP;
    if (groups < LEAST)
        return false;
    uint32_t count[256] = {0}, again = 0;
    uint64_t pairs = 0;
    for (size_t g = 0; g < groups; g++) {
        const uint8_t *q = sampled(p, g, n / taken);
        for (int i = 0; i < GROUP; i++)
            count[q[i]]++;
        for (int i = 1; i < GROUP; i++)
            again += q[i] == q[i - 1];
    }
    for (int b = 0; b < 256; b++)
        pairs += (uint64_t)count[b] * (count[b] - (count[b] > 0));
    return pairs * 256 * 10 < (uint64_t)taken * (taken - 1) * 11 && again < taken / 32;
}

/* Bytes that equal those one place further are all the same: compared by the C library, which has vectors for it. */
size_t weir_tail(const uint8_t *p, size_t n)
{
    static const size_t steps[] = {4096, 64, 1};
    size_t begin = n - 1;
    for (int s = 0; s < 3; s++)
        while (begin >= steps[s] && !memcmp(p + begin - steps[s], p + begin - steps[s] + 1, steps[s]))
            begin -= steps[s];
    return n - begin;
}

enum { ONE_IN = 8 };

void weir_count_sample(const weir_deflate_kern *kern, uint32_t count[256], const uint8_t *p, size_t n)
{
    uint8_t lo, hi;
    memset(count, 0, 256 * sizeof *count);
    for (size_t g = 0; g < n / (GROUP * ONE_IN); g++) {
        const uint8_t *q = sampled(p, g, ONE_IN);
        for (int i = 0; i < GROUP; i++)
            count[q[i]]++;
    }
    kern->range(p, n, &lo, &hi);
    for (int s = 0; s < 256; s++) {
        const uint8_t turned = (uint8_t)(s << 1 | s >> 7);
        count[s] = turned >= lo && turned <= hi ? count[s] * ONE_IN + 1 : 0;
    }
}
