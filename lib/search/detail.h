/* search/detail.h: what is kept of named neurons beside the rest: sums by token, and sums of products with every unit
 * of their hook point. All of it is integers, so it does not depend on the order of the rows. detail.c: tokens,
 * merging, arrays; detail_pairs.c: correlations.
 *
 * For files. What a weir_detail holds is a fixed list of arrays. To write: weir_detail_sort, then weir_detail_array_at
 * for i = 0, 1, ... until it says false. To read: weir_detail_new (by weir_neurons_new), weir_detail_room with what the
 * file has, then fill each array of the same list (its shape must be the file's), then weir_detail_filled.
 */
#ifndef WEIR_SEARCH_DETAIL_H
#define WEIR_SEARCH_DETAIL_H

#include "search/impl.h"

typedef enum weir_detail_type { WEIR_DETAIL_I32, WEIR_DETAIL_I64, WEIR_DETAIL_U64 } weir_detail_type;

/* Row major. A dimension may be 0. */
typedef struct weir_detail_array {
    char name[32]; /* "token_id", "t3_product" (table 3): for one group of a file */
    weir_detail_type type;
    int rank;
    int64_t dim[3];
    void *p; /* borrowed, to read or to fill */
} weir_detail_array;

void weir_detail_sort(weir_detail *d); /* tokens by id, so that equal results are equal arrays */
/* Array i of the list; false: there are no more. */
bool weir_detail_array_at(const weir_detail *d, int i, weir_detail_array *out);
/* For a d that is new: room for n_tokens tokens (length of the file's token_id), and for the arrays whose names end in
 * "_apart" and "_apart_count" if the file has any of them. */
WEIR_CHECKED weir_status weir_detail_room(weir_detail *d, int64_t n_tokens, bool apart, weir_err *err);
/* Checks what was filled in; WEIR_E_FORMAT says what is wrong. */
WEIR_CHECKED weir_status weir_detail_filled(weir_detail *d, weir_err *err);

/* --- inside */

/* The units of one hook point that has named neurons, and products with these. Values of 2^24 and more are in no sum:
 * they are counted, and r is NaN then. */
typedef struct weir_relations {
    int table;
    int64_t width;
    int n;                   /* named neurons of this table */
    int64_t *column;         /* [n] their columns in whole rows */
    int64_t *rows;           /* [1] */
    weir_wide *sum, *square; /* [width] over finite values */
    int64_t *count;          /* [width, 3] rows by WEIR_FIRING, ... */
    weir_wide *product;      /* [n, width] over rows where both are finite */
    int64_t *both;           /* [n, width] rows where both fire */
    /* What a pair must leave out of its members' own sums, because the other one is not finite there. NULL: every value
     * was finite. [n, width, 4]: sum and sum of squares of the unit, then those of the named neuron. [n, width, 3]:
     * rows where the named neuron alone is not finite; of them those where the unit fires; rows where the unit alone is
     * not finite and the named neuron fires. */
    weir_wide *apart;
    int64_t *apart_count;
} weir_relations;

struct weir_detail {
    int n_named;
    int group_of[WEIR_NEURONS_MAX_NAMED], member_of[WEIR_NEURONS_MAX_NAMED]; /* group -1: correlations are not kept */
    /* Tokens that occurred, in the order in which they did until weir_detail_sort. */
    int64_t ids;      /* options.token_means */
    int32_t *slot_of; /* [ids] slot + 1, 0: not seen */
    int64_t n_tokens, room;
    int32_t *id;    /* [n_tokens] */
    int64_t *count; /* [n_tokens, n_named] finite values */
    weir_wide *sum; /* [n_tokens, n_named] */
    int n_groups;
    weir_relations *group;
    bool apart;           /* every group has room for apart */
    weir_pairs_fn *pairs; /* of the kernel table in use */
    int32_t *row;         /* [row_room] scratch: rows of the values */
    int64_t row_room;
};

WEIR_CHECKED weir_status weir_relations_new(weir_neurons *s, weir_detail *d, weir_err *err);
void weir_relations_free(weir_relations *g);
WEIR_CHECKED weir_status weir_relations_apart(weir_detail *d, weir_err *err);
/* Row r of the m begins at x + row[r] * stride. */
WEIR_CHECKED weir_status weir_relations_add(weir_neurons *s, weir_relations *g, const float *x, int64_t stride,
                                            const int32_t *row, int64_t m, weir_err *err);
void weir_relations_merge(weir_relations *to, const weir_relations *from);

/* Keeps the `most` elements that come first by order, of all that it is given, in best[0 .. *count) (in no order).
 * Elements have at most 64 bytes. */
void weir_keep_best(void *best, int64_t *count, int64_t most, size_t size, const void *e,
                    int (*order)(const void *, const void *));

#endif
