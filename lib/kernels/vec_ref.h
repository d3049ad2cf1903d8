/* kernels/vec_ref.h: 16 lanes as plain C, one scalar operation a lane. The meaning of every v_ function; the other two
 * headers (vec_avx2.h, vec_avx512.h) do the same with registers. */
#ifndef WEIR_VEC_REF_H
#define WEIR_VEC_REF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct vf {
    float f[16];
} vf;
typedef struct vi { /* bit patterns; sums wrap around */
    uint32_t u[16];
} vi;
typedef struct vm { /* a truth value a lane */
    bool b[16];
} vm;

/* Not inlined: nothing here is made for speed, and sanitizers take minutes over the sums of these structs. */
#define V_FN static __attribute__((noinline, unused))

#define V_MAP(expr)                                                                                                    \
    vf r;                                                                                                              \
    for (int i = 0; i < 16; i++)                                                                                       \
        r.f[i] = (expr);                                                                                               \
    return r

V_FN vf v_set(float x)
{
    V_MAP(x);
}
V_FN vf v_load(const float *p)
{
    V_MAP(p[i]);
}
/* The first n < 16 lanes; +0 in the others. */
V_FN vf v_load_n(const float *p, int n)
{
    V_MAP(i < n ? p[i] : 0.0f);
}
V_FN void v_store(float *p, vf a)
{
    memcpy(p, a.f, sizeof a.f);
}
V_FN void v_store_n(float *p, vf a, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = a.f[i];
}
V_FN vf v_add(vf a, vf b)
{
    V_MAP(a.f[i] + b.f[i]);
}
V_FN vf v_sub(vf a, vf b)
{
    V_MAP(a.f[i] - b.f[i]);
}
V_FN vf v_mul(vf a, vf b)
{
    V_MAP(a.f[i] * b.f[i]);
}
V_FN vf v_div(vf a, vf b)
{
    V_MAP(a.f[i] / b.f[i]);
}
/* a b + c, a b - c, c - a b, each rounded once */
V_FN vf v_fma(vf a, vf b, vf c)
{
    V_MAP(fmaf(a.f[i], b.f[i], c.f[i]));
}
V_FN vf v_fms(vf a, vf b, vf c)
{
    V_MAP(fmaf(a.f[i], b.f[i], -c.f[i]));
}
V_FN vf v_fnma(vf a, vf b, vf c)
{
    V_MAP(fmaf(-a.f[i], b.f[i], c.f[i]));
}
/* b when either is NaN, as the instruction does */
V_FN vf v_max(vf a, vf b)
{
    V_MAP(a.f[i] > b.f[i] ? a.f[i] : b.f[i]);
}
V_FN vf v_min(vf a, vf b)
{
    V_MAP(a.f[i] < b.f[i] ? a.f[i] : b.f[i]);
}
V_FN vm v_less(vf a, vf b)
{
    vm r;
    for (int i = 0; i < 16; i++)
        r.b[i] = a.f[i] < b.f[i];
    return r;
}
V_FN vm v_isnan(vf a)
{
    vm r;
    for (int i = 0; i < 16; i++)
        r.b[i] = a.f[i] != a.f[i];
    return r;
}
/* lanes lo <= i < hi */
V_FN vm v_range(int lo, int hi)
{
    vm r;
    for (int i = 0; i < 16; i++)
        r.b[i] = i >= lo && i < hi;
    return r;
}
/* Bit i of the result: lane i. */
V_FN uint32_t vm_bits(vm m)
{
    uint32_t r = 0;
    for (int i = 0; i < 16; i++)
        r |= (uint32_t)m.b[i] << i;
    return r;
}
V_FN vf v_select(vm m, vf yes, vf no)
{
    V_MAP(m.b[i] ? yes.f[i] : no.f[i]);
}
V_FN vi v_bits(vf a)
{
    vi r;
    memcpy(&r, &a, sizeof r);
    return r;
}
V_FN vf v_float(vi a)
{
    vf r;
    memcpy(&r, &a, sizeof r);
    return r;
}

#define V_MAPI(expr)                                                                                                   \
    vi r;                                                                                                              \
    for (int i = 0; i < 16; i++)                                                                                       \
        r.u[i] = (expr);                                                                                               \
    return r

V_FN vi vi_set(uint32_t x)
{
    V_MAPI(x);
}
V_FN vi vi_and(vi a, vi b)
{
    V_MAPI(a.u[i] & b.u[i]);
}
V_FN vi vi_or(vi a, vi b)
{
    V_MAPI(a.u[i] | b.u[i]);
}
V_FN vi vi_add(vi a, vi b)
{
    V_MAPI(a.u[i] + b.u[i]);
}
V_FN vi vi_shl(vi a, int by)
{
    V_MAPI(a.u[i] << by);
}
V_FN vi vi_shr(vi a, int by)
{
    V_MAPI(a.u[i] >> by);
}
/* 16 bytes, without a sign and with it. */
V_FN vi vi_u8(const uint8_t *p)
{
    V_MAPI(p[i]);
}
V_FN vi vi_i8(const uint8_t *p)
{
    V_MAPI((uint32_t)(int8_t)p[i]);
}
/* x in the lanes whose bit is set, 0 in the others. */
V_FN vi vi_pick(uint16_t bits, uint32_t x)
{
    V_MAPI(bits >> i & 1 ? x : 0);
}
/* From integers between -2^24 and 2^24. */
V_FN vf v_int(vi a)
{
    V_MAP((float)(int32_t)a.u[i]);
}
/* Entry a mod 16 of a table. */
V_FN vf v_entry(vf entries, vi a)
{
    V_MAP(entries.f[a.u[i] & 15]);
}
/* A half, exactly; a NaN is a quiet one. */
static inline float v_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = (h >> 10) & 31u, frac = h & 1023u;
    if (exp == 0) {
        const float tiny = (float)frac * 0x1p-24f;
        return sign ? -tiny : tiny;
    }
    const uint32_t quiet = exp == 31 && frac ? 1u << 22 : 0;
    const uint32_t u = sign | (exp == 31 ? 255u : exp + 112u) << 23 | quiet | frac << 13;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* y 2^n for whole n in [-252, 254] and y in [0.5, 2], rounded once: the first factor is exact, the second rounds, if at
 * all, into the subnormal numbers or to infinity. */
V_FN vf v_scale2(vf y, vf n)
{
    for (int i = 0; i < 16; i++) {
        if (n.f[i] != n.f[i])
            continue; /* then y is NaN as well */
        const int32_t e = (int32_t)n.f[i], half = e >= 0 ? e / 2 : -((1 - e) / 2);
        const uint32_t a = (uint32_t)(half + 127) << 23, b = (uint32_t)(e - half + 127) << 23;
        float fa, fb;
        memcpy(&fa, &a, sizeof fa);
        memcpy(&fb, &b, sizeof fb);
        y.f[i] = y.f[i] * fa * fb;
    }
    return y;
}

/* The fold: lane i with lane i + 8, then 4, 2, 1. */
V_FN float v_fold_add(vf a)
{
    for (int w = 8; w; w >>= 1)
        for (int i = 0; i < w; i++)
            a.f[i] = a.f[i] + a.f[i + w];
    return a.f[0];
}
V_FN float v_fold_max(vf a)
{
    for (int w = 8; w; w >>= 1)
        for (int i = 0; i < w; i++)
            a.f[i] = a.f[i] > a.f[i + w] ? a.f[i] : a.f[i + w];
    return a.f[0];
}

#endif
