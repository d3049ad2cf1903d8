/* edit/entropy.h: how varied a model's text is. */
#ifndef WEIR_ENTROPY_H
#define WEIR_ENTROPY_H

#include <weir/facts.h>

/* Mean over the record's generation prompts of (2/3 H2 + 4/3 H3) / 2, Hn the entropy in bits of the n-grams of words
 * (Meng et al., arXiv 2202.05262, section 3.4) of prompt and `tokens` greedy tokens. Words end at white space, and
 * punctuation is a word of its own. NaN: no such prompt. */
WEIR_CHECKED weir_status weir_entropy(weir_asker *a, const weir_tokenizer *tok, const weir_fact *f, int64_t tokens,
                                      double *out, weir_err *err);

#endif
