/* survey/sparsity.h: the inside of weir_sparsity.
 *
 *     sparsity.c          making one; the hook that hears the rows
 *     sparsity_row.c      counting a row
 *     sparsity_results.c  counts to quantiles, shares and cuts
 *     sparsity_cett.c     the sample, and the curve of what an output loses
 */
#ifndef WEIR_SURVEY_SPARSITY_H
#define WEIR_SURVEY_SPARSITY_H

#include <weir/sparsity.h>

#include "kernels/kernels.h"

/* Bins of |x|: exponent and nine bits of a float. Bin b is [edge b, edge b + 1). */
enum { WEIR_CUT_SHIFT = 14, WEIR_CUT_BINS = 0x7f800000 >> WEIR_CUT_SHIFT };
/* Edges of the curve: exponent and three bits. */
enum { WEIR_CETT_SHIFT = 20, WEIR_CETT_BINS = 0x7f800000 >> WEIR_CETT_SHIFT };

/* What a line counts at one threshold. */
typedef struct weir_sparsity_at {
    float below;
    int64_t small;
    int64_t *count;  /* [width] rows in which the neuron is active */
    int64_t *l0;     /* [width + 1] rows by the number of active neurons */
    uint8_t *active; /* [width] in the last row */
    int64_t last;    /* how many that were */
    int64_t pairs;
    double jaccard;
} weir_sparsity_at;

/* A sampled row. */
typedef struct weir_sparsity_sample {
    uint64_t key;
    int64_t tag, pos;
    float *x; /* [width] */
} weir_sparsity_sample;

typedef struct weir_sparsity_count {
    const weir_point *point;
    int64_t rows, lost, zeros;
    double sum[4]; /* of x, x^2, x^3, x^4 */
    double hoyer;
    int64_t hoyer_rows;
    int64_t *hist, *gate; /* [WEIR_CUT_BINS]; gate: of |act(gate)|, or NULL */
    int64_t gate_zeros;
    weir_sparsity_at at[WEIR_SPARSITY_THRESHOLDS];
    bool follows; /* the last row was counted: it was */
    int64_t tag, pos;
    weir_sparsity_sample *sample; /* [options' sample]; NULL: no curve */
    int64_t n_sample;
    weir_sparsity_point *curve;
    int64_t n_curve;
} weir_sparsity_count;

struct weir_sparsity {
    const weir_model *model;
    const weir_point *point; /* the model's */
    weir_selector *selector;
    weir_sparsity_count *line; /* [n] in the order of the points */
    int n, n_below;
    int64_t sample;
    weir_act act;
    const weir_kern *kern;
    const weir_edit *const *edits;
    int n_edits;
    float *scratch; /* [F] a row of act(gate); NULL: no gate is read */
};

static inline float weir_sparsity_float(uint32_t bits)
{
    union {
        uint32_t u;
        float f;
    } x = {.u = bits};
    return x.f;
}

/* |x| as a whole number that grows with it. */
static inline uint32_t weir_sparsity_bits(float x)
{
    union {
        float f;
        uint32_t u;
    } v = {.f = x};
    return v.u & 0x7fffffff;
}

/* Counts the row x of the line; tag and pos say where it stands. */
WEIR_CHECKED weir_status weir_sparsity_add(weir_sparsity *s, weir_sparsity_count *c, const float *x, int64_t tag,
                                           int64_t pos, weir_err *err);
/* Counts a row of gates [width] for the line of hook_post that they belong to. */
void weir_sparsity_add_gate(weir_sparsity *s, weir_sparsity_count *c, const float *gate);
/* Keeps the row if it belongs to the sample. */
WEIR_CHECKED weir_status weir_sparsity_keep(const weir_sparsity *s, weir_sparsity_count *c, const float *x, int64_t tag,
                                            int64_t pos, weir_err *err);
WEIR_CHECKED weir_status weir_sparsity_make_curve(const weir_sparsity *s, weir_sparsity_count *c, int threads,
                                                  weir_err *err);

#endif
