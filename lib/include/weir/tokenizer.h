/* weir/tokenizer.h: text to token ids and back, with byte offsets. Immutable after opening; shared freely.
 *
 *     weir_tokenizer *tok;
 *     weir_tokens t = {0};
 *     weir_tokenizer_open(&tok, "gpt2/", NULL, &err);           // a directory, a tokenizer.json or a .gguf
 *     weir_tokenizer_encode(tok, text, len, &t, &err);          // t.id[0..t.n)
 *     weir_tokens_free(&t);
 *
 * Ids equal those of Hugging Face tokenizers (no special tokens are added; added tokens that stand in the text are
 * recognised). Text is bytes: invalid UTF-8 is encoded byte by byte where the vocabulary can hold it.
 */
#ifndef WEIR_TOKENIZER_H
#define WEIR_TOKENIZER_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_tokenizer weir_tokenizer;

enum { WEIR_TOKEN_BOS = 1, WEIR_TOKEN_SPECIAL = 2, WEIR_TOKEN_LOST = 4 };

/* The tokens of one text. byte_off and byte_len give the bytes of the text that a token stands for; tokens tile the
 * text in order, and a normaliser that joins characters keeps this true. Bytes that no token holds (the vocabulary
 * lacks them, an unknown token stands for them, or an added token swallowed white space) are counted to the token
 * before them, or the first after them, or the unknown or added token, which then carries WEIR_TOKEN_LOST. Zero it
 * before the first use; encode appends nothing: it overwrites and grows as needed. */
typedef struct weir_tokens {
    int32_t *id;       /* [n] */
    int64_t *byte_off; /* [n] */
    int64_t *byte_len; /* [n] */
    uint8_t *flags;    /* [n] */
    int64_t n, cap;
    int64_t lost_bytes; /* bytes of the text that no token holds */
} weir_tokens;
WEIR_API void weir_tokens_free(weir_tokens *t);

/* path: a Hugging Face directory (tokenizer.json, else vocab.json + merges.txt), one such file, or a GGUF file. log may
 * be NULL. */
WEIR_API WEIR_CHECKED weir_status weir_tokenizer_open(weir_tokenizer **out, const char *path, const weir_log *log,
                                                      weir_err *err);
WEIR_API void weir_tokenizer_free(weir_tokenizer *tok);

WEIR_API WEIR_CHECKED weir_status weir_tokenizer_encode(const weir_tokenizer *tok, const void *text, size_t len,
                                                        weir_tokens *out, weir_err *err);

/* The bytes that token `id` adds to a text (U+2581 is a space, <0x41> is "A"). Empty for ids without a token. */
WEIR_API weir_str weir_tokenizer_bytes(const weir_tokenizer *tok, int32_t id);
/* The vocabulary's own spelling ("\u0120the", "\u2581the", "<0x41>"). */
WEIR_API weir_str weir_tokenizer_piece(const weir_tokenizer *tok, int32_t id);
WEIR_API bool weir_tokenizer_is_special(const weir_tokenizer *tok, int32_t id);
/* Exact lookup of a piece, or -1. */
WEIR_API int32_t weir_tokenizer_find(const weir_tokenizer *tok, weir_str piece);

/* Bytes of ids[n] as one text: writes at most cap bytes to buf, stores the whole length in *len. The decoder's rules
 * for the first token (a stripped leading space) apply. keep_special: also write special tokens' text. Unknown ids:
 * WEIR_E_ARG. */
WEIR_API WEIR_CHECKED weir_status weir_tokenizer_decode(const weir_tokenizer *tok, const int32_t *ids, int64_t n,
                                                        bool keep_special, char *buf, size_t cap, size_t *len,
                                                        weir_err *err);

WEIR_API int64_t weir_tokenizer_size(const weir_tokenizer *tok); /* ids are 0 .. size-1 (some may have no token) */
WEIR_API int32_t weir_tokenizer_bos(const weir_tokenizer *tok);  /* -1: none */
WEIR_API int32_t weir_tokenizer_eos(const weir_tokenizer *tok);  /* -1: none */
/* Ids that end a text that a model generates: EOS, and those of `eos_token_id` in generation_config.json, or where that
 * says nothing, config.json (a number or a list); GGUF: eos_token_id and eot_token_id. *ids is borrowed; returns how
 * many. */
WEIR_API int64_t weir_tokenizer_ends(const weir_tokenizer *tok, const int32_t **ids);
/* What `--bos auto` does: add_bos_token of tokenizer_config.json, else the template, else GGUF's key, else
 * false. */
WEIR_API bool weir_tokenizer_adds_bos(const weir_tokenizer *tok);
/* "bpe" (byte-level), "spm" (byte fallback), and the pattern's name ("gpt2", "llama3", "qwen2", "smollm", ...). */
WEIR_API const char *weir_tokenizer_kind(const weir_tokenizer *tok);
WEIR_API const char *weir_tokenizer_pattern(const weir_tokenizer *tok);
/* SHA-256 (hex) over kind, pattern, and every piece with its id and flags; the same for the same vocabulary in any file
 * format is not promised. */
WEIR_API const char *weir_tokenizer_fingerprint(const weir_tokenizer *tok);

/* --- A tokenizer of a GGUF file as Hugging Face's files: tokenizer.json (the vocabulary with its merges, and the steps
 * around it) and tokenizer_config.json (BOS, EOS, whether BOS goes before a text, the chat template if n is not 0).
 * What a tokenizer.json cannot say, and steps that no GGUF file has, are refused by name (WEIR_E_UNSUPPORTED) by the
 * first, which is to be asked before the others. Errors of the stream are the stream's. */
WEIR_API WEIR_CHECKED weir_status weir_tokenizer_may_write(const weir_tokenizer *tok, const weir_log *log,
                                                           weir_err *err);
WEIR_API WEIR_CHECKED weir_status weir_tokenizer_write(const weir_tokenizer *tok, FILE *out, weir_err *err);
WEIR_API void weir_tokenizer_write_config(const weir_tokenizer *tok, int64_t context, weir_str chat_template,
                                          FILE *out);

#ifdef __cplusplus
}
#endif
#endif
