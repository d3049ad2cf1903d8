/* record/values_h5.c: values from HDF5 files of weir's: rows of a dump, means of a statistics file, any other dataset.
 */
#include <math.h>
#include <string.h>

#include <weir/record.h>

#include "base/mem.h"
#include "dset.h"
#include "schema.h"
#include "values.h"

/* The attribute `units` of an object: *units [width] ascending, or NULL when it has none. */
static weir_status read_units(hid_t loc, int64_t width, int64_t **units, weir_err *err)
{
    bool good;
    WEIR_TRY(weir_h5_get_ints(loc, "units", width, units, &good, err));
    for (int64_t i = 0; *units && good && i < width; i++)
        good = (*units)[i] >= 0 && (i == 0 || (*units)[i] > (*units)[i - 1]);
    if (good)
        return WEIR_OK;
    weir_free(*units);
    *units = NULL;
    return weir_fail(err, WEIR_E_FORMAT, "attribute units does not fit its dataset");
}

/* units of what lies at path in the file. */
static weir_status units_at(hid_t file, const char *path, int64_t width, int64_t **units, weir_err *err)
{
    *units = NULL;
    hid_t o = weir_h5_has_path(file, path) ? H5Oopen(file, path, H5P_DEFAULT) : -1;
    weir_status st = o >= 0 ? read_units(o, width, units, err) : WEIR_OK;
    H5Oclose(o);
    return st;
}

/* --- dumps */

static weir_status absent(const char *hook, int n, weir_err *err)
{
    return weir_fail(err, WEIR_E_ARG,
                     "%s is not among the %d hook points that it holds: record it there, or name another", hook, n);
}

/* Opens the dump and finds the hook. */
static weir_status open_dump(weir_dump_reader **r, int *i, const char *path, const char *hook, weir_err *err)
{
    WEIR_TRY(weir_dump_open(r, path, err));
    *i = weir_dump_find(*r, hook);
    if (*i >= 0)
        return WEIR_OK;
    weir_status st = absent(hook, weir_dump_n_hooks(*r), err);
    weir_dump_close(*r);
    return st;
}

static weir_status copy_units(weir_array *a, const weir_dump_hook *h, weir_err *err)
{
    a->hook = true;
    if (!h->units)
        return WEIR_OK;
    a->units = weir_calloc((size_t)h->width, sizeof *a->units);
    if (!a->units)
        return weir_nomem(err, "values");
    memcpy(a->units, h->units, (size_t)h->width * sizeof *a->units);
    return WEIR_OK;
}

static weir_status read_dump_rows(weir_array *a, weir_dump_reader *r, int i, const weir_values_spec *s,
                                  int64_t most_rows, weir_err *err)
{
    const weir_dump_hook *h = weir_dump_hook_at(r, i);
    int64_t first, n;
    if (h->rows == 0)
        return weir_fail(err, WEIR_E_SHAPE, "it holds no row of %s", h->name);
    WEIR_TRY(weir_values_rows(s, h->rows, most_rows, &first, &n, err));
    WEIR_TRY(weir_array_alloc(a, n, h->width, err));
    WEIR_TRY(weir_dump_read(r, i, first, n, a->data, err));
    return copy_units(a, h, err);
}

static weir_status from_dump(weir_array *a, const weir_values_spec *s, const char *hook, int64_t most_rows,
                             weir_err *err)
{
    weir_dump_reader *r;
    int i;
    WEIR_TRY(open_dump(&r, &i, s->path, hook, err));
    weir_status st = read_dump_rows(a, r, i, s, most_rows, err);
    weir_dump_close(r);
    return st;
}

/* Adds up all rows of hook i, one chain in float64 for each column. */
static weir_status sum_rows(weir_dump_reader *r, int i, const weir_dump_hook *h, double *sum, weir_err *err)
{
    weir_dump_stream *s;
    weir_dump_block b = {0};
    WEIR_TRY(weir_dump_stream_open(&s, r, i, 0, h->rows, err));
    weir_status st;
    while (!(st = weir_dump_stream_next(s, &b, err)) && b.n > 0)
        for (int64_t row = 0; row < b.n; row++)
            for (int64_t k = 0; k < b.n_columns; k++)
                sum[b.column + k] += (double)b.data[row * b.n_columns + k];
    weir_dump_stream_close(s);
    return st;
}

static weir_status mean_rows(weir_array *a, weir_dump_reader *r, int i, weir_err *err)
{
    const weir_dump_hook *h = weir_dump_hook_at(r, i);
    if (h->rows == 0)
        return weir_fail(err, WEIR_E_SHAPE, "it holds no row of %s", h->name);
    WEIR_TRY(weir_array_alloc(a, 1, h->width, err));
    double *sum = weir_calloc((size_t)h->width, sizeof *sum);
    weir_status st = sum ? sum_rows(r, i, h, sum, err) : weir_nomem(err, "a mean");
    for (int64_t k = 0; k < h->width && !st; k++)
        a->data[k] = (float)(sum[k] / (double)h->rows);
    weir_free(sum);
    return st ? st : copy_units(a, h, err);
}

static weir_status mean_of_dump(weir_array *a, const char *path, const char *hook, weir_err *err)
{
    weir_dump_reader *r;
    int i;
    WEIR_TRY(open_dump(&r, &i, path, hook, err));
    weir_status st = mean_rows(a, r, i, err);
    weir_dump_close(r);
    return st;
}

/* --- datasets */

/* Floats, or integers, which become floats. */
static weir_status open_dataset(weir_dset *d, weir_infile *f, const char *path, weir_err *err)
{
    if (!weir_h5_has_path(f->id, path))
        return weir_fail(err, WEIR_E_ARG, "it has no dataset %s", path);
    hid_t o = H5Oopen(f->id, path, H5P_DEFAULT);
    hid_t type = H5Iget_type(o) == H5I_DATASET ? H5Dget_type(o) : -1;
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    H5Tclose(type);
    H5Oclose(o);
    if (class != H5T_FLOAT && class != H5T_INTEGER)
        return weir_fail(err, WEIR_E_ARG, "%s is no dataset of numbers", path);
    return weir_dset_open(d, f, f->id, path, class == H5T_FLOAT ? WEIR_ELEM_F32 : WEIR_ELEM_I64, err);
}

/* Reads n rows; integers through a buffer of one row at a time. */
static weir_status read_dataset(weir_array *a, const weir_dset *d, int64_t first, weir_err *err)
{
    bool column = d->rank == 1; /* one row for us, many for weir_dset */
    int64_t rows = column ? d->rows : a->rows, width = column ? 1 : d->width;
    if (d->as == WEIR_ELEM_F32)
        return weir_dset_read_plain(d, first, rows, a->data, err);
    int64_t *x = weir_calloc((size_t)(rows * width), sizeof *x);
    weir_status st = x ? weir_dset_read_plain(d, first, rows, x, err) : weir_nomem(err, "values");
    for (int64_t i = 0; i < rows * width && !st; i++)
        a->data[i] = (float)x[i];
    weir_free(x);
    return st;
}

static weir_status load_dataset(weir_array *a, weir_infile *f, const char *path, const weir_values_spec *s,
                                int64_t most_rows, weir_err *err)
{
    weir_dset d;
    int64_t first = 0, n = 1, rows = 1, width = 1;
    memset(&d, 0, sizeof d);
    weir_status st = open_dataset(&d, f, path, err);
    if (!st) {
        const int64_t shape[] = {d.rows, d.outer, d.inner};
        st = d.rank == 1 ? weir_values_shape(1, shape, &rows, &width, err)
                         : weir_values_shape(3, shape, &rows, &width, err);
    }
    if (!st)
        st = weir_values_rows(s, rows, most_rows, &first, &n, err);
    if (!st)
        st = weir_array_alloc(a, n, width, err);
    if (!st)
        st = read_dataset(a, &d, first, err);
    weir_dset_close(&d);
    return st;
}

/* /stats/HOOK/mean. Units of which no value was seen have no mean. */
static weir_status from_stats(weir_array *a, weir_infile *f, const weir_values_spec *s, const char *hook, weir_err *err)
{
    char path[300];
    snprintf(path, sizeof path, "stats/%.280s", hook);
    if (!weir_h5_has_path(f->id, path))
        return weir_fail(err, WEIR_E_ARG, "it has no statistics of %s", hook);
    size_t n = strlen(path);
    snprintf(path + n, sizeof path - n, "/mean");
    WEIR_TRY(load_dataset(a, f, path, s, 1, err));
    path[n] = 0;
    a->hook = true;
    for (int64_t i = 0; i < a->width; i++)
        if (isnan(a->data[i]))
            return weir_fail(err, WEIR_E_SHAPE, "no value was seen of %s: it has no mean", hook);
    return units_at(f->id, path, a->width, &a->units, err);
}

/* --- any file of weir's */

static weir_status read_format(const weir_infile *f, char **format, weir_err *err)
{
    WEIR_TRY(weir_h5_get_text(f->id, "format", format, err));
    if (*format && !strncmp(*format, WEIR_FORMAT_PREFIX, strlen(WEIR_FORMAT_PREFIX)))
        return WEIR_OK;
    return weir_fail(err, WEIR_E_FORMAT, "this HDF5 file is not weir's: save the array as .npy or safetensors");
}

static weir_status by_format(weir_array *a, weir_infile *f, const char *format, const weir_values_spec *s,
                             const char *hook, int64_t most_rows, weir_err *err)
{
    const char *name = s->name ? s->name : hook;
    if (s->name && strchr(s->name, '/'))
        return load_dataset(a, f, s->name, s, most_rows, err);
    if (name && !strcmp(format, WEIR_DUMP_FORMAT))
        return from_dump(a, s, name, most_rows, err);
    if (name && !strcmp(format, WEIR_STATS_FORMAT))
        return from_stats(a, f, s, name, err);
    return weir_fail(err, WEIR_E_ARG, "a file of format %.40s: name a dataset in it, ::/PATH", format);
}

weir_status weir_values_h5(weir_array *a, const weir_values_spec *s, const char *hook, int64_t most_rows, weir_err *err)
{
    weir_h5_quiet q;
    weir_infile f;
    char *format = NULL;
    memset(&f, 0, sizeof f);
    weir_h5_quiet_begin(&q);
    weir_status st = weir_infile_open(&f, s->path, err);
    if (!st)
        st = read_format(&f, &format, err);
    if (!st)
        st = by_format(a, &f, format, s, hook, most_rows, err);
    weir_free(format);
    weir_infile_close(&f);
    weir_h5_quiet_end(&q);
    return st;
}

static weir_status find_mean(weir_array *a, const char *path, const char *hook, weir_err *err)
{
    const weir_values_spec s = {.path = (char *)(uintptr_t)path, .factor = 1};
    weir_infile f;
    char *format = NULL;
    memset(&f, 0, sizeof f);
    weir_status st = weir_infile_open(&f, path, err);
    if (!st)
        st = read_format(&f, &format, err);
    if (!st && !strcmp(format, WEIR_DUMP_FORMAT))
        st = mean_of_dump(a, path, hook, err);
    else if (!st && !strcmp(format, WEIR_STATS_FORMAT))
        st = from_stats(a, &f, &s, hook, err);
    else if (!st)
        st =
            weir_fail(err, WEIR_E_ARG, "a mean is taken from a dump or a statistics file, but this is a %.40s", format);
    weir_free(format);
    weir_infile_close(&f);
    return st;
}

weir_status weir_values_mean(weir_array *out, const char *path, const char *hook, weir_err *err)
{
    weir_h5_quiet q;
    *out = (weir_array){0};
    weir_h5_quiet_begin(&q);
    weir_status st = find_mean(out, path, hook, err);
    weir_h5_quiet_end(&q);
    for (int64_t i = 0; i < out->width && !st; i++)
        if (!isfinite(out->data[i]))
            st = weir_fail(err, WEIR_E_FORMAT, "the mean of element %lld of %s is not finite", (long long)i, hook);
    if (st) {
        weir_err_where(err, path, NULL, -1);
        weir_array_free(out);
    }
    return st;
}
