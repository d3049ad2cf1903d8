/* kernels/machine_avx512.c: machine.h's loops in AVX-512 registers. */
#if defined(__x86_64__)
#include "kernels/vec_avx512.h"

#define CHAINS 12
#include "kernels/machine_impl.h"

const weir_machine_loops weir_machine_loops_avx512 = {machine_multiply, machine_sum};
#endif
