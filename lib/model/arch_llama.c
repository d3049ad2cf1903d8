/* Llama, and what is built like it (Mistral, SmolLM2): RMS norms before each sublayer, RoPE, grouped key-value heads,
 * gated MLP. */
#include "arch.h"

/* Mistral's class: other defaults, a window in every layer, no biases whatever the file says. */
static const weir_key MISTRAL_KEY[] = {
    {WEIR_CFG_F, {"intermediate_size"}, 14336, NULL, false},
    {WEIR_CFG_K, {"num_key_value_heads"}, 8, NULL, false},
    {WEIR_CFG_CTX, {"max_position_embeddings"}, 131072, NULL, false},
    {WEIR_CFG_WINDOW, {"sliding_window"}, 4096, NULL, false},
    {WEIR_CFG_ATTN_BIAS, {NULL}, 0, NULL, false},
    {WEIR_CFG_MLP_BIAS, {NULL}, 0, NULL, false},
    {WEIR_CFG_END, {NULL}, 0, NULL, false},
};

static const weir_type TYPE[] = {
    {"llama", "LlamaForCausalLM", NULL}, {"mistral", "MistralForCausalLM", MISTRAL_KEY}, {NULL, NULL, NULL}};
static const char *const GGUF[] = {"llama", NULL};

static const weir_key KEY[] = {
    {WEIR_CFG_L, {"num_hidden_layers"}, 32, "block_count", true},
    {WEIR_CFG_C, {"hidden_size"}, 4096, "embedding_length", true},
    {WEIR_CFG_F, {"intermediate_size"}, 11008, "feed_forward_length", true},
    {WEIR_CFG_H, {"num_attention_heads"}, 32, "attention.head_count", true},
    {WEIR_CFG_K, {"num_key_value_heads"}, 0, "attention.head_count_kv", false},
    {WEIR_CFG_D, {"head_dim"}, 0, "attention.key_length", false},
    {WEIR_CFG_V, {"vocab_size"}, 32000, NULL, false},
    {WEIR_CFG_CTX, {"max_position_embeddings"}, 2048, "context_length", true},
    {WEIR_CFG_EPS, {"rms_norm_eps"}, 1e-6, "attention.layer_norm_rms_epsilon", true},
    {WEIR_CFG_ACT, {"hidden_act"}, WEIR_ACT_SILU, NULL, false},
    {WEIR_CFG_TIE, {"tie_word_embeddings"}, 0, NULL, false},
    {WEIR_CFG_ATTN_BIAS, {"attention_bias"}, 0, NULL, false},
    {WEIR_CFG_MLP_BIAS, {"mlp_bias"}, 0, NULL, false},
    {WEIR_CFG_WINDOW, {NULL}, 0, "attention.sliding_window", false},
    {WEIR_CFG_ROPE_THETA, {"rope_theta"}, 10000, "rope.freq_base", false},
    {WEIR_CFG_ROPE_PART, {"partial_rotary_factor"}, 1, NULL, false},
    {WEIR_CFG_ROPE_DIM, {NULL}, 0, "rope.dimension_count", false},
    {WEIR_CFG_END, {NULL}, 0, NULL, false},
};

/* clang-format off */
static const weir_name HF_NAME[] = {
    {"embed_tokens.weight", WEIR_ROLE_EMBED, WEIR_ALWAYS},
    {"layers.#.input_layernorm.weight", WEIR_ROLE_LN1_W, WEIR_ALWAYS},
    {"layers.#.self_attn.q_proj.weight", WEIR_ROLE_Q_W, WEIR_ALWAYS},
    {"layers.#.self_attn.q_proj.bias", WEIR_ROLE_Q_B, WEIR_IF_ATTN_BIAS},
    {"layers.#.self_attn.k_proj.weight", WEIR_ROLE_K_W, WEIR_ALWAYS},
    {"layers.#.self_attn.k_proj.bias", WEIR_ROLE_K_B, WEIR_IF_ATTN_BIAS},
    {"layers.#.self_attn.v_proj.weight", WEIR_ROLE_V_W, WEIR_ALWAYS},
    {"layers.#.self_attn.v_proj.bias", WEIR_ROLE_V_B, WEIR_IF_ATTN_BIAS},
    {"layers.#.self_attn.o_proj.weight", WEIR_ROLE_O_W, WEIR_ALWAYS},
    {"layers.#.self_attn.o_proj.bias", WEIR_ROLE_O_B, WEIR_IF_ATTN_BIAS},
    {"layers.#.post_attention_layernorm.weight", WEIR_ROLE_LN2_W, WEIR_ALWAYS},
    {"layers.#.mlp.gate_proj.weight", WEIR_ROLE_PRE_W, WEIR_ALWAYS},
    {"layers.#.mlp.gate_proj.bias", WEIR_ROLE_PRE_B, WEIR_IF_MLP_BIAS},
    {"layers.#.mlp.up_proj.weight", WEIR_ROLE_UP_W, WEIR_ALWAYS},
    {"layers.#.mlp.up_proj.bias", WEIR_ROLE_UP_B, WEIR_IF_MLP_BIAS},
    {"layers.#.mlp.down_proj.weight", WEIR_ROLE_DOWN_W, WEIR_ALWAYS},
    {"layers.#.mlp.down_proj.bias", WEIR_ROLE_DOWN_B, WEIR_IF_MLP_BIAS},
    {"norm.weight", WEIR_ROLE_LNF_W, WEIR_ALWAYS},
    {"lm_head.weight", WEIR_ROLE_HEAD, WEIR_IF_STORED},
    {NULL, WEIR_ROLE_END, WEIR_ALWAYS},
};
/* clang-format on */

static const char *const HF_IGNORE[] = {"layers.#.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq", NULL};

/* clang-format off */
static const weir_name GGUF_NAME[] = {
    {"token_embd.weight", WEIR_ROLE_EMBED, WEIR_ALWAYS},
    {"rope_freqs.weight", WEIR_ROLE_ROPE_FREQS, WEIR_IF_STORED},
    {"blk.#.attn_norm.weight", WEIR_ROLE_LN1_W, WEIR_ALWAYS},
    {"blk.#.attn_q.weight", WEIR_ROLE_Q_W, WEIR_ALWAYS},
    {"blk.#.attn_q.bias", WEIR_ROLE_Q_B, WEIR_IF_STORED},
    {"blk.#.attn_k.weight", WEIR_ROLE_K_W, WEIR_ALWAYS},
    {"blk.#.attn_k.bias", WEIR_ROLE_K_B, WEIR_IF_STORED},
    {"blk.#.attn_v.weight", WEIR_ROLE_V_W, WEIR_ALWAYS},
    {"blk.#.attn_v.bias", WEIR_ROLE_V_B, WEIR_IF_STORED},
    {"blk.#.attn_output.weight", WEIR_ROLE_O_W, WEIR_ALWAYS},
    {"blk.#.attn_output.bias", WEIR_ROLE_O_B, WEIR_IF_STORED},
    {"blk.#.ffn_norm.weight", WEIR_ROLE_LN2_W, WEIR_ALWAYS},
    {"blk.#.ffn_gate.weight", WEIR_ROLE_PRE_W, WEIR_ALWAYS},
    {"blk.#.ffn_gate.bias", WEIR_ROLE_PRE_B, WEIR_IF_STORED},
    {"blk.#.ffn_up.weight", WEIR_ROLE_UP_W, WEIR_ALWAYS},
    {"blk.#.ffn_up.bias", WEIR_ROLE_UP_B, WEIR_IF_STORED},
    {"blk.#.ffn_down.weight", WEIR_ROLE_DOWN_W, WEIR_ALWAYS},
    {"blk.#.ffn_down.bias", WEIR_ROLE_DOWN_B, WEIR_IF_STORED},
    {"output_norm.weight", WEIR_ROLE_LNF_W, WEIR_ALWAYS},
    {"output.weight", WEIR_ROLE_HEAD, WEIR_IF_STORED},
    {NULL, WEIR_ROLE_END, WEIR_ALWAYS},
};
/* clang-format on */

const weir_arch weir_arch_llama = {
    .family = "llama",
    .type = TYPE,
    .gguf = GGUF,
    .key = KEY,
    .rms = true,
    .positions = WEIR_POS_ROPE,
    .gated = true,
    .gguf_act = WEIR_ACT_SILU,
    .windows = WEIR_WINDOWS_ALL,
    .hf_tensors = {.prefix = "model.", .name = HF_NAME, .ignore = HF_IGNORE},
    .gguf_tensors = {.name = GGUF_NAME, .permuted_qk = true},
};
