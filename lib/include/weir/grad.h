/* weir/grad.h: the backward pass: gradients of a scalar with respect to activations, at the names of hook points with
 * `_grad` behind them. Weights have no gradients here.
 *
 *     weir_run_options o; weir_run_options_init(&o);
 *     o.backward = true;                                        // the forward keeps what its backward needs
 *     weir_run_new(&run, model, &o, &err);
 *     weir_grad *g;
 *     weir_grad_new(&g, run, NULL, &err);
 *     weir_grad_to(g, weir_model_point(model, "blocks.3.hook_mlp_out"), dst, &err);     // dst [max_rows,C]
 *     weir_run_forward(run, &seq, 1, WEIR_FINAL, &err);
 *     weir_loss_term t = {.kind = WEIR_LOSS_NLL, .row = n - 1, .token = paris, .weight = 1};
 *     double loss;
 *     weir_grad_backward(g, &t, 1, NULL, 0, &loss, NULL, &err);  // dst = d loss / d hook_mlp_out
 *     weir_grad_free(g); weir_run_free(run);
 *
 * The gradient is that of the function that the pass computed: the values that hooks wrote are what follows them saw.
 * Through a hook that writes, its class's on_grad takes the gradient of what it left to that of what it found (zero
 * where it set a value, the same where it added one); a class that writes and has no on_grad cannot be attached to a
 * run with `backward`. The gradient at a point is that of what the hooks left there. Masked keys have no part in
 * anything: their gradients are 0. Of hook_result, which is read-only, it is what each head's share of the output gets.
 *
 * With edits (weir_run_options.edits) it is the edited model's. Behind a cached prefix the prefix is a constant. A pass
 * that began from a layer on (weir_run_forward_from) is gone back through to the stream that it was given, which is
 * blocks.LAYER.hook_resid_pre and blocks.(LAYER - 1).hook_resid_post.
 *
 * Steps are those of reverse-mode differentiation (Griewank and Walther, "Evaluating Derivatives", 2nd edition, 2008,
 * chapter 3), op by op in the forward's order turned round.
 *
 * The same bits for any number of threads, from every kernel table and under every bound of memory, as the forward;
 * rows of one sequence do not depend on the others of the batch.
 */
#ifndef WEIR_GRAD_H
#define WEIR_GRAD_H

#include "run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_grad weir_grad;

typedef struct weir_grad_options {
    int64_t memory; /* bytes that turned weights and the tape may take, besides the run's own; 0: no bound. What does
                       not fit is made anew: weights layer by layer, activations from each block's input. Less than the
                       stream before every block, one layer's activations and one layer's weights is refused
                       (WEIR_E_NOMEM, by the first weir_grad_backward). Layers in which hooks write are always kept */
} weir_grad_options;
WEIR_API void weir_grad_options_init(weir_grad_options *o);

/* run: made with `backward`, not prepared yet, borrowed; freed after g. Hooks may be attached before or after. One for
 * a run. o may be NULL. Errors: a run without `backward`, or one that is prepared (WEIR_E_ARG). */
WEIR_API WEIR_CHECKED weir_status weir_grad_new(weir_grad **out, weir_run *run, const weir_grad_options *o,
                                                weir_err *err);
WEIR_API void weir_grad_free(weir_grad *g);

/* One term of the scalar, at a row of the last pass. The scalar is the sum over terms of weight times: */
typedef enum weir_loss_kind {
    WEIR_LOSS_NLL,   /* -log p(token) */
    WEIR_LOSS_LOGIT, /* the logit of token (a difference of logits: two terms of weight 1 and -1) */
    WEIR_LOSS_KL     /* KL(p || q) = sum over v of p[v] (log p[v] - log q[v]), q given */
} weir_loss_kind;
typedef struct weir_loss_term {
    weir_loss_kind kind;
    int64_t row; /* [0, T) */
    int32_t token;
    float weight;
    const float *log_q; /* [V] KL only: log-probabilities; borrowed for the call */
} weir_loss_term;

/* Any other scalar: its derivative with respect to the values of one point. Added to what comes back there. */
typedef struct weir_grad_seed {
    const weir_point *point;
    const float *d; /* [T, width of the point]; scores and pattern: [T, H * S], S of this pass (weir_value) */
} weir_grad_seed;

/* Where gradients at a point go: dst [max_rows, width] (scores and pattern: [T, H * S], S of the pass), filled by each
 * weir_grad_backward from then on, owned by the caller. At any time. Several points may be asked for; NULL takes the
 * wish back. p: of the forward pass, not the one with `_grad`. */
WEIR_API WEIR_CHECKED weir_status weir_grad_to(weir_grad *g, const weir_point *p, float *dst, weir_err *err);

/* Backward from the last pass, which ran to its end; may be called several times for it. loss (may be NULL): the sum of
 * the terms, in double, added up in their order; seeds have no part in it. value (may be NULL): [n] each term's,
 * without its weight. It goes as far as the earliest point that somebody wants, and no further; points behind
 * everything that the scalar looks at get zeros. Hooks that want `_grad` points hear them in the order in which they
 * arise, the latest layer first, outside on_begin and on_end. Memory for the rows is made by the first call, and by one
 * that looks inside attention, at the logits or at hook_result for the first time. Errors: a pass that failed or ran
 * without WEIR_FINAL; a row, token or point that is not in it; neither term nor seed; a loss that is not finite (all
 * WEIR_E_ARG); a hook's own, also WEIR_STOP. */
WEIR_API WEIR_CHECKED weir_status weir_grad_backward(weir_grad *g, const weir_loss_term *term, int64_t n,
                                                     const weir_grad_seed *seed, int64_t n_seed, double *loss,
                                                     double *value, weir_err *err);

#ifdef __cplusplus
}
#endif
#endif
