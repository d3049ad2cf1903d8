/* lens/compose.h: the inside of composition scores.
 *
 * |W_QK2^T W_OV1| with W_QK2^T = K^T Q and W_OV1 = O^T V (Q, K, V, O [D,C]: rows as weir_weights_head gives them) needs
 * no matrix [C,C]. With K K^T = L L^T (Cholesky) |K^T X| = |L^T X| for every X, so K^T Q may give way to L^T Q [D,C],
 * and O^T V to O^T M [C,D], where V V^T = M M^T. What is left of a pair is the norm of a product [D,C] x [C,D].
 *
 *   compose.c         public calls, checks
 *   compose_factor.c  a layer's factors, packed
 *   compose_*.c       the product, one table an instruction set (compose_lanes.h)
 *
 * Factors are rounded to float and kept as double. So a product of two elements is exact, a chain of fused
 * multiply-adds and one of multiplications and additions have the same bits, and tables without the one can use the
 * other. The rounding changes a score by some 1e-8 of it.
 */
#ifndef WEIR_LENS_COMPOSE_H
#define WEIR_LENS_COMPOSE_H

#include <weir/compose.h>

#include "run/state.h"

/* Rows of factors are padded with zeros to a multiple of this. */
enum { WEIR_COMPOSE_PAD = 16 };

typedef struct weir_compose_kern {
    const char *name;
    int64_t rows, cols; /* of a tile; they divide WEIR_COMPOSE_PAD */
    /* out [rows, cols] with ld doubles from row to row = sum over i ascending of a[i, rows] b[i, cols], i in [0, n) */
    void (*tile)(const double *a, const double *b, int64_t n, double *out, int64_t ld);
} weir_compose_kern;
extern const weir_compose_kern weir_compose_kern_ref, weir_compose_kern_avx2, weir_compose_kern_avx512;
/* The one that goes with a kernel table. */
const weir_compose_kern *weir_compose_kern_of(const weir_kern *k);

/* A factor of a head's matrix, packed: strips of `width` rows, each [C, width]. */
typedef struct weir_factor {
    double *strip; /* [D padded / width, C, width] */
    double norm;   /* of all elements: that of the head's matrix */
} weir_factor;

/* Those of a layer. */
typedef struct weir_factors {
    int64_t layer; /* -1: none */
    int64_t n;     /* factors: H that write, or 3 H that read: Q, K, V of H heads each */
    int64_t width;
    double *room; /* of all strips */
    weir_factor *factor;
} weir_factors;

struct weir_compose {
    const weir_model *m;
    const weir_spec *spec;
    const weir_kern *kern;
    const weir_compose_kern *tiles;
    weir_compose_weights weights;
    const weir_edit *const *edits;
    int n_edits;
    int threads;
    int64_t padded; /* D */
    weir_factors reads, writes;
    const weir_layer *norms; /* of the layer whose factors are made */
    float *rows;             /* [threads, D, C] as they are stored */
    double *wide;            /* [threads, 2, D, C] */
    double *square;          /* [threads, padded^2 + D^2] a Gram matrix and its factor, or a product */
};

/* --- compose_factor.c: factors of a layer, made if they are not there. */
WEIR_CHECKED weir_status weir_compose_read_by(weir_compose *c, int64_t layer, weir_err *err);
WEIR_CHECKED weir_status weir_compose_written_by(weir_compose *c, int64_t layer, weir_err *err);
/* Rows [n,C] of what reads, or writes, as the weights that are meant have it. mlp: of neurons. */
void weir_compose_as_meant(const weir_compose *c, const weir_layer *norms, bool mlp, bool writes, const float *rows,
                           int64_t n, double *out);
void weir_compose_factors_free(weir_factors *f);

#endif
