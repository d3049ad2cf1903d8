/* tokenizer/pretok.h: the splitters that cut a text into the pieces that BPE sees. Each known regular expression has a
 * matcher written by hand; an unknown one is refused by the reader of the file. */
#ifndef WEIR_TOK_PRETOK_H
#define WEIR_TOK_PRETOK_H

#include <stddef.h>
#include <stdint.h>

#include <weir/base.h>

/* Length of the first piece of p[0, n), n > 0: between 1 and n. The pieces of a text tile it. */
typedef size_t weir_tok_splitter(const uint8_t *p, size_t n);

weir_tok_splitter weir_split_gpt2, weir_split_llama3, weir_split_qwen2;
weir_tok_splitter weir_split_each_digit;  /* Digits(individual): every number alone, the rest in runs */
weir_tok_splitter weir_split_digit_runs;  /* Digits: runs of numbers, the rest in runs */
weir_tok_splitter weir_split_at_meta;     /* Metaspace(split): before every U+2581 */
weir_tok_splitter weir_split_before_meta; /* before a U+2581 that follows something else */

typedef struct weir_tok_pattern {
    const char *name;
    weir_tok_splitter *split;
} weir_tok_pattern;

/* The pattern whose regular expression this is, or NULL. */
const weir_tok_pattern *weir_tok_pattern_of_regex(weir_str regex);
/* The regular expression that a splitter stands for, or NULL: it stands for none. */
const char *weir_tok_regex_of(weir_tok_splitter *split);

#endif
