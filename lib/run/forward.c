/* The forward pass: the only one. Prefill, decode and batches differ in their rows and in nothing else.
 *
 * Each step makes a value and lets it be heard (weir_run_hear); a hook that writes changes the buffer that the next
 * step reads. After the last value that is needed, weir_run_hear returns WEIR_STOP, and the pass unwinds. by_layer.c
 * takes the same steps one by one. */
#include <string.h>

#include "../base/parallel.h"
#include "state.h"

#ifndef WEIR_BENCH_NO_HOOKS
weir_status weir_run_fire(weir_run *r, int64_t i, float *data)
{
    const weir_point *p = &r->map.point[i];
    int64_t size = p->keyed ? r->longest : p->size;
    const weir_value v = {
        .point = p, .data = data, .width = p->heads * size, .heads = p->heads, .size = size, .rows = &r->rows};
    WEIR_TRY(weir_listeners_fire(&r->hooks, i, &v, r->err));
    r->ended = weir_run_order(r, p->layer, p->site) >= r->last;
    return r->ended ? WEIR_STOP : WEIR_OK;
}
#endif

static void embed_row(void *ctx, int64_t t, int thread)
{
    weir_run *r = ctx;
    (void)thread;
    weir_model_embed_row(r->model, r->rows.id[t], r->b.x + t * r->spec->C);
}

static void position_row(void *ctx, int64_t t, int thread)
{
    weir_run *r = ctx;
    (void)thread;
    weir_model_pos_row(r->model, r->rows.pos[t], r->b.h + t * r->spec->C);
}

static weir_status embed(weir_run *r)
{
    const weir_spec *s = r->spec;
    const weir_buffers *b = &r->b;
    int64_t n = r->rows.n * s->C;
    weir_parallel_for(r->threads, r->rows.n, 0, embed_row, r);
    if (s->embed_scale != 1)
        weir_op_scale(r->kern, r->threads, b->x, s->embed_scale, n);
    WEIR_TRY(weir_run_hear(r, -1, WEIR_SITE_EMBED, b->x));
    if (s->positions != WEIR_POS_LEARNED)
        return WEIR_OK;
    weir_parallel_for(r->threads, r->rows.n, 0, position_row, r);
    WEIR_TRY(weir_run_hear(r, -1, WEIR_SITE_POS_EMBED, b->h));
    weir_op_add(r->kern, r->threads, b->x, b->x, b->h, n);
    return WEIR_OK;
}

weir_status weir_run_embed(weir_run *r)
{
    weir_status st = embed(r);
    if (r->memory) /* rows from all over the tables would add up to the tables */
        weir_model_tables_drop(r->model);
    return st;
}

/* The norm that reads the stream behind a block, if the pass gets there: *next is NULL otherwise. */
static weir_status norm_behind(weir_run *r, int64_t layer, weir_norm_at *room, const weir_norm_at **next)
{
    *next = NULL;
    if (r->by_layer)
        return WEIR_OK;
    if (layer + 1 < r->spec->L) {
        if (!weir_run_needs(r, layer + 1, WEIR_SITE_LN1_SCALE))
            return WEIR_OK;
        const weir_layer *w;
        WEIR_TRY(weir_model_norms(r->model, layer + 1, &w, r->err));
        *room = (weir_norm_at){w->ln1, layer + 1, WEIR_SITE_LN1_SCALE};
    } else {
        if (!weir_run_needs(r, -1, WEIR_SITE_LNF_SCALE))
            return WEIR_OK;
        *room = (weir_norm_at){.layer = -1, .scale = WEIR_SITE_LNF_SCALE};
        WEIR_TRY(weir_model_final(r->model, &room->w, r->err));
    }
    *next = room;
    return WEIR_OK;
}

/* From the stream to the stream. */
static weir_status sublayers(weir_run *r, int64_t layer, const weir_layer *w)
{
    const weir_buffers *b = &r->b;
    const weir_norm_at ln1 = {w->ln1, layer, WEIR_SITE_LN1_SCALE};
    const weir_norm_at ln2 = {w->ln2, layer, WEIR_SITE_LN2_SCALE};
    WEIR_TRY(weir_run_norm_stream(r, &ln1));
    WEIR_TRY(weir_run_attention(r, layer, w));
    if (!r->spec->parallel)
        WEIR_TRY(weir_run_add_stream(r, layer, WEIR_SITE_RESID_MID, b->attn_out, &ln2));
    WEIR_TRY(weir_run_norm_stream(r, &ln2));
    WEIR_TRY(weir_run_mlp(r, layer, w));
    if (r->spec->parallel)
        weir_op_add(r->kern, r->threads, b->mlp_out, b->attn_out, b->mlp_out, r->rows.n * r->spec->C);
    weir_norm_at room;
    const weir_norm_at *next;
    WEIR_TRY(norm_behind(r, layer, &room, &next));
    return weir_run_add_stream(r, layer, WEIR_SITE_RESID_POST, b->mlp_out, next);
}

weir_status weir_run_block(weir_run *r, int64_t layer)
{
    const weir_layer *w;
    weir_tape_enter(r, layer);
    WEIR_TRY(weir_run_hear(r, layer, WEIR_SITE_RESID_PRE, r->b.x));
    WEIR_TRY(weir_model_layer(r->model, layer, r->room, &w, r->err));
    weir_status st = sublayers(r, layer, w);
    weir_model_layer_done(r->model, layer, false);
    return st;
}

weir_status weir_run_final(weir_run *r)
{
    const weir_spec *s = r->spec;
    const weir_buffers *b = &r->b;
    weir_norm_at norm = {.layer = -1, .scale = WEIR_SITE_LNF_SCALE};
    WEIR_TRY(weir_model_final(r->model, &norm.w, r->err));
    WEIR_TRY(weir_run_norm_stream(r, &norm));
    WEIR_TRY(weir_run_hear(r, -1, WEIR_SITE_UNEMBED_IN, b->final));
    if (!b->logits)
        return WEIR_OK;
    WEIR_TRY(weir_run_unembed(r, 0, r->rows.n, b->logits));
    WEIR_TRY(weir_run_hear(r, -1, WEIR_SITE_UNEMBED_OUT, b->logits));
    if (s->logit_softcap != 0) {
        weir_op_softcap(r->kern, r->threads, b->logits, s->logit_softcap, r->rows.n * s->V);
        if (r->tape.capped)
            memcpy(r->tape.capped, b->logits, (size_t)(r->rows.n * s->V) * sizeof(float));
        WEIR_TRY(weir_run_hear(r, -1, WEIR_SITE_LOGITS, b->logits));
    }
    r->unembedded = true;
    return WEIR_OK;
}

/* From the embedding, or the stream that was given, to the last value that is needed. */
static weir_status steps(weir_run *r)
{
    if (r->last < 0)
        return WEIR_OK;
    if (r->from == WEIR_EMBEDDING)
        WEIR_TRY(weir_run_embed(r));
    for (int64_t l = weir_run_first(r); l < r->spec->L; l++)
        WEIR_TRY(weir_run_block(r, l));
    return weir_run_final(r);
}

weir_status weir_run_pass(weir_run *r, const weir_seq *seqs, int64_t n_seq, int flags, weir_status (*take)(weir_run *r),
                          weir_err *err)
{
    r->err = err;
    r->ended = r->normed = r->final = r->unembedded = false;
    r->layers = weir_run_aim(r, flags);
    weir_tape_begin(r);
    WEIR_TRY(weir_kv_begin(r, seqs, n_seq));
    WEIR_TRY(weir_listeners_begin(&r->hooks, &r->rows, err));
    weir_status st = take(r);
    if (st == WEIR_STOP && r->ended)
        st = WEIR_OK;
    if (st < 0)
        return st;
    WEIR_TRY(weir_listeners_end(&r->hooks, &r->rows, err));
    r->tape.whole = true;
    if (st == WEIR_OK && !(flags & WEIR_KEEP_SLOTS))
        weir_kv_commit(r);
    return st;
}

static weir_status forward(weir_run *r, const weir_seq *seqs, int64_t n_seq, int64_t from, int flags, weir_err *err)
{
    if (r->by_layer)
        return weir_fail(err, WEIR_E_ARG, "the run was made to go layer by layer: weir_run_part");
    WEIR_TRY(weir_run_prepare(r, flags, err));
    r->part = WEIR_ALL_PARTS;
    r->from = from;
    WEIR_TRY(weir_run_pass(r, seqs, n_seq, flags, steps, err));
    r->final = flags & WEIR_FINAL;
    return WEIR_OK;
}

weir_status weir_run_forward(weir_run *r, const weir_seq *seqs, int64_t n_seq, int flags, weir_err *err)
{
    return forward(r, seqs, n_seq, WEIR_EMBEDDING, flags, err);
}

weir_status weir_run_forward_from(weir_run *r, const weir_seq *seqs, int64_t n_seq, int64_t layer, int flags,
                                  weir_err *err)
{
    if (layer < 0 || layer > r->spec->L)
        return weir_fail(err, WEIR_E_ARG,
                         "a pass from layer %lld on: the model has layers 0 to %lld, and %lld is its end",
                         (long long)layer, (long long)(r->spec->L - 1), (long long)r->spec->L);
    if (!r->prepared && !r->by_layer)
        return weir_fail(err, WEIR_E_ARG,
                         "weir_run_prepare comes before weir_run_forward_from: it gives the stream its room");
    return forward(r, seqs, n_seq, layer, flags, err);
}
