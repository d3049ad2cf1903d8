/* The MLP sublayer: h to mlp_out. */
#include "state.h"

weir_status weir_run_mlp(weir_run *r, int64_t layer, const weir_layer *w)
{
    const weir_spec *s = r->spec;
    const weir_buffers *b = &r->b;
    const weir_linear_to to[] = {{&w->pre, b->pre, s->F}, {&w->up, b->up, s->F}};
    bool up = s->gated && weir_run_needs(r, layer, WEIR_SITE_MLP_PRE_LINEAR);
    weir_run_linear(r, b->h, r->rows.n, s->C, to, 1 + up);
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_MLP_PRE, b->pre));
    if (s->gated)
        WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_MLP_PRE_LINEAR, b->up));
    float *post = b->pre; /* nothing reads pre any more */
    weir_op_act(r->kern, r->threads, s->act, post, b->pre, s->gated ? b->up : NULL, r->rows.n * s->F);
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_MLP_POST, post));
    float *y = s->post_norms ? b->h : b->mlp_out;
    weir_run_linear(r, post, r->rows.n, s->F, &(weir_linear_to){&w->down, y, s->C}, 1);
    if (s->post_norms) {
        const weir_norm_at norm = {w->ln2_post, layer, WEIR_SITE_LN2_POST_SCALE};
        WEIR_TRY(weir_run_norm(r, &norm, y, b->mlp_out));
    }
    return weir_run_hear(r, layer, WEIR_SITE_MLP_OUT, b->mlp_out);
}
