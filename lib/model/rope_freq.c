/* Inverse frequencies of RoPE in float32, rounded where Hugging Face's float32 tensors round them:
 *     inv = 1 / base^(2i/rot)        exponent, power and reciprocal each rounded
 * The power is taken in double and rounded once. torch computes `scalar / tensor` as reciprocal times scalar, which is
 * kept here. (lib/model is built with -ffp-contract=off: no fused operation hides between these roundings.) */
#include <math.h>

#include "config.h"

static float llama3(float inv, const weir_rope *r)
{
    float factor = (float)r->factor, low = (float)r->low, wavelength = 1.0f / inv * (float)(2 * 3.14159265358979323846);
    if (wavelength < (float)(r->original / r->high))
        return inv;
    if (wavelength > (float)(r->original / r->low))
        return inv / factor;
    float smooth = (1.0f / wavelength * (float)r->original - low) / (float)(r->high - r->low);
    return (1.0f - smooth) * inv / factor + smooth * inv;
}

void weir_rope_inv_freq(float *out, int64_t rot, double theta, const weir_rope *rope, const float *divisors)
{
    for (int64_t i = 0; i < rot / 2; i++) {
        float exponent = (float)(2 * i) / (float)rot;
        float inv = 1.0f / (float)pow((float)theta, exponent);
        if (rope->kind == WEIR_ROPE_LINEAR)
            inv /= (float)rope->factor;
        else if (rope->kind == WEIR_ROPE_LLAMA3)
            inv = llama3(inv, rope);
        out[i] = divisors ? inv / divisors[i] : inv;
    }
}
