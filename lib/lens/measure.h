/* lens/measure.h: one call of weir_lens_measure, block by block.
 *
 *   measure.c         checks, memory, blocks: rows through the norm and the unembedding
 *   measure_seen.c    first sweep over the logits: normalisers and likeliest tokens, a row at a time
 *   measure_pieces.c  second sweep: what compares distributions, a piece of the vocabulary at a time
 *   measure_out.c     results out of both
 *   measure_*.c       the loops of each instruction set (lanes.h)
 *
 * Shapes: B = positions of a block, R = rows, T = targets, N = pieces of the vocabulary.
 */
#ifndef WEIR_LENS_MEASURE_H
#define WEIR_LENS_MEASURE_H

#include "lens/impl.h"

/* A row at a position, after the first sweep. */
typedef struct weir_lens_seen {
    weir_row_sum sum;
    weir_lens_softmax softmax; /* the same, rounded */
    double rest;               /* exact log_z - rounded log_z: what every ln p of the second sweep is too large by */
    bool good;                 /* it has a distribution */
    int32_t best;              /* of the final row, or with row_tops: the likeliest token, -1: none */
} weir_lens_seen;

/* Sums over one piece. */
typedef struct weir_lens_sums {
    float plogp, kl_final, kl_prev, jsd;
} weir_lens_sums;

/* Probabilities of a row in a piece. */
typedef struct weir_lens_probs {
    _Alignas(64) float p[WEIR_LENS_PIECE], ln_p[WEIR_LENS_PIECE];
    bool hollow; /* some logits are -inf; their ln p is WEIR_LENS_NEVER */
} weir_lens_probs;

/* In place of ln 0: its product with a probability of 0 is 0. */
#define WEIR_LENS_NEVER (-1e37f)

typedef struct weir_lens_block {
    weir_lens *l;
    const weir_lens_what *what;
    const weir_lens_out *out;
    weir_norm norm;         /* the final norm, without rows */
    int64_t vocab, pieces;  /* tokens that count; N, 0: no second sweep */
    bool probs;             /* the second sweep needs probabilities */
    bool row_tops;          /* some target is WEIR_LENS_ROW_TOP */
    int64_t size;           /* positions that there is room for */
    int64_t at, n;          /* the positions [at, at + n): B = n */
    weir_lens_seen *seen;   /* [B, R] */
    int32_t *id;            /* [threads, max(k, 1)] */
    weir_lens_sums *sums;   /* [B, N, R] */
    int32_t *likelier;      /* [B, N, R, T] tokens of the piece that are likelier than the target */
    weir_lens_probs *piece; /* [threads, slots] */
    int *slot;              /* [R] which of them holds a row */
    int slots;
} weir_lens_block;

static inline const float *weir_lens_logits_at(const weir_lens_block *b, int64_t position, int row)
{
    return b->l->logits + (position * b->what->n_rows + row) * b->l->spec->V;
}

/* Target j of a row at a position of the block; -1: none. */
static inline int32_t weir_lens_target(const weir_lens_block *b, int64_t position, int row, int j)
{
    const int32_t t = b->what->target[(b->at + position) * b->what->n_targets + j];
    const weir_lens_seen *seen = b->seen + position * b->what->n_rows;
    return t == WEIR_LENS_FINAL_TOP ? seen[b->what->n_rows - 1].best : t == WEIR_LENS_ROW_TOP ? seen[row].best : t;
}

/* Which slot each row takes in the second sweep. */
void weir_lens_give_slots(weir_lens_block *b);

/* Tasks for weir_parallel_for, ctx a weir_lens_block: row i % R of position i / R; piece i % N of position i / N. */
void weir_lens_see_row(void *ctx, int64_t i, int thread);
void weir_lens_compare_piece(void *ctx, int64_t i, int thread);
void weir_lens_put_row(void *ctx, int64_t i, int thread);

#endif
