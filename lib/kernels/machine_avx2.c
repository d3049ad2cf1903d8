/* kernels/machine_avx2.c: machine.h's loops in AVX2 registers. */
#if defined(__x86_64__)
#include "kernels/vec_avx2.h"

#define CHAINS 6
#include "kernels/machine_impl.h"

const weir_machine_loops weir_machine_loops_avx2 = {machine_multiply, machine_sum};
#endif
