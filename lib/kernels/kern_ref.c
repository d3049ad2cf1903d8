/* kernels/kern_ref.c: the reference table. Scalar C, one operation at a time in the promised order: the oracle of the
 * others. */
#include "kernels/kern.h"
#include "kernels/vec_ref.h"

#include "kernels/back_impl.h"
#include "kernels/dequant_impl.h"
#include "kernels/elem_impl.h"
#include "kernels/outer_impl.h"

static float weight_f32(const void *b, int64_t i)
{
    return ((const float *)b)[i];
}
static float weight_f16(const void *b, int64_t i)
{
    return v_half(((const uint16_t *)b)[i]);
}
static float weight_bf16(const void *b, int64_t i)
{
    return f32_bits((uint32_t)((const uint16_t *)b)[i] << 16);
}

static inline void tile(const weir_tile *t, float (*weight)(const void *, int64_t))
{
    for (int i = 0; i < t->mr; i++)
        for (int n = 0; n < 16 * t->nv; n++) {
            float *c = t->c + i * t->ldc + n;
            float acc = t->flags & WEIR_TILE_ADD ? *c : 0.0f;
            for (int64_t k = 0; k < t->k; k++)
                acc = fmaf(t->a[k * t->lda + i], weight(t->b, k * t->ldb + n), acc);
            for (int64_t k = t->k; t->flags & WEIR_TILE_STAIRS && k < t->k + i; k++)
                acc = fmaf(t->a[k * t->lda + i], weight(t->b, k * t->ldb + n), acc);
            if (t->flags & WEIR_TILE_END) {
                if (t->bias)
                    acc = acc + t->bias[n];
                if (acc != acc)
                    acc = f32_bits(0x7fc00000u);
            }
            *c = acc;
        }
}

static void tile_f32(const weir_tile *t)
{
    tile(t, weight_f32);
}
static void tile_f16(const weir_tile *t)
{
    tile(t, weight_f16);
}
static void tile_bf16(const weir_tile *t)
{
    tile(t, weight_bf16);
}

static void transpose(float *dst, int64_t ldd, const weir_f32u *const *row, int rows, int64_t cols)
{
    for (int64_t c = 0; c < cols; c++)
        for (int r = 0; r < rows; r++)
            dst[c * ldd + r] = row[r][c];
}

static void transpose16(uint16_t *dst, int64_t ldd, const weir_u16u *const *row, int rows, int64_t cols)
{
    for (int64_t c = 0; c < cols; c++)
        for (int r = 0; r < rows; r++)
            dst[c * ldd + r] = row[r][c];
}

const weir_kern weir_kern_ref = {
    .name = "ref",
    .tile = {[WEIR_F32] = tile_f32, [WEIR_F16] = tile_f16, [WEIR_BF16] = tile_bf16},
    .transpose = transpose,
    .transpose16 = transpose16,
    .dequant = elem_dequant,
    .outer = outer_tile,
    WEIR_ELEM_KERNELS,
    WEIR_BACK_KERNELS,
};
