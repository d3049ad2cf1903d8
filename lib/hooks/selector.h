/* hooks/selector.h: the parts of the selector parser (hooks/README.md).
 *
 *   names.c     the part before the brackets: names with globs, short sites, L6N421, L6H3; the nearest name for errors
 *   brackets.c  the part in brackets: lists of numbers and ranges
 *   selector.c  whole selectors, layers, and what the public calls answer
 */
#ifndef WEIR_HOOKS_SELECTOR_H
#define WEIR_HOOKS_SELECTOR_H

#include "../base/mem.h"
#include "../run/listen.h"

/* --- brackets.c */

/* One number or half-open range; negative ends count from the end. */
typedef struct weir_range {
    int64_t from, to;
    bool single;             /* from only */
    bool from_start, to_end; /* the end was left out */
} weir_range;

/* Ranges joined by `+`; n = 0: all. */
typedef struct weir_ranges {
    weir_range *r;
    int n;
} weir_ranges;

enum { WEIR_MAX_ENTRIES = 3 };
typedef struct weir_brackets {
    weir_ranges entry[WEIR_MAX_ENTRIES];
    int n; /* entries; 0: no brackets */
} weir_brackets;

/* Parses "[...]", whole: text[n]. */
WEIR_CHECKED weir_status weir_brackets_parse(weir_brackets *out, weir_arena *a, weir_str text, weir_err *err);
/* Is i of [0, len) in the list? Numbers outside never match. */
bool weir_ranges_have(const weir_ranges *rs, int64_t i, int64_t len);
/* mark[i] = 1 for every i of [0, len) in the list; a number or range outside is an error that says `what` and the
 * bounds. */
WEIR_CHECKED weir_status weir_ranges_mark(const weir_ranges *rs, int64_t len, uint8_t *mark, const char *what,
                                          const char *point, weir_err *err);

/* --- names.c */

/* Sets hit[i] = 1 for the points that the name means, in layers where layer_on[l] is set (NULL: all layers; points
 * outside the blocks are in none and always count). unit: the neuron or head of an L6N421 or L6H3, else -1. No point at
 * all is an error. */
WEIR_CHECKED weir_status weir_names_find(const weir_point_map *map, int64_t n_layers, bool gated, weir_str name,
                                         const uint8_t *layer_on, uint8_t *hit, int64_t *unit, weir_err *err);
/* Levenshtein distance: insertions, deletions and changes of one character; b up to 256 bytes. */
int weir_name_distance(const char *a, const char *b);
/* The error about a layer that the model lacks. */
weir_status weir_no_layer(weir_err *err, int64_t layer, int64_t n_layers);
/* "12" as a number; false if there is anything but digits or more than 18 of them. */
bool weir_digits(weir_str s, int64_t *out);

#endif
