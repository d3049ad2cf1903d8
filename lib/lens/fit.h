/* lens/fit.h: the inside of the training of a tuned lens.
 *
 *   fit.c        the object; rows to blocks to steps; measuring
 *   fit_block.c  the gradient of a block of positions
 *   fit_adam.c   the update
 *   fit_save.c   the directory
 *   fit_*.c      fit_kern.h: rows of logits, an instruction set each
 */
#ifndef WEIR_LENS_FIT_H
#define WEIR_LENS_FIT_H

#include <weir/lens.h>
#include <weir/tuned.h>

#include "../base/mem.h"
#include "../model/spec.h"
#include "fit_kern.h"

/* What a block needs while it is computed; n its positions. */
typedef struct weir_fit_work {
    float *g;       /* [n,C] rows behind the translator */
    float *y;       /* [n,C] normalized */
    float *scale;   /* [n] */
    float *h;       /* [n,C] what the unembedding reads */
    float *f;       /* [n,V] the final distribution */
    double *f_ln_f; /* [n] its negative entropy */
    float *z;       /* [n,V] logits, then their gradient */
    double *kl;     /* [n] */
    float *dh;      /* [n,C] gradient of h, then of g */
    float *part;    /* [n,C] what one part of the unembedding adds to it */
    float *turn;    /* [C,n] gradient of g, turned round */
    float *da;      /* [C,C] */
    void *gemm;
} weir_fit_work;

struct weir_fit {
    const weir_model *model;
    const weir_spec *spec;
    const weir_kern *kern;
    const weir_fit_kern *rows;
    int threads;
    weir_fit_options o;
    weir_normw norm;   /* the final one */
    weir_turned *head; /* [parts] the unembedding, for the way back */
    int64_t parts;
    /* the translators: for each A [C,C], then b [C] */
    int64_t size; /* C (C + 1) */
    float *theta; /* [L,size] */
    float *grad;  /* [L,size] sum over the step so far */
    float *mean;  /* [L,size] Adam's moments */
    float *square;
    weir_panels **packed; /* [L] A as it is now; NULL: not packed since the update */
    /* the step */
    int64_t steps;           /* done */
    int64_t rows_done;       /* of the running step */
    double *loss, *loss_sum; /* [L] of the last step; of the running one so far */
    /* the block */
    int64_t block;  /* positions at most */
    int64_t filled; /* positions that wait in x */
    float *x;       /* [L + 1,block,C] */
    weir_fit_work w;
    /* measuring: made when it is first asked for */
    weir_lens *lens;
    float *tuned; /* [L,block,C] */
    float *kl;    /* [2 L + 1,block] */
};

/* Row 0 of place i (L: the final stream) of the block. */
static inline float *weir_fit_place(const weir_fit *f, int64_t i)
{
    return f->x + i * f->block * f->spec->C;
}

/* out [n,C] = x + (A_i x + b_i), n <= block. */
WEIR_CHECKED weir_status weir_fit_translate(weir_fit *f, int64_t i, const float *x, int64_t n, float *out,
                                            weir_err *err);
/* Adds the gradient and the loss of the positions that wait to those of the step. */
WEIR_CHECKED weir_status weir_fit_block(weir_fit *f, weir_err *err);
/* One update with the step's gradient, which is then zero again. */
void weir_fit_update(weir_fit *f);

#endif
