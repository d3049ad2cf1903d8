/* search/moments_lanes.h: the fast kernels of moments.h. Included by a file for each instruction set, which says first
 * what a register of doubles is: LANES of them, type vd, with vi as many 64-bit integers.
 *
 * Usual values, 2^-20 <= |x| < 2^8 and 0, are whole multiples of 2^-43: x = X 2^-43, |X| < 2^51. Their powers are split
 * into limbs of 51 bits without losing any, by nothing but the rounding of fused multiply-adds:
 *
 *     t = fma(a, b, M) with M = 1.5 * 2^52 units: read as an integer, t is M's bits plus ab in units, rounded.
 *     u = fma(a, b, M + M' - t) with M' for a unit 2^51 times smaller: M's bits plus what t left of ab, in that unit.
 *
 * Nothing is left after u where a and b have at most 51 bits. With X^2 = H 2^51 + L, |L| <= 2^50:
 *
 *     X^3 = H X 2^51 + L X,    X^4 = H^2 2^102 + 2 H L 2^51 + L^2,    each of these products in two limbs.
 *
 * Limbs are added up as integers of 64 bits, for at most 2^11 rows. Values that are not usual are taken out beforehand
 * and added one by one (moments_wide.h). All of it is exact: neither the width of a register nor the way that a value
 * takes can be seen in a sum. */
#ifndef WEIR_SEARCH_MOMENTS_LANES_H
#define WEIR_SEARCH_MOMENTS_LANES_H

#include "search/moments_wide.h"

enum {
    BLOCK = 64,      /* units at most */
    CHUNK = 64,      /* rows that are packed together: 16 KiB stay in the first cache */
    SPILL = 1 << 11, /* rows that limbs hold */
    COLUMNS = 8,     /* whose products are summed up together */
};

/* Rows of a chunk without what is not usual. */
typedef struct packed {
    _Alignas(64) float x[CHUNK][BLOCK];
    uint64_t odd[CHUNK];  /* bit j: unit j's value is not usual, and 0 in x */
    uint64_t fire[CHUNK]; /* bit j: unit j's value is finite and > 0 */
    int n;
} packed;

static void pack(packed *p, const float *x, int64_t stride, const int32_t *row, int64_t m, int64_t nb)
{
    p->n = m < CHUNK ? (int)m : CHUNK;
    for (int r = 0; r < p->n; r++) {
        const float *from = x + row[r] * stride, *ahead = x + row[r + 8 < m ? r + 8 : m - 1] * stride;
        for (int j = 0; j < nb; j += 16) /* rows lie far apart: the processor does not guess them */
            __builtin_prefetch(ahead + j);
        uint64_t odd = 0, fire = 0;
        for (int j = 0; j < nb; j += PACK) {
            const pack_bits b = pack_lanes(p->x[r] + j, from + j, nb - j < PACK ? (int)nb - j : PACK);
            odd |= (uint64_t)b.odd << j;
            fire |= (uint64_t)b.fire << j;
        }
        p->odd[r] = odd;
        p->fire[r] = fire;
    }
    memset(p->fire + p->n, 0, sizeof(uint64_t) * (size_t)(CHUNK - p->n));
}

/* 1.5 * 2^52 units of 2^-u. */
#define MAGIC(u) (0x1.8p52 * 0x1p-##u)

/* A limb: of which power, its unit, and how many terms a row adds to it. */
typedef struct limb {
    int power, unit, terms;
    double magic;
} limb;
enum { LIMBS = 10 };
static const limb limbs[LIMBS] = {
    {0, 43, 1, MAGIC(43)}, {1, 35, 1, MAGIC(35)}, /* these two also hold a product of two values */
    {1, 86, 1, MAGIC(86)}, {2, 27, 1, MAGIC(27)}, {2, 78, 2, MAGIC(78)},   {2, 129, 1, MAGIC(129)},
    {3, 19, 1, MAGIC(19)}, {3, 70, 2, MAGIC(70)}, {3, 121, 2, MAGIC(121)}, {3, 172, 1, MAGIC(172)},
};

/* Adds what a limb has got in so many rows, without the magic. */
static inline void limb_end(weir_wide *sum, const limb *l, uint64_t total, int64_t rows)
{
    uint64_t bits;
    memcpy(&bits, &l->magic, sizeof bits);
    weir_wide_add_limb(sum, (int64_t)(total - bits * (uint64_t)(rows * l->terms)), WEIR_SUM_FRACTION - l->unit);
}

/* LANES units of a chunk: all limbs of all powers. */
static inline void group_powers(const packed *p, int at, uint64_t total[LIMBS][BLOCK])
{
    const vd m43 = vd_set(MAGIC(43)), m35 = vd_set(MAGIC(35)), m86 = vd_set(MAGIC(86)), m27 = vd_set(MAGIC(27)),
             m78 = vd_set(MAGIC(78)), m19 = vd_set(MAGIC(19)), m70 = vd_set(MAGIC(70)), m121 = vd_set(MAGIC(121)),
             k78 = vd_set(MAGIC(27) + MAGIC(78)), k129 = vd_set(MAGIC(78) + MAGIC(129)),
             k70 = vd_set(MAGIC(19) + MAGIC(70)), k121 = vd_set(MAGIC(70) + MAGIC(121)),
             k172 = vd_set(MAGIC(121) + MAGIC(172));
    vi a[LIMBS];
    for (int i = 0; i < LIMBS; i++)
        a[i] = vi_load(&total[i][at]);
    for (int r = 0; r < p->n; r++) {
        const vd x = vd_of_floats(&p->x[r][at]);
        vd t = vd_fma(x, x, m35);
        a[0] = vi_add(a[0], vd_add(x, m43));
        a[1] = vi_add(a[1], t);
        const vd h = vd_sub(t, m35), l = vd_fms(x, x, h), l2 = vd_add(l, l);
        a[2] = vi_add(a[2], vd_add(l, m86));
        t = vd_fma(h, x, m27);
        a[3] = vi_add(a[3], t);
        a[4] = vi_add(a[4], vd_fma(h, x, vd_sub(k78, t)));
        t = vd_fma(l, x, m78);
        a[4] = vi_add(a[4], t);
        a[5] = vi_add(a[5], vd_fma(l, x, vd_sub(k129, t)));
        t = vd_fma(h, h, m19);
        a[6] = vi_add(a[6], t);
        a[7] = vi_add(a[7], vd_fma(h, h, vd_sub(k70, t)));
        t = vd_fma(h, l2, m70);
        a[7] = vi_add(a[7], t);
        a[8] = vi_add(a[8], vd_fma(h, l2, vd_sub(k121, t)));
        t = vd_fma(l, l, m121);
        a[8] = vi_add(a[8], t);
        a[9] = vi_add(a[9], vd_fma(l, l, vd_sub(k172, t)));
    }
    for (int i = 0; i < LIMBS; i++)
        vi_store(&total[i][at], a[i]);
}

static void odd_powers(weir_sums *sums, const packed *p, const float *x, int64_t stride, const int32_t *row)
{
    for (int r = 0; r < p->n; r++)
        for (uint64_t odd = p->odd[r]; odd; odd &= odd - 1) {
            const int j = __builtin_ctzll(odd);
            weir_sums_add(&sums[j], x[row[r] * stride + j]);
        }
}

/* m <= SPILL */
static void moments_some(weir_sums *sums, const float *x, int64_t stride, const int32_t *row, int64_t m, int64_t nb)
{
    packed p;
    _Alignas(64) uint64_t total[LIMBS][BLOCK];
    memset(total, 0, sizeof total);
    for (int64_t r = 0; r < m; r += CHUNK) {
        pack(&p, x, stride, row + r, m - r, nb);
        for (int at = 0; at < nb; at += LANES)
            group_powers(&p, at, total);
        odd_powers(sums, &p, x, stride, row + r);
    }
    for (int64_t j = 0; j < nb; j++) {
#pragma GCC unroll 10 /* makes constants of shifts */
        for (int i = 0; i < LIMBS; i++)
            limb_end(&sums[j].power[limbs[i].power], &limbs[i], total[i][j], m);
    }
}

static inline void moments(weir_sums *sums, const float *x, int64_t stride, const int32_t *row, int64_t m, int64_t nb)
{
    for (int64_t r = 0; r < m; r += SPILL)
        moments_some(sums, x, stride, row + r, m - r < SPILL ? m - r : SPILL, nb);
}

/* --- pairs */

/* LANES units of a chunk: x, and the two limbs of x^2. */
static inline void group_squares(const packed *p, int at, uint64_t total[3][BLOCK])
{
    const vd m43 = vd_set(MAGIC(43)), m35 = vd_set(MAGIC(35)), k86 = vd_set(MAGIC(35) + MAGIC(86));
    vi a = vi_load(&total[0][at]), b = vi_load(&total[1][at]), c = vi_load(&total[2][at]);
    for (int r = 0; r < p->n; r++) {
        const vd x = vd_of_floats(&p->x[r][at]), t = vd_fma(x, x, m35);
        a = vi_add(a, vd_add(x, m43));
        b = vi_add(b, t);
        c = vi_add(c, vd_fma(x, x, vd_sub(k86, t)));
    }
    vi_store(&total[0][at], a);
    vi_store(&total[1][at], b);
    vi_store(&total[2][at], c);
}

/* LANES units of a chunk times a column: two limbs. */
static inline void group_products(const packed *p, int at, const double *y, uint64_t total[2][BLOCK])
{
    const vd m35 = vd_set(MAGIC(35)), k86 = vd_set(MAGIC(35) + MAGIC(86));
    vi a = vi_load(&total[0][at]), b = vi_load(&total[1][at]);
    for (int r = 0; r < p->n; r++) {
        const vd x = vd_of_floats(&p->x[r][at]), v = vd_set(y[r]), t = vd_fma(x, v, m35);
        a = vi_add(a, t);
        b = vi_add(b, vd_fma(x, v, vd_sub(k86, t)));
    }
    vi_store(&total[0][at], a);
    vi_store(&total[1][at], b);
}

/* A column in the rows of a chunk. */
typedef struct column {
    double y[CHUNK];    /* 0 where it is not usual */
    uint64_t odd, fire; /* bit r: row r */
} column;

static void pack_column(column *c, const float *y, int n)
{
    c->odd = c->fire = 0;
    for (int r = 0; r < n; r++) {
        const float size = y[r] < 0 ? -y[r] : y[r];
        const bool usual = size == 0 || (size >= 0x1p-20f && size < 0x1p8f);
        c->y[r] = usual ? (double)y[r] : 0;
        c->odd |= (uint64_t)!usual << r;
        c->fire |= (uint64_t)weir_fires(y[r]) << r;
    }
}

/* Bit j of a[r] becomes bit r of a[j]: squares of 32, 16, ... bits beside the diagonal change places. */
static void transpose(uint64_t a[64])
{
    uint64_t low = 0xffffffff;
    for (int side = 32; side; side >>= 1, low ^= low << side)
        for (int i = 0; i < 64; i = (i + side + 1) & ~side) {
            const uint64_t t = (a[i] >> side ^ a[i + side]) & low;
            a[i] ^= t << side;
            a[i + side] ^= t;
        }
}

/* Products in which something is not usual. */
static void odd_products(const weir_pairs *s, int k, const packed *p, const column *c, const float *y, const float *x,
                         int64_t stride, const int32_t *row, int64_t nb)
{
    const uint64_t all = ~UINT64_C(0) >> (64 - nb);
    for (int r = 0; r < p->n; r++)
        for (uint64_t odd = c->odd >> r & 1 ? all : p->odd[r]; odd; odd &= odd - 1) {
            const int j = __builtin_ctzll(odd);
            weir_pairs_product(s, k, j, y[r], x[row[r] * stride + j]);
        }
}

static void odd_units(const weir_pairs *s, const packed *p, const float *x, int64_t stride, const int32_t *row)
{
    for (int r = 0; r < p->n; r++)
        for (uint64_t odd = p->odd[r]; odd; odd &= odd - 1) {
            const int j = __builtin_ctzll(odd);
            weir_pairs_unit(s, j, x[row[r] * stride + j]);
        }
}

/* Sums of the units alone; m <= SPILL. */
static void units_some(const weir_pairs *s, const float *x, int64_t stride, const int32_t *row, int64_t m, int64_t nb)
{
    packed p;
    _Alignas(64) uint64_t total[3][BLOCK];
    memset(total, 0, sizeof total);
    for (int64_t r = 0; r < m; r += CHUNK) {
        pack(&p, x, stride, row + r, m - r, nb);
        for (int at = 0; at < nb; at += LANES)
            group_squares(&p, at, total);
        odd_units(s, &p, x, stride, row + r);
        transpose(p.fire);
        for (int64_t j = 0; j < nb; j++)
            s->count[3 * j + WEIR_FIRING] += __builtin_popcountll(p.fire[j]);
    }
    for (int64_t j = 0; j < nb; j++) {
        limb_end(&s->sum[j], &limbs[0], total[0][j], m);
        limb_end(&s->square[j], &limbs[1], total[1][j], m);
        limb_end(&s->square[j], &limbs[2], total[2][j], m);
    }
}

/* Products with columns [from, to), at most COLUMNS of them; y begins with the first row. */
static void products_some(const weir_pairs *s, int from, int to, const float *y, int64_t ystride, const float *x,
                          int64_t stride, const int32_t *row, int64_t m, int64_t nb)
{
    packed p;
    column c;
    _Alignas(64) uint64_t total[COLUMNS][2][BLOCK];
    memset(total, 0, sizeof total);
    for (int64_t r = 0; r < m; r += CHUNK) {
        pack(&p, x, stride, row + r, m - r, nb);
        transpose(p.fire);
        for (int k = from; k < to; k++) {
            const float *yk = y + k * ystride + r;
            pack_column(&c, yk, p.n);
            for (int at = 0; at < nb; at += LANES)
                group_products(&p, at, c.y, total[k - from]);
            odd_products(s, k, &p, &c, yk, x, stride, row + r, nb);
            for (int64_t j = 0; j < nb; j++)
                s->both[k * s->width + j] += __builtin_popcountll(p.fire[j] & c.fire);
        }
    }
    for (int k = from; k < to; k++)
        for (int64_t j = 0; j < nb; j++) {
            limb_end(&s->product[k * s->width + j], &limbs[1], total[k - from][0][j], m);
            limb_end(&s->product[k * s->width + j], &limbs[2], total[k - from][1][j], m);
        }
}

static inline void pairs(const weir_pairs *s, const float *x, int64_t stride, const int32_t *row, int64_t m, int64_t nb)
{
    for (int64_t r = 0; r < m; r += SPILL) {
        const int64_t n = m - r < SPILL ? m - r : SPILL;
        units_some(s, x, stride, row + r, n, nb);
        for (int k = 0; k < s->n; k += COLUMNS)
            products_some(s, k, k + COLUMNS < s->n ? k + COLUMNS : s->n, s->y + r, m, x, stride, row + r, n, nb);
    }
}

#endif
