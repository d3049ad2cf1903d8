/* Layers out of the usual fields: attention, MLP, experts, and which layer has what. */
#include <string.h>

#include "reading.h"

/* --- the model's sizes */

static weir_status read_count_of_layers(weir_reading *r, weir_err *err)
{
    const char *const *keys = WEIR_KEYS("num_hidden_layers", "n_layer", "num_layers", "n_layers");
    WEIR_TRY(weir_field_need(r, keys, &r->b->n_layers, err));
    if (r->b->n_layers <= WEIR_COUNT_LAYERS)
        return WEIR_OK;
    const weir_pair *p;
    WEIR_TRY(weir_field(r, keys, &p, err));
    return weir_pair_fail(&r->o, p, err, WEIR_E_FORMAT, "%lld layers are more than any model has (%d)",
                          (long long)r->b->n_layers, WEIR_COUNT_LAYERS);
}

static weir_status read_norm(weir_reading *r, weir_err *err)
{
    static const char *const WORD[] = {"rmsnorm", "layernorm", "layernorm_no_bias", "layernorm_bare"};
    const char *said = NULL;
    r->b->norm = r->family->norm;
    r->b->other_norms = r->family->other_norms;
    WEIR_TRY(weir_field_string(r, WEIR_KEYS("norm"), &said, err));
    if (!said)
        return WEIR_OK;
    for (int i = 0; i < 4; i++)
        if (!strcmp(said, WORD[i])) {
            r->b->norm = (weir_norm_sort)i;
            return WEIR_OK;
        }
    return weir_field_fail(r, "norm", err, WEIR_E_UNSUPPORTED,
                           "\"%.40s\" is none of rmsnorm, layernorm, "
                           "layernorm_no_bias, layernorm_bare",
                           said);
}

static weir_status read_places(weir_reading *r, weir_err *err)
{
    static const char *const NONE[] = {"sinusoidal", "alibi", "none", "relative"};
    bool table = r->family->has & WEIR_HAS_TABLE, known = false;
    const char *said = NULL;
    r->b->rope = r->family->has & WEIR_HAS_ROPE;
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("max_position_embeddings", "n_positions"), 1, &r->b->context, NULL, err));
    WEIR_TRY(weir_field_string(r, WEIR_KEYS("position_embedding"), &said, err));
    if (said) {
        r->b->rope = !strcmp(said, "rope");
        table = !strcmp(said, "learned");
        known = r->b->rope || table;
        for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++)
            known = known || !strcmp(said, NONE[i]);
        if (!known)
            return weir_field_fail(r, "position_embedding", err, WEIR_E_UNSUPPORTED,
                                   "\"%.40s\" is none of rope, learned, sinusoidal, alibi, relative, none", said);
    }
    if (table) /* the table has as many rows as positions: they have to be said */
        WEIR_TRY(weir_field_need(r, WEIR_KEYS("max_position_embeddings", "n_positions"), &r->b->positions, err));
    return WEIR_OK;
}

/* Bits of a weight, in the words of those who quantise. */
static weir_status read_packing(weir_reading *r, weir_err *err)
{
    const weir_pair *p = weir_object_value(&r->o, "quantization_config");
    if (!p)
        return WEIR_OK;
    weir_reading inner = *r;
    bool four = false;
    WEIR_TRY(weir_object_enter(&inner.o, &r->o, p, err));
    WEIR_TRY(weir_field_size(&inner, WEIR_KEYS("bits", "num_bits", "w_bit"), 1, &r->b->packed_bits, NULL, err));
    WEIR_TRY(weir_field_bool(&inner, "load_in_4bit", &four, err));
    if (four)
        r->b->packed_bits = 4;
    return WEIR_OK;
}

weir_status weir_read_sizes(weir_reading *r, weir_err *err)
{
    weir_blueprint *b = r->b;
    const unsigned has = r->family->has;
    bool tied = has & WEIR_HAS_TIED;
    WEIR_TRY(weir_field_need(r, WEIR_KEYS("hidden_size", "n_embd", "d_model", "n_embed"), &b->width, err));
    WEIR_TRY(read_count_of_layers(r, err));
    WEIR_TRY(weir_field_need(r, WEIR_KEYS("vocab_size"), &b->vocab, err));
    WEIR_TRY(read_norm(r, err));
    WEIR_TRY(read_places(r, err));
    WEIR_TRY(read_packing(r, err));
    WEIR_TRY(weir_field_bool(r, "tie_word_embeddings", &tied, err));
    WEIR_TRY(weir_field_string(r,
                               WEIR_KEYS("hidden_act", "hidden_activation", "activation_function", "activation",
                                         "mlp_hidden_act", "feed_forward_proj"),
                               &b->activation, err));
    b->embed = b->width;
    b->sides = 1;
    b->head = has & WEIR_HAS_NO_HEAD ? WEIR_HEAD_NONE : tied ? WEIR_HEAD_TIED : WEIR_HEAD_OWN;
    b->head_bias = has & WEIR_HAS_HEAD_BIAS;
    b->causal = !(has & (WEIR_HAS_NO_HEAD | WEIR_HAS_TWO_SIDES));
    b->parallel = has & WEIR_HAS_PARALLEL;
    WEIR_TRY(weir_field_bool(r, "parallel_residual", &b->parallel, err));
    r->usual.norms = r->family->norms;
    r->usual.side = has & WEIR_HAS_NO_HEAD ? WEIR_ENCODER : WEIR_DECODER;
    return WEIR_OK;
}

/* --- attention */

/* Latent attention: any family that says a rank. */
static weir_status read_latent(weir_reading *r, bool bias, weir_err *err)
{
    weir_attention_shape *a = &r->usual.attn;
    int64_t nope = 0;
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("q_lora_rank"), 1, &a->q_rank, NULL, err));
    WEIR_TRY(weir_field_need(r, WEIR_KEYS("qk_nope_head_dim"), &nope, err));
    WEIR_TRY(weir_field_need(r, WEIR_KEYS("qk_rope_head_dim"), &a->rope, err));
    WEIR_TRY(weir_field_need(r, WEIR_KEYS("v_head_dim"), &a->v, err));
    a->qk = nope + a->rope;
    a->kv_heads = a->heads;
    a->q_bias = bias && a->q_rank;
    a->k_bias = a->v_bias = a->o_bias = bias;
    return WEIR_OK;
}

static weir_status read_heads(weir_reading *r, weir_err *err)
{
    weir_attention_shape *a = &r->usual.attn;
    bool found;
    WEIR_TRY(weir_field_need(r, WEIR_KEYS("num_attention_heads", "n_head", "num_heads", "n_heads"), &a->heads, err));
    a->kv_heads = a->heads;
    WEIR_TRY(
        weir_field_size(r, WEIR_KEYS("num_key_value_heads", "num_kv_heads", "n_head_kv"), 1, &a->kv_heads, NULL, err));
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("head_dim", "attention_head_dim", "d_kv"), 1, &a->qk, &found, err));
    if (!found && r->b->width % a->heads) {
        weir_fail(err, WEIR_E_FORMAT, "there is no head_dim, and %lld heads do not divide the width %lld",
                  (long long)a->heads, (long long)r->b->width);
        return weir_err_where(err, r->o.file, NULL, -1);
    }
    if (!found)
        a->qk = r->b->width / a->heads;
    a->v = a->qk;
    return WEIR_OK;
}

weir_status weir_read_attention(weir_reading *r, weir_err *err)
{
    const unsigned has = r->family->has;
    weir_attention_shape *a = &r->usual.attn;
    bool qkv = has & WEIR_HAS_QKV_BIAS, out = has & WEIR_HAS_O_BIAS, own = qkv != out;
    WEIR_TRY(read_heads(r, err));
    WEIR_TRY(weir_field_bool(r, r->family->attn_bias, &qkv, err));
    if (!own && weir_object_value(&r->o, r->family->attn_bias ? r->family->attn_bias : ""))
        out = qkv;
    a->q_bias = a->k_bias = a->v_bias = qkv;
    a->o_bias = out;
    a->rotates = r->b->rope;
    if (has & WEIR_HAS_QK_NORM)
        a->q_norm = a->k_norm = a->qk;
    if (has & WEIR_HAS_WHOLE_QK_NORM &&
        (!weir_mul64(a->heads, a->qk, &a->q_norm) || !weir_mul64(a->kv_heads, a->qk, &a->k_norm)))
        return weir_fail(err, WEIR_E_FORMAT, "the heads are too many to be counted");
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("kv_lora_rank"), 1, &a->kv_rank, NULL, err));
    return a->kv_rank ? read_latent(r, qkv, err) : WEIR_OK;
}

/* --- MLP and experts */

static weir_status read_experts(weir_reading *r, weir_err *err)
{
    weir_moe_shape *m = &r->moe;
    const char *const *count = WEIR_KEYS("num_local_experts", "num_experts", "n_routed_experts");
    const char *const *chosen = WEIR_KEYS("num_experts_per_tok", "experts_per_token");
    int64_t shared = 0;
    WEIR_TRY(weir_field_size(r, count, 0, &m->experts, NULL, err));
    if (!m->experts)
        return WEIR_OK;
    WEIR_TRY(weir_field_need(r, chosen, &m->top_k, err));
    if (m->top_k > m->experts) {
        const weir_pair *p;
        WEIR_TRY(weir_field(r, chosen, &p, err));
        return weir_pair_fail(&r->o, p, err, WEIR_E_FORMAT, "%lld of %lld experts cannot be chosen",
                              (long long)m->top_k, (long long)m->experts);
    }
    m->gated = r->usual.mlp.gated;
    m->width = r->usual.mlp.width;
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("moe_intermediate_size"), 1, &m->width, NULL, err));
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("n_shared_experts"), 0, &shared, NULL, err));
    if (!weir_mul64(shared, m->width, &m->shared))
        return weir_field_fail(r, "n_shared_experts", err, WEIR_E_FORMAT, "too many to be counted");
    return WEIR_OK;
}

weir_status weir_read_mlp(weir_reading *r, weir_err *err)
{
    const unsigned has = r->family->has;
    weir_mlp_shape *m = &r->usual.mlp;
    const char *const *keys = WEIR_KEYS("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff");
    bool bias = has & WEIR_HAS_MLP_BIAS;
    m->gated = has & WEIR_HAS_GATE;
    WEIR_TRY(weir_field_bool(r, "gated_mlp", &m->gated, err));
    WEIR_TRY(weir_field_bool(r, r->family->mlp_bias, &bias, err));
    m->in_bias = m->out_bias = bias;
    if (has & WEIR_HAS_FOUR_D) {
        bool found;
        WEIR_TRY(weir_field_size(r, keys, 1, &m->width, &found, err));
        if (!found)
            m->width = 4 * r->b->width;
    } else {
        WEIR_TRY(weir_field_need(r, keys, &m->width, err));
    }
    return read_experts(r, err);
}

/* --- which layer is what */

typedef struct layer_list {
    const char *key;
    int64_t window, chunk;
    bool *moe; /* which layers have experts; */
    bool in;   /* those that the list names do, or do not */
} layer_list;

static void read_layer_type(weir_reading *r, void *ctx, int64_t i, weir_json *j)
{
    const layer_list *l = ctx;
    const weir_str s = weir_json_string(j);
    const bool sliding = weir_str_eq(s, "sliding_attention"), chunked = weir_str_eq(s, "chunked_attention");
    if (i >= r->b->n_layers)
        return;
    weir_attention_shape *a = &r->layer[i].attn;
    if (!sliding && !chunked && !weir_str_eq(s, "full_attention"))
        weir_json_fail(j, "layer %lld is \"%.*s\", which weir count does not know", (long long)i,
                       s.n > 40 ? 40 : (int)s.n, s.p);
    a->window = sliding ? l->window : chunked ? l->chunk : 0;
    a->chunked = chunked;
}

static weir_status check_length(const weir_reading *r, const char *key, int64_t n, weir_err *err)
{
    if (n < 0 || n == r->b->n_layers)
        return WEIR_OK;
    return weir_field_fail(r, key, err, WEIR_E_FORMAT, "%lld entries for %lld layers", (long long)n,
                           (long long)r->b->n_layers);
}

void weir_windows_every(weir_reading *r, int64_t period, int64_t phase)
{
    if (weir_object_value(&r->o, "layer_types") || period < 1)
        return;
    for (int64_t i = 0; i < r->b->n_layers; i++)
        if (i % period == phase)
            r->layer[i].attn.window = 0;
}

static weir_status read_windows(weir_reading *r, weir_err *err)
{
    layer_list l = {.key = "layer_types"};
    int64_t n;
    bool used = true;
    WEIR_TRY(weir_field_bool(r, "use_sliding_window", &used, err));
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("sliding_window"), 0, &l.window, NULL, err));
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("attention_chunk_size"), 1, &l.chunk, NULL, err));
    if (!used)
        l.window = 0;
    for (int64_t i = 0; i < r->b->n_layers; i++)
        r->layer[i].attn.window = l.window;
    WEIR_TRY(weir_field_list(r, l.key, read_layer_type, &l, &n, err));
    return check_length(r, l.key, n, err);
}

/* Numbers of layers that have experts (in), or have none. */
static void read_layer_number(weir_reading *r, void *ctx, int64_t i, weir_json *j)
{
    (void)i;
    layer_list *l = ctx;
    const int64_t layer = weir_json_int(j);
    if (layer < 0 || layer >= r->b->n_layers)
        weir_json_fail(j, "there is no layer %lld", (long long)layer);
    else
        l->moe[layer] = l->in;
}

static void read_mlp_type(weir_reading *r, void *ctx, int64_t i, weir_json *j)
{
    layer_list *l = ctx;
    const weir_str s = weir_json_string(j);
    if (!weir_str_eq(s, "dense") && !weir_str_eq(s, "sparse"))
        weir_json_fail(j, "layer %lld is \"%.*s\": neither dense nor sparse", (long long)i, s.n > 40 ? 40 : (int)s.n,
                       s.p);
    else if (i < r->b->n_layers)
        l->moe[i] = weir_str_eq(s, "sparse");
}

/* By the first layers, every n-th one, and lists, whichever fields are there. */
static weir_status find_experts(weir_reading *r, bool *moe, weir_err *err)
{
    int64_t first = 0, every = 1, freq = 1, n;
    layer_list l = {.moe = moe};
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("first_k_dense_replace"), 0, &first, NULL, err));
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("decoder_sparse_step", "interleave_moe_layer_step"), 1, &every, NULL, err));
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("moe_layer_freq"), 1, &freq, NULL, err));
    for (int64_t i = 0; i < r->b->n_layers; i++)
        moe[i] = i >= first && (i + 1) % every == 0 && i % freq == 0;
    WEIR_TRY(weir_field_list(r, "mlp_only_layers", read_layer_number, &l, &n, err));
    if (weir_object_value(&r->o, "moe_layers")) {
        memset(moe, 0, (size_t)r->b->n_layers);
        l.in = true;
        WEIR_TRY(weir_field_list(r, "moe_layers", read_layer_number, &l, &n, err));
    }
    WEIR_TRY(weir_field_list(r, "mlp_layer_types", read_mlp_type, &l, &n, err));
    return check_length(r, "mlp_layer_types", n, err);
}

weir_status weir_read_layers(weir_reading *r, weir_err *err)
{
    const size_t n = (size_t)r->b->n_layers;
    bool *moe = weir_arena_alloc(r->arena, n, sizeof *moe);
    r->layer = weir_arena_alloc(r->arena, n, sizeof *r->layer);
    if (!moe || !r->layer)
        return weir_nomem(err, "the layers");
    r->b->layer = r->layer;
    for (size_t i = 0; i < n; i++)
        r->layer[i] = r->usual;
    WEIR_TRY(read_windows(r, err));
    if (!r->moe.experts)
        return WEIR_OK;
    WEIR_TRY(find_experts(r, moe, err));
    for (size_t i = 0; i < n; i++)
        if (moe[i]) {
            r->layer[i].moe = r->moe;
            r->layer[i].mlp = (weir_mlp_shape){0};
        }
    return WEIR_OK;
}
