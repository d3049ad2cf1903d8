/* weir/functions.h: the functions of a block by themselves: activations, gated products and norms on numbers of your
 * own, by the kernels that models run with and in double precision beside them.
 *
 *     const weir_activation *f = weir_activation_named("silu");
 *     double y = weir_activation_value(f, 1, 2.0);           // 1.7615941559557646
 *     weir_activation_run(f, out, gate, up, 3, NULL, &err);  // float out[3] = silu(gate) * up, as a model's MLP has it
 *
 * Everything here is shared freely between threads.
 */
#ifndef WEIR_FUNCTIONS_H
#define WEIR_FUNCTIONS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- activations */

typedef enum weir_activation_kind {
    WEIR_FN_RELU,
    WEIR_FN_RELU2,
    WEIR_FN_GELU,      /* x Phi(x), Phi the normal distribution */
    WEIR_FN_GELU_TANH, /* its approximation by tanh */
    WEIR_FN_QUICK_GELU,
    WEIR_FN_SILU,
    WEIR_FN_SWISH, /* x sigmoid(beta x) */
    WEIR_FN_SIGMOID,
    WEIR_FN_IDENTITY,
    WEIR_FN_DRELU,  /* ReLU; gated: on gate and up */
    WEIR_FN_CLAMPED /* gpt-oss: g sigmoid(1.702 g) (u + 1), g = min(gate, 7), u in [-7, 7] */
} weir_activation_kind;

typedef struct weir_activation {
    weir_activation_kind kind;
    const char *name;
    const char *formula; /* of x */
    const char *gated;   /* what the product f(gate) * up is called */
    const char *met_in;  /* models that have it */
    bool runs;           /* the kernels have it, so weir_activation_run works, and weir_run_options.act may be it */
} weir_activation;

WEIR_API int weir_activation_count(void);
WEIR_API const weir_activation *weir_activation_at(int i);
/* By its name, or by one of its other names: "swiglu", "gelu_new", "glu", ... NULL: there is none. */
WEIR_API const weir_activation *weir_activation_named(const char *name);

/* In double precision. beta is read by WEIR_FN_SWISH alone. At a kink the slope is that of the kernels, 0. */
WEIR_API double weir_activation_value(const weir_activation *f, double beta, double x);
WEIR_API double weir_activation_slope(const weir_activation *f, double beta, double x);
/* What an MLP hands to its down projection: f(gate) * up, or what the kind says. */
WEIR_API double weir_activation_gate(const weir_activation *f, double beta, double gate, double up);

typedef enum weir_lowest_kind {
    WEIR_LOWEST_DIP,      /* at one place */
    WEIR_LOWEST_FLAT,     /* at it and everywhere left of it */
    WEIR_LOWEST_LIMIT,    /* not reached: x to minus infinity */
    WEIR_LOWEST_UNBOUNDED /* there is none */
} weir_lowest_kind;
typedef struct weir_lowest {
    weir_lowest_kind kind;
    double x, y;
} weir_lowest;
/* Where the function is lowest, to the last digits of a double. */
WEIR_API weir_lowest weir_activation_lowest(const weir_activation *f, double beta);

/* By the kernels: out[i] = f(pre[i]), with up: f(pre[i]) * up[i]; and the derivative of f, as gradients have it.
 * kernel: a table's name or NULL. WEIR_E_UNSUPPORTED where no model that weir runs has the function. */
WEIR_API WEIR_CHECKED weir_status weir_activation_run(const weir_activation *f, float *out, const float *pre,
                                                      const float *up, int64_t n, const char *kernel, weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_activation_run_slope(const weir_activation *f, float *out, const float *pre,
                                                            int64_t n, const char *kernel, weir_err *err);

/* --- norms: out = (x - mean) / scale * (offset + gain) + bias, mean 0 for RMSNorm; scale = sqrt(mean of the squares +
 * eps) */
typedef struct weir_norming {
    bool rms;
    double eps, offset;       /* offset: 1 in Gemma, whose file stores gain - 1; else 0 */
    const float *gain, *bias; /* [n] or NULL: a gain of 1 whatever the offset; no bias */
} weir_norming;
typedef struct weir_normed {
    double mean, scale;
} weir_normed;
/* Rows of n numbers. By the kernels, in fp32: out [rows, n]; *first, if not NULL, is about the first row. */
WEIR_API WEIR_CHECKED weir_status weir_norming_run(const weir_norming *f, float *out, weir_normed *first,
                                                   const float *x, int64_t rows, int64_t n, const char *kernel,
                                                   weir_err *err);
/* One row in double precision. out may be x. */
WEIR_API weir_normed weir_norming_exact(const weir_norming *f, double *out, const double *x, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
