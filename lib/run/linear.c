/* Products of rows with weights. */
#include "state.h"

void weir_run_linear(weir_run *r, const float *x, int64_t rows, int64_t k, const weir_linear_to *to, int n)
{
    weir_gemm g = {.m = rows, .x = x, .ldx = k, .k0 = 0, .kn = k, .n_out = n, .scratch = r->b.gemm};
    for (int i = 0; i < n; i++)
        g.out[i] = (weir_gemm_out){.w = to[i].w->w, .bias = to[i].w->bias, .y = to[i].y, .ldy = to[i].n};
    weir_gemm_run(r->kern, r->threads, &g);
}
