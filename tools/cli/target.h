/* cli/target.h: tokens that the command line names: --target next|final|TOKEN, --contrast A,B.
 *
 * A token is named by its text, which must be exactly one token (white space counts: " Paris"), by the vocabulary's own
 * spelling of it ("\u0120Paris"), or by its number (#1234).
 */
#ifndef WEIR_CLI_TARGET_H
#define WEIR_CLI_TARGET_H

#include "tool.h"

enum {
    WEIR_TARGET_NONE = -1,
    WEIR_TARGET_FINAL = WEIR_LENS_FINAL_TOP, /* the token that the model itself finds likeliest */
    WEIR_TARGET_NEXT = -3                    /* the token that follows in the text */
};

/* Each returns an exit code; an error, which begins with the option, has been said. tok NULL: numbers only. vocab: ids
 * are below this. */
int weir_token_named(const weir_cli *cli, const char *option, const weir_tokenizer *tok, int64_t vocab,
                     const char *text, size_t n, int32_t *id);
/* "next", "final" or a token; *id may be WEIR_TARGET_NEXT or _FINAL. */
int weir_target_parse(const weir_cli *cli, const char *option, const weir_tokenizer *tok, int64_t vocab,
                      const char *text, int32_t *id);
/* Two tokens with a comma between: the first one that leaves A a text, so that ",,x" is "," and "x". */
int weir_contrast_parse(const weir_cli *cli, const char *option, const weir_tokenizer *tok, int64_t vocab,
                        const char *text, int32_t id[2]);

#endif
