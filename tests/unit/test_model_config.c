/* Numbers of the configuration: keys of both transformers generations, class defaults, nulls, RoPE, windows; GGUF keys.
 */
#include <math.h>
#include <model/config.h>

#include "model_families.h"

/* --- helpers */

/* Replaces a piece of config.json; it must be there. */
static void edit(mf_checkpoint *k, const char *from, const char *to)
{
    char *at = strstr(k->config, from), rest[4096];
    assert_non_null(at);
    snprintf(rest, sizeof rest, "%s", at + strlen(from));
    snprintf(at, (size_t)(k->config + sizeof k->config - at), "%s%s", to, rest);
}

static char log_text[4096];
static void collect(void *user, weir_log_level level, const char *msg)
{
    (void)user;
    (void)level;
    strncat(log_text, msg, sizeof log_text - strlen(log_text) - 2);
    strcat(log_text, "\n");
}

static weir_model *open_logged(const mf_checkpoint *k)
{
    weir_model *m = NULL;
    weir_err err = {0};
    char line[1200];
    weir_model_options o;
    weir_model_options_init(&o);
    o.log.line = collect;
    log_text[0] = '\0';
    if (weir_model_open(&m, k->path, &o, &err))
        fail_msg("%s", weir_err_line(&err, line, sizeof line));
    return m;
}

static int64_t window_of(const weir_model *m, int64_t l)
{
    const weir_layer *y;
    weir_err err = {0};
    assert_int_equal(weir_model_layer(m, l, INT64_MAX, &y, &err), WEIR_OK);
    return y->window;
}

static weir_model *open_hf(mf_checkpoint *k)
{
    mf_write_hf(k);
    return open_logged(k);
}

static void done(weir_model *m, mf_checkpoint *k)
{
    weir_model_free(m);
    mf_remove(k);
}

static void assert_bits(const float *got, const uint32_t *want, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &got[i], 4);
        assert_int_equal(bits, want[i]);
    }
}

/* --- Llama */

static void test_llama_defaults(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_llama_hf(&k, &MF_LLAMA, "F32", false, true, "");
    weir_model *m = open_hf(&k);
    const weir_spec *s = weir_model_spec(m);
    assert_true(s->rms && s->gated && !s->parallel && !s->post_norms && s->positions == WEIR_POS_ROPE);
    assert_true(s->eps == 1e-6f && s->norm_offset == 0 && s->attn_scale == 0.5f && s->attn_softcap == 0 &&
                s->logit_softcap == 0);
    assert_int_equal(s->act, WEIR_ACT_SILU);
    assert_int_equal(s->rot, MF_LLAMA.D);
    assert_true(s->embed_scale == 1 && s->rope_factor == 1);
    assert_int_equal(window_of(m, 0), 0);
    assert_non_null(
        strstr(log_text, "the defaults of llama hold: rms_norm_eps 1e-06, hidden_act silu, rope_theta 10000\n"));
    assert_string_equal(weir_model_info_of(m)->family, "llama");
    assert_string_equal(weir_model_info_of(m)->format, "safetensors");
    assert_string_equal(weir_model_info_of(m)->dtype, "F32");
    assert_string_equal(weir_model_info_of(m)->name, strrchr(k.dir, '/') + 1);
    done(m, &k);
}

static void test_llama_nulls(void **state)
{
    (void)state;
    static const mf_sizes SIZES = {1, 18, 23, 3, 3, 6, 17, 12}; /* K = H and D = C / H: what null means */
    mf_checkpoint k;
    mf_llama_hf(&k, &SIZES, "F32", false, true,
                "\"rope_scaling\":null,\"quantization_config\":null,\"layer_types\":null");
    edit(&k, "\"num_key_value_heads\":3", "\"num_key_value_heads\":null");
    edit(&k, "\"head_dim\":6", "\"head_dim\":null");
    weir_model *m = open_hf(&k);
    assert_int_equal(weir_model_info_of(m)->K, 3);
    assert_int_equal(weir_model_info_of(m)->D, 6);
    done(m, &k);
}

static void test_mistral(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t window;
    } CASE[] = {{"", 4096}, {"\"sliding_window\":5", 5}, {"\"sliding_window\":null", 0}};
    for (int i = 0; i < 3; i++) {
        mf_checkpoint k;
        mf_llama_hf(&k, &MF_LLAMA, "F32", false, true, CASE[i].key);
        edit(&k, "\"model_type\":\"llama\"", "\"model_type\":\"mistral\"");
        weir_model *m = open_hf(&k);
        assert_string_equal(weir_model_info_of(m)->model_type, "mistral");
        assert_string_equal(weir_model_info_of(m)->family, "llama");
        assert_int_equal(window_of(m, 0), CASE[i].window);
        assert_int_equal(window_of(m, 1), CASE[i].window);
        assert_int_equal(strstr(log_text, "sliding_window 4096") != NULL, i == 0); /* a default is told */
        done(m, &k);
    }
}

/* Llama itself has no window, whatever the file says. */
static void test_llama_ignores_window(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_llama_hf(&k, &MF_LLAMA, "F32", false, true, "\"sliding_window\":5");
    weir_model *m = open_hf(&k);
    assert_int_equal(window_of(m, 0), 0);
    done(m, &k);
}

/* --- RoPE. The bits were computed by transformers 5.24 (LlamaRotaryEmbedding.inv_freq). */

static const uint32_t PLAIN[] = {0x3f800000, 0x3ea1e89b, 0x3dcccccd, 0x3d0186e3,
                                 0x3c23d70a, 0x3b4f3e38, 0x3a83126f, 0x39a5cb60};
static const uint32_t LINEAR[] = {0x3ecccccd, 0x3dec5f38, 0x3d0867d0, 0x3c1d6f0b, 0x3b35b429};
static const uint32_t LLAMA3[] = {0x3f22f983, 0x3db09007, 0x3cf38cb4, 0x3c27f9c1,
                                  0x3b67b46b, 0x3a9fce64, 0x39dc6f9a, 0x391808be};
static const uint32_t LLAMA31[] = {0x3f800000, 0x3e4693b0, 0x3d1a08c8, 0x3beef74f,
                                   0x3a0995d2, 0x380fc8f8, 0x36df10c4, 0x35ad07a7};

#define ROPE3 "\"factor\":4.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,\"original_max_position_embeddings\":16"
#define ROPE31 "\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,\"original_max_position_embeddings\":8192"

static void test_rope(void **state)
{
    (void)state;
    static const struct {
        int64_t d;
        const char *keys;
        const uint32_t *bits;
    } CASE[] = {
        {16, "", PLAIN},
        {16, "\"rope_theta\":10000", PLAIN},
        {16, "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":10000.0}", PLAIN},
        {16, "\"rope_theta\":77.0,\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":1e4}",
         PLAIN}, /* inside wins */
        {10, "\"rope_theta\":500.0,\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.5}", LINEAR},
        {10, "\"rope_theta\":500.0,\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2.5}", LINEAR},
        {10, "\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":2.5,\"rope_theta\":500.0}", LINEAR},
        {16, "\"rope_theta\":5000.0,\"rope_scaling\":{\"rope_type\":\"llama3\"," ROPE3 "}", LLAMA3},
        {16, "\"rope_parameters\":{\"rope_type\":\"llama3\",\"rope_theta\":5000.0," ROPE3 "}", LLAMA3},
        {16, "\"rope_parameters\":{\"rope_type\":\"llama3\",\"rope_theta\":500000," ROPE31 "}", LLAMA31},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        mf_sizes s = MF_LLAMA;
        mf_checkpoint k;
        s.D = CASE[i].d;
        mf_llama_hf(&k, &s, "F32", false, true, CASE[i].keys);
        weir_model *m = open_hf(&k);
        assert_bits(weir_model_spec(m)->inv_freq, CASE[i].bits, (int)CASE[i].d / 2);
        done(m, &k);
    }
}

static void test_rope_gguf(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta meta;
    mf_sizes s = MF_LLAMA;
    s.D = 10;
    mf_llama_gguf(&k, &meta, &s, "F32", false, true);
    mf_meta_f32(&meta, "llama.rope.freq_base", 500);
    mf_meta_str(&meta, "llama.rope.scaling.type", "linear");
    mf_meta_f32(&meta, "llama.rope.scaling.factor", 2.5f);
    mf_meta_u32(&meta, "llama.attention.sliding_window", 7);
    mf_meta_str(&meta, "general.name", "A Name");
    mf_write_gguf(&k, &meta);
    weir_model *m = open_logged(&k);
    assert_bits(weir_model_spec(m)->inv_freq, LINEAR, 5);
    assert_int_equal(window_of(m, 1), 7);
    assert_string_equal(weir_model_info_of(m)->name, "A Name");
    assert_string_equal(weir_model_info_of(m)->format, "gguf");
    done(m, &k);
}

/* rope_freqs.weight: divisors. */
static void test_rope_divisors(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta meta;
    mf_llama_gguf(&k, &meta, &MF_LLAMA, "F32", false, true);
    mf_add(&k, "rope_freqs.weight", "F32", 2, 0, "divisors")->plus = 5;
    mf_write_gguf(&k, &meta);
    weir_model *m = open_logged(&k);
    for (int i = 0; i < 2; i++) {
        float plain = i ? 1 / (float)pow(10000, 0.5) : 1;
        assert_true(weir_model_spec(m)->inv_freq[i] == plain / (mf_value("divisors", i, 0) + 5));
    }
    done(m, &k);
}

/* --- GPT-2 */

static void test_gpt2(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_sizes s = MF_GPT2;
    s.F = 4 * s.C;
    mf_gpt2_hf(&k, &s, "F16");
    edit(&k, "\"n_inner\":60",
         "\"n_inner\":null,\"scale_attn_weights\":true,\"scale_attn_by_inverse_layer_idx\":false");
    edit(&k, "gelu_new", "relu");
    weir_model *m = open_hf(&k);
    const weir_spec *p = weir_model_spec(m);
    assert_true(!p->rms && !p->gated && p->positions == WEIR_POS_LEARNED && p->eps == 1e-5f);
    assert_true(p->attn_scale == (float)(1 / sqrt(5.0)));
    assert_int_equal(p->F, 60);
    assert_int_equal(p->act, WEIR_ACT_RELU);
    assert_int_equal(p->rot, 0);
    assert_null(p->inv_freq);
    assert_string_equal(weir_model_info_of(m)->dtype, "F16");
    assert_true(weir_model_info_of(m)->tied);
    done(m, &k);
}

static void test_gpt2_buffers(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_gpt2_hf(&k, &MF_GPT2, "F32");
    mf_add(&k, "transformer.h.0.attn.bias", "F32", 12, 12, "mask");
    mf_add(&k, "transformer.h.1.attn.masked_bias", "I64", 1, 0, "masked");
    weir_model *m = open_hf(&k);
    assert_non_null(strstr(log_text, "2 stored buffers are no weights and are not read"));
    assert_int_equal(weir_model_n_tensors(m), k.n - 2);
    done(m, &k);
}

/* --- the head */

static void test_tie(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_llama_hf(&k, &MF_LLAMA, "F32", false, true, "");
    mf_add(&k, "lm_head.weight", "F32", MF_LLAMA.V, MF_LLAMA.C, "head");
    weir_model *m = open_hf(&k);
    assert_true(weir_model_info_of(m)->tied);
    assert_non_null(strstr(log_text, "lm_head.weight is stored, but tie_word_embeddings says"));
    assert_int_equal(weir_model_n_tensors(m), k.n - 1);
    done(m, &k);

    mf_llama_hf(&k, &MF_LLAMA, "F32", false, false, "");
    mf_drop(&k, "lm_head.weight");
    m = open_hf(&k);
    assert_true(weir_model_info_of(m)->tied);
    assert_non_null(strstr(log_text, "no head is stored: the token table is taken as the head"));
    done(m, &k);

    mf_neox_hf(&k, &MF_NEOX, "F32", "");
    m = open_hf(&k);
    assert_false(weir_model_info_of(m)->tied);
    done(m, &k);
}

/* --- GPT-NeoX */

static void test_gpt_neox(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_neox_hf(&k, &MF_NEOX, "F32",
               "\"hidden_act\":\"gelu_fast\",\"use_parallel_residual\":false,\"rotary_emb_base\":500");
    weir_model *m = open_hf(&k);
    const weir_spec *s = weir_model_spec(m);
    assert_int_equal(s->rot, 4); /* .67 of 6 */
    assert_false(s->parallel);
    assert_int_equal(s->act, WEIR_ACT_GELU_TANH);
    assert_true(s->inv_freq[1] == 1 / (float)sqrt(500));
    done(m, &k);

    mf_neox_hf(&k, &MF_NEOX, "F32",
               "\"rope_parameters\":{\"rope_type\":\"default\",\"partial_rotary_factor\":0.34,\"rope_theta\":10000}");
    m = open_hf(&k);
    s = weir_model_spec(m);
    assert_int_equal(s->rot, 2);
    assert_true(s->parallel && weir_model_info_of(m)->parallel);
    assert_int_equal(s->act, WEIR_ACT_GELU_ERF);
    done(m, &k);
}

/* --- Gemma 2 */

static void test_gemma2(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_gemma2_hf(&k, &MF_GEMMA, "BF16", "");
    weir_model *m = open_hf(&k);
    const weir_spec *s = weir_model_spec(m);
    assert_true(s->rms && s->post_norms && s->norm_offset == 1 && s->eps == 1e-6f);
    assert_true(s->attn_softcap == 50 && s->logit_softcap == 30 && s->attn_scale == 0.0625f);
    assert_true(s->embed_scale == (float)sqrt(20));
    assert_int_equal(s->act, WEIR_ACT_GELU_TANH);
    assert_int_equal(window_of(m, 0), 4096);
    assert_int_equal(window_of(m, 1), 0);
    assert_int_equal(window_of(m, 2), 4096);
    assert_true(weir_model_info_of(m)->tied);
    done(m, &k);

    mf_gemma2_hf(
        &k, &MF_GEMMA, "F32",
        "\"query_pre_attn_scalar\":16,\"attn_logit_softcapping\":null,\"final_logit_softcapping\":5.0,\"sliding_"
        "window\":3,"
        "\"hidden_act\":\"gelu\",\"layer_types\":[\"full_attention\",\"sliding_attention\",\"sliding_attention\"],"
        "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\",\"rope_theta\":500.0},"
        "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":500.0}}");
    m = open_hf(&k);
    s = weir_model_spec(m);
    assert_true(s->attn_softcap == 0 && s->logit_softcap == 5 && s->attn_scale == 0.25f);
    assert_int_equal(s->act, WEIR_ACT_GELU_TANH); /* hidden_act is not Gemma 2's key */
    assert_int_equal(window_of(m, 0), 0);
    assert_int_equal(window_of(m, 1), 3);
    assert_int_equal(window_of(m, 2), 3);
    assert_true(s->inv_freq[1] == 1 / (float)pow(500, (double)(2.0f / 6)));
    done(m, &k);
}

static void test_gemma2_gguf(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta meta;
    mf_gemma2_gguf(&k, &meta, &MF_GEMMA, "F32");
    mf_meta_u32(&meta, "gemma2.attention.sliding_window", 3);
    mf_meta_f32(&meta, "gemma2.final_logit_softcapping", 20);
    mf_write_gguf(&k, &meta);
    weir_model *m = open_logged(&k);
    const weir_spec *s = weir_model_spec(m);
    assert_true(s->norm_offset == 0 && s->attn_softcap == 50 && s->logit_softcap == 20 &&
                s->attn_scale == (float)(1 / sqrt(6)));
    assert_int_equal(window_of(m, 0), 3);
    assert_int_equal(window_of(m, 1), 0);
    done(m, &k);
}

/* With the 27B model's number of layers GGUF's query scalar is C / H. */
static void test_gemma2_gguf_27b(void **state)
{
    (void)state;
    weir_config cfg = {0};
    weir_arena arena = {0};
    weir_spec spec;
    const int64_t *window;
    weir_err err = {0};
    for (int i = 0; i < weir_n_archs; i++)
        if (!strcmp(weir_arch_table[i]->family, "gemma2"))
            cfg.arch = weir_arch_table[i];
    cfg.v[WEIR_CFG_L] = 46;
    cfg.v[WEIR_CFG_C] = 20;
    cfg.v[WEIR_CFG_H] = 4;
    cfg.v[WEIR_CFG_D] = 6;
    assert_int_equal(weir_config_resolve(&cfg, true, &arena, &spec, &window, &err), WEIR_OK);
    assert_true(spec.attn_scale == (float)(1 / sqrt(5)));
    assert_int_equal(weir_config_resolve(&cfg, false, &arena, &spec, &window, &err), WEIR_OK);
    assert_true(spec.attn_scale == (float)(1 / sqrt(6)));
    weir_arena_free(&arena);
}

/* A pattern in the file wins over the family's: every n-th layer is full. */
static void test_gemma2_gguf_pattern(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta meta;
    mf_gemma2_gguf(&k, &meta, &MF_GEMMA, "F32");
    mf_meta_u32(&meta, "gemma2.attention.sliding_window_pattern", 3);
    mf_write_gguf(&k, &meta);
    weir_model *m = open_logged(&k);
    assert_int_equal(window_of(m, 0), 4096);
    assert_int_equal(window_of(m, 1), 4096);
    assert_int_equal(window_of(m, 2), 0);
    done(m, &k);
}

/* --- Qwen */

static void test_qwen(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta meta;
    for (int three = 0; three < 2; three++) {
        mf_qwen_hf(&k, &MF_LLAMA, "F32", three, !three, true, "");
        weir_model *m = open_hf(&k);
        const weir_spec *s = weir_model_spec(m);
        assert_true(s->rms && s->gated && !s->post_norms && s->qk_norms == (three == 1));
        assert_true(s->eps == 1e-6f && s->attn_scale == 0.5f && s->norm_offset == 0 && s->act == WEIR_ACT_SILU);
        assert_int_equal(window_of(m, 1), 0);
        assert_non_null(strstr(log_text, three ? "the defaults of qwen3 hold" : "the defaults of qwen2 hold"));
        assert_string_equal(weir_model_info_of(m)->family, three ? "qwen3" : "qwen2");
        done(m, &k);
        mf_qwen_gguf(&k, &meta, &MF_LLAMA, "F32", three, !three, true);
        mf_write_gguf(&k, &meta);
        m = open_logged(&k);
        assert_true(weir_model_spec(m)->qk_norms == (three == 1));
        assert_int_equal(window_of(m, 1), 0);
        done(m, &k);
    }
    static const mf_sizes WIDE = {1, 18, 23, 2, 2, 128, 17, 12}; /* 128 is Qwen 3's head size where none is given */
    mf_qwen_hf(&k, &WIDE, "F32", true, false, true, "");
    edit(&k, "\"head_dim\":128,", "");
    weir_model *m = open_hf(&k);
    assert_int_equal(weir_model_info_of(m)->D, 128);
    done(m, &k);
}

/* Windows: switched on, from a layer on, or as the file lists them. */
static void test_qwen_windows(void **state)
{
    (void)state;
    static const mf_sizes SIZES = {3, 18, 23, 6, 2, 4, 17, 12};
    static const struct {
        const char *more;
        int64_t window[3];
    } CASE[] = {
        {"\"sliding_window\":5,\"max_window_layers\":1", {0, 0, 0}},
        {"\"use_sliding_window\":false,\"sliding_window\":5,\"max_window_layers\":0", {0, 0, 0}},
        {"\"use_sliding_window\":true,\"sliding_window\":5,\"max_window_layers\":1", {0, 5, 5}},
        {"\"use_sliding_window\":true,\"sliding_window\":5,\"max_window_layers\":0", {5, 5, 5}},
        {"\"use_sliding_window\":true,\"sliding_window\":5", {0, 0, 0}},
        {"\"use_sliding_window\":true,\"sliding_window\":null,\"max_window_layers\":1", {0, 0, 0}},
        {"\"use_sliding_window\":true,\"max_window_layers\":2", {0, 0, 4096}},
        {"\"use_sliding_window\":true,\"sliding_window\":5,\"max_window_layers\":0,\"layer_types\":"
         "[\"sliding_attention\",\"full_attention\",\"sliding_attention\"]",
         {5, 0, 5}},
    };
    for (size_t i = 0; i < 2 * (sizeof CASE / sizeof *CASE); i++) {
        mf_checkpoint k;
        mf_qwen_hf(&k, &SIZES, "F32", i % 2, !(i % 2), true, CASE[i / 2].more);
        weir_model *m = open_hf(&k);
        for (int64_t l = 0; l < 3; l++)
            assert_int_equal(window_of(m, l), CASE[i / 2].window[l]);
        done(m, &k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama_defaults),
        cmocka_unit_test(test_llama_nulls),
        cmocka_unit_test(test_mistral),
        cmocka_unit_test(test_llama_ignores_window),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_rope_gguf),
        cmocka_unit_test(test_rope_divisors),
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_gpt2_buffers),
        cmocka_unit_test(test_tie),
        cmocka_unit_test(test_gpt_neox),
        cmocka_unit_test(test_qwen),
        cmocka_unit_test(test_qwen_windows),
        cmocka_unit_test(test_gemma2),
        cmocka_unit_test(test_gemma2_gguf),
        cmocka_unit_test(test_gemma2_gguf_27b),
        cmocka_unit_test(test_gemma2_gguf_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
