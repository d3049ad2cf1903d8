/* From shapes to counts. Every product and sum is checked: once one does not fit into 64 bits, the whole bill fails. */
#include <string.h>

#include "impl.h"

/* --- checked arithmetic that remembers */

typedef struct adder {
    bool ok;
} adder;

static int64_t mul(adder *a, int64_t x, int64_t y)
{
    int64_t v = 0;
    a->ok = weir_mul64(x, y, &v) && a->ok;
    return v;
}

static int64_t add(adder *a, int64_t x, int64_t y)
{
    int64_t v = 0;
    a->ok = weir_add64(x, y, &v) && a->ok;
    return v;
}

/* --- one item after another */

/* A matrix in x out, and its bias. */
static void matrix(adder *a, weir_cost *c, int64_t in, int64_t out, bool bias)
{
    const int64_t weights = mul(a, in, out), all = add(a, weights, bias ? out : 0);
    c->params = add(a, c->params, all);
    c->active = add(a, c->active, all);
    c->read = add(a, c->read, all);
    c->matmul = add(a, c->matmul, weights);
}

/* Parameters that are not multiplied with a token as a matrix is. */
static void plain(adder *a, weir_cost *c, int64_t n)
{
    c->params = add(a, c->params, n);
    c->active = add(a, c->active, n);
    c->read = add(a, c->read, n);
}

static void add_cost(adder *a, weir_cost *to, const weir_cost *c)
{
    to->params = add(a, to->params, c->params);
    to->active = add(a, to->active, c->active);
    to->read = add(a, to->read, c->read);
    to->matmul = add(a, to->matmul, c->matmul);
}

/* --- a layer */

static void attend_latent(adder *a, weir_cost *item, const weir_attention_shape *s, int64_t d)
{
    const int64_t all_q = mul(a, s->heads, s->qk);
    if (s->q_rank) {
        matrix(a, &item[WEIR_BILL_Q], d, s->q_rank, s->q_bias);
        matrix(a, &item[WEIR_BILL_Q], s->q_rank, all_q, false);
        plain(a, &item[WEIR_BILL_ATTN_REST], s->q_rank);
    } else {
        matrix(a, &item[WEIR_BILL_Q], d, all_q, false);
    }
    matrix(a, &item[WEIR_BILL_KV], d, add(a, s->kv_rank, s->rope), s->k_bias);
    matrix(a, &item[WEIR_BILL_K], s->kv_rank, mul(a, s->heads, s->qk - s->rope), false);
    matrix(a, &item[WEIR_BILL_V], s->kv_rank, mul(a, s->heads, s->v), false);
    plain(a, &item[WEIR_BILL_ATTN_REST], s->kv_rank);
    matrix(a, &item[WEIR_BILL_O], mul(a, s->heads, s->v), d, s->o_bias);
}

static void attend(adder *a, weir_cost *item, const weir_attention_shape *s, int64_t d)
{
    matrix(a, &item[WEIR_BILL_Q], d, mul(a, s->heads, s->qk), s->q_bias);
    matrix(a, &item[WEIR_BILL_K], d, mul(a, s->kv_heads, s->qk), s->k_bias);
    matrix(a, &item[WEIR_BILL_V], d, mul(a, s->kv_heads, s->v), s->v_bias);
    matrix(a, &item[WEIR_BILL_O], mul(a, s->heads, s->v), d, s->o_bias);
    plain(a, &item[WEIR_BILL_ATTN_REST], add(a, add(a, s->q_norm, s->k_norm), s->sinks));
}

static void dense(adder *a, weir_cost *item, const weir_mlp_shape *s, int64_t d)
{
    if (!s->width)
        return;
    if (s->gated)
        matrix(a, &item[WEIR_BILL_GATE], d, s->width, s->in_bias);
    matrix(a, &item[WEIR_BILL_UP], d, s->width, s->in_bias);
    matrix(a, &item[WEIR_BILL_DOWN], s->width, d, s->out_bias);
}

/* One expert of this width. */
static weir_cost expert(adder *a, const weir_moe_shape *s, int64_t width, int64_t d)
{
    weir_cost c = {0};
    matrix(a, &c, d, width, s->bias);
    if (s->gated)
        matrix(a, &c, d, width, s->bias);
    matrix(a, &c, width, d, s->bias);
    return c;
}

static void route(adder *a, weir_cost *item, const weir_moe_shape *s, int64_t d)
{
    if (!s->experts)
        return;
    matrix(a, &item[WEIR_BILL_ROUTER], d, s->experts, s->router_bias);
    plain(a, &item[WEIR_BILL_ROUTER], s->select_bias ? s->experts : 0);
    const weir_cost one = expert(a, s, s->width, d);
    item[WEIR_BILL_EXPERTS].params = mul(a, s->experts, one.params);
    item[WEIR_BILL_EXPERTS].active = item[WEIR_BILL_EXPERTS].read = mul(a, s->top_k, one.active);
    item[WEIR_BILL_EXPERTS].matmul = mul(a, s->top_k, one.matmul);
    if (s->shared)
        item[WEIR_BILL_SHARED] = expert(a, s, s->shared, d);
    if (s->shared_gate)
        matrix(a, &item[WEIR_BILL_SHARED], d, 1, false);
}

static void mix(adder *a, weir_layer_bill *l, const weir_mixer_shape *s, int64_t d)
{
    if (!s->heads)
        return;
    weir_cost *c = &l->item[WEIR_BILL_MIXER];
    const int64_t inner = mul(a, s->heads, s->head_size);
    const int64_t conv = add(a, inner, mul(a, 2, mul(a, s->groups, s->state)));
    matrix(a, c, d, add(a, add(a, inner, conv), s->heads), s->bias);
    matrix(a, c, inner, d, s->bias);
    plain(a, c, mul(a, conv, s->kernel));
    plain(a, c, s->conv_bias ? conv : 0);
    plain(a, c, mul(a, 3, s->heads)); /* the bias of dt, A, D */
    plain(a, c, inner);               /* the gated norm */
    l->state = add(a, mul(a, inner, s->state), mul(a, conv, s->kernel));
}

static int64_t norm_params(adder *a, const weir_blueprint *b, int64_t norms)
{
    const int64_t each = b->norm == WEIR_NORM_LAYER ? 2 : b->norm == WEIR_NORM_BARE ? 0 : 1;
    return mul(a, mul(a, norms, each), b->width);
}

static void cache(adder *a, weir_layer_bill *l, const weir_attention_shape *s)
{
    l->kv = s->kv_rank ? add(a, s->kv_rank, s->rope) : mul(a, s->kv_heads, add(a, s->qk, s->v));
    l->attn_flops = mul(a, mul(a, 2, s->heads), add(a, s->qk, s->v));
}

static void sum_items(adder *a, const weir_cost *item, weir_cost *attn, weir_cost *mlp, weir_cost *total)
{
    for (int i = 0; i < WEIR_BILL_ITEMS; i++) {
        add_cost(a, total, &item[i]);
        if (weir_bill_is_attn((weir_bill_item)i))
            add_cost(a, attn, &item[i]);
        if (weir_bill_is_mlp((weir_bill_item)i))
            add_cost(a, mlp, &item[i]);
    }
}

static void weigh_layer(adder *a, weir_layer_bill *l, const weir_blueprint *b, const weir_layer_shape *s)
{
    for (int i = 0; s->attn.heads && i < 1 + s->cross; i++)
        (s->attn.kv_rank ? attend_latent : attend)(a, l->item, &s->attn, b->width);
    dense(a, l->item, &s->mlp, b->width);
    route(a, l->item, &s->moe, b->width);
    mix(a, l, &s->mixer, b->width);
    plain(a, &l->item[WEIR_BILL_NORM], norm_params(a, b, s->norms));
    if (s->attn.heads && b->causal)
        cache(a, l, &s->attn);
    sum_items(a, l->item, &l->attn, &l->mlp, &l->total);
}

/* --- the whole */

/* The tables. With a tied head the input table is one that every token reads in full. */
static void weigh_tables(adder *a, weir_bill *bill, const weir_blueprint *b)
{
    weir_cost *embed = &bill->item[WEIR_BILL_EMBED], *place = &bill->item[WEIR_BILL_POSITION];
    weir_cost *other = &bill->item[WEIR_BILL_OTHER];
    const int64_t table = mul(a, b->vocab, b->embed);
    plain(a, embed, table);
    if (b->head == WEIR_HEAD_OWN) {
        embed->read = 0;
        matrix(a, &bill->item[WEIR_BILL_UNEMBED], b->embed, b->vocab, false);
    } else if (b->head == WEIR_HEAD_TIED) {
        embed->matmul = table;
    }
    plain(a, &bill->item[WEIR_BILL_UNEMBED], b->head_bias ? b->vocab : 0);
    plain(a, place, mul(a, b->positions, b->width));
    place->read = 0;
    for (int i = 0; b->embed != b->width && i < 2; i++)
        matrix(a, other, b->embed, b->width, false);
    plain(a, other, mul(a, b->types, b->width));
    if (b->buckets && b->n_layers)
        plain(a, other, mul(a, b->sides, mul(a, b->buckets, b->layer[0].attn.heads)));
    if (b->pooler)
        plain(a, other, add(a, mul(a, b->width, b->width), b->width));
}

static void weigh(adder *a, weir_bill *bill, const weir_blueprint *b)
{
    for (int64_t i = 0; i < b->n_layers && a->ok; i++) {
        weir_layer_bill *l = &bill->layer[i];
        weigh_layer(a, l, b, &b->layer[i]);
        for (int k = 0; k < WEIR_BILL_ITEMS; k++)
            add_cost(a, &bill->item[k], &l->item[k]);
        bill->kv = add(a, bill->kv, l->kv);
        bill->state = add(a, bill->state, l->state);
        bill->attn_flops = add(a, bill->attn_flops, l->attn_flops);
        bill->layers_attn += b->layer[i].attn.heads > 0;
        bill->layers_moe += b->layer[i].moe.experts > 0;
        bill->layers_mlp += b->layer[i].mlp.width > 0 || b->layer[i].moe.experts > 0;
    }
    plain(a, &bill->item[WEIR_BILL_NORM], norm_params(a, b, b->other_norms));
    weigh_tables(a, bill, b);
    sum_items(a, bill->item, &bill->attn, &bill->mlp, &bill->total);
    bill->has_cache = b->causal;
}

weir_status weir_bill_make(weir_bill **out, const weir_blueprint *b, weir_err *err)
{
    adder a = {true};
    *out = NULL;
    weir_bill *bill = weir_calloc(1, sizeof *bill);
    weir_layer_bill *layer = weir_calloc((size_t)b->n_layers, sizeof *layer);
    if (!bill || !layer) {
        weir_free(bill);
        weir_free(layer);
        return weir_nomem(err, "the bill");
    }
    bill->n_layers = b->n_layers;
    bill->layer = layer;
    weigh(&a, bill, b);
    if (!a.ok) {
        weir_bill_free(bill);
        return weir_fail(err, WEIR_E_SHAPE, "a model of these sizes has more parameters than can be counted (2^63)");
    }
    *out = bill;
    return WEIR_OK;
}

void weir_bill_free(weir_bill *bill)
{
    if (!bill)
        return;
    weir_free(bill->layer);
    weir_free(bill);
}

/* --- words */

const char *weir_bill_item_name(weir_bill_item item)
{
    static const char *const NAME[WEIR_BILL_ITEMS] = {
        "embedding", "position", "attn_q", "attn_k",        "attn_v",  "attn_kv", "attn_o", "attn_rest",   "mlp_gate",
        "mlp_up",    "mlp_down", "router", "shared_expert", "experts", "mixer",   "norm",   "unembedding", "other"};
    return (unsigned)item < WEIR_BILL_ITEMS ? NAME[item] : "?";
}

bool weir_bill_is_attn(weir_bill_item item)
{
    return item >= WEIR_BILL_Q && item <= WEIR_BILL_ATTN_REST;
}

bool weir_bill_is_mlp(weir_bill_item item)
{
    return item >= WEIR_BILL_GATE && item <= WEIR_BILL_EXPERTS;
}
