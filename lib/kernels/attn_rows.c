/* kernels/attn_rows.c: up to 8 successive queries of one head, multiplied with keys or values by the tiles of the GEMM.
 *
 * Keys lie in panels [D][48], so that scores are tiles of q (k runs over the head size) with 48 keys; values lie as
 * [keys][D], so that z is tiles of the pattern (k runs over the keys) with 48 columns. Only visible keys ever enter a
 * row's arithmetic: the scores of others are computed in a tile and thrown away, and a row's chain over the values
 * covers exactly its own range, in ascending order: what all rows share in tiles of many rows, the ends of the range in
 * tiles of one row. So a row has the same bits in whichever block it stands.
 */
#include <string.h>

#include "kernels/attn.h"

#define BLOCK WEIR_TILE_ROWS

void weir_attn_rows_dot(const weir_attn_rows *r, const float *x, int64_t ldx, const float *panels, float *y,
                        int64_t ldy, float *packed)
{
    const int64_t d = r->a->d, lo = weir_attn_first_key(r->a, r->pos), hi = r->pos + r->rows;
    weir_tile t = {.mr = r->rows, .k = d, .a = x, .lda = r->rows, .ldb = WEIR_PANEL, .ldc = ldy};
    if (r->rows > 1) {
        const weir_f32u *row[BLOCK];
        for (int i = 0; i < r->rows; i++)
            row[i] = x + i * ldx;
        r->kern->transpose(packed, r->rows, row, r->rows, d);
        t.a = packed;
    }
    for (int64_t p = lo / WEIR_PANEL; p * WEIR_PANEL < hi; p++) {
        t.b = panels + p * WEIR_PANEL * d;
        t.c = y + p * WEIR_PANEL;
        t.nv = (int)weir_min64(3, weir_ceil_div(hi - p * WEIR_PANEL, WEIR_LANES));
        r->kern->tile[WEIR_F32](&t);
    }
}

/* The pattern of the rows, and the keys [from, to) that all of them see. */
typedef struct mix {
    const float *p, *packed;
    int64_t ldp, ldv, from, to;
} mix;

/* One row's chain over the keys [from, to) goes on in t.c. */
static void row_mix(const weir_kern *kern, weir_tile t, const float *p, const float *v, int64_t from, int64_t to)
{
    if (from >= to)
        return;
    t.mr = 1;
    t.lda = 1;
    t.k = to - from;
    t.a = p + from;
    t.b = v + from * t.ldb;
    kern->tile[WEIR_F32](&t);
}

/* Chains of all rows over 16 nv columns of v into z [rows][48]. What a row sees before the keys that all see (under a
 * window) comes first, row by row; then the keys that all see, and the steps after them. */
static void tile_mix(const weir_attn_rows *r, const mix *m, const float *v, int nv, float *z)
{
    weir_tile t = {.nv = nv, .ldb = m->ldv, .ldc = WEIR_PANEL};
    if (weir_attn_first_key(r->a, r->pos) < m->from) {
        t.flags = WEIR_TILE_ADD;
        memset(z, 0, (size_t)(BLOCK * WEIR_PANEL) * sizeof *z);
        for (int i = 0; i < r->rows; i++) {
            t.c = z + i * WEIR_PANEL;
            row_mix(r->kern, t, m->p + i * m->ldp, v, weir_attn_first_key(r->a, r->pos + i),
                    weir_min64(m->from, r->pos + i + 1));
        }
    }
    if (m->from == m->to)
        return;
    t.c = z;
    t.flags |= WEIR_TILE_STAIRS;
    t.mr = r->rows;
    t.lda = r->rows;
    t.k = m->to - m->from;
    t.a = m->packed;
    t.b = v + m->from * m->ldv;
    r->kern->tile[WEIR_F32](&t);
}

void weir_attn_rows_mix(const weir_attn_rows *r, const float *p, int64_t ldp, const float *v, int64_t ldv, float *z,
                        int64_t ldz, float *packed)
{
    const int64_t d = r->a->d, end = r->pos + r->rows;
    mix m = {.p = p, .ldp = ldp, .ldv = ldv, .from = weir_attn_first_key(r->a, end - 1), .to = r->pos + 1};
    if (m.from >= m.to) /* a window so small that no key is seen by all: row by row */
        m.from = m.to = end;
    m.packed = p + m.from;
    if (r->rows > 1 && m.from < m.to) {
        const weir_f32u *row[BLOCK];
        for (int i = 0; i < r->rows; i++)
            row[i] = p + i * ldp + m.from;
        r->kern->transpose(packed, r->rows, row, r->rows, end - m.from);
        m.packed = packed;
    }
    const int64_t vecs = weir_ceil_div(d, WEIR_LANES), groups = weir_ceil_div(vecs, 3);
    for (int64_t g = 0; g < groups; g++) {
        const int64_t c0 = vecs * g / groups * WEIR_LANES, c1 = vecs * (g + 1) / groups * WEIR_LANES;
        float block[BLOCK * WEIR_PANEL];
        tile_mix(r, &m, v + c0, (int)(c1 - c0) / WEIR_LANES, block);
        for (int i = 0; i < r->rows; i++)
            r->kern->score_row(z + i * ldz + c0, block + i * WEIR_PANEL, weir_min64(c1, d) - c0, 1.0f,
                               0.0f); /* a copy, NaN made the one we store */
    }
}
