/* What a model_type implies that no field of its config.json says: the defaults of the Hugging Face classes. */
#include <string.h>

#include "reading.h"

#define LLAMA (WEIR_HAS_GATE | WEIR_HAS_ROPE)
#define BIASES (WEIR_HAS_QKV_BIAS | WEIR_HAS_O_BIAS | WEIR_HAS_MLP_BIAS)
#define GPT2 (WEIR_HAS_TIED | WEIR_HAS_TABLE | WEIR_HAS_FOUR_D | BIASES)
#define BERT (WEIR_HAS_TABLE | WEIR_HAS_NO_HEAD | BIASES)

#define RMS WEIR_NORM_RMS
#define LN WEIR_NORM_LAYER
#define A "attention_bias"
#define M "mlp_bias"

/* The first row stands in for what is not known. */
static const weir_family FAMILY[] = {
    {"llama", LLAMA, RMS, 2, 1, A, M, NULL},
    {"mistral", LLAMA, RMS, 2, 1, NULL, NULL, NULL},
    {"mixtral", LLAMA, RMS, 2, 1, NULL, NULL, NULL},
    {"smollm3", LLAMA | WEIR_HAS_TIED, RMS, 2, 1, A, M, NULL},
    {"granite", LLAMA, RMS, 2, 1, A, M, NULL},
    {"phi3", LLAMA, RMS, 2, 1, NULL, NULL, NULL},
    {"qwen2", LLAMA | WEIR_HAS_QKV_BIAS, RMS, 2, 1, NULL, NULL, weir_special_qwen2},
    {"qwen2_moe", LLAMA | WEIR_HAS_QKV_BIAS, RMS, 2, 1, "qkv_bias", NULL, weir_special_qwen2_moe},
    {"qwen3", LLAMA | WEIR_HAS_QK_NORM, RMS, 2, 1, A, NULL, weir_special_qwen2},
    {"qwen3_moe", LLAMA | WEIR_HAS_QK_NORM, RMS, 2, 1, A, NULL, weir_special_qwen2},
    {"gemma", LLAMA | WEIR_HAS_TIED, RMS, 2, 1, A, NULL, NULL},
    {"gemma2", LLAMA | WEIR_HAS_TIED, RMS, 4, 1, A, NULL, weir_special_gemma2},
    {"gemma3_text", LLAMA | WEIR_HAS_TIED | WEIR_HAS_QK_NORM, RMS, 4, 1, A, NULL, weir_special_gemma3},
    {"olmo", LLAMA, WEIR_NORM_BARE, 2, 1, A, NULL, NULL},
    {"olmo2", LLAMA | WEIR_HAS_WHOLE_QK_NORM, RMS, 2, 1, A, NULL, NULL},
    {"olmoe", LLAMA | WEIR_HAS_WHOLE_QK_NORM, RMS, 2, 1, A, NULL, NULL},
    {"cohere", LLAMA | WEIR_HAS_TIED | WEIR_HAS_PARALLEL, WEIR_NORM_NO_BIAS, 1, 1, A, NULL, weir_special_cohere},
    {"stablelm", LLAMA, LN, 2, 1, "use_qkv_bias", NULL, weir_special_stablelm},
    {"starcoder2", WEIR_HAS_ROPE | WEIR_HAS_TIED | BIASES, LN, 2, 1, "use_bias", "use_bias", NULL},
    {"gpt2", GPT2, LN, 2, 1, NULL, NULL, NULL},
    {"gpt_neox", WEIR_HAS_ROPE | WEIR_HAS_PARALLEL | BIASES, LN, 2, 1, A, NULL, NULL},
    {"gptj", WEIR_HAS_ROPE | WEIR_HAS_PARALLEL | WEIR_HAS_MLP_BIAS | WEIR_HAS_HEAD_BIAS | WEIR_HAS_FOUR_D, LN, 1, 1,
     NULL, NULL, NULL},
    {"phi", WEIR_HAS_ROPE | WEIR_HAS_PARALLEL | WEIR_HAS_HEAD_BIAS | WEIR_HAS_FOUR_D | BIASES, LN, 1, 1, NULL, NULL,
     NULL},
    {"opt", WEIR_HAS_TIED | WEIR_HAS_TABLE | BIASES, LN, 2, 1, "enable_bias", "enable_bias", weir_special_opt},
    {"bloom", WEIR_HAS_TIED | WEIR_HAS_FOUR_D | BIASES, LN, 2, 2, NULL, NULL, weir_special_bloom},
    {"falcon", WEIR_HAS_TIED | WEIR_HAS_ROPE | WEIR_HAS_FOUR_D, LN, 2, 1, "bias", "bias", weir_special_falcon},
    {"gpt_oss", LLAMA | WEIR_HAS_QKV_BIAS | WEIR_HAS_O_BIAS, RMS, 2, 1, A, NULL, weir_special_gpt_oss},
    {"llama4_text", LLAMA, RMS, 2, 1, A, NULL, weir_special_llama4},
    {"deepseek_v2", LLAMA, RMS, 2, 1, A, M, NULL},
    {"deepseek_v3", LLAMA, RMS, 2, 1, A, M, weir_special_deepseek_v3},
    {"nemotron_h", 0, RMS, 1, 1, A, M, weir_special_nemotron_h},
    {"bert", BERT, LN, 2, 1, NULL, NULL, weir_special_bert},
    {"roberta", BERT, LN, 2, 1, NULL, NULL, weir_special_bert},
    {"t5", WEIR_HAS_TIED | WEIR_HAS_TWO_SIDES, RMS, 2, 2, NULL, NULL, weir_special_t5},
    {"mt5", WEIR_HAS_TWO_SIDES | WEIR_HAS_GATE, RMS, 2, 2, NULL, NULL, weir_special_mt5},
    /* no official configurations: fields named by whoever wrote them down */
    {"palm", LLAMA | WEIR_HAS_TIED | WEIR_HAS_PARALLEL, WEIR_NORM_NO_BIAS, 1, 1, A, M, NULL},
    {"transformer_2017", WEIR_HAS_TIED | WEIR_HAS_TWO_SIDES | WEIR_HAS_MLP_BIAS, LN, 2, 0, A, M,
     weir_special_two_sides},
};

const weir_family *weir_family_find(const char *model_type)
{
    for (size_t i = 0; i < sizeof FAMILY / sizeof *FAMILY; i++)
        if (!strcmp(FAMILY[i].model_type, model_type))
            return &FAMILY[i];
    return NULL;
}

const weir_family *weir_family_usual(void)
{
    return FAMILY;
}
