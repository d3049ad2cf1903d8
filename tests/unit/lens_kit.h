/* tests/unit/lens_kit.h: what the tests of weir_lens_measure share: small models, rows, results, and the same by brute
 * force in double. */
#ifndef WEIR_TEST_LENS_KIT_H
#define WEIR_TEST_LENS_KIT_H

#include <math.h>

#include <weir/lens.h>

#include "model_families.h"
#include "run_kit.h"
#include "support/said.h"

/* --- models of any vocabulary; the checkpoint's files are removed by lens_model_end */
typedef struct lens_model {
    mf_checkpoint k;
    weir_model *m;
    const weir_model_info *info;
} lens_model;

static inline void lens_model_open(lens_model *t)
{
    mf_write_hf(&t->k);
    t->m = kit_open(t->k.path);
    t->info = weir_model_info_of(t->m);
}

static inline void lens_model_gpt2(lens_model *t, int64_t v)
{
    mf_sizes s = MF_GPT2;
    s.V = v;
    mf_gpt2_hf(&t->k, &s, "F32");
    lens_model_open(t);
}

/* A soft cap of 5 (within which half of the logits are felt), RMS norm with an offset, tied. */
static inline void lens_model_gemma(lens_model *t, int64_t v)
{
    mf_sizes s = MF_GEMMA;
    s.V = v;
    mf_gemma2_hf(&t->k, &s, "F32", "\"final_logit_softcapping\":5.0");
    lens_model_open(t);
}

/* RMS norm, a head of its own. */
static inline void lens_model_llama(lens_model *t, int64_t v)
{
    mf_sizes s = MF_LLAMA;
    s.V = v;
    mf_llama_hf(&t->k, &s, "F32", false, false, "");
    lens_model_open(t);
}

static inline void lens_model_end(lens_model *t)
{
    weir_model_free(t->m);
    mf_remove(&t->k);
}

static inline weir_lens *lens_new(const lens_model *t, const char *kernel, int threads)
{
    weir_err err = {0};
    weir_lens *l;
    kit_ok(weir_lens_new(&l, t->m, kernel, threads, &err), &err);
    return l;
}

/* --- rows: the first ones are far apart, then they come nearer and nearer to the final one */
enum { LENS_ROWS = 6, LENS_TARGETS = 4 };

typedef struct lens_rows {
    float *x[LENS_ROWS]; /* [n,C] */
    int32_t *target;     /* [n,T]: some token, the final row's choice, the last token, none */
    weir_lens_row row[LENS_ROWS];
    weir_lens_what what;
} lens_rows;

static inline void lens_rows_make(lens_rows *w, const weir_model_info *info, int64_t n, int64_t k)
{
    static const float apart[] = {2, 2, 0.5f, 0.02f, 1e-4f, 0};
    static const int prev[] = {-1, 0, 1, 1, 3, 2};
    uint64_t seed = 5;
    *w = (lens_rows){0};
    for (int r = LENS_ROWS - 1; r >= 0; r--) {
        w->x[r] = calloc((size_t)(n * info->C), sizeof(float));
        assert_non_null(w->x[r]);
        for (int64_t i = 0; i < n * info->C; i++) {
            const float noise = (float)kit_random(&seed) * 0x1p-30f - 1;
            w->x[r][i] = r == LENS_ROWS - 1 ? 3 * noise : w->x[LENS_ROWS - 1][i] + apart[r] * noise;
        }
        w->row[r] = (weir_lens_row){w->x[r], prev[r], WEIR_LENS_RECOMPUTE};
    }
    w->target = calloc((size_t)(n * LENS_TARGETS), sizeof *w->target);
    assert_non_null(w->target);
    for (int64_t i = 0; i < n; i++) {
        const int32_t t[LENS_TARGETS] = {(int32_t)(kit_random(&seed) % (uint64_t)info->V), WEIR_LENS_FINAL_TOP,
                                         (int32_t)info->V - 1, -1};
        memcpy(w->target + i * LENS_TARGETS, t, sizeof t);
    }
    w->what = (weir_lens_what){
        .row = w->row, .n_rows = LENS_ROWS, .n = n, .target = w->target, .n_targets = LENS_TARGETS, .k = k};
}

static inline void lens_rows_end(lens_rows *w)
{
    for (int r = 0; r < LENS_ROWS; r++)
        free(w->x[r]);
    free(w->target);
}

/* --- results, in one block of memory, so that memcmp sees them all */
typedef struct lens_results {
    size_t bytes;
    void *all;
    weir_lens_out out;
} lens_results;

static inline void lens_results_make(lens_results *y, const weir_lens_what *w)
{
    const size_t rows = (size_t)(w->n_rows * w->n), targets = rows * (size_t)w->n_targets, tops = rows * (size_t)w->k;
    y->bytes = 4 * (5 * rows + 3 * targets + 2 * tops);
    float *p = y->all = malloc(y->bytes + 4);
    assert_non_null(p);
    memset(p, 0x55, y->bytes);
    y->out = (weir_lens_out){.entropy = p, .kl_final = p + rows, .kl_prev = p + 2 * rows, .jsd = p + 3 * rows};
    p += 4 * rows;
    y->out.log_z = p;
    y->out.logit = p += rows;
    y->out.logprob = p += targets;
    y->out.rank = (int32_t *)(void *)(p += targets);
    y->out.top_id = (int32_t *)(void *)(p += targets);
    y->out.top_logprob = p + tops;
}

static inline void lens_measure(weir_lens *l, const weir_lens_what *w, lens_results *y)
{
    weir_err err = {0};
    lens_results_make(y, w);
    kit_ok(weir_lens_measure(l, w, &y->out, &err), &err);
}

/* --- by brute force */

/* Distribution of one row at one position, of the first v tokens. */
typedef struct brute {
    int64_t v;
    const float *logit;
    double log_z, *ln_p; /* [v] */
} brute;

static inline brute brute_of(const float *logit, int64_t v)
{
    brute b = {.v = v, .logit = logit, .ln_p = calloc((size_t)v, sizeof(double))};
    double max = -INFINITY, sum = 0;
    assert_non_null(b.ln_p);
    for (int64_t i = 0; i < v; i++)
        max = fmax(max, (double)logit[i]);
    for (int64_t i = 0; i < v; i++)
        sum += exp((double)logit[i] - max);
    b.log_z = max + log(sum);
    for (int64_t i = 0; i < v; i++)
        b.ln_p[i] = (double)logit[i] - b.log_z;
    return b;
}

static inline double brute_entropy(const brute *p)
{
    double h = 0;
    for (int64_t i = 0; i < p->v; i++)
        h -= p->ln_p[i] == -INFINITY ? 0 : exp(p->ln_p[i]) * p->ln_p[i];
    return h;
}

static inline double brute_kl(const brute *p, const brute *q)
{
    double d = 0;
    for (int64_t i = 0; i < p->v; i++)
        d += p->ln_p[i] == -INFINITY ? 0 : exp(p->ln_p[i]) * (p->ln_p[i] - q->ln_p[i]);
    return d;
}

/* Through log1p, so that two rows that are nearly the same are told apart. */
static inline double brute_jsd(const brute *p, const brute *q)
{
    double d = 0;
    for (int64_t i = 0; i < p->v; i++) {
        const double a = exp(p->ln_p[i]), b = exp(q->ln_p[i]), r = (a - b) / (a + b);
        if (a + b > 0)
            d += (a + b) / 4 * ((r < 1 ? (1 - r) * log1p(-r) : 0) + (r > -1 ? (1 + r) * log1p(r) : 0));
    }
    return d;
}

static inline int32_t brute_rank(const brute *p, int64_t t)
{
    int32_t rank = 1;
    for (int64_t i = 0; i < p->v; i++)
        rank += p->logit[i] > p->logit[t] || (p->logit[i] == p->logit[t] && i < t);
    return rank;
}

/* got is want, but for rounding to fp32 on the way. */
static inline bool close_to(float got, double want, double tolerance)
{
    if (isnan(want))
        return isnan(got);
    if (isinf(want))
        return isinf(got) && (got > 0) == (want > 0);
    return fabs((double)got - want) <= tolerance;
}

#define LENS_CLOSE(got, want, tolerance)                                                                               \
    do {                                                                                                               \
        const double w_ = (want);                                                                                      \
        if (!close_to(got, w_, tolerance))                                                                             \
            fail_msg("%s is %.9g, not %.9g (V %lld, row %d, position %lld)", #got, (double)(got), w_, (long long)p->v, \
                     row, (long long)at);                                                                              \
    } while (0)

/* Results `at` (row * n + position) against the distributions of the row, the final row and the one before. */
static inline void lens_check_numbers(const weir_lens_out *o, int64_t at, int row, bool final, const brute *p,
                                      const brute *f, const brute *q)
{
    const double h = brute_entropy(p), kf = brute_kl(f, p), kp = q ? brute_kl(p, q) : NAN, j = brute_jsd(p, f);
    LENS_CLOSE(o->log_z[at], p->log_z, 2e-7 * fabs(p->log_z) + 2e-7);
    LENS_CLOSE(o->entropy[at], h, 1e-6 + 2e-6 * h);
    LENS_CLOSE(o->kl_final[at], kf, 1e-6 + 2e-6 * kf);
    LENS_CLOSE(o->kl_prev[at], kp, 1e-6 + 2e-6 * kp);
    /* p and f are known to about 1e-7 of themselves */
    LENS_CLOSE(o->jsd[at], j, 1e-6 * j + 4e-7 * sqrt(j) + 1e-12);
    assert_true(o->jsd[at] >= 0 && (double)o->jsd[at] <= log(2) && o->kl_final[at] >= 0 && o->entropy[at] >= 0);
    if (final)
        assert_true(o->kl_final[at] == 0 && o->jsd[at] == 0);
}

static inline void lens_check_target(const weir_lens_out *o, int64_t at, int row, int32_t t, const brute *p)
{
    if (t < 0) {
        assert_true(isnan(o->logit[at]) && isnan(o->logprob[at]) && o->rank[at] == 0);
        return;
    }
    assert_memory_equal(&o->logit[at], &p->logit[t], sizeof(float));
    LENS_CLOSE(o->logprob[at], p->ln_p[t], 3e-7 * fabs(p->ln_p[t]) + 2e-7);
    assert_int_equal(o->rank[at], brute_rank(p, t));
}

static inline void lens_check_top(const weir_lens_out *o, int64_t at, int row, int64_t k, const brute *p)
{
    for (int64_t i = 0; i < k; i++) {
        const int32_t id = o->top_id[at * k + i];
        assert_in_range(id, 0, p->v - 1);
        assert_int_equal(brute_rank(p, id), i + 1);
        LENS_CLOSE(o->top_logprob[at * k + i], p->ln_p[id], 3e-7 * fabs(p->ln_p[id]) + 2e-7);
    }
}

/* All results of what was measured, against the logits [n_rows, n, ld] of its rows. */
static inline void lens_check(const weir_lens_what *w, const weir_lens_out *o, const float *logits, int64_t ld,
                              int64_t v)
{
    const int last = w->n_rows - 1;
    for (int64_t i = 0; i < w->n; i++) {
        brute b[16];
        for (int r = 0; r <= last; r++)
            b[r] = brute_of(logits + (r * w->n + i) * ld, v);
        for (int r = 0; r <= last; r++) {
            const int64_t at = r * w->n + i;
            const int prev = w->row[r].prev;
            lens_check_numbers(o, at, r, r == last, &b[r], &b[last], prev < 0 ? NULL : &b[prev]);
            lens_check_top(o, at, r, w->k, &b[r]);
            for (int j = 0; j < w->n_targets; j++) {
                int32_t t = w->target[i * w->n_targets + j];
                for (int64_t c = 0; t == WEIR_LENS_FINAL_TOP; c++)
                    t = brute_rank(&b[last], c) == 1 ? (int32_t)c : t;
                lens_check_target(o, at * w->n_targets + j, r, t, &b[r]);
            }
        }
        for (int r = 0; r <= last; r++)
            free(b[r].ln_p);
    }
}

/* Logits [n_rows, n, V] of all rows, whose norm is the lens's. */
static inline float *lens_logits_of(weir_lens *l, const weir_lens_what *w, int64_t v)
{
    weir_err err = {0};
    float *y = malloc((size_t)(w->n_rows * w->n * v) * sizeof *y);
    assert_non_null(y);
    for (int r = 0; r < w->n_rows; r++)
        kit_ok(weir_lens_logits(l, w->row[r].x, w->n, y + r * w->n * v, &err), &err);
    return y;
}

#endif
