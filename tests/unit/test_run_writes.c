/* Writes: what a hook sets at one point is what everything behind it sees. */
#include <math.h>

#include "run_kit.h"

enum { ROWS = 19 };

static float fixed_value;

static void set_all(kit_tap *t, const weir_value *v)
{
    (void)t;
    for (int64_t i = 0; i < v->rows->n * v->width; i++)
        if (v->data[i] != -INFINITY)
            v->data[i] = fixed_value;
}

/* Runs with every value at `where` set to x; what is heard everywhere afterwards is in *heard. */
static float *run_with(weir_model *m, const char *where, float x, kit_tap *heard)
{
    weir_err err = {0};
    weir_selector *s;
    kit_tap writer;
    int32_t *ids = kit_ids(m, ROWS, 17);
    float *logits = malloc((size_t)(ROWS * weir_model_info_of(m)->V) * sizeof *logits);
    weir_run *r = kit_run(m, ROWS, 0, NULL, 1);
    kit_tap_init(&writer, m);
    kit_tap_init(heard, m);
    kit_ok(weir_selector_parse(&s, m, where, &err), &err);
    writer.only = s;
    writer.write = true;
    writer.edit = set_all;
    fixed_value = x;
    kit_attach(r, &writer);
    kit_attach(r, heard);
    kit_forward(r, ids, ROWS, -1, WEIR_FINAL);
    kit_ok(weir_run_logits(r, 0, ROWS, logits, &err), &err);
    weir_run_free(r);
    weir_selector_free(s);
    kit_tap_free(&writer);
    free(ids);
    return logits;
}

static void all_are(const float *x, int64_t n, float value, const char *what)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != value)
            fail_msg("%s[%lld] is %.9g, not %.9g", what, (long long)i, (double)x[i], (double)value);
}

static void test_write_to_scale(void **state)
{
    weir_model *m = kit_open(KIT_LLAMA); /* RMS: normalized = x / scale */
    int64_t n = ROWS * weir_model_info_of(m)->C;
    kit_tap t;
    (void)state;
    free(run_with(m, "blocks.1.ln1.hook_scale", 2, &t));
    const float *x = kit_heard(&t, m, "blocks.1.hook_resid_pre"), *y = kit_heard(&t, m, "blocks.1.ln1.hook_normalized");
    for (int64_t i = 0; i < n; i++)
        assert_true(y[i] == x[i] / 2);
    kit_tap_free(&t);
    weir_model_free(m);
}

static void test_write_to_normalized(void **state)
{
    weir_model *m = kit_open(KIT_LLAMA);
    kit_tap t;
    (void)state;
    float *logits = run_with(m, "ln_final.hook_normalized", 0, &t);
    all_are(kit_heard(&t, m, "ln_final.hook_out"), ROWS * weir_model_info_of(m)->C, 0, "ln_final.hook_out");
    all_are(logits, ROWS * weir_model_info_of(m)->V, 0, "logits");
    free(logits);
    kit_tap_free(&t);
    weir_model_free(m);
}

/* Equal scores give every visible key the same share. */
static void test_write_to_scores(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    int64_t heads = weir_model_info_of(m)->H;
    kit_tap t;
    (void)state;
    free(run_with(m, "blocks.0.attn.hook_attn_scores", 3, &t));
    const float *p = kit_heard(&t, m, "blocks.0.attn.hook_pattern");
    for (int64_t q = 0; q < ROWS; q++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t k = 0; k < ROWS; k++) {
                float x = p[(q * heads + h) * ROWS + k];
                assert_true(k > q ? x == 0 : fabsf(x * (float)(q + 1) - 1) < 1e-6f);
            }
    kit_tap_free(&t);
    weir_model_free(m);
}

/* A value set at one point is what the points behind it see. */
static void test_writes_reach_what_follows(void **state)
{
    static const struct {
        const char *path, *write, *zero;
    } cases[] = {
        {KIT_GPT2, "blocks.0.hook_resid_post", "blocks.1.hook_resid_pre"},
        {KIT_GPT2, "blocks.0.attn.hook_v", "blocks.0.attn.hook_z"},
        {KIT_GPT2, "blocks.0.attn.hook_pattern", "blocks.0.attn.hook_z"},
        {KIT_GPT2, "blocks.0.attn.hook_z", "blocks.0.attn.hook_result"},
        {KIT_LLAMA, "blocks.0.attn.hook_z", "blocks.0.hook_attn_out"},
        {KIT_LLAMA, "blocks.0.attn.hook_q", "blocks.0.attn.hook_rot_q"},
        {KIT_LLAMA, "blocks.0.attn.hook_k", "blocks.0.attn.hook_rot_k"},
        {KIT_LLAMA, "blocks.0.hook_resid_mid", "blocks.0.ln2.hook_out"},
        {KIT_LLAMA, "blocks.0.hook_resid_mid", "blocks.0.mlp.hook_post"},
        {KIT_LLAMA, "blocks.0.ln2.hook_out", "blocks.0.mlp.hook_pre"},
        {KIT_LLAMA, "blocks.0.mlp.hook_pre", "blocks.0.mlp.hook_post"},
        {KIT_LLAMA, "blocks.0.mlp.hook_pre_linear", "blocks.0.mlp.hook_post"},
        {KIT_LLAMA, "blocks.0.mlp.hook_post", "blocks.0.hook_mlp_out"},
        {KIT_LLAMA, "hook_embed", "blocks.0.hook_resid_pre"},
        {KIT_LLAMA, "ln_final.hook_out", "unembed.hook_in"},
        {KIT_LLAMA, "unembed.hook_in", "unembed.hook_out"},
        {KIT_GEMMA, "unembed.hook_out", "hook_logits"},
        {KIT_GEMMA, "blocks.0.ln1_post.hook_normalized", "blocks.0.hook_attn_out"},
        {KIT_GEMMA, "blocks.0.ln2_post.hook_normalized", "blocks.0.hook_mlp_out"},
        {KIT_NEOX, "blocks.0.hook_resid_post", "blocks.1.hook_resid_pre"},
        {KIT_QWEN3, "blocks.0.attn.hook_q", "blocks.0.attn.q_norm.hook_out"},
        {KIT_QWEN3, "blocks.0.attn.q_norm.hook_normalized", "blocks.0.attn.q_norm.hook_out"},
        {KIT_QWEN3, "blocks.0.attn.k_norm.hook_normalized", "blocks.0.attn.hook_rot_k"},
        {KIT_QWEN3, "blocks.0.attn.k_norm.hook_out", "blocks.0.attn.hook_rot_k"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        weir_model *m = kit_open(cases[k].path);
        kit_tap t;
        free(run_with(m, cases[k].write, 0, &t));
        const weir_point *p = weir_model_point(m, cases[k].zero);
        all_are(kit_heard(&t, m, cases[k].zero), t.floats[p - t.point], 0, cases[k].zero);
        kit_tap_free(&t);
        weir_model_free(m);
    }
}

/* Rotated values turn into scores; a write to resid_mid edits the stream; attn_out and mlp_out are what is added. */
static void test_writes_edit_the_stream(void **state)
{
    static const char *const writes[] = {"blocks.0.hook_resid_mid", "blocks.0.hook_attn_out", "blocks.0.hook_mlp_out",
                                         "hook_pos_embed", "blocks.1.hook_resid_pre"};
    (void)state;
    for (size_t k = 0; k < sizeof writes / sizeof *writes; k++) {
        weir_model *m = kit_open(KIT_GPT2);
        int64_t n = ROWS * weir_model_info_of(m)->C;
        kit_tap t;
        free(run_with(m, writes[k], 0.25f, &t));
        all_are(kit_heard(&t, m, writes[k]), n, 0.25f, writes[k]);
        kit_sum(kit_heard(&t, m, "hook_embed"), kit_heard(&t, m, "hook_pos_embed"),
                kit_heard(&t, m, "blocks.0.hook_resid_pre"), n, "embed + pos_embed");
        const float *mid = kit_heard(&t, m, "blocks.0.hook_resid_mid");
        if (k > 0)
            kit_sum(kit_heard(&t, m, "blocks.0.hook_resid_pre"), kit_heard(&t, m, "blocks.0.hook_attn_out"), mid, n,
                    "mid");
        kit_sum(mid, kit_heard(&t, m, "blocks.0.hook_mlp_out"), kit_heard(&t, m, "blocks.0.hook_resid_post"), n,
                "post");
        kit_tap_free(&t);
        weir_model_free(m);
    }
    weir_model *m = kit_open(KIT_LLAMA);
    int64_t scores = 0;
    kit_tap t;
    free(run_with(m, "blocks.0.attn.hook_rot_q", 0, &t));
    const float *x = kit_heard(&t, m, "blocks.0.attn.hook_attn_scores");
    for (int64_t i = 0; i < ROWS * weir_model_info_of(m)->H * ROWS; i++)
        scores += x[i] != 0 && x[i] != -INFINITY;
    assert_int_equal(scores, 0);
    kit_tap_free(&t);
    weir_model_free(m);
}

/* weir_run_logits and weir_run_logprobs use what hooks wrote. */
static void test_written_logits(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        weir_model *m = kit_open(k ? KIT_GEMMA : KIT_GPT2);
        kit_tap t;
        float *logits = run_with(m, k ? "hook_logits" : "unembed.hook_out", 2.5f, &t);
        all_are(logits, ROWS * weir_model_info_of(m)->V, 2.5f, "logits");
        free(logits);
        kit_tap_free(&t);
        weir_model_free(m);
    }
}

/* --- keys and values that were written are what is cached */
static void test_written_keys_are_cached(void **state)
{
    weir_err err = {0};
    weir_model *m = kit_open(KIT_GPT2); /* no RoPE: a key of zero gives a score of zero */
    const int64_t heads = weir_model_info_of(m)->H;
    int32_t *ids = kit_ids(m, 8, 19);
    weir_run *r = kit_run(m, 8, 1, NULL, 1);
    kit_tap t;
    (void)state;
    kit_tap_init(&t, m);
    kit_ok(weir_run_hook(r, weir_hook_class_find("ablate"), "blocks.0.attn.hook_k[0:7]", &err), &err);
    kit_attach(r, &t);
    kit_forward(r, ids, 7, 0, 0);
    kit_forward(r, ids + 7, 1, 0, 0);
    const float *x = kit_heard(&t, m, "blocks.0.attn.hook_attn_scores");
    for (int64_t h = 0; h < heads; h++) {
        all_are(x + h * 8, 7, 0, "score of an ablated key");
        assert_true(x[h * 8 + 7] != 0);
    }
    kit_tap_free(&t);
    free(ids);
    weir_run_free(r);
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_to_scale),          cmocka_unit_test(test_write_to_normalized),
        cmocka_unit_test(test_write_to_scores),         cmocka_unit_test(test_writes_reach_what_follows),
        cmocka_unit_test(test_writes_edit_the_stream),  cmocka_unit_test(test_written_logits),
        cmocka_unit_test(test_written_keys_are_cached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
