/* Qwen 2 and 2.5: Llama's block with biases on q, k and v, and on nothing else, whatever the file says; windows, if at
 * all, in the last layers only. GGUF keeps the order of q and k, and says nothing of windows. */
#include "arch.h"

static const weir_type TYPE[] = {{"qwen2", "Qwen2ForCausalLM", NULL}, {NULL, NULL, NULL}};
static const char *const GGUF[] = {"qwen2", NULL};

static const weir_key KEY[] = {
    {WEIR_CFG_L, {"num_hidden_layers"}, 32, "block_count", true},
    {WEIR_CFG_C, {"hidden_size"}, 4096, "embedding_length", true},
    {WEIR_CFG_F, {"intermediate_size"}, 22016, "feed_forward_length", true},
    {WEIR_CFG_H, {"num_attention_heads"}, 32, "attention.head_count", true},
    {WEIR_CFG_K, {"num_key_value_heads"}, 32, "attention.head_count_kv", true},
    {WEIR_CFG_D, {"head_dim"}, 0, "attention.key_length", false},
    {WEIR_CFG_V, {"vocab_size"}, 151936, NULL, false},
    {WEIR_CFG_CTX, {"max_position_embeddings"}, 32768, "context_length", true},
    {WEIR_CFG_EPS, {"rms_norm_eps"}, 1e-6, "attention.layer_norm_rms_epsilon", true},
    {WEIR_CFG_ACT, {"hidden_act"}, WEIR_ACT_SILU, NULL, false},
    {WEIR_CFG_TIE, {"tie_word_embeddings"}, 0, NULL, false},
    {WEIR_CFG_WINDOWED, {"use_sliding_window"}, 0, NULL, false},
    {WEIR_CFG_WINDOW, {"sliding_window"}, 4096, NULL, false},
    {WEIR_CFG_WINDOW_FROM, {"max_window_layers"}, 28, NULL, false},
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
    {"layers.#.self_attn.q_proj.bias", WEIR_ROLE_Q_B, WEIR_ALWAYS},
    {"layers.#.self_attn.k_proj.weight", WEIR_ROLE_K_W, WEIR_ALWAYS},
    {"layers.#.self_attn.k_proj.bias", WEIR_ROLE_K_B, WEIR_ALWAYS},
    {"layers.#.self_attn.v_proj.weight", WEIR_ROLE_V_W, WEIR_ALWAYS},
    {"layers.#.self_attn.v_proj.bias", WEIR_ROLE_V_B, WEIR_ALWAYS},
    {"layers.#.self_attn.o_proj.weight", WEIR_ROLE_O_W, WEIR_ALWAYS},
    {"layers.#.post_attention_layernorm.weight", WEIR_ROLE_LN2_W, WEIR_ALWAYS},
    {"layers.#.mlp.gate_proj.weight", WEIR_ROLE_PRE_W, WEIR_ALWAYS},
    {"layers.#.mlp.up_proj.weight", WEIR_ROLE_UP_W, WEIR_ALWAYS},
    {"layers.#.mlp.down_proj.weight", WEIR_ROLE_DOWN_W, WEIR_ALWAYS},
    {"norm.weight", WEIR_ROLE_LNF_W, WEIR_ALWAYS},
    {"lm_head.weight", WEIR_ROLE_HEAD, WEIR_IF_STORED},
    {NULL, WEIR_ROLE_END, WEIR_ALWAYS},
};
/* clang-format on */

static const char *const HF_IGNORE[] = {"layers.#.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq", NULL};

/* clang-format off */
static const weir_name GGUF_NAME[] = {
    {"token_embd.weight", WEIR_ROLE_EMBED, WEIR_ALWAYS},
    {"blk.#.attn_norm.weight", WEIR_ROLE_LN1_W, WEIR_ALWAYS},
    {"blk.#.attn_q.weight", WEIR_ROLE_Q_W, WEIR_ALWAYS},
    {"blk.#.attn_q.bias", WEIR_ROLE_Q_B, WEIR_ALWAYS},
    {"blk.#.attn_k.weight", WEIR_ROLE_K_W, WEIR_ALWAYS},
    {"blk.#.attn_k.bias", WEIR_ROLE_K_B, WEIR_ALWAYS},
    {"blk.#.attn_v.weight", WEIR_ROLE_V_W, WEIR_ALWAYS},
    {"blk.#.attn_v.bias", WEIR_ROLE_V_B, WEIR_ALWAYS},
    {"blk.#.attn_output.weight", WEIR_ROLE_O_W, WEIR_ALWAYS},
    {"blk.#.ffn_norm.weight", WEIR_ROLE_LN2_W, WEIR_ALWAYS},
    {"blk.#.ffn_gate.weight", WEIR_ROLE_PRE_W, WEIR_ALWAYS},
    {"blk.#.ffn_up.weight", WEIR_ROLE_UP_W, WEIR_ALWAYS},
    {"blk.#.ffn_down.weight", WEIR_ROLE_DOWN_W, WEIR_ALWAYS},
    {"output_norm.weight", WEIR_ROLE_LNF_W, WEIR_ALWAYS},
    {"output.weight", WEIR_ROLE_HEAD, WEIR_IF_STORED},
    {NULL, WEIR_ROLE_END, WEIR_ALWAYS},
};
/* clang-format on */

const weir_arch weir_arch_qwen2 = {
    .family = "qwen2",
    .type = TYPE,
    .gguf = GGUF,
    .key = KEY,
    .rms = true,
    .positions = WEIR_POS_ROPE,
    .gated = true,
    .gguf_act = WEIR_ACT_SILU,
    .windows = WEIR_WINDOWS_FROM,
    .layer_types = true,
    .hf_tensors = {.prefix = "model.", .name = HF_NAME, .ignore = HF_IGNORE},
    .gguf_tensors = {.name = GGUF_NAME},
};
