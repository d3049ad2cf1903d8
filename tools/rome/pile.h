/* rome/pile.h: rome eval --sequential: edits of the records one after the other, each on top of all before it, as one
 * edit that grows; and which of them broke the model. */
#ifndef WEIR_ROME_PILE_H
#define WEIR_ROME_PILE_H

#include "texts.h"

typedef struct weir_pile_options {
    const weir_fact_list *facts;
    int64_t first, end;          /* records */
    int64_t every;               /* measure after so many edits, and after the last one */
    const weir_rome_texts *text; /* n 0: none */
    double max_drift, min_kept;  /* percent: an edit behind which the text's perplexity has risen by more, or fewer of
                                    the edits before it hold, broke the model */
} weir_pile_options;

/* What was measured after an edit. */
typedef struct weir_pile_row {
    int64_t edits, record; /* so many edits, the last of which was of this record */
    bool holds;            /* the last one: its new answer is likelier than the true one */
    double kept;           /* of those before it, the share that holds; NaN: there are none */
    double drift;          /* perplexity after all over before any, less 1; NaN: no text */
    double p;              /* of the last one's new answer, geometric mean over its tokens */
    double share;          /* ||dW|| / ||W|| of the last edit */
    double k_u;
    bool broke; /* the first row beyond a threshold */
} weir_pile_row;

typedef struct weir_pile {
    weir_pile_row *row; /* [n] */
    int64_t n;
    int64_t failed; /* records that could not be edited and were left out */
    int64_t why_record;
    char why[200]; /* the first of them, and what hindered it */
    bool stopped;  /* by a signal */
    int64_t broke; /* index of the row; -1: none did */
} weir_pile;

/* take is called with each row, in order; another code than WEIR_EXIT_OK ends it. Returns an exit code; an error has
 * been said, unless a signal stopped it. weir_pile_free in every case. */
int weir_pile_run(weir_pile *p, weir_editor *e, const weir_pile_options *o,
                  int (*take)(void *user, const weir_pile_row *r), void *user);
void weir_pile_free(weir_pile *p);

/* A row's object. */
void weir_pile_write(weir_jsonw *w, const weir_fact_list *facts, const weir_pile_row *r);
/* All of it, on standard output. */
void weir_pile_json(const weir_pile *p, const weir_pile_options *o, const weir_editor *e);
void weir_pile_print(const weir_pile *p, const weir_pile_options *o, char sep, FILE *out);

#endif
