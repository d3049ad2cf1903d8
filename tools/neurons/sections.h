/* neurons/sections.h: what the outputs of neuron-top have in common: a neuron's lists and samples by name, and the
 * tokens shown around a place. */
#ifndef WEIR_NEURONS_SECTIONS_H
#define WEIR_NEURONS_SECTIONS_H

#include "pieces.h"
#include "view.h"

/* Sections of a neuron: the lists in the order of weir_neurons_list, the bands from low to high, the random sample. */
enum {
    WEIR_SECTION_BAND = WEIR_NEURONS_LISTS,
    WEIR_SECTION_RANDOM = WEIR_SECTION_BAND + WEIR_NEURONS_BANDS,
    WEIR_SECTIONS
};
/* "top", "bottom", "abs", "band0" .. "band4", "random" */
const char *weir_section_name(int section);
/* Does the search keep it? */
bool weir_section_kept(const weir_neurons_options *o, int section);
/* Is it kept, and wanted by the view? */
bool weir_section_shown(const weir_view *v, int section);
/* Places that a section may have: what `out` below needs. At least 1. */
int64_t weir_section_room(const weir_neurons_options *o);
/* The places of a section; of lists at most v->k. */
int64_t weir_section_hits(const weir_view *v, const weir_shown *neuron, int section, weir_neuron_hit *out);

/* The unit's number in its hook point. */
int64_t weir_shown_unit(const weir_view *v, const weir_shown *neuron);

/* Tokens [*first, *end) of a context that the view shows. */
void weir_view_window(const weir_view *v, const weir_neurons_context *c, int64_t *first, int64_t *end);
/* The token behind the place, or -1: the document ends, or nothing is kept. */
int32_t weir_context_next(const weir_neurons_context *c);

/* Says that memory is out; returns WEIR_EXIT_FAILED. */
int weir_view_no_memory(const weir_view *v);

#endif
