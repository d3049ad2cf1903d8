/* base/rng.h: random numbers, the same ones everywhere: splitmix64 (Steele, Lea and Flood 2014, "Fast splittable
 * pseudorandom number generators"). */
#ifndef WEIR_RNG_H
#define WEIR_RNG_H

#include <stdint.h>

/* The generator's finisher: a permutation of 64 bits that leaves no trace of their order. */
static inline uint64_t weir_rng_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The next of a stream; *state begins as the seed. */
static inline uint64_t weir_rng_next(uint64_t *state)
{
    return weir_rng_mix(*state += 0x9e3779b97f4a7c15u);
}

/* A number of [0, 1), a multiple of 2^-53. */
static inline double weir_rng_unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

#endif
