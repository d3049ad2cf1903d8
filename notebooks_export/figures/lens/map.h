/* lens/map.h: a file of format weir-lens-map (tools/lens/README.md) as the figures of `lens` read it, and the figures.
 */
#ifndef WEIR_NOTEBOOK_LENS_MAP_H
#define WEIR_NOTEBOOK_LENS_MAP_H

#include "export/kind.h"
#include "lens/view.h"

typedef struct weir_nb_map {
    const weir_nb *nb;
    weir_arrays_in *r;
    weir_array_texts line, site, vocab;
    int64_t lines, docs, n, k;
    int32_t *layer;              /* [lines] */
    int64_t *start, *count;      /* [docs] */
    int64_t *pos;                /* [n] */
    int32_t *id, *next, *target; /* [n] */
    int32_t *top_id;             /* [lines, n, k] */
    float *top_logprob;          /* [lines, n, k] */
    bool asked;                  /* there is a target */
    /* what the parameters say, checked */
    weir_lens_stat stat;
    int64_t doc, begin, end; /* its positions */
    int64_t first, until;    /* those of the map */
    int64_t at;              /* the one that is looked at alone */
    int64_t top, most;       /* likeliest tokens; positions of the strip */
} weir_nb_map;

/* Everything but statistics. Returns an exit code; an error has been said. Close in every case. */
int weir_nb_map_open(weir_nb_map *m, const weir_nb *nb);
void weir_nb_map_close(weir_nb_map *m);
/* A statistic [lines, n] of m's file, to be freed; NULL: the file lacks it or is damaged, which has been said. */
float *weir_nb_map_stat(const weir_nb_map *m, const char *name);

/* Figures, by the ids of their cells. data: weir_nb_map. */
int weir_nb_map_draw_map(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_map_draw_target(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_map_draw_layers(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_map_draw_top(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_map_draw_settles(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);

#endif
