/* kernels/rope.c: rotary positions: the table of cosines and sines, and its application to heads. */
#include <math.h>

#include "base/parallel.h"
#include "kernels/backward.h"
#include "kernels/kern.h"

/* --- sine and cosine, in double, rounded once to fp32. Only the table needs them. */

/* x in [-pi/4, pi/4]: Taylor's series; the first term left out is below 1e-17. */
static double sin_core(double x)
{
    const double s = x * x;
    double p = -1.0 / 1307674368000.0;
    p = p * s + 1.0 / 6227020800.0;
    p = p * s - 1.0 / 39916800.0;
    p = p * s + 1.0 / 362880.0;
    p = p * s - 1.0 / 5040.0;
    p = p * s + 1.0 / 120.0;
    p = p * s - 1.0 / 6.0;
    return x + x * (s * p);
}

static double cos_core(double x)
{
    const double s = x * x;
    double p = 1.0 / 20922789888000.0;
    p = p * s - 1.0 / 87178291200.0;
    p = p * s + 1.0 / 479001600.0;
    p = p * s - 1.0 / 3628800.0;
    p = p * s + 1.0 / 40320.0;
    p = p * s - 1.0 / 720.0;
    p = p * s + 1.0 / 24.0;
    p = p * s - 1.0 / 2.0;
    return 1.0 + s * p;
}

/* x - n pi/2 with pi/2 in three parts: the product with the first, of 33 bits, is exact for n < 2^20, and what the
 * three leave out is below 1e-33 n. */
static void sin_cos(float angle, float *sine, float *cosine)
{
    const double x = angle;
    if (!isfinite(angle)) {
        *sine = *cosine = NAN;
        return;
    }
    const double n = rint(x * 0x1.45f306dc9c883p-1);
    double r = x - n * 0x1.921fb544p0;
    r = r - n * 0x1.0b4611a6p-34;
    r = r - n * 0x1.3198a2e037073p-69;
    const double s = sin_core(r), c = cos_core(r);
    const int quadrant = (int)(n - 4 * floor(n * 0.25));
    const double sins[4] = {s, c, -s, -c}, coss[4] = {c, -s, -c, s};
    *sine = (float)sins[quadrant];
    *cosine = (float)coss[quadrant];
}

void weir_rope_table(float *cos_sin, int64_t n, int64_t rot, const float *inv_freq, float factor)
{
    const int64_t half = rot / 2;
    for (int64_t p = 0; p < n; p++)
        for (int64_t i = 0; i < half; i++) {
            const float angle = (float)p * inv_freq[i];
            float s, c;
            sin_cos(angle, &s, &c);
            cos_sin[p * rot + i] = c * factor;
            cos_sin[p * rot + half + i] = s * factor;
        }
}

/* Pairs are turned, or turned back. */
typedef struct rope_ctx {
    void (*turn)(float *dst, const float *src, int64_t d, int64_t rot,
                 const float *cs); /* of the table, for one head */
    float *dst;
    const float *src, *cos_sin;
    int64_t heads, d, rot;
    const int64_t *pos;
} rope_ctx;

static void rope_row(void *ctx, int64_t r, int thread)
{
    (void)thread;
    const rope_ctx *c = ctx;
    const float *cs = c->cos_sin + c->pos[r] * c->rot;
    for (int64_t h = 0; h < c->heads; h++) {
        const int64_t at = (r * c->heads + h) * c->d;
        c->turn(c->dst + at, c->src + at, c->d, c->rot, cs);
    }
}

static void rope_rows(int threads, int64_t rows, rope_ctx *c)
{
    const int64_t grain = weir_max64(1, 8192 / weir_max64(1, c->heads * c->d));
    weir_parallel_for(rows <= grain ? 1 : threads, rows, grain, rope_row, c);
}

void weir_op_rope(const weir_kern *k, int threads, float *dst, const float *src, int64_t rows, int64_t heads, int64_t d,
                  int64_t rot, const float *cos_sin, const int64_t *pos)
{
    rope_rows(threads, rows, &(rope_ctx){k->rope, dst, src, cos_sin, heads, d, rot, pos});
}

void weir_rope_backward(const weir_kern *k, int threads, float *dst, const float *src, int64_t rows, int64_t heads,
                        int64_t d, int64_t rot, const float *cos_sin, const int64_t *pos)
{
    rope_rows(threads, rows, &(rope_ctx){k->rope_back, dst, src, cos_sin, heads, d, rot, pos});
}
