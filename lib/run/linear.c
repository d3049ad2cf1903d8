/* Products of rows with weights, and what edits add to them. */
#include "state.h"

/* s = x U^T, d = s V, y += d: a chain of its own for each, so that y keeps the bits of the product below it. */
static void add_overlay(weir_run *r, int64_t rows, const weir_edited *to, const weir_overlay *o)
{
    const weir_buffers *b = &r->b;
    const int64_t rank = o->update->r;
    int64_t in, out;
    weir_matrix_shape(r->model, to->matrix, &in, &out);
    weir_gemm read = {.m = rows,
                      .x = to->x,
                      .ldx = to->ldx,
                      .k0 = to->k0,
                      .kn = to->kn,
                      .n_out = 1,
                      .out = {{.w = o->u, .y = b->edit_s, .ldy = rank}},
                      .scratch = b->gemm};
    weir_gemm write = {.m = rows,
                       .x = b->edit_s,
                       .ldx = rank,
                       .kn = rank,
                       .n_out = 1,
                       .out = {{.w = o->v, .y = b->edit_d, .ldy = out}},
                       .scratch = b->gemm};
    weir_gemm_run(r->kern, r->threads, &read);
    weir_gemm_run(r->kern, r->threads, &write);
    if (to->ldy == out)
        weir_op_add(r->kern, r->threads, to->y, to->y, b->edit_d, rows * out);
    else
        for (int64_t t = 0; t < rows; t++)
            weir_op_add(r->kern, 1, to->y + t * to->ldy, to->y + t * to->ldy, b->edit_d + t * out, out);
}

void weir_run_add_edits(weir_run *r, int64_t rows, const weir_edited *to)
{
    for (int i = 0; i < r->n_edits; i++) {
        const weir_overlay *o = weir_edit_overlay(r->edit[i], to->layer, to->matrix);
        if (o)
            add_overlay(r, rows, to, o);
    }
}

void weir_run_linear(weir_run *r, int64_t layer, const float *x, int64_t rows, int64_t k, const weir_linear_to *to,
                     int n)
{
    weir_gemm g = {.m = rows, .x = x, .ldx = k, .k0 = 0, .kn = k, .n_out = n, .scratch = r->b.gemm};
    for (int i = 0; i < n; i++)
        g.out[i] = (weir_gemm_out){.w = to[i].w->w, .bias = to[i].w->bias, .y = to[i].y, .ldy = to[i].n};
    weir_gemm_run(r->kern, r->threads, &g);
    for (int i = 0; i < n && r->n_edits; i++)
        weir_run_add_edits(
            r, rows,
            &(weir_edited){
                .layer = layer, .matrix = to[i].matrix, .x = x, .ldx = k, .kn = k, .y = to[i].y, .ldy = to[i].n});
}
