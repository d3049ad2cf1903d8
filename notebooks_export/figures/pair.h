/* figures/pair.h: two frames beside one another in one picture. */
#ifndef WEIR_NOTEBOOK_PAIR_H
#define WEIR_NOTEBOOK_PAIR_H

#include "page/chart.h"

enum {
    WEIR_NB_PAIR_WIDTH = 1040,
    WEIR_NB_PAIR_FRAME = 430,
    WEIR_NB_PAIR_BESIDE = 540,
    WEIR_NB_PAIR_HEIGHT = 200,
    WEIR_NB_PAIR_LEGEND = WEIR_CHART_TOP + WEIR_NB_PAIR_HEIGHT + WEIR_CHART_UNDER /* where legends begin */
};

/* Begins the picture, with room for so many lines of a legend. */
void weir_nb_pair_open(FILE *out, const char *title, int legend);
/* The left frame (place 0) or the right one (1); the caller says what is across, and draws it. */
weir_chart weir_nb_pair_frame(FILE *out, int place, const char *title, const char *up);
/* The same, over lines of a lens: name [n], borrowed. */
weir_chart weir_nb_pair_lines(FILE *out, int place, const char *title, const char *up, const weir_str *name, int64_t n);

#endif
