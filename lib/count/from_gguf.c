/* GGUF metadata as the config.json that it was made of. Keys are "ARCH.KEY"; what metadata does not say, whether tables
 * are tied and where biases are, the list of tensors does. */
#include <string.h>

#include <weir/json.h>

#include "impl.h"

enum { KEY_MAX = 160 };

/* general.architecture and the model_type of its configuration. An architecture that is not here keeps its name. */
static const struct {
    const char *arch, *model_type;
} TYPE[] = {
    {"llama", "llama"},        {"qwen2moe", "qwen2_moe"}, {"qwen3moe", "qwen3_moe"},
    {"gemma3", "gemma3_text"}, {"phi2", "phi"},           {"gptneox", "gpt_neox"},
    {"gpt-oss", "gpt_oss"},    {"command-r", "cohere"},   {"llama4", "llama4_text"},
};

static const struct {
    const char *gguf, *field;
    bool is_list_or_number; /* a list, one a layer, is accepted if all are the same */
} NUMBER[] = {
    {"block_count", "num_hidden_layers", false},
    {"embedding_length", "hidden_size", false},
    {"feed_forward_length", "intermediate_size", true},
    {"attention.head_count", "num_attention_heads", true},
    {"attention.head_count_kv", "num_key_value_heads", true},
    {"attention.key_length", "head_dim", false},
    {"context_length", "max_position_embeddings", false},
    {"attention.sliding_window", "sliding_window", false},
    {"expert_count", "num_local_experts", false},
    {"expert_used_count", "num_experts_per_tok", false},
    {"expert_feed_forward_length", "moe_intermediate_size", false},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size", false},
    {"expert_shared_count", "n_shared_experts", false},
    {"leading_dense_block_count", "first_k_dense_replace", false},
    {"interleave_moe_layer_step", "interleave_moe_layer_step", false},
    {"attention.q_lora_rank", "q_lora_rank", false},
    {"attention.kv_lora_rank", "kv_lora_rank", false},
};

typedef struct writer {
    const weir_gguf *g;
    const char *arch;
    weir_buf *json;
    weir_status status; /* of the buffer */
} writer;

static void put(writer *w, const char *field, int64_t v)
{
    if (w->status == WEIR_OK)
        w->status = weir_buf_printf(w->json, ", \"%s\": %lld", field, (long long)v);
}

static void put_bool(writer *w, const char *field, bool v)
{
    if (w->status == WEIR_OK)
        w->status = weir_buf_printf(w->json, ", \"%s\": %s", field, v ? "true" : "false");
}

static const char *full(char key[KEY_MAX], const writer *w, const char *name)
{
    snprintf(key, KEY_MAX, "%s.%s", w->arch, name);
    return key;
}

static weir_status int_of(const writer *w, const char *name, int64_t *v, bool *found, weir_err *err)
{
    char key[KEY_MAX];
    return weir_gguf_int(w->g, full(key, w, name), v, found, err);
}

/* One number for all layers, though the file has a list. */
static weir_status put_list(writer *w, const weir_gguf_kv *kv, const char *field, weir_err *err)
{
    const bool ints = kv->elem != WEIR_GGUF_F32 && kv->elem != WEIR_GGUF_F64 && kv->elem != WEIR_GGUF_STRING;
    for (uint64_t i = 1; ints && i < kv->n; i++)
        if (weir_gguf_elem_int(kv, i) != weir_gguf_elem_int(kv, 0)) {
            weir_fail(err, WEIR_E_UNSUPPORTED, "%.*s differs from layer to layer, which weir count does not read",
                      (int)kv->key.n, kv->key.p);
            weir_err_where(err, w->g->map.path, NULL, kv->offset);
            return WEIR_E_UNSUPPORTED;
        }
    if (ints && kv->n)
        put(w, field, weir_gguf_elem_int(kv, 0));
    return WEIR_OK;
}

static weir_status put_numbers(writer *w, weir_err *err)
{
    for (size_t i = 0; i < sizeof NUMBER / sizeof *NUMBER; i++) {
        char key[KEY_MAX];
        const weir_gguf_kv *kv = weir_gguf_find(w->g, full(key, w, NUMBER[i].gguf));
        int64_t v = 0;
        bool found;
        if (kv && NUMBER[i].is_list_or_number && kv->type == WEIR_GGUF_ARRAY) {
            WEIR_TRY(put_list(w, kv, NUMBER[i].field, err));
            continue;
        }
        WEIR_TRY(weir_gguf_int(w->g, key, &v, &found, err));
        if (found && v) /* 0 experts, or no window, is what absence says */
            put(w, NUMBER[i].field, v);
    }
    return WEIR_OK;
}

/* Latent attention: sizes of heads, which metadata says in another way, and after it was made ready for a cache of
 * latents in a third one. */
static weir_status put_latent(writer *w, weir_err *err)
{
    int64_t rank = 0, rope = 0, qk = 0, v = 0;
    bool found, mla;
    WEIR_TRY(int_of(w, "attention.kv_lora_rank", &rank, &found, err));
    if (!found)
        return WEIR_OK;
    WEIR_TRY(int_of(w, "rope.dimension_count", &rope, &found, err));
    WEIR_TRY(int_of(w, "attention.key_length_mla", &qk, &mla, err));
    if (mla) {
        WEIR_TRY(int_of(w, "attention.value_length_mla", &v, &found, err));
    } else {
        WEIR_TRY(int_of(w, "attention.key_length", &qk, &found, err));
        WEIR_TRY(int_of(w, "attention.value_length", &v, &found, err));
    }
    put(w, "qk_nope_head_dim", qk - rope);
    put(w, "qk_rope_head_dim", rope);
    put(w, "v_head_dim", v);
    return WEIR_OK;
}

static const weir_tensor *find_tensor(const weir_gguf *g, const char *name)
{
    for (int64_t i = 0; i < g->n_tensors; i++)
        if (!strcmp(g->tensor[i].name, name))
            return &g->tensor[i];
    return NULL;
}

static bool has_tensor(const writer *w, const char *name)
{
    return find_tensor(w->g, name) != NULL;
}

/* The vocabulary is that of the tokenizer: rows of the table beyond it are padding. */
static weir_status put_vocabulary(writer *w, weir_err *err)
{
    int64_t v = 0;
    bool found;
    const weir_gguf_kv *tokens = weir_gguf_find(w->g, "tokenizer.ggml.tokens");
    const weir_tensor *table = find_tensor(w->g, "token_embd.weight");
    WEIR_TRY(int_of(w, "vocab_size", &v, &found, err));
    if (!found && tokens && tokens->type == WEIR_GGUF_ARRAY)
        v = (int64_t)tokens->n;
    else if (!found && table)
        v = table->shape[0];
    if (v)
        put(w, "vocab_size", v);
    return WEIR_OK;
}

/* What only the list of tensors tells apart. */
static const char *type_of(const weir_gguf *g, const char *arch)
{
    if (!strcmp(arch, "deepseek2")) {
        for (int64_t i = 0; i < g->n_tensors; i++)
            if (strstr(g->tensor[i].name, "exp_probs_b"))
                return "deepseek_v3";
        return "deepseek_v2";
    }
    for (size_t i = 0; i < sizeof TYPE / sizeof *TYPE; i++)
        if (!strcmp(TYPE[i].arch, arch))
            return TYPE[i].model_type;
    return arch;
}

static void put_what_tensors_say(writer *w)
{
    const bool bias = has_tensor(w, "blk.0.attn_q.bias") || has_tensor(w, "blk.0.attn_qkv.bias");
    put_bool(w, "tie_word_embeddings", !has_tensor(w, "output.weight"));
    if (!strcmp(w->arch, "llama") || !strcmp(w->arch, "starcoder2")) {
        put_bool(w, "attention_bias", bias);
        put_bool(w, "mlp_bias", has_tensor(w, "blk.0.ffn_up.bias"));
    }
    if (!strcmp(w->arch, "stablelm"))
        put_bool(w, "use_qkv_bias", bias);
    if (!strcmp(w->arch, "falcon"))
        put_bool(w, "new_decoder_architecture", has_tensor(w, "blk.0.attn_norm_2.weight"));
}

weir_status weir_count_from_gguf(weir_buf *json, const weir_gguf *g, weir_err *err)
{
    weir_str arch;
    char name[64];
    WEIR_TRY(weir_gguf_str(g, "general.architecture", &arch, NULL, err));
    snprintf(name, sizeof name, "%.*s", arch.n > 60 ? 60 : (int)arch.n, arch.p);
    for (const char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_-.", *c | 32)) {
            weir_fail(err, WEIR_E_FORMAT, "general.architecture is no name");
            return weir_err_where(err, g->map.path, NULL, -1);
        }
    writer w = {.g = g, .arch = name, .json = json};
    w.status = weir_buf_printf(json, "{\"model_type\": \"%s\"", type_of(g, name));
    WEIR_TRY(put_numbers(&w, err));
    WEIR_TRY(put_latent(&w, err));
    WEIR_TRY(put_vocabulary(&w, err));
    put_what_tensors_say(&w);
    if (w.status == WEIR_OK)
        w.status = weir_buf_add(json, "}", 1);
    return w.status == WEIR_OK ? WEIR_OK : weir_nomem(err, "the metadata");
}
