/* stats: count, mean, standard deviation, extremes and share above zero, over all text that was run.
 *
 *   stats:post              one line for each layer's neurons together
 *   stats:post[:,0:8]       one line for each of the first eight neurons of each layer
 *   stats:means.h5=post     besides, a statistics file with the mean and spread of every single neuron
 *                           (weir_stats in weir/record.h), for `ablate:post=mean:means.h5`
 *
 * Only kept rows count. Values that are not finite (masked scores) are left out. Sums are doubles and go row by row, in
 * the order of the text, so that the result does not depend on how it was cut into passes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/record.h>

/* Moments of what was seen. */
typedef struct moments {
    int64_t n, positive;
    double mean, m2; /* m2: sum of squared distances from the mean */
    float min, max;
} moments;

/* What a statistics file has of one point, for each of its n selected units (all of them, if none was chosen). */
typedef struct columns {
    int64_t n;
    int64_t *count;
    double *mean, *m2;
} columns;

typedef struct state {
    const weir_point *point;
    int64_t n;
    weir_selector *selector;
    moments **of;     /* [n] NULL, or [1], or one for each selected unit */
    weir_stats *file; /* NULL: none was asked for */
    columns *unit;    /* [n] if there is a file */
} state;

static void destroy(void *self)
{
    state *s = self;
    if (!s)
        return;
    for (int64_t i = 0; s->of && i < s->n; i++)
        free(s->of[i]);
    for (int64_t i = 0; s->unit && i < s->n; i++) {
        free(s->unit[i].count);
        free(s->unit[i].mean);
        free(s->unit[i].m2);
    }
    free(s->of);
    free(s->unit);
    weir_stats_abort(s->file);
    weir_selector_free(s->selector);
    free(s);
}

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "hook stats: out of memory");
}

/* "FILE.h5=SEL,..." or "SEL,...". Selectors hold no `=`, names of files may. */
static weir_status read_args(state *s, const weir_model *m, const char *args, weir_err *err)
{
    const char *eq = args ? strrchr(args, '=') : NULL;
    const char *selectors = eq ? eq + 1 : args;
    if (eq && (eq - args < 4 || strncmp(eq - 3, ".h5", 3) != 0 || !eq[1]))
        return weir_fail(err, WEIR_E_ARG, "stats:%s: a statistics file is written as stats:FILE.h5=SEL,...", args);
    WEIR_TRY(weir_selector_build(&s->selector, m, selectors && *selectors ? selectors : "*", NULL, NULL, err));
    if (!eq)
        return WEIR_OK;
    char *path = strndup(args, (size_t)(eq - args));
    weir_status st = path ? weir_stats_create(&s->file, path, m, err) : no_memory(err);
    free(path);
    return st;
}

static weir_status make_columns(columns *c, int64_t n, weir_err *err)
{
    c->n = n;
    c->count = calloc((size_t)n, sizeof *c->count);
    c->mean = calloc((size_t)n, sizeof *c->mean);
    c->m2 = calloc((size_t)n, sizeof *c->m2);
    return c->count && c->mean && c->m2 ? WEIR_OK : no_memory(err);
}

static weir_status make(state *s, const weir_model *m, const char *args, weir_err *err)
{
    WEIR_TRY(read_args(s, m, args, err));
    s->n = weir_model_points_all(m, &s->point);
    s->of = calloc((size_t)s->n, sizeof *s->of);
    s->unit = s->file ? calloc((size_t)s->n, sizeof *s->unit) : NULL;
    if (!s->of || (s->file && !s->unit))
        return no_memory(err);
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t *idx;
        int64_t units;
        if (!weir_selector_matches(s->selector, &s->point[i]))
            continue;
        weir_selector_units(s->selector, &s->point[i], &idx, &units);
        s->of[i] = calloc((size_t)(units < 0 ? 1 : units), sizeof **s->of);
        if (!s->of[i])
            return no_memory(err);
        if (s->file)
            WEIR_TRY(make_columns(&s->unit[i], units < 0 ? s->point[i].width : units, err));
    }
    return WEIR_OK;
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    state *s = calloc(1, sizeof *s);
    *self = NULL;
    if (!s)
        return no_memory(err);
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

/* Statistics are of all the text or of none: rows that an interrupted run has recorded are not run again. */
static weir_status on_dump(void *self, struct weir_dump *d, weir_err *err)
{
    const state *s = self;
    bool begun = weir_dump_rows_done(d) > 0;
    for (int64_t i = 0; i < s->n; i++)
        begun |= weir_dump_point_rows(d, &s->point[i]) > 0;
    if (!begun)
        return WEIR_OK;
    return weir_fail(err, WEIR_E_ARG, "hook stats would miss the rows that are recorded already: resume without it");
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

/* One value more (Welford). */
static void add_unit(columns *c, int64_t i, float x)
{
    if (!isfinite(x))
        return;
    double d = x - c->mean[i];
    c->mean[i] += d / (double)++c->count[i];
    c->m2[i] += d * (x - c->mean[i]);
}

/* idx[n]: the selected elements; n = -1: all. */
static void add_units(columns *c, const weir_value *v, const float *row, const int64_t *idx, int64_t n)
{
    for (int64_t i = 0; i < c->n; i++) {
        int64_t column = weir_value_column(v, n < 0 ? i : idx[i]);
        if (column >= 0)
            add_unit(c, i, row[column]);
    }
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
        if (s->file)
            add_units(&s->unit[v->point - s->point], v, row, idx, n);
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

static weir_status write_file(state *s, weir_err *err)
{
    weir_status st = WEIR_OK;
    for (int64_t i = 0; !st && i < s->n; i++) {
        columns *c = &s->unit[i];
        weir_stats_item item = {&s->point[i], NULL, c->n, c->count, c->mean, c->m2};
        int64_t n;
        if (!s->of[i])
            continue;
        weir_selector_units(s->selector, &s->point[i], &item.units, &n);
        if (n < 0)
            item.units = NULL;
        for (int64_t u = 0; u < c->n; u++)
            if (c->count[u] == 0)
                c->mean[u] = c->m2[u] = NAN;
        st = weir_stats_add(s->file, &item, err);
    }
    if (!st) {
        st = weir_stats_commit(s->file, err);
        s->file = NULL;
    }
    return st;
}

static weir_status finish(void *self, FILE *out, weir_err *err)
{
    state *s = self;
    if (s->file)
        WEIR_TRY(write_file(s, err));
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
    .flags = WEIR_HOOK_ANY_ORDER | WEIR_HOOK_GRADIENTS,
    .name = "stats",
    .help = "count, mean, sd, min, max and share above zero over everything that was run; each unit's mean to a file",
    .args = "[FILE.h5=][SEL,...]",
    .create = create,
    .wants = wants,
    .on_dump = on_dump,
    .on_value = on_value,
    .finish = finish,
    .destroy = destroy,
};
