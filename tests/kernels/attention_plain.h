/* tests/kernels/attention_plain.h: the scores and the pattern of one query, written down plainly, and shapes to try:
 * what the tests of attention and of its gradients compare with. */
#ifndef WEIR_TEST_ATTENTION_PLAIN_H
#define WEIR_TEST_ATTENTION_PLAIN_H

#include "kernels/vec_ref.h"

#include "kernels/math_impl.h"

#include "check.h"

typedef struct shape {
    int64_t heads, kv_heads, d, window;
    float scale, softcap;
} shape;

enum { SEQS = 4, WAY_FUSED = 0, WAY_STAGED = 1 };

static inline shape any_shape(int64_t d)
{
    const int64_t kv = pick(1, 3);
    shape s = {.heads = kv * pick(1, 3), .kv_heads = kv, .d = d, .scale = 1.0f / sqrtf((float)d)};
    if (pick(0, 1))
        s.window = pick(1, 30);
    if (pick(0, 2) == 0)
        s.softcap = 1.5f;
    return s;
}

static inline float *numbers(int64_t n, int rare)
{
    float *p = malloc((size_t)n * sizeof *p);
    assert_non_null(p);
    fill(p, n, rare);
    return p;
}

static inline float canonical(float x)
{
    return isnan(x) ? from_bits(0x7fc00000u) : x;
}

static inline int64_t first_key(const shape *s, int64_t pos)
{
    return s->window && pos >= s->window ? pos - s->window + 1 : 0;
}

static inline float dot(const float *a, const float *b, int64_t n)
{
    float acc = 0.0f;
    for (int64_t i = 0; i < n; i++)
        acc = fmaf(a[i], b[i], acc);
    return acc;
}

/* Scores and pattern of one query, at the keys that it sees: the contract, in the plainest way. */
static inline void plain_pattern(const shape *s, const float *q, const float *k, int64_t pos, int64_t kv, float *score,
                                 float *p)
{
    float max = -INFINITY;
    const int64_t lo = first_key(s, pos);
    for (int64_t i = lo; i <= pos; i++) {
        float x = dot(q, k + (i * s->kv_heads + kv) * s->d, s->d) * s->scale;
        if (s->softcap > 0)
            x = s->softcap * v_tanh(v_set(x / s->softcap)).f[0];
        score[i] = canonical(x);
        max = score[i] > max ? score[i] : max;
    }
    const float base = max > -INFINITY ? max : 0.0f;
    vf lane = v_set(0.0f);
    for (int64_t i = lo; i <= pos; i++) {
        p[i] = v_exp(v_set(score[i] - base)).f[0];
        lane.f[i % 16] += p[i];
    }
    const float total = v_fold_add(lane), inv = total == 0.0f ? 0.0f : 1.0f / total;
    for (int64_t i = lo; i <= pos; i++)
        p[i] = canonical(p[i] * inv);
}

#endif
