/* lens/parts.h: what parts.c (edits, sums) and parts_units.c (heads, neurons) share: the positions that are looked at,
 * and how a part is measured. */
#ifndef WEIR_LENS_PARTS_H
#define WEIR_LENS_PARTS_H

#include <weir/parts.h>

#include "../base/mem.h"
#include "../base/parallel.h"
#include "../model/spec.h"

struct weir_parts {
    const weir_model *m;
    const weir_spec *spec;
    const weir_kern *kern;
    int threads;
    weir_lens *lens;
    weir_part *edit; /* [E] */
    int64_t n_edits;
    weir_parts_rows r; /* n = 0: nothing has begun */
    int64_t room;      /* positions that there is room for */
    double *x;         /* [room,C] the stream */
    double *dir;       /* [room,C] of the logit asked about; without its mean where the final norm takes a mean away */
    weir_part_value *value; /* [room,E] */
    weir_parts_sum *sum;    /* [room] */
    float *scale;           /* [room] of the final norm */
    float *dir32;           /* [room,C] of one token each */
    double *bias;           /* [room] */
    int32_t *id;            /* [room] */
    int32_t *asked;         /* [room,2] target, against */
    float *logit;           /* [room,2] of these */
    int32_t *top;           /* [room] */
    double *wide;           /* [threads,C] */
    float *stream;          /* [threads,C] */
};

/* a . b over 8 lanes, element i in lane i mod 8, folded in one order: the same bits however it is compiled. */
double weir_parts_dot(const double *a, const double *b, int64_t n);
/* A part at position i, from its dot products with itself, the stream and the direction. */
weir_part_value weir_parts_value_of(const weir_parts *p, int64_t i, double self, double stream, double dir);
/* The same from the part [C]. */
weir_part_value weir_parts_measure(const weir_parts *p, int64_t i, const double *part);

#endif
