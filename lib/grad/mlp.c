/* The MLP on the way back. */
#include "impl.h"

weir_status weir_grad_mlp(weir_grad *g, const weir_grad_at *at, float *dy)
{
    const weir_spec *s = g->spec;
    const weir_run *r = g->run;
    const weir_grad_buffers *b = &g->b;
    const weir_tape_layer *t = at->tape;
    if (s->post_norms) {
        const weir_grad_norm_at post = {
            .at = {at->norms->ln2_post, at->layer, WEIR_SITE_LN2_POST_SCALE}, .x = t->mlp, .dy = dy, .dx = b->dy};
        WEIR_TRY(weir_grad_norm(g, &post));
        dy = b->dy;
    }
    weir_grad_product(g, at->w, at->layer, WEIR_MATRIX_DOWN, dy, b->dpost, false);
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_MLP_POST, b->dpost));
    float *dpre = b->dpost;
    weir_act_backward(g->kern, r->threads, r->act, dpre, b->dup, b->dpost, t->pre, t->up, r->rows.n * s->F);
    if (s->gated)
        WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_MLP_PRE_LINEAR, b->dup));
    WEIR_TRY(weir_grad_arrive(g, at->layer, WEIR_SITE_MLP_PRE, dpre));
    weir_grad_product(g, at->w, at->layer, WEIR_MATRIX_PRE, dpre, b->dh, false);
    if (s->gated)
        weir_grad_product(g, at->w, at->layer, WEIR_MATRIX_UP, b->dup, b->dh, true);
    return weir_grad_arrive(g, at->layer, WEIR_SITE_LN2_OUT, b->dh);
}
