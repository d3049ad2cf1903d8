/* tokenizer/tok.h: the tokenizer's insides, shared by the files of this room. */
#ifndef WEIR_TOK_H
#define WEIR_TOK_H

#include <weir/tokenizer.h>

#include "added.h"
#include "base/mem.h"
#include "bpe.h"
#include "idmap.h"
#include "normalize.h"
#include "pretok.h"
#include "words.h"

typedef enum weir_tok_kind {
    WEIR_TOK_BYTES, /* byte-level: pieces are spelled in the byte alphabet */
    WEIR_TOK_CHARS  /* SentencePiece style: pieces are text, U+2581 is a space, <0xNN> a byte */
} weir_tok_kind;

/* What is known of an id. */
enum {
    WEIR_ID_MODEL = 1, /* in the model's vocabulary: BPE may produce it */
    WEIR_ID_ADDED = 2, /* an added token */
    WEIR_ID_SPECIAL = 4,
    WEIR_ID_BYTE = 8 /* <0xNN> of a vocabulary with byte fallback */
};

typedef struct weir_tok_vocab {
    int32_t n, cap;     /* ids are 0 .. n - 1 */
    weir_str *piece;    /* [n] the vocabulary's spelling; p == NULL: no token */
    weir_str *bytes;    /* [n] what it adds to a text */
    uint8_t *flags;     /* [n] */
    int64_t entries;    /* model tokens */
    int64_t limit;      /* ids from here on are refused: set by the reader from the size of its file */
    weir_tok_idmap ids; /* by piece */
    int32_t last_made;  /* by a merge */
    char *block;        /* the strings are packed into blocks of the arena */
    size_t block_left;
} weir_tok_vocab;

enum { WEIR_TOK_MAX_STAGES = 4, WEIR_TOK_MAX_ENDS = 16 };

struct weir_tokenizer {
    weir_arena arena;
    weir_tok_kind kind;
    weir_tok_vocab vocab;
    weir_tok_merges merges;
    weir_tok_words words;
    int32_t symbol[256];     /* BYTES: the id of each byte; CHARS: of each ASCII character; -1: none */
    int32_t byte_token[256]; /* CHARS: the id of <0xNN>, or -1 */
    int32_t unk;             /* -1: none */
    bool byte_fallback, fuse_unk, ignore_merges;
    bool equal_ranks;                /* several merges may have the same rank */
    weir_tok_ops normalizer, prefix; /* before and after the added tokens of normalised text */
    weir_tok_splitter *stage[WEIR_TOK_MAX_STAGES];
    int n_stages;
    weir_tok_added *added; /* [n_added] */
    size_t n_added, added_cap;
    int64_t added_end; /* above the ids of all added tokens */
    weir_tok_finder raw, normalized;
    bool strip_space; /* decoding drops one space at the start */
    bool strip_meta;  /* decoding drops every U+2581 of the first token */
    int32_t bos, eos;
    int32_t end[WEIR_TOK_MAX_ENDS]; /* ids that end a generated text */
    int n_ends;
    bool adds_bos;
    char pattern[48];
    char fingerprint[65];
};

/* --- vocab.c: tokens and their spelling */
/* A copy that lives as long as the tokenizer; p == NULL on failure. */
weir_str weir_tok_keep(weir_tokenizer *t, weir_str s);
/* Makes room for about n tokens; only a hint. */
WEIR_CHECKED weir_status weir_tok_vocab_reserve(weir_tokenizer *t, size_t n, weir_err *err);
/* Gives id to the piece (copied). An id or piece that is taken, or an id far beyond the number of tokens, is an error.
 */
WEIR_CHECKED weir_status weir_tok_vocab_add(weir_tokenizer *t, weir_str piece, int64_t id, uint8_t flags,
                                            weir_err *err);
/* The id of a piece, or -1; only of the model's own vocabulary. */
int32_t weir_tok_find(const weir_tokenizer *t, const char *p, size_t n);
int32_t weir_tok_find_model(const weir_tokenizer *t, const char *p, size_t n);
/* Adds the merge left + right of the given rank. Both and their union must be model tokens. */
WEIR_CHECKED weir_status weir_tok_add_merge(weir_tokenizer *t, weir_str left, weir_str right, uint32_t rank,
                                            weir_err *err);
/* The same for "left right" with exactly one space. */
WEIR_CHECKED weir_status weir_tok_add_merge_line(weir_tokenizer *t, weir_str line, uint32_t rank, weir_err *err);
/* Takes an added token. Its id is token->id, or, when that is -1, the id of its content in the vocabulary, else the
 * next free one, as Hugging Face does it; `want`, the id that the file says (-1: nothing), is only compared, and a
 * difference logged. */
WEIR_CHECKED weir_status weir_tok_add_token(weir_tokenizer *t, const weir_tok_added *token, int64_t want,
                                            const weir_log *log, weir_err *err);
/* The byte alphabet: the code point that stands for byte b, and the bytes that a piece spells: their number, or -1 if a
 * character is not of the alphabet. out has room for piece.n bytes. */
uint32_t weir_tok_alphabet(uint8_t b);
int64_t weir_tok_spelled(weir_str piece, uint8_t *out);
/* Characters of a piece, which are its bytes if it is spelled in the alphabet. */
size_t weir_tok_length(weir_str piece);

/* id ends a text; one without a token or that is known already, and more than WEIR_TOK_MAX_ENDS, are passed over. */
void weir_tok_add_end(weir_tokenizer *t, int64_t id);

/* --- finish.c: whatever is derived from what the file said; to be called last by every reader */
WEIR_CHECKED weir_status weir_tok_finish(weir_tokenizer *t, weir_err *err);

/* --- symbols.c */
typedef struct weir_tok_loss {
    int64_t bytes; /* of the original text, that no symbol holds */
    bool first;    /* some of them before the first symbol */
} weir_tok_loss;
/* BPE over bytes [from, to) of v: the symbols' `at` count from `from`. Adds to *loss. */
WEIR_CHECKED weir_status weir_tok_bpe(const weir_tokenizer *t, const weir_tok_view *v, size_t from, size_t to,
                                      weir_tok_symbols *s, weir_tok_loss *loss);

/* --- readers */
WEIR_CHECKED weir_status weir_tok_read_json(weir_tokenizer *t, const char *path, const weir_log *log, weir_err *err);
WEIR_CHECKED weir_status weir_tok_read_pair(weir_tokenizer *t, const char *dir, const weir_log *log, weir_err *err);
WEIR_CHECKED weir_status weir_tok_read_gguf(weir_tokenizer *t, const char *path, const weir_log *log, weir_err *err);
/* open_json.c: an object of pieces and ids; a token with its settings, {"content": ..., "lstrip": ...} (*want: the id
 * that it says, if it does); the same, added. Failures become the reader's. */
struct weir_json;
void weir_tok_read_vocab(weir_tokenizer *t, struct weir_json *j);
weir_tok_added weir_tok_read_settings(weir_tokenizer *t, struct weir_json *j, int64_t *want);
void weir_tok_read_added_token(weir_tokenizer *t, struct weir_json *j, int64_t want, const weir_log *log);
/* config.c: what tokenizer_config.json, special_tokens_map.json, added_tokens.json, generation_config.json and
 * config.json beside the tokenizer say. tokens: also the added tokens (for vocabularies whose own file has none). */
WEIR_CHECKED weir_status weir_tok_read_config(weir_tokenizer *t, const char *dir, bool tokens, const weir_log *log,
                                              weir_err *err);

#endif
