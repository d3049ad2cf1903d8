/* weir_lens_measure: blocks of positions; of each, the logits of all rows, then two sweeps over them (measure.h). */
#include <string.h>

#include "../base/mem.h"
#include "../base/parallel.h"
#include "lens/measure.h"

enum { MOST_TARGETS = 8 };

/* --- checks */

static weir_status check_rows(const weir_lens_what *w, weir_err *err)
{
    if (w->n_rows < 1 || w->n < 0)
        return weir_fail(err, WEIR_E_ARG, "%d rows at %lld positions: there must be some", w->n_rows, (long long)w->n);
    for (int r = 0; r < w->n_rows; r++)
        if (w->row[r].prev < -1 || w->row[r].prev >= r)
            return weir_fail(err, WEIR_E_ARG, "row %d is to be compared with row %d, which does not stand before it", r,
                             w->row[r].prev);
    if (w->row[w->n_rows - 1].norm != WEIR_LENS_RECOMPUTE)
        return weir_fail(err, WEIR_E_ARG, "the final row needs the final norm as it is (WEIR_LENS_RECOMPUTE)");
    return WEIR_OK;
}

static weir_status check_counts(const weir_lens_what *w, int64_t v, weir_err *err)
{
    if (w->vocab < 0 || w->vocab > v)
        return weir_fail(err, WEIR_E_ARG, "%lld tokens of a vocabulary of %lld cannot count", (long long)w->vocab,
                         (long long)v);
    if (w->k < 0 || w->k > v)
        return weir_fail(err, WEIR_E_ARG, "the %lld likeliest of a vocabulary of %lld: it must be 0 to all",
                         (long long)w->k, (long long)v);
    if (w->n_targets < 0 || w->n_targets > MOST_TARGETS)
        return weir_fail(err, WEIR_E_ARG, "%d targets: it must be 0 to %d", w->n_targets, MOST_TARGETS);
    return WEIR_OK;
}

static weir_status check(const weir_lens_what *w, int64_t v, weir_err *err)
{
    WEIR_TRY(check_rows(w, err));
    WEIR_TRY(check_counts(w, v, err));
    const int64_t vocab = w->vocab ? w->vocab : v;
    for (int64_t i = 0; i < w->n * w->n_targets; i++)
        if ((w->target[i] < WEIR_LENS_FINAL_TOP && w->target[i] != WEIR_LENS_ROW_TOP) || w->target[i] >= vocab)
            return weir_fail(err, WEIR_E_ARG, "target %d of position %lld is outside the vocabulary, 0 to %lld",
                             w->target[i], (long long)(i / w->n_targets), (long long)(vocab - 1));
    return WEIR_OK;
}

/* --- memory */

static int64_t positions_of_block(const weir_lens_block *b)
{
    const int64_t n = b->what->n, most = b->l->block_bytes / ((int64_t)sizeof(float) * b->l->spec->V) / b->what->n_rows;
    if (most < 2)
        return 1;
    const int64_t blocks = (n + most - 1) / most; /* none much smaller than the others */
    return (n + blocks - 1) / blocks;
}

static weir_status allocate(weir_lens_block *b, weir_err *err)
{
    const size_t rows = (size_t)b->what->n_rows, size = (size_t)b->size, threads = (size_t)b->l->threads;
    const size_t targets = (size_t)b->what->n_targets, places = size * (size_t)b->pieces * rows;
    b->seen = weir_calloc(size * rows, sizeof *b->seen);
    b->id = weir_calloc(threads * (size_t)(b->what->k > 1 ? b->what->k : 1), sizeof *b->id);
    b->slot = weir_calloc(rows, sizeof *b->slot);
    if (!b->seen || !b->id || !b->slot)
        return weir_nomem(err, "a lens");
    weir_lens_give_slots(b);
    if (b->probs) {
        b->sums = weir_calloc(places, sizeof *b->sums);
        b->piece = weir_alloc_aligned(threads * (size_t)b->slots * sizeof *b->piece);
    }
    if (b->out->rank)
        b->likelier = weir_calloc(places * targets, sizeof *b->likelier);
    if ((b->probs && (!b->sums || !b->piece)) || (b->out->rank && !b->likelier))
        return weir_nomem(err, "a lens");
    return weir_lens_room(b->l, b->size * b->what->n_rows, err);
}

static void release(weir_lens_block *b)
{
    weir_free(b->seen);
    weir_free(b->id);
    weir_free(b->slot);
    weir_free(b->sums);
    weir_free_aligned(b->piece);
    weir_free(b->likelier);
}

/* --- a block */

/* Row i % R of position i / R meets the final norm. */
static void norm_row(void *ctx, int64_t i, int thread)
{
    const weir_lens_block *b = ctx;
    const weir_kern *kern = b->l->kern;
    const int rows = b->what->n_rows;
    const int64_t c = b->l->spec->C, position = b->at + i / rows;
    const weir_lens_row *row = &b->what->row[i % rows];
    float scale = 1;
    weir_norm n = b->norm;
    (void)thread;
    n.x = row->x + position * c;
    n.out = b->l->h + i * c;
    switch (row->norm) {
    case WEIR_LENS_RECOMPUTE:
        weir_norm_run(kern, 1, &n);
        break;
    case WEIR_LENS_CACHED: {
        weir_norm final = b->norm;
        final.x = b->what->row[rows - 1].x + position * c;
        final.scale = n.scale = &scale;
        weir_norm_run(kern, 1, &final);
        weir_norm_from_scale(kern, 1, &n);
        break;
    }
    case WEIR_LENS_GAIN:
        n.scale = &scale;
        n.b = NULL;
        weir_norm_from_scale(kern, 1, &n);
        break;
    case WEIR_LENS_NONE:
        memcpy(n.out, n.x, (size_t)c * sizeof *n.out);
        break;
    }
}

static weir_status run_block(weir_lens_block *b, weir_err *err)
{
    weir_lens *l = b->l;
    const int64_t all = b->n * b->what->n_rows;
    weir_parallel_for(l->threads, all, 8, norm_row, b);
    WEIR_TRY(weir_lens_unembed(l, all, !b->what->no_softcap, l->logits, err));
    weir_parallel_for(l->threads, all, 1, weir_lens_see_row, b);
    weir_parallel_for(l->threads, b->n * b->pieces, 1, weir_lens_compare_piece, b);
    weir_parallel_for(l->threads, all, 8, weir_lens_put_row, b);
    return WEIR_OK;
}

static weir_status run_blocks(weir_lens_block *b, weir_err *err)
{
    WEIR_TRY(allocate(b, err));
    WEIR_TRY(weir_lens_final_norm(b->l, 1, &b->norm, err));
    for (b->at = 0; b->at < b->what->n; b->at += b->n) {
        b->n = b->what->n - b->at < b->size ? b->what->n - b->at : b->size;
        WEIR_TRY(run_block(b, err));
    }
    return WEIR_OK;
}

weir_status weir_lens_measure(weir_lens *l, const weir_lens_what *what, const weir_lens_out *out, weir_err *err)
{
    weir_lens_block b = {.l = l, .what = what, .out = out};
    WEIR_TRY(check(what, l->spec->V, err));
    if (what->n == 0)
        return WEIR_OK;
    b.vocab = what->vocab ? what->vocab : l->spec->V;
    for (int64_t i = 0; i < what->n * what->n_targets && !b.row_tops; i++)
        b.row_tops = what->target[i] == WEIR_LENS_ROW_TOP;
    b.probs = out->entropy || out->kl_final || out->kl_prev || out->jsd;
    b.pieces = b.probs || out->rank ? (b.vocab + WEIR_LENS_PIECE - 1) / WEIR_LENS_PIECE : 0;
    b.size = positions_of_block(&b);
    const weir_status st = run_blocks(&b, err);
    release(&b);
    return st;
}
