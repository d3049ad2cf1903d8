/* search/file.h: files of format "weir-neurons": README.md in this directory has the schema.
 *
 * file_write.c what stands once; file_table.c a table's arrays; file_weights.c tokens of the weights; file_read.c and
 * file_read_table.c the way back; covered.c what a result is about and which part of the text it has seen; merge.c.
 */
#ifndef WEIR_SEARCH_FILE_H
#define WEIR_SEARCH_FILE_H

#include <weir/arrays.h>
#include "search/impl.h"

#define WEIR_NEURONS_FORMAT "weir-neurons"
#define WEIR_NEURONS_VERSION 1

enum { WEIR_NEURONS_WIDTH_MAX = 1 << 28, WEIR_NEURONS_IDS_MAX = 1 << 24 }; /* what a file is believed */

extern const char *const weir_neurons_list_names[WEIR_NEURONS_LISTS], *const weir_neurons_rank_names[2],
                                                                          *const weir_neurons_dedup_names[4];
/* WEIR_MASK_*: attributes of counts. */
extern const char *const weir_neurons_mask_names[WEIR_MASK_KINDS];

/* "GROUP/NAME", cut if it is too long. */
void weir_file_path(char out[WEIR_ARRAY_NAMES], const char *group, const char *name);
/* The group of table t: "neurons/HOOK", or "neurons/HOOK@SITE" where the values are not those of the hook, or an
 * earlier table has the hook. WEIR_E_ARG: the hook's name cannot be a group's. */
WEIR_CHECKED weir_status weir_file_group(const weir_neurons *s, int t, char out[WEIR_ARRAY_NAMES], weir_err *err);

/* One table, in its group. */
WEIR_CHECKED weir_status weir_file_put_table(weir_arrays_out *w, const weir_neurons *s, int t, weir_err *err);
/* Into s, which is new. */
WEIR_CHECKED weir_status weir_file_get_table(weir_arrays_in *r, weir_neurons *s, int t, const char *group,
                                             weir_err *err);

/* --- file_weights.c: what weights.h keeps of table t, if anything. Checked by the caller, when all tables are read. */
WEIR_CHECKED weir_status weir_file_put_weights(weir_arrays_out *w, const weir_neurons *s, int t, const char *group,
                                               weir_err *err);
WEIR_CHECKED weir_status weir_file_get_weights(weir_arrays_in *r, weir_neurons *s, int t, const char *group,
                                               weir_err *err);

/* --- covered.c */
/* Copies it into s. */
WEIR_CHECKED weir_status weir_about_take(weir_neurons *s, const weir_neurons_about *about, weir_err *err);
/* Brings s->covered up to what was fed and what s->about says. */
WEIR_CHECKED weir_status weir_covered_settle(weir_neurons *s, weir_err *err);
WEIR_CHECKED weir_status weir_covered_copy(weir_covered *to, const weir_covered *from, weir_err *err);
/* Adds the parts of `from` (settled, as `to` is); WEIR_E_ARG: both have one. */
WEIR_CHECKED weir_status weir_covered_merge(weir_neurons *to, const weir_neurons *from, weir_err *err);
/* WEIR_E_ARG says what differs: options, tables, vocabulary. */
WEIR_CHECKED weir_status weir_neurons_alike(const weir_neurons *a, const weir_neurons *b, weir_err *err);
/* ... of what they are about, but for the shard. */
WEIR_CHECKED weir_status weir_about_alike(const weir_neurons_about *a, const weir_neurons_about *b, weir_err *err);

/* --- merge.c */
/* Moves the small counters of the histogram into the large ones. */
WEIR_CHECKED weir_status weir_hist_widen(weir_ntable *t, weir_err *err);

#endif
