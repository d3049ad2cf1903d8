/* weir/sample.h: from logits to the next token.
 *
 *     weir_sampling o; weir_sampling_init(&o);              // greedy
 *     o.temperature = 0.8f, o.top_p = 0.95f, o.seed = 7;
 *     weir_sampler *s;
 *     weir_sampler_new(&s, V, &o, &err);
 *     weir_run_logits(run, row, 1, logits, &err);           // [V]
 *     weir_sampler_next(s, logits, ids, n, 0, n, &id, &err);
 *     weir_sampler_free(s);
 *
 * What happens to the scores, in this order, which is that of Hugging Face transformers (5.24,
 * GenerationMixin._get_logits_processor), each step only where its option asks for it:
 *
 *   1. repetition penalty r (Keskar et al. 2019, arXiv 1909.05858, section 4.1, with the division of negative scores
 *      turned round, as transformers does it): the score of each token that the sequence holds, prompt included, is
 *      divided by r if it is positive, and multiplied by r if it is negative; once, however often the token occurs;
 *   2. temperature 0: greedy: the token of the highest score, of equals the one of the lowest id; no draw, and the
 *      steps below do nothing. Else all scores are divided by the temperature;
 *   3. top-k (Fan et al. 2018, arXiv 1805.04833): scores below the k-th highest are out; all that equal it stay;
 *   4. top-p (Holtzman et al. 2019, arXiv 1904.09751): from the likeliest on, of equals the lowest id first, tokens
 *      stay as long as those before them have less than p together;
 *   5. min-p (Nguyen et al. 2024, arXiv 2407.01082): tokens with less than min_p times the probability of the likeliest
 *      are out;
 *   6. the draw: of those that stay, in the order of their ids, the first whose cumulative probability exceeds a number
 *      of [0, 1).
 *
 * Steps 1 and 2 are float32, as they are there; probabilities are float64 sums in one fixed order, and their
 * exponential is the library's own. The number of step 6 is made of the seed, the stream (which sample) and the step
 * (which position) alone. So the same logits give the same token, whatever the machine, the threads, or the sequences
 * beside this one.
 */
#ifndef WEIR_SAMPLE_H
#define WEIR_SAMPLE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_sampling {
    float temperature;        /* 0 (the default): greedy */
    int64_t top_k;            /* 0: off */
    float top_p;              /* of (0, 1]; 1 (the default): off */
    float min_p;              /* of [0, 1]; 0: off */
    float repetition_penalty; /* above 0; 1 (the default): off. Above 1 discourages */
    uint64_t seed;
} weir_sampling;
WEIR_API void weir_sampling_init(weir_sampling *o);
/* Errors (WEIR_E_ARG): a value out of its range or not finite. */
WEIR_API WEIR_CHECKED weir_status weir_sampling_check(const weir_sampling *o, weir_err *err);

/* Working memory for V scores; one thread's at a time. */
typedef struct weir_sampler weir_sampler;
/* v: the scores of a token, 1 to 2^31 - 1. Errors: those of weir_sampling_check. */
WEIR_API WEIR_CHECKED weir_status weir_sampler_new(weir_sampler **out, int64_t v, const weir_sampling *o,
                                                   weir_err *err);
WEIR_API void weir_sampler_free(weir_sampler *s);

/* The token that follows. logits [V]; ids [n]: the sequence so far, for the repetition penalty (ids outside 0..V-1 are
 * passed over). stream and step choose the random number. A score of -inf is never taken. Errors (WEIR_E_ARG): a logit
 * that is not a number or is +inf (the model or a hook is broken); all are -inf. */
WEIR_API WEIR_CHECKED weir_status weir_sampler_next(weir_sampler *s, const float *logits, const int32_t *ids, int64_t n,
                                                    uint64_t stream, uint64_t step, int32_t *id, weir_err *err);
/* The scores behind steps 1 to 5, -inf where a token is out: what weir_sampler_next draws from. out [V]. For greedy
 * sampling, the scores behind step 1. Errors as there. */
WEIR_API WEIR_CHECKED weir_status weir_sampler_scores(weir_sampler *s, const float *logits, const int32_t *ids,
                                                      int64_t n, float *out, weir_err *err);
/* log p(id) of the model itself, whatever the options: the number that weir_run_logprobs gives, to the bit. */
WEIR_API float weir_sampler_logprob(const weir_sampler *s, const float *logits, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
