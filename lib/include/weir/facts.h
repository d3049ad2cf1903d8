/* weir/facts.h: what a model answers, with its edits or without: probabilities, ranks, greedy text.
 *
 *     weir_asker *a;
 *     weir_asker_new(&a, model, tok, &(weir_asker_options){.edits = stack, .n_edits = 1, .bos = true}, &err);
 *     const weir_question q = {"Mount Hood rises from the", "Caucasus"};
 *     weir_answer r;
 *     weir_asker_ask(a, &q, 1, &r, &err);                     // r.p, r.rank, r.top
 *     weir_asker_free(a);
 *
 * The answer's tokens are those that it has behind the prompt, with one space between: the whole text is tokenised
 * once.
 */
#ifndef WEIR_FACTS_H
#define WEIR_FACTS_H

#include "edit.h"
#include "tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tokens of `answer` behind `prompt`: *id [*n], owned by the caller (free). Blanks at the prompt's end and the
 * answer's beginning do not count. Errors (WEIR_E_ARG): an answer without a token, or whose first token begins inside
 * the prompt. */
WEIR_API WEIR_CHECKED weir_status weir_answer_tokens(const weir_tokenizer *tok, const char *prompt, const char *answer,
                                                     int32_t **id, int64_t *n, weir_err *err);

/* A prompt with its subject where "{}" stands; one without "{}" is whole already. The caller's (free); NULL: out of
 * memory. */
WEIR_API char *weir_fact_prompt(const char *prompt, const char *subject);

typedef struct weir_asker weir_asker;
typedef struct weir_asker_options {
    const weir_edit *const *edits; /* [n_edits], borrowed */
    int n_edits;
    bool bos;
    int threads; /* as in weir_run_options, these three */
    const char *kernel;
    int64_t memory;
} weir_asker_options;
/* Model, tokenizer and edits are borrowed. One thread at a time. */
WEIR_API WEIR_CHECKED weir_status weir_asker_new(weir_asker **out, const weir_model *m, const weir_tokenizer *tok,
                                                 const weir_asker_options *o, weir_err *err);
WEIR_API void weir_asker_free(weir_asker *a);

typedef struct weir_question {
    const char *prompt, *answer;
} weir_question;

typedef struct weir_answer {
    int64_t tokens; /* of the answer */
    double nll;     /* mean over them of -log p, each given those before it */
    double p;       /* exp(-nll tokens): probability of the whole answer */
    int64_t rank;   /* of its first token; 1: the likeliest; ties go to the lower id */
    int32_t first;  /* its first token */
    int32_t top;    /* the likeliest token there, */
    double top_p;   /* and its probability */
    bool greedy;    /* every token of the answer is the likeliest at its place */
} weir_answer;

/* Questions [n], as many at once as fit; the answers do not depend on that. Errors (WEIR_E_ARG): those of
 * weir_answer_tokens; prompt and answer longer than the context; logits that are not finite. */
WEIR_API WEIR_CHECKED weir_status weir_asker_ask(weir_asker *a, const weir_question *q, int64_t n, weir_answer *answer,
                                                 weir_err *err);
/* The likeliest continuation: up to n tokens into id [n], *made of them (fewer at the end-of-text token, which is not
 * among them, and at the end of the context). */
WEIR_API WEIR_CHECKED weir_status weir_asker_continue(weir_asker *a, const char *prompt, int64_t n, int32_t *id,
                                                      int64_t *made, weir_err *err);
/* Mean -log p of the text's tokens (from the second on; behind BOS from the first), in windows of the context, and how
 * many they are. Errors (WEIR_E_ARG): logits that are not finite. */
WEIR_API WEIR_CHECKED weir_status weir_asker_text(weir_asker *a, const char *text, size_t len, double *nll,
                                                  int64_t *tokens, weir_err *err);
/* The mean over the tokens of texts [n], each of which begins anew. NaN: they have none. */
WEIR_API WEIR_CHECKED weir_status weir_asker_texts(weir_asker *a, const weir_str *text, int64_t n, double *nll,
                                                   int64_t *tokens, weir_err *err);

/* --- records of facts: CounterFact (Meng et al., arXiv 2202.05262, appendix F) in its full form (requested_rewrite,
 * paraphrase_prompts, neighborhood_prompts, generation_prompts) and flattened (prompt, subject, target_new,
 * ground_truth, rephrase_prompt, locality_prompt, locality_ground_truth); a JSON array, or JSONL; .gz or not. */

typedef struct weir_fact {
    int64_t id;                    /* case_id, else its place in the file, from 0 */
    const char *prompt, *subject;  /* prompt with "{}" */
    const char *truth, *target;    /* the answer before, and the new one */
    const char *neighbour_truth;   /* what neighbours should go on to answer: truth, unless the record says another */
    const char *const *paraphrase; /* [n_paraphrase] whole prompts, these three */
    const char *const *neighbour;  /* [n_neighbour] */
    const char *const *generation; /* [n_generation] */
    int64_t n_paraphrase, n_neighbour, n_generation;
} weir_fact;

typedef struct weir_fact_list weir_fact_list;
/* Errors (WEIR_E_FORMAT with file and line or byte): no such records; a record that lacks a field; a flat record whose
 * subject is not once in its prompt. */
WEIR_API WEIR_CHECKED weir_status weir_fact_list_read(weir_fact_list **out, const char *path, weir_err *err);
WEIR_API void weir_fact_list_free(weir_fact_list *f);
WEIR_API int64_t weir_fact_list_n(const weir_fact_list *f);
WEIR_API const weir_fact *weir_fact_list_at(const weir_fact_list *f, int64_t i); /* borrowed */

/* --- scores of a model on a record: shares of prompts, and means of p(new) - p(true) (for neighbours: of
 * p(true) - p(new)), p the geometric mean over an answer's tokens: exp(-nll). NaN where there is no such prompt. */
typedef struct weir_fact_scores {
    double rewrite, paraphrase, neighbour;          /* nll(true) > nll(new); neighbours: nll(true) < nll(new) */
    double rewrite_by, paraphrase_by, neighbour_by; /* magnitudes */
    double said, neighbour_said; /* the new answer is what the model says, greedily; of neighbours the true one */
} weir_fact_scores;
WEIR_API WEIR_CHECKED weir_status weir_asker_score(weir_asker *a, const weir_fact *f, weir_fact_scores *out,
                                                   weir_err *err);

#ifdef __cplusplus
}
#endif
#endif
