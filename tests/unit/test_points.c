/* The table of hook points: what each family has and lacks, shapes, and the order. */
#include "run_kit.h"

static void has(const weir_model *m, const char *name, const char *letters, int64_t heads, int64_t size)
{
    const weir_point *p = weir_model_point(m, name);
    if (!p)
        fail_msg("%s is missing", name);
    assert_string_equal(p->name, name);
    assert_string_equal(p->letters, letters);
    assert_int_equal(p->heads, heads);
    assert_int_equal(p->size, size);
    assert_int_equal(p->width, heads * size);
    assert_int_equal(p->rank, strlen(letters) == 3 ? 2 : 3);
}

static void lacks(const weir_model *m, const char *name)
{
    if (weir_model_point(m, name))
        fail_msg("%s should not exist", name);
}

static void test_gpt2(void **state)
{
    weir_model *m = kit_open(NULL);
    const weir_model_info *i = weir_model_info_of(m);
    (void)state;
    has(m, "hook_embed", "T C", 1, i->C);
    has(m, "hook_pos_embed", "T C", 1, i->C);
    has(m, "blocks.0.hook_resid_pre", "T C", 1, i->C);
    has(m, "blocks.7.ln1.hook_scale", "T 1", 1, 1);
    has(m, "blocks.7.ln1.hook_normalized", "T C", 1, i->C);
    has(m, "blocks.7.ln1.hook_out", "T C", 1, i->C);
    has(m, "blocks.3.attn.hook_q", "T H D", i->H, i->D);
    has(m, "blocks.3.attn.hook_attn_scores", "T H S", i->H, i->ctx);
    has(m, "blocks.3.attn.hook_pattern", "T H S", i->H, i->ctx);
    has(m, "blocks.3.attn.hook_z", "T H D", i->H, i->D);
    has(m, "blocks.3.attn.hook_result", "T H C", i->H, i->C);
    has(m, "blocks.3.hook_resid_mid", "T C", 1, i->C);
    has(m, "blocks.3.mlp.hook_pre", "T F", 1, i->F);
    has(m, "blocks.3.mlp.hook_post", "T F", 1, i->F);
    has(m, "ln_final.hook_scale", "T 1", 1, 1);
    has(m, "unembed.hook_in", "T C", 1, i->C);
    has(m, "unembed.hook_out", "T V", 1, i->V);
    lacks(m, "blocks.3.attn.hook_rot_q");
    lacks(m, "blocks.3.mlp.hook_pre_linear");
    lacks(m, "blocks.3.ln1_post.hook_scale");
    lacks(m, "hook_logits");
    lacks(m, "blocks.8.hook_resid_pre");
    assert_true(weir_model_point(m, "blocks.3.attn.hook_result")->read_only);
    assert_false(weir_model_point(m, "blocks.3.attn.hook_z")->read_only);
    assert_ptr_equal(weir_model_point(m, "blocks.3.hook-resid-mid"), weir_model_point(m, "blocks.3.hook_resid_mid"));
    weir_model_free(m);
}

static void test_llama(void **state)
{
    weir_model *m = kit_open(KIT_LLAMA); /* 6 heads over 2 */
    const weir_model_info *i = weir_model_info_of(m);
    (void)state;
    has(m, "blocks.0.attn.hook_q", "T H D", 6, i->D);
    has(m, "blocks.0.attn.hook_k", "T K D", 2, i->D);
    has(m, "blocks.0.attn.hook_v", "T K D", 2, i->D);
    has(m, "blocks.0.attn.hook_rot_q", "T H D", 6, i->D);
    has(m, "blocks.0.attn.hook_rot_k", "T K D", 2, i->D);
    has(m, "blocks.0.mlp.hook_pre_linear", "T F", 1, i->F);
    has(m, "blocks.0.hook_resid_mid", "T C", 1, i->C);
    lacks(m, "hook_pos_embed");
    lacks(m, "blocks.0.ln2_post.hook_normalized");
    weir_model_free(m);
}

static void test_parallel_and_sandwich(void **state)
{
    weir_model *m = kit_open(KIT_NEOX);
    (void)state;
    lacks(m, "blocks.0.hook_resid_mid");
    lacks(m, "blocks.0.mlp.hook_pre_linear");
    has(m, "blocks.0.ln2.hook_out", "T C", 1, weir_model_info_of(m)->C);
    has(m, "blocks.0.attn.hook_rot_k", "T K D", weir_model_info_of(m)->K, weir_model_info_of(m)->D);
    weir_model_free(m);
    m = kit_open(KIT_GEMMA);
    has(m, "blocks.1.ln1_post.hook_scale", "T 1", 1, 1);
    has(m, "blocks.1.ln2_post.hook_normalized", "T C", 1, weir_model_info_of(m)->C);
    has(m, "hook_logits", "T V", 1, weir_model_info_of(m)->V);
    lacks(m, "blocks.1.ln1_post.hook_out"); /* it is hook_attn_out */
    lacks(m, "blocks.1.attn.q_norm.hook_scale");
    weir_model_free(m);
}

/* Norms of heads: q and k before them, RoPE behind. */
static void test_normed_heads(void **state)
{
    weir_model *m = kit_open(KIT_QWEN3);
    const weir_model_info *i = weir_model_info_of(m);
    (void)state;
    has(m, "blocks.1.attn.q_norm.hook_scale", "T H 1", i->H, 1);
    has(m, "blocks.1.attn.q_norm.hook_normalized", "T H D", i->H, i->D);
    has(m, "blocks.1.attn.q_norm.hook_out", "T H D", i->H, i->D);
    has(m, "blocks.1.attn.k_norm.hook_scale", "T K 1", i->K, 1);
    has(m, "blocks.1.attn.k_norm.hook_normalized", "T K D", i->K, i->D);
    has(m, "blocks.1.attn.k_norm.hook_out", "T K D", i->K, i->D);
    lacks(m, "blocks.1.attn.v_norm.hook_scale");
    weir_model_free(m);
}

/* Each block has the same points, sites ascend within a block, and the list never changes. */
static void test_list(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        weir_model *m = kit_open(kit_models[k]);
        const weir_point *p, *again;
        int64_t n = weir_model_points(m, &p), of_layer[2] = {0};
        assert_int_equal(weir_model_points(m, &again), n);
        assert_ptr_equal(p, again);
        for (int64_t i = 0; i < n; i++) {
            assert_ptr_equal(weir_model_point(m, p[i].name), &p[i]);
            if (i > 0)
                assert_true(p[i].layer == p[i - 1].layer ? p[i].site > p[i - 1].site
                                                         : p[i].layer == p[i - 1].layer + 1 || p[i].layer == -1);
            if (p[i].layer == 0 || p[i].layer == 1)
                of_layer[p[i].layer]++;
        }
        assert_int_equal(of_layer[0], of_layer[1]);
        weir_model_free(m);
    }
}

/* hooks/README.md has a row for every point, in firing order. */
static void test_readme(void **state)
{
    static char text[1 << 15];
    FILE *f = fopen("hooks/README.md", "rb");
    (void)state;
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    for (int k = 0; k < KIT_MODELS; k++) {
        weir_model *m = kit_open(kit_models[k]);
        const weir_point *p;
        const char *from = strstr(text, "## The points");
        int64_t n = weir_model_points(m, &p);
        assert_non_null(from);
        for (int64_t i = 0; i < n; i++) {
            char row[128];
            if (p[i].layer > 0)
                continue;
            snprintf(row, sizeof row, p[i].layer < 0 ? "| `%s` " : "| `blocks.L.%s` ",
                     p[i].name + (p[i].layer < 0 ? 0 : 9));
            from = strstr(from, row);
            if (!from)
                fail_msg("no row \"%s\" in its place", row);
            const char *shape = strstr(from, p[i].letters);
            assert_true(shape && shape < strchr(from, '\n'));
        }
        weir_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2),         cmocka_unit_test(test_llama), cmocka_unit_test(test_parallel_and_sandwich),
        cmocka_unit_test(test_normed_heads), cmocka_unit_test(test_list),  cmocka_unit_test(test_readme),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
