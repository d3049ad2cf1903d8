/* record/arrays_read.c: see weir/arrays.h: reading: the file, what lies in it, attributes. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "arrays_impl.h"
#include "base/mem.h"
#include "seal.h"

weir_status weir_arrays_bad(const weir_arrays_in *r, const char *name, weir_err *err, const char *fmt, ...)
{
    char what[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    weir_fail(err, WEIR_E_FORMAT, "%s", what);
    weir_err_where(err, r->file.path, *name ? name : NULL, -1);
    return WEIR_E_FORMAT;
}

/* --- the file */

static weir_status check_format(weir_arrays_in *r, const char *format, int64_t version, weir_err *err)
{
    char *its;
    int64_t its_version;
    H5O_info_t info;
    WEIR_TRY(weir_h5_get_text(r->file.id, "format", &its, err));
    const bool ours = its && !strcmp(its, format);
    weir_status st = WEIR_OK;
    if (!ours)
        st = weir_fail(err, WEIR_E_FORMAT, "not a %s file (its attribute format is %.40s)", format,
                       its ? its : "missing");
    weir_free(its);
    if (st)
        return st;
    if (!weir_h5_get_int(r->file.id, "format_version", &its_version))
        return weir_fail(err, WEIR_E_FORMAT, "the file does not say its format_version");
    if (its_version != version)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "the file has format_version %" PRId64 "; this weir reads %" PRId64,
                         its_version, version);
    if (H5Oget_info2(r->file.id, &info, H5O_INFO_BASIC) < 0)
        return weir_h5_fail(err, "cannot read the file");
    r->fileno = info.fileno;
    return WEIR_OK;
}

weir_status weir_arrays_open(weir_arrays_in **out, const char *path, const char *format, int64_t version, weir_err *err)
{
    weir_h5_quiet q;
    *out = NULL;
    weir_arrays_in *r = weir_calloc(1, sizeof *r);
    if (!r)
        return weir_nomem(err, "a file of arrays");
    weir_h5_quiet_begin(&q);
    weir_status st = weir_infile_open(&r->file, path, err);
    if (!st)
        st = check_format(r, format, version, err);
    weir_h5_quiet_end(&q);
    if (st) {
        weir_err_where(err, path, NULL, -1);
        weir_arrays_close(r);
    } else {
        *out = r;
    }
    return st;
}

void weir_arrays_close(weir_arrays_in *r)
{
    weir_h5_quiet q;
    if (!r)
        return;
    weir_h5_quiet_begin(&q);
    weir_infile_close(&r->file);
    weir_h5_quiet_end(&q);
    weir_inflater_free(r->inflater);
    weir_free(r->packed);
    weir_free(r->shuffled);
    weir_free(r->plain);
    weir_free(r);
}

void weir_arrays_free(void *p)
{
    weir_free(p);
}

bool weir_arrays_is(const char *path, const char *format)
{
    weir_h5_quiet q;
    weir_infile f;
    char *its = NULL, sealed[WEIR_SEAL_NAMES];
    if (weir_seal_format(path, sealed))
        return !strcmp(sealed, format);
    memset(&f, 0, sizeof f);
    weir_h5_quiet_begin(&q);
    const bool is = !weir_infile_open(&f, path, NULL) && !weir_h5_get_text(f.id, "format", &its, NULL) && its &&
                    !strcmp(its, format);
    weir_free(its);
    weir_infile_close(&f);
    weir_h5_quiet_end(&q);
    return is;
}

/* --- objects */

hid_t weir_arrays_object(const weir_arrays_in *r, const char *name)
{
    if (!*name)
        return H5Oopen(r->file.id, "/", H5P_DEFAULT);
    return weir_h5_has_path(r->file.id, name) ? H5Oopen(r->file.id, name, H5P_DEFAULT) : -1;
}

bool weir_arrays_has(weir_arrays_in *r, const char *name)
{
    weir_h5_quiet q;
    weir_h5_quiet_begin(&q);
    const bool has = weir_h5_has_path(r->file.id, name);
    H5Eclear2(H5E_DEFAULT);
    weir_h5_quiet_end(&q);
    return has;
}

bool weir_arrays_child(weir_arrays_in *r, const char *group, int64_t i, char name[WEIR_ARRAY_NAMES])
{
    weir_h5_quiet q;
    H5G_info_t info;
    bool found = false;
    weir_h5_quiet_begin(&q);
    hid_t g = weir_arrays_object(r, group);
    if (g >= 0 && H5Iget_type(g) == H5I_GROUP && H5Gget_info(g, &info) >= 0 && (uint64_t)i < info.nlinks) {
        const ssize_t n = H5Lget_name_by_idx(g, ".", weir_h5_link_order(g), H5_ITER_INC, (hsize_t)i, name,
                                             WEIR_ARRAY_NAMES, H5P_DEFAULT);
        found = n > 0 && n < WEIR_ARRAY_NAMES;
    }
    if (g >= 0)
        H5Oclose(g);
    H5Eclear2(H5E_DEFAULT);
    weir_h5_quiet_end(&q);
    return found;
}

/* --- attributes */

weir_status weir_arrays_get_text(weir_arrays_in *r, const char *at, const char *name, char **out, weir_err *err)
{
    weir_h5_quiet q;
    *out = NULL;
    weir_h5_quiet_begin(&q);
    hid_t o = weir_arrays_object(r, at);
    weir_status st = o >= 0 ? weir_h5_get_text(o, name, out, err) : WEIR_OK;
    if (o >= 0)
        H5Oclose(o);
    weir_h5_quiet_end(&q);
    if (!st && !*out)
        st = weir_arrays_bad(r, at, err, "its attribute %s is missing, or no text", name);
    return st;
}

static bool read_numbers(hid_t a, weir_array_type type, int64_t most, int64_t *n, void *out)
{
    hid_t its = H5Aget_type(a), space = H5Aget_space(a);
    *n = (int64_t)H5Sget_simple_extent_npoints(space);
    const bool good = H5Tget_class(its) == weir_array_h5_class(type) && *n >= 0 && *n <= most &&
                      H5Tget_size(its) == weir_array_type_bytes(type) &&
                      (*n == 0 || H5Aread(a, weir_array_h5_type(type), out) >= 0);
    if (its >= 0)
        H5Tclose(its);
    if (space >= 0)
        H5Sclose(space);
    return good;
}

weir_status weir_arrays_get_attribute(weir_arrays_in *r, const char *at, const char *name, weir_array_type type,
                                      int64_t most, int64_t *n, void *out, weir_err *err)
{
    weir_h5_quiet q;
    bool good = false;
    weir_h5_quiet_begin(&q);
    hid_t o = weir_arrays_object(r, at), a = -1;
    if (o >= 0 && H5Aexists(o, name) > 0)
        a = H5Aopen(o, name, H5P_DEFAULT);
    if (a >= 0) {
        good = read_numbers(a, type, most, n, out);
        H5Aclose(a);
    }
    if (o >= 0)
        H5Oclose(o);
    H5Eclear2(H5E_DEFAULT);
    weir_h5_quiet_end(&q);
    return good ? WEIR_OK : weir_arrays_bad(r, at, err, "its attribute %s is missing, or not what it should be", name);
}

weir_status weir_arrays_get_int(weir_arrays_in *r, const char *at, const char *name, int64_t *v, weir_err *err)
{
    int64_t n;
    WEIR_TRY(weir_arrays_get_attribute(r, at, name, WEIR_ARRAY_I64, 1, &n, v, err));
    return n == 1 ? WEIR_OK : weir_arrays_bad(r, at, err, "its attribute %s is empty", name);
}
