/* search/moments.c: see moments.h. The portable kernel, and wide numbers. */
#include "search/moments_wide.h"

void weir_moments_ref(weir_sums *sums, const float *x, int64_t stride, const int32_t *row, int64_t m, int64_t nb)
{
    for (int64_t r = 0; r < m; r++)
        for (int64_t j = 0; j < nb; j++)
            weir_sums_add(&sums[j], x[row[r] * stride + j]);
}

void weir_pairs_ref(const weir_pairs *p, const float *x, int64_t stride, const int32_t *row, int64_t m, int64_t nb)
{
    for (int64_t r = 0; r < m; r++)
        for (int64_t j = 0; j < nb; j++) {
            const float v = x[row[r] * stride + j];
            weir_pairs_unit(p, j, v);
            p->count[3 * j + WEIR_FIRING] += weir_fires(v);
            for (int k = 0; k < p->n; k++) {
                const float y = p->y[k * m + r];
                weir_pairs_product(p, k, j, y, v);
                p->both[k * p->width + j] += weir_fires(v) && weir_fires(y);
            }
        }
}

void weir_wide_add(weir_wide *a, const weir_wide *b)
{
    uint64_t carry = 0;
    for (int i = 0; i < WEIR_SUM_WORDS; i++) {
        const unsigned __int128 t = (unsigned __int128)a->w[i] + b->w[i] + carry;
        a->w[i] = (uint64_t)t;
        carry = (uint64_t)(t >> 64);
    }
}

void weir_wide_sub(weir_wide *a, const weir_wide *b)
{
    uint64_t carry = 1; /* a - b = a + ~b + 1 */
    for (int i = 0; i < WEIR_SUM_WORDS; i++) {
        const unsigned __int128 t = (unsigned __int128)a->w[i] + ~b->w[i] + carry;
        a->w[i] = (uint64_t)t;
        carry = (uint64_t)(t >> 64);
    }
}

void weir_sums_merge(weir_sums *a, const weir_sums *b)
{
    for (int p = 0; p < 4; p++)
        weir_wide_add(&a->power[p], &b->power[p]);
    a->beyond += b->beyond;
}

void weir_wide_add_double(weir_wide *a, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t field = bits >> 52 & 2047, m = (bits & ((UINT64_C(1) << 52) - 1)) | (uint64_t)(field > 0) << 52;
    weir_wide_add_scaled(a, m, (int)(field ? field : 1) - 1075, bits >> 63);
}

double weir_wide_to_double(const weir_wide *a)
{
    const weir_big b = weir_big_of(a);
    return weir_big_to_double(&b, -WEIR_SUM_FRACTION);
}
