/* test_attention: one row at a time, written down plainly, against every way in which the library may come to the same
 * row: tables, threads, prefill in pieces of any length, decode, several sequences in a batch, staged and fused. The
 * caches begin full of NaN. */
#include "attention_plain.h"

/* A sequence of len positions with all its queries, keys and values, and what must come out. */
typedef struct history {
    int64_t len;
    float *q, *k, *v;            /* [len, H or K, D] */
    float *z, *scores, *pattern; /* [len, H, D], [len, H, len]: -inf and 0 where invisible */
} history;

/* Scores, pattern and z of one query. */
static void plain_row(const shape *s, history *h, int64_t pos, int64_t head)
{
    const int64_t kv = head / (s->heads / s->kv_heads), lo = first_key(s, pos);
    const float *q = h->q + (pos * s->heads + head) * s->d;
    float *score = h->scores + (pos * s->heads + head) * h->len, *p = h->pattern + (pos * s->heads + head) * h->len;
    for (int64_t i = 0; i < h->len; i++) {
        score[i] = -INFINITY;
        p[i] = 0.0f;
    }
    plain_pattern(s, q, h->k, pos, kv, score, p);
    for (int64_t c = 0; c < s->d; c++) {
        float acc = 0.0f;
        for (int64_t i = lo; i <= pos; i++)
            acc = fmaf(p[i], h->v[(i * s->kv_heads + kv) * s->d + c], acc);
        h->z[(pos * s->heads + head) * s->d + c] = canonical(acc);
    }
}

static history history_new(const shape *s, int64_t len, int rare)
{
    history h = {.len = len};
    h.q = numbers(len * s->heads * s->d, rare);
    h.k = numbers(len * s->kv_heads * s->d, rare);
    h.v = numbers(len * s->kv_heads * s->d, rare);
    h.z = numbers(len * s->heads * s->d, 0);
    h.scores = numbers(len * s->heads * len, 0);
    h.pattern = numbers(len * s->heads * len, 0);
    for (int64_t pos = 0; pos < len; pos++)
        for (int64_t head = 0; head < s->heads; head++)
            plain_row(s, &h, pos, head);
    return h;
}

static void history_free(history *h)
{
    free(h->q);
    free(h->k);
    free(h->v);
    free(h->z);
    free(h->scores);
    free(h->pattern);
}

/* --- a run through all sequences, in batches of pieces */
typedef struct run {
    const shape *s;
    const history *h;
    int n_seq;
    weir_attn_seq seq[SEQS];
    guarded kp[SEQS], v[SEQS];
} run;

static void run_open(run *r, const shape *s, const history *h, int n_seq)
{
    *r = (run){.s = s, .h = h, .n_seq = n_seq};
    for (int i = 0; i < n_seq; i++) {
        const int64_t cap = h[i].len + pick(0, 60);
        r->kp[i] = guarded_new((int64_t)weir_attn_k_floats(s->kv_heads, s->d, cap), i);
        r->v[i] = guarded_new((int64_t)weir_attn_v_floats(s->kv_heads, s->d, cap), i);
        r->seq[i] = (weir_attn_seq){.cap = cap, .kp = r->kp[i].p, .v = r->v[i].p};
    }
}

static void run_close(run *r)
{
    for (int i = 0; i < r->n_seq; i++) {
        guarded_free(&r->kp[i]);
        guarded_free(&r->v[i]);
    }
}

/* Rows of one of the history's tensors, gathered into the batch. */
static float *gather(const run *r, int64_t rows, int64_t width, const float *(*of)(const history *))
{
    float *p = numbers(rows * width, 0);
    for (int i = 0; i < r->n_seq; i++)
        memcpy(p + r->seq[i].row0 * width, of(&r->h[i]) + r->seq[i].past * width,
               (size_t)(r->seq[i].n * width) * sizeof *p);
    return p;
}
static const float *of_q(const history *h)
{
    return h->q;
}
static const float *of_k(const history *h)
{
    return h->k;
}
static const float *of_v(const history *h)
{
    return h->v;
}

/* A row of scores or pattern: as far as the query, then nothing but `beyond` up to S. */
static void check_row(const weir_attn *a, const char *what, const float *got, const float *want, float beyond,
                      int64_t visible)
{
    SAME(got, want, visible, "%s", what);
    for (int64_t i = visible; i < a->s; i++)
        assert_int_equal(to_bits(got[i]), to_bits(beyond));
}

static void check_batch(const run *r, const weir_attn *a, int way, const char *what)
{
    const int64_t width = a->heads * a->d;
    for (int i = 0; i < r->n_seq; i++) {
        const weir_attn_seq *s = &r->seq[i];
        const history *h = &r->h[i];
        SAME(a->z + s->row0 * width, h->z + s->past * width, s->n * width, "z of %s, sequence %d from %lld, %lld rows",
             what, i, (long long)s->past, (long long)s->n);
        for (int64_t t = 0; way == WAY_STAGED && t < s->n * a->heads; t++) {
            const int64_t at = s->past * a->heads + t, visible = s->past + t / a->heads + 1;
            check_row(a, "scores", a->scores + (s->row0 * a->heads + t) * a->s, h->scores + at * h->len, -INFINITY,
                      visible);
            check_row(a, "pattern", a->pattern + (s->row0 * a->heads + t) * a->s, h->pattern + at * h->len, 0.0f,
                      visible);
        }
    }
}

static void run_batch(run *r, const weir_kern *k, int threads, int64_t rows, int64_t longest, int way)
{
    const shape *s = r->s;
    weir_attn a = {.heads = s->heads,
                   .kv_heads = s->kv_heads,
                   .d = s->d,
                   .scale = s->scale,
                   .softcap = s->softcap,
                   .window = s->window,
                   .seq = r->seq,
                   .n_seq = r->n_seq,
                   .s = longest + pick(0, 20)};
    float *q = gather(r, rows, s->heads * s->d, of_q);
    float *key = gather(r, rows, s->kv_heads * s->d, of_k), *val = gather(r, rows, s->kv_heads * s->d, of_v);
    guarded z = guarded_new(rows * s->heads * s->d, (int)rng() & 15);
    guarded scores = guarded_new(rows * s->heads * a.s, (int)rng() & 15),
            pattern = guarded_new(rows * s->heads * a.s, (int)rng() & 15);
    a.scratch = weir_alloc_aligned(weir_attn_scratch(longest, s->d, threads));
    a.q = q;
    a.z = z.p;
    weir_attn_store(k, threads, &a, key, val);
    if (way == WAY_STAGED) {
        a.scores = scores.p;
        a.pattern = pattern.p;
        weir_attn_scores(k, threads, &a);
        weir_attn_softmax(k, threads, &a);
        weir_attn_mix(k, threads, &a);
    } else {
        weir_attn_fused(k, threads, &a);
    }
    check_batch(r, &a, way, weir_kern_name(k));
    if (way == WAY_STAGED) { /* the pattern may take the place of the scores */
        memcpy(pattern.p, scores.p, (size_t)(rows * s->heads * a.s) * sizeof(float));
        a.scores = pattern.p;
        weir_attn_softmax(k, threads, &a);
        weir_attn_mix(k, threads, &a);
        a.scores = scores.p;
        check_batch(r, &a, way, weir_kern_name(k));
    }
    weir_free_aligned(a.scratch);
    free(q);
    free(key);
    free(val);
    guarded_free(&z);
    guarded_free(&scores);
    guarded_free(&pattern);
}

/* piece 0: everything at once; n: at most n positions a batch, each sequence its own number. */
static void run_all(const shape *s, const history *h, int n_seq, const weir_kern *k, int threads, int64_t piece,
                    int way)
{
    run r;
    run_open(&r, s, h, n_seq);
    for (;;) {
        int64_t rows = 0, longest = 0;
        for (int j = 0; j < n_seq; j++) {
            const int i = n_seq - 1 - j; /* rows of a batch need not follow the list */
            weir_attn_seq *q = &r.seq[i];
            q->past += q->n;
            const int64_t left = h[i].len - q->past;
            q->n = piece ? (left ? pick(1, left < piece ? left : piece) : 0) : left;
            q->row0 = rows;
            rows += q->n;
            longest = longest > q->past + q->n ? longest : q->past + q->n;
        }
        if (!rows)
            break;
        run_batch(&r, k, threads, rows, longest, way);
    }
    run_close(&r);
}

static void check_shape(const shape *s, int64_t longest, int rare)
{
    history h[SEQS];
    const int n_seq = (int)pick(1, SEQS);
    for (int i = 0; i < n_seq; i++)
        h[i] = history_new(s, pick(1, longest), rare);
    static const int64_t pieces[] = {0, 1, 20}; /* 1: decode, mostly on one thread: it is too little to share */
    for (const weir_kern *k = NULL; next_table(&k);)
        for (int p = 0; p < 3; p++)
            for (int way = WAY_FUSED; way <= WAY_STAGED; way++)
                run_all(s, h, n_seq, k, thread_counts[pieces[p] == 1 ? pick(0, 9) == 0 : pick(0, 2)], pieces[p], way);
    for (int i = 0; i < n_seq; i++)
        history_free(&h[i]);
}

static const int64_t head_sizes[] = {1, 2, 5, 8, 12, 16, 17, 20, 32, 33, 47, 48, 49, 64, 80, 96, 100, 128};

static void shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof head_sizes / sizeof head_sizes[0]; i++) {
        const shape s = any_shape(head_sizes[i]);
        check_shape(&s, 55, 0);
    }
}

static void windows(void **state)
{
    (void)state;
    for (int64_t w = 1; w <= 18; w += 1 + w / 9) {
        shape s = any_shape(16);
        s.window = w;
        check_shape(&s, 40, 0);
    }
}

/* A NaN or an infinity in a key or value reaches the rows that see it and no other. */
static void trouble_stays_visible(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        const shape s = any_shape(head_sizes[pick(0, 15)]);
        check_shape(&s, 50, (int)pick(50, 2000));
    }
}

static void long_rows(void **state)
{
    (void)state;
    const shape s = {.heads = 2, .kv_heads = 1, .d = 20, .scale = 0.25f};
    check_shape(&s, 130, 0);
    const shape w = {.heads = 2, .kv_heads = 2, .d = 24, .scale = 0.25f, .window = 70};
    check_shape(&w, 130, 0);
}

/* Against double arithmetic. */
static void accuracy(void **state)
{
    (void)state;
    const shape s = {.heads = 3, .kv_heads = 1, .d = 64, .scale = 0.125f};
    history h = history_new(&s, 120, 0);
    for (int64_t pos = 0; pos < h.len; pos++)
        for (int64_t head = 0; head < s.heads; head++) {
            double e[120], sum = 0, z[64] = {0};
            for (int64_t i = 0; i <= pos; i++) {
                double dot = 0;
                for (int64_t c = 0; c < s.d; c++)
                    dot += (double)h.q[(pos * 3 + head) * 64 + c] * (double)h.k[i * 64 + c];
                sum += e[i] = exp(dot * 0.125);
            }
            for (int64_t i = 0; i <= pos; i++)
                for (int64_t c = 0; c < s.d; c++)
                    z[c] += e[i] / sum * (double)h.v[i * 64 + c];
            for (int64_t c = 0; c < s.d; c++)
                assert_true(fabs((double)h.z[(pos * 3 + head) * 64 + c] - z[c]) < 4e-6);
        }
    history_free(&h);
}

/* Scores that a hook has set to -inf give 0; a row of nothing else gives zeros; writes at invisible keys change
 * nothing. */
static void written_scores(void **state)
{
    (void)state;
    enum { N = 6, D = 4, S = 20 };
    float q[N * D], kv[N * D], z[N * D], scores[N * S], pattern[N * S];
    fill(q, N * D, 0);
    fill(kv, N * D, 0);
    for (const weir_kern *k = NULL; next_table(&k);) {
        guarded kp = guarded_new((int64_t)weir_attn_k_floats(1, D, N), 0),
                v = guarded_new((int64_t)weir_attn_v_floats(1, D, N), 0);
        const weir_attn_seq seq = {.n = N, .cap = N, .kp = kp.p, .v = v.p};
        weir_attn a = {.heads = 1,
                       .kv_heads = 1,
                       .d = D,
                       .scale = 1,
                       .seq = &seq,
                       .n_seq = 1,
                       .q = q,
                       .z = z,
                       .scores = scores,
                       .pattern = pattern,
                       .s = S};
        a.scratch = weir_alloc_aligned(weir_attn_scratch(N, D, 1));
        weir_attn_store(k, 1, &a, kv, kv);
        weir_attn_scores(k, 1, &a);
        scores[3 * S + 1] = -INFINITY;
        for (int i = 0; i < N; i++)
            scores[4 * S + i] = -INFINITY;
        scores[2 * S + 3] = 7.0f; /* the future */
        weir_attn_softmax(k, 1, &a);
        assert_true(pattern[3 * S + 1] == 0 && pattern[3 * S] > 0 && pattern[2 * S + 3] == 0);
        for (int i = 0; i < S; i++)
            assert_int_equal(to_bits(pattern[4 * S + i]), 0);
        assert_true(fabsf(pattern[2 * S] + pattern[2 * S + 1] + pattern[2 * S + 2] - 1) < 1e-6f);
        pattern[1 * S + 2] = 1.0f;
        weir_attn_mix(k, 1, &a);
        for (int c = 0; c < D; c++) {
            assert_true(z[4 * D + c] == 0);
            assert_true(z[D + c] == fmaf(pattern[S + 1], kv[D + c], fmaf(pattern[S], kv[c], 0.0f)));
        }
        weir_free_aligned(a.scratch);
        guarded_free(&kp);
        guarded_free(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(windows),
        cmocka_unit_test(trouble_stays_visible),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(accuracy),
        cmocka_unit_test(written_scores),
        CHECK_TESTS,
    };
    return cmocka_run_group_tests(tests, find_tables, NULL);
}
