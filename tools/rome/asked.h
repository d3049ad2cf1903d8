/* rome/asked.h: what rome verify asks a model about an edit, without it and with it. */
#ifndef WEIR_ROME_ASKED_H
#define WEIR_ROME_ASKED_H

#include "made.h"
#include "told.h"

typedef enum weir_asked_kind { WEIR_ASKED_REQUEST, WEIR_ASKED_PARAPHRASE, WEIR_ASKED_NEIGHBOUR } weir_asked_kind;
extern const char *const weir_asked_kind_name[]; /* "request" */

/* One side: the model as it is, or with the edit. */
typedef struct weir_asked_side {
    weir_told told;
    weir_answer other;     /* the other answer's; tokens 0: there is none */
    double prefixed_p;     /* requests: mean p of the answer behind the prefixes; NaN: there are none */
    int64_t prefixed_said; /* and behind how many of them the model says it */
} weir_asked_side;

typedef struct weir_asked {
    weir_asked_kind kind;
    int64_t request;    /* that it belongs to */
    char *prompt;       /* whole; owned */
    const char *answer; /* what it shall say afterwards: requests and paraphrases the target, neighbours their own */
    const char *other;  /* what it must not: their true answer, neighbours the target; NULL: unknown */
    weir_asked_side before, after;
} weir_asked;

/* A text: mean -log p of its tokens; NaN: it has none. */
typedef struct weir_asked_text {
    double before, after;
    int64_t tokens;
} weir_asked_text;

typedef struct weir_asked_list {
    weir_asked *v; /* [n] request by request, each followed by its paraphrases and neighbours */
    int64_t n;
    weir_asked_text *text;          /* [texts], once they were asked */
    double text_before, text_after; /* mean -log p of all their tokens */
} weir_asked_list;

/* false: out of memory. */
bool weir_asked_add(weir_asked_list *l, weir_asked_kind kind, int64_t request, const char *prompt, const char *answer,
                    const char *other);
/* Asks all of them, the text, and requests behind the prefixes as well. tokens: of greedy text. */
WEIR_CHECKED weir_status weir_asked_ask(weir_asked_list *l, bool after, weir_asker *a, const weir_tokenizer *tok,
                                        const weir_made *m, const weir_rome_texts *text, int64_t tokens, weir_err *err);
void weir_asked_free(weir_asked_list *l);

/* Does this side answer as it should? The answer is likelier than the other one; where that is unknown, it is what the
 * model says greedily. */
bool weir_asked_right(const weir_asked *q, const weir_asked_side *side);

#endif
