/* lens/token.h: tokens and numbers as the outputs of logit-lens write them. */
#ifndef WEIR_TOOLS_LENS_TOKEN_H
#define WEIR_TOOLS_LENS_TOKEN_H

#include "cli/printable.h"
#include "view.h"

/* Appends a token in printable form; <#ID> where it has no bytes, or tok is NULL. */
void weir_lens_token(weir_text *t, const weir_tokenizer *tok, int32_t id);
/* A number in at most weir_lens_short_columns characters: ".123", "12.3", "-" for NaN and rank 0. Returns buf. */
const char *weir_lens_short(char buf[16], weir_lens_stat stat, float x);
int weir_lens_short_columns(weir_lens_stat stat, int64_t V);
/* What the statistic that is shown is about, as one line to be freed: "probability of each row's own likeliest token".
 * NULL: out of memory. */
char *weir_lens_shown_text(const weir_lens_about *a);

#endif
