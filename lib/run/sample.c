/* From logits to the next token: weir/sample.h says which rules, in which order, and where they come from. */
#include <float.h>
#include <math.h>
#include <string.h>

#include <weir/sample.h>

#include "../base/mem.h"
#include "../base/rng.h"
#include "../kernels/kernels.h"

struct weir_sampler {
    weir_sampling o;
    const weir_kern *kern;
    int64_t v;
    float *score;   /* [v] */
    double *weight; /* [v] exp(score - highest); 0: out */
    int32_t *heap;  /* [v] */
    uint8_t *seen;  /* [v] all 0 between calls */
};

void weir_sampling_init(weir_sampling *o)
{
    *o = (weir_sampling){.top_p = 1, .repetition_penalty = 1};
}

weir_status weir_sampling_check(const weir_sampling *o, weir_err *err)
{
    if (!(o->temperature >= 0 && o->temperature <= 1e6f))
        return weir_fail(err, WEIR_E_ARG, "temperature is %g: it must be 0 (greedy) to 1e6", (double)o->temperature);
    if (o->temperature > 0 && o->temperature < 1e-6f)
        return weir_fail(err, WEIR_E_ARG, "temperature is %g, too small to divide by: 0 means greedy",
                         (double)o->temperature);
    if (o->top_k < 0)
        return weir_fail(err, WEIR_E_ARG, "top_k is %lld: it must be 0 (off) or more", (long long)o->top_k);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return weir_fail(err, WEIR_E_ARG, "top_p is %g: it must be above 0 and at most 1 (off)", (double)o->top_p);
    if (!(o->min_p >= 0 && o->min_p <= 1))
        return weir_fail(err, WEIR_E_ARG, "min_p is %g: it must be 0 (off) to 1", (double)o->min_p);
    if (!(o->repetition_penalty > 0 && o->repetition_penalty <= 1e6f))
        return weir_fail(err, WEIR_E_ARG, "repetition_penalty is %g: it must be above 0 (1: off) and at most 1e6",
                         (double)o->repetition_penalty);
    return WEIR_OK;
}

weir_status weir_sampler_new(weir_sampler **out, int64_t v, const weir_sampling *o, weir_err *err)
{
    *out = NULL;
    WEIR_TRY(weir_sampling_check(o, err));
    if (v < 1 || v > INT32_MAX)
        return weir_fail(err, WEIR_E_ARG, "a sampler for %lld tokens: 1 to %d are possible", (long long)v, INT32_MAX);
    weir_sampler *s = weir_calloc(1, sizeof *s);
    if (!s)
        return weir_nomem(err, "a sampler");
    *s = (weir_sampler){.o = *o, .v = v};
    s->score = weir_calloc((size_t)v, sizeof *s->score);
    s->weight = weir_calloc((size_t)v, sizeof *s->weight);
    s->heap = weir_calloc((size_t)v, sizeof *s->heap);
    s->seen = weir_calloc((size_t)v, 1);
    weir_status st = s->score && s->weight && s->heap && s->seen ? WEIR_OK : weir_nomem(err, "a sampler");
    if (st == WEIR_OK)
        st = weir_kern_pick(&s->kern, NULL, err);
    if (st != WEIR_OK) {
        weir_sampler_free(s);
        return st;
    }
    *out = s;
    return WEIR_OK;
}

void weir_sampler_free(weir_sampler *s)
{
    if (!s)
        return;
    weir_free(s->score);
    weir_free(s->weight);
    weir_free(s->heap);
    weir_free(s->seen);
    weir_free(s);
}

/* --- the steps */

/* exp(x) for x <= 0, to about one unit in the last place: 2^k times a Taylor sum. The C library's own may differ from
 * one processor to another. */
static double exp_of(double x)
{
    static const double ln2_hi = 0x1.62e42feep-1, ln2_lo = 0x1.a39ef35793c76p-33, log2e = 0x1.71547652b82fep0;
    enum { TERMS = 14 };
    if (x < -745)
        return 0;
    double k = floor(x * log2e + 0.5), r = (x - k * ln2_hi) - k * ln2_lo, sum = 1;
    for (int i = TERMS; i > 0; i--)
        sum = sum * r / i + 1;
    return ldexp(sum, (int)k);
}

static weir_status copy_scores(weir_sampler *s, const float *logits, weir_err *err)
{
    bool any = false;
    for (int64_t i = 0; i < s->v; i++) {
        if (!(logits[i] < INFINITY)) /* NaN too */
            return weir_fail(err, WEIR_E_ARG, "the logit of token %lld is %s: no token can be chosen", (long long)i,
                             isnan(logits[i]) ? "not a number" : "infinite");
        any = any || logits[i] > -INFINITY;
    }
    if (!any)
        return weir_fail(err, WEIR_E_ARG, "every logit is -infinity: no token can be chosen");
    memcpy(s->score, logits, (size_t)s->v * sizeof *s->score);
    return WEIR_OK;
}

/* What overflows stays the highest or the lowest of scores, so that -infinity still means that a token is out. */
static float bounded(float x)
{
    return fmaxf(fminf(x, FLT_MAX), -FLT_MAX);
}

static void penalise(weir_sampler *s, const int32_t *ids, int64_t n)
{
    const float r = s->o.repetition_penalty;
    if (r == 1)
        return;
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= s->v || s->seen[ids[i]])
            continue;
        float *x = &s->score[ids[i]];
        *x = *x == -INFINITY ? *x : bounded(*x < 0 ? *x * r : *x / r);
        s->seen[ids[i]] = 1;
    }
    for (int64_t i = 0; i < n; i++)
        if (ids[i] >= 0 && ids[i] < s->v)
            s->seen[ids[i]] = 0;
}

static int32_t highest(const weir_sampler *s)
{
    int64_t best = 0;
    for (int64_t i = 1; i < s->v; i++)
        if (s->score[i] > s->score[best])
            best = i;
    return (int32_t)best;
}

/* --- a heap of tokens: the likeliest on top, of equals the lowest id */

static bool before(const weir_sampler *s, int32_t a, int32_t b)
{
    return s->score[a] > s->score[b] || (s->score[a] == s->score[b] && a < b);
}

static void sift(weir_sampler *s, int64_t at, int64_t n)
{
    int32_t *h = s->heap, id = h[at];
    for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && before(s, h[child + 1], h[child]))
            child++;
        if (!before(s, h[child], id))
            break;
        h[at] = h[child];
        at = child;
    }
    h[at] = id;
}

/* All tokens that are not out; returns how many. */
static int64_t heap_up(weir_sampler *s)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->v; i++)
        if (s->score[i] > -INFINITY)
            s->heap[n++] = (int32_t)i;
    for (int64_t i = n / 2; i-- > 0;)
        sift(s, i, n);
    return n;
}

static int32_t pop(weir_sampler *s, int64_t *n)
{
    int32_t top = s->heap[0];
    s->heap[0] = s->heap[--*n];
    if (*n)
        sift(s, 0, *n);
    return top;
}

/* --- what stays */

static void keep_top_k(weir_sampler *s)
{
    float least = -INFINITY;
    if (!s->o.top_k || s->o.top_k >= s->v)
        return;
    int64_t n = heap_up(s);
    for (int64_t i = 0; i < s->o.top_k && n; i++)
        least = s->score[pop(s, &n)];
    for (int64_t i = 0; i < s->v; i++)
        if (s->score[i] < least)
            s->score[i] = -INFINITY;
}

/* weight = exp(score - highest); returns their sum, in the order of the ids. */
static double weigh(weir_sampler *s)
{
    double sum = 0, top = s->score[highest(s)];
    for (int64_t i = 0; i < s->v; i++) {
        s->weight[i] = exp_of(s->score[i] - top);
        sum += s->weight[i];
    }
    return sum;
}

static void keep_top_p(weir_sampler *s)
{
    if (s->o.top_p == 1)
        return;
    const double enough = s->o.top_p * weigh(s);
    double sum = 0;
    int64_t n = heap_up(s);
    while (n && sum < enough)
        sum += s->weight[pop(s, &n)];
    for (int64_t i = 0; i < n; i++)
        s->score[s->heap[i]] = -INFINITY;
}

static void keep_min_p(weir_sampler *s)
{
    if (s->o.min_p == 0)
        return;
    weigh(s);
    for (int64_t i = 0; i < s->v; i++)
        if (s->weight[i] < s->o.min_p) /* the likeliest has weight 1 */
            s->score[i] = -INFINITY;
}

/* Steps 1 to 5, in s->score. */
static weir_status filter(weir_sampler *s, const float *logits, const int32_t *ids, int64_t n, weir_err *err)
{
    WEIR_TRY(copy_scores(s, logits, err));
    penalise(s, ids, n);
    if (s->o.temperature == 0)
        return WEIR_OK;
    for (int64_t i = 0; i < s->v; i++)
        s->score[i] = s->score[i] == -INFINITY ? -INFINITY : bounded(s->score[i] / s->o.temperature);
    keep_top_k(s);
    keep_top_p(s);
    keep_min_p(s);
    return WEIR_OK;
}

/* --- the calls */

/* The number of [0, 1) of a stream and a step. */
static double unit_of(uint64_t seed, uint64_t stream, uint64_t step)
{
    uint64_t state = seed;
    state = weir_rng_next(&state) + stream;
    state = weir_rng_next(&state) + step;
    return weir_rng_unit(weir_rng_next(&state));
}

static int32_t draw(weir_sampler *s, double unit)
{
    const double until = unit * weigh(s);
    double sum = 0;
    int32_t last = 0;
    for (int64_t i = 0; i < s->v; i++) {
        if (s->weight[i] == 0)
            continue;
        last = (int32_t)i;
        sum += s->weight[i];
        if (sum > until)
            break;
    }
    return last;
}

weir_status weir_sampler_next(weir_sampler *s, const float *logits, const int32_t *ids, int64_t n, uint64_t stream,
                              uint64_t step, int32_t *id, weir_err *err)
{
    WEIR_TRY(filter(s, logits, ids, n, err));
    *id = s->o.temperature == 0 ? highest(s) : draw(s, unit_of(s->o.seed, stream, step));
    return WEIR_OK;
}

weir_status weir_sampler_scores(weir_sampler *s, const float *logits, const int32_t *ids, int64_t n, float *out,
                                weir_err *err)
{
    WEIR_TRY(filter(s, logits, ids, n, err));
    memcpy(out, s->score, (size_t)s->v * sizeof *out);
    return WEIR_OK;
}

float weir_sampler_logprob(const weir_sampler *s, const float *logits, int32_t id)
{
    float out;
    weir_op_logprob(s->kern, 1, &out, logits, s->v, 1, s->v, &id);
    return out;
}
