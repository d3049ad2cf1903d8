/* rome/sweep.h: --layer auto: the edit at every layer that there are second moments for, and which of them is best. */
#ifndef WEIR_ROME_SWEEP_H
#define WEIR_ROME_SWEEP_H

#include "texts.h"

/* What became of the edit at one layer. */
typedef struct weir_sweep_row {
    int64_t layer;
    char error[200];   /* "": it could be made; else the rest is zero */
    double p;          /* of the whole target behind the prompt, afterwards */
    int64_t rank;      /* of its first token */
    bool said;         /* greedily the model says the target */
    int64_t kept;      /* neighbours whose answer it goes on to say, of those that it said before */
    double drift;      /* perplexity of the text after over before, less 1; NaN: no text */
    double share, k_u; /* as in weir_rome_report */
    bool converged;
} weir_sweep_row;

typedef struct weir_sweep {
    weir_sweep_row *row; /* [n] */
    int n, best;
    int64_t said; /* neighbours that the model says before */
} weir_sweep;

/* What a layer is judged by besides the request. */
typedef struct weir_sweep_by {
    const weir_rome_pair *neighbour; /* [n_neighbour] */
    int n_neighbour;
    const weir_rome_texts *text;
} weir_sweep_by;

/* Edits q at every layer of e, and leaves e with the best one alone: first it has to make the model say the target (or,
 * if none does, the likeliest one wins), then to keep the neighbours, then to leave the text alone. Returns an exit
 * code; an error has been said: no layer could be edited. weir_sweep_free in every case. */
int weir_sweep_run(weir_sweep *s, weir_editor *e, const weir_rome_request *q, const weir_sweep_by *by);
void weir_sweep_free(weir_sweep *s);

/* The table, and the list "sweep" of edit.json. */
void weir_sweep_print(const weir_sweep *s, FILE *out);
void weir_sweep_write(const weir_sweep *s, weir_jsonw *w);

#endif
