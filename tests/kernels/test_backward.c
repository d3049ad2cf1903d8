/* test_backward: derivatives of norms, activations, RoPE, soft caps and losses: every table against the reference to
 * the bit, stages against the whole, and the reference against central differences of float64 functions written here.
 */
#include "check.h"

#include "kernels/backward.h"

static const int64_t lengths[] = {1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 63, 65, 97, 143};
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

/* The derivative of f at x[i], the others held. */
typedef double function(const double *x, const void *ctx);
static double slope(function *f, double *x, int64_t i, const void *ctx)
{
    const double kept = x[i], step = 1e-5;
    x[i] = kept + step;
    const double up = f(x, ctx);
    x[i] = kept - step;
    const double down = f(x, ctx);
    x[i] = kept;
    return (up - down) / (2 * step);
}

/* The largest difference of got [n] to the derivatives of f. */
static double farthest(function *f, const float *x, int64_t n, const void *ctx, const float *got)
{
    double *wide = malloc((size_t)n * sizeof *wide), most = 0;
    assert_non_null(wide);
    for (int64_t i = 0; i < n; i++)
        wide[i] = (double)x[i];
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(slope(f, wide, i, ctx) - (double)got[i]));
    free(wide);
    return most;
}

static float *numbers(int64_t n, int rare)
{
    float *p = malloc((size_t)n * sizeof *p);
    assert_non_null(p);
    fill(p, n, rare);
    return p;
}

/* --- norms */

/* The sum over a row of the norm's output times dy. */
static double norm_scalar(const double *x, const void *ctx)
{
    const weir_norm_back *n = ctx;
    double mean = 0, square = 0, sum = 0;
    for (int64_t i = 0; i < n->c && !n->rms; i++)
        mean += x[i] / (double)n->c;
    for (int64_t i = 0; i < n->c; i++)
        square += (x[i] - mean) * (x[i] - mean) / (double)n->c;
    const double scale = n->scale ? (double)n->scale[0] : sqrt(square + (double)n->eps);
    for (int64_t i = 0; i < n->c; i++) {
        const double gain = n->w ? (double)n->offset + (double)n->w[i] : 1;
        sum += (x[i] - mean) / scale * gain * (double)n->dy[i];
    }
    return sum;
}

static weir_norm_back some_norm(int64_t rows, int64_t c, const float *x, const float *dy, const float *w)
{
    return (weir_norm_back){.rms = pick(0, 1),
                            .eps = 1e-5f,
                            .offset = pick(0, 1) ? 1.0f : 0.0f,
                            .w = pick(0, 3) ? w : NULL,
                            .rows = rows,
                            .c = c,
                            .x = x,
                            .dy = dy};
}

/* Whole and in stages, apart and in place, added or not. */
static void check_norm(const weir_kern *k, int threads, weir_norm_back n, const float *want, const float *more,
                       const float *sum)
{
    const int64_t all = n.rows * n.c;
    guarded dx = guarded_new(all, threads), d_norm = guarded_new(all, 3), d_scale = guarded_new(n.rows, 1);
    n.dx = dx.p;
    n.d_norm = d_norm.p;
    n.d_scale = d_scale.p;
    weir_norm_backward(k, threads, &n);
    SAME(dx.p, want, all, "dx %s c=%lld", weir_kern_name(k), (long long)n.c);
    weir_norm_back_gain(k, threads, &n);
    weir_norm_back_scale(k, threads, &n);
    assert_true(only_stored_nan(d_norm.p, all) && only_stored_nan(d_scale.p, n.rows));
    weir_norm_back_x(k, threads, &n);
    SAME(dx.p, want, all, "dx in stages %s", weir_kern_name(k));
    n.dx = n.d_norm;
    weir_norm_back_x(k, threads, &n);
    SAME(n.dx, want, all, "dx over d_norm %s", weir_kern_name(k));
    memcpy(dx.p, n.dy, (size_t)all * sizeof(float));
    n.dx = dx.p;
    n.dy = dx.p;
    weir_norm_backward(k, threads, &n);
    SAME(dx.p, want, all, "dx over dy %s", weir_kern_name(k));
    memcpy(dx.p, more, (size_t)all * sizeof(float));
    n.add = true;
    n.dy = d_norm.p; /* holds dx by now: any numbers */
    memcpy(d_norm.p, want, (size_t)all * sizeof(float));
    weir_norm_backward(k, threads, &n);
    SAME(dx.p, sum, all, "dx added %s", weir_kern_name(k));
    guarded_free(&dx);
    guarded_free(&d_norm);
    guarded_free(&d_scale);
}

static void norm_case(int64_t rows, int64_t c, int rare)
{
    const int64_t all = rows * c;
    float *x = numbers(all, rare), *dy = numbers(all, rare), *w = numbers(c, rare), *scale = numbers(rows, 0);
    float *want = numbers(all, 0), *more = numbers(all, 0), *sum = numbers(all, 0), *twice = numbers(all, 0);
    weir_norm_back n = some_norm(rows, c, x, dy, w);
    for (int64_t r = 0; r < rows; r++)
        scale[r] = fabsf(scale[r]) + 0.5f;
    n.scale = pick(0, 1) ? scale : NULL;
    n.dx = want;
    weir_norm_backward(ref(), 1, &n);
    assert_true(only_stored_nan(want, all));
    n.dy = want;
    n.dx = twice;
    weir_norm_backward(ref(), 1, &n);
    weir_op_add(ref(), 1, sum, more, twice, all);
    n.dy = dy;
    for (const weir_kern *k = NULL; next_table(&k);)
        for (int t = 0; t < 3; t++)
            check_norm(k, thread_counts[t], n, want, more, sum);
    float *list[] = {x, dy, w, scale, want, more, sum, twice};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        free(list[i]);
}

static void norms(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * N_LENGTHS; i++)
        norm_case(pick(1, 5), lengths[i % N_LENGTHS], i % 2 * 30);
    norm_case(60, 577, 0);
}

static void norm_differences(void **state)
{
    (void)state;
    enum { C = 19 };
    for (int i = 0; i < 24; i++) {
        float x[C], dy[C], w[C], dx[C];
        fill(x, C, 0);
        fill(dy, C, 0);
        fill(w, C, 0);
        weir_norm_back n = some_norm(1, C, x, dy, w);
        n.dx = dx;
        weir_norm_backward(ref(), 1, &n);
        assert_true(farthest(norm_scalar, x, C, &n, dx) < 4e-6);
        dx[C - 1] += 1e-5f; /* the checker notices */
        assert_true(farthest(norm_scalar, x, C, &n, dx) > 5e-6);
    }
}

/* With a scale that a hook has set, and its gradient taken away, only what divides is left. */
static void written_scale(void **state)
{
    (void)state;
    enum { C = 19 };
    float x[C], dy[C], dx[C], scale = 1.75f, d_scale = 0.0f;
    fill(x, C, 0);
    fill(dy, C, 0);
    for (int rms = 0; rms < 2; rms++) {
        weir_norm_back n = {.rms = rms, .eps = 1e-5f, .rows = 1, .c = C, .x = x, .dy = dy, .scale = &scale};
        n.d_norm = dy;
        n.d_scale = &d_scale;
        n.dx = dx;
        weir_norm_back_x(ref(), 1, &n);
        assert_true(farthest(norm_scalar, x, C, &n, dx) < 2e-6);
        weir_norm_back_scale(ref(), 1, &n);
        double mean = 0, want = 0;
        for (int i = 0; i < C && !rms; i++)
            mean += (double)x[i] / C;
        for (int i = 0; i < C; i++)
            want -= (double)dy[i] * ((double)x[i] - mean) / 1.75 / 1.75;
        assert_true(fabs((double)d_scale - want) < 2e-6);
        d_scale = 0.0f;
    }
}

/* --- activations */
static double act_double(weir_act act, double x)
{
    const double u = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    switch (act) {
    case WEIR_ACT_GELU_ERF:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case WEIR_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(u));
    case WEIR_ACT_SILU:
        return x / (1 + exp(-x));
    case WEIR_ACT_QUICK_GELU:
        return x / (1 + exp(-1.702 * x));
    case WEIR_ACT_RELU:
        return fmax(0, x);
    case WEIR_ACT_RELU2:
        return fmax(0, x) * fmax(0, x);
    case WEIR_ACT_IDENTITY:
        return x;
    }
    return 0;
}

static const weir_act acts[] = {WEIR_ACT_GELU_ERF, WEIR_ACT_GELU_TANH, WEIR_ACT_SILU,
                                WEIR_ACT_RELU,     WEIR_ACT_RELU2,     WEIR_ACT_QUICK_GELU,
                                WEIR_ACT_IDENTITY};
enum { ACTS = sizeof acts / sizeof *acts };

static void act_case(weir_act act, int64_t n, int rare, bool gated)
{
    float *d = numbers(n, rare), *pre = numbers(n, rare), *up = gated ? numbers(n, rare) : NULL;
    float *want = numbers(n, 0), *want_up = numbers(n, 0);
    weir_act_backward(ref(), 1, act, want, want_up, d, pre, up, n);
    assert_true(only_stored_nan(want, n));
    for (const weir_kern *k = NULL; next_table(&k);)
        for (int t = 0; t < 3; t++) {
            guarded got = guarded_new(n, t), got_up = guarded_new(n, t + 3);
            weir_act_backward(k, thread_counts[t], act, got.p, gated ? got_up.p : NULL, d, pre, up, n);
            SAME(got.p, want, n, "d_pre of %d, %s", (int)act, weir_kern_name(k));
            memcpy(got.p, d, (size_t)n * sizeof(float));
            weir_act_backward(k, thread_counts[t], act, got.p, gated ? got_up.p : NULL, got.p, pre, up, n);
            SAME(got.p, want, n, "d_pre over d_post of %d, %s", (int)act, weir_kern_name(k));
            if (gated)
                SAME(got_up.p, want_up, n, "d_up of %d, %s", (int)act, weir_kern_name(k));
            guarded_free(&got);
            guarded_free(&got_up);
        }
    float *list[] = {d, pre, up, want, want_up};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        free(list[i]);
}

static void activations(void **state)
{
    (void)state;
    for (int a = 0; a < ACTS; a++) {
        for (int l = 0; l < N_LENGTHS; l++)
            act_case(acts[a], lengths[l], l % 3 * 5, l % 2);
        act_case(acts[a], 40000, 10, a % 2);
    }
}

/* How far the slope of an activation at x is from the float64 function's. */
static double act_error(weir_act act, float x, float slope_at_x)
{
    const double h = 1e-4;
    return fabs((act_double(act, (double)x + h) - act_double(act, (double)x - h)) / (2 * h) - (double)slope_at_x);
}

static void activation_slopes(void **state)
{
    (void)state;
    enum { N = 4001 };
    float x[N], one[N], d[N], up[N], d_up[N];
    for (int i = 0; i < N; i++) {
        x[i] = ((float)i - 2000.5f) * 0.01f;
        one[i] = 1.0f;
        up[i] = 2.0f;
    }
    for (int a = 0; a < ACTS; a++) {
        weir_act_backward(ref(), 1, acts[a], d, NULL, one, x, NULL, N);
        for (int i = 0; i < N; i++)
            assert_true(act_error(acts[a], x[i], d[i]) < 2e-6 * fmax(1, fabs((double)d[i])));
        assert_true(act_error(acts[a], x[N / 2], d[N / 2] + 1e-5f) > 5e-6); /* the checker notices */
        weir_act_backward(ref(), 1, acts[a], d, d_up, one, x, up, N);
        for (int i = 0; i < N; i++) {
            assert_true(act_error(acts[a], x[i], d[i] / 2) < 2e-6 * fmax(1, fabs((double)d[i])));
            const double y = act_double(acts[a], (double)x[i]);
            assert_true(fabs((double)d_up[i] - y) <= 3e-7 * fmax(fabs((double)x[i]), fabs(y)));
        }
        const float far[] = {-200.0f, 200.0f, NAN};
        weir_act_backward(ref(), 1, acts[a], d, NULL, one, far, NULL, 3);
        assert_true(d[0] == (acts[a] == WEIR_ACT_IDENTITY) && (acts[a] == WEIR_ACT_RELU2 ? d[1] == 400 : d[1] == 1) && isnan(d[2]));
    }
}

/* --- RoPE and soft cap */
static void rope_case(int64_t rows, int64_t heads, int64_t d, int64_t rot, int rare)
{
    const int64_t n = rows * heads * d, half = rot / 2;
    float *cs = numbers(20 * rot, 0), *y = numbers(n, rare), *want = numbers(n, 0);
    int64_t *pos = malloc((size_t)rows * sizeof *pos);
    assert_non_null(pos);
    memcpy(want, y, (size_t)n * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        pos[r] = pick(0, 19);
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < half; i++) {
                const int64_t at = (r * heads + h) * d + i;
                const float c = cs[pos[r] * rot + i], s = cs[pos[r] * rot + half + i], a = y[at], b = y[at + half];
                want[at] = fmaf(a, c, b * s);
                want[at + half] = fmaf(b, c, -(a * s));
                want[at] = isnan(want[at]) ? from_bits(0x7fc00000u) : want[at];
                want[at + half] = isnan(want[at + half]) ? from_bits(0x7fc00000u) : want[at + half];
            }
    }
    for (const weir_kern *k = NULL; next_table(&k);)
        for (int t = 0; t < 3; t++) {
            guarded x = guarded_new(n, t);
            weir_rope_backward(k, thread_counts[t], x.p, y, rows, heads, d, rot, cs, pos);
            SAME(x.p, want, n, "rope %s", weir_kern_name(k));
            memcpy(x.p, y, (size_t)n * sizeof(float));
            weir_rope_backward(k, thread_counts[t], x.p, x.p, rows, heads, d, rot, cs, pos);
            SAME(x.p, want, n, "rope in place %s", weir_kern_name(k));
            guarded_free(&x);
        }
    free(cs);
    free(y);
    free(want);
    free(pos);
}

static void rope(void **state)
{
    (void)state;
    static const int64_t shape[][2] = {{2, 2}, {6, 4}, {20, 10}, {64, 64}, {66, 34}, {80, 32}};
    for (int i = 0; i < 6; i++)
        for (int rare = 0; rare <= 15; rare += 15)
            rope_case(pick(1, 7), pick(1, 5), shape[i][0], shape[i][1], rare);
    rope_case(300, 3, 64, 64, 0);
}

/* (turn x) . y = x . (turn back y): the one is the other's transpose. */
static void rope_is_the_transpose(void **state)
{
    (void)state;
    enum { D = 22, ROT = 16 };
    float cs[ROT], x[D], y[D], turned[D], back[D];
    const float freq[ROT / 2] = {1.0f, 0.5f, 0.25f, 0.125f, 0.7f, 0.3f, 0.01f, 2.0f};
    float angles[4 * ROT];
    weir_rope_table(angles, 4, ROT, freq, 1.25f);
    memcpy(cs, angles + 3 * ROT, sizeof cs);
    fill(x, D, 0);
    fill(y, D, 0);
    weir_op_rope(ref(), 1, turned, x, 1, 1, D, ROT, cs, &(int64_t){0});
    weir_rope_backward(ref(), 1, back, y, 1, 1, D, ROT, cs, &(int64_t){0});
    double there = 0, here = 0;
    for (int i = 0; i < D; i++) {
        there += (double)turned[i] * (double)y[i];
        here += (double)x[i] * (double)back[i];
    }
    assert_true(fabs(there - here) < 4e-6 && fabs(there) > 1e-3);
}

static void softcap(void **state)
{
    (void)state;
    for (int l = 0; l <= N_LENGTHS; l++) {
        const int64_t n = l < N_LENGTHS ? lengths[l] : 40000;
        float *x = numbers(n, l % 2 * 20), *y = numbers(n, 0), *d = numbers(n, l % 3 * 20), *want = numbers(n, 0);
        memcpy(y, x, (size_t)n * sizeof *y);
        memcpy(want, d, (size_t)n * sizeof *y);
        weir_op_softcap(ref(), 1, y, 1.5f, n);
        weir_softcap_backward(ref(), 1, want, y, 1.5f, n);
        assert_true(only_stored_nan(want, n));
        for (int64_t i = 0; i < n && l % 2 == 0 && l % 3 == 0; i++) {
            const double c = cosh((double)x[i] / 1.5);
            assert_true(fabs((double)want[i] - (double)d[i] / (c * c)) < 2e-6);
        }
        for (const weir_kern *k = NULL; next_table(&k);)
            for (int t = 0; t < 3; t++) {
                guarded got = guarded_new(n, t);
                memcpy(got.p, d, (size_t)n * sizeof(float));
                weir_softcap_backward(k, thread_counts[t], got.p, y, 1.5f, n);
                SAME(got.p, want, n, "soft cap %s", weir_kern_name(k));
                guarded_free(&got);
            }
        free(x);
        free(y);
        free(d);
        free(want);
    }
}

/* --- losses */
typedef struct loss {
    weir_loss_row row;
    int64_t v;
} loss;

static double log_sum(const double *x, int64_t v)
{
    double top = x[0], sum = 0;
    for (int64_t i = 0; i < v; i++)
        top = fmax(top, x[i]);
    for (int64_t i = 0; i < v; i++)
        sum += exp(x[i] - top);
    return top + log(sum);
}

static double loss_scalar(const double *x, const void *ctx)
{
    const loss *l = ctx;
    double kl = 0;
    if (l->row.kind == WEIR_ROW_LOGIT)
        return x[l->row.token];
    const double total = log_sum(x, l->v);
    if (l->row.kind == WEIR_ROW_NLL)
        return total - x[l->row.token];
    for (int64_t i = 0; i < l->v; i++)
        kl += exp(x[i] - total) * (x[i] - total - (double)l->row.log_q[i]);
    return kl;
}

static void losses_differentiate(void **state)
{
    (void)state;
    enum { V = 37 };
    for (int i = 0; i < 12; i++) {
        float x[V], d[V], q[V];
        fill(x, V, 0);
        fill(q, V, 0);
        for (int c = 0; c < V; c++)
            q[c] -= 5;
        const loss l = {
            {.kind = (weir_loss_row_kind)(i % 3), .token = (int32_t)pick(0, V - 1), .weight = 1, .log_q = q}, V};
        double value, wide[V];
        for (int c = 0; c < V; c++)
            wide[c] = (double)x[c];
        memcpy(d, x, sizeof d);
        weir_loss_backward(ref(), 1, d, V, 1, V, &l.row, &value);
        assert_true(fabs(value - loss_scalar(wide, &l)) < 3e-6);
        assert_true(farthest(loss_scalar, x, V, &l, d) < 2e-6);
        d[V - 1] += 1e-5f; /* the checker notices */
        assert_true(farthest(loss_scalar, x, V, &l, d) > 5e-6);
    }
}

static void loss_case(int64_t rows, int64_t v, int rare)
{
    const int64_t ld = v + pick(0, 3);
    float *x = numbers(rows * ld, rare), *want = numbers(rows * ld, 0), *q = numbers(v, 0);
    weir_loss_row *row = calloc((size_t)rows, sizeof *row);
    double *value = calloc((size_t)rows, sizeof *value), *got_value = calloc((size_t)rows, sizeof *value);
    assert_true(row && value && got_value);
    for (int64_t r = 0; r < rows; r++)
        row[r] = (weir_loss_row){
            .kind = (weir_loss_row_kind)pick(0, 2), .token = (int32_t)pick(0, v - 1), .weight = normal(), .log_q = q};
    memcpy(want, x, (size_t)(rows * ld) * sizeof *x);
    weir_loss_backward(ref(), 1, want, ld, rows, v, row, value);
    for (int64_t r = 0; r < rows; r++) {
        assert_true(only_stored_nan(want + r * ld, v));
        SAME(want + r * ld + v, x + r * ld + v, ld - v, "what lies behind the columns");
    }
    for (const weir_kern *k = NULL; next_table(&k);)
        for (int t = 0; t < 3; t++) {
            guarded got = guarded_new(rows * ld, t);
            memcpy(got.p, x, (size_t)(rows * ld) * sizeof *x);
            weir_loss_backward(k, thread_counts[t], got.p, ld, rows, v, row, got_value);
            for (int64_t r = 0; r < rows; r++)
                SAME(got.p + r * ld, want + r * ld, v, "loss %s", weir_kern_name(k));
            assert_memory_equal(got_value, value, (size_t)rows * sizeof *value);
            guarded_free(&got);
        }
    free(x);
    free(want);
    free(q);
    free(row);
    free(value);
    free(got_value);
}

static void losses(void **state)
{
    (void)state;
    for (int l = 0; l < N_LENGTHS; l++)
        loss_case(pick(1, 6), lengths[l], l % 2 * 40);
    loss_case(3, 2500, 0);
    loss_case(5, 1100, 700);
}

static void special_rows(void **state)
{
    (void)state;
    enum { V = 20 };
    const float bad[] = {NAN, INFINITY};
    float x[V], q[V];
    double value;
    for (const weir_kern *k = NULL; next_table(&k);) {
        for (int kind = 0; kind < 3; kind += 2) /* NaN whatever the weight */
            for (int i = 0; i < 2; i++) {
                weir_loss_row r = {.kind = (weir_loss_row_kind)kind, .token = 3, .log_q = q};
                fill(x, V, 0);
                fill(q, V, 0);
                x[18] = bad[i];
                weir_loss_backward(k, 1, x, V, 1, V, &r, &value);
                assert_true(isnan(value));
                for (int c = 0; c < V; c++)
                    assert_int_equal(to_bits(x[c]), 0x7fc00000);
            }
        for (int c = 0; c < V; c++) { /* columns without probability have no part */
            x[c] = c < 4 ? 0.0f : -INFINITY;
            q[c] = c < 4 ? logf(0.25f) : -INFINITY;
        }
        weir_loss_backward(k, 1, x, V, 1, V, &(weir_loss_row){.kind = WEIR_ROW_KL, .weight = 1, .log_q = q}, &value);
        assert_true(fabs(value) < 1e-6 && fabsf(x[0]) < 1e-6f && x[4] == 0 && x[19] == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms),
        cmocka_unit_test(norm_differences),
        cmocka_unit_test(written_scale),
        cmocka_unit_test(activations),
        cmocka_unit_test(activation_slopes),
        cmocka_unit_test(rope),
        cmocka_unit_test(rope_is_the_transpose),
        cmocka_unit_test(softcap),
        cmocka_unit_test(losses_differentiate),
        cmocka_unit_test(losses),
        cmocka_unit_test(special_rows),
        CHECK_TESTS,
    };
    return cmocka_run_group_tests(tests, find_tables, NULL);
}
