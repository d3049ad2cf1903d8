/* What a pass multiplies and reads, and how long a machine must take for it. */
#include <math.h>

#include "matrices.h"

#define ACTIVATION_BYTES 2.0 /* 16 bits each */

/* --- attention: how many keys a query sees */

/* The query at position n (the first is 1). */
static double span(const weir_attention_shape *a, double n, bool windows)
{
    const double w = (double)a->window;
    if (!windows || w == 0 || n <= w)
        return n;
    return a->chunked ? fmod(n - 1, w) + 1 : w;
}

static double triangle(double n)
{
    return n * (n + 1) / 2;
}

/* All queries up to position n. */
static double span_sum(const weir_attention_shape *a, double n, bool windows)
{
    const double w = (double)a->window;
    if (!windows || w == 0 || n <= w)
        return triangle(n);
    if (a->chunked)
        return floor(n / w) * triangle(w) + triangle(fmod(n, w));
    return triangle(w) + (n - w) * w;
}

/* A query against one key, and its share of one value. */
static double key_flops(const weir_attention_shape *a, bool absorbed)
{
    if (absorbed && a->kv_rank)
        return 2.0 * (double)a->heads * (2.0 * (double)a->kv_rank + (double)a->rope);
    return 2.0 * (double)a->heads * (double)(a->qk + a->v);
}

double weir_attention_last(const weir_blueprint *b, double context, bool windows, bool absorbed)
{
    double sum = 0;
    for (int64_t i = 0; i < b->n_layers; i++)
        sum += key_flops(&b->layer[i].attn, absorbed) * span(&b->layer[i].attn, context, windows);
    return sum;
}

double weir_attention_sum(const weir_blueprint *b, double context, bool windows, bool absorbed)
{
    double sum = 0;
    for (int64_t i = 0; i < b->n_layers; i++) {
        const weir_attention_shape *a = &b->layer[i].attn;
        sum += key_flops(a, absorbed) * span_sum(a, context, windows);
    }
    return sum;
}

double weir_cache_elements(const weir_blueprint *b, const weir_bill *bill, double context)
{
    double sum = 0;
    for (int64_t i = 0; i < b->n_layers; i++)
        sum += (double)bill->layer[i].kv * span(&b->layer[i].attn, context, true);
    return sum;
}

/* --- weights */

/* How many of `experts` so many tokens touch that choose top_k each, evenly and independently. */
static double touched(const weir_moe_shape *m, double tokens)
{
    const double experts = (double)m->experts, share = (double)m->top_k / experts;
    return tokens == 1 ? (double)m->top_k : experts * (1 - pow(1 - share, tokens));
}

typedef struct pass {
    const weir_blueprint *b;
    const weir_bill *bill;
    const weir_load *load;
    double tokens;
    double lasts; /* tokens whose logits are made */
} pass;

/* Parameters of an item that the pass reads. */
static double read_of(const pass *p, int item)
{
    if (item != WEIR_BILL_EXPERTS)
        return (double)p->bill->item[item].read;
    double sum = 0;
    for (int64_t i = 0; i < p->b->n_layers; i++) {
        const weir_moe_shape *m = &p->b->layer[i].moe;
        if (m->experts)
            sum += (double)p->bill->layer[i].item[item].params / (double)m->experts * touched(m, p->tokens);
    }
    return sum;
}

static bool is_head(const weir_blueprint *b, int item)
{
    return item == WEIR_BILL_UNEMBED || (item == WEIR_BILL_EMBED && b->head == WEIR_HEAD_TIED);
}

static void add(weir_work *to, const weir_work *w)
{
    to->flops += w->flops;
    to->bytes += w->bytes;
}

/* Elements that a token looks up in an item's table; 0: the item is read whole. */
static double row_of(const pass *p, int item)
{
    if (item == WEIR_BILL_POSITION)
        return p->bill->item[item].params ? (double)p->b->width : 0;
    return item == WEIR_BILL_EMBED && p->b->head != WEIR_HEAD_TIED ? (double)p->b->embed : 0;
}

static void weigh_items(weir_roof *r, const pass *p)
{
    const double bytes = p->load->weight_bits / 8;
    for (int i = 0; i < WEIR_BILL_ITEMS; i++) {
        const weir_cost *c = &p->bill->item[i];
        weir_work *w = &r->item[i];
        w->flops = 2 * (double)c->matmul * (is_head(p->b, i) ? p->lasts : p->tokens);
        w->bytes = read_of(p, i) * bytes;
        const double rows = p->tokens * row_of(p, i);
        if (rows > 0) { /* the whole table would be read instead of these */
            w->bytes += rows * bytes;
            r->input_table += ((double)c->params - rows) * bytes;
        }
        add(&r->weights, w);
        if (weir_bill_is_attn((weir_bill_item)i))
            add(&r->attn, w);
        if (weir_bill_is_mlp((weir_bill_item)i))
            add(&r->mlp, w);
    }
}

/* What goes into matrices and comes out. */
static void move(void *ctx, const weir_matmul *m)
{
    double *sum = ctx;
    *sum += (double)m->used * (double)(m->in + m->out);
}

static void weigh(weir_roof *r, const pass *p, double attention_flops, double cache_elements)
{
    const weir_load *load = p->load;
    *r = (weir_roof){.tokens = p->tokens};
    weigh_items(r, p);
    r->attention = (weir_work){load->batch * attention_flops, load->batch * cache_elements * load->cache_bits / 8};
    r->state.bytes = load->batch * 2 * (double)p->bill->state * load->cache_bits / 8;
    if (load->activations) {
        weir_matmuls_each(p->b, move, &r->activations);
        r->activations *= p->tokens * ACTIVATION_BYTES;
    }
    add(&r->total, &r->weights);
    add(&r->total, &r->attention);
    add(&r->total, &r->state);
    r->total.bytes += r->activations;
}

void weir_roof_decode(weir_roof *out, const weir_blueprint *b, const weir_bill *bill, const weir_load *load)
{
    const pass p = {b, bill, load, load->batch, load->batch};
    weigh(out, &p, weir_attention_last(b, load->context, true, load->absorbed),
          weir_cache_elements(b, bill, load->context));
}

void weir_roof_prefill(weir_roof *out, const weir_blueprint *b, const weir_bill *bill, const weir_load *load)
{
    const pass p = {b, bill, load, load->batch * load->context, load->batch};
    weigh(out, &p, weir_attention_sum(b, load->context, true, load->absorbed), (double)bill->kv * load->context);
}

/* --- against a machine */

weir_bound weir_bound_of(const weir_work *w, const weir_hardware *h)
{
    const weir_bound t = {.compute = w->flops / h->flops, .memory = w->bytes / h->bandwidth};
    return (weir_bound){t.compute, t.memory, fmax(t.compute, t.memory), w->bytes > 0 ? w->flops / w->bytes : INFINITY};
}

double weir_overtaking(const weir_blueprint *b, const weir_bill *bill, bool layers, bool biases)
{
    const double per_key = weir_attention_last(b, 1, false, false);
    double weights = 0;
    for (int64_t i = 0; i < b->n_layers; i++) {
        const weir_layer_bill *l = &bill->layer[i];
        const weir_cost *mixer = &l->item[WEIR_BILL_MIXER];
        weights += biases ? (double)(l->attn.active + l->mlp.active + mixer->active)
                          : (double)(l->attn.matmul + l->mlp.matmul + mixer->matmul);
    }
    if (!layers)
        weights = (double)bill->total.matmul;
    return per_key > 0 ? 2 * weights / per_key : INFINITY;
}

static bool is_bound_by_arithmetic(const weir_blueprint *b, const weir_bill *bill, const weir_load *load,
                                   const weir_hardware *h, bool cache)
{
    weir_roof r;
    weir_roof_decode(&r, b, bill, load);
    if (!cache)
        r.total = (weir_work){r.weights.flops, r.weights.bytes + r.activations};
    const weir_bound t = weir_bound_of(&r.total, h);
    return t.compute >= t.memory;
}

double weir_crossing(const weir_blueprint *b, const weir_bill *bill, const weir_load *load, const weir_hardware *h,
                     bool cache)
{
    const double most = 0x1p40; /* sequences: no machine has so many */
    weir_load l = *load;
    double low = 0, high = most;
    l.batch = most;
    if (!is_bound_by_arithmetic(b, bill, &l, h, cache))
        return INFINITY;
    for (int i = 0; i < 120 && high - low > 1e-9 * high; i++) { /* intensity grows with the batch */
        l.batch = 0.5 * (low + high);
        if (is_bound_by_arithmetic(b, bill, &l, h, cache))
            high = l.batch;
        else
            low = l.batch;
    }
    return high;
}

/* FLOPs: 2 S in out; bytes: in out w + 2 S (in + out); S of the batch's tokens come to each copy. */
double weir_crossing_matrix(const weir_matmul *m, double weight_bits, bool activations, const weir_hardware *h)
{
    const double ridge = h->flops / h->bandwidth, share = (double)m->used / (double)m->copies;
    const double lost = activations ? ridge * ACTIVATION_BYTES / 2 * (1 / (double)m->in + 1 / (double)m->out) : 0;
    return lost < 1 ? ridge * weight_bits / 16 / share / (1 - lost) : INFINITY;
}
