/* GPT-NeoX (Pythia): LayerNorms, attention and MLP side by side (or one after the other), RoPE on a part of each head,
 * q, k and v fused head by head, biases, a head of its own. GGUF does not say which GELU was meant: weir takes Hugging
 * Face's exact one. */
#include "arch.h"

static const weir_type TYPE[] = {{"gpt_neox", "GPTNeoXForCausalLM", NULL}, {NULL, NULL, NULL}};
static const char *const GGUF[] = {"gptneox", NULL};

static const weir_key KEY[] = {
    {WEIR_CFG_L, {"num_hidden_layers"}, 44, "block_count", true},
    {WEIR_CFG_C, {"hidden_size"}, 6144, "embedding_length", true},
    {WEIR_CFG_F, {"intermediate_size"}, 24576, "feed_forward_length", true},
    {WEIR_CFG_H, {"num_attention_heads"}, 64, "attention.head_count", true},
    {WEIR_CFG_V, {"vocab_size"}, 50432, NULL, false},
    {WEIR_CFG_CTX, {"max_position_embeddings"}, 2048, "context_length", true},
    {WEIR_CFG_EPS, {"layer_norm_eps"}, 1e-5, "attention.layer_norm_epsilon", true},
    {WEIR_CFG_ACT, {"hidden_act"}, WEIR_ACT_GELU_ERF, NULL, false},
    {WEIR_CFG_TIE, {"tie_word_embeddings"}, 0, NULL, false},
    {WEIR_CFG_ATTN_BIAS, {"attention_bias"}, 1, NULL, false},
    {WEIR_CFG_PARALLEL, {"use_parallel_residual"}, 1, "use_parallel_residual", false},
    {WEIR_CFG_ROPE_THETA, {"rotary_emb_base"}, 10000, "rope.freq_base", false},
    {WEIR_CFG_ROPE_PART, {"rotary_pct"}, 0.25, NULL, false},
    {WEIR_CFG_ROPE_DIM, {NULL}, 0, "rope.dimension_count", true},
    {WEIR_CFG_END, {NULL}, 0, NULL, false},
};

/* clang-format off */
static const weir_name HF_NAME[] = {
    {"embed_in.weight", WEIR_ROLE_EMBED, WEIR_ALWAYS},
    {"layers.#.input_layernorm.weight", WEIR_ROLE_LN1_W, WEIR_ALWAYS},
    {"layers.#.input_layernorm.bias", WEIR_ROLE_LN1_B, WEIR_ALWAYS},
    {"layers.#.attention.query_key_value.weight", WEIR_ROLE_QKV_W, WEIR_ALWAYS},
    {"layers.#.attention.query_key_value.bias", WEIR_ROLE_QKV_B, WEIR_IF_ATTN_BIAS},
    {"layers.#.attention.dense.weight", WEIR_ROLE_O_W, WEIR_ALWAYS},
    {"layers.#.attention.dense.bias", WEIR_ROLE_O_B, WEIR_IF_ATTN_BIAS},
    {"layers.#.post_attention_layernorm.weight", WEIR_ROLE_LN2_W, WEIR_ALWAYS},
    {"layers.#.post_attention_layernorm.bias", WEIR_ROLE_LN2_B, WEIR_ALWAYS},
    {"layers.#.mlp.dense_h_to_4h.weight", WEIR_ROLE_PRE_W, WEIR_ALWAYS},
    {"layers.#.mlp.dense_h_to_4h.bias", WEIR_ROLE_PRE_B, WEIR_ALWAYS},
    {"layers.#.mlp.dense_4h_to_h.weight", WEIR_ROLE_DOWN_W, WEIR_ALWAYS},
    {"layers.#.mlp.dense_4h_to_h.bias", WEIR_ROLE_DOWN_B, WEIR_ALWAYS},
    {"final_layer_norm.weight", WEIR_ROLE_LNF_W, WEIR_ALWAYS},
    {"final_layer_norm.bias", WEIR_ROLE_LNF_B, WEIR_ALWAYS},
    {"embed_out.weight", WEIR_ROLE_HEAD, WEIR_IF_STORED},
    {NULL, WEIR_ROLE_END, WEIR_ALWAYS},
};
/* clang-format on */

/* Causal masks and RoPE frequencies, which old checkpoints store. */
static const char *const HF_IGNORE[] = {"layers.#.attention.bias", "layers.#.attention.masked_bias",
                                        "layers.#.attention.rotary_emb.inv_freq", "rotary_emb.inv_freq", NULL};

/* clang-format off */
static const weir_name GGUF_NAME[] = {
    {"token_embd.weight", WEIR_ROLE_EMBED, WEIR_ALWAYS},
    {"blk.#.attn_norm.weight", WEIR_ROLE_LN1_W, WEIR_ALWAYS},
    {"blk.#.attn_norm.bias", WEIR_ROLE_LN1_B, WEIR_ALWAYS},
    {"blk.#.attn_qkv.weight", WEIR_ROLE_QKV_W, WEIR_ALWAYS},
    {"blk.#.attn_qkv.bias", WEIR_ROLE_QKV_B, WEIR_IF_STORED},
    {"blk.#.attn_output.weight", WEIR_ROLE_O_W, WEIR_ALWAYS},
    {"blk.#.attn_output.bias", WEIR_ROLE_O_B, WEIR_IF_STORED},
    {"blk.#.ffn_norm.weight", WEIR_ROLE_LN2_W, WEIR_ALWAYS},
    {"blk.#.ffn_norm.bias", WEIR_ROLE_LN2_B, WEIR_ALWAYS},
    {"blk.#.ffn_up.weight", WEIR_ROLE_PRE_W, WEIR_ALWAYS},
    {"blk.#.ffn_up.bias", WEIR_ROLE_PRE_B, WEIR_ALWAYS},
    {"blk.#.ffn_down.weight", WEIR_ROLE_DOWN_W, WEIR_ALWAYS},
    {"blk.#.ffn_down.bias", WEIR_ROLE_DOWN_B, WEIR_ALWAYS},
    {"output_norm.weight", WEIR_ROLE_LNF_W, WEIR_ALWAYS},
    {"output_norm.bias", WEIR_ROLE_LNF_B, WEIR_ALWAYS},
    {"output.weight", WEIR_ROLE_HEAD, WEIR_IF_STORED},
    {NULL, WEIR_ROLE_END, WEIR_ALWAYS},
};
/* clang-format on */

const weir_arch weir_arch_gpt_neox = {
    .family = "gpt_neox",
    .type = TYPE,
    .gguf = GGUF,
    .key = KEY,
    .positions = WEIR_POS_ROPE,
    .partial_rope = true,
    .gguf_act = WEIR_ACT_GELU_ERF,
    .hf_tensors = {.prefix = "gpt_neox.", .name = HF_NAME, .ignore = HF_IGNORE, .qkv = WEIR_QKV_PER_HEAD},
    .gguf_tensors = {.name = GGUF_NAME, .qkv = WEIR_QKV_BLOCKS},
};
