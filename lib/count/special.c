/* What only one family has, after its layers are made of the usual fields. */
#include <string.h>

#include "reading.h"

/* Every layer that has experts gets these. */
static void set_experts(weir_reading *r, weir_moe_shape m)
{
    for (int64_t i = 0; i < r->b->n_layers; i++)
        if (r->layer[i].moe.experts)
            r->layer[i].moe = m;
}

/* Norms of queries and keys with a gain for each element of each head. */
static weir_status set_whole_qk_norms(weir_reading *r, weir_err *err)
{
    for (int64_t i = 0; i < r->b->n_layers; i++) {
        weir_attention_shape *a = &r->layer[i].attn;
        if (!weir_mul64(a->heads, a->qk, &a->q_norm) || !weir_mul64(a->kv_heads, a->qk, &a->k_norm))
            return weir_fail(err, WEIR_E_FORMAT, "the heads are too many to be counted");
    }
    return WEIR_OK;
}

static void set_norms(weir_reading *r, int norms)
{
    for (int64_t i = 0; i < r->b->n_layers; i++)
        r->layer[i].norms = norms;
}

/* --- decoders with tables */

weir_status weir_special_opt(weir_reading *r, weir_err *err)
{
    bool before = true, affine = true, removed = false;
    r->b->positions += 2;
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("word_embed_proj_dim"), 1, &r->b->embed, NULL, err));
    WEIR_TRY(weir_field_bool(r, "do_layer_norm_before", &before, err));
    WEIR_TRY(weir_field_bool(r, "_remove_final_layer_norm", &removed, err));
    WEIR_TRY(weir_field_bool(r, "layer_norm_elementwise_affine", &affine, err));
    if (!before || removed)
        r->b->other_norms = 0;
    if (!affine)
        r->b->norm = WEIR_NORM_BARE;
    return WEIR_OK;
}

weir_status weir_special_bloom(weir_reading *r, weir_err *err)
{
    return weir_field_size(r, WEIR_KEYS("seq_length"), 1, &r->b->context, NULL, err);
}

/* --- decoders with RoPE */

weir_status weir_special_falcon(weir_reading *r, weir_err *err)
{
    bool fresh = false, query = true, parallel = true, alibi = false;
    int64_t norms = 2;
    WEIR_TRY(weir_field_bool(r, "new_decoder_architecture", &fresh, err));
    WEIR_TRY(weir_field_bool(r, "multi_query", &query, err));
    WEIR_TRY(weir_field_bool(r, "parallel_attn", &parallel, err));
    WEIR_TRY(weir_field_bool(r, "alibi", &alibi, err));
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("num_ln_in_parallel_attn"), 1, &norms, NULL, err));
    r->b->parallel = parallel || fresh;
    r->b->rope = !alibi;
    if (fresh ? norms < 2 : parallel)
        set_norms(r, 1);
    for (int64_t i = 0; i < r->b->n_layers; i++) {
        weir_attention_shape *a = &r->layer[i].attn;
        a->rotates = r->b->rope;
        if (!fresh)
            a->kv_heads = query ? 1 : a->heads;
    }
    return WEIR_OK;
}

weir_status weir_special_stablelm(weir_reading *r, weir_err *err)
{
    bool normed = false;
    WEIR_TRY(weir_field_bool(r, "use_parallel_residual", &r->b->parallel, err));
    WEIR_TRY(weir_field_bool(r, "qk_layernorm", &normed, err));
    if (r->b->parallel)
        set_norms(r, 1);
    for (int64_t i = 0; i < r->b->n_layers; i++)
        r->layer[i].attn.o_bias = false;
    return normed ? set_whole_qk_norms(r, err) : WEIR_OK;
}

weir_status weir_special_cohere(weir_reading *r, weir_err *err)
{
    bool normed = false;
    WEIR_TRY(weir_field_bool(r, "use_qk_norm", &normed, err));
    return normed ? set_whole_qk_norms(r, err) : WEIR_OK;
}

weir_status weir_special_gemma2(weir_reading *r, weir_err *err)
{
    (void)err;
    weir_windows_every(r, 2, 1);
    return WEIR_OK;
}

weir_status weir_special_gemma3(weir_reading *r, weir_err *err)
{
    int64_t every = 6;
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("sliding_window_pattern", "_sliding_window_pattern"), 1, &every, NULL, err));
    weir_windows_every(r, every, every - 1);
    return WEIR_OK;
}

/* Windows begin at max_window_layers, if they are used at all; the class says that they are not. */
weir_status weir_special_qwen2(weir_reading *r, weir_err *err)
{
    bool used = false;
    int64_t first = 28;
    WEIR_TRY(weir_field_bool(r, "use_sliding_window", &used, err));
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("max_window_layers"), 0, &first, NULL, err));
    for (int64_t i = 0; i < r->b->n_layers; i++)
        if (!used || (i < first && !weir_object_value(&r->o, "layer_types")))
            r->layer[i].attn.window = 0;
    return WEIR_OK;
}

/* --- mixtures of experts */

weir_status weir_special_qwen2_moe(weir_reading *r, weir_err *err)
{
    weir_moe_shape m = r->moe;
    WEIR_TRY(weir_field_need(r, WEIR_KEYS("shared_expert_intermediate_size"), &m.shared, err));
    m.shared_gate = true;
    set_experts(r, m);
    return weir_special_qwen2(r, err);
}

weir_status weir_special_gpt_oss(weir_reading *r, weir_err *err)
{
    weir_moe_shape m = r->moe;
    (void)err;
    m.bias = m.router_bias = true;
    set_experts(r, m);
    for (int64_t i = 0; i < r->b->n_layers; i++)
        r->layer[i].attn.sinks = r->layer[i].attn.heads;
    weir_windows_every(r, 2, 1);
    return WEIR_OK;
}

static void read_rope_of_layer(weir_reading *r, void *ctx, int64_t i, weir_json *j)
{
    (void)ctx;
    const int64_t rotates = weir_json_int(j);
    if (i < r->b->n_layers)
        r->layer[i].attn.rotates = rotates != 0;
}

/* Experts share one of their own width; dense layers have a width of theirs. Layers without RoPE see everything, the
 * others a chunk. The norms of queries and keys have no parameters. */
weir_status weir_special_llama4(weir_reading *r, weir_err *err)
{
    int64_t every = 4, chunk = 8192, dense = 0, n = -1;
    weir_moe_shape m = r->moe;
    m.shared = m.width;
    set_experts(r, m);
    for (int64_t i = 0; i < r->b->n_layers && !dense; i++)
        if (!r->layer[i].moe.experts)
            WEIR_TRY(weir_field_need(r, WEIR_KEYS("intermediate_size_mlp"), &dense, err));
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("no_rope_layer_interval"), 1, &every, NULL, err));
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("attention_chunk_size"), 1, &chunk, NULL, err));
    for (int64_t i = 0; i < r->b->n_layers; i++)
        r->layer[i].attn.rotates = (i + 1) % every != 0;
    WEIR_TRY(weir_field_list(r, "no_rope_layers", read_rope_of_layer, NULL, &n, err));
    if (n > 0 && n != r->b->n_layers)
        return weir_field_fail(r, "no_rope_layers", err, WEIR_E_FORMAT, "%lld entries for %lld layers", (long long)n,
                               (long long)r->b->n_layers);
    for (int64_t i = 0; i < r->b->n_layers; i++) {
        weir_layer_shape *l = &r->layer[i];
        if (l->mlp.width)
            l->mlp.width = dense;
        if (!weir_object_value(&r->o, "layer_types")) {
            l->attn.chunked = l->attn.rotates;
            l->attn.window = l->attn.rotates ? chunk : 0;
        }
    }
    return WEIR_OK;
}

weir_status weir_special_deepseek_v3(weir_reading *r, weir_err *err)
{
    const char *method = "noaux_tc";
    int64_t ahead = 0;
    weir_moe_shape m = r->moe;
    WEIR_TRY(weir_field_string(r, WEIR_KEYS("topk_method"), &method, err));
    m.select_bias = !strcmp(method, "noaux_tc");
    set_experts(r, m);
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("num_nextn_predict_layers"), 0, &ahead, NULL, err));
    if (ahead)
        WEIR_TRY(weir_remark(r, err, "the main model; its %lld layer%s for further tokens %s not counted",
                             (long long)ahead, ahead == 1 ? "" : "s", ahead == 1 ? "is" : "are"));
    return WEIR_OK;
}

/* --- hybrids */

static weir_status read_mixer(weir_reading *r, weir_mixer_shape *m, weir_err *err)
{
    m->conv_bias = true;
    WEIR_TRY(weir_field_need(r, WEIR_KEYS("mamba_num_heads"), &m->heads, err));
    WEIR_TRY(weir_field_need(r, WEIR_KEYS("mamba_head_dim"), &m->head_size, err));
    WEIR_TRY(weir_field_need(r, WEIR_KEYS("ssm_state_size"), &m->state, err));
    WEIR_TRY(weir_field_need(r, WEIR_KEYS("n_groups"), &m->groups, err));
    WEIR_TRY(weir_field_need(r, WEIR_KEYS("conv_kernel"), &m->kernel, err));
    WEIR_TRY(weir_field_bool(r, "use_conv_bias", &m->conv_bias, err));
    return weir_field_bool(r, "mamba_proj_bias", &m->bias, err);
}

/* The words that newer files have for a layer. */
static void read_letter(weir_reading *r, void *ctx, int64_t i, weir_json *j)
{
    static const struct {
        const char *word;
        char letter;
    } WORD[] = {{"mamba", 'M'}, {"linear_attention", 'M'}, {"attention", '*'}, {"full_attention", '*'}, {"mlp", '-'}};
    const weir_str s = weir_json_string(j);
    char *letter = ctx;
    for (size_t k = 0; k < sizeof WORD / sizeof *WORD && i < r->b->n_layers; k++)
        if (weir_str_eq(s, WORD[k].word))
            letter[i] = WORD[k].letter;
    if (i < r->b->n_layers && !letter[i])
        weir_json_fail(j, "layer %lld is \"%.*s\", which weir count does not know", (long long)i,
                       s.n > 40 ? 40 : (int)s.n, s.p);
}

/* One letter a layer: M a mixer, * attention, - an MLP. */
static weir_status read_pattern(weir_reading *r, const char **pattern, weir_err *err)
{
    const char *key = "hybrid_override_pattern";
    int64_t n = 0;
    WEIR_TRY(weir_field_string(r, WEIR_KEYS(key), pattern, err));
    if (*pattern) {
        n = (int64_t)strlen(*pattern);
    } else {
        char *letter = weir_arena_alloc(r->arena, (size_t)r->b->n_layers + 1, 1);
        if (!letter)
            return weir_nomem(err, "the layers");
        WEIR_TRY(weir_field_list(r, "layers_block_type", read_letter, letter, &n, err));
        key = n < 0 ? key : "layers_block_type";
        *pattern = letter;
    }
    if (n < 0) {
        weir_fail(err, WEIR_E_FORMAT, "there is no %s", key);
        return weir_err_where(err, r->o.file, NULL, -1);
    }
    if (n != r->b->n_layers)
        return weir_field_fail(r, key, err, WEIR_E_FORMAT, "%lld entries for %lld layers", (long long)n,
                               (long long)r->b->n_layers);
    for (int64_t i = 0; i < n; i++)
        if (!strchr("M*-", (*pattern)[i]))
            return weir_field_fail(r, key, err, WEIR_E_UNSUPPORTED,
                                   "layer %lld is '%c', which weir count does not know: it knows M, * and -",
                                   (long long)i, (*pattern)[i] > ' ' && (*pattern)[i] < 127 ? (*pattern)[i] : '?');
    return WEIR_OK;
}

/* Every layer has one thing. Fields of experts say nothing where no layer has them. */
weir_status weir_special_nemotron_h(weir_reading *r, weir_err *err)
{
    const char *pattern = NULL;
    weir_mixer_shape mixer = {0};
    WEIR_TRY(read_pattern(r, &pattern, err));
    if (strchr(pattern, 'M'))
        WEIR_TRY(read_mixer(r, &mixer, err));
    for (int64_t i = 0; i < r->b->n_layers; i++) {
        weir_layer_shape *l = &r->layer[i];
        const char c = pattern[i];
        if (c != '*')
            l->attn = (weir_attention_shape){0};
        l->mlp = c == '-' ? r->usual.mlp : (weir_mlp_shape){0};
        l->moe = (weir_moe_shape){0};
        if (c == 'M')
            l->mixer = mixer;
    }
    return WEIR_OK;
}

/* --- encoders, and encoders with decoders */

weir_status weir_special_bert(weir_reading *r, weir_err *err)
{
    r->b->types = 2;
    r->b->pooler = true;
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("type_vocab_size"), 0, &r->b->types, NULL, err));
    return weir_remark(r, err, "the encoder with its pooler; no head for masked tokens or classes is counted");
}

/* As many layers again: the decoder's, each with a norm and an attention more. */
weir_status weir_special_two_sides(weir_reading *r, weir_err *err)
{
    const int64_t encoder = r->b->n_layers;
    int64_t decoder = encoder;
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("num_decoder_layers"), 1, &decoder, NULL, err));
    if (decoder > WEIR_COUNT_LAYERS)
        return weir_field_fail(r, "num_decoder_layers", err, WEIR_E_FORMAT,
                               "%lld layers are more than any model has (%d)", (long long)decoder, WEIR_COUNT_LAYERS);
    const int64_t all = encoder + decoder;
    weir_layer_shape *layer = weir_arena_alloc(r->arena, (size_t)all, sizeof *layer);
    if (!layer)
        return weir_nomem(err, "the layers");
    for (int64_t i = 0; i < all; i++) {
        layer[i] = r->usual;
        layer[i].side = i < encoder ? WEIR_ENCODER : WEIR_DECODER;
        layer[i].cross = i >= encoder;
        layer[i].norms += layer[i].cross;
    }
    r->b->layer = r->layer = layer;
    r->b->n_layers = all;
    r->b->sides = 2;
    return WEIR_OK;
}

static weir_status special_t5(weir_reading *r, const char *mlp, weir_err *err)
{
    r->b->activation = mlp;
    r->b->buckets = 32;
    WEIR_TRY(weir_field_string(r, WEIR_KEYS("feed_forward_proj"), &r->b->activation, err));
    WEIR_TRY(weir_field_size(r, WEIR_KEYS("relative_attention_num_buckets"), 1, &r->b->buckets, NULL, err));
    r->usual.mlp.gated = !strncmp(r->b->activation, "gated-", 6);
    return weir_special_two_sides(r, err);
}

weir_status weir_special_t5(weir_reading *r, weir_err *err)
{
    return special_t5(r, "relu", err);
}

weir_status weir_special_mt5(weir_reading *r, weir_err *err)
{
    return special_t5(r, "gated-gelu", err);
}
