/* test_backward_attention: the gradients of one sequence written down plainly, against every way in which the library
 * may come to the same rows: tables, threads, several sequences in a batch, cached keys, the stages and all at once.
 * The plain order itself is checked against float64 and central differences. What is not seen holds NaN. */
#include "attention_plain.h"
#include "kernels/backward.h"

/* A sequence: `past` cached positions, then those of the pass, for which there are dz and what must come out. */
typedef struct history {
    int64_t len, past;
    float *q, *k, *v, *dz;               /* [len, H or K, D] */
    float *dq, *dk, *dv;                 /* the same; rows of the pass only */
    float *scores, *pattern, *d_s, *d_p; /* [len, H, len] */
} history;

/* Everything of one query, and its steps of the chains of dk and dv. g: [len] */
static void plain_row(const shape *s, history *h, int64_t pos, int64_t head, float *g)
{
    const int64_t kv = head / (s->heads / s->kv_heads), lo = first_key(s, pos), d = s->d;
    const int64_t at = pos * s->heads + head, width = s->kv_heads * d;
    const float *q = h->q + at * d, *dz = h->dz + at * d;
    float *score = h->scores + at * h->len, *p = h->pattern + at * h->len, *ds = h->d_s + at * h->len,
          *dp = h->d_p + at * h->len;
    plain_pattern(s, q, h->k, pos, kv, score, p);
    vf lane = v_set(0.0f);
    for (int64_t i = lo; i <= pos; i++) {
        dp[i] = canonical(dot(dz, h->v + i * width + kv * d, d));
        lane.f[i % 16] = fmaf(p[i], dp[i], lane.f[i % 16]);
    }
    const float mean = v_fold_add(lane);
    for (int64_t i = lo; i <= pos; i++) {
        ds[i] = canonical(p[i] * (dp[i] - mean));
        const float t = s->softcap > 0 ? score[i] / s->softcap : 0.0f;
        g[i] = (s->softcap > 0 ? ds[i] * fmaf(-t, t, 1.0f) : ds[i]) * s->scale;
    }
    for (int64_t c = 0; c < d; c++) {
        float acc = 0.0f;
        for (int64_t i = lo; i <= pos; i++) {
            const int64_t kc = i * width + kv * d + c;
            acc = fmaf(g[i], h->k[kc], acc);
            h->dk[kc] = fmaf(g[i], q[c], h->dk[kc]);
            h->dv[kc] = fmaf(p[i], dz[c], h->dv[kc]);
        }
        h->dq[at * d + c] = canonical(acc);
    }
}

static float *zeros(int64_t n)
{
    float *p = calloc((size_t)n, sizeof *p);
    assert_non_null(p);
    return p;
}

static void plain(const shape *s, history *h)
{
    float *g = zeros(h->len);
    const int64_t kd = h->len * s->kv_heads * s->d;
    memset(h->dk, 0, (size_t)kd * sizeof(float));
    memset(h->dv, 0, (size_t)kd * sizeof(float));
    for (int64_t pos = h->past; pos < h->len; pos++)
        for (int64_t head = 0; head < s->heads; head++)
            plain_row(s, h, pos, head, g);
    for (int64_t i = 0; i < kd; i++) {
        h->dk[i] = canonical(h->dk[i]);
        h->dv[i] = canonical(h->dv[i]);
    }
    free(g);
}

static history history_new(const shape *s, int64_t len, int64_t past, int rare)
{
    const int64_t hd = len * s->heads * s->d, kd = len * s->kv_heads * s->d, t = len * s->heads * len;
    history h = {.len = len,
                 .past = past,
                 .q = numbers(hd, rare),
                 .k = numbers(kd, rare),
                 .v = numbers(kd, rare),
                 .dz = numbers(hd, rare),
                 .dq = zeros(hd),
                 .dk = zeros(kd),
                 .dv = zeros(kd),
                 .scores = zeros(t),
                 .pattern = zeros(t),
                 .d_s = zeros(t),
                 .d_p = zeros(t)};
    plain(s, &h);
    return h;
}

static void history_free(history *h)
{
    float *all[] = {h->q, h->k, h->v, h->dz, h->dq, h->dk, h->dv, h->scores, h->pattern, h->d_s, h->d_p};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* --- a pass over several sequences */
typedef struct pass {
    const shape *s;
    const history *h;
    int n_seq;
    int64_t rows, longest;
    weir_attn_seq seq[SEQS];
    guarded kp[SEQS], v[SEQS];
    float *q, *key, *val, *dz;
} pass;

/* Rows [from, to) of each history, gathered into the batch; the last sequence first. */
static void pass_rows(pass *p, bool cached)
{
    p->rows = 0;
    for (int i = p->n_seq; i-- > 0;) {
        weir_attn_seq *s = &p->seq[i];
        s->past = cached ? 0 : p->h[i].past;
        s->n = (cached ? p->h[i].past : p->h[i].len) - s->past;
        s->row0 = p->rows;
        p->rows += s->n;
        p->longest = p->longest > p->h[i].len ? p->longest : p->h[i].len;
    }
    const int64_t hd = p->s->heads * p->s->d, kd = p->s->kv_heads * p->s->d;
    p->q = numbers(p->rows * hd + 1, 0);
    p->dz = numbers(p->rows * hd + 1, 0);
    p->key = numbers(p->rows * kd + 1, 0);
    p->val = numbers(p->rows * kd + 1, 0);
    for (int i = 0; i < p->n_seq; i++) {
        const weir_attn_seq *s = &p->seq[i];
        const history *h = &p->h[i];
        memcpy(p->q + s->row0 * hd, h->q + s->past * hd, (size_t)(s->n * hd) * sizeof(float));
        memcpy(p->dz + s->row0 * hd, h->dz + s->past * hd, (size_t)(s->n * hd) * sizeof(float));
        memcpy(p->key + s->row0 * kd, h->k + s->past * kd, (size_t)(s->n * kd) * sizeof(float));
        memcpy(p->val + s->row0 * kd, h->v + s->past * kd, (size_t)(s->n * kd) * sizeof(float));
    }
}
static void pass_rows_free(pass *p)
{
    free(p->q);
    free(p->dz);
    free(p->key);
    free(p->val);
}

static weir_attn attention_of(const pass *p)
{
    return (weir_attn){.heads = p->s->heads,
                       .kv_heads = p->s->kv_heads,
                       .d = p->s->d,
                       .scale = p->s->scale,
                       .softcap = p->s->softcap,
                       .window = p->s->window,
                       .seq = p->seq,
                       .n_seq = p->n_seq,
                       .q = p->q,
                       .s = p->longest + 3};
}

/* The caches as two passes of the forward leave them; what was never stored is NaN. */
static void pass_open(pass *p, const shape *s, const history *h, int n_seq)
{
    *p = (pass){.s = s, .h = h, .n_seq = n_seq};
    for (int i = 0; i < n_seq; i++) {
        const int64_t cap = h[i].len + pick(0, 60);
        p->kp[i] = guarded_new((int64_t)weir_attn_k_floats(s->kv_heads, s->d, cap), i);
        p->v[i] = guarded_new((int64_t)weir_attn_v_floats(s->kv_heads, s->d, cap), i);
        p->seq[i] = (weir_attn_seq){.cap = cap, .kp = p->kp[i].p, .v = p->v[i].p};
    }
    for (int cached = 1; cached >= 0; cached--) {
        pass_rows(p, cached);
        const weir_attn a = attention_of(p);
        weir_attn_store(ref(), 1, &a, p->key, p->val);
        if (cached)
            pass_rows_free(p);
    }
}
static void pass_close(pass *p)
{
    pass_rows_free(p);
    for (int i = 0; i < p->n_seq; i++) {
        guarded_free(&p->kp[i]);
        guarded_free(&p->v[i]);
    }
}

/* A row [S] of d_scores or d_pattern: 0 where nothing is seen. */
static void check_rows(const pass *p, const weir_attn *a, int i, const float *got, const float *want, const char *what)
{
    const history *h = &p->h[i];
    for (int64_t t = h->past; t < h->len; t++)
        for (int64_t head = 0; head < a->heads; head++) {
            const float *row = got + ((p->seq[i].row0 + t - h->past) * a->heads + head) * a->s;
            const int64_t lo = first_key(p->s, t);
            SAME(row + lo, want + (t * a->heads + head) * h->len + lo, t + 1 - lo, "%s", what);
            for (int64_t j = 0; j < a->s; j++)
                assert_true((j >= lo && j <= t) || to_bits(row[j]) == 0);
        }
}

static void check_pass(const pass *p, const weir_attn_back *b, int way, const char *what)
{
    const int64_t hd = p->s->heads * p->s->d, kd = p->s->kv_heads * p->s->d;
    for (int i = 0; i < p->n_seq; i++) {
        const weir_attn_seq *s = &p->seq[i];
        const history *h = &p->h[i];
        SAME(b->dq + s->row0 * hd, h->dq + s->past * hd, s->n * hd, "dq, %s, way %d, sequence %d", what, way, i);
        SAME(b->dk + s->row0 * kd, h->dk + s->past * kd, s->n * kd, "dk, %s, way %d, sequence %d", what, way, i);
        SAME(b->dv + s->row0 * kd, h->dv + s->past * kd, s->n * kd, "dv, %s, way %d, sequence %d", what, way, i);
        if (way == WAY_STAGED) {
            check_rows(p, b->a, i, b->d_pattern, h->d_p, "d_pattern");
            check_rows(p, b->a, i, b->d_scores, h->d_s, "d_scores");
        }
    }
}

/* What a hook may leave where nothing is seen. */
static void scribble(const pass *p, const weir_attn *a, float *x)
{
    for (int i = 0; i < p->n_seq; i++)
        for (int64_t t = p->h[i].past; t < p->h[i].len; t++)
            for (int64_t j = 0; j < a->heads * a->s; j++)
                if (j % a->s > t || j % a->s < first_key(p->s, t))
                    x[(p->seq[i].row0 + t - p->h[i].past) * a->heads * a->s + j] = NAN;
}

static void stages(const pass *p, const weir_kern *k, int threads, weir_attn *a, weir_attn_back *b)
{
    const int64_t n = p->rows * a->heads * a->s;
    float *scores = numbers(n, 0), *pattern = numbers(n, 0), *d = numbers(n, 0);
    a->scores = scores;
    a->pattern = pattern;
    a->scratch = weir_alloc_aligned(weir_attn_scratch(p->longest, a->d, threads));
    weir_attn_scores(k, threads, a);
    weir_attn_softmax(k, threads, a);
    scribble(p, a, scores);
    scribble(p, a, pattern);
    b->scores = scores;
    b->pattern = pattern;
    weir_attn_mix_backward(k, threads, b);
    memcpy(d, b->d_pattern, (size_t)n * sizeof *d);
    scribble(p, a, b->d_pattern);
    weir_attn_softmax_backward(k, threads, b);
    float *kept = b->d_scores;
    b->d_scores = b->d_pattern; /* in place */
    weir_attn_softmax_backward(k, threads, b);
    SAME(b->d_scores, kept, n, "softmax in place, %s", weir_kern_name(k));
    b->d_scores = kept;
    memcpy(b->d_pattern, kept, (size_t)n * sizeof *d);
    scribble(p, a, b->d_scores);
    weir_attn_scores_backward(k, threads, b);
    memcpy(b->d_scores, b->d_pattern, (size_t)n * sizeof *d);
    memcpy(b->d_pattern, d, (size_t)n * sizeof *d);
    weir_free_aligned(a->scratch);
    free(scores);
    free(pattern);
    free(d);
}

static void backward(const pass *p, const weir_kern *k, int threads, int way)
{
    weir_attn a = attention_of(p);
    const int64_t hd = p->rows * a.heads * a.d, kd = p->rows * a.kv_heads * a.d, t = p->rows * a.heads * a.s;
    guarded dq = guarded_new(hd, (int)rng() & 15), dk = guarded_new(kd, (int)rng() & 15),
            dv = guarded_new(kd, (int)rng() & 15), ds = guarded_new(t, 0), dp = guarded_new(t, 5);
    weir_attn_back b = {.a = &a, .dz = p->dz, .dq = dq.p, .dk = dk.p, .dv = dv.p, .d_scores = ds.p, .d_pattern = dp.p};
    const size_t scratch = weir_attn_back_scratch(p->longest, a.d, a.heads / a.kv_heads, threads);
    b.scratch = weir_alloc_aligned(scratch);
    memset(b.scratch, 0xff, scratch);
    if (way == WAY_STAGED)
        stages(p, k, threads, &a, &b);
    else
        weir_attn_backward(k, threads, &b);
    check_pass(p, &b, way, weir_kern_name(k));
    weir_free_aligned(b.scratch);
    guarded_free(&dq);
    guarded_free(&dk);
    guarded_free(&dv);
    guarded_free(&ds);
    guarded_free(&dp);
}

static void check_shape(const shape *s, int64_t longest, int rare)
{
    history h[SEQS];
    const int n_seq = (int)pick(1, SEQS);
    for (int i = 0; i < n_seq; i++) {
        const int64_t len = pick(1, longest);
        h[i] = history_new(s, len, pick(0, 1) ? pick(0, len) : 0, rare);
    }
    pass p;
    pass_open(&p, s, h, n_seq);
    for (const weir_kern *k = NULL; next_table(&k);)
        for (int way = WAY_FUSED; way <= WAY_STAGED; way++)
            for (int i = 0; i < 1 + (k != ref()); i++)
                backward(&p, k, thread_counts[pick(0, 2)], way);
    pass_close(&p);
    for (int i = 0; i < n_seq; i++)
        history_free(&h[i]);
}

static const int64_t head_sizes[] = {1, 5, 12, 16, 17, 33, 48, 64, 80, 100};
enum { N_SIZES = sizeof head_sizes / sizeof *head_sizes };

static void shapes(void **state)
{
    (void)state;
    for (int i = 0; i < N_SIZES; i++) {
        const shape s = any_shape(head_sizes[i]);
        check_shape(&s, 55, 0);
    }
}

static void windows(void **state)
{
    (void)state;
    for (int64_t w = 1; w <= 18; w += 1 + w / 4) {
        shape s = any_shape(8);
        s.window = w;
        check_shape(&s, 40, 0);
    }
}

/* A NaN or an infinity reaches what it has a part in, and nothing else. */
static void trouble_stays_visible(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const shape s = any_shape(head_sizes[pick(0, 5)]);
        check_shape(&s, 50, (int)pick(300, 5000));
    }
}

/* One sequence, by every number of threads. */
static void check_length(const shape *s, int64_t len, int64_t past)
{
    history h = history_new(s, len, past, 0);
    pass p;
    pass_open(&p, s, &h, 1);
    for (const weir_kern *k = NULL; next_table(&k);)
        for (int t = 0; t < 1 + 2 * (k != ref()); t++)
            backward(&p, k, thread_counts[t], WAY_FUSED);
    pass_close(&p);
    history_free(&h);
}

/* More than one strip, more than one task of keys, more heads than a strip has room for. */
static void long_rows(void **state)
{
    (void)state;
    const shape s = {.heads = 2, .kv_heads = 1, .d = 9, .scale = 0.25f};
    check_length(&s, 150, 0);
    const shape w = {.heads = 2, .kv_heads = 2, .d = 16, .scale = 0.25f, .window = 50};
    check_length(&w, 100, 20);
    const shape g = {.heads = 12, .kv_heads = 1, .d = 6, .scale = 0.25f};
    check_length(&g, 40, 3);
}

/* --- against float64: the sum of z dz, and its derivatives by central differences */
static double *doubles(const float *x, int64_t n)
{
    double *d = malloc((size_t)n * sizeof *d);
    assert_non_null(d);
    for (int64_t i = 0; i < n; i++)
        d[i] = (double)x[i];
    return d;
}

static double scalar_of(const shape *s, const history *h, const double *q, const double *k, const double *v)
{
    double sum = 0, *e = calloc((size_t)h->len, sizeof *e);
    assert_non_null(e);
    for (int64_t t = h->past; t < h->len; t++)
        for (int64_t head = 0; head < s->heads; head++) {
            const int64_t kv = head / (s->heads / s->kv_heads), at = (t * s->heads + head) * s->d;
            double total = 0;
            for (int64_t j = first_key(s, t); j <= t; j++) {
                double x = 0;
                for (int64_t c = 0; c < s->d; c++)
                    x += q[at + c] * k[(j * s->kv_heads + kv) * s->d + c];
                x *= (double)s->scale;
                if (s->softcap > 0)
                    x = (double)s->softcap * tanh(x / (double)s->softcap);
                total += e[j] = exp(x);
            }
            for (int64_t j = first_key(s, t); j <= t; j++)
                for (int64_t c = 0; c < s->d; c++)
                    sum += e[j] / total * v[(j * s->kv_heads + kv) * s->d + c] * (double)h->dz[at + c];
        }
    free(e);
    return sum;
}

/* The largest difference of `got` to the central differences over x, one of q, k, v. */
static double farthest(const shape *s, const history *h, double *q, double *k, double *v, double *x, const float *got,
                       int64_t from, int64_t n)
{
    const double step = 1e-5;
    double most = 0;
    for (int64_t i = from; i < n; i++) {
        const double kept = x[i];
        x[i] = kept + step;
        const double up = scalar_of(s, h, q, k, v);
        x[i] = kept - step;
        const double down = scalar_of(s, h, q, k, v);
        x[i] = kept;
        most = fmax(most, fabs((up - down) / (2 * step) - (double)got[i]));
    }
    return most;
}

static double error_of(const shape *s, const history *h)
{
    const int64_t hd = s->heads * s->d, kd = s->kv_heads * s->d;
    double *q = doubles(h->q, h->len * hd), *k = doubles(h->k, h->len * kd), *v = doubles(h->v, h->len * kd);
    double most = farthest(s, h, q, k, v, q, h->dq, h->past * hd, h->len * hd);
    most = fmax(most, farthest(s, h, q, k, v, k, h->dk, h->past * kd, h->len * kd));
    most = fmax(most, farthest(s, h, q, k, v, v, h->dv, h->past * kd, h->len * kd));
    free(q);
    free(k);
    free(v);
    return most;
}

static void central_differences(void **state)
{
    (void)state;
    const shape all[] = {{.heads = 1, .kv_heads = 1, .d = 3, .scale = 0.7f},
                         {.heads = 4, .kv_heads = 2, .d = 4, .scale = 0.5f, .window = 3},
                         {.heads = 2, .kv_heads = 1, .d = 5, .scale = 1.0f, .softcap = 1.25f}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        history h = history_new(&all[i], 7, i == 2 ? 3 : 0, 0);
        assert_true(error_of(&all[i], &h) < 3e-6);
        h.dk[h.past * all[i].kv_heads * all[i].d] += 1e-5f; /* the checker notices */
        assert_true(error_of(&all[i], &h) > 7e-6);
        history_free(&h);
    }
}

/* A pattern and scores that hooks have written: dv is of the pattern as it was used, the softmax is taken of the scores
 * as they were left, gradients that a hook wrote go on. */
static void written_stages(void **state)
{
    (void)state;
    enum { N = 4, D = 3 };
    const shape s = {.heads = 1, .kv_heads = 1, .d = D, .scale = 1};
    history h = history_new(&s, N, 0, 0);
    pass p;
    pass_open(&p, &s, &h, 1);
    for (const weir_kern *k = NULL; next_table(&k);) {
        weir_attn a = attention_of(&p);
        float pattern[N * (N + 3)] = {0}, scores[N * (N + 3)] = {0}, d_p[N * (N + 3)], d_s[N * (N + 3)];
        float dq[N * D], dk[N * D], dv[N * D];
        weir_attn_back b = {.a = &a, .dz = p.dz, .dq = dq, .dk = dk, .dv = dv, .scores = scores, .pattern = pattern};
        b.d_pattern = d_p;
        b.d_scores = d_s;
        b.scratch = weir_alloc_aligned(weir_attn_back_scratch(N, D, 1, 1));
        pattern[2 * a.s + 1] = 2.0f; /* nothing else is used */
        weir_attn_mix_backward(k, 1, &b);
        for (int c = 0; c < D; c++) {
            assert_true(dv[D + c] == fmaf(0.0f, h.dz[D * 3 + c], fmaf(2.0f, h.dz[2 * D + c], 0.0f)));
            assert_true(dv[c] == 0 && dv[3 * D + c] == 0);
        }
        SAME(d_p + 2 * a.s, h.d_p + 2 * N, 3, "d_pattern");
        for (int i = 0; i < N * (N + 3); i++)
            d_p[i] = 0;
        d_p[3 * a.s] = 1.0f;
        weir_attn_softmax_backward(k, 1, &b); /* equal scores: a quarter each */
        for (int j = 0; j < 4; j++)
            assert_true(fabsf(d_s[3 * a.s + j] - (j ? -0.0625f : 0.1875f)) < 1e-7f);
        assert_true(d_s[2 * a.s] == 0 && d_s[0] == 0);
        for (int i = 0; i < N * (N + 3); i++)
            d_s[i] = 0;
        d_s[1 * a.s] = 3.0f;
        d_s[1 * a.s + 2] = NAN; /* the future */
        weir_attn_scores_backward(k, 1, &b);
        for (int c = 0; c < D; c++)
            assert_true(dq[D + c] == 3.0f * h.k[c] && dk[c] == 3.0f * h.q[D + c] && dq[c] == 0 && dk[2 * D + c] == 0);
        weir_free_aligned(b.scratch);
    }
    pass_close(&p);
    history_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(windows),
        cmocka_unit_test(trouble_stays_visible),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(central_differences),
        cmocka_unit_test(written_stages),
        CHECK_TESTS,
    };
    return cmocka_run_group_tests(tests, find_tables, NULL);
}
