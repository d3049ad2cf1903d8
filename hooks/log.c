/* log: one line for each selected point of each pass: shape, mean, standard deviation, extremes, first values.
 *
 *   log:resid_post          log:blocks.6.*,hook_embed          log:post[0:8]          log (all points)
 *
 * Only selected elements of kept rows count, and of those the finite ones (masked scores are -inf). Lines wait in a
 * temporary file until finish, so that memory does not grow with the text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/hook.h>

enum { FIRST = 4 };

typedef struct state {
    weir_selector *selector;
    FILE *lines;
    int64_t pass; /* the one that goes on, from 0 */
} state;

typedef struct summary {
    int64_t n;
    double sum, squares; /* about `shift` */
    double shift;        /* the first value: keeps the squares small */
    float min, max;
    float first[FIRST];
} summary;

static void destroy(void *self)
{
    state *s = self;
    if (!s)
        return;
    weir_selector_free(s->selector);
    if (s->lines)
        fclose(s->lines);
    free(s);
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    state *s = calloc(1, sizeof *s);
    *self = NULL;
    if (!s)
        return weir_fail(err, WEIR_E_NOMEM, "hook log: out of memory");
    weir_status st = weir_selector_build(&s->selector, m, args && *args ? args : "*", NULL, NULL, err);
    if (!st && !(s->lines = tmpfile()))
        st = weir_fail(err, WEIR_E_IO, "hook log: no temporary file can be made");
    if (st) {
        destroy(s);
        return st;
    }
    s->pass = -1;
    *self = s;
    return WEIR_OK;
}

static weir_want wants(void *self, const weir_point *p)
{
    const state *s = self;
    return weir_selector_matches(s->selector, p) ? WEIR_READ : WEIR_NONE;
}

static void add(summary *m, float x)
{
    if (!isfinite(x))
        return;
    if (m->n == 0) {
        m->shift = x;
        m->min = m->max = x;
    }
    if (m->n < FIRST)
        m->first[m->n] = x;
    double d = x - m->shift;
    m->n++;
    m->sum += d;
    m->squares += d * d;
    m->min = x < m->min ? x : m->min;
    m->max = x > m->max ? x : m->max;
}

static void summarise(const state *s, const weir_value *v, summary *m, int64_t *rows)
{
    const int64_t *idx;
    int64_t n;
    weir_selector_units(s->selector, v->point, &idx, &n);
    for (int64_t t = 0; t < v->rows->n; t++) {
        const float *row = v->data + t * v->width;
        if (!v->rows->keep[t] || !weir_selector_row_at(s->selector, v->point, v->rows->doc_pos[t], v->rows->doc_len[t]))
            continue;
        ++*rows;
        for (int64_t c = 0; n < 0 && c < v->width; c++)
            add(m, row[c]);
        for (int64_t i = 0; i < n; i++) {
            int64_t c = weir_value_column(v, idx[i]);
            if (c >= 0)
                add(m, row[c]);
        }
    }
}

static void print(FILE *f, int64_t pass, const weir_value *v, const summary *m, int64_t rows)
{
    double mean = m->n ? m->shift + m->sum / (double)m->n : NAN;
    double var = m->n ? (m->squares - m->sum * m->sum / (double)m->n) / (double)m->n : NAN;
    fprintf(f, "%lld\t%s\t%lld,", (long long)pass, v->point->name, (long long)rows);
    if (v->point->rank == 3)
        fprintf(f, "%lld,", (long long)v->heads);
    fprintf(f, "%lld\t%lld\t%.6g\t%.6g\t%.6g\t%.6g\t", (long long)v->size, (long long)m->n, mean,
            sqrt(var > 0 || isnan(var) ? var : 0), m->n ? (double)m->min : NAN, m->n ? (double)m->max : NAN);
    for (int i = 0; i < FIRST && i < m->n; i++)
        fprintf(f, i ? " %.6g" : "%.6g", (double)m->first[i]);
    fputc('\n', f);
}

/* Passes are counted where they begin: the gradients of one come behind its end. */
static weir_status on_begin(void *self, const weir_rows *rows, weir_err *err)
{
    state *s = self;
    (void)rows, (void)err;
    s->pass++;
    return WEIR_OK;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    state *s = self;
    summary m = {0};
    int64_t rows = 0;
    summarise(s, v, &m, &rows);
    print(s->lines, s->pass, v, &m, rows);
    return ferror(s->lines) ? weir_fail(err, WEIR_E_IO, "hook log: the temporary file cannot be written") : WEIR_OK;
}

static weir_status finish(void *self, FILE *out, weir_err *err)
{
    state *s = self;
    char buf[8192];
    size_t n;
    if (!out)
        return WEIR_OK;
    rewind(s->lines);
    fprintf(out, "pass\thook\tshape\tvalues\tmean\tsd\tmin\tmax\tfirst\n");
    while ((n = fread(buf, 1, sizeof buf, s->lines)) > 0)
        fwrite(buf, 1, n, out);
    return ferror(s->lines) || ferror(out) ? weir_fail(err, WEIR_E_IO, "hook log: the lines could not be written")
                                           : WEIR_OK;
}

extern const weir_hook_class weir_hook_log;
const weir_hook_class weir_hook_log = {
    .struct_size = sizeof(weir_hook_class),
    .abi = WEIR_HOOK_ABI,
    .flags = WEIR_HOOK_GRADIENTS,
    .name = "log",
    .help = "a line for each point of each pass: shape, mean, sd, min, max, first values",
    .args = "[SEL,...]",
    .create = create,
    .wants = wants,
    .on_begin = on_begin,
    .on_value = on_value,
    .finish = finish,
    .destroy = destroy,
};
