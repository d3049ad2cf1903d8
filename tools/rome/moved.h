/* rome/moved.h: what an edit does in the residual stream behind its requests' prompts: how far the stream moves, layer
 * by layer and token by token, and what the logit lens reads where the answer is to come. */
#ifndef WEIR_ROME_MOVED_H
#define WEIR_ROME_MOVED_H

#include "asked.h"

enum {
    WEIR_MOVED_REQUESTS = 16,  /* that are looked at: the first ones */
    WEIR_MOVED_POSITIONS = 512 /* of each: the last ones of its prompt */
};

/* The sides of an edit, and of a fact: the last axis of most arrays. */
enum { WEIR_MOVED_BEFORE, WEIR_MOVED_AFTER, WEIR_MOVED_SIDES };
enum { WEIR_MOVED_NEW, WEIR_MOVED_TRUE, WEIR_MOVED_ANSWERS };

/* A request that is looked at. */
typedef struct weir_moved_prompt {
    const weir_asked *asked;
    int32_t *id;    /* [ids] the prompt, behind BOS if there is one, and the tokens that both answers begin with: */
    int64_t ids;    /* behind them a fact is decided */
    int64_t shared; /* so many they are */
    int64_t start, count;              /* its rows: the last `count` of its tokens */
    int32_t token[WEIR_MOVED_ANSWERS]; /* where the answers part: the token of each. Where the true answer is unknown it
                                          is what the model went on with before the edit */
} weir_moved_prompt;

/* Lines: the stream before block 0, and behind each block. */
typedef struct weir_moved {
    weir_moved_prompt prompt[WEIR_MOVED_REQUESTS]; /* [n] */
    int64_t n, lines, rows;
    double *norm;       /* [lines, rows, 2] */
    double *difference; /* [lines, rows]: norm of what the edit adds to the stream */
    /* At the last position: */
    float *logprob[WEIR_MOVED_ANSWERS]; /* [lines, n, 2] of the answer's token */
    int32_t *top;                       /* [lines, n, 2] the likeliest token, */
    float *top_logprob;                 /* and how likely it is */
} weir_moved;

/* asked: behind weir_asked_ask of both sides. Returns an exit code; an error has been said. weir_moved_free in every
 * case. */
int weir_moved_take(weir_moved *m, weir_editor *e, const weir_edit *edit, const weir_asked_list *asked);
void weir_moved_free(weir_moved *m);

#endif
