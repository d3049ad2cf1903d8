/* unicode.c: lookups in the generated tables. */
#include "unicode.h"

#include "base/utf8.h"

#include "unicode/tables.inc"

enum { BLOCK = 128 };
enum {
    S_BASE = 0xac00,
    L_BASE = 0x1100,
    V_BASE = 0x1161,
    T_BASE = 0x11a7,
    L_COUNT = 19,
    V_COUNT = 21,
    T_COUNT = 28,
    S_COUNT = L_COUNT * V_COUNT * T_COUNT
};

const uint8_t *const weir_cp_ascii = class_page; /* the first page is code points 0 to 127 */

uint8_t weir_cp_class(uint32_t cp)
{
    return cp < WEIR_CP_INVALID ? class_page[class_index[cp / BLOCK] * BLOCK + cp % BLOCK] : 0;
}

uint8_t weir_cp_combining(uint32_t cp)
{
    return cp < WEIR_CP_INVALID ? combining_page[combining_index[cp / BLOCK] * BLOCK + cp % BLOCK] : 0;
}

static int decompose_hangul(uint32_t index, uint32_t out[4])
{
    out[0] = L_BASE + index / (V_COUNT * T_COUNT);
    out[1] = V_BASE + index % (V_COUNT * T_COUNT) / T_COUNT;
    out[2] = T_BASE + index % T_COUNT;
    return out[2] == T_BASE ? 2 : 3;
}

int weir_cp_decompose(uint32_t cp, uint32_t out[4])
{
    if (cp >= S_BASE && cp < S_BASE + S_COUNT)
        return decompose_hangul(cp - S_BASE, out);
    size_t low = 0, high = sizeof decomp_point / sizeof *decomp_point;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (decomp_point[mid] < cp)
            low = mid + 1;
        else
            high = mid;
    }
    out[0] = cp;
    if (low == sizeof decomp_point / sizeof *decomp_point || decomp_point[low] != cp)
        return 1;
    int n = decomp_offset[low + 1] - decomp_offset[low];
    for (int i = 0; i < n; i++)
        out[i] = decomp_part[decomp_offset[low] + i];
    return n;
}

static uint32_t compose_hangul(uint32_t first, uint32_t second)
{
    if (first >= L_BASE && first < L_BASE + L_COUNT && second >= V_BASE && second < V_BASE + V_COUNT)
        return S_BASE + ((first - L_BASE) * V_COUNT + second - V_BASE) * T_COUNT;
    if (first >= S_BASE && first < S_BASE + S_COUNT && (first - S_BASE) % T_COUNT == 0 && second > T_BASE &&
        second < T_BASE + T_COUNT)
        return first + second - T_BASE;
    return 0;
}

uint32_t weir_cp_compose(uint32_t first, uint32_t second)
{
    uint32_t hangul = compose_hangul(first, second);
    if (hangul)
        return hangul;
    size_t n = sizeof pair_first / sizeof *pair_first, low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (pair_first[mid] < first || (pair_first[mid] == first && pair_second[mid] < second))
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && pair_first[low] == first && pair_second[low] == second ? pair_result[low] : 0;
}

uint32_t weir_cp_at(const uint8_t *p, size_t n, int *len)
{
    *len = 1;
    if (p[0] < 0x80)
        return p[0];
    int k = weir_utf8_len((const char *)p, n);
    if (!k)
        return WEIR_CP_INVALID;
    *len = k;
    uint32_t cp = p[0] & (0xffu >> (k + 1));
    for (int i = 1; i < k; i++)
        cp = cp << 6 | (p[i] & 0x3f);
    return cp;
}

uint8_t weir_cp_class_at(const uint8_t *p, size_t n, int *len)
{
    return weir_cp_class(weir_cp_at(p, n, len));
}

size_t weir_cp_before(const uint8_t *p, size_t end)
{
    for (size_t back = 1; back <= 4 && back <= end; back++) {
        int len;
        if (weir_cp_at(p + end - back, back, &len) != WEIR_CP_INVALID)
            return (size_t)len == back ? end - back : end - 1;
    }
    return end - 1;
}
