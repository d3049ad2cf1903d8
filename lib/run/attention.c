/* The attention sublayer: h to attn_out. */
#include "state.h"

/* Turns q and k in place; they were heard before, and are heard again. */
static weir_status rotate(weir_run *r, int64_t layer)
{
    const weir_spec *s = r->spec;
    const weir_buffers *b = &r->b;
    weir_op_rope(r->kern, r->threads, b->q, b->q, r->rows.n, s->H, s->D, s->rot, b->cos_sin, r->rows.pos);
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_ROT_Q, b->q));
    weir_op_rope(r->kern, r->threads, b->k, b->k, r->rows.n, s->K, s->D, s->rot, b->cos_sin, r->rows.pos);
    return weir_run_hear(r, layer, WEIR_SITE_ROT_K, b->k);
}

/* Each head of q and k through the norm of its own. */
static weir_status norm_heads(weir_run *r, int64_t layer, const weir_layer *w)
{
    const weir_buffers *b = &r->b;
    const weir_norm_at q = {w->q_norm, layer, WEIR_SITE_Q_NORM_SCALE};
    const weir_norm_at k = {w->k_norm, layer, WEIR_SITE_K_NORM_SCALE};
    WEIR_TRY(weir_run_norm(r, &q, b->q_in, b->q));
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_Q_NORM_OUT, b->q));
    WEIR_TRY(weir_run_norm(r, &k, b->k_in, b->k));
    return weir_run_hear(r, layer, WEIR_SITE_K_NORM_OUT, b->k);
}

/* h to q, k, v: those that are needed. */
static weir_status project(weir_run *r, int64_t layer, const weir_layer *w)
{
    const weir_spec *s = r->spec;
    const weir_buffers *b = &r->b;
    float *q = s->qk_norms ? b->q_in : b->q, *k = s->qk_norms ? b->k_in : b->k;
    const weir_linear_to to[] = {{WEIR_MATRIX_Q, &w->q, q, s->H * s->D},
                                 {WEIR_MATRIX_K, &w->k, k, s->K * s->D},
                                 {WEIR_MATRIX_V, &w->v, b->v, s->K * s->D}};
    int n = 1 + weir_run_needs(r, layer, WEIR_SITE_K) + weir_run_needs(r, layer, WEIR_SITE_V);
    weir_run_linear(r, layer, b->h, r->rows.n, s->C, to, n);
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_Q, q));
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_K, k));
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_V, b->v));
    if (s->qk_norms)
        WEIR_TRY(norm_heads(r, layer, w));
    return s->positions == WEIR_POS_ROPE ? rotate(r, layer) : WEIR_OK;
}

/* Scores, pattern and z one after the other, so that hooks can read and write the maps. */
static weir_status mix_staged(weir_run *r, int64_t layer, weir_attn *a)
{
    for (int g = 0; g < r->n_groups; g++) {
        int64_t from, to;
        weir_kv_group(r, g, &from, &to);
        a->seq = r->b.span + from;
        a->n_seq = to - from;
        weir_attn_store(r->kern, r->threads, a, r->b.k, r->b.v);
        weir_attn_scores(r->kern, r->threads, a);
    }
    a->seq = r->b.span;
    a->n_seq = r->n_seq;
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_SCORES, a->scores));
    weir_attn_softmax(r->kern, r->threads, a);
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_PATTERN, a->pattern));
    weir_attn_mix(r->kern, r->threads, a);
    return WEIR_OK;
}

static weir_status mix(weir_run *r, int64_t layer, const weir_layer *w)
{
    const weir_spec *s = r->spec;
    const weir_buffers *b = &r->b;
    weir_attn a = {.heads = s->H,
                   .kv_heads = s->K,
                   .d = s->D,
                   .scale = s->attn_scale,
                   .softcap = s->attn_softcap,
                   .window = w->window,
                   .q = b->q,
                   .z = b->z,
                   .scores = b->scores,
                   .pattern = b->pattern,
                   .s = r->longest,
                   .scratch = b->attn};
    weir_kv_layer(r, layer);
    if (weir_run_want(r, layer, WEIR_SITE_SCORES) != WEIR_NONE ||
        weir_run_want(r, layer, WEIR_SITE_PATTERN) != WEIR_NONE)
        return mix_staged(r, layer, &a);
    for (int g = 0; g < r->n_groups; g++) {
        int64_t from, to;
        weir_kv_group(r, g, &from, &to);
        a.seq = b->span + from;
        a.n_seq = to - from;
        weir_attn_store(r->kern, r->threads, &a, b->k, b->v);
        weir_attn_fused(r->kern, r->threads, &a);
    }
    return WEIR_OK;
}

/* Each head's share of the output, without the bias: only to be read, since attn_out is one chain over all heads. */
static weir_status hear_result(weir_run *r, int64_t layer, const weir_layer *w)
{
    const weir_spec *s = r->spec;
    if (weir_run_want(r, layer, WEIR_SITE_RESULT) == WEIR_NONE)
        return WEIR_OK;
    for (int64_t h = 0; h < s->H; h++) {
        weir_gemm g = {.m = r->rows.n,
                       .x = r->b.z + h * s->D,
                       .ldx = s->H * s->D,
                       .k0 = h * s->D,
                       .kn = s->D,
                       .n_out = 1,
                       .out = {{.w = w->o.w, .y = r->b.result + h * s->C, .ldy = s->H * s->C}},
                       .scratch = r->b.gemm};
        weir_gemm_run(r->kern, r->threads, &g);
        weir_run_add_edits(r, g.m,
                           &(weir_edited){.layer = layer,
                                          .matrix = WEIR_MATRIX_O,
                                          .x = g.x,
                                          .ldx = g.ldx,
                                          .k0 = g.k0,
                                          .kn = g.kn,
                                          .y = g.out[0].y,
                                          .ldy = g.out[0].ldy});
    }
    return weir_run_hear(r, layer, WEIR_SITE_RESULT, r->b.result);
}

weir_status weir_run_attention(weir_run *r, int64_t layer, const weir_layer *w)
{
    const weir_spec *s = r->spec;
    const weir_buffers *b = &r->b;
    WEIR_TRY(project(r, layer, w));
    WEIR_TRY(mix(r, layer, w));
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_Z, b->z));
    WEIR_TRY(hear_result(r, layer, w));
    /* h was read by the projections and is free */
    float *y = !s->post_norms ? b->attn_out : r->tape.on ? r->tape.layer[layer].attn : b->h;
    weir_run_linear(r, layer, b->z, r->rows.n, s->H * s->D, &(weir_linear_to){WEIR_MATRIX_O, &w->o, y, s->C}, 1);
    if (s->post_norms) {
        const weir_norm_at post = {w->ln1_post, layer, WEIR_SITE_LN1_POST_SCALE};
        WEIR_TRY(weir_run_norm(r, &post, y, b->attn_out));
    }
    return weir_run_hear(r, layer, WEIR_SITE_ATTN_OUT, b->attn_out);
}
