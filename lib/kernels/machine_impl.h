/* kernels/machine_impl.h: the loops of machine.h over 16 lanes; include a vec_*.h first and say how many CHAINS its
 * registers hold: enough of them hide the latency of a multiply-add. */
#ifndef WEIR_MACHINE_IMPL_H
#define WEIR_MACHINE_IMPL_H

#include "kernels/machine.h"

static double machine_multiply(float *sink, int64_t rounds)
{
    const vf a = v_set(0.999f), b = v_set(1e-9f);
    vf c[CHAINS];
    float out[16];
    for (int i = 0; i < CHAINS; i++)
        c[i] = v_set((float)i);
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < CHAINS; i++)
            c[i] = v_fma(a, c[i], b);
    for (int i = 1; i < CHAINS; i++)
        c[0] = v_add(c[0], c[i]);
    v_store(out, c[0]);
    *sink = out[0];
    return 2.0 * 16 * CHAINS * (double)rounds;
}

static float machine_sum(const float *p, int64_t n)
{
    vf s[4];
    float out[16];
    for (int i = 0; i < 4; i++)
        s[i] = v_set(0.0f);
    for (int64_t k = 0; k < n; k += 64)
        for (int i = 0; i < 4; i++)
            s[i] = v_add(s[i], v_load(p + k + 16 * i));
    v_store(out, v_add(v_add(s[0], s[1]), v_add(s[2], s[3])));
    return out[0];
}

#endif
