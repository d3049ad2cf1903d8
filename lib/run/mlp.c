/* The MLP sublayer: h to mlp_out. */
#include "state.h"

weir_status weir_run_mlp(weir_run *r, int64_t layer, const weir_layer *w)
{
    const weir_spec *s = r->spec;
    const weir_buffers *b = &r->b;
    const weir_linear_to to[] = {{WEIR_MATRIX_PRE, &w->pre, b->pre, s->F}, {WEIR_MATRIX_UP, &w->up, b->up, s->F}};
    bool up = s->gated && weir_run_needs(r, layer, WEIR_SITE_MLP_PRE_LINEAR);
    weir_run_linear(r, layer, b->h, r->rows.n, s->C, to, 1 + up);
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_MLP_PRE, b->pre));
    if (s->gated)
        WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_MLP_PRE_LINEAR, b->up));
    if (!weir_run_needs(r, layer, WEIR_SITE_MLP_POST)) /* weir_run_again */
        return WEIR_STOP;
    float *post = b->post;
    weir_op_act(r->kern, r->threads, r->act, post, b->pre, s->gated ? b->up : NULL, r->rows.n * s->F);
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_MLP_POST, post));
    float *y = !s->post_norms ? b->mlp_out : r->tape.on ? r->tape.layer[layer].mlp : b->h; /* h is free by now */
    weir_run_linear(r, layer, post, r->rows.n, s->F, &(weir_linear_to){WEIR_MATRIX_DOWN, &w->down, y, s->C}, 1);
    if (!weir_run_needs(r, layer, s->post_norms ? WEIR_SITE_LN2_POST_SCALE : WEIR_SITE_MLP_OUT)) /* weir_run_again */
        return WEIR_STOP;
    if (s->post_norms) {
        const weir_norm_at norm = {w->ln2_post, layer, WEIR_SITE_LN2_POST_SCALE};
        WEIR_TRY(weir_run_norm(r, &norm, y, b->mlp_out));
    }
    return weir_run_hear(r, layer, WEIR_SITE_MLP_OUT, b->mlp_out);
}
