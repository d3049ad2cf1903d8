/* Second moments as files: ours, and the .npz that kmeng01/rome publishes. Only the upper triangle is stored, row after
 * row: row i has F - i elements. */
#include <weir/arrays.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "../base/mem.h"
#include "moments.h"

#define FORMAT "weir-moments"
enum { VERSION = 1 };

static int64_t packed_size(int64_t f)
{
    return f * (f + 1) / 2;
}

/* Between the matrix and its packed triangle. */
static void pack(double *packed, double *matrix, int64_t f, bool unpack)
{
    for (int64_t i = 0, at = 0; i < f; at += f - i, i++)
        memcpy(unpack ? matrix + i * f + i : packed + at, unpack ? packed + at : matrix + i * f + i,
               (size_t)(f - i) * sizeof *packed);
}

/* --- writing */

static weir_status put(weir_arrays_out *w, const weir_moments *m, weir_err *err)
{
    const weir_moments_about *a = &m->about;
    const struct {
        const char *name, *text;
    } texts[] = {
        {"weir_version", weir_version()}, {"model", a->model}, {"fingerprint", a->fingerprint}, {"source", a->source}};
    const struct {
        const char *name;
        int64_t v;
    } ints[] = {{"layer", a->layer}, {"width", m->f},       {"count", m->count},      {"docs", a->docs},
                {"shard", a->shard}, {"shards", a->shards}, {"complete", a->complete}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        WEIR_TRY(weir_arrays_put_text(w, "", texts[i].name, texts[i].text, err));
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        WEIR_TRY(weir_arrays_put_int(w, "", ints[i].name, ints[i].v, err));
    const int64_t n = packed_size(m->f);
    double *packed = weir_calloc((size_t)n, sizeof *packed);
    if (!packed)
        return weir_nomem(err, "second moments");
    pack(packed, m->sum, m->f, false);
    const weir_status s = weir_arrays_put(w, "sum", WEIR_ARRAY_F64, 1, &n, packed, err);
    weir_free(packed);
    return s;
}

weir_status weir_moments_write(const weir_moments *m, const char *path, int threads, weir_err *err)
{
    weir_arrays_out *w;
    WEIR_TRY(weir_arrays_create(&w, path, FORMAT, VERSION, threads, err));
    const weir_status s = put(w, m, err);
    if (s == WEIR_OK)
        return weir_arrays_commit(w, err);
    weir_arrays_abort(w);
    weir_err_where(err, path, NULL, -1);
    return s;
}

/* --- reading */

static weir_status get_int(weir_arrays_in *r, const char *name, int64_t low, int64_t high, int64_t *v, weir_err *err)
{
    WEIR_TRY(weir_arrays_get_int(r, "", name, v, err));
    if (*v < low || *v > high)
        return weir_arrays_bad(r, "", err, "its attribute %s is %" PRId64, name, *v);
    return WEIR_OK;
}

static weir_status get_about(weir_arrays_in *r, weir_moments *m, weir_err *err)
{
    static const char *const names[3] = {"model", "fingerprint", "source"};
    char *text[3] = {NULL};
    int64_t complete = 0;
    weir_moments_about a = {0};
    weir_status s = WEIR_OK;
    for (int i = 0; i < 3 && s == WEIR_OK; i++)
        s = weir_arrays_get_text(r, "", names[i], &text[i], err);
    if (s == WEIR_OK)
        s = get_int(r, "layer", 0, INT32_MAX, &a.layer, err);
    if (s == WEIR_OK)
        s = get_int(r, "docs", 0, INT64_MAX, &a.docs, err);
    if (s == WEIR_OK)
        s = get_int(r, "shards", 0, INT32_MAX, &a.shards, err);
    if (s == WEIR_OK)
        s = get_int(r, "shard", 0, a.shards ? a.shards - 1 : 0, &a.shard, err);
    if (s == WEIR_OK)
        s = get_int(r, "complete", 0, 1, &complete, err);
    a.complete = complete, a.model = text[0], a.fingerprint = text[1], a.source = text[2];
    if (s == WEIR_OK)
        s = weir_moments_set_about(m, &a, err);
    for (int i = 0; i < 3; i++)
        weir_free(text[i]);
    return s;
}

static weir_status get_sum(weir_arrays_in *r, weir_moments *m, weir_err *err)
{
    const int64_t n = packed_size(m->f);
    double *packed = weir_calloc((size_t)n, sizeof *packed);
    if (!packed)
        return weir_nomem(err, "second moments");
    const weir_status s = weir_arrays_get(r, "sum", WEIR_ARRAY_F64, 1, &n, packed, err);
    if (s == WEIR_OK)
        pack(packed, m->sum, m->f, true);
    weir_free(packed);
    return s;
}

static weir_status check_sum(weir_arrays_in *r, const weir_moments *m, weir_err *err)
{
    for (int64_t i = 0; i < m->f; i++)
        for (int64_t j = i; j < m->f; j++)
            if (!isfinite(m->sum[i * m->f + j]) || (i == j && m->sum[i * m->f + j] < 0))
                return weir_arrays_bad(r, "sum", err, "is no sum of k k^T: element [%" PRId64 ",%" PRId64 "] is %g", i,
                                       j, m->sum[i * m->f + j]);
    return WEIR_OK;
}

static weir_status get(weir_arrays_in *r, weir_moments **out, weir_err *err)
{
    int64_t f, n;
    WEIR_TRY(get_int(r, "width", 1, WEIR_MOMENTS_MOST, &f, err));
    WEIR_TRY(weir_arrays_shape(r, "sum", WEIR_ARRAY_F64, 1, &n, err));
    if (n != packed_size(f))
        return weir_arrays_bad(r, "sum", err, "has %" PRId64 " elements; a width of %" PRId64 " has %" PRId64, n, f,
                               packed_size(f));
    WEIR_TRY(weir_moments_new(out, f, err));
    WEIR_TRY(get_int(r, "count", 0, INT64_MAX / 2, &(*out)->count, err));
    WEIR_TRY(get_about(r, *out, err));
    WEIR_TRY(get_sum(r, *out, err));
    return check_sum(r, *out, err);
}

weir_status weir_moments_read(weir_moments **out, const char *path, weir_err *err)
{
    weir_arrays_in *r;
    *out = NULL;
    WEIR_TRY(weir_arrays_open(&r, path, FORMAT, VERSION, err));
    const weir_status s = get(r, out, err);
    weir_arrays_close(r);
    if (s != WEIR_OK) {
        weir_moments_free(*out);
        *out = NULL;
        weir_err_where(err, path, NULL, -1);
    }
    return s;
}

bool weir_moments_is_file(const char *path)
{
    return weir_arrays_is(path, FORMAT);
}
