/* lens/memories.c: values of an MLP, and rows of the stream, as distributions over the vocabulary (weir/keyvalue.h):
 * tiles of them through the unembedding, and what is asked of each row of logits. */
#include <math.h>
#include <string.h>

#include <weir/keyvalue.h>

#include "../base/mem.h"
#include "../base/parallel.h"
#include "lens/impl.h"

/* --- vectors to logits, in l->logits */

/* Through a norm's gain as if its scale were 1; its bias is left out. out may be x. */
static void through_gain(const weir_lens *l, const weir_normw *w, const float *x, int64_t n, float *out)
{
    const weir_spec *s = l->spec;
    const weir_norm norm = {.rms = s->rms, .eps = s->eps, .offset = s->norm_offset, .w = w->w, .rows = 1, .c = s->C};
    for (int64_t i = 0; i < n; i++) {
        float one = 1;
        weir_norm row = norm;
        row.x = x + i * s->C;
        row.out = out + i * s->C;
        row.scale = &one;
        weir_norm_from_scale(l->kern, 1, &row);
    }
}

static weir_status read_rows(weir_lens *l, weir_lens_norm how, const float *x, int64_t n, weir_err *err)
{
    weir_norm norm;
    weir_normw final;
    switch (how) {
    case WEIR_LENS_NONE:
        memcpy(l->h, x, (size_t)(n * l->spec->C) * sizeof *x);
        break;
    case WEIR_LENS_GAIN:
        WEIR_TRY(weir_model_final(l->model, &final, err));
        through_gain(l, &final, x, n, l->h);
        break;
    default:
        WEIR_TRY(weir_lens_final_norm(l, n, &norm, err));
        norm.x = x;
        norm.out = l->h;
        weir_norm_run(l->kern, l->threads, &norm);
    }
    return weir_lens_unembed(l, n, how == WEIR_LENS_RECOMPUTE, l->logits, err);
}

static weir_status check_reading(const weir_lens *l, weir_lens_norm how, int64_t vocab, weir_err *err)
{
    if (how != WEIR_LENS_NONE && how != WEIR_LENS_GAIN && how != WEIR_LENS_RECOMPUTE)
        return weir_fail(err, WEIR_E_ARG, "a value is read raw, through the gain, or through the whole final norm");
    if (vocab < 0 || vocab > l->spec->V)
        return weir_fail(err, WEIR_E_ARG, "%lld tokens of a vocabulary of %lld cannot count", (long long)vocab,
                         (long long)l->spec->V);
    return WEIR_OK;
}

/* --- predictions of rows */

typedef struct predicting {
    const weir_lens *l;
    int64_t vocab;
    int32_t *id;
} predicting;

static void predict_row(void *ctx, int64_t i, int thread)
{
    const predicting *p = ctx;
    (void)thread;
    weir_lens_largest(p->l, p->l->logits + i * p->l->spec->V, p->vocab, 1, p->id + i);
}

weir_status weir_memory_predict(weir_lens *l, weir_lens_norm norm, int64_t vocab, const float *x, int64_t n,
                                int32_t *id, weir_err *err)
{
    WEIR_TRY(check_reading(l, norm, vocab, err));
    WEIR_TRY(weir_lens_room(l, l->tile_rows, err));
    for (int64_t t = 0; t < n; t += l->tile_rows) {
        const int64_t rows = n - t < l->tile_rows ? n - t : l->tile_rows;
        WEIR_TRY(read_rows(l, norm, x + t * l->spec->C, rows, err));
        weir_parallel_for(l->threads, rows, 1, predict_row, &(predicting){l, vocab ? vocab : l->spec->V, id + t});
    }
    return WEIR_OK;
}

/* --- values */

typedef struct reading {
    weir_lens *l;
    const weir_memory_ask *ask;
    const weir_memory_side *side; /* of the two, the one that is read */
    int64_t n, vocab;             /* values, tokens that count */
    int64_t at;                   /* the first value of the tile */
    int32_t *id;                  /* [tile, k] */
    float *x;                     /* [tile, C] */
    int64_t *unit;                /* [tile] */
} reading;

/* 1 + how many tokens are likelier than t. */
static int32_t rank_of(const float *x, int64_t vocab, int32_t t)
{
    const float mine = x[t];
    int32_t likelier = 0;
    for (int32_t i = 0; i < t; i++)
        likelier += x[i] >= mine;
    for (int64_t i = t + 1; i < vocab; i++)
        likelier += x[i] > mine;
    return likelier + 1;
}

static void put_targets(const reading *r, int64_t value, const float *x, const weir_row_sum *sum)
{
    const weir_memory_side *s = r->side;
    for (int64_t j = value * s->n_targets; j < (value + 1) * s->n_targets; j++) {
        const int32_t t = s->target[j];
        const bool good = t >= 0 && !isnan(sum->log_sum);
        if (s->rank)
            s->rank[j] = !good                                               ? 0
                         : j > value * s->n_targets && t == s->target[j - 1] ? s->rank[j - 1]
                                                                             : rank_of(x, r->vocab, t);
        if (s->logprob)
            s->logprob[j] = good ? weir_row_logprob(sum, x[t]) : NAN;
    }
}

static void see_row(void *ctx, int64_t i, int thread)
{
    const reading *r = ctx;
    const weir_memory_side *s = r->side;
    const int64_t k = s->top_id || s->top_logprob ? r->ask->k : 0, value = r->at + i;
    const float *x = r->l->logits + i * r->l->spec->V;
    int32_t *id = r->id + i * k;
    weir_row_sum sum;
    (void)thread;
    weir_op_row_sums(r->l->kern, 1, &sum, x, r->l->spec->V, 1, r->vocab);
    if (k)
        weir_lens_largest(r->l, x, r->vocab, k, id);
    if (k && s->top_id)
        memcpy(s->top_id + value * k, id, (size_t)k * sizeof *id);
    for (int64_t j = 0; j < k && s->top_logprob; j++)
        s->top_logprob[value * k + j] = id[j] < 0 ? NAN : weir_row_logprob(&sum, x[id[j]]);
    if (s->n_targets)
        put_targets(r, value, x, &sum);
}

/* The values [at, at + n) as they reach the stream. */
static weir_status load(reading *r, int64_t n, weir_err *err)
{
    const weir_memory_ask *a = r->ask;
    const weir_layer *norms;
    for (int64_t i = 0; i < n; i++)
        r->unit[i] = a->unit ? a->unit[r->at + i] : r->at + i;
    WEIR_TRY(weir_weights_neurons(r->l->model, a->layer, WEIR_WEIGHTS_VALUE, r->unit, n, r->x, err));
    weir_edit_add_neurons(a->edits, a->n_edits, a->layer, WEIR_WEIGHTS_VALUE, r->unit, n, r->x);
    if (r->l->spec->post_norms) {
        WEIR_TRY(weir_model_norms(r->l->model, a->layer, &norms, err));
        through_gain(r->l, &norms->ln2_post, r->x, n, r->x);
    }
    return WEIR_OK;
}

static void negate(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = -x[i];
}

static bool asks(const weir_memory_side *s)
{
    return s->top_id || s->top_logprob || s->rank || s->logprob;
}

/* Without a norm's bias the negatives' logits are those of the values turned over, to the bit. */
static weir_status read_tile(reading *r, const weir_memory_side side[2], int64_t n, weir_err *err)
{
    weir_lens *l = r->l;
    const bool linear = r->ask->norm != WEIR_LENS_RECOMPUTE;
    bool made = false;
    WEIR_TRY(load(r, n, err));
    for (int sign = 0; sign < 2; sign++) {
        if (sign == 1)
            made ? negate(l->logits, n * l->spec->V) : negate(r->x, n * l->spec->C);
        if (!asks(&side[sign]))
            continue;
        if (!made)
            WEIR_TRY(read_rows(l, r->ask->norm, r->x, n, err));
        made = linear;
        r->side = &side[sign];
        weir_parallel_for(l->threads, n, 1, see_row, r);
    }
    return WEIR_OK;
}

static weir_status check(const reading *r, const weir_memory_side side[2], weir_err *err)
{
    const weir_memory_ask *a = r->ask;
    WEIR_TRY(check_reading(r->l, a->norm, a->vocab, err));
    if (a->k < 0 || a->k > r->vocab)
        return weir_fail(err, WEIR_E_ARG, "the %lld likeliest of %lld tokens: it must be 0 to all", (long long)a->k,
                         (long long)r->vocab);
    for (int sign = 0; sign < 2; sign++)
        for (int64_t i = 0; asks(&side[sign]) && i < r->n * side[sign].n_targets; i++)
            if (side[sign].target[i] < -1 || side[sign].target[i] >= r->vocab)
                return weir_fail(err, WEIR_E_ARG, "target %d is outside the vocabulary, 0 to %lld",
                                 side[sign].target[i], (long long)(r->vocab - 1));
    return WEIR_OK;
}

static weir_status read_all(reading *r, const weir_memory_side side[2], weir_err *err)
{
    weir_lens *l = r->l;
    const int64_t tile = l->tile_rows;
    r->id = weir_calloc((size_t)(tile * (r->ask->k + 1)), sizeof *r->id);
    r->x = weir_calloc((size_t)(tile * l->spec->C), sizeof *r->x);
    r->unit = weir_calloc((size_t)tile, sizeof *r->unit);
    if (!r->id || !r->x || !r->unit)
        return weir_nomem(err, "the values of an MLP");
    WEIR_TRY(weir_lens_room(l, tile, err));
    for (r->at = 0; r->at < r->n; r->at += tile)
        WEIR_TRY(read_tile(r, side, r->n - r->at < tile ? r->n - r->at : tile, err));
    return WEIR_OK;
}

weir_status weir_memory_values(weir_lens *l, const weir_memory_ask *ask, const weir_memory_side side[2], weir_err *err)
{
    reading r = {
        .l = l, .ask = ask, .n = ask->unit ? ask->n : l->spec->F, .vocab = ask->vocab ? ask->vocab : l->spec->V};
    WEIR_TRY(check(&r, side, err));
    const weir_status st = read_all(&r, side, err);
    weir_free(r.id);
    weir_free(r.x);
    weir_free(r.unit);
    return st;
}
