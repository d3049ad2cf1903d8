/* Gemma 2: RMS norms with gain 1+w before and after each sublayer, soft caps on scores and logits, a window in every
 * other layer, embeddings times sqrt(C), tied head. GGUF stores 1+w and lacks the query scalar. */
#include "arch.h"

static const weir_type TYPE[] = {{"gemma2", "Gemma2ForCausalLM", NULL}, {NULL, NULL, NULL}};
static const char *const GGUF[] = {"gemma2", NULL};

static const weir_key KEY[] = {
    {WEIR_CFG_L, {"num_hidden_layers"}, 26, "block_count", true},
    {WEIR_CFG_C, {"hidden_size"}, 2304, "embedding_length", true},
    {WEIR_CFG_F, {"intermediate_size"}, 9216, "feed_forward_length", true},
    {WEIR_CFG_H, {"num_attention_heads"}, 8, "attention.head_count", true},
    {WEIR_CFG_K, {"num_key_value_heads"}, 4, "attention.head_count_kv", true},
    {WEIR_CFG_D, {"head_dim"}, 256, "attention.key_length", true},
    {WEIR_CFG_V, {"vocab_size"}, 256000, NULL, false},
    {WEIR_CFG_CTX, {"max_position_embeddings"}, 8192, "context_length", true},
    {WEIR_CFG_EPS, {"rms_norm_eps"}, 1e-6, "attention.layer_norm_rms_epsilon", true},
    {WEIR_CFG_ACT, {"hidden_activation"}, WEIR_ACT_GELU_TANH, NULL, false},
    {WEIR_CFG_TIE, {"tie_word_embeddings"}, 1, NULL, false},
    {WEIR_CFG_ATTN_BIAS, {"attention_bias"}, 0, NULL, false},
    {WEIR_CFG_WINDOW, {"sliding_window"}, 4096, "attention.sliding_window", false},
    {WEIR_CFG_ROPE_THETA, {"rope_theta"}, 10000, "rope.freq_base", false},
    {WEIR_CFG_ROPE_PART, {"partial_rotary_factor"}, 1, NULL, false},
    {WEIR_CFG_SCORE_CAP, {"attn_logit_softcapping"}, 50, "attn_logit_softcapping", false},
    {WEIR_CFG_LOGIT_CAP, {"final_logit_softcapping"}, 30, "final_logit_softcapping", false},
    {WEIR_CFG_QUERY_SCALAR, {"query_pre_attn_scalar"}, 256, NULL, false},
    {WEIR_CFG_END, {NULL}, 0, NULL, false},
};

static const weir_only ONLY[] = {
    {"use_bidirectional_attention", "false"},
    {NULL, NULL},
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
    {"layers.#.post_attention_layernorm.weight", WEIR_ROLE_LN1_POST_W, WEIR_ALWAYS},
    {"layers.#.pre_feedforward_layernorm.weight", WEIR_ROLE_LN2_W, WEIR_ALWAYS},
    {"layers.#.mlp.gate_proj.weight", WEIR_ROLE_PRE_W, WEIR_ALWAYS},
    {"layers.#.mlp.up_proj.weight", WEIR_ROLE_UP_W, WEIR_ALWAYS},
    {"layers.#.mlp.down_proj.weight", WEIR_ROLE_DOWN_W, WEIR_ALWAYS},
    {"layers.#.post_feedforward_layernorm.weight", WEIR_ROLE_LN2_POST_W, WEIR_ALWAYS},
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
    {"blk.#.attn_k.weight", WEIR_ROLE_K_W, WEIR_ALWAYS},
    {"blk.#.attn_v.weight", WEIR_ROLE_V_W, WEIR_ALWAYS},
    {"blk.#.attn_output.weight", WEIR_ROLE_O_W, WEIR_ALWAYS},
    {"blk.#.post_attention_norm.weight", WEIR_ROLE_LN1_POST_W, WEIR_ALWAYS},
    {"blk.#.ffn_norm.weight", WEIR_ROLE_LN2_W, WEIR_ALWAYS},
    {"blk.#.ffn_gate.weight", WEIR_ROLE_PRE_W, WEIR_ALWAYS},
    {"blk.#.ffn_up.weight", WEIR_ROLE_UP_W, WEIR_ALWAYS},
    {"blk.#.ffn_down.weight", WEIR_ROLE_DOWN_W, WEIR_ALWAYS},
    {"blk.#.post_ffw_norm.weight", WEIR_ROLE_LN2_POST_W, WEIR_ALWAYS},
    {"output_norm.weight", WEIR_ROLE_LNF_W, WEIR_ALWAYS},
    {"output.weight", WEIR_ROLE_HEAD, WEIR_IF_STORED},
    {NULL, WEIR_ROLE_END, WEIR_ALWAYS},
};
/* clang-format on */

const weir_arch weir_arch_gemma2 = {
    .family = "gemma2",
    .type = TYPE,
    .gguf = GGUF,
    .key = KEY,
    .only = ONLY,
    .rms = true,
    .post_norms = true,
    .positions = WEIR_POS_ROPE,
    .gated = true,
    .gguf_act = WEIR_ACT_GELU_TANH,
    .windows = WEIR_WINDOWS_EVEN,
    .layer_types = true,
    .scaled_embedding = true,
    .gguf_wide_layers = 46, /* the 27B model */
    .hf_tensors = {.prefix = "model.", .name = HF_NAME, .ignore = HF_IGNORE, .norm_offset = 1},
    .gguf_tensors = {.name = GGUF_NAME},
};
