/* weir/collapse.h: do the rows of a model become alike, and what keeps them apart? The numbers of Dong, Cordonnier and
 * Loukas 2021, "Attention is not all you need: pure attention loses rank doubly exponentially with depth".
 *
 *     weir_alike a;
 *     weir_alike_measure(&a, x, n, C, &err);                   // how far rows [n,C] are from n equal ones
 *     weir_alike_singular(x, n, C, true, 5, value, &err);      // singular values of what is left of them
 *     weir_run_hook(run, weir_hook_class_find("without"), "skip,mlp", &err);     // attention alone: hooks/without.c
 *     weir_hull_new(&h, model, 64, 1, &err);                   // what leaves the hull of what it was made of
 *     weir_lipschitz_measure(s, model, 3, x, n, &o, &err);       // how much an MLP can stretch a small step
 *     weir_model_random("random/", model, 1, 0.02, &err);      // the same shape with weights as before training
 *
 * All sums here are in double and in one order: results do not depend on threads, batch or kernel table, as the values
 * that they are made of do not. Singular values come of LAPACK (weir/linalg.h).
 */
#ifndef WEIR_COLLAPSE_H
#define WEIR_COLLAPSE_H

#include "run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- rows that are alike */

/* Of a matrix X [n,C] and of what is left of it, R = X - 1 m^T, where m is the mean of its rows. That is the smallest
 * rest in Frobenius's norm; the paper's composite norm sqrt(|X|_1 |X|_inf), of the largest sums of magnitudes in a
 * column and in a row, has its smallest rest at another m, and it is at least 1 / (2 - 2/n) of this one. */
typedef struct weir_alike {
    double composite, composite_rest;
    double frobenius, frobenius_rest;
    double cosine; /* mean over all pairs of rows that are not 0; NaN: there are less than two */
} weir_alike;

/* x [n,C], n >= 1. Where an element is not finite all are NaN. Errors: WEIR_E_NOMEM. */
WEIR_API WEIR_CHECKED weir_status weir_alike_measure(weir_alike *out, const float *x, int64_t n, int64_t c,
                                                     weir_err *err);
/* The k largest singular values of X, or (rest) of R: value [k], those behind min(n, C) are 0. NaN where an element is
 * not finite. Values below 1e-8 of the largest cannot be told from 0. */
WEIR_API WEIR_CHECKED weir_status weir_alike_singular(const float *x, int64_t n, int64_t c, bool rest, int64_t k,
                                                      double *value, weir_err *err);

/* --- hulls. What a softmax mixes lies in the convex hull of what it mixes: along no direction does it go further than
 * the furthest of those. A direction along which it does proves that it lies outside; finding none proves nothing. */

typedef struct weir_hull_count {
    int64_t points, outside; /* points that were tested, and that some direction puts outside */
    int64_t pairs, beyond;   /* of points and directions */
} weir_hull_count;

typedef struct weir_hull_layer {
    /* hook_z of each head against hook_v of its tokens so far. An excess within the rounding of fp32 sums is none. */
    weir_hull_count heads;
    /* The stream behind attention against the stream before it, of all rows of the sequence; behind the MLP against
       before it. Parallel blocks have no stream between: attention has no points, and the MLP's are those of the block.
     */
    weir_hull_count attention, mlp;
    double least; /* smallest weight of hook_pattern */
    double off;   /* largest distance of a row's sum from 1 */
} weir_hull_layer;

typedef struct weir_hull weir_hull;
/* directions: unit vectors drawn from the seed, the same for every layer. */
WEIR_API WEIR_CHECKED weir_status weir_hull_new(weir_hull **out, const weir_model *m, int64_t directions, uint64_t seed,
                                                weir_err *err);
WEIR_API void weir_hull_free(weir_hull *h);
/* Listens to a run of the model from now on; h outlives the run. Sequences have to be whole: without a slot. Rows that
 * are not kept are mixed, but not tested. */
WEIR_API WEIR_CHECKED weir_status weir_hull_attach(weir_hull *h, weir_run *run, weir_err *err);
WEIR_API const weir_hull_layer *weir_hull_of(const weir_hull *h, int64_t layer);

/* --- MLPs. Of one at a point, the function from what it reads, ln2.hook_out, to hook_mlp_out (a norm behind it
 * included), and the largest factor by which it stretches a small step: |J|_2, J its derivative there. No Lipschitz
 * constant of the MLP is smaller. */

typedef struct weir_lipschitz {
    double factor;   /* |J^T u| of a unit vector u: never above |J|_2, but for fp32's rounding */
    double residual; /* |J^T J v - s v| / s, s = |J v|^2, of the unit vector v before the last step */
    int64_t iterations;
} weir_lipschitz;

typedef struct weir_lipschitz_options {
    int threads; /* as in weir_run_options */
    const char *kernel;
    const weir_edit *const *edits;
    int n_edits;
    int64_t iterations; /* at most; 1 or more */
    double tolerance;   /* residuals below this end it */
    uint64_t seed;      /* of the first vectors */
} weir_lipschitz_options;

/* Power iteration at n points x [n,C] of a layer, all at once: J^T u by the model's own way back (weir/grad.h), J v by
 * central differences of its own forward pass, a 256th of the point's length apart: an error of the direction J v
 * counts squared in the factor, which is of J^T alone. out [n]. Points that are 0 or not finite: NaN. Interventions
 * have no part in it. */
WEIR_API WEIR_CHECKED weir_status weir_lipschitz_measure(weir_lipschitz *out, const weir_model *m, int64_t layer,
                                                         const float *x, int64_t n, const weir_lipschitz_options *o,
                                                         weir_err *err);

/* --- weights as before training */

/* Writes a checkpoint of m's shape into a new directory: every matrix and table drawn from the normal distribution with
 * standard deviation `scale`, biases 0, gains 1; config.json; no tokenizer. Of one layer and kind of weight the numbers
 * depend on the seed, the layer and the kind alone. Errors: the directory is there and not empty (WEIR_E_ARG); what a
 * GGUF file has and no class of Hugging Face takes (WEIR_E_UNSUPPORTED). */
WEIR_API WEIR_CHECKED weir_status weir_model_random(const char *dir, const weir_model *m, uint64_t seed, double scale,
                                                    weir_err *err);

#ifdef __cplusplus
}
#endif
#endif
