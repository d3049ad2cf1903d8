/* Statistics that kmeng01/rome published: util/runningstats.py's SecondMoment, saved by numpy. */
#include <inttypes.h>
#include <math.h>

#include "../base/mem.h"
#include "../io/npy.h"
#include "../io/zip.h"
#include "moments.h"

/* One array of the archive, parsed. */
static weir_status open_array(weir_npy *a, weir_zip_member *z, const weir_filemap *m, const char *name, weir_err *err)
{
    WEIR_TRY(weir_zip_find(z, m, name, err));
    const weir_filemap view = {.data = z->data, .size = z->size, .path = m->path};
    if (!weir_npy_is(&view))
        return weir_fail(err, WEIR_E_FORMAT, "is no .npy");
    return weir_npy_parse(a, &view, err);
}

static weir_status get_count(const weir_filemap *m, int64_t *count, weir_err *err)
{
    weir_npy a;
    weir_zip_member z = {0};
    weir_status s = open_array(&a, &z, m, "mom2.count.npy", err);
    if (s == WEIR_OK) {
        const double v = a.n == 1 ? weir_npy_element(&a, 0) : -1;
        *count = (int64_t)v;
        if (!(v >= 1 && v < 9e15 && (double)*count == v))
            s = weir_fail(err, WEIR_E_FORMAT, "mom2.count is %g: a number of keys was expected", v);
    }
    weir_free(z.own);
    return s;
}

/* Its sums were made in float32: the two sides of the diagonal may differ by their rounding, and by no more. */
static bool is_mirrored(const weir_npy *a, int64_t f, int64_t i, int64_t j)
{
    const double v = weir_npy_element(a, i * f + j), w = weir_npy_element(a, j * f + i);
    const double scale = sqrt(weir_npy_element(a, i * f + i) * weir_npy_element(a, j * f + j));
    return fabs(v - w) <= 1e-2 * scale || v == w;
}

static weir_status fill(weir_moments *m, const weir_npy *a, weir_err *err)
{
    const int64_t f = m->f;
    for (int64_t i = 0; i < f; i++)
        for (int64_t j = i; j < f; j++) {
            const double v = weir_npy_element(a, i * f + j);
            if (!isfinite(v) || (i == j && v < 0))
                return weir_fail(err, WEIR_E_FORMAT, "mom2.mom2[%" PRId64 ",%" PRId64 "] is %g: no sum of k k^T", i, j,
                                 v);
            if (!is_mirrored(a, f, i, j))
                return weir_fail(err, WEIR_E_FORMAT,
                                 "mom2.mom2[%" PRId64 ",%" PRId64 "] is %g, and its mirror image %g: no sum of k k^T",
                                 i, j, v, weir_npy_element(a, j * f + i));
            m->sum[i * f + j] = v;
        }
    return WEIR_OK;
}

static weir_status get_sum(const weir_filemap *map, weir_moments **out, weir_err *err)
{
    weir_npy a;
    weir_zip_member z = {0};
    weir_status s = open_array(&a, &z, map, "mom2.mom2.npy", err);
    if (s == WEIR_OK && (a.kind != 'f' || a.rank != 2 || a.shape[0] != a.shape[1]))
        s = weir_fail(err, WEIR_E_FORMAT, "mom2.mom2 is no square matrix of floats");
    if (s == WEIR_OK)
        s = weir_moments_new(out, a.shape[0], err);
    if (s == WEIR_OK)
        s = fill(*out, &a, err);
    weir_free(z.own);
    return s;
}

static weir_status import(const weir_filemap *map, weir_moments **out, weir_err *err)
{
    int64_t count;
    if (!weir_zip_is(map))
        return weir_fail(err, WEIR_E_FORMAT, "is no .npz archive");
    WEIR_TRY(get_count(map, &count, err));
    WEIR_TRY(get_sum(map, out, err));
    (*out)->count = count;
    return weir_moments_set_about(*out, &(weir_moments_about){.source = "\"imported\"", .complete = true}, err);
}

weir_status weir_moments_import_npz(weir_moments **out, const char *path, weir_err *err)
{
    weir_filemap map;
    *out = NULL;
    WEIR_TRY(weir_filemap_open(&map, path, err));
    const weir_status s = import(&map, out, err);
    weir_filemap_close(&map);
    if (s != WEIR_OK) {
        weir_moments_free(*out);
        *out = NULL;
        weir_err_where(err, path, NULL, -1);
    }
    return s;
}
