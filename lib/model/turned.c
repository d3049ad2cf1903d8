/* The unembedding turned round: what takes a gradient of the logits back to the row of the stream. */
#include "impl.h"

static weir_status pack(const weir_model *m, const weir_tensor *t, int64_t first, int64_t n, bool mapped,
                        weir_panels **out, weir_err *err)
{
    /* The tensor is [V, C]; as a matrix from V to C that is k-major. */
    const int64_t c = m->spec.C, size = weir_dtype_bytes(t->dtype);
    weir_tensor part = *t;
    part.data = (const char *)t->data + first * c * size;
    part.bytes = (size_t)(n * c * size);
    part.shape[0] = n;
    const weir_wview view = {.t = &part, .n = c, .k = n, .k_major = true, .stride = c, .mapped = mapped};
    return weir_panels_new(out, &view, m->threads, err);
}

/* Blocks lie along C: they cannot be packed the other way round as they are. */
static weir_status pack_widened(const weir_model *m, const weir_tensor *t, int64_t first, int64_t n,
                                weir_panels **out, weir_err *err)
{
    const int64_t c = m->spec.C, row = c / weir_dtype_block(t->dtype) * weir_dtype_bytes(t->dtype);
    int64_t bytes;
    if (!weir_mul64(n * (int64_t)sizeof(float), c, &bytes))
        return weir_nomem(err, "the unembedding turned round");
    float *wide = weir_alloc_aligned((size_t)bytes);
    if (!wide)
        return weir_nomem(err, "the unembedding turned round");
    weir_dequantize(t->dtype, (const char *)t->data + first * row, n * c, wide);
    const weir_tensor widened = {.name = t->name, .dtype = WEIR_F32, .rank = 2, .shape = {n, c, 1, 1}, .data = wide};
    const weir_status s = pack(m, &widened, 0, n, false, out, err);
    weir_free_aligned(wide);
    return s;
}

weir_status weir_model_head_turned(const weir_model *m, int64_t part, weir_turned *out, weir_err *err)
{
    const weir_tensor *t = weir_slot(m, -1, m->tied ? WEIR_ROLE_EMBED : WEIR_ROLE_HEAD);
    const weir_head *h = &m->made.head[part];
    *out = (weir_turned){.first = h->first, .n = h->n};
    const weir_status s = weir_dtype_block(t->dtype) > 1 ? pack_widened(m, t, h->first, h->n, &out->w, err)
                                                         : pack(m, t, h->first, h->n, true, &out->w, err);
    if (s != WEIR_OK)
        weir_err_where(err, t->file, t->name, t->offset);
    return s;
}
