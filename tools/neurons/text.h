/* neurons/text.h: inside of the terminal's view: text.c writes the head and what is said about a neuron, places.c its
 * lists. */
#ifndef WEIR_NEURONS_TEXT_H
#define WEIR_NEURONS_TEXT_H

#include "floor.h"
#include "cli/terminal.h"
#include "sections.h"

typedef struct weir_screen {
    const weir_view *v;
    const weir_neurons_options *opt;
    bool utf8;            /* signs beyond ASCII may be drawn; texts are UTF-8 in any case */
    weir_neuron_hit *hit; /* [weir_section_room] */
    weir_pieces pieces;
    weir_text text;
    weir_floor floor; /* of the bottom lists so far */
} weir_screen;

/* The places of one list, a line each, their tokens one below the other. scale: the neuron's largest magnitude. False:
 * out of memory. */
bool weir_screen_places(weir_screen *s, const weir_shown *neuron, int64_t n, double scale);

#endif
