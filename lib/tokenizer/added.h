/* tokenizer/added.h: added tokens, which are found in the text before anything else happens to it. */
#ifndef WEIR_TOK_ADDED_H
#define WEIR_TOK_ADDED_H

#include <stddef.h>
#include <stdint.h>

#include <weir/base.h>

/* Longer tokens are refused: what a text costs, at worst, is its length times that of the longest token. */
enum { WEIR_TOK_ADDED_MAX = 4096 };

typedef struct weir_tok_added {
    weir_str content;
    int32_t id;
    bool special;        /* left out when text is decoded without special tokens */
    bool lstrip, rstrip; /* swallows the white space before, behind */
    bool single_word;    /* only where no word character touches it */
    bool normalized;     /* looked for in the normalised text, in its own normalised form */
} weir_tok_added;

/* What is looked for: strings in byte order, each with the token it stands for. */
typedef struct weir_tok_key {
    weir_str text;
    const weir_tok_added *token;
} weir_tok_key;

typedef struct weir_tok_finder {
    weir_tok_key *key; /* [n] sorted, no two equal, none empty */
    size_t n;
    uint32_t from[257]; /* keys whose first byte is b: from[b] .. from[b + 1] */
    int only;           /* the first byte of all keys, or -1 */
} weir_tok_finder;

/* Sorts key[n] (owned by the finder from now on; of equal texts the later entry counts) and fills the rest. */
void weir_tok_finder_init(weir_tok_finder *f, weir_tok_key *key, size_t n);
void weir_tok_finder_free(weir_tok_finder *f);

/* A token in p[0, n): its own bytes [begin, end) and, with the white space that it swallows, [from, to). */
typedef struct weir_tok_hit {
    const weir_tok_added *token;
    size_t begin, end, from, to;
} weir_tok_hit;

/* How far a search has come. Zero it before use. */
typedef struct weir_tok_search {
    size_t pos;       /* the end of the last token itself */
    size_t done;      /* the same with its white space, which no other token takes */
    size_t space_end; /* of the white space behind `pos` that has been looked at already, if any */
} weir_tok_search;

/* The next token in p[0, n), leftmost and longest. False: none. */
bool weir_tok_find_next(const weir_tok_finder *f, const uint8_t *p, size_t n, weir_tok_search *s, weir_tok_hit *hit);

#endif
