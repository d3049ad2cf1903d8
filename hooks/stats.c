/* stats: count, mean, standard deviation, extremes and share above zero, over all text that was run.
 *
 *   stats:post              one line for each layer's neurons together
 *   stats:post[:,0:8]       one line for each of the first eight neurons of each layer
 *
 * Only kept rows count. Values that are not finite (masked scores) are left out. Sums are doubles and go row by row, so
 * that the result does not depend on how the text was cut into passes. */
#include <math.h>
#include <stdlib.h>

#include <weir/hook.h>

/* Moments of what was seen. */
typedef struct moments {
    int64_t n, positive;
    double mean, m2; /* m2: sum of squared distances from the mean */
    float min, max;
} moments;

typedef struct state {
    const weir_point *point;
    int64_t n;
    weir_selector *selector;
    moments **of; /* [n] NULL, or [1], or one for each selected unit */
} state;

static void destroy(void *self)
{
    state *s = self;
    if (!s)
        return;
    for (int64_t i = 0; s->of && i < s->n; i++)
        free(s->of[i]);
    free(s->of);
    weir_selector_free(s->selector);
    free(s);
}

static weir_status make(state *s, const weir_model *m, const char *args, weir_err *err)
{
    WEIR_TRY(weir_selector_build(&s->selector, m, args && *args ? args : "*", NULL, NULL, err));
    s->n = weir_model_points(m, &s->point);
    s->of = calloc((size_t)s->n, sizeof *s->of);
    if (!s->of)
        return weir_fail(err, WEIR_E_NOMEM, "hook stats: out of memory");
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t *idx;
        int64_t units;
        if (!weir_selector_matches(s->selector, &s->point[i]))
            continue;
        weir_selector_units(s->selector, &s->point[i], &idx, &units);
        s->of[i] = calloc((size_t)(units < 0 ? 1 : units), sizeof **s->of);
        if (!s->of[i])
            return weir_fail(err, WEIR_E_NOMEM, "hook stats: out of memory");
    }
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    state *s = calloc(1, sizeof *s);
    *self = NULL;
    if (!s)
        return weir_fail(err, WEIR_E_NOMEM, "hook stats: out of memory");
    weir_status st = make(s, m, args, err);
    if (st) {
        destroy(s);
        return st;
    }
    *self = s;
    return WEIR_OK;
}

static weir_want wants(void *self, const weir_point *p)
{
    const state *s = self;
    return weir_selector_matches(s->selector, p) ? WEIR_READ : WEIR_NONE;
}

/* Joins what was seen before with what is new (Chan, Golub, LeVeque). */
static void merge(moments *a, const moments *b)
{
    if (b->n == 0)
        return;
    if (a->n == 0) {
        *a = *b;
        return;
    }
    double n = (double)(a->n + b->n), d = b->mean - a->mean;
    a->m2 += b->m2 + d * d * ((double)a->n * (double)b->n / n);
    a->mean += d * ((double)b->n / n);
    a->n += b->n;
    a->positive += b->positive;
    a->min = b->min < a->min ? b->min : a->min;
    a->max = b->max > a->max ? b->max : a->max;
}

/* Moments of n values in two passes. */
static moments of_row(const float *x, int64_t n)
{
    moments m = {.min = INFINITY, .max = -INFINITY};
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        m.n++;
        m.positive += x[i] > 0;
        m.mean += x[i];
        m.min = x[i] < m.min ? x[i] : m.min;
        m.max = x[i] > m.max ? x[i] : m.max;
    }
    m.mean = m.n ? m.mean / (double)m.n : 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i]))
            m.m2 += (x[i] - m.mean) * (x[i] - m.mean);
    return m;
}

static void add(moments *m, const float *x, int64_t n)
{
    moments row = of_row(x, n);
    merge(m, &row);
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    const state *s = self;
    moments *m = s->of[v->point - s->point];
    const int64_t *idx;
    int64_t n;
    (void)err;
    weir_selector_units(s->selector, v->point, &idx, &n);
    for (int64_t t = 0; t < v->rows->n; t++) {
        const float *row = v->data + t * v->width;
        if (!v->rows->keep[t] || !weir_selector_row_at(s->selector, v->point, v->rows->doc_pos[t], v->rows->doc_len[t]))
            continue;
        if (n < 0)
            add(m, row, v->width);
        for (int64_t i = 0; i < n; i++) {
            int64_t c = weir_value_column(v, idx[i]);
            if (c >= 0)
                add(&m[i], row + c, 1);
        }
    }
    return WEIR_OK;
}

static void print(FILE *out, const char *name, int64_t unit, const moments *m)
{
    double n = (double)m->n;
    fprintf(out, "%s\t", name);
    if (unit >= 0)
        fprintf(out, "%lld\t", (long long)unit);
    else
        fprintf(out, "all\t");
    if (m->n == 0)
        fprintf(out, "0\t\t\t\t\t\n");
    else
        fprintf(out, "%lld\t%.9g\t%.9g\t%.9g\t%.9g\t%.6f\n", (long long)m->n, m->mean, sqrt(m->m2 / n), (double)m->min,
                (double)m->max, (double)m->positive / n);
}

static weir_status finish(void *self, FILE *out, weir_err *err)
{
    const state *s = self;
    if (!out)
        return WEIR_OK;
    fprintf(out, "hook\tunit\tcount\tmean\tsd\tmin\tmax\tpositive\n");
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t *idx;
        int64_t n;
        if (!s->of[i])
            continue;
        weir_selector_units(s->selector, &s->point[i], &idx, &n);
        if (n < 0)
            print(out, s->point[i].name, -1, s->of[i]);
        for (int64_t u = 0; u < n; u++)
            print(out, s->point[i].name, idx[u], &s->of[i][u]);
    }
    return ferror(out) ? weir_fail(err, WEIR_E_IO, "hook stats: the results could not be written") : WEIR_OK;
}

extern const weir_hook_class weir_hook_stats;
const weir_hook_class weir_hook_stats = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_ANY_ORDER,
    .name = "stats",
    .help = "count, mean, sd, min, max and share above zero over everything that was run",
    .args = "[SEL,...]",
    .create = create,
    .wants = wants,
    .on_value = on_value,
    .finish = finish,
    .destroy = destroy,
};
