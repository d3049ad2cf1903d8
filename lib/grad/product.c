/* Products with weights turned round. What fits the bound stays for the next walk, the rest is turned anew each time.
 */
#include "../base/mem.h"
#include "impl.h"

/* --- weights */

/* Can what is made stay, so that there is still room for the largest? */
static bool fits(const weir_grad *g)
{
    return !g->o.memory || g->held <= g->o.memory - g->run->tape.bytes - g->largest;
}

weir_status weir_grad_layer(weir_grad *g, int64_t layer, const weir_turned_layer **out)
{
    weir_grad_weights *w = &g->weights[layer];
    if (!w->made) {
        WEIR_TRY(weir_model_layer_turned(g->model, layer, &w->layer, g->err));
        w->made = true;
        g->held += weir_model_turned_bytes(g->model, layer);
    }
    *out = &w->layer;
    return WEIR_OK;
}

void weir_grad_layer_done(weir_grad *g, int64_t layer)
{
    weir_grad_weights *w = &g->weights[layer];
    if (fits(g))
        return;
    for (int i = 0; i < WEIR_MATRIX_COUNT; i++)
        if (w->layer.w[i])
            weir_panels_drop(w->layer.w[i]);
    weir_turned_layer_free(&w->layer);
    w->made = false;
    g->held -= weir_model_turned_bytes(g->model, layer);
}

weir_status weir_grad_head(weir_grad *g, int64_t part, const weir_turned **out)
{
    weir_grad_weights *w = &g->weights[g->spec->L + part];
    if (!w->made) {
        WEIR_TRY(weir_model_head_turned(g->model, part, &w->head, g->err));
        w->made = true;
        g->held += weir_model_head_turned_bytes(g->model, part);
    }
    *out = &w->head;
    return WEIR_OK;
}

void weir_grad_head_done(weir_grad *g, int64_t part)
{
    weir_grad_weights *w = &g->weights[g->spec->L + part];
    if (fits(g))
        return;
    weir_panels_drop(w->head.w);
    weir_panels_free(w->head.w);
    w->made = false;
    g->held -= weir_model_head_turned_bytes(g->model, part);
}

void weir_grad_weights_free(weir_grad *g)
{
    const int64_t parts = weir_model_head_parts(g->model);
    for (int64_t i = 0; g->weights && i < g->spec->L + parts; i++) {
        if (g->weights[i].made && i < g->spec->L)
            weir_turned_layer_free(&g->weights[i].layer);
        else if (g->weights[i].made)
            weir_panels_free(g->weights[i].head.w);
    }
    for (int64_t i = 0; g->edit && i < g->n_edits; i++) {
        weir_panels_free(g->edit[i].u);
        weir_panels_free(g->edit[i].v);
    }
    weir_free(g->weights);
    weir_free(g->edit);
}

/* --- edits */

weir_status weir_grad_turn_edits(weir_grad *g, weir_err *err)
{
    const weir_run *r = g->run;
    int64_t n = 0;
    for (int i = 0; i < r->n_edits; i++)
        n += weir_edit_n(r->edit[i]);
    g->edit = weir_calloc((size_t)n, sizeof *g->edit);
    if (!g->edit)
        return weir_nomem(err, "the edits turned round");
    for (int i = 0; i < r->n_edits; i++)
        for (int64_t k = 0; k < weir_edit_n(r->edit[i]); k++) {
            int64_t in, out;
            weir_grad_edit *e = &g->edit[g->n_edits++];
            e->update = weir_edit_update(r->edit[i], k);
            weir_matrix_shape(g->model, e->update->matrix, &in, &out);
            WEIR_TRY(weir_overlay_pack(&e->v, e->update->v, e->update->r, out, false, err));
            WEIR_TRY(weir_overlay_pack(&e->u, e->update->u, e->update->r, in, true, err));
        }
    return WEIR_OK;
}

/* --- products */

static void multiply(weir_grad *g, const weir_panels *w, const float *x, int64_t k, float *y, int64_t n)
{
    const weir_gemm gemm = {.m = weir_grad_rows(g),
                            .x = x,
                            .ldx = k,
                            .kn = k,
                            .n_out = 1,
                            .out = {{.w = w, .y = y, .ldy = n}},
                            .scratch = g->b.gemm};
    weir_gemm_run(g->kern, g->run->threads, &gemm);
}

static void add_edits(weir_grad *g, int64_t layer, weir_matrix m, const float *dy, int64_t out, float *dx, int64_t in)
{
    const weir_run *r = g->run;
    for (int64_t i = 0; i < g->n_edits; i++) {
        const weir_grad_edit *e = &g->edit[i];
        if (e->update->layer != layer || e->update->matrix != m)
            continue;
        multiply(g, e->v, dy, out, g->b.s, e->update->r);
        multiply(g, e->u, g->b.s, e->update->r, g->b.d, in);
        weir_op_add(g->kern, r->threads, dx, dx, g->b.d, r->rows.n * in);
    }
}

void weir_grad_product(weir_grad *g, const weir_turned_layer *w, int64_t layer, weir_matrix m, const float *dy,
                       float *dx, bool add)
{
    const weir_run *r = g->run;
    int64_t in, out;
    weir_matrix_shape(g->model, m, &in, &out);
    float *to = add ? g->b.part : dx;
    multiply(g, w->w[m], dy, out, to, in);
    add_edits(g, layer, m, dy, out, to, in);
    if (add)
        weir_op_add(g->kern, r->threads, dx, dx, to, r->rows.n * in);
}
