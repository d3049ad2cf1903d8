/* The matrices of an architecture, one by one: what a token is multiplied with, and in which shapes. */
#include "matrices.h"

#include "../base/mem.h"

typedef struct list {
    int64_t layer;
    weir_matmul_reader *read;
    void *ctx;
} list;

static void put_copies(const list *l, weir_bill_item item, int64_t in, int64_t out, int64_t copies, int64_t used)
{
    l->read(l->ctx, &(weir_matmul){item, l->layer, in, out, copies, used});
}

static void put(const list *l, weir_bill_item item, int64_t in, int64_t out)
{
    put_copies(l, item, in, out, 1, 1);
}

static void attention(const list *l, const weir_attention_shape *a, int64_t d)
{
    if (a->kv_rank && a->q_rank) {
        put(l, WEIR_BILL_Q, d, a->q_rank);
        put(l, WEIR_BILL_Q, a->q_rank, a->heads * a->qk);
    } else {
        put(l, WEIR_BILL_Q, d, a->heads * a->qk);
    }
    if (a->kv_rank) {
        put(l, WEIR_BILL_KV, d, a->kv_rank + a->rope);
        put(l, WEIR_BILL_K, a->kv_rank, a->heads * (a->qk - a->rope));
        put(l, WEIR_BILL_V, a->kv_rank, a->heads * a->v);
    } else {
        put(l, WEIR_BILL_K, d, a->kv_heads * a->qk);
        put(l, WEIR_BILL_V, d, a->kv_heads * a->v);
    }
    put(l, WEIR_BILL_O, a->heads * a->v, d);
}

static void experts(const list *l, const weir_moe_shape *m, int64_t d)
{
    put(l, WEIR_BILL_ROUTER, d, m->experts);
    for (int i = 0; i < 1 + m->gated; i++)
        put_copies(l, WEIR_BILL_EXPERTS, d, m->width, m->experts, m->top_k);
    put_copies(l, WEIR_BILL_EXPERTS, m->width, d, m->experts, m->top_k);
    for (int i = 0; m->shared && i < 1 + m->gated; i++)
        put(l, WEIR_BILL_SHARED, d, m->shared);
    if (m->shared)
        put(l, WEIR_BILL_SHARED, m->shared, d);
    if (m->shared_gate)
        put(l, WEIR_BILL_SHARED, d, 1);
}

static void layer(const list *l, const weir_layer_shape *s, int64_t d)
{
    for (int i = 0; s->attn.heads && i < 1 + s->cross; i++)
        attention(l, &s->attn, d);
    if (s->mixer.heads) {
        const weir_mixer_shape *m = &s->mixer;
        const int64_t inner = m->heads * m->head_size;
        put(l, WEIR_BILL_MIXER, d, 2 * inner + 2 * m->groups * m->state + m->heads);
        put(l, WEIR_BILL_MIXER, inner, d);
    }
    if (s->mlp.width) {
        if (s->mlp.gated)
            put(l, WEIR_BILL_GATE, d, s->mlp.width);
        put(l, WEIR_BILL_UP, d, s->mlp.width);
        put(l, WEIR_BILL_DOWN, s->mlp.width, d);
    }
    if (s->moe.experts)
        experts(l, &s->moe, d);
}

void weir_matmuls_each(const weir_blueprint *b, weir_matmul_reader *read, void *ctx)
{
    list l = {.read = read, .ctx = ctx};
    for (int64_t i = 0; i < b->n_layers; i++) {
        l.layer = i;
        layer(&l, &b->layer[i], b->width);
    }
    l.layer = -1;
    if (b->embed != b->width) {
        put(&l, WEIR_BILL_OTHER, b->embed, b->width);
        put(&l, WEIR_BILL_OTHER, b->width, b->embed);
    }
    if (b->head == WEIR_HEAD_OWN)
        put(&l, WEIR_BILL_UNEMBED, b->embed, b->vocab);
    else if (b->head == WEIR_HEAD_TIED)
        put(&l, WEIR_BILL_EMBED, b->embed, b->vocab);
}

/* --- as an array */

typedef struct array {
    weir_matmul *m; /* NULL: they are only counted */
    int64_t n;
} array;

static void keep(void *ctx, const weir_matmul *m)
{
    array *a = ctx;
    if (a->m)
        a->m[a->n] = *m;
    a->n++;
}

weir_status weir_matmuls_of(weir_matmul **out, int64_t *n, const weir_blueprint *b, weir_err *err)
{
    array a = {0};
    weir_matmuls_each(b, keep, &a);
    *out = a.m = weir_calloc((size_t)a.n, sizeof *a.m);
    *n = a.n;
    if (!a.m)
        return weir_nomem(err, "the list of matrices");
    a.n = 0;
    weir_matmuls_each(b, keep, &a);
    return WEIR_OK;
}

void weir_matmuls_free(weir_matmul *m)
{
    weir_free(m);
}
