/* parts/sites.h: values of a pass at some positions, as weir/parts.h wants them: which hook points are needed, and room
 * for them. A run or a dump fills them. */
#ifndef WEIR_PARTS_SITES_H
#define WEIR_PARTS_SITES_H

#include <weir/parts.h>
#include <weir/weir.h>

/* One hook point. */
typedef struct weir_sites_slot {
    const weir_point *point;
    float *data; /* [room, width] */
    int dump;    /* the dump's hook; -1: it lacks it */
} weir_sites_slot;

/* Sites of a layer, in the order of weir_parts_rows. */
enum {
    WEIR_SITES_ATTN_OUT,
    WEIR_SITES_MLP_OUT,
    WEIR_SITES_Z,
    WEIR_SITES_POST,
    WEIR_SITES_ATTN_SCALE,
    WEIR_SITES_MLP_SCALE,
    WEIR_SITES_COUNT
};

typedef struct weir_sites {
    const weir_model *model;
    int64_t L;
    weir_sites_slot *slot; /* [n_slots] in the order in which they fire */
    int n_slots;
    int *at; /* [COUNT, L] slot of a layer's site; -1: not wanted, or the model lacks it */
    int embed, pos_embed, stream;
    const float **pointer; /* [COUNT, L] for weir_sites_rows */
    int64_t n, room;       /* positions */
    int64_t row_bytes;     /* of one position */
    int64_t *doc, *pos;    /* [room] */
    int32_t *id, *next;    /* [room] the token there; the one that follows, -1: none */
} weir_sites;

/* Zero *v before. heads, neurons: [L] of which layers. */
WEIR_CHECKED weir_status weir_sites_begin(weir_sites *v, const weir_model *m, const bool *heads, const bool *neurons,
                                          weir_err *err);
void weir_sites_free(weir_sites *v);
/* Room for n positions; what is there is lost. */
WEIR_CHECKED weir_status weir_sites_room(weir_sites *v, int64_t n, weir_err *err);
/* The slot of a point; -1: it is not needed. */
int weir_sites_find(const weir_sites *v, const weir_point *p);
/* Positions [first, first + n), without targets; borrowed until the next call. */
void weir_sites_rows(weir_sites *v, int64_t first, int64_t n, weir_parts_rows *out);

#endif
