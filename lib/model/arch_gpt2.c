/* GPT-2: LayerNorm before each sublayer, learned positions, biases everywhere, matrices stored [in, out] (Conv1D), tied
 * head. */
#include "arch.h"

static const weir_type TYPE[] = {{"gpt2", "GPT2LMHeadModel", NULL}, {NULL, NULL, NULL}};
static const char *const GGUF[] = {"gpt2", NULL};

static const weir_key KEY[] = {
    {WEIR_CFG_L, {"n_layer", "num_hidden_layers"}, 12, "block_count", true},
    {WEIR_CFG_C, {"n_embd", "hidden_size"}, 768, "embedding_length", true},
    {WEIR_CFG_F, {"n_inner"}, 0, "feed_forward_length", true},
    {WEIR_CFG_H, {"n_head", "num_attention_heads"}, 12, "attention.head_count", true},
    {WEIR_CFG_V, {"vocab_size"}, 50257, NULL, false},
    {WEIR_CFG_CTX, {"n_positions", "max_position_embeddings"}, 1024, "context_length", true},
    {WEIR_CFG_EPS, {"layer_norm_epsilon"}, 1e-5, "attention.layer_norm_epsilon", true},
    {WEIR_CFG_ACT, {"activation_function"}, WEIR_ACT_GELU_TANH, NULL, false},
    {WEIR_CFG_TIE, {"tie_word_embeddings"}, 1, NULL, false},
    {WEIR_CFG_END, {NULL}, 0, NULL, false},
};

static const weir_only ONLY[] = {
    {"scale_attn_weights", "true"},
    {"scale_attn_by_inverse_layer_idx", "false"},
    {"add_cross_attention", "false"},
    {NULL, NULL},
};

/* clang-format off */
static const weir_name HF_NAME[] = {
    {"wte.weight", WEIR_ROLE_EMBED, WEIR_ALWAYS},
    {"wpe.weight", WEIR_ROLE_POS, WEIR_ALWAYS},
    {"h.#.ln_1.weight", WEIR_ROLE_LN1_W, WEIR_ALWAYS},
    {"h.#.ln_1.bias", WEIR_ROLE_LN1_B, WEIR_ALWAYS},
    {"h.#.attn.c_attn.weight", WEIR_ROLE_QKV_W, WEIR_ALWAYS},
    {"h.#.attn.c_attn.bias", WEIR_ROLE_QKV_B, WEIR_ALWAYS},
    {"h.#.attn.c_proj.weight", WEIR_ROLE_O_W, WEIR_ALWAYS},
    {"h.#.attn.c_proj.bias", WEIR_ROLE_O_B, WEIR_ALWAYS},
    {"h.#.ln_2.weight", WEIR_ROLE_LN2_W, WEIR_ALWAYS},
    {"h.#.ln_2.bias", WEIR_ROLE_LN2_B, WEIR_ALWAYS},
    {"h.#.mlp.c_fc.weight", WEIR_ROLE_PRE_W, WEIR_ALWAYS},
    {"h.#.mlp.c_fc.bias", WEIR_ROLE_PRE_B, WEIR_ALWAYS},
    {"h.#.mlp.c_proj.weight", WEIR_ROLE_DOWN_W, WEIR_ALWAYS},
    {"h.#.mlp.c_proj.bias", WEIR_ROLE_DOWN_B, WEIR_ALWAYS},
    {"ln_f.weight", WEIR_ROLE_LNF_W, WEIR_ALWAYS},
    {"ln_f.bias", WEIR_ROLE_LNF_B, WEIR_ALWAYS},
    {"lm_head.weight", WEIR_ROLE_HEAD, WEIR_IF_STORED},
    {NULL, WEIR_ROLE_END, WEIR_ALWAYS},
};
/* clang-format on */

/* The causal mask, which old checkpoints store. */
static const char *const HF_IGNORE[] = {"h.#.attn.bias", "h.#.attn.masked_bias", NULL};

/* clang-format off */
static const weir_name GGUF_NAME[] = {
    {"token_embd.weight", WEIR_ROLE_EMBED, WEIR_ALWAYS},
    {"position_embd.weight", WEIR_ROLE_POS, WEIR_ALWAYS},
    {"blk.#.attn_norm.weight", WEIR_ROLE_LN1_W, WEIR_ALWAYS},
    {"blk.#.attn_norm.bias", WEIR_ROLE_LN1_B, WEIR_ALWAYS},
    {"blk.#.attn_qkv.weight", WEIR_ROLE_QKV_W, WEIR_ALWAYS},
    {"blk.#.attn_qkv.bias", WEIR_ROLE_QKV_B, WEIR_ALWAYS},
    {"blk.#.attn_output.weight", WEIR_ROLE_O_W, WEIR_ALWAYS},
    {"blk.#.attn_output.bias", WEIR_ROLE_O_B, WEIR_ALWAYS},
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

const weir_arch weir_arch_gpt2 = {
    .family = "gpt2",
    .type = TYPE,
    .gguf = GGUF,
    .key = KEY,
    .only = ONLY,
    .positions = WEIR_POS_LEARNED,
    .gguf_act = WEIR_ACT_GELU_TANH,
    .hf_tensors =
        {.prefix = "transformer.", .name = HF_NAME, .ignore = HF_IGNORE, .qkv = WEIR_QKV_BLOCKS, .k_major = true},
    .gguf_tensors = {.name = GGUF_NAME, .qkv = WEIR_QKV_BLOCKS},
};
