/* Every family in every format: the weights that a run is given are those that were written, bit by bit, whatever their
 * layout. */
#include <kernels/kernels.h>
#include <model/spec.h>
#include <pthread.h>

#include "model_families.h"

/* --- what a packed matrix holds: y = x W with one-hot x gives its columns, exactly */

/* `row` of weight `value` for output n, as the test expects it. */
typedef struct expected {
    const char *value;
    int64_t first, d, stride; /* row of output n = first + n / d * stride + n % d; d 0: first + n */
} expected;

static int64_t row_of(const expected *e, int64_t n)
{
    return e->d ? e->first + n / e->d * e->stride + n % e->d : e->first + n;
}

/* Differences between a matrix [n, k] and its expectation: 0 when every weight is the expected one. */
static int64_t count_wrong(const weir_linear *w, int64_t n, int64_t k, const expected *e)
{
    const weir_kern *kern;
    weir_err err = {0};
    assert_int_equal(weir_kern_pick(&kern, "ref", &err), WEIR_OK);
    float *x = calloc((size_t)(k * k), 4), *y = calloc((size_t)(k * n), 4);
    void *scratch = NULL;
    assert_int_equal(posix_memalign(&scratch, 64, weir_gemm_scratch(k, k, 1)), 0);
    for (int64_t i = 0; i < k; i++)
        x[i * k + i] = 1;
    weir_gemm g = {
        .m = k, .x = x, .ldx = k, .kn = k, .n_out = 1, .out = {{.w = w->w, .y = y, .ldy = n}}, .scratch = scratch};
    weir_gemm_run(kern, 1, &g);
    int64_t wrong = 0;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < n; j++)
            wrong += y[i * n + j] != mf_value(e->value, row_of(e, j), i);
    free(x);
    free(y);
    free(scratch);
    return wrong;
}

static void check_linear(const weir_linear *w, int64_t n, int64_t k, expected e, bool bias)
{
    char name[96];
    assert_non_null(w->w);
    assert_int_equal(count_wrong(w, n, k, &e), 0);
    assert_int_equal(w->bias != NULL, bias);
    const char *space = strrchr(e.value, ' ');
    snprintf(name, sizeof name, "%.*s bias%s", (int)(space - e.value), e.value, space);
    for (int64_t j = 0; bias && j < n; j++)
        assert_true(w->bias[j] == mf_value(name, row_of(&e, j), 0));
}

static void check_norm(const weir_normw *w, int64_t c, const char *what, int64_t l, bool bias, float plus)
{
    char name[96];
    assert_non_null(w->w);
    assert_int_equal(w->b != NULL, bias);
    for (int64_t j = 0; j < c; j++)
        assert_true(w->w[j] == mf_value(mf_weight(what, l), j, 0) + plus);
    snprintf(name, sizeof name, "%s bias", what);
    for (int64_t j = 0; bias && j < c; j++)
        assert_true(w->b[j] == mf_value(mf_weight(name, l), j, 0));
}

/* --- a whole model */

typedef struct want {
    const mf_sizes *s;
    bool attn_bias, mlp_bias, norm_bias, gated, post, tied, head_norms;
    bool no_o_bias; /* although q, k and v have one */
    int fused;      /* 0: separate, 1: [q;k;v], 2: head by head */
    float plus;     /* of the norms' weights */
} want;

static void check_part(const weir_linear *y, int part, int64_t l, const want *w)
{
    static const char *const NAME[] = {"q", "k", "v"};
    const mf_sizes *s = w->s;
    char name[96];
    expected e = {.value = name};
    snprintf(name, sizeof name, "%s", mf_weight(w->fused ? "qkv" : NAME[part], l));
    if (w->fused == 1)
        e.first = part * s->H * s->D;
    if (w->fused == 2)
        e = (expected){name, part * s->D, s->D, 3 * s->D};
    check_linear(y, (part ? s->K : s->H) * s->D, s->C, e, w->attn_bias);
}

static void check_layer(const weir_layer *y, int64_t l, const want *w)
{
    const mf_sizes *s = w->s;
    char name[96];
    check_part(&y->q, 0, l, w);
    check_part(&y->k, 1, l, w);
    check_part(&y->v, 2, l, w);
    snprintf(name, sizeof name, "%s", mf_weight("o", l));
    check_linear(&y->o, s->C, s->H * s->D, (expected){.value = name}, w->attn_bias && !w->no_o_bias);
    snprintf(name, sizeof name, "%s", mf_weight("pre", l));
    check_linear(&y->pre, s->F, s->C, (expected){.value = name}, w->mlp_bias);
    snprintf(name, sizeof name, "%s", mf_weight("down", l));
    check_linear(&y->down, s->C, s->F, (expected){.value = name}, w->mlp_bias);
    snprintf(name, sizeof name, "%s", mf_weight("up", l));
    if (w->gated)
        check_linear(&y->up, s->F, s->C, (expected){.value = name}, w->mlp_bias);
    else
        assert_null(y->up.w);
    if (w->head_norms) {
        check_norm(&y->q_norm, s->D, "q norm", l, false, 0);
        check_norm(&y->k_norm, s->D, "k norm", l, false, 0);
    } else {
        assert_null(y->q_norm.w);
        assert_null(y->k_norm.w);
    }
    check_norm(&y->ln1, s->C, "ln1", l, w->norm_bias, w->plus);
    check_norm(&y->ln2, s->C, "ln2", l, w->norm_bias, w->plus);
    if (w->post) {
        check_norm(&y->ln1_post, s->C, "ln1 post", l, false, w->plus);
        check_norm(&y->ln2_post, s->C, "ln2 post", l, false, w->plus);
    } else {
        assert_null(y->ln1_post.w);
        assert_null(y->ln2_post.w);
    }
}

static void check_tables(const weir_model *m, const want *w)
{
    const mf_sizes *s = w->s;
    weir_head head;
    weir_normw norm;
    weir_err err = {0};
    float row[256];
    assert_int_equal(weir_model_final(m, &norm, &err), WEIR_OK);
    check_norm(&norm, s->C, "lnf", -1, w->norm_bias, w->plus);
    assert_int_equal(weir_model_head(m, 0, INT64_MAX, &head, &err), WEIR_OK);
    expected e = {.value = w->tied ? "embed" : "head"};
    assert_int_equal(count_wrong(&(weir_linear){.w = head.w}, s->V, s->C, &e), 0);
    assert_int_equal(weir_model_embed_rows(m), s->V);
    for (int32_t id = 0; id < s->V; id++) {
        weir_model_embed_row(m, id, row);
        for (int64_t c = 0; c < s->C; c++)
            assert_true(row[c] == mf_value("embed", id, c));
    }
    for (int64_t p = 0; weir_model_spec(m)->positions == WEIR_POS_LEARNED && p < s->ctx; p++) {
        weir_model_pos_row(m, p, row);
        for (int64_t c = 0; c < s->C; c++)
            assert_true(row[c] == mf_value("pos", p, c));
    }
}

static weir_model *open_ok(const mf_checkpoint *k)
{
    weir_model *m = NULL;
    weir_err err = {0};
    char line[1200];
    if (weir_model_open(&m, k->path, NULL, &err))
        fail_msg("%s", weir_err_line(&err, line, sizeof line));
    return m;
}

static void check_model(mf_checkpoint *k, const want *w)
{
    weir_model *m = open_ok(k);
    weir_err err = {0};
    const weir_model_info *i = weir_model_info_of(m);
    const mf_sizes *s = w->s;
    assert_int_equal(i->L, s->L);
    assert_int_equal(i->C, s->C);
    assert_int_equal(i->F, s->F);
    assert_int_equal(i->H, s->H);
    assert_int_equal(i->K, s->K);
    assert_int_equal(i->D, s->D);
    assert_int_equal(i->V, s->V);
    assert_int_equal(i->ctx, s->ctx);
    assert_int_equal(i->tied, w->tied);
    assert_int_equal(i->gated, w->gated);
    assert_int_equal(weir_model_memory_of(m).panels, 0);
    for (int64_t l = 0; l < s->L; l++) {
        const weir_layer *y, *again;
        assert_int_equal(weir_model_layer(m, l, INT64_MAX, &y, &err), WEIR_OK);
        check_layer(y, l, w);
        assert_int_equal(weir_model_layer(m, l, INT64_MAX, &again, &err), WEIR_OK);
        assert_ptr_equal(y, again);
    }
    check_tables(m, w);
    assert_true(weir_model_memory_of(m).panels > 0);
    assert_int_equal(weir_model_n_tensors(m), k->n);
    weir_model_free(m);
    mf_remove(k);
}

static const char *const TYPES[] = {"F32", "F16", "BF16"};

static void test_gpt2(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta meta;
    want w = {.s = &MF_GPT2, .attn_bias = true, .mlp_bias = true, .norm_bias = true, .tied = true, .fused = 1};
    for (int i = 0; i < 3; i++) {
        mf_gpt2_hf(&k, w.s, TYPES[i]);
        mf_write_hf(&k);
        check_model(&k, &w);
        mf_gpt2_gguf(&k, &meta, w.s, TYPES[i]);
        mf_write_gguf(&k, &meta);
        check_model(&k, &w);
    }
    w.s = &MF_BLOCKS_MHA;
    mf_gpt2_gguf(&k, &meta, w.s, "Q8_0");
    mf_write_gguf(&k, &meta);
    check_model(&k, &w);
}

static void test_gpt2_bare(void **state)
{
    (void)state;
    mf_checkpoint k;
    want w = {.s = &MF_GPT2, .attn_bias = true, .mlp_bias = true, .norm_bias = true, .tied = true, .fused = 1};
    mf_gpt2_hf(&k, w.s, "F32");
    for (int i = 0; i < k.n; i++)
        memmove(k.t[i].name, k.t[i].name + strlen("transformer."), strlen(k.t[i].name) - strlen("transformer.") + 1);
    mf_write_hf(&k);
    check_model(&k, &w);
}

static void test_llama(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta meta;
    for (int i = 0; i < 3; i++)
        for (int flags = 0; flags < 4; flags++) {
            bool bias = flags & 1, tied = flags & 2;
            want w = {.s = &MF_LLAMA, .attn_bias = bias, .mlp_bias = bias, .gated = true, .tied = tied};
            mf_llama_hf(&k, w.s, TYPES[i], bias, tied, "");
            mf_write_hf(&k);
            check_model(&k, &w);
            mf_llama_gguf(&k, &meta, w.s, TYPES[i], bias, tied);
            mf_write_gguf(&k, &meta);
            check_model(&k, &w);
        }
    want w = {.s = &MF_BLOCKS, .attn_bias = true, .mlp_bias = true, .gated = true, .tied = true};
    mf_llama_gguf(&k, &meta, w.s, "Q8_0", true, true);
    mf_write_gguf(&k, &meta);
    check_model(&k, &w);
}

static void test_gemma2(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta meta;
    for (int i = 0; i < 3; i++) {
        want w = {.s = &MF_GEMMA, .gated = true, .post = true, .tied = true};
        mf_gemma2_hf(&k, w.s, TYPES[i], "");
        mf_write_hf(&k);
        check_model(&k, &w);
        w.plus = 1;
        mf_gemma2_gguf(&k, &meta, w.s, TYPES[i]);
        mf_write_gguf(&k, &meta);
        check_model(&k, &w);
    }
}

static void test_qwen(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta meta;
    for (int i = 0; i < 3; i++)
        for (int three = 0; three < 2; three++)
            for (int bias = !three; bias < 2; bias++) { /* Qwen 2 always has them */
                want w = {.s = &MF_LLAMA,
                          .attn_bias = bias,
                          .no_o_bias = !three,
                          .gated = true,
                          .tied = bias,
                          .head_norms = three};
                mf_qwen_hf(&k, w.s, TYPES[i], three, bias, bias, "");
                mf_write_hf(&k);
                check_model(&k, &w);
                mf_qwen_gguf(&k, &meta, w.s, TYPES[i], three, bias, bias);
                mf_write_gguf(&k, &meta);
                check_model(&k, &w);
            }
}

static void test_gpt_neox(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta meta;
    want w = {.s = &MF_NEOX, .attn_bias = true, .mlp_bias = true, .norm_bias = true, .fused = 2};
    for (int i = 0; i < 3; i++) {
        mf_neox_hf(&k, w.s, TYPES[i], "");
        mf_write_hf(&k);
        check_model(&k, &w);
        mf_neox_gguf(&k, &meta, w.s, TYPES[i]);
        mf_write_gguf(&k, &meta);
        check_model(&k, &w);
    }
    w.s = &MF_BLOCKS_MHA;
    mf_neox_gguf(&k, &meta, w.s, "Q8_0");
    mf_write_gguf(&k, &meta);
    check_model(&k, &w);
}

/* The comparison itself must see a wrong order and a wrong weight. */
static void test_comparison_can_fail(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_meta meta;
    const weir_layer *y;
    weir_err err = {0};
    mf_llama_gguf(&k, &meta, &MF_LLAMA, "F32", false, true);
    mf_find(&k, "blk.0.attn_q.weight")->map = MF_AS_IS; /* a writer that forgot to permute */
    mf_write_gguf(&k, &meta);
    weir_model *m = open_ok(&k);
    assert_int_equal(weir_model_layer(m, 0, INT64_MAX, &y, &err), WEIR_OK);
    expected right = {.value = "q 0"}, other_row = {.value = "k 0", .first = 1}, other = {.value = "v 1"};
    assert_true(count_wrong(&y->q, MF_LLAMA.H * MF_LLAMA.D, MF_LLAMA.C, &right) > 0);
    assert_true(count_wrong(&y->k, MF_LLAMA.K * MF_LLAMA.D, MF_LLAMA.C, &other_row) > 0);
    assert_true(count_wrong(&y->v, MF_LLAMA.K * MF_LLAMA.D, MF_LLAMA.C, &other) > 0);
    weir_model_free(m);
    mf_remove(&k);
}

/* --- threads: all are given the same packed layer */

typedef struct racer {
    const weir_model *m;
    const weir_layer *y[2];
    weir_head head;
    weir_status status;
} racer;

static void *race(void *p)
{
    racer *r = p;
    weir_err err = {0};
    for (int64_t l = 0; l < 2; l++)
        if (weir_model_layer(r->m, l, INT64_MAX, &r->y[l], &err))
            r->status = err.code;
    if (weir_model_head(r->m, 0, INT64_MAX, &r->head, &err))
        r->status = err.code;
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_llama_hf(&k, &MF_LLAMA, "F32", true, false, "");
    mf_write_hf(&k);
    for (int round = 0; round < 20; round++) {
        weir_model *m = open_ok(&k);
        racer r[8] = {{0}};
        pthread_t t[8];
        for (int i = 0; i < 8; i++) {
            r[i].m = m;
            assert_int_equal(pthread_create(&t[i], NULL, race, &r[i]), 0);
        }
        for (int i = 0; i < 8; i++)
            pthread_join(t[i], NULL);
        for (int i = 0; i < 8; i++) {
            assert_int_equal(r[i].status, WEIR_OK);
            assert_ptr_equal(r[i].y[0], r[0].y[0]);
            assert_ptr_equal(r[i].y[1]->q.w, r[0].y[1]->q.w);
            assert_ptr_equal(r[i].head.w, r[0].head.w);
        }
        weir_model_free(m);
    }
    mf_remove(&k);
}

/* --- what another room keeps */
static int kept_freed;
static void *make_kept(const weir_model *m)
{
    assert_non_null(m);
    return malloc(1);
}
static void free_kept(void *p)
{
    kept_freed++;
    free(p);
}

static void test_keep(void **state)
{
    (void)state;
    mf_checkpoint k;
    mf_llama_hf(&k, &MF_LLAMA, "F32", false, true, "");
    mf_write_hf(&k);
    weir_model *m = open_ok(&k);
    void *p = weir_model_keep(m, make_kept, free_kept);
    assert_non_null(p);
    assert_ptr_equal(weir_model_keep(m, make_kept, free_kept), p);
    weir_model_free(m);
    assert_int_equal(kept_freed, 1);
    mf_remove(&k);
}

static void test_layer_range(void **state)
{
    (void)state;
    mf_checkpoint k;
    const weir_layer *y;
    mf_llama_hf(&k, &MF_LLAMA, "F32", false, true, "");
    mf_write_hf(&k);
    weir_model *m = open_ok(&k);
    weir_err err = {0};
    assert_int_equal(weir_model_layer(m, 2, INT64_MAX, &y, &err), WEIR_E_ARG);
    assert_non_null(strstr(err.msg, "layer 2 of a model of 2 layers"));
    assert_int_equal(weir_model_layer(m, -1, INT64_MAX, &y, NULL), WEIR_E_ARG);
    assert_null(weir_model_tensor(m, weir_model_n_tensors(m)));
    assert_non_null(weir_model_tensor(m, 0));
    weir_model_free(m);
    weir_model_free(NULL);
    mf_remove(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_gpt2_bare),
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_gemma2),
        cmocka_unit_test(test_qwen),
        cmocka_unit_test(test_gpt_neox),
        cmocka_unit_test(test_comparison_can_fail),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_layer_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
