/* attention/gather.h: rows of patterns, gathered until a window is whole, then handed to the sink as a map. */
#ifndef WEIR_TOOLS_ATTENTION_GATHER_H
#define WEIR_TOOLS_ATTENTION_GATHER_H

#include "view.h"

typedef struct weir_attention_gather {
    const weir_attention_about *about;
    weir_attention_sink *sink; /* begun with the first map, so that a run that fails before writes nothing */
    /* Tokens, window after window; a window begins where ctx_pos is 0. */
    int64_t n, room;
    int64_t *doc, *pos, *ctx_pos;
    int32_t *id;
    int64_t *at; /* where the token's row begins in each pattern; -1: a key alone */
    /* Patterns */
    float **pattern; /* [n_heads] */
    int64_t filled, pattern_room;
    int64_t *query, *query_at; /* [room] of the map at hand */
    int64_t maps;              /* handed over so far */
} weir_attention_gather;

weir_status weir_attention_gather_open(weir_attention_gather *g, const weir_attention_about *a, weir_err *err);
void weir_attention_gather_close(weir_attention_gather *g);

typedef struct weir_attention_token {
    int64_t doc, pos, ctx_pos;
    int32_t id;
    bool query; /* its row is asked for: ctx_pos + 1 weights of each head, to be filled in */
} weir_attention_token;
/* Fails where the patterns come to more than 512 MiB, saying what to do. */
weir_status weir_attention_gather_add(weir_attention_gather *g, const weir_attention_token *t, weir_err *err);
/* Every window is whole: hands them over, and forgets them. */
weir_status weir_attention_gather_flush(weir_attention_gather *g, weir_err *err);

#endif
