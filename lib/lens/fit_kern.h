/* lens/fit_kern.h: the work on a row of logits that training a lens needs, in an instruction set. All tables give the
 * same bits: element i belongs to lane i mod 16, each 1024 elements are summed apart and folded as in lib/kernels. */
#ifndef WEIR_LENS_FIT_KERN_H
#define WEIR_LENS_FIT_KERN_H

#include "../kernels/kernels.h"

typedef struct weir_fit_kern {
    const char *name; /* of the kernel table that it belongs to */
    /* x [n] becomes its softmax f; returns sum f ln f. */
    double (*softmax)(float *x, int64_t n);
    /* x [n] are logits behind a soft cap (0: none); it becomes the gradient of KL(f || softmax(x)) with respect to the
     * logits before the cap. Returns that KL. f_ln_f: what softmax returned of f. */
    double (*gradient)(float *x, const float *f, int64_t n, float cap, double f_ln_f);
} weir_fit_kern;

extern const weir_fit_kern weir_fit_kern_ref, weir_fit_kern_avx2, weir_fit_kern_avx512;

/* The one that goes with a kernel table. */
const weir_fit_kern *weir_fit_kern_of(const weir_kern *k);

#endif
