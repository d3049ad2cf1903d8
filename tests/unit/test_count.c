/* The library's side of weir count: what a program gets that links with it. Counts of all configurations are compared
 * in tests/cli/test_count.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <weir/count.h>

#define FIELDS                                                                                                         \
    "\"hidden_size\": 8, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 20, "            \
    "\"vocab_size\": 50"

static weir_blueprint *read(const char *text)
{
    weir_blueprint *b;
    weir_err e = {0};
    assert_int_equal(weir_blueprint_read(&b, text, strlen(text), "dir/m.json", &e), WEIR_OK);
    return b;
}

static weir_bill *bill_of(const weir_blueprint *b)
{
    weir_bill *bill;
    weir_err e = {0};
    assert_int_equal(weir_bill_make(&bill, b, &e), WEIR_OK);
    return bill;
}

static void test_blueprint(void **state)
{
    (void)state;
    weir_blueprint *b = read("{\"model_type\": \"mistral\", \"head_dim\": 6, \"num_key_value_heads\": 1, "
                             "\"sliding_window\": 16, \"hidden_act\": \"silu\", " FIELDS "}");
    const weir_attention_shape *a = &b->layer[1].attn;
    assert_string_equal(b->name, "m");
    assert_string_equal(b->model_type, "mistral");
    assert_string_equal(b->activation, "silu");
    assert_int_equal(b->n_remarks, 0);
    assert_true(b->causal && b->rope && !b->parallel && b->head == WEIR_HEAD_OWN && b->norm == WEIR_NORM_RMS);
    assert_true(a->heads == 2 && a->kv_heads == 1 && a->qk == 6 && a->v == 6 && a->window == 16 && a->rotates);
    weir_blueprint_free(b);
    weir_blueprint_free(NULL);
}

/* Chunks and windows by layer, as the families have them without a list. */
static void test_windows(void **state)
{
    (void)state;
    weir_blueprint *b = read("{\"model_type\": \"gemma2\", \"sliding_window\": 16, " FIELDS "}");
    assert_true(b->layer[0].attn.window == 16 && b->layer[1].attn.window == 0);
    weir_blueprint_free(b);
    b = read("{\"model_type\": \"llama4_text\", \"no_rope_layer_interval\": 2, \"attention_chunk_size\": 32, "
             "\"intermediate_size_mlp\": 24, " FIELDS "}");
    assert_true(b->layer[0].attn.chunked && b->layer[0].attn.window == 32 && b->layer[0].attn.rotates);
    assert_true(!b->layer[1].attn.chunked && b->layer[1].attn.window == 0 && !b->layer[1].attn.rotates);
    assert_int_equal(b->layer[1].mlp.width, 24);
    weir_blueprint_free(b);
    b = read("{\"model_type\": \"llama\", \"sliding_window\": 16, "
             "\"layer_types\": [\"full_attention\", \"sliding_attention\"], " FIELDS "}");
    assert_true(b->layer[0].attn.window == 0 && b->layer[1].attn.window == 16);
    weir_blueprint_free(b);
}

static void test_bill(void **state)
{
    (void)state;
    weir_blueprint *b = read("{\"model_type\": \"llama\", \"tie_word_embeddings\": true, " FIELDS "}");
    weir_bill *bill = bill_of(b);
    const int64_t layer = 4 * 64 + 3 * 160 + 16;
    assert_int_equal(bill->layer[0].total.params, layer);
    assert_int_equal(bill->total.params, 2 * layer + 8 + 400);
    assert_int_equal(bill->total.matmul, 2 * (layer - 16) + 400);
    assert_true(bill->total.read == bill->total.params && bill->has_cache && bill->kv == 2 * 16);
    assert_int_equal(bill->attn_flops, 2 * 2 * 2 * 8);
    int64_t params, matrices;
    weir_err e = {0};
    assert_int_equal(weir_bill_lora(&params, &matrices, b, "q,down", 3, &e), WEIR_OK);
    assert_true(params == 3 * 2 * (16 + 28) && matrices == 4);
    assert_int_equal(weir_bill_lora(&params, &matrices, b, "q", INT64_MAX, &e), WEIR_E_ARG);
    weir_bill_free(bill);
    weir_blueprint_free(b);
    weir_bill_free(NULL);
}

static void test_words(void **state)
{
    (void)state;
    for (int i = 0; i < WEIR_BILL_ITEMS; i++) {
        const char *name = weir_bill_item_name((weir_bill_item)i);
        assert_true(name && strcmp(name, "?") != 0);
        assert_int_equal(weir_bill_is_attn((weir_bill_item)i), !strncmp(name, "attn_", 5));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(name, weir_bill_item_name((weir_bill_item)k));
    }
    assert_string_equal(weir_bill_item_name(WEIR_BILL_ITEMS), "?");
}

static void test_errors(void **state)
{
    (void)state;
    weir_blueprint *b;
    weir_err e = {0};
    const char text[] = "{\"model_type\": \"llama\", \"hidden_size\": -1}";
    assert_int_equal(weir_blueprint_read(&b, text, sizeof text - 1, "c.json", &e), WEIR_E_FORMAT);
    assert_null(b);
    assert_string_equal(e.file, "c.json");
    assert_int_equal(e.offset, 39);
    e = (weir_err){0};
    assert_int_equal(weir_blueprint_open(&b, "tests/data/nothing.json", &e), WEIR_E_IO);
    assert_null(b);
    assert_int_equal(weir_blueprint_read(&b, "{\"model_type\": \"x\"}", 19, "c.json", NULL), WEIR_E_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blueprint), cmocka_unit_test(test_windows),
                                       cmocka_unit_test(test_bill), cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
