/* Attention on the way back. Keys and values of sequences without a slot lie in memory that every layer used: they are
 * stored again, group by group, as the forward pass did. */
#include <string.h>

#include "impl.h"

/* hook_result is each head's z times its rows of W_O; attention's output is their sum. What is sown there goes on to z.
 */
static weir_status results(weir_grad *g, const weir_grad_at *at, const float *dy)
{
    const weir_spec *s = g->spec;
    const int64_t rows = weir_grad_rows(g), hd = s->H * s->D;
    if (!weir_grad_looks(g, at->layer, WEIR_SITE_RESULT))
        return WEIR_OK;
    float *row = g->b.part, *z = g->b.dq;
    for (int64_t i = 0; i < rows * s->H; i++)
        memcpy(g->b.wide + i * s->C, dy + i / s->H * s->C, (size_t)s->C * sizeof *dy);
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_RESULT, g->b.wide));
    for (int64_t h = 0; h < s->H; h++) {
        for (int64_t t = 0; t < rows; t++)
            memcpy(row + t * s->C, g->b.wide + (t * s->H + h) * s->C, (size_t)s->C * sizeof *dy);
        weir_grad_product(g, at->w, at->layer, WEIR_MATRIX_O, row, z, false);
        for (int64_t t = 0; t < rows; t++)
            memcpy(g->b.dz + t * hd + h * s->D, z + t * hd + h * s->D, (size_t)s->D * sizeof *dy);
    }
    return WEIR_OK;
}

/* The spans of a group of sequences, their keys and values stored. */
static void store_group(weir_grad *g, const weir_grad_at *at, int group, weir_attn *a)
{
    int64_t from, to;
    weir_kv_group(g->run, group, &from, &to);
    a->seq = g->run->b.span + from;
    a->n_seq = to - from;
    weir_attn_store(g->kern, g->run->threads, a, at->tape->k, at->tape->v);
}

/* The maps as the pass left them: on the tape if a hook wrote to them, else made again. */
static void maps(weir_grad *g, const weir_grad_at *at, weir_attn *a)
{
    if (at->tape->scores) {
        a->scores = at->tape->scores;
        a->pattern = at->tape->pattern;
        return;
    }
    a->scores = g->b.scores;
    a->pattern = g->b.pattern;
    for (int i = 0; i < g->run->n_groups; i++) {
        store_group(g, at, i, a);
        weir_attn_scores(g->kern, g->run->threads, a);
    }
    a->seq = g->run->b.span;
    a->n_seq = g->run->n_seq;
    weir_attn_softmax(g->kern, g->run->threads, a);
}

/* The stages one by one, so that hooks can look and change between them. */
static weir_status staged(weir_grad *g, const weir_grad_at *at, weir_attn *a, weir_attn_back *back)
{
    const weir_run *r = g->run;
    maps(g, at, a);
    back->scores = a->scores;
    back->pattern = a->pattern;
    back->d_pattern = back->d_scores = g->b.maps;
    for (int i = 0; i < r->n_groups; i++) {
        store_group(g, at, i, a);
        weir_attn_mix_backward(g->kern, r->threads, back);
    }
    a->seq = r->b.span;
    a->n_seq = r->n_seq;
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_PATTERN, g->b.maps));
    weir_attn_softmax_backward(g->kern, r->threads, back);
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_SCORES, g->b.maps));
    for (int i = 0; i < r->n_groups; i++) {
        store_group(g, at, i, a);
        weir_attn_scores_backward(g->kern, r->threads, back);
    }
    return WEIR_OK;
}

/* b.dz to b.dq, b.dk and b.dv. */
static weir_status mix(weir_grad *g, const weir_grad_at *at)
{
    const weir_spec *s = g->spec;
    weir_run *r = g->run;
    weir_attn a = {.heads = s->H,
                   .kv_heads = s->K,
                   .d = s->D,
                   .scale = s->attn_scale,
                   .softcap = s->attn_softcap,
                   .window = at->norms->window,
                   .q = at->tape->q,
                   .s = r->longest,
                   .scratch = r->b.attn};
    weir_attn_back back = {.a = &a, .dz = g->b.dz, .dq = g->b.dq, .dk = g->b.dk, .dv = g->b.dv, .scratch = g->b.attn};
    weir_kv_layer(r, at->layer);
    if (weir_grad_looks(g, at->layer, WEIR_SITE_PATTERN) || weir_grad_looks(g, at->layer, WEIR_SITE_SCORES))
        return staged(g, at, &a, &back);
    for (int i = 0; i < r->n_groups; i++) {
        store_group(g, at, i, &a);
        weir_attn_backward(g->kern, r->threads, &back);
    }
    return WEIR_OK;
}

/* Turns q and k back; they are heard before it and after it. */
static weir_status rotate_back(weir_grad *g, const weir_grad_at *at)
{
    const weir_spec *s = g->spec;
    const weir_run *r = g->run;
    float *dq = g->b.dq, *dk = g->b.dk;
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_ROT_K, dk));
    weir_rope_backward(g->kern, r->threads, dk, dk, r->rows.n, s->K, s->D, s->rot, r->b.cos_sin, r->rows.pos);
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_ROT_Q, dq));
    weir_rope_backward(g->kern, r->threads, dq, dq, r->rows.n, s->H, s->D, s->rot, r->b.cos_sin, r->rows.pos);
    return WEIR_OK;
}

/* Through the norms of heads; they are heard behind them and before. */
static weir_status norm_heads_back(weir_grad *g, const weir_grad_at *at)
{
    const weir_grad_norm_at q = {.at = {at->norms->q_norm, at->layer, WEIR_SITE_Q_NORM_SCALE},
                                 .x = at->tape->q_in,
                                 .dy = g->b.dq,
                                 .dx = g->b.dq};
    const weir_grad_norm_at k = {.at = {at->norms->k_norm, at->layer, WEIR_SITE_K_NORM_SCALE},
                                 .x = at->tape->k_in,
                                 .dy = g->b.dk,
                                 .dx = g->b.dk};
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_K_NORM_OUT, g->b.dk));
    WEIR_TRY(weir_grad_norm(g, &k));
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_Q_NORM_OUT, g->b.dq));
    return weir_grad_norm(g, &q);
}

weir_status weir_grad_attention(weir_grad *g, const weir_grad_at *at, float *dy)
{
    const weir_spec *s = g->spec;
    const weir_grad_buffers *b = &g->b;
    if (s->post_norms) {
        const weir_grad_norm_at post = {.at = {at->norms->ln1_post, at->layer, WEIR_SITE_LN1_POST_SCALE},
                                        .x = at->tape->attn,
                                        .dy = dy,
                                        .dx = b->dy};
        WEIR_TRY(weir_grad_norm(g, &post));
        dy = b->dy;
    }
    weir_grad_product(g, at->w, at->layer, WEIR_MATRIX_O, dy, b->dz, false);
    WEIR_TRY(results(g, at, dy));
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_Z, b->dz));
    WEIR_TRY(mix(g, at));
    if (s->positions == WEIR_POS_ROPE)
        WEIR_TRY(rotate_back(g, at));
    if (s->qk_norms)
        WEIR_TRY(norm_heads_back(g, at));
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_V, b->dv));
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_K, b->dk));
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_Q, b->dq));
    weir_grad_product(g, at->w, at->layer, WEIR_MATRIX_Q, b->dq, b->dh, false);
    weir_grad_product(g, at->w, at->layer, WEIR_MATRIX_K, b->dk, b->dh, true);
    weir_grad_product(g, at->w, at->layer, WEIR_MATRIX_V, b->dv, b->dh, true);
    return weir_grad_arrive(g, at->layer, WEIR_SITE_LN1_OUT, b->dh);
}
