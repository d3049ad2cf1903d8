/* A GGUF file as a Hugging Face directory, with an edit in it: every allocation fails once, and no directory is left.
 */
#include <weir/edit.h>

#include "../unit/model_families.h"
#include "support/oom.h"
#include "support/scratch.h"

/* --- a tokenizer in the metadata, for each kind that can be written */

enum { V = 9, I32 = 5, F32 = 6, STRING = 8, ARRAY = 9 };

static const char *const BYTE_LEVEL[V] = {"<|end|>", "a", "b", "ab", "1", "11", "\u0120", "\u0120a", "[x]"};
static const int32_t BYTE_LEVEL_TYPES[V] = {3, 1, 1, 1, 1, 1, 1, 1, 4};
static const char *const MERGES[] = {"a b", "1 1", "\u0120 a"};
static const char *const SENTENCE[V] = {"<unk>", "<s>", "</s>", "<0x41>", "\u2581", "a", "b", "ab", "\u2581ab"};
static const int32_t SENTENCE_TYPES[V] = {2, 3, 3, 6, 1, 1, 1, 1, 1};
static const float SCORES[V] = {0, 0, 0, 0, -5, -6, -7, -8, -9};

static void put_array(mf_meta *m, const char *key, uint32_t type, uint64_t n)
{
    mf_key(m, key, ARRAY);
    mf_put(m, &type, 4);
    mf_put(m, &n, 8);
}

static void put_strings(mf_meta *m, const char *key, const char *const *s, uint64_t n)
{
    put_array(m, key, STRING, n);
    for (uint64_t i = 0; i < n; i++)
        mf_put_str(m, s[i]);
}

static void put_tokens(mf_meta *m, const char *model, const char *const *piece, const int32_t *type)
{
    mf_meta_str(m, "tokenizer.ggml.model", model);
    put_strings(m, "tokenizer.ggml.tokens", piece, V);
    put_array(m, "tokenizer.ggml.token_type", I32, V);
    mf_put(m, type, V * sizeof *type);
    mf_meta_str(m, "tokenizer.chat_template", "{{ messages[0]['content'] }}");
}

static void byte_level(mf_meta *m)
{
    put_tokens(m, "gpt2", BYTE_LEVEL, BYTE_LEVEL_TYPES);
    mf_meta_str(m, "tokenizer.ggml.pre", "smollm");
    put_strings(m, "tokenizer.ggml.merges", MERGES, 3);
    mf_meta_u32(m, "tokenizer.ggml.eos_token_id", 0);
}

static void sentencepiece(mf_meta *m)
{
    put_tokens(m, "llama", SENTENCE, SENTENCE_TYPES);
    put_array(m, "tokenizer.ggml.scores", F32, V);
    mf_put(m, SCORES, sizeof SCORES);
    mf_meta_u32(m, "tokenizer.ggml.unknown_token_id", 0);
    mf_meta_u32(m, "tokenizer.ggml.bos_token_id", 1);
    mf_meta_u32(m, "tokenizer.ggml.eos_token_id", 2);
}

/* --- the work */

typedef struct world {
    weir_model *m;
    weir_edit *edit;
} world;

static weir_status merge(const void *ctx, weir_err *err)
{
    static int turn;
    const world *w = ctx;
    char name[32];
    const weir_edit_merge_options o = {.threads = 1};
    snprintf(name, sizeof name, "merged%d", turn++);
    const weir_status s = weir_edit_merge(w->m, (const weir_edit *const *)&w->edit, 1, scratch(name), &o, err);
    assert_int_equal(access(scratch(name), F_OK), s == WEIR_OK ? 0 : -1);
    strcat(name, ".part");
    assert_int_equal(access(scratch(name), F_OK), -1);
    return s;
}

static void every_allocation_fails_once(mf_checkpoint *k, const mf_meta *meta)
{
    weir_err err = {0};
    static float x[256];
    world w = {0};
    for (int i = 0; i < 256; i++)
        x[i] = (float)(i * 37 % 101) / 500;
    const weir_update u[] = {{.layer = 0, .matrix = WEIR_MATRIX_K, .r = 2, .u = x, .v = x},
                             {.layer = 0, .matrix = WEIR_MATRIX_DOWN, .r = 1, .u = x, .v = x}};
    mf_write_gguf(k, meta);
    assert_int_equal(weir_model_open(&w.m, k->path, NULL, &err), WEIR_OK);
    assert_int_equal(weir_edit_new(&w.edit, w.m, u, 2, &err), WEIR_OK);
    assert_in_range(oom_each(merge, &w), 30, 1000);
    assert_int_equal(access(scratch("merged0/tokenizer.json"), F_OK), 0);
    weir_edit_free(w.edit);
    weir_model_free(w.m);
    mf_remove(k);
}

static void test_byte_level(void **state)
{
    (void)state;
    const mf_sizes s = {1, 15, 22, 3, 3, 5, V, 12};
    mf_checkpoint k;
    mf_meta m;
    mf_gpt2_gguf(&k, &m, &s, "F16");
    byte_level(&m);
    every_allocation_fails_once(&k, &m);
}

static void test_sentencepiece(void **state)
{
    (void)state;
    const mf_sizes s = {1, 32, 64, 4, 2, 8, V, 12};
    mf_checkpoint k;
    mf_meta m;
    mf_llama_gguf(&k, &m, &s, "Q8_0", true, false);
    sentencepiece(&m);
    every_allocation_fails_once(&k, &m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_byte_level), cmocka_unit_test(test_sentencepiece)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
