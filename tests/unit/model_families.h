/* tests/unit/model_families.h: one small checkpoint of each family, in each format: what a correct reader must find in
 * it. The sizes are odd on purpose; `blocks` takes sizes that Q8_0 can tile. */
#ifndef WEIR_TEST_MODEL_FAMILIES_H
#define WEIR_TEST_MODEL_FAMILIES_H

#include "model_files.h"

typedef struct mf_sizes {
    int64_t L, C, F, H, K, D, V, ctx;
} mf_sizes;

static const mf_sizes MF_GPT2 = {2, 15, 22, 3, 3, 5, 19, 12}, MF_LLAMA = {2, 18, 23, 6, 2, 4, 17, 12},
                      MF_NEOX = {2, 18, 25, 3, 3, 6, 21, 12}, MF_GEMMA = {3, 20, 27, 4, 2, 6, 13, 12},
                      MF_BLOCKS = {1, 32, 64, 4, 2, 8, 16, 12}, MF_BLOCKS_MHA = {1, 32, 64, 4, 4, 8, 16, 12};

/* "weight of layer l" as text: the same in both formats. */
static inline const char *mf_weight(const char *what, int64_t layer)
{
    static char buf[96];
    snprintf(buf, sizeof buf, "%.60s %lld", what, (long long)layer);
    return buf;
}

/* # in a pattern is the layer. */
static inline mf_tensor *mf_layer(mf_checkpoint *k, const char *pattern, int64_t l, const char *dtype, int64_t rows,
                                  int64_t cols, const char *what)
{
    char name[96];
    const char *hash = strchr(pattern, '#');
    if (hash)
        snprintf(name, sizeof name, "%.*s%lld%s", (int)(hash - pattern), pattern, (long long)l, hash + 1);
    return mf_add(k, hash ? name : pattern, dtype, rows, cols, mf_weight(what, l));
}

/* A matrix with its bias; `pattern` ends before ".weight". map and heads hold for both. */
static inline void mf_linear(mf_checkpoint *k, const char *pattern, int64_t l, const char *dtype, int64_t out,
                             int64_t in, bool bias, mf_map map, int64_t heads, const char *what)
{
    char full[96], name[64];
    snprintf(full, sizeof full, "%s.weight", pattern);
    bool turned = map == MF_TURNED;
    mf_tensor *t = mf_layer(k, full, l, dtype, turned ? in : out, turned ? out : in, what);
    t->map = map;
    t->heads = heads;
    if (!bias)
        return;
    snprintf(full, sizeof full, "%s.bias", pattern);
    snprintf(name, sizeof name, "%s bias", what);
    t = mf_layer(k, full, l, "F32", out, 0, name);
    t->map = turned ? MF_AS_IS : map;
    t->heads = heads;
}

static inline void mf_norm(mf_checkpoint *k, const char *pattern, int64_t l, int64_t c, bool bias, float plus,
                           const char *what)
{
    char full[96], name[64];
    snprintf(full, sizeof full, "%s.weight", pattern);
    mf_layer(k, full, l, "F32", c, 0, what)->plus = plus;
    snprintf(full, sizeof full, "%s.bias", pattern);
    snprintf(name, sizeof name, "%s bias", what);
    if (bias)
        mf_layer(k, full, l, "F32", c, 0, name);
}

/* --- GPT-2 */
static inline void mf_gpt2_hf(mf_checkpoint *k, const mf_sizes *s, const char *dtype)
{
    mf_begin(k);
    snprintf(k->config, sizeof k->config,
             "{\"model_type\":\"gpt2\",\"n_layer\":%lld,\"n_embd\":%lld,\"n_head\":%lld,\"n_inner\":%lld,\"n_"
             "positions\":%lld,"
             "\"vocab_size\":%lld,\"layer_norm_epsilon\":1e-05,\"activation_function\":\"gelu_new\"}",
             (long long)s->L, (long long)s->C, (long long)s->H, (long long)s->F, (long long)s->ctx, (long long)s->V);
    mf_add(k, "transformer.wte.weight", dtype, s->V, s->C, "embed");
    mf_add(k, "transformer.wpe.weight", dtype, s->ctx, s->C, "pos");
    for (int64_t l = 0; l < s->L; l++) {
        mf_norm(k, "transformer.h.#.ln_1", l, s->C, true, 0, "ln1");
        mf_linear(k, "transformer.h.#.attn.c_attn", l, dtype, 3 * s->C, s->C, true, MF_TURNED, 0, "qkv");
        mf_linear(k, "transformer.h.#.attn.c_proj", l, dtype, s->C, s->C, true, MF_TURNED, 0, "o");
        mf_norm(k, "transformer.h.#.ln_2", l, s->C, true, 0, "ln2");
        mf_linear(k, "transformer.h.#.mlp.c_fc", l, dtype, s->F, s->C, true, MF_TURNED, 0, "pre");
        mf_linear(k, "transformer.h.#.mlp.c_proj", l, dtype, s->C, s->F, true, MF_TURNED, 0, "down");
    }
    mf_norm(k, "transformer.ln_f", -1, s->C, true, 0, "lnf");
}

static inline void mf_gguf_sizes(mf_meta *m, const char *arch, const mf_sizes *s)
{
    const struct {
        const char *key;
        int64_t v;
    } row[] = {{"block_count", s->L},
               {"embedding_length", s->C},
               {"feed_forward_length", s->F},
               {"attention.head_count", s->H},
               {"context_length", s->ctx}};
    char key[96];
    memset(m, 0, sizeof *m);
    mf_meta_str(m, "general.architecture", arch);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        snprintf(key, sizeof key, "%s.%s", arch, row[i].key);
        mf_meta_u32(m, key, (uint32_t)row[i].v);
    }
}

static inline void mf_gpt2_gguf(mf_checkpoint *k, mf_meta *m, const mf_sizes *s, const char *dtype)
{
    mf_begin(k);
    mf_gguf_sizes(m, "gpt2", s);
    mf_meta_f32(m, "gpt2.attention.layer_norm_epsilon", 1e-5f);
    mf_add(k, "token_embd.weight", dtype, s->V, s->C, "embed");
    mf_add(k, "position_embd.weight", "F32", s->ctx, s->C, "pos");
    for (int64_t l = 0; l < s->L; l++) {
        mf_norm(k, "blk.#.attn_norm", l, s->C, true, 0, "ln1");
        mf_linear(k, "blk.#.attn_qkv", l, dtype, 3 * s->C, s->C, true, MF_AS_IS, 0, "qkv");
        mf_linear(k, "blk.#.attn_output", l, dtype, s->C, s->C, true, MF_AS_IS, 0, "o");
        mf_norm(k, "blk.#.ffn_norm", l, s->C, true, 0, "ln2");
        mf_linear(k, "blk.#.ffn_up", l, dtype, s->F, s->C, true, MF_AS_IS, 0, "pre");
        mf_linear(k, "blk.#.ffn_down", l, dtype, s->C, s->F, true, MF_AS_IS, 0, "down");
    }
    mf_norm(k, "output_norm", -1, s->C, true, 0, "lnf");
}

/* --- Llama, and Gemma 2's block around the same matrices */
static inline void mf_config_llama(mf_checkpoint *k, const char *type, const mf_sizes *s, const char *more)
{
    snprintf(
        k->config, sizeof k->config,
        "{\"model_type\":\"%s\",\"num_hidden_layers\":%lld,\"hidden_size\":%lld,\"num_attention_heads\":%lld,"
        "\"num_key_value_heads\":%lld,\"head_dim\":%lld,\"intermediate_size\":%lld,\"max_position_embeddings\":%lld,"
        "\"vocab_size\":%lld%s%s}",
        type, (long long)s->L, (long long)s->C, (long long)s->H, (long long)s->K, (long long)s->D, (long long)s->F,
        (long long)s->ctx, (long long)s->V, *more ? "," : "", more);
}

static inline void mf_llama_hf(mf_checkpoint *k, const mf_sizes *s, const char *dtype, bool bias, bool tied,
                               const char *more)
{
    char all[512];
    mf_begin(k);
    snprintf(all, sizeof all, "\"attention_bias\":%s,\"mlp_bias\":%s,\"tie_word_embeddings\":%s%s%s",
             bias ? "true" : "false", bias ? "true" : "false", tied ? "true" : "false", *more ? "," : "", more);
    mf_config_llama(k, "llama", s, all);
    mf_add(k, "model.embed_tokens.weight", dtype, s->V, s->C, "embed");
    for (int64_t l = 0; l < s->L; l++) {
        mf_norm(k, "model.layers.#.input_layernorm", l, s->C, false, 0, "ln1");
        mf_linear(k, "model.layers.#.self_attn.q_proj", l, dtype, s->H * s->D, s->C, bias, MF_AS_IS, 0, "q");
        mf_linear(k, "model.layers.#.self_attn.k_proj", l, dtype, s->K * s->D, s->C, bias, MF_AS_IS, 0, "k");
        mf_linear(k, "model.layers.#.self_attn.v_proj", l, dtype, s->K * s->D, s->C, bias, MF_AS_IS, 0, "v");
        mf_linear(k, "model.layers.#.self_attn.o_proj", l, dtype, s->C, s->H * s->D, bias, MF_AS_IS, 0, "o");
        mf_norm(k, "model.layers.#.post_attention_layernorm", l, s->C, false, 0, "ln2");
        mf_linear(k, "model.layers.#.mlp.gate_proj", l, dtype, s->F, s->C, bias, MF_AS_IS, 0, "pre");
        mf_linear(k, "model.layers.#.mlp.up_proj", l, dtype, s->F, s->C, bias, MF_AS_IS, 0, "up");
        mf_linear(k, "model.layers.#.mlp.down_proj", l, dtype, s->C, s->F, bias, MF_AS_IS, 0, "down");
    }
    mf_norm(k, "model.norm", -1, s->C, false, 0, "lnf");
    if (!tied)
        mf_add(k, "lm_head.weight", dtype, s->V, s->C, "head");
}

static inline void mf_gguf_llama_keys(mf_meta *m, const char *arch, const mf_sizes *s)
{
    char key[96];
    mf_gguf_sizes(m, arch, s);
    snprintf(key, sizeof key, "%s.attention.head_count_kv", arch);
    mf_meta_u32(m, key, (uint32_t)s->K);
    snprintf(key, sizeof key, "%s.attention.key_length", arch);
    mf_meta_u32(m, key, (uint32_t)s->D);
    snprintf(key, sizeof key, "%s.attention.value_length", arch);
    mf_meta_u32(m, key, (uint32_t)s->D);
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", arch);
    mf_meta_f32(m, key, 1e-6f);
}

static inline void mf_llama_gguf(mf_checkpoint *k, mf_meta *m, const mf_sizes *s, const char *dtype, bool bias,
                                 bool tied)
{
    mf_begin(k);
    mf_gguf_llama_keys(m, "llama", s);
    mf_add(k, "token_embd.weight", dtype, s->V, s->C, "embed");
    for (int64_t l = 0; l < s->L; l++) {
        mf_norm(k, "blk.#.attn_norm", l, s->C, false, 0, "ln1");
        mf_linear(k, "blk.#.attn_q", l, dtype, s->H * s->D, s->C, bias, MF_PERMUTED, s->H, "q");
        mf_linear(k, "blk.#.attn_k", l, dtype, s->K * s->D, s->C, bias, MF_PERMUTED, s->K, "k");
        mf_linear(k, "blk.#.attn_v", l, dtype, s->K * s->D, s->C, bias, MF_AS_IS, 0, "v");
        mf_linear(k, "blk.#.attn_output", l, dtype, s->C, s->H * s->D, bias, MF_AS_IS, 0, "o");
        mf_norm(k, "blk.#.ffn_norm", l, s->C, false, 0, "ln2");
        mf_linear(k, "blk.#.ffn_gate", l, dtype, s->F, s->C, bias, MF_AS_IS, 0, "pre");
        mf_linear(k, "blk.#.ffn_up", l, dtype, s->F, s->C, bias, MF_AS_IS, 0, "up");
        mf_linear(k, "blk.#.ffn_down", l, dtype, s->C, s->F, bias, MF_AS_IS, 0, "down");
    }
    mf_norm(k, "output_norm", -1, s->C, false, 0, "lnf");
    if (!tied)
        mf_add(k, "output.weight", dtype, s->V, s->C, "head");
}

static inline void mf_gemma2_hf(mf_checkpoint *k, const mf_sizes *s, const char *dtype, const char *more)
{
    mf_begin(k);
    mf_config_llama(k, "gemma2", s, more);
    mf_add(k, "model.embed_tokens.weight", dtype, s->V, s->C, "embed");
    for (int64_t l = 0; l < s->L; l++) {
        mf_norm(k, "model.layers.#.input_layernorm", l, s->C, false, 0, "ln1");
        mf_linear(k, "model.layers.#.self_attn.q_proj", l, dtype, s->H * s->D, s->C, false, MF_AS_IS, 0, "q");
        mf_linear(k, "model.layers.#.self_attn.k_proj", l, dtype, s->K * s->D, s->C, false, MF_AS_IS, 0, "k");
        mf_linear(k, "model.layers.#.self_attn.v_proj", l, dtype, s->K * s->D, s->C, false, MF_AS_IS, 0, "v");
        mf_linear(k, "model.layers.#.self_attn.o_proj", l, dtype, s->C, s->H * s->D, false, MF_AS_IS, 0, "o");
        mf_norm(k, "model.layers.#.post_attention_layernorm", l, s->C, false, 0, "ln1 post");
        mf_norm(k, "model.layers.#.pre_feedforward_layernorm", l, s->C, false, 0, "ln2");
        mf_linear(k, "model.layers.#.mlp.gate_proj", l, dtype, s->F, s->C, false, MF_AS_IS, 0, "pre");
        mf_linear(k, "model.layers.#.mlp.up_proj", l, dtype, s->F, s->C, false, MF_AS_IS, 0, "up");
        mf_linear(k, "model.layers.#.mlp.down_proj", l, dtype, s->C, s->F, false, MF_AS_IS, 0, "down");
        mf_norm(k, "model.layers.#.post_feedforward_layernorm", l, s->C, false, 0, "ln2 post");
    }
    mf_norm(k, "model.norm", -1, s->C, false, 0, "lnf");
}

static inline void mf_gemma2_gguf(mf_checkpoint *k, mf_meta *m, const mf_sizes *s, const char *dtype)
{
    mf_begin(k);
    mf_gguf_llama_keys(m, "gemma2", s);
    mf_add(k, "token_embd.weight", dtype, s->V, s->C, "embed");
    for (int64_t l = 0; l < s->L; l++) {
        mf_norm(k, "blk.#.attn_norm", l, s->C, false, 1, "ln1");
        mf_linear(k, "blk.#.attn_q", l, dtype, s->H * s->D, s->C, false, MF_AS_IS, 0, "q");
        mf_linear(k, "blk.#.attn_k", l, dtype, s->K * s->D, s->C, false, MF_AS_IS, 0, "k");
        mf_linear(k, "blk.#.attn_v", l, dtype, s->K * s->D, s->C, false, MF_AS_IS, 0, "v");
        mf_linear(k, "blk.#.attn_output", l, dtype, s->C, s->H * s->D, false, MF_AS_IS, 0, "o");
        mf_norm(k, "blk.#.post_attention_norm", l, s->C, false, 1, "ln1 post");
        mf_norm(k, "blk.#.ffn_norm", l, s->C, false, 1, "ln2");
        mf_linear(k, "blk.#.ffn_gate", l, dtype, s->F, s->C, false, MF_AS_IS, 0, "pre");
        mf_linear(k, "blk.#.ffn_up", l, dtype, s->F, s->C, false, MF_AS_IS, 0, "up");
        mf_linear(k, "blk.#.ffn_down", l, dtype, s->C, s->F, false, MF_AS_IS, 0, "down");
        mf_norm(k, "blk.#.post_ffw_norm", l, s->C, false, 1, "ln2 post");
    }
    mf_norm(k, "output_norm", -1, s->C, false, 1, "lnf");
}

/* --- Qwen 2 (biases on q, k and v alone) and 3 (norms of heads; bias: on q, k, v and o) */
static inline void mf_qwen_hf(mf_checkpoint *k, const mf_sizes *s, const char *dtype, bool three, bool bias, bool tied,
                              const char *more)
{
    char all[512];
    mf_begin(k);
    snprintf(all, sizeof all, "\"tie_word_embeddings\":%s%s%s%s", tied ? "true" : "false",
             three && bias ? ",\"attention_bias\":true" : "", *more ? "," : "", more);
    mf_config_llama(k, three ? "qwen3" : "qwen2", s, all);
    mf_add(k, "model.embed_tokens.weight", dtype, s->V, s->C, "embed");
    for (int64_t l = 0; l < s->L; l++) {
        mf_norm(k, "model.layers.#.input_layernorm", l, s->C, false, 0, "ln1");
        mf_linear(k, "model.layers.#.self_attn.q_proj", l, dtype, s->H * s->D, s->C, bias, MF_AS_IS, 0, "q");
        mf_linear(k, "model.layers.#.self_attn.k_proj", l, dtype, s->K * s->D, s->C, bias, MF_AS_IS, 0, "k");
        mf_linear(k, "model.layers.#.self_attn.v_proj", l, dtype, s->K * s->D, s->C, bias, MF_AS_IS, 0, "v");
        mf_linear(k, "model.layers.#.self_attn.o_proj", l, dtype, s->C, s->H * s->D, three && bias, MF_AS_IS, 0, "o");
        if (three) {
            mf_norm(k, "model.layers.#.self_attn.q_norm", l, s->D, false, 0, "q norm");
            mf_norm(k, "model.layers.#.self_attn.k_norm", l, s->D, false, 0, "k norm");
        }
        mf_norm(k, "model.layers.#.post_attention_layernorm", l, s->C, false, 0, "ln2");
        mf_linear(k, "model.layers.#.mlp.gate_proj", l, dtype, s->F, s->C, false, MF_AS_IS, 0, "pre");
        mf_linear(k, "model.layers.#.mlp.up_proj", l, dtype, s->F, s->C, false, MF_AS_IS, 0, "up");
        mf_linear(k, "model.layers.#.mlp.down_proj", l, dtype, s->C, s->F, false, MF_AS_IS, 0, "down");
    }
    mf_norm(k, "model.norm", -1, s->C, false, 0, "lnf");
    if (!tied)
        mf_add(k, "lm_head.weight", dtype, s->V, s->C, "head");
}

static inline void mf_qwen_gguf(mf_checkpoint *k, mf_meta *m, const mf_sizes *s, const char *dtype, bool three,
                                bool bias, bool tied)
{
    mf_begin(k);
    mf_gguf_llama_keys(m, three ? "qwen3" : "qwen2", s);
    mf_add(k, "token_embd.weight", dtype, s->V, s->C, "embed");
    for (int64_t l = 0; l < s->L; l++) {
        mf_norm(k, "blk.#.attn_norm", l, s->C, false, 0, "ln1");
        mf_linear(k, "blk.#.attn_q", l, dtype, s->H * s->D, s->C, bias, MF_AS_IS, 0, "q");
        mf_linear(k, "blk.#.attn_k", l, dtype, s->K * s->D, s->C, bias, MF_AS_IS, 0, "k");
        mf_linear(k, "blk.#.attn_v", l, dtype, s->K * s->D, s->C, bias, MF_AS_IS, 0, "v");
        mf_linear(k, "blk.#.attn_output", l, dtype, s->C, s->H * s->D, three && bias, MF_AS_IS, 0, "o");
        if (three) {
            mf_norm(k, "blk.#.attn_q_norm", l, s->D, false, 0, "q norm");
            mf_norm(k, "blk.#.attn_k_norm", l, s->D, false, 0, "k norm");
        }
        mf_norm(k, "blk.#.ffn_norm", l, s->C, false, 0, "ln2");
        mf_linear(k, "blk.#.ffn_gate", l, dtype, s->F, s->C, false, MF_AS_IS, 0, "pre");
        mf_linear(k, "blk.#.ffn_up", l, dtype, s->F, s->C, false, MF_AS_IS, 0, "up");
        mf_linear(k, "blk.#.ffn_down", l, dtype, s->C, s->F, false, MF_AS_IS, 0, "down");
    }
    mf_norm(k, "output_norm", -1, s->C, false, 0, "lnf");
    if (!tied)
        mf_add(k, "output.weight", dtype, s->V, s->C, "head");
}

/* --- GPT-NeoX */
static inline void mf_neox_hf(mf_checkpoint *k, const mf_sizes *s, const char *dtype, const char *more)
{
    mf_begin(k);
    snprintf(
        k->config, sizeof k->config,
        "{\"model_type\":\"gpt_neox\",\"num_hidden_layers\":%lld,\"hidden_size\":%lld,\"num_attention_heads\":%lld,"
        "\"intermediate_size\":%lld,\"max_position_embeddings\":%lld,\"vocab_size\":%lld,\"rotary_pct\":0.67%s%s}",
        (long long)s->L, (long long)s->C, (long long)s->H, (long long)s->F, (long long)s->ctx, (long long)s->V,
        *more ? "," : "", more);
    mf_add(k, "gpt_neox.embed_in.weight", dtype, s->V, s->C, "embed");
    for (int64_t l = 0; l < s->L; l++) {
        mf_norm(k, "gpt_neox.layers.#.input_layernorm", l, s->C, true, 0, "ln1");
        mf_linear(k, "gpt_neox.layers.#.attention.query_key_value", l, dtype, 3 * s->C, s->C, true, MF_AS_IS, 0, "qkv");
        mf_linear(k, "gpt_neox.layers.#.attention.dense", l, dtype, s->C, s->C, true, MF_AS_IS, 0, "o");
        mf_norm(k, "gpt_neox.layers.#.post_attention_layernorm", l, s->C, true, 0, "ln2");
        mf_linear(k, "gpt_neox.layers.#.mlp.dense_h_to_4h", l, dtype, s->F, s->C, true, MF_AS_IS, 0, "pre");
        mf_linear(k, "gpt_neox.layers.#.mlp.dense_4h_to_h", l, dtype, s->C, s->F, true, MF_AS_IS, 0, "down");
    }
    mf_norm(k, "gpt_neox.final_layer_norm", -1, s->C, true, 0, "lnf");
    mf_add(k, "embed_out.weight", dtype, s->V, s->C, "head");
}

static inline void mf_neox_gguf(mf_checkpoint *k, mf_meta *m, const mf_sizes *s, const char *dtype)
{
    mf_begin(k);
    mf_gguf_sizes(m, "gptneox", s);
    mf_meta_f32(m, "gptneox.attention.layer_norm_epsilon", 1e-5f);
    mf_meta_bool(m, "gptneox.use_parallel_residual", true);
    mf_meta_u32(m, "gptneox.rope.dimension_count", 4);
    mf_add(k, "token_embd.weight", dtype, s->V, s->C, "embed");
    for (int64_t l = 0; l < s->L; l++) {
        mf_norm(k, "blk.#.attn_norm", l, s->C, true, 0, "ln1");
        mf_linear(k, "blk.#.attn_qkv", l, dtype, 3 * s->C, s->C, true, MF_REGROUPED, s->H, "qkv");
        mf_linear(k, "blk.#.attn_output", l, dtype, s->C, s->C, true, MF_AS_IS, 0, "o");
        mf_norm(k, "blk.#.ffn_norm", l, s->C, true, 0, "ln2");
        mf_linear(k, "blk.#.ffn_up", l, dtype, s->F, s->C, true, MF_AS_IS, 0, "pre");
        mf_linear(k, "blk.#.ffn_down", l, dtype, s->C, s->F, true, MF_AS_IS, 0, "down");
    }
    mf_norm(k, "output_norm", -1, s->C, true, 0, "lnf");
    mf_add(k, "output.weight", dtype, s->V, s->C, "head");
}

#endif
