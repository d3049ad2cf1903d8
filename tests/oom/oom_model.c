/* Every allocation of opening a model and packing its layers fails once: each time a clean error, and nothing leaks or
 * hangs. */
#include <model/spec.h>

#include "../unit/model_families.h"
#include "support/oom.h"

/* All that a run and a backward pass ask of a model. */
static weir_status use(const void *checkpoint, weir_err *err)
{
    const mf_checkpoint *k = checkpoint;
    weir_model *m;
    weir_model_options o;
    weir_model_options_init(&o);
    o.threads = 1;
    WEIR_TRY(weir_model_open(&m, k->path, &o, err));
    weir_normw norm;
    weir_head head;
    char hex[65];
    weir_status s = WEIR_OK;
    for (int64_t l = 0; s == WEIR_OK && l < weir_model_info_of(m)->L; l++) {
        const weir_layer *y;
        s = weir_model_layer(m, l, INT64_MAX, &y, err);
    }
    for (int64_t l = 0; s == WEIR_OK && l < weir_model_info_of(m)->L; l++) {
        weir_turned_layer t;
        s = weir_model_layer_turned(m, l, &t, err);
        weir_turned_layer_free(&t);
    }
    s = s ? s : weir_model_final(m, &norm, err);
    s = s ? s : weir_model_head(m, 0, INT64_MAX, &head, err);
    s = s ? s : weir_model_fingerprint(m, false, hex, err);
    weir_model_free(m);
    return s;
}

static void every_allocation(mf_checkpoint *k)
{
    assert_in_range(oom_each(use, k), 20, 2000);
    mf_remove(k);
}

static void test_directory(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_gemma2_hf(&k, &MF_GEMMA, "F16",
                 "\"layer_types\":[\"full_attention\",\"sliding_attention\",\"sliding_attention\"],"
                 "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"linear\",\"factor\":2.0}}");
    mf_write_hf(&k);
    every_allocation(&k);
    mf_gpt2_hf(&k, &MF_GPT2, "F32");
    mf_write_hf(&k);
    every_allocation(&k);
}

static void test_gguf(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta m;
    mf_llama_gguf(&k, &m, &MF_BLOCKS, "Q8_0", true, false);
    mf_add(&k, "rope_freqs.weight", "F32", 4, 0, "x")->plus = 5;
    mf_meta_str(&m, "general.name", "tiny");
    mf_write_gguf(&k, &m);
    every_allocation(&k);
    mf_neox_gguf(&k, &m, &MF_NEOX, "BF16");
    mf_write_gguf(&k, &m);
    every_allocation(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_directory), cmocka_unit_test(test_gguf)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
