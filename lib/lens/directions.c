/* What a token's logit is a product with, and the statistics of the final norm. */
#include <math.h>

#include "../base/mem.h"
#include "lens/impl.h"

/* What weir_model_final says, times the unembedding's row: the gain into dir, the norm's bias into the constant. */
static double through_norm(const weir_spec *s, const weir_normw *w, float *dir)
{
    double bias = 0;
    for (int64_t c = 0; c < s->C; c++) {
        if (w->b)
            bias += (double)w->b[c] * (double)dir[c];
        if (w->w)
            dir[c] *= s->norm_offset + w->w[c];
    }
    return bias;
}

weir_status weir_lens_directions(const weir_model *m, const int32_t *id, int64_t n, float *dir, double *bias,
                                 weir_err *err)
{
    const weir_spec *s = weir_model_spec(m);
    weir_normw w;
    WEIR_TRY(weir_model_final(m, &w, err));
    for (int64_t i = 0; i < n; i++)
        if (id[i] < 0 || id[i] >= s->V)
            return weir_fail(err, WEIR_E_ARG, "token %d is outside the vocabulary, 0 to %lld", id[i],
                             (long long)(s->V - 1));
    for (int64_t i = 0; i < n; i++) {
        weir_model_head_row(m, id[i], dir + i * s->C);
        bias[i] = through_norm(s, &w, dir + i * s->C);
    }
    return WEIR_OK;
}

weir_status weir_lens_scale(weir_lens *l, const float *x, int64_t n, float *mean, float *scale, weir_err *err)
{
    weir_norm norm;
    WEIR_TRY(weir_lens_final_norm(l, n, &norm, err));
    norm.x = x;
    norm.mean = mean;
    norm.scale = scale;
    weir_norm_run(l->kern, l->threads, &norm);
    return WEIR_OK;
}
