/* Norms and residual adds. Where no hook stands between two steps they are one pass over the rows; the kernels give the
 * same bits either way. */
#include "state.h"

static weir_norm norm_of(const weir_run *r, const weir_norm_at *n, const float *x)
{
    const weir_spec *s = r->spec;
    return (weir_norm){.rms = s->rms,
                       .eps = s->eps,
                       .offset = s->norm_offset,
                       .w = n->w.w,
                       .b = n->w.b,
                       .rows = r->rows.n * weir_norm_heads(s, n->scale),
                       .c = weir_norm_width(s, n->scale),
                       .x = x};
}

static weir_site normalized(const weir_norm_at *n)
{
    return (weir_site)(n->scale + 1);
}

static weir_site norm_out(const weir_norm_at *n)
{
    return (weir_site)(n->scale + 2);
}

/* Does a hook look inside the norm? */
static bool inside(const weir_run *r, const weir_norm_at *n)
{
    return weir_run_want(r, n->layer, n->scale) != WEIR_NONE || weir_run_want(r, n->layer, normalized(n)) != WEIR_NONE;
}

weir_status weir_run_norm(weir_run *r, const weir_norm_at *n, const float *x, float *out)
{
    weir_norm k = norm_of(r, n, x);
    if (!inside(r, n)) {
        k.out = out;
        weir_norm_run(r->kern, r->threads, &k);
        return WEIR_OK;
    }
    k.scale = r->b.scale;
    weir_norm_run(r->kern, r->threads, &k);
    WEIR_TRY(weir_run_hear(r, n->layer, n->scale, k.scale));
    weir_tape_scale(r, n->layer, n->scale, k.scale, k.rows);
    k.norm = r->b.norm;
    weir_norm_from_scale(r->kern, r->threads, &k);
    WEIR_TRY(weir_run_hear(r, n->layer, normalized(n), k.norm));
    k.out = out;
    weir_norm_from_norm(r->kern, r->threads, &k);
    return WEIR_OK;
}

/* Where a norm of the stream leaves its result. */
static float *read_by_next(const weir_run *r, const weir_norm_at *n)
{
    return n->scale == WEIR_SITE_LNF_SCALE ? r->b.final : r->b.h;
}

weir_status weir_run_norm_stream(weir_run *r, const weir_norm_at *n)
{
    float *out = read_by_next(r, n);
    if (r->normed)
        r->normed = false;
    else
        WEIR_TRY(weir_run_norm(r, n, r->b.x, out));
    return weir_run_hear(r, n->layer, norm_out(n), out);
}

/* Can the norm be computed together with the sum, which is heard at `site`? Not if a hook may change the sum on the way
 * (at the end of a block also as the next block's resid_pre), looks inside the norm, or ends the pass before it. */
static bool fusable(const weir_run *r, int64_t layer, weir_site site, const weir_norm_at *next)
{
    if (!weir_run_needs(r, next->layer, norm_out(next)) || inside(r, next))
        return false;
    if (weir_run_want(r, layer, site) == WEIR_WRITE)
        return false;
    return site != WEIR_SITE_RESID_POST || layer + 1 == r->spec->L ||
           weir_run_want(r, layer + 1, WEIR_SITE_RESID_PRE) != WEIR_WRITE;
}

weir_status weir_run_add_stream(weir_run *r, int64_t layer, weir_site site, const float *y, const weir_norm_at *next)
{
    float *x = r->b.x, *sum = weir_tape_sum(r, layer, site);
    int64_t rows = r->rows.n, c = r->spec->C;
    if (next && fusable(r, layer, site, next)) {
        weir_norm k = norm_of(r, next, sum);
        k.out = read_by_next(r, next);
        weir_add_norm(r->kern, r->threads, sum, x, y, rows, c, &k);
        r->normed = true;
    } else {
        weir_op_add(r->kern, r->threads, sum, x, y, rows * c);
    }
    r->b.x = sum;
    return weir_run_hear(r, layer, site, sum);
}
