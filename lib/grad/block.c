/* A block on the way back, and norms. */
#include <string.h>

#include "impl.h"

weir_status weir_grad_norm(weir_grad *g, const weir_grad_norm_at *n)
{
    const weir_spec *s = g->spec;
    const weir_run *r = g->run;
    const int64_t layer = n->at.layer;
    const weir_site scale = n->at.scale, normalized = (weir_site)(scale + 1);
    const weir_norm_back back = {.rms = s->rms,
                                 .eps = s->eps,
                                 .offset = s->norm_offset,
                                 .w = n->at.w.w,
                                 .rows = r->rows.n * weir_norm_heads(s, scale),
                                 .c = weir_norm_width(s, scale),
                                 .x = n->x,
                                 .scale = r->tape.layer[layer < 0 ? s->L : layer].scale[weir_tape_norm(scale)],
                                 .dy = n->dy,
                                 .d_norm = n->add ? n->dy : n->dx,
                                 .d_scale = g->b.dscale,
                                 .dx = n->dx,
                                 .add = n->add};
    if (!weir_grad_looks(g, layer, scale) && !weir_grad_looks(g, layer, normalized)) {
        weir_norm_backward(g->kern, r->threads, &back);
        return WEIR_OK;
    }
    weir_norm_back_gain(g->kern, r->threads, &back);
    WEIR_TRY(weir_grad_arrive(g, layer, normalized, back.d_norm));
    weir_norm_back_scale(g->kern, r->threads, &back);
    WEIR_TRY(weir_grad_arrive(g, layer, scale, back.d_scale));
    weir_norm_back_x(g->kern, r->threads, &back);
    return WEIR_OK;
}

/* The norm that a sublayer reads: b.dh to the stream. */
static weir_status norm_before(weir_grad *g, const weir_grad_at *at, weir_site scale, const float *x, float *dx)
{
    const weir_grad_norm_at n = {
        .at = {scale == WEIR_SITE_LN1_SCALE ? at->norms->ln1 : at->norms->ln2, at->layer, scale},
        .x = x,
        .dy = g->b.dh,
        .dx = dx,
        .add = true};
    return weir_grad_norm(g, &n);
}

/* mid = pre + attention(pre), post = mid + MLP(mid). */
static weir_status serial(weir_grad *g, const weir_grad_at *at)
{
    float *dx = g->b.dx, *dy;
    WEIR_TRY(weir_grad_branch(g, at->layer, WEIR_SITE_MLP_OUT, dx, &dy));
    WEIR_TRY(weir_grad_mlp(g, at, dy));
    WEIR_TRY(norm_before(g, at, WEIR_SITE_LN2_SCALE, at->tape->mid, dx));
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_RESID_MID, dx));
    WEIR_TRY(weir_grad_branch(g, at->layer, WEIR_SITE_ATTN_OUT, dx, &dy));
    WEIR_TRY(weir_grad_attention(g, at, dy));
    return norm_before(g, at, WEIR_SITE_LN1_SCALE, at->tape->x, dx);
}

/* post = pre + (attention(pre) + MLP(pre)): what comes back adds up apart from dx, which both read. */
static weir_status parallel(weir_grad *g, const weir_grad_at *at)
{
    float *dx = g->b.dx, *sum = g->b.sum, *dy;
    memcpy(sum, dx, (size_t)(weir_grad_rows(g) * g->spec->C) * sizeof *sum);
    WEIR_TRY(weir_grad_branch(g, at->layer, WEIR_SITE_MLP_OUT, dx, &dy));
    WEIR_TRY(weir_grad_mlp(g, at, dy));
    WEIR_TRY(norm_before(g, at, WEIR_SITE_LN2_SCALE, at->tape->x, sum));
    WEIR_TRY(weir_grad_branch(g, at->layer, WEIR_SITE_ATTN_OUT, dx, &dy));
    WEIR_TRY(weir_grad_attention(g, at, dy));
    WEIR_TRY(norm_before(g, at, WEIR_SITE_LN1_SCALE, at->tape->x, sum));
    g->b.dx = sum;
    g->b.sum = dx;
    return WEIR_OK;
}

weir_status weir_grad_block(weir_grad *g, int64_t layer)
{
    weir_grad_at at = {.layer = layer, .tape = &g->run->tape.layer[layer]};
    WEIR_TRY(weir_grad_arrive(g, layer, WEIR_SITE_RESID_POST, g->b.dx));
    WEIR_TRY(weir_run_again(g->run, layer, g->err));
    WEIR_TRY(weir_model_norms(g->model, layer, &at.norms, g->err));
    WEIR_TRY(weir_grad_layer(g, layer, &at.w));
    const weir_status st = g->spec->parallel ? parallel(g, &at) : serial(g, &at);
    weir_grad_layer_done(g, layer);
    WEIR_TRY(st);
    return weir_grad_arrive(g, layer, WEIR_SITE_RESID_PRE, g->b.dx);
}
