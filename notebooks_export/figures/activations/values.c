/* activations/values.c: rows of a hook, in blocks, and the moments of its columns over the sample. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "activ.h"
#include "cli/say.h"

int weir_activ_fail(const weir_activ *a, weir_err *err)
{
    return weir_cli_fail_at(weir_nb_cli(a->nb), weir_nb_path(a->nb), err);
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

bool weir_activ_flat(const weir_dump_hook *h)
{
    static const char *const deep[] = {"hook_attn_scores", "hook_pattern", "hook_result"};
    char name[256];
    snprintf(name, sizeof name, "%s", h->name);
    if (ends_with(name, "_grad"))
        name[strlen(name) - 5] = '\0';
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++)
        if (ends_with(name, deep[i]))
            return h->units != NULL;
    return true;
}

int weir_activ_counted(const weir_activ *a, int64_t row, int64_t n, bool *counted)
{
    weir_err err = {0};
    int64_t *at = malloc(sizeof *at * (size_t)(n + 1));
    const weir_token_columns want = {.ctx_pos = at};
    if (!at)
        return weir_nb_no_memory(a->nb);
    const weir_status s = n ? weir_dump_read_tokens(a->r, row, n, &want, &err) : WEIR_OK;
    for (int64_t i = 0; s == WEIR_OK && i < n; i++)
        counted[i] = !a->skip_first || at[i] > 0;
    free(at);
    return s == WEIR_OK ? WEIR_EXIT_OK : weir_activ_fail(a, &err);
}

static double norm_of(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

int64_t weir_activ_block(int64_t width)
{
    const int64_t rows = ((int64_t)1 << 22) / (width > 0 ? width : 1);
    return rows < 64 ? 64 : rows > 1024 ? 1024 : rows;
}

int weir_activ_norms(const weir_activ *a, int hook, int64_t row, int64_t n, double *out)
{
    const int64_t width = weir_dump_hook_at(a->r, hook)->width, block = weir_activ_block(width);
    weir_err err = {0};
    weir_status s = WEIR_OK;
    float *x = malloc(sizeof *x * (size_t)(block * width + 1));
    if (!x)
        return weir_nb_no_memory(a->nb);
    for (int64_t at = 0; s == WEIR_OK && at < n; at += block) {
        const int64_t some = n - at < block ? n - at : block;
        s = weir_dump_read(a->r, hook, row + at, some, x, &err);
        for (int64_t i = 0; s == WEIR_OK && i < some; i++)
            out[at + i] = norm_of(x + i * width, width);
    }
    free(x);
    return s == WEIR_OK ? WEIR_EXIT_OK : weir_activ_fail(a, &err);
}

int weir_activ_values(const weir_activ *a, int64_t row, int64_t n, double *out)
{
    weir_err err = {0};
    if (!a->has_unit)
        return weir_activ_norms(a, a->hook, row, n, out);
    float *x = malloc(sizeof *x * (size_t)(n + 1));
    if (!x)
        return weir_nb_no_memory(a->nb);
    const weir_status s = n ? weir_dump_read_column(a->r, a->hook, a->column, row, n, x, &err) : WEIR_OK;
    for (int64_t i = 0; s == WEIR_OK && i < n; i++)
        out[i] = (double)x[i];
    free(x);
    return s == WEIR_OK ? WEIR_EXIT_OK : weir_activ_fail(a, &err);
}

int weir_activ_sample(const weir_activ *a, int hook,
                      int (*each)(void *ctx, int64_t row, int64_t n, const float *x, const bool *counted), void *ctx)
{
    const int64_t width = weir_dump_hook_at(a->r, hook)->width;
    weir_err err = {0};
    int code = WEIR_EXIT_OK;
    float *x = malloc(sizeof *x * (size_t)(a->block * width + 1));
    bool *counted = malloc((size_t)a->block + 1);
    if (!x || !counted)
        code = weir_nb_no_memory(a->nb);
    for (int64_t row = 0; code == WEIR_EXIT_OK && row < a->rows; row += a->step) {
        const int64_t n = a->rows - row < a->block ? a->rows - row : a->block;
        if (weir_dump_read(a->r, hook, row, n, x, &err) != WEIR_OK)
            code = weir_activ_fail(a, &err);
        if (code == WEIR_EXIT_OK)
            code = weir_activ_counted(a, row, n, counted);
        if (code == WEIR_EXIT_OK)
            code = each(ctx, row, n, x, counted);
    }
    free(x);
    free(counted);
    return code;
}

/* --- moments */

typedef struct sums {
    weir_activ_moments *m;
    int64_t width;
    double *shift, *s[4]; /* powers of what lies near zero lose no digits */
    bool begun;
} sums;

/* The shift: the mean of the first block. */
static void begin_sums(sums *t, int64_t n, const float *x, const bool *counted)
{
    for (int64_t c = 0; c < t->width; c++) {
        double sum = 0, many = 0;
        for (int64_t i = 0; i < n; i++) {
            const double v = (double)x[i * t->width + c];
            if (counted[i] && isfinite(v)) {
                sum += v;
                many++;
            }
        }
        t->shift[c] = sum / (many > 0 ? many : 1);
    }
    t->begun = true;
}

static int add_block(void *ctx, int64_t row, int64_t n, const float *x, const bool *counted)
{
    sums *t = ctx;
    weir_activ_moments *m = t->m;
    if (!t->begun)
        begin_sums(t, n, x, counted);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; counted[i] && c < t->width; c++) {
            const double v = (double)x[i * t->width + c], d = v - t->shift[c];
            if (!isfinite(v))
                continue;
            m->n[c]++;
            t->s[0][c] += d;
            t->s[1][c] += d * d;
            t->s[2][c] += d * d * d;
            t->s[3][c] += d * d * d * d;
            m->low[c] = fmin(m->low[c], v);
            if (v > m->high[c]) {
                m->high[c] = v;
                m->highest[c] = row + i;
            }
        }
    return WEIR_EXIT_OK;
}

static void end_sums(const sums *t)
{
    weir_activ_moments *m = t->m;
    for (int64_t c = 0; c < t->width; c++) {
        const double n = (double)m->n[c];
        const double m1 = t->s[0][c] / n, m2 = t->s[1][c] / n, m3 = t->s[2][c] / n, m4 = t->s[3][c] / n;
        const double variance = m2 - m1 * m1 > 1e-9 * m2 ? m2 - m1 * m1 : 0;
        m->mean[c] = m->n[c] ? t->shift[c] + m1 : (double)NAN;
        m->sd[c] = m->n[c] ? sqrt(variance) : (double)NAN;
        m->kurtosis[c] = variance > 0
                             ? (m4 - 4 * m1 * m3 + 6 * m1 * m1 * m2 - 3 * m1 * m1 * m1 * m1) / (variance * variance)
                             : (double)NAN;
    }
}

enum { COLUMNS = 10, KEPT = 5 };

int weir_activ_moments_of(const weir_activ *a, weir_activ_moments *m)
{
    const size_t width = (size_t)a->width;
    double *room = calloc(COLUMNS * width + 1, sizeof *room);
    *m =
        (weir_activ_moments){.n = calloc(width + 1, sizeof *m->n), .highest = malloc(sizeof *m->highest * (width + 1))};
    m->room = room;
    if (!room || !m->n || !m->highest) {
        weir_activ_moments_free(m);
        return weir_nb_no_memory(a->nb);
    }
    double **const kept[KEPT] = {&m->mean, &m->sd, &m->kurtosis, &m->low, &m->high};
    for (size_t i = 0; i < KEPT; i++)
        *kept[i] = room + i * width;
    sums t = {.m = m, .width = a->width, .shift = room + KEPT * width};
    for (size_t i = 0; i < 4; i++)
        t.s[i] = room + (KEPT + 1 + i) * width;
    for (size_t c = 0; c < width; c++) {
        m->low[c] = INFINITY;
        m->high[c] = -INFINITY;
        m->highest[c] = -1;
    }
    const int code = weir_activ_sample(a, a->hook, add_block, &t);
    end_sums(&t);
    if (code != WEIR_EXIT_OK)
        weir_activ_moments_free(m);
    return code;
}

void weir_activ_moments_free(weir_activ_moments *m)
{
    free(m->room);
    free(m->n);
    free(m->highest);
    *m = (weir_activ_moments){0};
}
