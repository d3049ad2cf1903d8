/* test_ops: norms, elementwise operations, rope and log-probabilities: every table against the reference to the bit,
 * stages against the fused pass, and the reference against double arithmetic. */
#include "check.h"

static const int64_t lengths[] = {1,  2,  3,  5,  7,  8,  9,  15, 16, 17, 18, 23, 31, 32,
                                  33, 40, 47, 48, 49, 63, 64, 65, 66, 67, 95, 96, 97, 143};
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

/* One elementwise operation: out from a and b; `in place` operations copy a first. */
typedef struct op {
    const char *name;
    void (*run)(const weir_kern *k, int threads, float *out, const float *a, const float *b, int64_t n);
} op;

static void op_add(const weir_kern *k, int t, float *out, const float *a, const float *b, int64_t n)
{
    weir_op_add(k, t, out, a, b, n);
}
static void op_scale(const weir_kern *k, int t, float *out, const float *a, const float *b, int64_t n)
{
    (void)b;
    memcpy(out, a, (size_t)n * sizeof *a);
    weir_op_scale(k, t, out, 0.37f, n);
}
static void op_softcap(const weir_kern *k, int t, float *out, const float *a, const float *b, int64_t n)
{
    (void)b;
    memcpy(out, a, (size_t)n * sizeof *a);
    weir_op_softcap(k, t, out, 2.5f, n);
}
#define ACT(name, act)                                                                                                 \
    static void name(const weir_kern *k, int t, float *out, const float *a, const float *b, int64_t n)                 \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        weir_op_act(k, t, act, out, a, NULL, n);                                                                       \
    }                                                                                                                  \
    static void name##_gated(const weir_kern *k, int t, float *out, const float *a, const float *b, int64_t n)         \
    {                                                                                                                  \
        weir_op_act(k, t, act, out, a, b, n);                                                                          \
    }
ACT(gelu_erf, WEIR_ACT_GELU_ERF)
ACT(gelu_tanh, WEIR_ACT_GELU_TANH)
ACT(silu, WEIR_ACT_SILU)
ACT(relu, WEIR_ACT_RELU)
ACT(relu2, WEIR_ACT_RELU2)
ACT(quick_gelu, WEIR_ACT_QUICK_GELU)
ACT(identity, WEIR_ACT_IDENTITY)

static const op ops[] = {
    {"add", op_add},
    {"scale", op_scale},
    {"softcap", op_softcap},
    {"gelu_erf", gelu_erf},
    {"gelu_tanh", gelu_tanh},
    {"silu", silu},
    {"relu", relu},
    {"relu2", relu2},
    {"quick_gelu", quick_gelu},
    {"identity", identity},
    {"gelu_erf gated", gelu_erf_gated},
    {"gelu_tanh gated", gelu_tanh_gated},
    {"silu gated", silu_gated},
    {"relu gated", relu_gated},
    {"relu2 gated", relu2_gated},
    {"quick_gelu gated", quick_gelu_gated},
    {"identity gated", identity_gated},
};

static void compare_op(const op *o, int64_t n, int rare)
{
    guarded a = guarded_new(n, (int)rng() & 15), b = guarded_new(n, (int)rng() & 15);
    float *want = malloc((size_t)n * sizeof *want);
    fill(a.p, n, rare);
    fill(b.p, n, rare);
    o->run(ref(), 1, want, a.p, b.p, n);
    assert_true(only_stored_nan(want, n));
    for (const weir_kern *k = NULL; next_table(&k);)
        for (int t = 0; t < 3; t++) {
            guarded out = guarded_new(n, (int)rng() & 15);
            o->run(k, thread_counts[t], out.p, a.p, b.p, n);
            SAME(out.p, want, n, "%s %s n=%lld", o->name, weir_kern_name(k), (long long)n);
            guarded_free(&out);
        }
    /* a part of it is the same as the whole */
    const int64_t from = pick(0, n - 1);
    for (const weir_kern *k = NULL; next_table(&k);) {
        guarded out = guarded_new(n - from, 0);
        o->run(k, 1, out.p, a.p + from, b.p + from, n - from);
        SAME(out.p, want + from, n - from, "%s %s from %lld", o->name, weir_kern_name(k), (long long)from);
        guarded_free(&out);
    }
    free(want);
    guarded_free(&a);
    guarded_free(&b);
}

static void elementwise(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        for (int l = 0; l < N_LENGTHS; l++)
            compare_op(&ops[i], lengths[l], l % 3 * 5);
        compare_op(&ops[i], 40000, 10);
    }
}

/* Every table's functions on every 65 537th float there is. */
static void all_kinds_of_floats(void **state)
{
    (void)state;
    enum { N = 65536 };
    float *x = malloc(N * sizeof *x), *want = malloc(N * sizeof *want), *got = malloc(N * sizeof *got);
    for (uint32_t i = 0; i < N; i++)
        x[i] = from_bits(i * 65537u);
    for (size_t i = 2; i < 9; i++) {
        ops[i].run(ref(), 1, want, x, x, N);
        for (const weir_kern *k = NULL; next_table(&k);) {
            ops[i].run(k, 1, got, x, x, N);
            SAME(got, want, N, "%s %s", ops[i].name, weir_kern_name(k));
        }
    }
    free(x);
    free(want);
    free(got);
}

/* --- norms */
typedef struct norm_out {
    float *scale, *norm, *out;
} norm_out;

static norm_out norm_out_new(int64_t rows, int64_t c)
{
    norm_out o = {malloc((size_t)rows * 4), malloc((size_t)(rows * c) * 4), malloc((size_t)(rows * c) * 4)};
    assert_true(o.scale && o.norm && o.out);
    return o;
}
static void norm_out_free(norm_out *o)
{
    free(o->scale);
    free(o->norm);
    free(o->out);
}

/* The definition in double; errors as a share of the row's largest value. */
static void check_norm(const weir_norm *n, const norm_out *o)
{
    for (int64_t r = 0; r < n->rows; r++) {
        const float *x = n->x + r * n->c;
        double mean = 0, var = 0, top = 0, off = 0;
        for (int64_t i = 0; i < n->c && !n->rms; i++)
            mean += (double)x[i] / (double)n->c;
        for (int64_t i = 0; i < n->c; i++)
            var += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n->c;
        const double scale = sqrt(var + (double)n->eps);
        assert_true(fabs((double)o->scale[r] / scale - 1) < 1e-6);
        for (int64_t i = 0; i < n->c; i++) {
            double y = ((double)x[i] - mean) / scale;
            y = n->w ? y * ((double)n->offset + (double)n->w[i]) : y;
            y = n->b ? y + (double)n->b[i] : y;
            top = fmax(top, fabs(y));
            off = fmax(off, fabs((double)o->out[r * n->c + i] - y));
        }
        assert_true(off <= 3e-6 * fmax(top, 1));
    }
}

static void norm_case(int64_t rows, int64_t c, int rare)
{
    guarded x = guarded_new(rows * c, (int)rng() & 15), w = guarded_new(c, (int)rng() & 15),
            b = guarded_new(c, (int)rng() & 15);
    fill(x.p, rows * c, rare);
    fill(w.p, c, rare);
    fill(b.p, c, rare);
    weir_norm n = {.rms = pick(0, 1), .eps = 1e-5f, .offset = pick(0, 1) ? 1.0f : 0.0f, .rows = rows, .c = c, .x = x.p};
    n.w = pick(0, 4) ? w.p : NULL;
    n.b = pick(0, 1) ? b.p : NULL;
    norm_out want = norm_out_new(rows, c);
    n.scale = want.scale;
    n.norm = want.norm;
    n.out = want.out;
    weir_norm_run(ref(), 1, &n);
    assert_true(only_stored_nan(want.scale, rows) && only_stored_nan(want.norm, rows * c) &&
                only_stored_nan(want.out, rows * c));
    if (!rare && c > 1)
        check_norm(&n, &want);
    for (const weir_kern *k = NULL; next_table(&k);)
        for (int t = 0; t < 3; t++) {
            norm_out got = norm_out_new(rows, c);
            n.scale = got.scale;
            n.norm = got.norm;
            n.out = got.out;
            weir_norm_run(k, thread_counts[t], &n);
            SAME(got.scale, want.scale, rows, "scale %s c=%lld", weir_kern_name(k), (long long)c);
            SAME(got.norm, want.norm, rows * c, "norm %s c=%lld", weir_kern_name(k), (long long)c);
            SAME(got.out, want.out, rows * c, "out %s c=%lld", weir_kern_name(k), (long long)c);
            /* only what is asked for; then stage by stage */
            guarded alone = guarded_new(rows * c, t);
            n.scale = n.norm = NULL;
            n.out = alone.p;
            weir_norm_run(k, thread_counts[t], &n);
            SAME(alone.p, want.out, rows * c, "fused %s", weir_kern_name(k));
            guarded_free(&alone);
            n.out = NULL;
            n.norm = NULL;
            n.scale = got.scale;
            weir_norm_run(k, thread_counts[t], &n);
            n.norm = memset(got.norm, 0, (size_t)(rows * c) * 4);
            weir_norm_from_scale(k, thread_counts[t], &n);
            SAME(got.norm, want.norm, rows * c, "norm from scale %s", weir_kern_name(k));
            n.out = memset(got.out, 0, (size_t)(rows * c) * 4);
            weir_norm_from_norm(k, thread_counts[t], &n);
            SAME(got.out, want.out, rows * c, "out from norm %s", weir_kern_name(k));
            norm_out_free(&got);
        }
    norm_out_free(&want);
    guarded_free(&x);
    guarded_free(&w);
    guarded_free(&b);
}

static void norms(void **state)
{
    (void)state;
    for (int l = 0; l < N_LENGTHS; l++)
        norm_case(pick(1, 5), lengths[l], 0);
    norm_case(70, 768, 0);
    norm_case(33, 577, 0);
    for (int l = 0; l < N_LENGTHS; l++)
        norm_case(pick(1, 9), lengths[l], 30);
}

static void add_then_norm(void **state)
{
    (void)state;
    for (int l = 0; l < N_LENGTHS; l++) {
        const int64_t c = lengths[l], rows = pick(1, 40), all = rows * c;
        float *a = malloc((size_t)all * 4), *b = malloc((size_t)all * 4), *w = malloc((size_t)c * 4);
        float *sum = malloc((size_t)all * 4), *want = malloc((size_t)all * 4), *out = malloc((size_t)all * 4);
        const int rare = l % 2 * 20;
        fill(a, all, rare);
        fill(b, all, rare);
        fill(w, c, rare);
        weir_norm n = {.rms = l % 3 == 0, .eps = 1e-6f, .w = w, .rows = rows, .c = c, .x = sum, .out = want};
        weir_op_add(ref(), 1, sum, a, b, all);
        weir_norm_run(ref(), 1, &n);
        for (const weir_kern *k = NULL; next_table(&k);)
            for (int t = 0; t < 3; t++) {
                guarded dst = guarded_new(all, t);
                n.x = dst.p;
                n.out = out;
                weir_add_norm(k, thread_counts[t], dst.p, a, b, rows, c, &n);
                SAME(dst.p, sum, all, "sum %s", weir_kern_name(k));
                SAME(out, want, all, "norm of sum %s", weir_kern_name(k));
                memcpy(dst.p, a, (size_t)all * 4); /* in place, no norm */
                weir_add_norm(k, thread_counts[t], dst.p, dst.p, b, rows, c, NULL);
                SAME(dst.p, sum, all, "sum in place %s", weir_kern_name(k));
                guarded_free(&dst);
            }
        free(a);
        free(b);
        free(w);
        free(sum);
        free(want);
        free(out);
    }
}

/* --- rope */
static void rope_case(int64_t rows, int64_t heads, int64_t d, int64_t rot, int rare)
{
    const int64_t n = rows * heads * d;
    float *cs = malloc((size_t)(20 * rot) * 4), *freq = malloc((size_t)(rot / 2 + 1) * 4), *x = malloc((size_t)n * 4);
    float *want = malloc((size_t)n * 4);
    int64_t *pos = malloc((size_t)rows * sizeof *pos);
    fill(x, n, rare);
    for (int64_t i = 0; i < rot / 2; i++)
        freq[i] = powf(10000.0f, -2.0f * (float)i / (float)rot);
    weir_rope_table(cs, 20, rot, freq, 1.0f);
    for (int64_t r = 0; r < rows; r++)
        pos[r] = pick(0, 19);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < heads; h++) {
            const float *s = x + (r * heads + h) * d, *c = cs + pos[r] * rot;
            float *y = want + (r * heads + h) * d;
            const int64_t half = rot / 2;
            memcpy(y, s, (size_t)d * 4);
            for (int64_t i = 0; i < half; i++) {
                y[i] = fmaf(s[i], c[i], -(s[i + half] * c[half + i]));
                y[i + half] = fmaf(s[i + half], c[i], s[i] * c[half + i]);
            }
            for (int64_t i = 0; i < rot; i++)
                y[i] = isnan(y[i]) ? from_bits(0x7fc00000u) : y[i];
        }
    for (const weir_kern *k = NULL; next_table(&k);)
        for (int t = 0; t < 3; t++) {
            guarded y = guarded_new(n, t);
            weir_op_rope(k, thread_counts[t], y.p, x, rows, heads, d, rot, cs, pos);
            SAME(y.p, want, n, "rope %s d=%lld rot=%lld", weir_kern_name(k), (long long)d, (long long)rot);
            memcpy(y.p, x, (size_t)n * 4);
            weir_op_rope(k, thread_counts[t], y.p, y.p, rows, heads, d, rot, cs, pos);
            SAME(y.p, want, n, "rope in place %s", weir_kern_name(k));
            guarded_free(&y);
        }
    free(cs);
    free(freq);
    free(x);
    free(want);
    free(pos);
}

static void rope(void **state)
{
    (void)state;
    static const int64_t shape[][2] = {{2, 2},   {4, 2},   {6, 6},   {8, 4},   {20, 10},  {33, 32},
                                       {64, 64}, {64, 16}, {66, 66}, {80, 32}, {128, 128}};
    for (int i = 0; i < 11; i++)
        for (int rare = 0; rare <= 15; rare += 15)
            rope_case(pick(1, 7), pick(1, 5), shape[i][0], shape[i][1], rare);
    rope_case(300, 9, 64, 64, 0);
}

/* --- log-probabilities */
static void logprob_case(int64_t rows, int64_t v, int rare)
{
    const int64_t ld = v + pick(0, 3);
    float *x = malloc((size_t)(rows * ld) * 4), *want = malloc((size_t)rows * 4), *got = malloc((size_t)rows * 4);
    int32_t *target = malloc((size_t)rows * sizeof *target);
    fill(x, rows * ld, rare);
    for (int64_t r = 0; r < rows; r++)
        target[r] = (int32_t)pick(-1, v - 1);
    weir_op_logprob(ref(), 1, want, x, ld, rows, v, target);
    assert_true(only_stored_nan(want, rows));
    for (int64_t r = 0; r < rows; r++) {
        double max = -INFINITY, sum = 0;
        for (int64_t i = 0; i < v; i++)
            max = fmax(max, (double)x[r * ld + i]);
        for (int64_t i = 0; i < v; i++)
            sum += exp((double)x[r * ld + i] - max);
        if (target[r] < 0)
            assert_true(isnan(want[r]));
        else if (!rare)
            assert_true(fabs((double)want[r] - ((double)x[r * ld + target[r]] - max - log(sum))) < 2e-6);
    }
    for (const weir_kern *k = NULL; next_table(&k);)
        for (int t = 0; t < 3; t++) {
            weir_op_logprob(k, thread_counts[t], got, x, ld, rows, v, target);
            SAME(got, want, rows, "logprob %s v=%lld", weir_kern_name(k), (long long)v);
        }
    free(x);
    free(want);
    free(got);
    free(target);
}

static void logprob(void **state)
{
    (void)state;
    for (int l = 0; l < N_LENGTHS; l++)
        for (int rare = 0; rare <= 40; rare += 20)
            logprob_case(pick(1, 9), lengths[l], rare);
    logprob_case(5, 1023, 0);
    logprob_case(5, 1025, 0);
    logprob_case(7, 50257, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise),
        cmocka_unit_test(all_kinds_of_floats),
        cmocka_unit_test(norms),
        cmocka_unit_test(add_then_norm),
        cmocka_unit_test(rope),
        cmocka_unit_test(logprob),
        CHECK_TESTS,
    };
    return cmocka_run_group_tests(tests, find_tables, NULL);
}
