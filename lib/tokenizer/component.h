/* tokenizer/component.h: one step of a tokenizer.json, read whatever the order of its keys. */
#ifndef WEIR_TOK_COMPONENT_H
#define WEIR_TOK_COMPONENT_H

#include "pipeline.h"

/* Strings are kept by the tokenizer, raw values point into the source. p == NULL or -1: absent. */
typedef struct weir_tok_component {
    weir_str raw; /* the step itself */
    weir_str type, text, pattern, regex, scheme, behavior;
    weir_str parts, single; /* the steps of a Sequence; the template of a TemplateProcessing */
    int add_prefix_space, use_regex, individual_digits, invert, split;
    int64_t start, stop;
} weir_tok_component;

/* null gives a component without type. */
WEIR_CHECKED weir_status weir_tok_component_read(weir_tokenizer *t, const weir_tok_source *src, weir_str raw,
                                                 weir_tok_component *c, weir_err *err);

/* Calls step(t, src, raw part, ctx) for each part of a Sequence. */
typedef weir_status weir_tok_step(weir_tokenizer *t, const weir_tok_source *src, weir_str raw, void *ctx,
                                  weir_err *err);
WEIR_CHECKED weir_status weir_tok_component_parts(weir_tokenizer *t, const weir_tok_source *src,
                                                  const weir_tok_component *c, weir_tok_step *step, void *ctx,
                                                  weir_err *err);

/* The refusal of a step: "normalizer Lowercase is not supported", with its place. */
weir_status weir_tok_refuse(const weir_tok_source *src, const weir_tok_component *c, const char *what, const char *why,
                            weir_err *err);

#endif
