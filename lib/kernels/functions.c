/* kernels/functions.c: activations in double precision, and by the kernels on numbers of the caller's own. */
#include <weir/functions.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/backward.h"

#define QUICK 1.702 /* quick GELU and gpt-oss: the logistic curve nearest to the normal distribution */
#define LIMIT 7.0   /* gpt-oss's swiglu_limit */
#define SQRT_2_OVER_PI 0.79788456080286535588
#define SQRT_HALF 0.70710678118654752440
#define CUBIC 0.044715

static const weir_activation table[] = {
    {WEIR_FN_RELU, "relu", "max(0, x)", "ReGLU", "Transformer 2017, OPT, T5", true},
    {WEIR_FN_RELU2, "relu2", "max(0, x)^2", "squared ReGLU", "Primer, Nemotron-H", true},
    {WEIR_FN_GELU, "gelu", "x Phi(x) = 0.5 x (1 + erf(x / sqrt 2))", "GEGLU", "BERT, Falcon, GPT-NeoX", true},
    {WEIR_FN_GELU_TANH, "gelu_tanh", "0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))", "GEGLU (tanh)",
     "GPT-2, GPT-3, Gemma, T5 1.1", true},
    {WEIR_FN_QUICK_GELU, "quick_gelu", "x sigmoid(1.702 x)", "GEGLU (quick)", "CLIP", true},
    {WEIR_FN_SILU, "silu", "x sigmoid(x)", "SwiGLU", "Llama, Mistral, Qwen, PaLM", true},
    {WEIR_FN_SWISH, "swish", "x sigmoid(beta x)", "SwiGLU (beta)", "Ramachandran et al. 2017", false},
    {WEIR_FN_SIGMOID, "sigmoid", "1 / (1 + exp(-x))", "GLU", "Dauphin et al. 2017", false},
    {WEIR_FN_IDENTITY, "identity", "x", "bilinear", "Shazeer 2020", true},
    {WEIR_FN_DRELU, "drelu", "max(0, x), of gate and of up", "dReLU", "TurboSparse", false},
    {WEIR_FN_CLAMPED, "gpt_oss", "g sigmoid(1.702 g), g = min(x, 7); gated: times up in [-7, 7], plus 1",
     "clamped SwiGLU", "gpt-oss", false},
};

/* Other names, of papers and of config.json. */
static const struct {
    const char *name;
    weir_activation_kind kind;
} alias[] = {
    {"swiglu", WEIR_FN_SILU},         {"geglu", WEIR_FN_GELU},         {"reglu", WEIR_FN_RELU},
    {"glu", WEIR_FN_SIGMOID},         {"bilinear", WEIR_FN_IDENTITY},  {"linear", WEIR_FN_IDENTITY},
    {"gelu_erf", WEIR_FN_GELU},       {"gelu_new", WEIR_FN_GELU_TANH}, {"gelu_pytorch_tanh", WEIR_FN_GELU_TANH},
    {"gelu_fast", WEIR_FN_GELU_TANH}, {"relu_squared", WEIR_FN_RELU2}, {"gpt-oss", WEIR_FN_CLAMPED},
};

int weir_activation_count(void)
{
    return (int)(sizeof table / sizeof *table);
}

const weir_activation *weir_activation_at(int i)
{
    return i >= 0 && i < weir_activation_count() ? &table[i] : NULL;
}

const weir_activation *weir_activation_named(const char *name)
{
    for (int i = 0; i < weir_activation_count(); i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    for (size_t i = 0; i < sizeof alias / sizeof *alias; i++)
        if (!strcmp(alias[i].name, name))
            return &table[alias[i].kind];
    return NULL;
}

/* --- double precision */

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* x sigmoid(b x); 0 where exp overflows, whatever the sign of x. */
static double swish(double x, double b)
{
    return x / (1 + exp(-b * x));
}

static double swish_slope(double x, double b)
{
    const double s = logistic(b * x), rest = logistic(-b * x); /* 1 - s without cancellation */
    return s + (s == 0 || rest == 0 ? 0 : b * x * s * rest);
}

/* The factor by which the swish of tanh GELU's argument is written: 0.5 (1 + tanh u) = sigmoid(2 u). */
static double tanh_argument(double x)
{
    return 2 * SQRT_2_OVER_PI * (x + CUBIC * x * x * x);
}

static double tanh_slope(double x)
{
    const double u = tanh_argument(x), s = logistic(u), rest = logistic(-u);
    return s + (s == 0 || rest == 0 ? 0 : x * s * rest * 2 * SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x));
}

double weir_activation_value(const weir_activation *f, double beta, double x)
{
    switch (f->kind) {
    case WEIR_FN_RELU:
    case WEIR_FN_DRELU:
        return x > 0 ? x : x != x ? x : 0;
    case WEIR_FN_RELU2:
        return x > 0 ? x * x : x != x ? x : 0;
    case WEIR_FN_GELU: /* erfc: no cancellation far on the left */
        return 0.5 * x * erfc(-x * SQRT_HALF);
    case WEIR_FN_GELU_TANH:
        return x / (1 + exp(-tanh_argument(x)));
    case WEIR_FN_QUICK_GELU:
        return swish(x, QUICK);
    case WEIR_FN_SILU:
        return swish(x, 1);
    case WEIR_FN_SWISH:
        return swish(x, beta);
    case WEIR_FN_SIGMOID:
        return logistic(x);
    case WEIR_FN_CLAMPED:
        return swish(x > LIMIT ? LIMIT : x, QUICK);
    case WEIR_FN_IDENTITY:
        break;
    }
    return x;
}

double weir_activation_slope(const weir_activation *f, double beta, double x)
{
    switch (f->kind) {
    case WEIR_FN_RELU:
    case WEIR_FN_DRELU:
        return x > 0;
    case WEIR_FN_RELU2:
        return x > 0 ? 2 * x : 0;
    case WEIR_FN_GELU: /* Phi + x phi; phi = exp(-x^2 / 2) / sqrt(2 pi) */
        return 0.5 * erfc(-x * SQRT_HALF) + x * exp(-0.5 * x * x) * (0.5 * SQRT_2_OVER_PI);
    case WEIR_FN_GELU_TANH:
        return tanh_slope(x);
    case WEIR_FN_QUICK_GELU:
        return swish_slope(x, QUICK);
    case WEIR_FN_SILU:
        return swish_slope(x, 1);
    case WEIR_FN_SWISH:
        return swish_slope(x, beta);
    case WEIR_FN_SIGMOID:
        return logistic(x) * logistic(-x);
    case WEIR_FN_CLAMPED:
        return x > LIMIT ? 0 : swish_slope(x, QUICK);
    case WEIR_FN_IDENTITY:
        break;
    }
    return 1;
}

double weir_activation_gate(const weir_activation *f, double beta, double gate, double up)
{
    if (f->kind == WEIR_FN_DRELU)
        up = weir_activation_value(f, beta, up);
    else if (f->kind == WEIR_FN_CLAMPED)
        up = (up > LIMIT ? LIMIT : up < -LIMIT ? -LIMIT : up) + 1;
    return weir_activation_value(f, beta, gate) * up;
}

/* The slope is negative left of the dip and positive right of it, down to the last bit of `low` and `high`. */
static double dip_between(const weir_activation *f, double beta, double low, double high)
{
    for (;;) {
        const double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high)
            return middle;
        if (weir_activation_slope(f, beta, middle) < 0)
            low = middle;
        else
            high = middle;
    }
}

weir_lowest weir_activation_lowest(const weir_activation *f, double beta)
{
    double b = 1; /* the dip of x sigmoid(b x) is at -1.278 / b, those of both GELUs at -0.752 */
    switch (f->kind) {
    case WEIR_FN_RELU:
    case WEIR_FN_RELU2:
    case WEIR_FN_DRELU:
        return (weir_lowest){WEIR_LOWEST_FLAT, 0, 0};
    case WEIR_FN_SIGMOID:
        return (weir_lowest){WEIR_LOWEST_LIMIT, -INFINITY, 0};
    case WEIR_FN_IDENTITY:
        return (weir_lowest){WEIR_LOWEST_UNBOUNDED, -INFINITY, -INFINITY};
    case WEIR_FN_SWISH:
        if (!(beta > 0)) /* x / 2, or turned round */
            return (weir_lowest){WEIR_LOWEST_UNBOUNDED, -INFINITY, -INFINITY};
        b = beta;
        break;
    default:
        break;
    }
    const double x = dip_between(f, beta, -3 / b, 0);
    return (weir_lowest){WEIR_LOWEST_DIP, x, weir_activation_value(f, beta, x)};
}

/* --- by the kernels */

weir_act weir_activation_act(const weir_activation *f)
{
    static const weir_act act[] = {[WEIR_FN_RELU] = WEIR_ACT_RELU,
                                   [WEIR_FN_RELU2] = WEIR_ACT_RELU2,
                                   [WEIR_FN_GELU] = WEIR_ACT_GELU_ERF,
                                   [WEIR_FN_GELU_TANH] = WEIR_ACT_GELU_TANH,
                                   [WEIR_FN_QUICK_GELU] = WEIR_ACT_QUICK_GELU,
                                   [WEIR_FN_SILU] = WEIR_ACT_SILU,
                                   [WEIR_FN_IDENTITY] = WEIR_ACT_IDENTITY};
    return act[f->kind];
}

static weir_status pick(const weir_kern **out, const weir_activation *f, const char *kernel, weir_err *err)
{
    if (!f->runs)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "no model that weir runs has the activation %s", f->name);
    return weir_kern_pick(out, kernel, err);
}

weir_status weir_activation_run(const weir_activation *f, float *out, const float *pre, const float *up, int64_t n,
                                const char *kernel, weir_err *err)
{
    const weir_kern *k;
    WEIR_TRY(pick(&k, f, kernel, err));
    weir_op_act(k, 1, weir_activation_act(f), out, pre, up, n);
    return WEIR_OK;
}

weir_status weir_activation_run_slope(const weir_activation *f, float *out, const float *pre, int64_t n,
                                      const char *kernel, weir_err *err)
{
    const weir_kern *k;
    WEIR_TRY(pick(&k, f, kernel, err));
    for (int64_t i = 0; i < n; i++)
        out[i] = 1; /* of the gradient of their sum */
    weir_act_backward(k, 1, weir_activation_act(f), out, NULL, out, pre, NULL, n);
    return WEIR_OK;
}

/* --- norms */

weir_status weir_norming_run(const weir_norming *f, float *out, weir_normed *first, const float *x, int64_t rows,
                             int64_t n, const char *kernel, weir_err *err)
{
    const weir_kern *k;
    if (rows < 1 || n < 1)
        return weir_fail(err, WEIR_E_ARG, "a norm of %lld rows of %lld numbers", (long long)rows, (long long)n);
    WEIR_TRY(weir_kern_pick(&k, kernel, err));
    float *scale = weir_calloc((size_t)rows, 2 * sizeof *scale);
    if (!scale)
        return weir_nomem(err, "the scales of a norm");
    const weir_norm norm = {.rms = f->rms,
                            .eps = (float)f->eps,
                            .offset = (float)f->offset,
                            .w = f->gain,
                            .b = f->bias,
                            .rows = rows,
                            .c = n,
                            .x = x,
                            .scale = scale,
                            .mean = scale + rows,
                            .out = out};
    weir_norm_run(k, 1, &norm);
    if (first)
        *first = (weir_normed){(double)scale[rows], (double)scale[0]};
    weir_free(scale);
    return WEIR_OK;
}

weir_normed weir_norming_exact(const weir_norming *f, double *out, const double *x, int64_t n)
{
    weir_normed s = {0, 0};
    for (int64_t i = 0; i < n && !f->rms; i++)
        s.mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        s.scale += (x[i] - s.mean) * (x[i] - s.mean) / (double)n;
    s.scale = sqrt(s.scale + f->eps);
    for (int64_t i = 0; i < n; i++) {
        const double gain = f->gain ? f->offset + (double)f->gain[i] : 1;
        out[i] = (x[i] - s.mean) / s.scale * gain + (f->bias ? (double)f->bias[i] : 0);
    }
    return s;
}
