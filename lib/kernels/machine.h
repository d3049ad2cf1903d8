/* kernels/machine.h: the two loops that machine.c times, one pair for each instruction set. */
#ifndef WEIR_KERNELS_MACHINE_H
#define WEIR_KERNELS_MACHINE_H

#include <stdint.h>

typedef struct weir_machine_loops {
    /* Independent chains of multiply-adds in registers; the FLOPs that were done. *sink: their values. */
    double (*multiply)(float *sink, int64_t rounds);
    /* The sum of p[n], n a multiple of 64. */
    float (*sum)(const float *p, int64_t n);
} weir_machine_loops;

extern const weir_machine_loops weir_machine_loops_avx2, weir_machine_loops_avx512;

#endif
