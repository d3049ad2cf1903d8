/* lib/count/roofline.c, matrices.c and lib/kernels/machine.c from C: lists that are freed, figures by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <weir/weir.h>

/* A layer of two heads of 4 over width 8, an MLP of 16, a vocabulary of 32 with a head of its own. */
static const char config[] = "{\"model_type\": \"llama\", \"hidden_size\": 8, \"num_hidden_layers\": 2, "
                             "\"num_attention_heads\": 2, \"intermediate_size\": 16, \"vocab_size\": 32, "
                             "\"tie_word_embeddings\": false, \"hidden_act\": \"silu\"}";

typedef struct small {
    weir_blueprint *b;
    weir_bill *bill;
} small;

static int set_up(void **state)
{
    static small s;
    weir_err err = {0};
    assert_int_equal(weir_blueprint_read(&s.b, config, sizeof config - 1, "small", &err), WEIR_OK);
    assert_int_equal(weir_bill_make(&s.bill, s.b, &err), WEIR_OK);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    const small *s = *state;
    weir_bill_free(s->bill);
    weir_blueprint_free(s->b);
    return 0;
}

static void test_matrices_are_listed(void **state)
{
    const small *s = *state;
    weir_matmul *m;
    int64_t n, sum = 0;
    weir_err err = {0};
    assert_int_equal(weir_matmuls_of(&m, &n, s->b, &err), WEIR_OK);
    assert_int_equal(n, 2 * 7 + 1);
    assert_int_equal(m[0].item, WEIR_BILL_Q);
    assert_int_equal(m[7].layer, 1);
    assert_int_equal(m[14].item, WEIR_BILL_UNEMBED);
    assert_int_equal(m[14].layer, -1);
    for (int64_t i = 0; i < n; i++)
        sum += m[i].used * m[i].in * m[i].out;
    assert_int_equal(sum, s->bill->total.matmul);
    assert_int_equal(sum, 2 * (4 * 64 + 3 * 128) + 256);
    weir_matmuls_free(m);
    weir_matmuls_free(NULL);
}

static void test_a_step_by_hand(void **state)
{
    const small *s = *state;
    const weir_load load = {.context = 10, .batch = 3, .weight_bits = 16, .cache_bits = 8};
    weir_roof r;
    weir_roof_decode(&r, s->b, s->bill, &load);
    const double layers = 2 * (4 * 64 + 3 * 128), norms = 5 * 8;
    assert_true(r.weights.flops == 3 * 2 * (layers + 256));
    assert_true(r.weights.bytes == 2 * (layers + 256 + norms + 3 * 8));
    assert_true(r.input_table == 2 * (256 - 3 * 8));
    assert_true(r.attention.flops == 3 * 10 * 2 * (2 * 2 * 8));
    assert_true(r.attention.bytes == 3 * 10 * 2 * 16);
    assert_true(r.total.flops == r.weights.flops + r.attention.flops);
    const weir_bound t =
        weir_bound_of(&r.total, &(weir_hardware){.flops = r.total.flops, .bandwidth = r.total.bytes / 2});
    assert_true(t.compute == 1 && t.memory == 2 && t.seconds == 2);
    assert_true(weir_overtaking(s->b, s->bill, true, false) == 2 * layers / 64);
}

static void test_machines_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < weir_hardware_count(); i++) {
        const weir_hardware *h = weir_hardware_at(i);
        assert_ptr_equal(weir_hardware_named(h->name), h);
        assert_true(h->flops > 1e13 && h->bandwidth > 1e11 && h->memory > 1e9 && h->about[0]);
        assert_true(h->flops / h->bandwidth > 50 && h->flops / h->bandwidth < 1000);
    }
    assert_null(weir_hardware_at(-1));
    assert_null(weir_hardware_at(weir_hardware_count()));
    assert_null(weir_hardware_named("abacus"));
}

static void test_this_machine_is_measured(void **state)
{
    double bandwidth;
    weir_err err = {0};
    (void)state;
    assert_true(weir_machine_flops(1) > 1e7);
    assert_int_equal(weir_machine_bandwidth(&bandwidth, 1, &err), WEIR_OK);
    assert_true(bandwidth > 1e6 && isfinite(bandwidth));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_matrices_are_listed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_step_by_hand, set_up, tear_down),
        cmocka_unit_test(test_machines_have_names),
        cmocka_unit_test(test_this_machine_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
