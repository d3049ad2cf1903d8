/* record/round.h: the lossy choices of a dump: floats with fewer bits of mantissa, and half floats.
 *
 * All functions take n >= 0 elements; dst may be src where the types agree. The results do not depend on the
 * instruction set.
 */
#ifndef WEIR_ROUND_H
#define WEIR_ROUND_H

#include <stdint.h>

/* Keeps `bits` (1 to 22) of the 23 stored bits of the mantissa, rounded to the nearest, ties to even; the bits below
 * become zero. 7 are the precision of bfloat16, 10 that of half floats, both with float32's range. Infinities and NaN
 * stay what they are, to the bit; a value that rounds above the largest float with so many bits becomes infinite. */
void weir_round_mantissa(float *dst, const float *src, int64_t n, int bits);

/* IEEE 754 binary16, rounded to the nearest, ties to even, subnormals too; from 65520 on infinite. A NaN stays one:
 * quiet, with the upper ten bits of its payload. */
void weir_to_f16(uint16_t *dst, const float *src, int64_t n);
/* Exact; a signalling NaN becomes quiet. */
void weir_from_f16(float *dst, const uint16_t *src, int64_t n);

#endif
