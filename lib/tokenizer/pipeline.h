/* tokenizer/pipeline.h: the steps of a tokenizer.json (normalizer, pre_tokenizer, post_processor, decoder). Whatever is
 * not known is refused by its name: a step left out would give wrong ids without a word. */
#ifndef WEIR_TOK_PIPELINE_H
#define WEIR_TOK_PIPELINE_H

#include <weir/json.h>

#include "tok.h"

/* A JSON text in memory, and its name for errors. */
typedef struct weir_tok_source {
    const char *text;
    const char *file;
    int depth; /* of the Sequence being read, within others */
} weir_tok_source;

/* Opens a reader on one raw value of the source, so that errors carry the offset in the file. */
void weir_tok_json_at(weir_json *j, const weir_tok_source *src, weir_str raw, weir_err *err);

/* Makes the failure of a call the reader's own, at its place. WEIR_OK does nothing. */
void weir_tok_json_fail(weir_json *j, weir_status s);
/* The string that comes next, kept by the tokenizer; p == NULL when the reader has failed. */
weir_str weir_tok_json_string(weir_tokenizer *t, weir_json *j);

/* raw.p == NULL: the key is absent. The normalizer must be read before the pre_tokenizer. */
WEIR_CHECKED weir_status weir_tok_read_normalizer(weir_tokenizer *t, const weir_tok_source *src, weir_str raw,
                                                  weir_err *err);
WEIR_CHECKED weir_status weir_tok_read_pre_tokenizer(weir_tokenizer *t, const weir_tok_source *src, weir_str raw,
                                                     weir_err *err);
WEIR_CHECKED weir_status weir_tok_read_decoder(weir_tokenizer *t, const weir_tok_source *src, weir_str raw,
                                               weir_err *err);
/* *first: the special token that the template of a single text begins with (kept by the tokenizer), or p == NULL. */
WEIR_CHECKED weir_status weir_tok_read_post_processor(weir_tokenizer *t, const weir_tok_source *src, weir_str raw,
                                                      weir_str *first, weir_err *err);

/* Adds a step; too many are refused. */
WEIR_CHECKED weir_status weir_tok_add_op(weir_tok_ops *ops, weir_tok_op_kind kind, weir_str from, weir_str to,
                                         weir_err *err);
WEIR_CHECKED weir_status weir_tok_add_stage(weir_tokenizer *t, weir_tok_splitter *split, const char *name,
                                            weir_err *err);
/* Gives well-known sequences of stages their usual name ("smollm"), and "none" to no stage. */
void weir_tok_name_pattern(weir_tokenizer *t);

#endif
