/* lens/impl.h: the inside of a lens, and what the files of this room share. */
#ifndef WEIR_LENS_IMPL_H
#define WEIR_LENS_IMPL_H

#include <weir/lens.h>

#include "lens/lanes.h"
#include "run/state.h"

struct weir_lens {
    const weir_model *model;
    const weir_spec *spec;
    const weir_kern *kern;
    const weir_lens_lanes *lanes;
    int threads;
    int64_t tile_rows;   /* rows that weir_lens_logits and weir_lens_top take at a time */
    int64_t block_bytes; /* logits that weir_lens_measure makes at a time */
    /* for `rows` rows */
    int64_t rows;
    float *h;      /* [rows, C] what the unembedding reads */
    float *logits; /* [rows, V] */
    void *gemm;
};

/* --- logits.c */
/* Room for so many rows in h, logits and gemm; what they hold is lost. */
WEIR_CHECKED weir_status weir_lens_room(weir_lens *l, int64_t rows, weir_err *err);
/* The final norm of n rows, to be completed with x and where results go. */
WEIR_CHECKED weir_status weir_lens_final_norm(const weir_lens *l, int64_t n, weir_norm *norm, weir_err *err);
/* out [n,V] = logits of the first n rows of h. */
WEIR_CHECKED weir_status weir_lens_unembed(weir_lens *l, int64_t n, bool softcap, float *out, weir_err *err);

/* --- top.c */
/* The k largest of x [v], best first, as weir_lens_top has them. */
void weir_lens_largest(const weir_lens *l, const float *x, int64_t v, int64_t k, int32_t *id);

#endif
