/* rome/scores.h: what the records of a file come to, layer by layer: as a table, and as JSON. */
#ifndef WEIR_ROME_SCORES_H
#define WEIR_ROME_SCORES_H

#include "tally.h"

/* tally [n], a layer each. sep: a tab, or a blank for people, who also get the reason where a layer has no numbers. */
void weir_scores_print(const weir_tally *tally, int n, char sep);
/* The list "layers" of the object that is open. */
void weir_scores_write(weir_jsonw *w, const weir_tally *tally, int n);

#endif
