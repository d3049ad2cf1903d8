/* attention/heads.h: patterns of a dump as the figures of `attention` read them, and the figures. */
#ifndef WEIR_NOTEBOOK_ATTENTION_HEADS_H
#define WEIR_NOTEBOOK_ATTENTION_HEADS_H

#include "export/kind.h"

/* A layer whose pattern the dump holds whole: [rows, heads, keys]. */
typedef struct weir_nb_heads_layer {
    int layer, hook;
    int64_t heads, keys;
} weir_nb_heads_layer;

typedef struct weir_nb_heads {
    const weir_nb *nb;
    weir_dump_reader *r;
    weir_nb_heads_layer *layer; /* [n_layers] ascending */
    int n_layers;               /* 0: there is no pattern, and every figure says so */
    bool selected;              /* there are patterns of chosen units only */
    bool bos;                   /* windows begin with BOS */
    int64_t rows;
    /* what the parameters say, checked */
    const weir_nb_heads_layer *at; /* the layer that is drawn */
    int64_t head, most, small, strip;
    int64_t sample;  /* rows that the means are taken of */
    int64_t *places; /* [sample] their ctx_pos, keys of every pattern */
    /* The window: n queries, one a row from `row` on; keys up to the last query's. n = 0: the document has no rows. */
    int64_t row, n, n_keys;
    int32_t *id;      /* [n] */
    int64_t *ctx_pos; /* [n] ascending, below at->keys */
    int32_t *key;     /* [n_keys] tokens; -1: not recorded */
} weir_nb_heads;

/* Says in the page why there is nothing to draw. True: there is something. */
bool weir_nb_heads_any(const weir_nb_heads *h, FILE *out);

/* The head that reads the token before most, in the first rows: of all layers, or of *layer; of all heads, or *head.
 * None does: the first. Returns an exit code; an error has been said. */
int weir_nb_heads_find(const weir_nb_heads *h, bool any_layer, bool any_head, int64_t *layer, int64_t *head);

/* Figures, by the ids of their cells. data: weir_nb_heads. */
int weir_nb_heads_draw_map(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_heads_draw_heads(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_heads_draw_read(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_heads_draw_scores(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);

#endif
