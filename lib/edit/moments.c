/* Second moments: adding rows up, and adding shards up. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "../base/mem.h"
#include "../base/parallel.h"
#include "../kernels/kern.h"
#include "moments.h"

enum { BLOCK = 64 }; /* rows that are widened and added before the next ones */
enum { ROWS = WEIR_OUTER_ROWS, COLUMNS = WEIR_OUTER_COLUMNS };

weir_status weir_moments_new(weir_moments **out, int64_t f, weir_err *err)
{
    *out = NULL;
    if (f < 1 || f > WEIR_MOMENTS_MOST)
        return weir_fail(err, WEIR_E_ARG, "second moments of %" PRId64 " neurons: 1 to %d can be", f,
                         (int)WEIR_MOMENTS_MOST);
    weir_moments *m = weir_calloc(1, sizeof *m);
    if (m)
        m->sum = weir_calloc((size_t)f, (size_t)f * sizeof *m->sum);
    if (!m || !m->sum) {
        weir_free(m);
        return weir_nomem(err, "second moments");
    }
    m->f = f;
    const weir_status s = weir_moments_set_about(m, &(weir_moments_about){0}, err);
    if (s != WEIR_OK)
        weir_moments_free(m);
    else
        *out = m;
    return s;
}

void weir_moments_free(weir_moments *m)
{
    if (!m)
        return;
    for (int i = 0; i < 3; i++)
        weir_free(m->text[i]);
    weir_free(m->sum);
    weir_free(m);
}

/* --- adding rows: every element is one chain of rows in ascending order (products are exact), whatever the
 * tiles, threads and calls */

typedef struct block {
    const weir_kern *kern;
    weir_moments *m;
    const double *x; /* strips [F / COLUMNS, rounded up][rows][COLUMNS]: whole rows would share few sets of the cache */
    int64_t rows;
} block;

/* Column j of the block's first row; the next row's is COLUMNS further. */
static const double *column(const block *b, int64_t j)
{
    return b->x + j / COLUMNS * COLUMNS * b->rows + j % COLUMNS;
}

static void pack(const block *b, double *dst, const float *x)
{
    const int64_t f = b->m->f;
    for (int64_t j = 0; j < f; j += COLUMNS)
        for (int64_t t = 0; t < b->rows; t++, dst += COLUMNS)
            for (int64_t c = 0; c < COLUMNS; c++)
                dst[c] = j + c < f ? (double)x[t * f + j + c] : 0;
}

/* Elements [from, to) of row i, one by one. */
static void edge(const block *b, int64_t i, int64_t from, int64_t to)
{
    const double *xi = column(b, i);
    for (int64_t j = from; j < to; j++) {
        const double *xj = column(b, j);
        double sum = b->m->sum[i * b->m->f + j];
        for (int64_t t = 0; t < b->rows; t++)
            sum += xi[t * COLUMNS] * xj[t * COLUMNS];
        b->m->sum[i * b->m->f + j] = sum;
    }
}

/* ROWS rows of the matrix, from the diagonal on. */
static void add_band(void *ctx, int64_t band, int thread)
{
    const block *b = ctx;
    const int64_t f = b->m->f, i = band * ROWS, rows = f - i < ROWS ? f - i : ROWS;
    const int64_t first = (i + rows + COLUMNS - 1) / COLUMNS * COLUMNS; /* the first whole strip behind the diagonal */
    int64_t j = first < f ? first : f;
    (void)thread;
    for (int64_t r = 0; r < rows; r++)
        edge(b, i + r, i + r, j);
    for (; rows == ROWS && j + COLUMNS <= f; j += COLUMNS)
        b->kern->outer(b->m->sum + i * f + j, f, column(b, i), column(b, j), b->rows);
    for (int64_t r = 0; r < rows; r++)
        edge(b, i + r, j, f);
}

weir_status weir_moments_add(weir_moments *m, const float *x, int64_t rows, int threads, weir_err *err)
{
    for (int64_t i = 0; i < rows * m->f; i++)
        if (!isfinite(x[i]))
            return weir_fail(err, WEIR_E_ARG, "neuron %" PRId64 " is %f: second moments need finite keys", i % m->f,
                             (double)x[i]);
    double *wide = weir_calloc(BLOCK, (size_t)(m->f + COLUMNS) * sizeof *wide);
    if (!wide)
        return weir_nomem(err, "second moments");
    for (int64_t t = 0; t < rows; t += BLOCK) {
        const block b = {.kern = weir_kern_best(), .m = m, .x = wide, .rows = rows - t < BLOCK ? rows - t : BLOCK};
        pack(&b, wide, x + t * m->f);
        weir_parallel_for(threads, (m->f + ROWS - 1) / ROWS, 0, add_band, (void *)&b);
    }
    weir_free(wide);
    m->count += rows;
    return WEIR_OK;
}

int64_t weir_moments_width(const weir_moments *m)
{
    return m->f;
}

int64_t weir_moments_count(const weir_moments *m)
{
    return m->count;
}

const double *weir_moments_sum(const weir_moments *m)
{
    return m->sum;
}

/* --- what they are about */

weir_status weir_moments_set_about(weir_moments *m, const weir_moments_about *a, weir_err *err)
{
    const char *given[3] = {a->model, a->fingerprint, a->source};
    char *text[3];
    bool ok = true;
    for (int i = 0; i < 3; i++)
        ok = (text[i] = weir_strndup(given[i] ? given[i] : "", given[i] ? strlen(given[i]) : 0)) && ok;
    for (int i = 0; i < 3; i++) {
        weir_free(ok ? m->text[i] : text[i]);
        if (ok)
            m->text[i] = text[i];
    }
    if (!ok)
        return weir_nomem(err, "second moments");
    m->about = *a;
    m->about.model = text[0], m->about.fingerprint = text[1], m->about.source = text[2];
    return WEIR_OK;
}

const weir_moments_about *weir_moments_about_of(const weir_moments *m)
{
    return &m->about;
}

/* --- shards */

static weir_status check_part(const weir_moments *first, const weir_moments *p, int64_t n, weir_err *err)
{
    const weir_moments_about *a = &first->about, *b = &p->about;
    if (p->f != first->f || a->layer != b->layer)
        return weir_fail(err, WEIR_E_ARG,
                         "second moments of layer %" PRId64 " (%" PRId64 " neurons) and of layer %" PRId64 " (%" PRId64
                         ") cannot be added",
                         a->layer, first->f, b->layer, p->f);
    if (strcmp(a->fingerprint, b->fingerprint) != 0)
        return weir_fail(err, WEIR_E_ARG, "second moments of two models (%s, %s) cannot be added", a->model, b->model);
    if (strcmp(a->source, b->source) != 0)
        return weir_fail(err, WEIR_E_ARG, "second moments over two texts cannot be added");
    if (b->shards != n)
        return weir_fail(err, WEIR_E_ARG, "%" PRId64 " files were given, but one is shard %" PRId64 " of %" PRId64, n,
                         b->shard, b->shards);
    if (!b->complete)
        return weir_fail(err, WEIR_E_ARG, "shard %" PRId64 " is not complete: go on with --resume", b->shard);
    return WEIR_OK;
}

static const weir_moments *shard(const weir_moments *const *part, int64_t n, int64_t i)
{
    for (int64_t j = 0; j < n; j++)
        if (part[j]->about.shard == i)
            return part[j];
    return NULL;
}

static weir_status add_parts(weir_moments *m, const weir_moments *const *part, int64_t n, weir_err *err)
{
    weir_moments_about about = part[0]->about;
    about.docs = about.shard = about.shards = 0;
    for (int64_t i = 0; i < n; i++) {
        const weir_moments *p = shard(part, n, i);
        if (!p)
            return weir_fail(err, WEIR_E_ARG, "shard %" PRId64 " of %" PRId64 " is missing (another was given twice)",
                             i, n);
        for (int64_t k = 0; k < m->f * m->f; k++)
            m->sum[k] += p->sum[k];
        m->count += p->count;
        about.docs += p->about.docs;
    }
    return weir_moments_set_about(m, &about, err);
}

weir_status weir_moments_merge(weir_moments **out, const weir_moments *const *part, int64_t n, weir_err *err)
{
    *out = NULL;
    if (n < 1)
        return weir_fail(err, WEIR_E_ARG, "no second moments to add");
    for (int64_t i = 0; i < n; i++)
        WEIR_TRY(check_part(part[0], part[i], n, err));
    weir_moments *m;
    WEIR_TRY(weir_moments_new(&m, part[0]->f, err));
    const weir_status s = add_parts(m, part, n, err);
    if (s != WEIR_OK)
        weir_moments_free(m);
    else
        *out = m;
    return s;
}
