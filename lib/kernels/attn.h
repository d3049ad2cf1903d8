/* kernels/attn.h: what the forward and the backward of attention share: where keys and values lie, which keys a query
 * sees, and a few queries of one head multiplied with keys or values. */
#ifndef WEIR_KERNELS_ATTN_H
#define WEIR_KERNELS_ATTN_H

#include "kernels/kern.h"

static inline float *weir_attn_key_panel(const weir_attn *a, const weir_attn_seq *s, int64_t kv, int64_t panel)
{
    return s->kp + (kv * weir_ceil_div(s->cap, WEIR_PANEL) + panel) * WEIR_PANEL * a->d;
}

static inline float *weir_attn_values(const weir_attn *a, const weir_attn_seq *s, int64_t kv)
{
    return s->v + kv * s->cap * a->d;
}

static inline int64_t weir_attn_first_key(const weir_attn *a, int64_t pos)
{
    return a->window > 0 ? weir_max64(0, pos - a->window + 1) : 0;
}

/* Up to 8 successive queries of one head; the first stands at position `pos` of its sequence and in x[0]. */
typedef struct weir_attn_rows {
    const weir_kern *kern;
    const weir_attn *a;
    int rows;
    int64_t pos;
} weir_attn_rows;

/* y[i][j] = chain over the head size of x[i] with lane j of the panels [D][48], for the keys from the first row's first
 * to the last row's last; as far as whole vectors reach, y is overwritten before and after them. packed: 8 D floats. */
void weir_attn_rows_dot(const weir_attn_rows *r, const float *x, int64_t ldx, const float *panels, float *y,
                        int64_t ldy, float *packed);

/* z[i] = chain over the keys j that row i sees, ascending, of p[i][j] v[j]; NaN as we store it. v [keys, ldv] is read
 * in whole vectors of 16: what lies beyond its D columns is read, not used. packed: 8 floats for each key. */
void weir_attn_rows_mix(const weir_attn_rows *r, const float *p, int64_t ldp, const float *v, int64_t ldv, float *z,
                        int64_t ldz, float *packed);

#endif
