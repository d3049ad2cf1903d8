/* What is refused, and what is said: one line that names the file, the key or tensor, and what is wrong. */
#include "model_families.h"

static void edit(mf_checkpoint *k, const char *from, const char *to)
{
    char *at = strstr(k->config, from), rest[4096];
    assert_non_null(at);
    snprintf(rest, sizeof rest, "%s", at + strlen(from));
    snprintf(at, (size_t)(k->config + sizeof k->config - at), "%s%s", to, rest);
}

/* Opening fails with this status, and the line holds these pieces (NULL: none). Removes the checkpoint. */
static void refused(mf_checkpoint *k, weir_status status, const char *a, const char *b)
{
    weir_model *m = NULL;
    weir_err err = {0};
    char line[1300];
    weir_status s = weir_model_open(&m, k->path, NULL, &err);
    weir_err_line(&err, line, sizeof line);
    if (s != status || !strstr(line, a) || (b && !strstr(line, b)) || !strstr(line, k->dir) || strchr(line, '\n'))
        fail_msg("status %d where %d was expected; the line is: %s", s, status, line);
    assert_null(m);
    assert_int_equal(err.code, status);
    assert_int_equal(weir_model_open(&m, k->path, NULL, NULL), status); /* and without an error to fill */
    mf_remove(k);
}

/* --- config.json */

typedef struct config_case {
    const char *from, *to; /* the edit of a good llama configuration */
    weir_status status;
    const char *a, *b; /* pieces of the line */
} config_case;

static const config_case CONFIG[] = {
    {"\"llama\"", "\"rwkv\"", WEIR_E_UNSUPPORTED, "config.json: at byte ",
     "model_type: \"rwkv\" is not supported; weir runs gemma2, gpt2"},
    {"\"llama\"", "\"qwen2_moe\"", WEIR_E_UNSUPPORTED, "model_type: \"qwen2_moe\" is not supported",
     "gpt_neox, llama, mistral, qwen2, qwen3"},
    {"\"llama\"", "\"qwen3_moe\"", WEIR_E_UNSUPPORTED, "model_type: \"qwen3_moe\" is not supported", NULL},
    {"\"llama\"", "\"qwen3_next\"", WEIR_E_UNSUPPORTED, "model_type: \"qwen3_next\" is not supported", NULL},
    {"\"llama\"", "\"qwen2_vl\"", WEIR_E_UNSUPPORTED, "model_type: \"qwen2_vl\" is not supported", NULL},
    {"\"model_type\"", "\"modeltype\"", WEIR_E_FORMAT, "no model_type", NULL},
    {"\"llama\"", "7", WEIR_E_FORMAT, "model_type: a string was expected", NULL},
    {"{\"model", "[\"model", WEIR_E_FORMAT, "config.json: at byte 0", "an object was expected, found an array"},
    {"}", "}{", WEIR_E_FORMAT, "config.json: at byte", NULL},
    {"\"hidden_size\":18", "\"hidden_size\":\"18\"", WEIR_E_FORMAT,
     "hidden_size: a number was expected, found a string", NULL},
    {"\"hidden_size\":18", "\"hidden_size\":18.5", WEIR_E_FORMAT, "hidden_size: an integer was expected", NULL},
    {"\"hidden_size\":18", "\"hidden_size\":0", WEIR_E_FORMAT,
     "hidden_size: 0 is no width of the stream: it must be 1 to", NULL},
    {"\"hidden_size\":18", "\"hidden_size\":-5", WEIR_E_FORMAT, "hidden_size: -5", NULL},
    {"\"hidden_size\":18", "\"hidden_size\":99999999999999999999", WEIR_E_FORMAT,
     "hidden_size: the integer is too large", NULL},
    {"\"hidden_size\":18", "\"hidden_size\":null", WEIR_E_FORMAT, "hidden_size: a number was expected, found null",
     NULL},
    {"\"hidden_size\":18", "\"hidden_size\":18,\"hidden_size\":18", WEIR_E_FORMAT, "duplicate key \"hidden_size\"",
     NULL},
    {"\"num_hidden_layers\":2", "\"num_hidden_layers\":2000000000", WEIR_E_FORMAT,
     "num_hidden_layers: 2e+09 is no layers", NULL},
    {"\"num_key_value_heads\":2", "\"num_key_value_heads\":4", WEIR_E_SHAPE,
     "num_key_value_heads 4 does not divide num_attention_heads 6", NULL},
    {"\"head_dim\":4", "\"head_dim\":null,\"x\":[{}]", WEIR_E_SHAPE, "RoPE cannot turn 3 of the head's 3 dimensions",
     NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"partial_rotary_factor\":0.5", WEIR_E_UNSUPPORTED,
     "RoPE on 2 of the head's 4 dimensions is not what llama does", NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"hidden_act\":\"mish\"", WEIR_E_UNSUPPORTED,
     "hidden_act: activation \"mish\" is not supported; weir has gelu", NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"rms_norm_eps\":\"small\"", WEIR_E_FORMAT,
     "rms_norm_eps: a number was expected", NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"quantization_config\":{\"bits\":4}", WEIR_E_UNSUPPORTED,
     "quantization_config: not supported", "GGUF"},
    {"\"head_dim\":4", "\"head_dim\":4,\"is_encoder_decoder\":true", WEIR_E_UNSUPPORTED,
     "is_encoder_decoder: true is not supported, only false", NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0}", WEIR_E_UNSUPPORTED,
     "RoPE of type \"yarn\" is not supported; weir has default, linear, llama3", NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":4.0}", WEIR_E_UNSUPPORTED,
     "RoPE of type \"dynamic\"", NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"rope_parameters\":{\"rope_type\":\"longrope\"}", WEIR_E_UNSUPPORTED,
     "RoPE of type \"longrope\"", NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"rope_scaling\":{\"type\":\"linear\"}", WEIR_E_FORMAT,
     "the RoPE scaling has no factor", NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"rope_scaling\":{\"type\":\"linear\",\"factor\":-2}", WEIR_E_FORMAT,
     "factor: -2 is not a positive number", NULL},
    {"\"head_dim\":4",
     "\"head_dim\":4,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":2,\"low_freq_factor\":2,\"high_freq_"
     "factor\":2}",
     WEIR_E_FORMAT, "low_freq_factor and high_freq_factor are equal", NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"rope_scaling\":[1]", WEIR_E_FORMAT, "an object was expected", NULL},
    {"\"head_dim\":4",
     "\"head_dim\":4,\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e4},\"sliding_attention\":{\"rope_"
     "theta\":2e4}}",
     WEIR_E_UNSUPPORTED, "sliding_attention: a RoPE of its own for this layer type is not supported", NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"layer_types\":[\"full_attention\"]", WEIR_E_FORMAT,
     "layer_types: 1 entries for 2 layers", NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"layer_types\":[\"full_attention\",\"chunked_attention\"]", WEIR_E_FORMAT,
     "layer_types: layer 1 is \"chunked_attention\", which is not supported", NULL},
    {"\"head_dim\":4", "\"head_dim\":4,\"layer_types\":[\"full_attention\",\"sliding_attention\"]", WEIR_E_UNSUPPORTED,
     "layer_types: windows in some layers only are not what model_type llama does", NULL},
    {"\"attention_bias\":false", "\"attention_bias\":\"no\"", WEIR_E_FORMAT, "attention_bias: a boolean was expected",
     NULL},
};

static void test_config(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CONFIG / sizeof *CONFIG; i++) {
        mf_checkpoint k;
        mf_llama_hf(&k, &MF_LLAMA, "F32", false, true, "");
        edit(&k, CONFIG[i].from, CONFIG[i].to);
        mf_write_hf(&k);
        refused(&k, CONFIG[i].status, CONFIG[i].a, CONFIG[i].b);
    }
}

static void test_config_other_families(void **state)
{
    (void)state;
    mf_checkpoint k;
    static const char *const GPT2[] = {"scale_attn_weights\":false", "scale_attn_by_inverse_layer_idx\":true",
                                       "add_cross_attention\":true"};
    for (int i = 0; i < 3; i++) {
        char to[120], key[64];
        mf_gpt2_hf(&k, &MF_GPT2, "F32");
        snprintf(to, sizeof to, "{\"%s,", GPT2[i]);
        edit(&k, "{", to);
        mf_write_hf(&k);
        snprintf(key, sizeof key, "%.*s: ", (int)(strchr(GPT2[i], '"') - GPT2[i]), GPT2[i]);
        refused(&k, WEIR_E_UNSUPPORTED, key, "is not supported, only");
    }
    mf_gpt2_hf(&k, &MF_GPT2, "F32");
    edit(&k, "\"n_head\":3", "\"n_head\":4");
    mf_write_hf(&k);
    refused(&k, WEIR_E_SHAPE, "n_head 4 does not divide n_embd 15", NULL);
    mf_neox_hf(&k, &MF_NEOX, "F32", "");
    edit(&k, "0.67", "0.5");
    mf_write_hf(&k);
    refused(&k, WEIR_E_SHAPE, "RoPE cannot turn 3 of the head's 6 dimensions: an even number is needed", NULL);
    mf_gemma2_hf(&k, &MF_GEMMA, "F32", "\"use_bidirectional_attention\":true");
    mf_write_hf(&k);
    refused(&k, WEIR_E_UNSUPPORTED, "use_bidirectional_attention: true is not supported", NULL);
}

static void test_qwen(void **state)
{
    (void)state;
    static const struct {
        bool three, gguf;
        const char *name;
    } NEEDED[] = {{false, false, "model.layers.1.self_attn.k_proj.bias"},
                  {false, true, "blk.0.attn_v.bias"},
                  {true, false, "model.layers.0.self_attn.q_norm.weight"},
                  {true, true, "blk.1.attn_k_norm.weight"}};
    static const char *const MORE[][2] = {
        {"\"layer_types\":[\"sliding_attention\",\"full_attention\"]", "layer_types has sliding_attention, but"},
        {"\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0}", "RoPE of type \"yarn\" is not supported"}};
    mf_checkpoint k;
    mf_meta m;
    char piece[120];
    for (int i = 0; i < 4; i++) {
        NEEDED[i].gguf ? mf_qwen_gguf(&k, &m, &MF_LLAMA, "F32", NEEDED[i].three, !NEEDED[i].three, true)
                       : mf_qwen_hf(&k, &MF_LLAMA, "F32", NEEDED[i].three, !NEEDED[i].three, true, "");
        mf_drop(&k, NEEDED[i].name);
        NEEDED[i].gguf ? mf_write_gguf(&k, &m) : mf_write_hf(&k);
        snprintf(piece, sizeof piece, "tensor %s: missing", NEEDED[i].name);
        refused(&k, WEIR_E_FORMAT, piece, NULL);
    }
    for (int i = 0; i < 2; i++) {
        mf_qwen_hf(&k, &MF_LLAMA, "F32", i, !i, true, MORE[i][0]);
        mf_write_hf(&k);
        refused(&k, i ? WEIR_E_UNSUPPORTED : WEIR_E_FORMAT, MORE[i][1], NULL);
    }
    mf_qwen_hf(&k, &MF_LLAMA, "F32", false, true, true, "");
    mf_add(&k, "model.layers.0.self_attn.q_norm.weight", "F32", 4, 0, "q norm 0");
    mf_write_hf(&k);
    refused(&k, WEIR_E_FORMAT, "q_norm.weight", "surplus: a qwen2 model has no such tensor");
    mf_qwen_hf(&k, &MF_LLAMA, "F32", true, true, true, "");
    edit(&k, "\"attention_bias\":true", "\"attention_bias\":false");
    mf_write_hf(&k);
    refused(&k, WEIR_E_FORMAT, "surplus: the configuration says that there is no such bias (attention_bias)", NULL);
}

/* --- tensors of a Hugging Face directory */

static mf_checkpoint *good(mf_checkpoint *k)
{
    mf_llama_hf(k, &MF_LLAMA, "F32", false, true, "");
    return k;
}

static void test_missing(void **state)
{
    (void)state;
    static const char *const NAME[] = {"model.embed_tokens.weight", "model.norm.weight",
                                       "model.layers.1.self_attn.q_proj.weight", "model.layers.0.mlp.down_proj.weight",
                                       "model.layers.1.input_layernorm.weight"};
    mf_checkpoint k;
    for (int i = 0; i < 5; i++) {
        char piece[120];
        mf_drop(good(&k), NAME[i]);
        mf_write_hf(&k);
        snprintf(piece, sizeof piece, "tensor %s: missing", NAME[i]);
        refused(&k, WEIR_E_FORMAT, piece, NULL);
    }
    mf_llama_hf(&k, &MF_LLAMA, "F32", true, true, "");
    mf_drop(&k, "model.layers.1.mlp.up_proj.bias");
    mf_write_hf(&k);
    refused(&k, WEIR_E_FORMAT, "tensor model.layers.1.mlp.up_proj.bias: missing", NULL);
}

static void test_surplus(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_add(good(&k), "model.layers.0.self_attn.q_norm.weight", "F32", 4, 0, "x");
    mf_write_hf(&k);
    refused(&k, WEIR_E_FORMAT, "tensor model.layers.0.self_attn.q_norm.weight at byte",
            "surplus: a llama model has no such tensor");
    mf_add(good(&k), "score.weight", "F32", 4, 4, "x");
    mf_write_hf(&k);
    refused(&k, WEIR_E_FORMAT, "model.safetensors: tensor score.weight at byte", "surplus");
    mf_add(good(&k), "model.layers.02.input_layernorm.weight", "F32", 18, 0, "x");
    mf_write_hf(&k);
    refused(&k, WEIR_E_FORMAT, "surplus", NULL);
    mf_add(good(&k), "model.layers.2.input_layernorm.weight", "F32", 18, 0, "x");
    mf_write_hf(&k);
    refused(&k, WEIR_E_FORMAT, "layer 2 in a model of 2 layers (counted from 0)",
            "model.layers.2.input_layernorm.weight");
    mf_add(good(&k), "model.layers.4294967296.input_layernorm.weight", "F32", 18, 0, "x");
    mf_write_hf(&k);
    refused(&k, WEIR_E_FORMAT, "surplus", NULL);
    mf_add(good(&k), "model.layers.0.self_attn.q_proj.bias", "F32", 24, 0, "x");
    mf_write_hf(&k);
    refused(&k, WEIR_E_FORMAT, "surplus: the configuration says that there is no such bias (attention_bias)", NULL);
    mf_add(good(&k), "layers.0.input_layernorm.weight", "F32", 18, 0, "x");
    mf_write_hf(&k);
    refused(&k, WEIR_E_FORMAT, "the checkpoint has this weight twice, also as ", "layers.0.input_layernorm.weight");
}

static void test_misshapen(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_find(good(&k), "model.layers.1.self_attn.k_proj.weight")->n[0] = 9;
    mf_write_hf(&k);
    refused(&k, WEIR_E_SHAPE, "tensor model.layers.1.self_attn.k_proj.weight at byte",
            "the shape is [9, 18], but [K*D, C] = [8, 18] was expected");
    mf_tensor *t = mf_find(good(&k), "model.norm.weight");
    t->rank = 2;
    t->n[1] = 1;
    mf_write_hf(&k);
    refused(&k, WEIR_E_SHAPE, "the shape is [18, 1], but [C] = [18] was expected", NULL);
    mf_find(good(&k), "model.embed_tokens.weight")->n[0] = 16;
    mf_write_hf(&k);
    refused(&k, WEIR_E_SHAPE, "the shape is [16, 18], but [V, C] = [17, 18] was expected", NULL);
    mf_gpt2_hf(&k, &MF_GPT2, "F32");
    t = mf_find(&k, "transformer.h.0.attn.c_attn.weight"); /* as a Linear would have it */
    t->n[0] = 45;
    t->n[1] = 15;
    mf_write_hf(&k);
    refused(&k, WEIR_E_SHAPE, "the shape is [45, 15], but [C, (H+2K)*D] = [15, 45] was expected", NULL);
    mf_find(good(&k), "model.layers.0.mlp.up_proj.weight")->dtype = "I64";
    mf_write_hf(&k);
    refused(&k, WEIR_E_UNSUPPORTED, "tensor model.layers.0.mlp.up_proj.weight at byte",
            "weights of this type are not supported");
}

/* --- GGUF */

static void good_gguf(mf_checkpoint *k, mf_meta *m)
{
    mf_llama_gguf(k, m, &MF_LLAMA, "F32", false, true);
}

static void test_gguf_keys(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta m;
    good_gguf(&k, &m);
    memset(&m, 0, sizeof m);
    mf_meta_str(&m, "general.architecture", "rwkv7");
    mf_write_gguf(&k, &m);
    refused(&k, WEIR_E_UNSUPPORTED, "model.gguf: at byte",
            "\"rwkv7\" is not supported; weir runs gemma2, gpt2, gptneox, llama");
    good_gguf(&k, &m);
    memset(&m, 0, sizeof m);
    mf_write_gguf(&k, &m);
    refused(&k, WEIR_E_FORMAT, "general.architecture", NULL);
    good_gguf(&k, &m);
    memset(&m, 0, sizeof m);
    mf_meta_str(&m, "general.architecture", "llama");
    mf_write_gguf(&k, &m);
    refused(&k, WEIR_E_FORMAT, "no llama.block_count in the metadata", NULL);

    static const struct {
        const char *key;
        float v;
        const char *says;
    } ONLY[] = {{"llama.expert_count", 8, "llama.expert_count = 8: a mixture of experts is not supported"},
                {"llama.attention.max_alibi_bias", 8, "ALiBi is not supported"},
                {"llama.attention.scale", 0.5f, "a scale of scores of its own is not supported"},
                {"llama.rope.scaling.attn_factor", 2, "RoPE attention factor is not supported"}};
    for (size_t i = 0; i < sizeof ONLY / sizeof *ONLY; i++) {
        good_gguf(&k, &m);
        mf_meta_f32(&m, ONLY[i].key, ONLY[i].v);
        mf_write_gguf(&k, &m);
        refused(&k, WEIR_E_UNSUPPORTED, ONLY[i].says, "at byte");
    }
    good_gguf(&k, &m);
    mf_meta_str(&m, "llama.rope.scaling.type", "yarn");
    mf_write_gguf(&k, &m);
    refused(&k, WEIR_E_UNSUPPORTED, "llama.rope.scaling.type: RoPE of type \"yarn\" is not supported", NULL);
    good_gguf(&k, &m);
    mf_meta_str(&m, "llama.rope.scaling.type", "linear");
    mf_write_gguf(&k, &m);
    refused(&k, WEIR_E_FORMAT, "llama.rope.scaling.factor", NULL);
    good_gguf(&k, &m);
    mf_meta_u32(&m, "llama.rope.dimension_count", 2);
    mf_write_gguf(&k, &m);
    refused(&k, WEIR_E_UNSUPPORTED, "RoPE on 2 of the head's 4 dimensions is not what llama does", NULL);
    good_gguf(&k, &m);
    mf_meta_u32(&m, "split.count", 3);
    mf_write_gguf(&k, &m);
    refused(&k, WEIR_E_UNSUPPORTED, "split model", "gguf-split --merge");
}

static void test_gguf_tensors(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta m;
    good_gguf(&k, &m);
    mf_drop(&k, "blk.1.ffn_up.weight");
    mf_write_gguf(&k, &m);
    refused(&k, WEIR_E_FORMAT, "tensor blk.1.ffn_up.weight: missing", NULL);
    good_gguf(&k, &m);
    mf_add(&k, "blk.0.attn_q.bias", "F32", 24, 0, "x");
    mf_write_gguf(&k, &m);
    refused(&k, WEIR_E_FORMAT, "tensor blk.1.attn_q.bias: missing in this layer, although another layer has it", NULL);
    good_gguf(&k, &m);
    mf_add(&k, "blk.0.ffn_gate_inp.weight", "F32", 4, 18, "x");
    mf_write_gguf(&k, &m);
    refused(&k, WEIR_E_FORMAT, "tensor blk.0.ffn_gate_inp.weight at byte", "surplus: a llama model has no such tensor");
    good_gguf(&k, &m);
    mf_find(&k, "blk.0.attn_output.weight")->n[1] = 20;
    mf_write_gguf(&k, &m);
    refused(&k, WEIR_E_SHAPE, "the shape is [18, 20], but [C, H*D] = [18, 24] was expected", NULL);
    good_gguf(&k, &m);
    mf_add(&k, "rope_freqs.weight", "F32", 2, 0, "x")->plus = -4;
    mf_write_gguf(&k, &m);
    refused(&k, WEIR_E_FORMAT, "tensor rope_freqs.weight", "of the RoPE frequencies is not positive");
}

/* --- paths */

static void test_paths(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta m;
    good_gguf(&k, &m);
    mf_write_gguf(&k, &m);
    snprintf(k.path, sizeof k.path, "%s/", k.dir); /* the directory instead of the file */
    refused(&k, WEIR_E_ARG, "the directory holds no config.json but a GGUF file: name the file, ", "/model.gguf");
    mf_begin(&k);
    refused(&k, WEIR_E_IO, "no config.json is there", NULL);
    mf_begin(&k);
    strcat(k.path, "/nothing.gguf");
    refused(&k, WEIR_E_IO, "cannot open", NULL);
}

/* `refused` itself must be able to fail: a good checkpoint opens. */
static void test_good_one_opens(void **state)
{
    (void)state;
    mf_checkpoint k;
    weir_model *m = NULL;
    weir_err err = {0};
    mf_write_hf(good(&k));
    assert_int_equal(weir_model_open(&m, k.path, NULL, &err), WEIR_OK);
    assert_int_equal(err.code, WEIR_OK);
    weir_model_free(m);
    mf_remove(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),    cmocka_unit_test(test_config_other_families),
        cmocka_unit_test(test_qwen),      cmocka_unit_test(test_missing),
        cmocka_unit_test(test_surplus),   cmocka_unit_test(test_misshapen),
        cmocka_unit_test(test_gguf_keys), cmocka_unit_test(test_gguf_tensors),
        cmocka_unit_test(test_paths),     cmocka_unit_test(test_good_one_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
