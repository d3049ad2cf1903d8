/* edit/answer.h: prompts and answers as tokens. */
#ifndef WEIR_ANSWER_H
#define WEIR_ANSWER_H

#include <weir/tokenizer.h>

/* Without the blanks at its end. */
weir_str weir_prompt_trim(const char *prompt);
/* t: the tokens of prompt and answer together; the answer's begin at *first. Errors as of weir_answer_tokens. */
WEIR_CHECKED weir_status weir_answer_find(const weir_tokenizer *tok, weir_str prompt, const char *answer,
                                          weir_tokens *t, int64_t *first, weir_err *err);

#endif
